"""Decide which facts of a slot hold now, from all statements about the slot.

A slot is a subject and a single-valued relation of the table. Each turn that states a fact of the
slot is a statement. Statements are ordered by the times of their turns, so the order in which turns
are ingested changes nothing. The functions here do no I/O.

* The value that was stated last holds. A value ends where the first statement of another value,
  after its own last statement, says that the other began: at the time of that statement, or at the
  date in it.
* A date such as "in March" is a period, not its first instant: the change lies within the period
  and after the last statement of the old value.
* A statement about an earlier time replaces nothing. A statement is about an earlier time when it
  speaks of the past ("In 2019 I lived in Rome"; such a fact has an end of its own), when its date
  lies before the date of a value that was stated earlier, or when its date lies more than a year
  before the last statement of another value. Words of the present ("since 2019", "now") prevent
  all three.
* A plan ("moving to Milan in June") counts on its day; a later plan that is made before that day
  replaces it.
* A statement that ends facts (``Ending``) closes what was stated before it, in any relation.
* An end that a fact's own statement gives it, and an end by ``invalidates``, win over all of this.
"""

from __future__ import annotations

import itertools
import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from pps.core.relation_table import RelationRule, relation_key
from pps.core.time import Span, coarse, interval
from pps.core.time_reading import names_time, read_times
from pps.core.values import Closing, ClosingCause, Fact
from pps.ingest.support import taken_back
from pps.journal.closing_rows import Ending

_DAY = timedelta(days=1)
_LONG_BEFORE = timedelta(days=365)
"""A date this long before the last statement of another value is about an earlier time."""

BEFORE_EVERYTHING = datetime(1, 1, 2, tzinfo=UTC)
"""The end of a fact that was never true and has no known beginning."""

CORRECTION_REACH = 8
"""The number of turns before a correction, in its session, that may state the corrected fact."""

_PRESENT = re.compile(
    r"\b(?:since|still|now|nowadays|currently|presently|these days|at the moment|again|anymore"
    r"|ever since|(?:have|has|'ve|'s) (?:\w+ )?(?:lived|been|worked))\b",
    re.IGNORECASE,
)
_PAST = re.compile(
    r"\bused to\b"
    r"|\b(?:formerly|previously|once|back then|back when|in those days|no longer|at the time)\b"
    r"|\b(?:lived|resided|worked|studied|dwelt|stayed)\b"
    r"|\b(?:'s|his|her|their|my|our) (?:previous|former|prior|ex)[ -](?:\w+ ){0,2}?\w+"
    r" (?:is|was|were|are)\b"
    r"|\b(?:is|was|were|are) (?:[\w-]+'s|his|her|their|my|our|the|an?)"
    r" (?:previous|former|prior|ex)[ -]\w"
    r"|\b(?:was|were|had been) (?:living|working|based|employed|married|engaged|dating|studying"
    r"|staying|kept|stored|called|named|at|in|an?|the|my|our|\d)\b",
    re.IGNORECASE,
)


class Order(NamedTuple):
    """The sort key of a statement.

    Attributes:
        at: When the turn was said.
        seq: The turn's position in the journal.
        place: The statement's position within the turn.
    """

    at: datetime
    seq: int
    place: int = 0


@dataclass(frozen=True, slots=True)
class FactStatement:
    """One turn that states a fact."""

    turn: str
    order: Order


@dataclass(frozen=True, slots=True)
class Stated:
    """A fact with the turns that state it.

    Attributes:
        statements: In their order; at least one.
        own_end: The end that the fact's own statement gives it, or None.
        explicit: The valid closings by ``invalidates``.
    """

    fact: Fact
    statements: tuple[FactStatement, ...]
    own_end: datetime | None = None
    explicit: tuple[Closing, ...] = ()

    @property
    def first(self) -> FactStatement:
        return self.statements[0]

    @property
    def last(self) -> FactStatement:
        return self.statements[-1]


@dataclass(frozen=True, slots=True)
class OrderedEnding:
    """A statement that ends facts, with its place among the statements."""

    ending: Ending
    order: Order


@dataclass(frozen=True, slots=True)
class _Period:
    """A change happened within ``[start, end]``; the two are equal when its instant is known."""

    start: datetime
    end: datetime


@dataclass(frozen=True, slots=True)
class _Change:
    """A statement that may replace another value.

    Attributes:
        order: When it counts: of a plan the day that it is for.
        begins: When its fact began; None means at the time of the statement.
    """

    fact: Fact
    turn: str
    order: Order
    begins: _Period | None


def speaks_of_the_past(text: str) -> bool:
    """Tell whether an English sentence is plainly about the past and has no word of the present."""
    return _PAST.search(text) is not None and _PRESENT.search(text) is None


def end_of_the_past(text: str, since: datetime | None, said_at: datetime) -> datetime:
    """Return when a fact about the past had ended at the latest.

    That is the first end after ``since`` of the periods that the text names, or else ``said_at``.
    """
    ends = [
        span.end
        for span in _spans(text, said_at)
        if span.end is not None and (since is None or since < span.end)
    ]
    return min([*ends, said_at])


def closings_of_slot(
    facts: Sequence[Stated],
    endings: Sequence[OrderedEnding],
    relation: RelationRule,
    at: datetime,
) -> dict[str, Closing | None]:
    """Return fact → its closing, for each fact of one slot; None keeps the fact's own end.

    Args:
        facts: All facts of the slot. Retracted facts close nothing, and are absent from the result.
        endings: The endings about the subject or an object of the facts.
        relation: The single-valued relation of the slot.
        at: When new closings are learned (``Closing.closed_at``).
    """
    present = [stated for stated in facts if _counts(stated)]
    begins = {stated.fact.uuid: _begins(stated, relation) for stated in present}
    current, earlier = _split_by_time(present, begins)
    changes = sorted(_changes(current, begins), key=_order_of)
    result: dict[str, Closing | None] = {}
    for stated in facts:
        if taken_back(stated.fact):
            continue
        if stated.own_end is not None or stated.explicit:
            result[stated.fact.uuid] = _explicit(stated)
            continue
        candidates = [*_endings_of(stated, endings, relation, at)]
        if earlier:
            candidates += _overtaken(stated, present, earlier, begins, at)
        if stated.fact.uuid not in earlier:
            candidates += _successors(stated, changes, begins, at)
            candidates += _plans_made_anew(stated, current, begins, at)
        result[stated.fact.uuid] = min(candidates, key=lambda closing: closing.at, default=None)
    return result


def runs_of_slot(
    facts: Sequence[Stated], relation: RelationRule
) -> dict[str, list[tuple[FactStatement, ...]]]:
    """Return fact → its statements in runs, for facts that another value interrupts.

    A person who lived in Rome, then in Milan, then in Rome again lived in Rome twice. Each run
    becomes a fact of its own, so the result does not depend on which statement was ingested first.
    """
    present = [stated for stated in facts if _counts(stated)]
    begins = {stated.fact.uuid: _begins(stated, relation) for stated in present}
    current, _ = _split_by_time(present, begins)
    changes = sorted(_changes(current, begins), key=_order_of)
    runs_by_fact: dict[str, list[tuple[FactStatement, ...]]] = {}
    for stated in current:
        runs: list[list[FactStatement]] = [[stated.first]]
        for before, statement in itertools.pairwise(stated.statements):
            after = bisect_right(changes, before.order, key=_order_of)
            until = bisect_left(changes, statement.order, key=_order_of)
            value = stated.fact.object
            if any(changes[place].fact.object != value for place in range(after, until)):
                runs.append([])
            runs[-1].append(statement)
        if len(runs) > 1:
            runs_by_fact[stated.fact.uuid] = [tuple(run) for run in runs]
    return runs_by_fact


def closing_of_other(
    stated: Stated, endings: Sequence[OrderedEnding], relation: RelationRule | None, at: datetime
) -> Closing | None:
    """Return the closing of a fact whose relation is not single-valued.

    Only an ending or a statement with ``invalidates`` closes it.
    """
    if stated.own_end is not None or stated.explicit:
        return _explicit(stated)
    return min(
        _endings_of(stated, endings, relation, at), key=lambda closing: closing.at, default=None
    )


def closed(fact: Fact, closing: Closing | None, own_end: datetime | None) -> Fact:
    """Return a fact ended by a closing; without a closing, open up to its own end."""
    if closing is None:
        if fact.invalid_at == own_end:
            return fact
        return replace(fact, invalid_at=own_end, expired_at=None)
    if fact.invalid_at == closing.at and fact.expired_at is not None:
        return fact
    never_began = fact.valid_at is not None and closing.at <= fact.valid_at
    learned = closing.at <= closing.closed_at or never_began
    return replace(fact, invalid_at=closing.at, expired_at=closing.closed_at if learned else None)


def is_about(ending: Ending, fact: Fact, relation: RelationRule | None) -> bool:
    """Tell whether an ending names a fact."""
    if ending.subject and ending.subject != fact.subject:
        return False
    if ending.object and ending.object != fact.object:
        return False
    if not ending.relations:
        return True
    keys = {relation_key(fact.relation)}
    if relation is not None:
        keys.add(relation_key(relation.name))
    return not keys.isdisjoint(ending.relations)


def _counts(stated: Stated) -> bool:
    """Tell whether a fact may replace others: not retracted, not about the past, and once true."""
    return not taken_back(stated.fact) and not _is_over(stated) and not _was_never_true(stated)


def _was_never_true(stated: Stated) -> bool:
    """Tell whether a turn said that a fact was never true, without giving another fact instead."""
    closing = _explicit(stated)
    if closing is None or closing.by_fact:
        return False
    return closing.at <= (stated.fact.valid_at or BEFORE_EVERYTHING)


def _is_over(stated: Stated) -> bool:
    """Tell whether a fact had already ended when it was last stated."""
    return stated.own_end is not None and stated.own_end <= stated.last.order.at


def _explicit(stated: Stated) -> Closing | None:
    closing = min(stated.explicit, key=lambda closing: closing.at, default=None)
    if closing is None or (stated.own_end is not None and stated.own_end <= closing.at):
        return None
    return closing


def _begins(stated: Stated, relation: RelationRule) -> _Period | None:
    """Return when the value began; None when no time is named: it holds since it was stated."""
    fact = stated.fact
    if not relation.dated or fact.valid_at is None:
        return None
    if any(statement.order.at == fact.valid_at for statement in stated.statements):
        return None
    for span in _spans(fact.text, stated.first.order.at):
        if fact.valid_at in (span.start, span.began()) and span.end is not None:
            return _Period(fact.valid_at, span.end)
    return _Period(fact.valid_at, interval(fact.valid_at)[1])


def _spans(text: str, said_at: datetime) -> list[Span]:
    return read_times(text, said_at) if names_time(text) else []


def _split_by_time(
    present: Sequence[Stated], begins: dict[str, _Period | None]
) -> tuple[list[Stated], set[str]]:
    """Return the facts that may be current, and the ids of those about an earlier time.

    A fact is about an earlier time when it names a time plainly before that of another value that
    was stated before it.
    """
    current: list[Stated] = []
    earlier: set[str] = set()
    starts = _Latest()
    statements = _Latest()
    for stated in sorted(present, key=lambda stated: stated.last.order):
        period = begins[stated.fact.uuid]
        value = stated.fact.object
        if period is not None and _is_before(
            stated, period, starts.besides(value), statements.besides(value)
        ):
            earlier.add(stated.fact.uuid)
            continue
        current.append(stated)
        statements.add(value, stated.last.order.at)
        if period is not None:
            starts.add(value, period.start)
    return current, earlier


class _Latest:
    """The latest moment of each value, for the two values with the latest moments."""

    def __init__(self) -> None:
        self._moments: dict[str, datetime] = {}

    def add(self, value: str, moment: datetime) -> None:
        known = self._moments.get(value)
        self._moments[value] = moment if known is None else max(known, moment)
        if len(self._moments) > 2:
            del self._moments[min(self._moments, key=self._moments.__getitem__)]

    def besides(self, value: str) -> datetime | None:
        """Return the latest moment of any other value."""
        others = [moment for name, moment in self._moments.items() if name != value]
        return max(others, default=None)


def _is_before(
    stated: Stated, period: _Period, others_begin: datetime | None, others_stated: datetime | None
) -> bool:
    """Tell whether a fact names a time plainly before that of another value stated before it.

    Args:
        stated: The fact.
        period: The time that its text names.
        others_begin: The latest time that a statement of another value names.
        others_stated: When another value was last stated.
    """
    if period.start > stated.last.order.at or _PRESENT.search(stated.fact.text):
        return False  # a plan, or what holds now
    if others_begin is not None and period.start < others_begin and period.end <= others_begin:
        return True
    if others_stated is None or not names_time(stated.fact.text):
        return False
    return period.end + _LONG_BEFORE <= others_stated


def _order_of(change: _Change) -> Order:
    return change.order


def _changes(facts: Iterable[Stated], begins: dict[str, _Period | None]) -> Iterator[_Change]:
    """Yield every statement with the moment when it counts: a plan on the day that it is for."""
    for stated in facts:
        for statement in stated.statements:
            period = begins[stated.fact.uuid] if statement is stated.first else None
            order = statement.order
            if period is not None and period.start > order.at:
                order = order._replace(at=period.start)
            yield _Change(stated.fact, statement.turn, order, period)


def _successors(
    stated: Stated,
    changes: Sequence[_Change],
    begins: dict[str, _Period | None],
    at: datetime,
) -> Iterator[Closing]:
    """Yield the closing by the first statement of another value after the fact's own last one."""
    last = max(change.order for change in _changes([stated], begins))
    for place in range(bisect_right(changes, last, key=_order_of), len(changes)):
        change = changes[place]
        if change.fact.object == stated.fact.object:
            continue
        if change.turn == stated.last.turn and change.fact.text == stated.fact.text:
            continue  # stated sentence that names two values: neither replaces the other
        moment = _end_of_value(stated, change.begins, change.order.at)
        yield _closing(stated, moment, "superseded", change.turn, at, change.fact.uuid)
        return


def _plans_made_anew(
    stated: Stated, facts: Sequence[Stated], begins: dict[str, _Period | None], at: datetime
) -> Iterator[Closing]:
    """Yield the closings of a plan by other plans that were made before its day came."""
    mine = begins[stated.fact.uuid]
    if mine is None or mine.start <= stated.last.order.at:
        return
    for other in facts:
        theirs = begins[other.fact.uuid]
        statement = other.first
        if other.fact.object == stated.fact.object or theirs is None:
            continue
        made_after = stated.last.order < statement.order
        if made_after and statement.order.at < min(mine.start, theirs.start):
            yield _closing(stated, mine.start, "superseded", statement.turn, at, other.fact.uuid)


def _overtaken(
    stated: Stated,
    present: Sequence[Stated],
    earlier: set[str],
    begins: dict[str, _Period | None],
    at: datetime,
) -> Iterator[Closing]:
    """Yield the closings that facts about an earlier time receive or cause.

    In world time, such a value ends where the next value began, and it ends a value before it.
    """
    start = stated.fact.valid_at
    if start is None:
        return
    for other in present:
        other_start = other.fact.valid_at
        if other.fact.object == stated.fact.object or other_start is None or other_start <= start:
            continue
        is_between = other.fact.uuid in earlier and begins.get(stated.fact.uuid) is not None
        if stated.fact.uuid in earlier or is_between:
            yield _closing(stated, other_start, "superseded", other.first.turn, at, other.fact.uuid)


def _endings_of(
    stated: Stated, endings: Sequence[OrderedEnding], relation: RelationRule | None, at: datetime
) -> Iterator[Closing]:
    for ordered in endings:
        ending = ordered.ending
        period = None
        order_at = ordered.order.at
        if ending.ended_at is not None:
            until = ending.ended_before or interval(ending.ended_at)[1]
            period = _Period(ending.ended_at, until)
            order_at = max(order_at, period.start)
        is_later = stated.last.order[:2] < (order_at, ordered.order.seq)
        if is_later and stated.last.turn != ending.turn and is_about(ending, stated.fact, relation):
            moment = _end_of_value(stated, period, ordered.order.at)
            yield _closing(stated, moment, "ended", ending.turn, at)


def _end_of_value(stated: Stated, period: _Period | None, said_at: datetime) -> datetime:
    """Return when a value ended: within the named period, and after the value was last stated."""
    if period is None:
        return said_at
    last_held = stated.last.order.at
    latest = min(period.end, said_at)
    if period.start <= last_held < latest:
        return min(coarse(last_held.date() + _DAY), latest)
    return period.start


def _closing(
    stated: Stated,
    moment: datetime,
    cause: ClosingCause,
    turn: str,
    at: datetime,
    by_fact: str = "",
) -> Closing:
    since = stated.fact.valid_at
    end = moment if since is None else max(moment, since)
    return Closing(stated.fact.uuid, by_fact, turn, cause, end, at, stated.own_end)
