"""Which facts of a slot hold: the state of a subject's single-valued relation, from all that was stated of it.

Pure. A slot is a subject and a single-valued relation of the table. Each turn that states a fact of the slot is a
statement; statements are ordered by their turns' own times, so the order in which turns are taken in changes nothing.

* The value that was stated last holds. A value ends where the first statement of another value after its own last
  statement says that the other began: at the time of that statement, or at the date in it.
* A date such as "in March" is a stretch, not its first instant: the change lies within the stretch and after the last
  statement of the old value.
* A statement of an earlier time replaces nothing. Such are: words about the past ("In 2019 I lived in Rome"), which
  give the fact an end of its own; a date before that of a value stated earlier; a date in the words that lies more
  than a year before the last statement of another value. Words of the present ("since 2019", "now") are none of them.
* A plan ("moving to Milan in June") is a statement of its day; a later plan made before that day takes its place.
* Statements that end facts (``Ending``) close what was stated before them, in any relation.
* An end that a fact's own statement gives it, and one by ``invalidates``, win over all of this.
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
"""How long before the last statement of another value a date lies that is certainly of an earlier time."""

BEFORE_EVERYTHING = datetime(1, 1, 2, tzinfo=UTC)
"""Where a fact ends that was never true and of which it is not known when it began."""

CORRECTION_REACH = 8
"""Turns of the session before a correction among which the fact meant is looked for."""

_PRESENT = re.compile(
    r"\b(?:since|still|now|nowadays|currently|presently|these days|at the moment|again|anymore|ever since"
    r"|(?:have|has|'ve|'s) (?:\w+ )?(?:lived|been|worked))\b",
    re.IGNORECASE,
)
_PAST = re.compile(
    r"\bused to\b|\b(?:formerly|previously|once|back then|back when|in those days|no longer|at the time)\b"
    r"|\b(?:lived|resided|worked|studied|dwelt|stayed)\b"
    r"|\b(?:'s|his|her|their|my|our) (?:previous|former|prior|ex)[ -](?:\w+ ){0,2}?\w+ (?:is|was|were|are)\b"
    r"|\b(?:is|was|were|are) (?:[\w-]+'s|his|her|their|my|our|the|an?) (?:previous|former|prior|ex)[ -]\w"
    r"|\b(?:was|were|had been) (?:living|working|based|employed|married|engaged|dating|studying|staying|kept|stored"
    r"|called|named|at|in|an?|the|my|our|\d)\b",
    re.IGNORECASE,
)


class Order(NamedTuple):
    """Where a statement stands: its own time, its turn's place in the journal, its place within the turn."""

    at: datetime
    seq: int
    place: int = 0


@dataclass(frozen=True, slots=True)
class Said:
    """One turn that states a fact."""

    turn: str
    order: Order


@dataclass(frozen=True, slots=True)
class Stated:
    """A fact with what states it.

    Attributes:
        said: Its statements in their order, one at least.
        own_end: The end that its own statement gives it, or None.
        explicit: The closings by ``invalidates`` that hold.
    """

    fact: Fact
    said: tuple[Said, ...]
    own_end: datetime | None = None
    explicit: tuple[Closing, ...] = ()

    @property
    def first(self) -> Said:
        return self.said[0]

    @property
    def last(self) -> Said:
        return self.said[-1]


@dataclass(frozen=True, slots=True)
class SaidEnding:
    """An ending with when it was said."""

    ending: Ending
    order: Order


@dataclass(frozen=True, slots=True)
class _Stretch:
    """When something began: within ``[start, end]``; equal when it is exact."""

    start: datetime
    end: datetime


@dataclass(frozen=True, slots=True)
class _Change:
    """A statement that may take the place of a value."""

    fact: Fact
    turn: str
    order: Order
    begins: _Stretch | None


def speaks_of_the_past(text: str) -> bool:
    """Tell whether a sentence plainly says what was and is no more; English. One of the present tense does not."""
    return _PAST.search(text) is not None and _PRESENT.search(text) is None


def end_of_the_past(text: str, since: datetime | None, said_at: datetime) -> datetime:
    """Return until when certainly a statement of the past held: the end of the stretch that it names, else when said."""
    ends = [
        span.end
        for span in _spans(text, said_at)
        if span.end is not None and (since is None or since < span.end)
    ]
    return min([*ends, said_at])


def closings_of_slot(
    facts: Sequence[Stated],
    endings: Sequence[SaidEnding],
    relation: RelationRule,
    at: datetime,
) -> dict[str, Closing | None]:
    """Return what closes each fact of one slot, by uuid; None where it stays as its own statement has it.

    Args:
        facts: All facts of the slot; those that were taken back close nothing and stay as they are.
        endings: Those that name the subject or an object of the facts.
        relation: The relation of the slot, single-valued.
        at: The moment that new closings are learned at.
    """
    present = [one for one in facts if _counts(one)]
    begins = {one.fact.uuid: _begins(one, relation) for one in present}
    current, earlier = _told_late(present, begins)
    changes = sorted(_changes(current, begins), key=_order_of)
    result: dict[str, Closing | None] = {}
    for one in facts:
        if taken_back(one.fact):
            continue
        if one.own_end is not None or one.explicit:
            result[one.fact.uuid] = _explicit(one)
            continue
        candidates = [*_endings_of(one, endings, relation, at)]
        if earlier:
            candidates += _overtaken(one, present, earlier, begins, at)
        if one.fact.uuid not in earlier:
            candidates += _successors(one, changes, begins, at)
            candidates += _plans_made_anew(one, current, begins, at)
        result[one.fact.uuid] = min(candidates, key=lambda closing: closing.at, default=None)
    return result


def runs_of_slot(
    facts: Sequence[Stated], relation: RelationRule
) -> dict[str, list[tuple[Said, ...]]]:
    """Return fact → its statements in runs, of the facts that another value was stated between two statements of.

    Who lived in Rome, then in Milan, then in Rome again lived there twice: each run is a fact of its own, so that the
    result does not depend on which of the statements was taken in first.
    """
    present = [one for one in facts if _counts(one)]
    begins = {one.fact.uuid: _begins(one, relation) for one in present}
    current, _ = _told_late(present, begins)
    changes = sorted(_changes(current, begins), key=_order_of)
    found: dict[str, list[tuple[Said, ...]]] = {}
    for one in current:
        runs: list[list[Said]] = [[one.first]]
        for before, said in itertools.pairwise(one.said):
            after = bisect_right(changes, before.order, key=_order_of)
            until = bisect_left(changes, said.order, key=_order_of)
            if any(changes[place].fact.object != one.fact.object for place in range(after, until)):
                runs.append([])
            runs[-1].append(said)
        if len(runs) > 1:
            found[one.fact.uuid] = [tuple(run) for run in runs]
    return found


def closing_of_other(
    one: Stated, endings: Sequence[SaidEnding], relation: RelationRule | None, at: datetime
) -> Closing | None:
    """Return what closes a fact of a relation that is not single-valued: an ending, or what names it."""
    if one.own_end is not None or one.explicit:
        return _explicit(one)
    return min(
        _endings_of(one, endings, relation, at), key=lambda closing: closing.at, default=None
    )


def closed(fact: Fact, closing: Closing | None, own_end: datetime | None) -> Fact:
    """Return a fact as a closing has it, or open again up to its own end."""
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


def _counts(one: Stated) -> bool:
    """Tell whether a fact may take the place of others: it was not taken back, speaks of the present, and was true."""
    return not taken_back(one.fact) and not _is_over(one) and not _was_never_true(one)


def _was_never_true(one: Stated) -> bool:
    """Tell whether somebody said that a fact was never true, without a fact in its place."""
    closing = _explicit(one)
    if closing is None or closing.by_fact:
        return False
    return closing.at <= (one.fact.valid_at or BEFORE_EVERYTHING)


def _is_over(one: Stated) -> bool:
    """Tell whether a fact had ended, by its own statement, when it was last stated: it speaks of the past."""
    return one.own_end is not None and one.own_end <= one.last.order.at


def _explicit(one: Stated) -> Closing | None:
    closing = min(one.explicit, key=lambda closing: closing.at, default=None)
    if closing is None or (one.own_end is not None and one.own_end <= closing.at):
        return None
    return closing


def _begins(one: Stated, relation: RelationRule) -> _Stretch | None:
    """Return when the value began, where its statement names a time; None where it holds since it was stated."""
    fact = one.fact
    if not relation.dated or fact.valid_at is None:
        return None
    if any(said.order.at == fact.valid_at for said in one.said):
        return None
    for span in _spans(fact.text, one.first.order.at):
        if fact.valid_at in (span.start, span.began()) and span.end is not None:
            return _Stretch(fact.valid_at, span.end)
    return _Stretch(fact.valid_at, interval(fact.valid_at)[1])


def _spans(text: str, said_at: datetime) -> list[Span]:
    return read_times(text, said_at) if names_time(text) else []


def _told_late(
    present: Sequence[Stated], begins: dict[str, _Stretch | None]
) -> tuple[list[Stated], set[str]]:
    """Return the facts that count, and the ids of those that speak of an earlier time than one stated before them."""
    current: list[Stated] = []
    earlier: set[str] = set()
    starts = _Latest()
    statements = _Latest()
    for one in sorted(present, key=lambda stated: stated.last.order):
        stretch = begins[one.fact.uuid]
        value = one.fact.object
        if stretch is not None and _is_before(
            one, stretch, starts.besides(value), statements.besides(value)
        ):
            earlier.add(one.fact.uuid)
            continue
        current.append(one)
        statements.add(value, one.last.order.at)
        if stretch is not None:
            starts.add(value, stretch.start)
    return current, earlier


class _Latest:
    """The latest moment of each of the two values that have the latest ones."""

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
    one: Stated, stretch: _Stretch, others_begin: datetime | None, others_stated: datetime | None
) -> bool:
    """Tell whether a fact names a time plainly before that of another value, which was stated before it.

    Args:
        one: The fact; ``stretch`` is the time that it names.
        stretch: See there.
        others_begin: The latest time that a statement of another value names.
        others_stated: When another value was last stated.
    """
    if stretch.start > one.last.order.at or _PRESENT.search(one.fact.text):
        return False  # a plan, or what holds now
    if others_begin is not None and stretch.start < others_begin and stretch.end <= others_begin:
        return True
    if others_stated is None or not names_time(one.fact.text):
        return False
    return stretch.end + _LONG_BEFORE <= others_stated


def _order_of(change: _Change) -> Order:
    return change.order


def _changes(facts: Iterable[Stated], begins: dict[str, _Stretch | None]) -> Iterator[_Change]:
    """Yield every statement in the place where it counts: a plan on the day that it is for."""
    for one in facts:
        for said in one.said:
            stretch = begins[one.fact.uuid] if said is one.first else None
            order = said.order
            if stretch is not None and stretch.start > order.at:
                order = order._replace(at=stretch.start)
            yield _Change(one.fact, said.turn, order, stretch)


def _successors(
    one: Stated,
    changes: Sequence[_Change],
    begins: dict[str, _Stretch | None],
    at: datetime,
) -> Iterator[Closing]:
    """Yield the closing by the first statement of another value after the last of this one's."""
    last = max(change.order for change in _changes([one], begins))
    for place in range(bisect_right(changes, last, key=_order_of), len(changes)):
        change = changes[place]
        if change.fact.object == one.fact.object:
            continue
        if change.turn == one.last.turn and change.fact.text == one.fact.text:
            continue  # one sentence that names two values: neither replaces the other
        moment = _moment(one, change.begins, change.order.at)
        yield _closing(one, moment, "superseded", change.turn, at, change.fact.uuid)
        return


def _plans_made_anew(
    one: Stated, facts: Sequence[Stated], begins: dict[str, _Stretch | None], at: datetime
) -> Iterator[Closing]:
    """Yield the closing of a plan by another plan that was made before its day came."""
    mine = begins[one.fact.uuid]
    if mine is None or mine.start <= one.last.order.at:
        return
    for other in facts:
        theirs = begins[other.fact.uuid]
        said = other.first
        if other.fact.object == one.fact.object or theirs is None:
            continue
        if one.last.order < said.order and said.order.at < min(mine.start, theirs.start):
            yield _closing(one, mine.start, "superseded", said.turn, at, other.fact.uuid)


def _overtaken(
    one: Stated,
    present: Sequence[Stated],
    earlier: set[str],
    begins: dict[str, _Stretch | None],
    at: datetime,
) -> Iterator[Closing]:
    """Yield the closings between what was told late and the rest: a value ends where the next one began."""
    start = one.fact.valid_at
    if start is None:
        return
    for other in present:
        other_start = other.fact.valid_at
        if other.fact.object == one.fact.object or other_start is None or other_start <= start:
            continue
        is_between = other.fact.uuid in earlier and begins.get(one.fact.uuid) is not None
        if one.fact.uuid in earlier or is_between:
            yield _closing(one, other_start, "superseded", other.first.turn, at, other.fact.uuid)


def _endings_of(
    one: Stated, endings: Sequence[SaidEnding], relation: RelationRule | None, at: datetime
) -> Iterator[Closing]:
    for said in endings:
        ending = said.ending
        stretch = None
        order_at = said.order.at
        if ending.ended_at is not None:
            stretch = _Stretch(ending.ended_at, ending.ended_before or interval(ending.ended_at)[1])
            order_at = max(order_at, stretch.start)
        is_later = one.last.order[:2] < (order_at, said.order.seq)
        if is_later and one.last.turn != ending.turn and is_about(ending, one.fact, relation):
            moment = _moment(one, stretch, said.order.at)
            yield _closing(one, moment, "ended", ending.turn, at)


def _moment(one: Stated, stretch: _Stretch | None, said_at: datetime) -> datetime:
    """Return when a value ended: within the stretch that is named for it, and after it was last stated."""
    if stretch is None:
        return said_at
    last_held = one.last.order.at
    latest = min(stretch.end, said_at)
    if stretch.start <= last_held < latest:
        return min(coarse(last_held.date() + _DAY), latest)
    return stretch.start


def _closing(
    one: Stated, moment: datetime, cause: ClosingCause, turn: str, at: datetime, by_fact: str = ""
) -> Closing:
    since = one.fact.valid_at
    end = moment if since is None else max(moment, since)
    return Closing(one.fact.uuid, by_fact, turn, cause, end, at, one.own_end)
