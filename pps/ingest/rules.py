"""*rules* extraction: what a person's sentences plainly state and end; silent when in doubt.

Offline and deterministic.

A fact's text is the sentence, and a date in it its ``valid_at``, read against the turn's own wall
clock. What the sentences may say is data: ``rule_families``. All phrasings are looked for at once
(an RE2 set), in time linear in the clause.
"""

from __future__ import annotations

import importlib
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta, tzinfo
from functools import cache
from itertools import product
from typing import Any, Literal, Protocol, cast

from pps.core.text import fold
from pps.core.time import CoarseTime, Span, coarse, has_begun, months_on, wall
from pps.core.time_reading import read_times
from pps.core.values import (
    CorrectionDraft,
    EndingDraft,
    FactDraft,
    NodeDraft,
    Turn,
    local_time,
)
from pps.ingest import vocabulary as words
from pps.ingest.relations import KIN, relation_made
from pps.ingest.rule_families import FAMILIES, SLOTS, Phrasing
from pps.ingest.sentences import Clause, Sentence, is_reported, read_sentences

USER = "User"
"""The node of "I" where no speaker is named; "My name is Nadia" gives it an alias."""

MOST_STATEMENTS = 64
"""Statements of one text that are taken: reading the dates of more would hold others up."""

_SPEAKERS_ROLE = "user"
_DAY = timedelta(days=1)
_IS_OVER = re.compile(r"\b(?:last|ago|past|yesterday|\d{4})\b")


@dataclass(frozen=True, slots=True)
class Found:
    """What the rules found in one turn; ``corrections`` put right what was said before it."""

    nodes: tuple[NodeDraft, ...] = ()
    facts: tuple[FactDraft, ...] = ()
    endings: tuple[EndingDraft, ...] = ()
    corrections: tuple[CorrectionDraft, ...] = ()


@dataclass(frozen=True, slots=True)
class _Triple:
    """What a clause states or ends; an empty end of an ending is any node.

    Attributes:
        relations: One of a statement, those that end of an ending.
        object_kind: Kind of the object's node where the words tell it.
    """

    subject: str
    relations: tuple[str, ...]
    object: str
    object_kind: str = ""


@dataclass(frozen=True, slots=True)
class _Reading:
    """What a clause gives: the facts that it states, the facts that it ends."""

    states: tuple[_Triple, ...] = ()
    ends: tuple[_Triple, ...] = ()

    def __add__(self, other: _Reading) -> _Reading:
        return _Reading((*self.states, *other.states), (*self.ends, *other.ends))


@dataclass(slots=True)
class _Gathered:
    """What was read of a turn so far, each thing once."""

    nodes: dict[str, NodeDraft] = field(default_factory=dict[str, NodeDraft])
    facts: dict[tuple[str, str, str], FactDraft] = field(
        default_factory=dict[tuple[str, str, str], FactDraft]
    )
    endings: dict[tuple[str, tuple[str, ...], str], EndingDraft] = field(
        default_factory=dict[tuple[str, tuple[str, ...], str], EndingDraft]
    )
    corrections: list[CorrectionDraft] = field(default_factory=list[CorrectionDraft])

    def add_fact(self, fact: FactDraft, object_kind: str) -> None:
        key = fact.subject, fact.relation, fact.object
        if key in self.facts:
            return
        self.facts[key] = fact
        for node in _nodes_of(fact, object_kind):
            known = self.nodes.setdefault(node.name, node)
            aliases = tuple(dict.fromkeys((*known.aliases, *node.aliases)))
            self.nodes[node.name] = replace(known, aliases=aliases)

    def correct(self, correction: CorrectionDraft) -> bool:
        """Put right the fact of this turn that a correction means; tell whether there was one."""
        for key, fact in reversed(self.facts.items()):
            may_be_meant = not correction.relations or fact.relation in correction.relations
            is_wrong = not correction.instead or fold(correction.instead) == fold(fact.object)
            if may_be_meant and is_wrong and fact.object != correction.object:
                self.facts = {
                    kept: replace(
                        fact, object=correction.object, text=f"{fact.text} {correction.text}"
                    )
                    if kept == key
                    else other
                    for kept, other in self.facts.items()
                }
                kind = self.nodes[fact.object].kind if fact.object in self.nodes else ""
                self.nodes.pop(fact.object, None)
                self.nodes.setdefault(
                    correction.object, NodeDraft(correction.object, kind or "Thing")
                )
                return True
        return False

    def found(self) -> Found:
        return Found(
            tuple(self.nodes.values()),
            tuple(self.facts.values()),
            tuple(self.endings.values()),
            tuple(self.corrections),
        )


def extract(turn: Turn, zone: tzinfo = UTC) -> Found:
    """Return what a turn's words state, end and put right.

    Its dates are those of the turn's own offset, else of ``zone``.

    Only what people say is read: turns of role ``user``. "I" is the turn's actor, else ``USER``; a
    document's "I" is nobody that is known, and gives nothing.
    """
    if turn.role != _SPEAKERS_ROLE or not _may_state(turn.content):
        return Found()
    speaker = "" if turn.chunk else turn.actor or USER
    at = local_time(turn, zone)
    gathered = _Gathered()
    left = MOST_STATEMENTS
    for sentence in read_sentences(turn.content):
        if speaker and (correction := _correction(sentence)):
            if not gathered.correct(correction):
                gathered.corrections.append(correction)
            continue
        for reading, clause in _readings(sentence, speaker):
            left -= len(reading.states) + len(reading.ends)
            if left < 0:
                return gathered.found()
            _gather(gathered, reading, sentence, clause, at)
    return gathered.found()


def _gather(
    gathered: _Gathered, reading: _Reading, sentence: Sentence, clause: str, at: datetime
) -> None:
    dated = sentence.text if sentence.whole else clause
    facts = [
        (fact, triple.object_kind)
        for triple in reading.states
        if (fact := _fact(triple, _text_of(triple, reading, sentence), dated, at)) is not None
    ]
    if reading.states and not facts:
        return  # what says nothing ends nothing
    for fact, object_kind in facts:
        gathered.add_fact(fact, object_kind)
    for triple in reading.ends:
        since, before = _ended(dated, at)
        ending = EndingDraft(
            triple.subject, triple.relations, triple.object, sentence.text, since, before
        )
        gathered.endings.setdefault((triple.subject, triple.relations, triple.object), ending)


def _text_of(triple: _Triple, reading: _Reading, sentence: Sentence) -> str:
    """Return the words of a fact: its sentence, an occupation without the employer.

    "I'm an analyst at Tesco" would go on to name Tesco after the employer has changed.
    """
    if triple.relations != ("WORKS_AS",):
        return sentence.text
    text = sentence.text
    for other in reading.states:
        if other.relations == ("WORKS_AT",):
            employer = rf" (?:at|for|with) (?:the )?{re.escape(other.object)}(?= |[.,!]|$)"
            text = re.sub(employer, "", text, count=1)
    return text


def _readings(sentence: Sentence, speaker: str) -> Iterator[tuple[_Reading, str]]:
    """Yield what a sentence says, clause by clause."""
    if speaker and (gone := _NO_ORDER_ANY_MORE.match(sentence.led_off)):
        ended = _Triple(speaker, ("ALWAYS",), gone["what"].rstrip(" .!"))
        yield _Reading((), (ended,)), ""
        return
    if speaker and (order := _ORDER.match(sentence.led_off)):
        what = _PLEASE.sub("", order["what"]).rstrip(" .!")
        if len(what.split()) <= words.MOST_WORDS and not is_reported(what.partition(" ")[2]):
            when = order["when"].upper()
            opposite = "NEVER" if when == "ALWAYS" else "ALWAYS"
            yield (
                _Reading(
                    (_Triple(speaker, (when,), what),), (_Triple(speaker, (opposite,), what),)
                ),
                "",
            )
        return
    for clause in sentence.clauses:
        yield _read_clause(clause, sentence, speaker), clause.text


def _read_clause(clause: Clause, sentence: Sentence, speaker: str) -> _Reading:
    kept, instead = _without_alternative(clause)
    mood = _mood_of(kept, clause)
    reading = _people(kept, speaker, only_in_passing=mood != "stated")
    if mood == "guessed":
        return reading
    name = _name(kept, speaker, sentence)
    if name is not None:
        return reading + _Reading((name,))
    if mood == "stated":
        named = _named_ones(kept, speaker)
        if named.states:
            return reading + named
    subject_first = _KIN_LEAD.sub(r"\1", kept)
    said = _say(subject_first.rstrip(" .!"), speaker, mood)
    if said is None:
        said = _Reading()
    elif said.ends and not said.states:  # "our cat Miso died" does not say that there is a cat
        reading = _Reading()
    if instead:
        states = (*reading.states, *said.states)[-1:]
        rejected = tuple(_Triple(one.subject, one.relations, instead) for one in states)
        said = replace(said, ends=(*said.ends, *rejected))
    return reading + said


# Phrasings: all of them are one RE2 set, each with its own pattern for the slots


class _Pattern(Protocol):
    """What is used of a compiled RE2 pattern."""

    def match(self, text: str, /) -> re.Match[str] | None: ...


@dataclass(frozen=True, slots=True)
class _Phrasings:
    """Every phrasing in the order of trial, and the set that tells which of them may match.

    Attributes:
        phrasings: Of each family those that change, then those that close, then those that open.
        closing: Numbers of those that close.
    """

    phrasings: tuple[Phrasing, ...]
    closing: frozenset[int]
    candidates: Any

    def matching(self, clause: str, *, only_closing: bool) -> Iterator[Phrasing]:
        for number in sorted(self.candidates.Match(clause) or ()):
            if not only_closing or number in self.closing:
                yield self.phrasings[number]


_RE2_WORD = r"\p{Lu}[\pL\pM\pN_-]+"
_RE2_PERSON = rf"{_RE2_WORD}(?: {_RE2_WORD}){{0,2}}"
_RE2_KIN = "|".join(sorted(KIN, key=len, reverse=True))
_RELATIVES = f"(?:{_RE2_KIN}|parents|family|kids|children|grandparents|in-laws)"
_WHO = (
    rf"(?P<who>I|[Ww]e|(?:[Mm]y|[Oo]ur) (?:(?:older|younger|little|big|elder|twin|best|new|oldest"
    rf"|youngest) )?{_RELATIVES}"
    rf"|Mum|Dad|Mom|Grandma|Grandpa|{_RE2_PERSON})"
)
_ME = "(?P<who>I|[Ww]e)"
_SET_BYTES = 64 * 1024 * 1024
"""Most memory that RE2 may take for the set; it takes about a tenth of it."""
_SLOT = re.compile(r"(?<!\?P)<(\w+)>")


@cache
def _phrasings() -> _Phrasings:
    re2 = cast("Any", importlib.import_module("re2"))
    options = re2.Options()
    options.max_mem = _SET_BYTES
    candidates = re2.Set.FullMatchSet(options)
    phrasings: list[Phrasing] = []
    closing: set[int] = set()
    for family in FAMILIES:
        phrasings += family.changes
        closing.update(range(len(phrasings), len(phrasings) + len(family.closes)))
        phrasings += [*family.closes, *family.opens]
    for phrasing in phrasings:
        candidates.Add(_SLOT.sub(".+?", phrasing.words))
    candidates.Compile()
    return _Phrasings(tuple(phrasings), frozenset(closing), candidates)


@cache
def _pattern(pattern_words: str) -> _Pattern:
    """Return the pattern of a phrasing, its slots as groups; compiled on first need."""
    re2 = cast("Any", importlib.import_module("re2"))
    source = _SLOT.sub(_slot_pattern, pattern_words)
    return cast("_Pattern", re2.compile(f"^(?:{source})$"))


def _slot_pattern(slot: re.Match[str]) -> str:
    if slot[1] == "who":
        return _WHO
    return _ME if slot[1] == "me" else f"(?P<{slot[1]}>.+?)"


def _say(clause: str, speaker: str, mood: Literal["stated", "denied"]) -> _Reading | None:
    """Return what the first phrasing says whose slots all hold values; None when there is none."""
    for phrasing in _phrasings().matching(clause, only_closing=mood == "denied"):
        match = _pattern(phrasing.words).match(clause)
        if match is not None and _speaks_of_many(match.groupdict().get("who"), clause):
            continue
        reading = _fill(phrasing, match.groupdict(), speaker) if match else None
        if reading is not None:
            return reading
    return None


_OF_MANY = re.compile(
    r" (?:like|love|enjoy|hate|dislike|detest|prefer|live|work|study|speak|use|have|own|drive"
    r"|wear|come|take|do)\b"
)


def _speaks_of_many(who: str | None, clause: str) -> bool:
    """Tell whether the verb after a name is not of one person: "Artists like Monet"."""
    if not who or who in ("I", "We", "we") or who.startswith(("My ", "Our ", "my ", "our ")):
        return False
    return clause.startswith(who) and _OF_MANY.match(clause, len(who)) is not None


def _fill(phrasing: Phrasing, groups: Mapping[str, str | None], speaker: str) -> _Reading | None:
    """Return what a phrasing says; None when a slot holds nothing of its type."""
    values: dict[str, tuple[str, ...]] = {"me": (speaker,), "*": ("",)}
    for slot, text in groups.items():
        if slot == "me":
            continue
        if text is None:
            values[slot] = ()
            continue
        if slot == "who":
            value = _resolve(text, speaker)
        else:
            value = SLOTS[slot.removeprefix("old_").removeprefix("gone_")](text.strip())
        values[slot] = (value,) if isinstance(value, str) and value else tuple(value or ())
        if not values[slot]:
            return None
    if not speaker and not (values.get("who") or values.get("living")):
        return None  # things of a document are nobody's
    if "event" in values:
        values["plan"] = tuple(_plans_of(values["event"][0]))
    states = tuple(_expand(phrasing.states, values, speaker))
    ends = [*_expand(phrasing.ends, values, speaker)]
    if phrasing.rivals:
        ends += _rivals(values[phrasing.rivals][0], values.get("who", (speaker,))[0] or speaker)
    if any(not one.subject and not one.object for one in ends):
        return None
    return _Reading(states, tuple(ends))


def _expand(
    templates: Sequence[str], values: Mapping[str, tuple[str, ...]], speaker: str
) -> Iterator[_Triple]:
    for template in templates:
        subject_slot, relation, object_slot = template.split()
        if "_topic" in relation:
            topic = values["topic"][0].upper().replace(" ", "_")
            relation = relation.replace("topic", topic)
        relations = () if relation == "*" else tuple(relation.split(","))
        for subject, object_ in product(values[subject_slot], values[object_slot]):
            subject = _owned_by(subject, speaker)
            yield _Triple(subject, relations, object_)
            if object_slot.removeprefix("old_").removeprefix("gone_") in _CALLED_BY_OWNER:
                yield _Triple(subject, relations, f"{subject}'s {object_}")


_CALLED_BY_OWNER = ("given_away", "stolen")
"""Slots with a possession, which its owner may call by a shorter name than it was told by."""


def _owned_by(name: str, speaker: str) -> str:
    """Return a thing of the speaker's with the speaker's name: "my budget" is "Mira's budget"."""
    return f"{speaker}'s {name.removeprefix(words.MINE)}" if name.startswith(words.MINE) else name


def _plans_of(event: str) -> Iterator[str]:
    """Yield what a plan is called that an event is: "flight to Oslo" is also "fly to Oslo"."""
    bare = event.removeprefix(words.MINE)
    yield bare
    journey = _JOURNEY.fullmatch(bare)
    if journey:
        yield from words.read_trip(journey["place"])


_JOURNEY = re.compile(
    r"(?:flight|trip|journey|holiday|vacation|visit|drive|train|ferry) (?:to|in) (?P<place>.+)"
)


def _rivals(name: str, user: str) -> Iterator[_Triple]:
    """Yield the ends of the use of the other products of a product's group."""
    known = words.products()
    group = known.group_of.get(name.lower(), "")
    for rival in known.rivals.get(group, ()):
        if rival.lower() != name.lower():
            yield _Triple(user, ("USES",), rival)


def _resolve(who: str, speaker: str) -> str:
    """Return the name of the subject of a clause; empty for what is nobody's name."""
    lowered = who.lower()
    if lowered in ("i", "we", "my", "our"):
        return speaker
    if lowered.startswith(("my ", "our ")) or lowered in _PARENTS:
        relative = lowered.split(" ", 1)[-1]
        return f"{speaker}'s {relative}" if speaker else ""
    return who if words.is_person(who) else ""


_PARENTS = frozenset(("mum", "dad", "mom", "grandma", "grandpa"))


# People and animals that are named as somebody's, names, orders, corrections

_OF_KIN = "|".join(sorted(KIN, key=len, reverse=True))
_KIN_LEAD = re.compile(
    rf"^[Mm]y (?:[a-z-]+ )?(?:{_OF_KIN}),? (?={words.CAPITAL})({words.PERSON})?", re.ASCII
)
_MY_KIN = (
    rf"\b[Mm]y (?:(?:best|older|younger|little|big|elder|twin|new|old|dear|late) "
    rf")?(?P<kin>{_OF_KIN})"
)
_KIN_IN_PASSING = re.compile(rf"{_MY_KIN},? (?P<name>{words.PERSON})")
_KIN_STATED = tuple(
    re.compile(pattern)
    for pattern in (
        rf"{_MY_KIN}(?:'s name)? is (?:now )?(?:called |named "
        rf")?(?P<name>{words.TITLED_PERSON})(?=[.,!]|$| now\b)",
        rf"^(?:I|[Ww]e) have (?:got )?an? new (?P<kin>{_OF_KIN})[,:] "
        rf"(?P<name>{words.TITLED_PERSON})(?=[.,!]|$)",
        rf"^(?:[Tt]he|[Oo]ur) (?:new )?(?P<kin>{_OF_KIN})(?:'s name)? is (?:now )?(?:called "
        rf"|named )?"
        rf"(?P<name>{words.TITLED_PERSON})(?=[.,!]|$| now\b)",
        rf"\b(?P<name>{words.PERSON}), my (?:[a-z]+ )?(?P<kin>{_OF_KIN})(?=[.,!]|$)",
        rf"^(?P<name>{words.TITLED_PERSON}) is (?:now )?my (?:[a-z]+ )?(?P<kin>{_OF_KIN})\b(?!')",
        rf"^(?P<name>{words.PERSON}) is (?P<of>{words.PERSON})'s (?:[a-z]+ "
        rf")?(?P<kin>{_OF_KIN})\b(?!')",
    )
)
_REPLACED_BY = re.compile(
    rf"\b(?:my|our|the|an?) new (?:{_OF_KIN})\b|\bis now\b|\bnow[.!]?$", re.IGNORECASE
)
_MY_PET = rf"\b(?:[Mm]y|[Oo]ur) (?:[a-z]+ )?{words.ANIMAL}s?"
_PETS = tuple(
    re.compile(pattern)
    for pattern in (
        rf"{_MY_PET},? (?P<name>{words.PERSON})",
        rf"{_MY_PET}(?:'s name)? (?:is|are)(?: called| named)? (?P<name>{words.PERSON}(?:,? "
        rf"(?:and )?{words.PERSON})*)"
        r"(?=[.,!]|$| now\b)",
        rf"^[Tt]he {words.ANIMAL}(?:'s name is| is called) (?P<name>{words.PERSON})(?=[.,!]|$| "
        rf"now\b)",
    )
)
_A = r"(?:an?|the|my|our|some|two|three|four|\d+)"
_NAMED_ONE = tuple(
    re.compile(pattern)
    for pattern in (
        rf"^(?P<who>I|[Ww]e|{words.PERSON}) (?:have(?: got)?|has|own|adopted|got) (?:{_A} "
        rf")?(?P<what>(?:[\w-]+ ){{0,3}}[\w-]+)"
        rf" (?:named|called) (?P<name>{words.PERSON}(?:,? (?:and )?{words.PERSON})*)",
        rf"^(?P<who>I|[Ww]e|{words.PERSON}) (?:have(?: got)?|has|own|adopted|got) {_A} "
        rf"(?P<what>(?:[\w-]+ ){{0,2}}{words.ANIMAL}s?)"
        rf"[,:] (?P<name>{words.PERSON}(?:,? (?:and )?{words.PERSON})*)",
    )
)


def _people(clause: str, speaker: str, *, only_in_passing: bool) -> _Reading:
    """Return whom a clause names as somebody's: "my sister Ana", "my dog Rex"."""
    states: list[_Triple] = []
    ends: list[_Triple] = []
    for pattern in (_KIN_IN_PASSING, *(() if only_in_passing else _KIN_STATED)):
        for match in pattern.finditer(clause):
            of, name = match.groupdict().get("of") or speaker, words.bare_name(match["name"])
            if not of or words.is_no_name(name) or words.is_no_name(of):
                continue
            relation = KIN[match["kin"].lower()]
            states.append(_Triple(name, (relation,), of))
            if pattern is not _KIN_IN_PASSING and _REPLACED_BY.search(clause):
                ends.append(_Triple("", (relation,), of))
    for pattern in _PETS if speaker else ():
        for match in pattern.finditer(clause):
            names = words.read_people(match["name"])
            states += [_Triple(speaker, ("HAS",), name, "Animal") for name in names]
    return _Reading(tuple(dict.fromkeys(states)), tuple(ends))


def _named_ones(clause: str, speaker: str) -> _Reading:
    """Return whom somebody has by name: "a sister named Rosa", "two dogs, Pixel and Byte"."""
    for pattern in _NAMED_ONE:
        match = pattern.match(clause)
        who = _resolve(match["who"], speaker) if match else ""
        if match is None or not who:
            continue
        relation = KIN.get(match["what"].split()[-1].lower().removesuffix("s"))
        kind = "Animal" if words.is_animal(match["what"]) else ""
        names = words.read_people(match["name"])
        if relation:
            return _Reading(tuple(_Triple(name, (relation,), who) for name in names))
        return _Reading(tuple(_Triple(who, ("HAS",), name, kind) for name in names))
    return _Reading()


_TITLES = frozenset(
    [
        "Doctor",
        "Sir",
        "Madam",
        "Boss",
        "Captain",
        "Chef",
        "Professor",
        "Later",
        "Maybe",
        "Crazy",
        "Paranoid",
        "Lazy",
    ]
)
_NAME_SAID = tuple(
    re.compile(pattern)
    for pattern in (
        rf"^[Mm]y (?:full )?name is (?P<name>{words.PERSON}){words.VALUE_END}",
        rf"^(?:[Jj]ust |[Ee]veryone calls |Please |[Yy]ou can )?(?:[Cc]all )?me "
        rf"(?P<name>{words.CAPITAL}\w+)[.!]?$",
        rf"^I am (?P<name>{words.PERSON})(?:,? nice to|,? your |,? by the way|,? pleased|, the "
        rf"(?:new )?[a-z]|,? and I am new"
        r"|, and I am (?:an?|the) |, an? [a-z]).*",
    )
)
_NAME_AFTER_GREETING = re.compile(
    rf"^I am (?P<name>{words.PERSON})(?:[.!]?$|,.*| and\b.*| from\b.*)"
)
_FULL_NAME = re.compile(
    rf"^I am (?P<name>{words.CAPITAL}[\w'-]+ (?:(?:van|von|de|da|der) "
    rf")?{words.CAPITAL}[\w'-]+)[.!]?$"
)
_NO_PERSONS_NAME = re.compile(
    r"(?:ian|ish|ese|ean|Dutch|French|Greek|German|American|Done|Sorry|Back|Jewish|Muslim|Swiss"
    r"|Czech|Thai)$"
)


def _name(clause: str, speaker: str, sentence: Sentence) -> _Triple | None:
    """Return the speaker's name; "I am Nadia" is one after a greeting or with a surname."""
    if not speaker:
        return None
    patterns = (*_NAME_SAID, _FULL_NAME, *((_NAME_AFTER_GREETING,) if sentence.greets else ()))
    for pattern in patterns:
        match = pattern.match(clause)
        if match is None:
            continue
        name = match["name"]
        known = words.is_product(name) or name.lower() in words.places()
        if name in _TITLES:
            return None
        if all(words.is_person(part) for part in name.split()) and not (
            known or _NO_PERSONS_NAME.search(name)
        ):
            return _Triple(speaker, ("NAMED",), name)
    return None


_VERB = (
    r"(?:add|address|answer|apply|ask|attach|avoid|back up|begin|book|bring|buy|call|check|cite"
    r"|close|commit|confirm"
    r"|convert|create|delete|deploy|describe|document|double-check|drink|edit|eat|email|end"
    r"|explain|export|feed|follow"
    r"|force|format|generate|give|handle|hardcode|import|include|install|invoice|keep|leave|let"
    r"|link|list|lock|log|make"
    r"|mention|merge|modify|name|notify|number|offer|open|order|pay|pin|prefer|prefix|print|push"
    r"|put|quote|read|rebase"
    r"|recommend|refer|remove|rename|reply|respond|review|round|run|save|schedule|send|set|share"
    r"|show|sign|skip|squash"
    r"|start|store|suggest|summari[sz]e|take|tell|test|touch|translate|trust|turn|update|use"
    r"|validate|verify|wear|wrap"
    r"|write)"
)
_NO_ORDER_ANY_MORE = re.compile(
    rf"^(?:you )?(?:do not|no longer) (?:have|need) to (?:always )?(?P<what>{_VERB}\b .+?)"
    r"(?: any ?more| any longer)?[.!]*$",
    re.IGNORECASE,
)
_ORDER = re.compile(
    rf"^(?:please )?(?P<when>always|never) (?!give up|say never|open (?:on|from|until|at"
    rf"|24))(?P<what>(?:force-)?{_VERB}\b .+)",
    re.IGNORECASE,
)
_PLEASE = re.compile(r",?\s*(?:please|ok|okay|thanks|thank you)[.!]*$", re.IGNORECASE)

_CORRECTS = re.compile(
    r"^(?:(?P<cue>(?:(?:actually|no|nope|sorry|oops|wait|hmm|hm|correction|my mistake|scratch "
    r"that)[,.!:;]*\s+)+)"
    r"(?P<says>(?:it is|it's|that's|that is|I meant|I mean|make that|make it|that should be)\s+)?"
    r"|(?P<meant>I meant)\s+)"
    r"(?:on |in |at )?(?P<right>[^,.;!]{1,60}?)(?:,? (?:and )?not (?:on |in |at "
    r")?(?P<wrong>[^,.;!]{1,60}))?[.!]*$",
    re.IGNORECASE,
)
_DAY_RELATIONS = ("HAPPENS_ON", "BORN_ON", "DUE_ON")
_PLACE_RELATIONS = ("LIVES_IN", "FROM")
_PRODUCT_RELATIONS = ("USES",)
_NAME_RELATIONS = (
    "WORKS_AT",
    "MARRIED_TO",
    "IS_CALLED",
    "HAS",
    "NAMED",
    *sorted(set(KIN.values())),
)
_AMOUNT_RELATIONS = ("IS", "COSTS", "HAS_BUDGET")


def _read_whole_product(text: str) -> str:
    return text if words.is_product(text) else ""


def _read_whole_name(text: str) -> str:
    name = words.read_name(text)
    return name if name == text and words.is_person(name) else ""


_READ_IF_PLAIN = (
    (_read_whole_product, _PRODUCT_RELATIONS),
    (_read_whole_name, _NAME_RELATIONS),
)
"""What counts only after "it's" or "I meant": "Oh no, Jon!" corrects nothing."""


def _correction(sentence: Sentence) -> CorrectionDraft | None:
    """Return what puts right what was said before, as in "Actually no, it's Turin"."""
    match = _CORRECTS.match(sentence.text)
    if match is None:
        return None
    right = match["right"].strip()
    is_plain = bool(match["says"] or match["meant"])
    for read, relations in (
        (words.read_day, _DAY_RELATIONS),
        (words.read_clock_time, ("STARTS_AT",)),
        (words.read_room, ("TAKES_PLACE_IN",)),
        (words.read_known_place, _PLACE_RELATIONS),
        (words.read_amount, _AMOUNT_RELATIONS),
        (words.read_phone_number, ("HAS_PHONE_NUMBER",)),
        *(_READ_IF_PLAIN if is_plain else ()),
    ):
        value = read(right)
        if value and len(value) >= len(right) - 8:
            wrong = (match["wrong"] or "").strip()
            return CorrectionDraft(value, sentence.text, wrong, relations)
    return None


_ALTERNATIVE = re.compile(
    r"^(.+?)(?:, (?:and )?not|,? instead of|,? rather than|(?P<over>,? over)) (?:in |on |at |by "
    r"|a |an |the )?(?!(?:far|too|so|very|really|only|even|yet|just|that|like|because|for|to|with"
    r"|in"
    r"|at|on|sure|quite|always)\b)"
    r"(?P<other>[\w.+#-]+(?:,\d+)*(?: (?!for\b|any\b)[\w.+#-]+){0,2})(?:,? for [\w' -]+)?[.!]*$"
)
_CHOOSES = re.compile(r"\b(?:prefers?|chose|choose|picked|use|went with|go with|like)\b")
_REMARK = re.compile(r"^([^,]+), not (?:far|too|so|very|really|only|even|just|because|that)\b.*$")
_PREFERRED_TO = re.compile(r"^(.+ prefers? .+?) to [\w -]+[.!]*$")
_DENIED = re.compile(
    r"\b(?:can|cannot|not|no|never|nothing|none|neither|nor|hardly|used to|any ?more)\b"
)


def _without_alternative(clause: Clause) -> tuple[str, str]:
    """Return a clause without what it rejects, and that: "use Rust, not Go"."""
    match = _ALTERNATIVE.match(clause.text)
    if match and (match["over"] is None or _CHOOSES.search(match[1])):
        return match[1], match["other"].rstrip(".")
    if match := _REMARK.match(clause.text):
        return match[1], ""
    if match := _PREFERRED_TO.match(clause.text):
        return match[1], ""
    return clause.text, ""


def _mood_of(kept: str, clause: Clause) -> Literal["stated", "denied", "guessed"]:
    """Return the mood of a clause without what it rejects: "use Rust, not Go" is stated."""
    if clause.mood == "denied" and kept != clause.text and not _DENIED.search(kept):
        return "stated"
    return clause.mood


_MAY_STATE = re.compile(
    r"\b(?:i|we|my|our|me|lives?|moved|relocated|from|works?|working|is|are|has|owns?|adopted"
    r"|bought|likes?|loves?|enjoys?"
    r"|hates?|prefers?|speaks?|studies|always|never|drives?|hangs?|stands?|lies?|costs?|amounts?"
    r"|went|goes|rose|fell|died"
    r"|passed|was|were|got|no|sorry|actually|they|the|has|meant|need|knows|renamed|im|i'm)\b",
    re.IGNORECASE,
)


def _may_state(content: str) -> bool:
    return _MAY_STATE.search(content) is not None


# Drafts of what was read


def _fact(triple: _Triple, text: str, dated: str, at: datetime) -> FactDraft | None:
    """Return the fact of a triple; None for a plan without a day to come."""
    relation = triple.relations[0]
    is_plan = relation == "PLANS"
    since = _since(dated, at, ahead=is_plan) if relation_made(relation).dated else None
    if is_plan and since is None:
        return None
    return FactDraft(triple.subject, relation, triple.object, text, since)


def _since(text: str, at: datetime, *, ahead: bool) -> CoarseTime | None:
    """Return the beginning of the first time that a text names, to come or past."""
    starts = [
        start
        for span in read_times(text, at)
        if (start := _start(span, at, ahead=ahead)) is not None
    ]
    return starts[0] if starts else None


def _start(span: Span, at: datetime, *, ahead: bool) -> CoarseTime | None:
    start, today = span.began(), coarse(wall(at).date())
    if start is None or not ahead:
        return start if start is None or has_begun(start, at) else None
    if start < today and not _IS_OVER.search(span.text):  # "on Friday" is the next one
        is_weekday = span.grain == "day" and not re.search(r"\d", span.text)
        following = start + 7 * _DAY if is_weekday else months_on(start, 12)
        start = coarse(following.date(), start.precision)
    return start if start >= today else None


def _ended(text: str, at: datetime) -> tuple[datetime | None, datetime | None]:
    """Return since when something holds no longer, and the end of the stretch that is named."""
    for span in read_times(text, at):
        began = span.began()
        if began is not None and has_begun(began, at):
            return began, span.end
    return None, None


def _nodes_of(fact: FactDraft, object_kind: str) -> Iterator[NodeDraft]:
    ends = relation_made(fact.relation)
    if fact.relation == "NAMED":
        yield NodeDraft(fact.subject, ends.subject, aliases=(fact.object,))
        return
    others = words.other_names(fact.subject) if fact.relation == "HAS_VALUE" else ()
    yield NodeDraft(fact.subject, ends.subject, aliases=others)
    short = words.short_names(fact.object) if fact.relation in ("HAS", "DRIVES") else ()
    aliases = tuple(f"{fact.subject}'s {name}" for name in short)
    yield NodeDraft(fact.object, object_kind or ends.object, aliases=aliases)
