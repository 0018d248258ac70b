"""Queries that name a time and nothing else: that time alone decides what is shown.

"What did we talk about in March?" is one.

Words and meaning know nothing of such a question: "discuss" and "talk" are in texts of every day.
It is a gate, not a weight: what lies in the time is shown, most telling first, and nothing else as
long as there is any.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Literal

from pps.core.text import fold, is_question
from pps.core.time import Span, from_micros
from pps.core.time_reading import phrases
from pps.core.values import Turn
from pps.recall.question import STOP_WORDS, word_set
from pps.recall.ranking import is_reply, stated_words
from pps.recall.search import Search

MAX_QUESTION_CHARS = 200
"""Most characters of a question that is about a time alone."""
_MAX_IN_TIME = 20_000
_MAX_TURNS_READ = 400
"""Turns of a time that are read to be put in order; of more, so many at even distances."""

_TALK_WORDS = word_set(
    """
    talk talked talking talks discuss discussed discussing discussion discussions chat chatted
    chatting chats speak spoke spoken speaking say said saying tell told mention mentioned
    conversation conversations conversed session sessions happen happened happening happens
    going went go come comes came coming mind on cover covered covering catch caught up bring
    brought work worked working
    topic topics subject subjects thing things something anything everything all main exactly
    recap summary summarise summarize overview list show give remind remember recall back again
    during over in at around between since until till before after while then together go
    through earlier gesprochen geredet besprochen gesagt passiert worüber was wir haben hat war
    über am im parlé discuté dit passé avons nous quoi que qu de est ce hablamos hablado dijimos
    pasó pasado qué de sobre parlato detto successo abbiamo cosa che di falamos conversamos
    aconteceu que sobre gesproken gepraat besproken gezegd gebeurd waarover hebben we wat
    """
)
"""Words of any talk: no text is told from another by them."""
_AHEAD = word_set("should shall will would can could may might must won't wouldn't")
"""Words of what is to come or to be done: then a memory of that day is not what is asked for."""
_REQUESTS = word_set(
    """
    recap summarise summarize summary list show tell give remind recall remember overview
    """
)
_QUESTION_WORDS = word_set("what what's which who where how when did do have was were")

_MAX_TELLING_WORDS = 40
"""Words of a turn beyond which more words do not make it more telling."""
_NEAREST_BEFORE = 50
"""Items taken from before a time that has nothing in it or beside it."""
_MIN_NEARNESS = 0.01
_FIRST_INSTANT = datetime.min.replace(tzinfo=UTC)
_LAST_INSTANT = datetime.max.replace(tzinfo=UTC)

_UNIT_ORDINALS = [
    "first",
    "second",
    "third",
    "fourth",
    "fifth",
    "sixth",
    "seventh",
    "eighth",
    "ninth",
]
_TEEN_ORDINALS = [
    "tenth",
    "eleventh",
    "twelfth",
    "thirteenth",
    "fourteenth",
    "fifteenth",
    "sixteenth",
    "seventeenth",
    "eighteenth",
    "nineteenth",
]
_TENS = {"twenty": 20, "thirty": 30, "forty": 40, "fifty": 50}


def _ordinals() -> dict[str, int]:
    """Return ordinal → number: first to fifty-ninth, with a hyphen or a space."""
    ordinals = {
        word: number for number, word in enumerate((*_UNIT_ORDINALS, *_TEEN_ORDINALS), start=1)
    }
    for tens, value in _TENS.items():
        ordinals[f"{tens.removesuffix('y')}ieth"] = value
        for number, unit in enumerate(_UNIT_ORDINALS, start=1):
            ordinals[f"{tens}-{unit}"] = value + number
            ordinals[f"{tens} {unit}"] = value + number
    return ordinals


def _any_of(words: Iterable[str]) -> str:
    """Return a pattern of any of the words, the longest first."""
    return "|".join(sorted(words, key=len, reverse=True))


_ORDINALS = _ordinals()
_CARDINAL_WORDS = [
    "one",
    "two",
    "three",
    "four",
    "five",
    "six",
    "seven",
    "eight",
    "nine",
    "ten",
    "eleven",
    "twelve",
]
_CARDINALS = {
    **{word: number for number, word in enumerate(_CARDINAL_WORDS, start=1)},
    "a": 1,
    "an": 1,
    "a couple of": 2,
    "a few": 3,
}
_SESSION = "(?:session|conversation|chat|discussion|talk)"
_NTH = rf"(?P<number>\d{{1,4}}(?:st|nd|rd|th)|{_any_of(_ORDINALS)}) {_SESSION}"
_NUMBERED = r"session (?:number |no\.? ?|#)?(?P<number>\d{1,4})"
_AGO = rf"(?P<number>\d{{1,4}}|{_any_of(_CARDINALS)}) {_SESSION}s? ago"
_BEFORE_LAST = (
    rf"{_SESSION} before (?:the )?last(?: one)?|second[- ]to[- ]last {_SESSION}"
    rf"|last {_SESSION} but one"
)
_LATEST = rf"(?:last|latest|previous|most recent) {_SESSION}"
_WORD = re.compile(r"[\w'’]+")


@dataclass(frozen=True, slots=True)
class SessionReference:
    """Words that name a session by its place, and where they stand.

    Attributes:
        number: 1 or more.
        from_end: Counted from the latest session, which is 1; else from the first.
        start, end: Characters of the text.
    """

    number: int
    from_end: bool
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class NamedTime:
    """What a question about a time alone is answered with.

    Attributes:
        turns: Ids, best first.
        facts: Ids, best first.
        inside: False when nothing lies in the time and these are the nearest to it.
        words: What the question calls the time.
    """

    turns: tuple[str, ...]
    facts: tuple[str, ...]
    inside: bool
    words: str


def session_references(text: str) -> list[SessionReference]:
    """Return the sessions that a text names by their place ("our fourth session"), in order."""
    lowered = text.lower()
    references: list[SessionReference] = []
    for pattern, from_end, read_number in _PATTERNS:
        for match in pattern.finditer(lowered):
            reference = SessionReference(read_number(match), from_end, *match.span())
            overlaps = any(
                reference.start < other.end and reference.end > other.start for other in references
            )
            if reference.number > 0 and not overlaps:
                references.append(reference)
    return sorted(references, key=lambda reference: reference.start)


def asks_only_for_a_time(text: str) -> bool:
    """Tell whether a text asks what was said or happened at a time, and names nothing else.

    "What did we talk about last month?" does; "What did we decide last month?" names a decision,
    "What should I do today?" is about what is to come, and "See you tomorrow!" asks nothing.
    """
    text = text.strip()
    if len(text) > MAX_QUESTION_CHARS:
        return False
    places = [(phrase.start, phrase.end) for phrase in phrases(text)]
    places += [(reference.start, reference.end) for reference in session_references(text)]
    if not places:
        return False
    words = _words(text)
    asks = is_question(text) or words[0] in _QUESTION_WORDS or not _REQUESTS.isdisjoint(words)
    rest = _words(_without(text, places))
    if not asks or not _AHEAD.isdisjoint(rest) or _TALK_WORDS.isdisjoint(rest):
        return False
    return all(word in _TALK_WORDS or word in STOP_WORDS for word in rest)


async def named_time(search: Search) -> NamedTime | None:
    """Return what lies in the time that a question is about alone; None for any other question.

    None too for a time that is to come, and where nothing is older: then the question is asked like
    any other.
    """
    return await search.once("named time", lambda: _named_time(search))


async def _named_time(search: Search) -> NamedTime | None:
    if not asks_only_for_a_time(search.text):
        return None
    references = session_references(search.text)
    if references:
        return await _of_sessions(search, references)
    spans = [
        span
        for span in await search.named_spans()
        if span.start is None or span.start <= search.moment
    ]
    return await _of_spans(search, spans) if spans else None


async def _of_sessions(search: Search, references: Sequence[SessionReference]) -> NamedTime | None:
    journal = search.sources.journal
    names = [name for name in await journal.session_order() if name != search.request.session]
    wanted: list[str] = []
    for reference in references:
        place = len(names) - reference.number if reference.from_end else reference.number - 1
        if 0 <= place < len(names):
            wanted.append(names[place])
    ids: list[str] = []
    for name in dict.fromkeys(wanted):
        ids += await journal.latest_ids(name, _MAX_IN_TIME)
    turns = await _most_telling_first(search, ids)
    if not turns:
        return None
    supported = await journal.facts_supported_by(turns)
    facts = list(dict.fromkeys(fact for turn in turns for fact in supported.get(turn, ())))
    words = search.text[references[0].start : references[0].end]
    return NamedTime(tuple(turns), tuple(await search.permitted("fact", facts)), True, words)


async def _of_spans(search: Search, spans: Sequence[Span]) -> NamedTime | None:
    """Return what lies in any of the spans; what is nearest to them where nothing does."""
    turns = await _near(search, "episode", spans)
    facts = await _near(search, "fact", spans)
    inside = 1.0 in turns.values() or 1.0 in facts.values()
    words = ", ".join(span.text for span in spans)
    if inside:
        ids = [id_ for id_, nearness in turns.items() if nearness == 1]
        ordered = await _most_telling_first(search, ids)
        ordered_facts = [id_ for id_, nearness in facts.items() if nearness == 1]
    else:
        ordered = sorted(turns, key=lambda id_: -turns[id_])
        ordered_facts = sorted(facts, key=lambda id_: -facts[id_])
    if not ordered and not ordered_facts:
        return None
    return NamedTime(tuple(ordered), tuple(ordered_facts), inside, words)


async def _near(
    search: Search, kind: Literal["episode", "fact"], spans: Sequence[Span]
) -> dict[str, float]:
    """Return id → nearness in (0, 1] to the spans of what the filters let through, latest first.

    Where a span has nothing in it, what is beside it counts, else the latest before it.
    """
    within = search.sources.journal.within
    near: dict[str, float] = {}
    for span in spans:
        start = span.start or _FIRST_INSTANT
        end = span.end or _LAST_INSTANT
        times = await within(kind, start, end, limit=_MAX_IN_TIME)
        for id_ in times:
            near[id_] = 1.0
        if times:
            continue
        first, _ = span.bounds()
        beside = await within(kind, *span.bounds(), limit=_MAX_TURNS_READ)
        if not beside:
            beside = await within(kind, _FIRST_INSTANT, first, limit=_NEAREST_BEFORE)
        for id_, at in beside.items():
            nearness = max(_MIN_NEARNESS, span.nearness(from_micros(at)))
            near[id_] = max(near.get(id_, 0.0), nearness)
    allowed = await search.permitted(kind, list(near))
    return {id_: near[id_] for id_ in allowed}


async def _most_telling_first(search: Search, ids: Sequence[str]) -> list[str]:
    """Return the best turn of each session, then the second of each, and so on.

    A turn with more words of its own is better.

    So a month is told by all of its sessions, and not by the longest one.
    """
    permitted = await search.permitted("episode", list(dict.fromkeys(ids)))
    step = max(1, -(-len(permitted) // _MAX_TURNS_READ))
    telling: dict[str, float] = {}
    sessions: dict[str, list[str]] = {}
    for turn in await search.sources.journal.turns(permitted[::step]):
        telling[turn.uuid] = _telling_words(turn)
        sessions.setdefault(turn.session, []).append(turn.uuid)
    place: dict[str, int] = {}
    for members in sessions.values():
        members.sort(key=lambda id_: -telling[id_])
        place.update((id_, at) for at, id_ in enumerate(members))
    return sorted(telling, key=lambda id_: (place[id_], -telling[id_]))


def _telling_words(turn: Turn) -> float:
    """Return the telling words of a turn, at most 40.

    The words of a reply count half, because it mostly repeats.
    """
    words = min(stated_words(turn), _MAX_TELLING_WORDS)
    return words / 2 if is_reply(turn) else words


def _read_number(match: re.Match[str]) -> int:
    word = match["number"]
    digits = re.match(r"\d+", word)
    if digits:
        return int(digits.group())
    return _ORDINALS.get(word) or _CARDINALS[word]


def _second(_: re.Match[str]) -> int:
    return 2


def _first(_: re.Match[str]) -> int:
    return 1


_PATTERNS: Sequence[tuple[re.Pattern[str], bool, Callable[[re.Match[str]], int]]] = (
    (re.compile(rf"\b(?:{_BEFORE_LAST})\b"), True, _second),
    (re.compile(rf"\b(?:{_AGO})\b"), True, _read_number),
    (re.compile(rf"\b(?:{_LATEST})\b"), True, _first),
    (re.compile(rf"\b(?:{_NTH})\b"), False, _read_number),
    (re.compile(rf"\b(?:{_NUMBERED})\b"), False, _read_number),
)
"""Pattern, whether its number counts from the latest session, and how the number is read."""


def _words(text: str) -> list[str]:
    return _WORD.findall(fold(text).replace("’", "'"))


def _without(text: str, places: Sequence[tuple[int, int]]) -> str:
    pieces: list[str] = []
    position = 0
    for start, end in sorted(places):
        pieces.append(text[position:start])
        position = max(position, end)
    return " ".join([*pieces, text[position:]])
