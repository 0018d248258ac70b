"""*rules* extraction: facts that a person's sentences plainly state or end; none when in doubt.

Offline and deterministic.

A fact's text is the sentence; a date in it, read by the turn's own wall clock, is its ``valid_at``.
The phrasings are data: ``rule_families``. All of them are matched at once by an RE2 set, in time
linear in the clause.
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

from pps.core.relation_table import relation_key
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
from pps.ingest.corrections import may_mean, read_correction
from pps.ingest.named_people import (
    KIN_LEAD,
    ClauseReading,
    Triple,
    name_of_speaker,
    named_people,
    owned_by_name,
    subject_named,
)
from pps.ingest.relations import KIN, VALUE_IS_SUBJECT, relation_made
from pps.ingest.rule_families import FAMILIES, SLOTS, Phrasing
from pps.ingest.sentences import Clause, Sentence, is_reported, read_sentences

USER = "User"
"""The node for "I" if the turn has no actor; "My name is Nadia" gives it an alias."""

MOST_STATEMENTS = 64
"""Most statements read in one text: reading the dates of more would delay other turns."""

_SPEAKERS_ROLE = "user"
_DAY = timedelta(days=1)
_FROM_THEN_ON = re.compile(
    r"\b(?:from|starting(?: from| on)?|as (?:of|from)) (?:the )?$", re.IGNORECASE
)
_FROM_WEEKDAY = re.compile(
    r"\b(from|starting(?: from)?|as (?:of|from))(?: next)? "
    r"((?:mon|tues|wednes|thurs|fri|satur|sun)day)\b(?! (?:to|until|till|through)\b)",
    re.IGNORECASE,
)
_IS_OVER = re.compile(r"\b(?:last|ago|past|yesterday|\d{4})\b")


@dataclass(frozen=True, slots=True)
class Found:
    """What the rules found in one turn; ``corrections`` correct facts of earlier turns."""

    nodes: tuple[NodeDraft, ...] = ()
    facts: tuple[FactDraft, ...] = ()
    endings: tuple[EndingDraft, ...] = ()
    corrections: tuple[CorrectionDraft, ...] = ()


@dataclass(slots=True)
class _Gathered:
    """The nodes, facts, endings and corrections read in a turn so far, without duplicates."""

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
        """Correct the fact of this turn that a correction means; False if it means none of them."""
        for key, fact in reversed(self.facts.items()):
            may_be_meant = not correction.relations or may_mean(
                correction.relations, [relation_key(fact.relation)]
            )
            value = fact.subject if fact.relation in VALUE_IS_SUBJECT else fact.object
            is_wrong = not correction.instead or fold(correction.instead) == fold(value)
            if may_be_meant and is_wrong and value != correction.object:
                self._replace_value(key, fact, value, correction)
                return True
        return False

    def _replace_value(
        self,
        key: tuple[str, str, str],
        fact: FactDraft,
        value: str,
        correction: CorrectionDraft,
    ) -> None:
        """Replace the value of a fact of this turn by that of a correction."""
        corrected = replace(fact, text=f"{fact.text} {correction.text}")
        if fact.relation in VALUE_IS_SUBJECT:
            corrected = replace(corrected, subject=correction.object)
        else:
            corrected = replace(corrected, object=correction.object)
        # The corrected fact keeps the place of the wrong one, and its key.
        self.facts[key] = corrected
        kind = self.nodes[value].kind if value in self.nodes else ""
        self.nodes.pop(value, None)
        self.nodes.setdefault(correction.object, NodeDraft(correction.object, kind or "Thing"))

    def result(self) -> Found:
        return Found(
            tuple(self.nodes.values()),
            tuple(self.facts.values()),
            tuple(self.endings.values()),
            tuple(self.corrections),
        )


def extract(turn: Turn, zone: tzinfo = UTC) -> Found:
    """Return what a turn's sentences state, end and correct.

    Dates are read with the turn's own UTC offset, else in ``zone``.

    Only turns of role ``user`` are read. "I" is the turn's actor, else ``USER``; the "I" of a
    document is unknown, so its sentences in the first person yield nothing.
    """
    if turn.role != _SPEAKERS_ROLE or not _MAY_STATE.search(turn.content):
        return Found()
    speaker = "" if turn.chunk else turn.actor or USER
    at = local_time(turn, zone)
    gathered = _Gathered()
    left = MOST_STATEMENTS
    for sentence in read_sentences(turn.content):
        if speaker and (correction := read_correction(sentence)):
            if not gathered.correct(correction):
                gathered.corrections.append(correction)
            continue
        for reading, clause in _readings(sentence, speaker):
            left -= len(reading.states) + len(reading.ends)
            if left < 0:
                return gathered.result()
            _gather(gathered, reading, sentence, clause, at)
    return gathered.result()


def _gather(
    gathered: _Gathered, reading: ClauseReading, sentence: Sentence, clause: str, at: datetime
) -> None:
    dated = sentence.text if sentence.whole else clause
    facts: list[tuple[FactDraft, str]] = []
    for triple in reading.states:
        fact = _fact(triple, _text_of(triple, reading, sentence), dated, at)
        if fact is not None:
            facts.append((fact, triple.object_kind))
    if reading.states and not facts:
        return  # the statement was not taken, so it ends nothing either
    for fact, object_kind in facts:
        gathered.add_fact(fact, object_kind)
    for triple in reading.ends:
        since, before = _end_times(dated, at)
        ending = EndingDraft(
            triple.subject, triple.relations, triple.object, sentence.text, since, before
        )
        gathered.endings.setdefault((triple.subject, triple.relations, triple.object), ending)


def _text_of(triple: Triple, reading: ClauseReading, sentence: Sentence) -> str:
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


def _readings(sentence: Sentence, speaker: str) -> Iterator[tuple[ClauseReading, str]]:
    """Yield the reading of each clause of a sentence, with the clause's words for its dates."""
    if speaker and (gone := _NO_ORDER_ANY_MORE.match(sentence.led_off)):
        ended = Triple(speaker, ("ALWAYS",), gone["what"].rstrip(" .!"))
        yield ClauseReading((), (ended,)), ""
        return
    if speaker and (order := _ORDER.match(sentence.led_off)):
        action = _PLEASE.sub("", order["what"]).rstrip(" .!")
        if len(action.split()) <= words.MOST_WORDS and not is_reported(action.partition(" ")[2]):
            when = order["when"].upper()
            opposite = "NEVER" if when == "ALWAYS" else "ALWAYS"
            stated = Triple(speaker, (when,), action)
            ended = Triple(speaker, (opposite,), action)
            yield ClauseReading((stated,), (ended,)), ""
        return
    for clause in sentence.clauses:
        yield _read_clause(clause, sentence, speaker), clause.dated


def _read_clause(clause: Clause, sentence: Sentence, speaker: str) -> ClauseReading:
    text, rejected = _without_alternative(clause)
    mood = _mood_of(text, clause)
    people = named_people(text, speaker, only_in_passing=mood != "stated")
    if mood == "guessed":
        return people
    name = name_of_speaker(text, speaker, sentence)
    if name is not None:
        return people + ClauseReading((name,))
    if mood == "stated":
        named = owned_by_name(text, speaker)
        if named.states:
            return people + named
    subject_first = KIN_LEAD.sub(r"\1", text)
    reading = _read_phrasing(subject_first.rstrip(" .!"), speaker, mood)
    if reading is None:
        reading = ClauseReading()
    elif reading.ends and not reading.states:  # "our cat Miso died" does not state a cat
        people = ClauseReading()
    if rejected:
        stated = (*people.states, *reading.states)[-1:]
        ends = _ends_of_rejected(text, rejected, stated, speaker)
        reading = replace(reading, ends=(*reading.ends, *ends))
    return people + reading


def _ends_of_rejected(
    text: str, rejected: str, stated: Sequence[Triple], speaker: str
) -> tuple[Triple, ...]:
    """Return what a clause ends by rejecting it: "Bruno, not Rex", "to Malta instead of Crete".

    A journey without a day states no plan, and still ends the plans for the rejected place.
    """
    if speaker and _TRAVELS.match(text):
        return tuple(Triple(speaker, ("PLANS",), trip) for trip in words.read_trip(rejected))
    return tuple(Triple(triple.subject, triple.relations, rejected) for triple in stated)


# Phrasings: all of them are one RE2 set, each with its own pattern for the slots


class _Pattern(Protocol):
    """The part of a compiled RE2 pattern that this module uses."""

    def match(self, text: str, /) -> re.Match[str] | None: ...


@dataclass(frozen=True, slots=True)
class _Phrasings:
    """Every phrasing in the order of trial, and the RE2 set that finds those that may match.

    Attributes:
        phrasings: Family by family: first ``changes``, then ``closes``, then ``opens``.
        closing: Indexes in ``phrasings`` of the ``closes``.
        candidates: RE2 set with the patterns in the same order.
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


def _read_phrasing(
    clause: str, speaker: str, mood: Literal["stated", "denied"]
) -> ClauseReading | None:
    """Return the reading by the first phrasing whose slots all hold values; None for no such."""
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
    """Tell whether the verb after a name is a plural one: "Artists like Monet"."""
    if not who or who in ("I", "We", "we") or who.startswith(("My ", "Our ", "my ", "our ")):
        return False
    return clause.startswith(who) and _OF_MANY.match(clause, len(who)) is not None


def _fill(
    phrasing: Phrasing, groups: Mapping[str, str | None], speaker: str
) -> ClauseReading | None:
    """Return the reading by a phrasing; None when the text in a slot is not of the slot's type."""
    values: dict[str, tuple[str, ...]] = {"me": (speaker,), "*": ("",)}
    for slot, text in groups.items():
        if slot == "me":
            continue
        if text is None:
            values[slot] = ()
            continue
        if slot == "who":
            value = subject_named(text, speaker)
        else:
            value = SLOTS[slot.removeprefix("old_").removeprefix("gone_")](text.strip())
        values[slot] = (value,) if isinstance(value, str) and value else tuple(value or ())
        if not values[slot]:
            return None
    if not speaker and not (values.get("who") or values.get("living")):
        return None  # a document's things have no known owner
    if "event" in values:
        values["plan"] = tuple(_plans_of(values["event"][0]))
    states = tuple(_expand(phrasing.states, values, speaker))
    ends = [*_expand(phrasing.ends, values, speaker)]
    if phrasing.rivals:
        ends += _rivals(values[phrasing.rivals][0], states[0].subject)
    if any(not end.subject and not end.object for end in ends):
        return None
    return ClauseReading(states, tuple(ends))


def _expand(
    templates: Sequence[str], values: Mapping[str, tuple[str, ...]], speaker: str
) -> Iterator[Triple]:
    for template in templates:
        subject_slot, relation, object_slot = template.split()
        if "_topic" in relation:
            topic = values["topic"][0].upper().replace(" ", "_")
            relation = relation.replace("topic", topic)
        relations = () if relation == "*" else tuple(relation.split(","))
        for subject, object_ in product(values[subject_slot], values[object_slot]):
            if subject.startswith(words.MINE):  # "my budget" is "Mira's budget"
                subject = f"{speaker}'s {subject.removeprefix(words.MINE)}"
            yield Triple(subject, relations, object_)
            if object_slot.removeprefix("old_").removeprefix("gone_") in _CALLED_BY_OWNER:
                yield Triple(subject, relations, f"{subject}'s {object_}")


_CALLED_BY_OWNER = ("given_away", "stolen")
"""Slots with a possession, which its owner may call by a shorter name than the known one."""


def _plans_of(event: str) -> Iterator[str]:
    """Yield the names of the plan for an event: "flight to Oslo" is also "fly to Oslo"."""
    bare = event.removeprefix(words.MINE)
    yield bare
    journey = _JOURNEY.fullmatch(bare)
    if journey:
        yield from words.read_trip(journey["place"])


_JOURNEY = re.compile(
    r"(?:flight|trip|journey|holiday|vacation|visit|drive|train|ferry) (?:to|in) (?P<place>.+)"
)


def _rivals(name: str, user: str) -> Iterator[Triple]:
    """Yield the ends of the use of the other products of a product's group."""
    known = words.products()
    group = known.group_of.get(name.lower(), "")
    for rival in known.rivals.get(group, ()):
        if rival.lower() != name.lower():
            yield Triple(user, ("USES",), rival)


# Orders, alternatives, moods

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

_ALTERNATIVE = re.compile(
    r"^(.+?)(?:, (?:and )?not|,? instead of|,? rather than|(?P<over>,? over)) (?:in |on |at |by "
    r"|a |an |the )?(?!(?:far|too|so|very|really|only|even|yet|just|that|like|because|for|to|with"
    r"|in"
    r"|at|on|sure|quite|always)\b)"
    r"(?P<other>[\w.+#-]+(?:,\d+)*(?: (?!for\b|any\b)[\w.+#-]+){0,2})(?:,? for [\w' -]+)?[.!]*$"
)
_CHOOSES = re.compile(r"\b(?:prefers?|chose|choose|picked|use|went with|go with|like)\b")
_REMARK = re.compile(r"^([^,]+), not (?:far|too|so|very|really|only|even|just|because|that)\b.*$")
_PREFERRED_TO = re.compile(r"^(.+ prefers? .+?) to (?P<other>[\w -]+?)[.!]*$")
_NOW_AT_END = re.compile(r" (?:now|these days)$")
_TRAVELS = re.compile(
    r"^(?:I|[Ww]e) (?:am|are|will be)(?: now)? (?:going|flying|travelling|traveling|driving) to "
)
_DENIED = re.compile(
    r"\b(?:can|cannot|not|no|never|nothing|none|neither|nor|hardly|used to|any ?more)\b"
)


def _without_alternative(clause: Clause) -> tuple[str, str]:
    """Split off the alternative that a clause rejects: "use Rust, not Go" → "use Rust", "Go"."""
    match = _ALTERNATIVE.match(clause.text)
    if match and (match["over"] is None or _CHOOSES.search(match[1])):
        return match[1], _NOW_AT_END.sub("", match["other"].rstrip("."))
    match = _REMARK.match(clause.text)
    if match:
        return match[1], ""
    match = _PREFERRED_TO.match(clause.text)
    if match:
        return match[1], _NOW_AT_END.sub("", match["other"])
    return clause.text, ""


def _mood_of(text: str, clause: Clause) -> Literal["stated", "denied", "guessed"]:
    """Return the mood of ``text``, a clause without the alternative it rejects.

    "use Rust, not Go" is stated: only the rejected part denies something.
    """
    if clause.mood == "denied" and text != clause.text and not _DENIED.search(text):
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


# Drafts of the readings


def _fact(triple: Triple, text: str, dated: str, at: datetime) -> FactDraft | None:
    """Return the fact of a triple; None for a plan without a day to come."""
    relation = triple.relations[0]
    is_plan = relation == "PLANS"
    since = _since(dated, at, ahead=is_plan) if relation_made(relation).dated else None
    if is_plan and since is None:
        return None
    return FactDraft(triple.subject, relation, triple.object, text, since)


def _since(text: str, at: datetime, *, ahead: bool) -> CoarseTime | None:
    """Return the beginning of the first time in a text: a future one if ``ahead``, else a past one.

    A beginning that the text puts ahead is future too: "from Monday I work for Norland Rail".
    """
    text = _FROM_WEEKDAY.sub(r"\1 on \2", text)
    for span in read_times(text, at):
        start = _start(span, at, ahead=ahead or _begins_then(span, text))
        if start is not None:
            return start
    return None


def _begins_then(span: Span, text: str) -> bool:
    """Tell whether a text says that something begins at a time: "from next month"."""
    before, span_text, _ = text.lower().partition(span.text.lower())
    return bool(span_text) and _FROM_THEN_ON.search(before) is not None


def _start(span: Span, at: datetime, *, ahead: bool) -> CoarseTime | None:
    start = span.began()
    today = coarse(wall(at).date())
    if start is None or not ahead:
        return start if start is None or has_begun(start, at) else None
    if start < today and not _IS_OVER.search(span.text):  # "on Friday" is the next one
        is_weekday = span.grain == "day" and not re.search(r"\d", span.text)
        following = start + 7 * _DAY if is_weekday else months_on(start, 12)
        start = coarse(following.date(), start.precision)
    return start if start >= today else None


def _end_times(text: str, at: datetime) -> tuple[datetime | None, datetime | None]:
    """Return when a named past stretch of time began, which is when the fact ended, and its end."""
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
