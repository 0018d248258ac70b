"""*rules* extraction: what a person's sentence says plainly, as facts; offline, deterministic, silent when in doubt.

A fact's text is the sentence, and a date in it its ``valid_at``, read against the turn's own time.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import cache
from itertools import islice

from pps.core.spans import Span, months_on
from pps.core.time_reading import read_times
from pps.core.values import FactDraft, NodeDraft, Turn
from pps.ingest import phrasing as said
from pps.ingest.relations import KIN, RELATIONS, replacing
from pps.ingest.sentences import Sentence, reported, sentences, unsure

USER = "User"
"""The node that "I" stands for where nobody is named as the speaker; "My name is Nadia" gives it an alias."""

_ROLE = "user"
_DAY = timedelta(days=1)
_OVER = re.compile(r"\b(?:last|ago|past|yesterday|\d{4})\b")
_MOST = 64
"""Statements of one text that are taken: reading the dates of more would hold others up."""


@dataclass(frozen=True, slots=True)
class Found:
    """What the rules found in one turn."""

    nodes: tuple[NodeDraft, ...] = ()
    facts: tuple[FactDraft, ...] = ()


@dataclass(frozen=True, slots=True)
class _Triple:
    """What a clause says; ``instead`` is what it says no more, ``kind`` that of the object where it is known."""

    subject: str
    relation: str
    object: str
    instead: str = ""
    kind: str = ""


_Reading = Callable[[re.Match[str], str, Sentence], Iterator[_Triple]]


def extract(turn: Turn) -> Found:
    """Return the nodes and facts that a turn's words state.

    Only what people say is read: turns of role ``user``. "I" is the turn's actor, else ``USER``; a document's
    "I" is nobody that is known, and gives nothing.
    """
    if turn.role != _ROLE or not said.may_state(turn.content):
        return Found()
    speaker = "" if turn.chunk else turn.actor or USER
    nodes: dict[str, NodeDraft] = {}
    facts: dict[tuple[str, str, str], FactDraft] = {}
    stated = ((*one, sentence) for sentence in sentences(turn.content) for one in _stated(sentence, speaker))
    for triple, clause, sentence in islice(stated, _MOST):
        fact = _fact(triple, sentence, clause, turn.occurred_at)
        if fact is not None and facts.setdefault((fact.subject, fact.relation, fact.object), fact) is fact:
            for node in _nodes(triple):
                known = nodes.setdefault(node.name, node)
                nodes[node.name] = replace(known, aliases=tuple(dict.fromkeys((*known.aliases, *node.aliases))))
    return Found(tuple(nodes.values()), tuple(facts.values()))


def _stated(sentence: Sentence, speaker: str) -> Iterator[tuple[_Triple, str]]:
    if speaker and (order := said.ORDER.match(sentence.plain)):
        what = said.PLEASE.sub("", order["what"]).rstrip(" .!")
        if len(what.split()) <= said.MOST_WORDS and not reported(what.partition(" ")[2]):
            yield _Triple(speaker, order["when"].upper(), what), ""
        return
    for clause in sentence.clauses:
        kept, instead = said.without_other(clause)
        doubtful = unsure(kept)
        yield from ((triple, kept) for triple in _kin(kept, speaker, said.KIN[: 1 if doubtful else None]))
        if doubtful:  # "my sister Ana" is said of her whatever else is denied
            continue
        kept = said.KIN_LEAD.sub(r"\1", kept)
        for pattern, read in _patterns() if said.has_subject(kept) else ():
            if (match := pattern.match(kept)) and (who := _who(match, speaker)):
                triples = list(read(match, who, sentence))
                yield from ((replace(one, instead=instead), kept) for one in triples)
                if triples:
                    break


def _who(match: re.Match[str], speaker: str) -> str:
    """Return the subject's name; empty for one that is no name."""
    who = match.groupdict().get("who") or "I"
    if who.lower() in ("i", "we", "my", "our"):
        return speaker
    return "" if said.is_no_name(who) else who


def _kin(clause: str, speaker: str, patterns: Sequence[re.Pattern[str]]) -> Iterator[_Triple]:
    """Yield those that a clause names as somebody's: "my sister Ana", "Ana is Leo's sister"."""
    for pattern in patterns:
        for match in pattern.finditer(clause):
            of, name = match.groupdict().get("of") or speaker, said.bare_name(match["name"])
            if of and not said.is_no_name(name) and not said.is_no_name(of):
                yield _Triple(name, KIN[match["kin"].lower()], of)
    for pattern in said.PETS if speaker else ():
        for match in pattern.finditer(clause):
            for name in said.names_in(match["name"]):
                yield _Triple(speaker, "HAS", name, kind="Animal")


def _one(relation: str) -> _Reading:
    def read(match: re.Match[str], who: str, _: Sentence) -> Iterator[_Triple]:
        if what := said.thing(match["what"]):
            yield _Triple(who, relation, what)

    return read


def _of_thing(relation: str) -> _Reading:
    def read(match: re.Match[str], who: str, _: Sentence) -> Iterator[_Triple]:
        if who and not said.is_vague(match["thing"]):
            yield _Triple(match["thing"], relation, match["what"])

    return read


def _place(relation: str) -> _Reading:
    def read(match: re.Match[str], who: str, _: Sentence) -> Iterator[_Triple]:
        name = said.bare_name(match["what"] or "")
        if place := match.groupdict().get("where") or ("" if said.is_no_name(name) else name):
            yield _Triple(who, relation, place)

    return read


def _several(relation: str) -> _Reading:
    def read(match: re.Match[str], who: str, _: Sentence) -> Iterator[_Triple]:
        yield from (_Triple(who, relation, what) for what in said.things(match["what"]))

    return read


def _date(match: re.Match[str], who: str, _: Sentence) -> Iterator[_Triple]:
    yield _Triple(who, "BORN_ON", match["what"])


def _work(match: re.Match[str], who: str, _: Sentence) -> Iterator[_Triple]:
    job, place = match["job"], match["place"]
    if said.BOASTS.search(job):
        return
    yield _Triple(who, "WORKS_AS", job)
    if place:
        yield _Triple(who, "WORKS_AT", said.bare_name(place))


def _pet(match: re.Match[str], who: str, _: Sentence) -> Iterator[_Triple]:
    kin = KIN.get(match["what"].split()[-1].lower().removesuffix("s"))
    for name in said.names_in(match["name"]):
        animal = said.ANIMAL.search(match["what"]) is not None
        yield _Triple(name, kin, who) if kin else _Triple(who, "HAS", name, kind="Animal" if animal else "")


def _name(match: re.Match[str], who: str, sentence: Sentence) -> Iterator[_Triple]:
    name = match["what"]
    if (sentence.greets or match["sure"] is not None) and not said.is_no_name(name) and not said.PEOPLE.search(name):
        yield _Triple(who, "NAMED", name)


def _plan(match: re.Match[str], who: str, _: Sentence) -> Iterator[_Triple]:
    if what := said.planned(match["what"]):
        yield _Triple(who, "PLANS", what)


def _decided(match: re.Match[str], who: str, _: Sentence) -> Iterator[_Triple]:
    if chosen := said.CHOICE.match(match["what"]):
        if chosen["loose"] is None or re.search(r"[A-Z]", chosen["what"]):
            yield from (_Triple(who, "USES", what) for what in said.things(chosen["what"]))
    elif what := said.decided(match["what"]):
        yield _Triple(who, "DECIDED", what)


_OF_A_THING = "of a thing "
_LISTS = ("LIKES", "DISLIKES", "ALLERGIC_TO", "SPEAKS", "USES")
_READINGS: Mapping[str, _Reading] = {
    "name": _name,
    "BORN_ON": _date,
    "work": _work,
    "named": _pet,
    "plan": _plan,
    "decision": _decided,
    **{relation: _place(relation) for relation in ("LIVES_IN", "FROM", "WORKS_AT", "MARRIED_TO", "KNOWS")},
}


@cache
def _patterns() -> tuple[tuple[re.Pattern[str], _Reading], ...]:
    """Return every pattern with what reads it; the first that finds something in a clause has it."""
    return tuple((re.compile(pattern), _reading(name)) for name, pattern in said.STATEMENTS)


def _reading(name: str) -> _Reading:
    if name.startswith(_OF_A_THING):
        return _of_thing(name.removeprefix(_OF_A_THING))
    return _READINGS.get(name) or (_several(name) if name in _LISTS else _one(name))


def _fact(triple: _Triple, sentence: Sentence, clause: str, at: datetime) -> FactDraft | None:
    """Return the fact of a triple; None for a plan without a day to come."""
    ahead = triple.relation == "PLANS"
    where = sentence.text if len(sentence.clauses) == 1 else clause
    since = _since(where, at, ahead=ahead) if RELATIONS[triple.relation].dated else None
    if ahead and since is None:
        return None
    instead = (f"{triple.subject} {triple.relation} {triple.instead}",) if triple.instead else ()
    fact = FactDraft(triple.subject, triple.relation, triple.object, sentence.text, since, invalidates=instead)
    return replacing(fact)


def _since(text: str, at: datetime, *, ahead: bool) -> datetime | None:
    """Return the beginning of the first time that a text names: to come, or else not after the text itself."""
    starts = [start for span in read_times(text, at) if (start := _start(span, at, ahead=ahead)) is not None]
    return starts[0] if starts else None


def _start(span: Span, at: datetime, *, ahead: bool) -> datetime | None:
    start, today = span.start, at.replace(hour=0, minute=0, second=0, microsecond=0)
    if start is None or not ahead:
        return start if start is None or start <= at else None
    if start < today and not _OVER.search(span.text):  # "on Friday" is the next one
        start = start + 7 * _DAY if span.grain == "day" and not re.search(r"\d", span.text) else months_on(start, 12)
    return start if start >= today else None


def _nodes(triple: _Triple) -> Iterator[NodeDraft]:
    ends = RELATIONS[triple.relation]
    alias = (triple.object,) if triple.relation == "NAMED" else ()
    yield NodeDraft(triple.subject, ends.subject, aliases=alias)
    if not alias:
        yield NodeDraft(triple.object, triple.kind or ends.object)
