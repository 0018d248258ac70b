"""Questions that name a time and nothing else ("What did we talk about in March?"): that time alone decides.

Words and meaning know nothing of such a question: "discuss" and "talk" are in texts of every day. It is a gate, not a
weight: what lies in the time is shown, most telling first, and nothing else as long as there is any.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Literal

from pps.core.text import fold, is_question
from pps.core.time import Span, from_micros
from pps.core.time_reading import phrases
from pps.core.values import Turn
from pps.recall.query_words import STOP_WORDS
from pps.recall.ranking import stated_words
from pps.recall.search import Search

LONGEST = 200
"""Most characters of a question that is about a time alone."""
_MOST_IN_TIME = 20_000
_MOST_READ = 400
"""Turns of a time that are read to be put in order; of more, so many at even distances."""

_TALK_WORDS = """
talk talked talking talks discuss discussed discussing discussion discussions chat chatted chatting chats speak spoke
spoken speaking say said saying tell told mention mentioned conversation conversations conversed session sessions
happen happened happening happens going went go on cover covered covering catch caught up bring brought work worked
working topic topics subject subjects thing things something anything everything all main exactly recap summary
summarise summarize overview list show give remind remember recall back again during over in at around between since
until till before after while then together go through earlier
gesprochen geredet besprochen gesagt passiert worüber was wir haben hat war über am im
parlé discuté dit passé avons nous quoi que qu de est ce
hablamos hablado dijimos pasó pasado qué de sobre
parlato detto successo abbiamo cosa che di
falamos conversamos aconteceu que sobre
gesproken gepraat besproken gezegd gebeurd waarover hebben we wat
"""
_TALK = frozenset(_TALK_WORDS.split())
"""What is said of any talk: no text is told from another by it."""
_AHEAD = frozenset(
    [
        "should",
        "shall",
        "will",
        "would",
        "can",
        "could",
        "may",
        "might",
        "must",
        "won't",
        "wouldn't",
    ]
)
"""Words of what is to come or to be done: then a memory of that day is not what is asked for."""
_REQUESTS = frozenset(
    [
        "recap",
        "summarise",
        "summarize",
        "summary",
        "list",
        "show",
        "tell",
        "give",
        "remind",
        "recall",
        "remember",
        "overview",
    ]
)
_QUESTION_WORDS = frozenset(
    ["what", "what's", "which", "who", "where", "how", "when", "did", "do", "have", "was", "were"]
)

_TELLING_WORDS = 40
_NEAREST, _LEAST_NEAR = 50, 0.01
"""How many are taken from before a time that has nothing in it or beside it, and how near those count."""
_FIRST, _LAST = datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC)

_UNITS = ["first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth"]
_TEENS = [
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
_ORDINALS = {
    **{word: number for number, word in enumerate((*_UNITS, *_TEENS), start=1)},
    "twentieth": 20,
    "thirtieth": 30,
    "fortieth": 40,
    "fiftieth": 50,
    **{
        f"{tens}{between}{unit}": value + number
        for tens, value in _TENS.items()
        for between in ("-", " ")
        for number, unit in enumerate(_UNITS, start=1)
    },
}
_WORDED = sorted(_ORDINALS, key=len, reverse=True)
_CARDINALS = {
    word: number
    for number, word in enumerate(
        [
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
        ],
        start=1,
    )
} | {"a": 1, "an": 1, "a couple of": 2, "a few": 3}
_SESSION = "(?:session|conversation|chat|discussion|talk)"
_NTH = rf"(?P<number>\d{{1,4}}(?:st|nd|rd|th)|{'|'.join(_WORDED)}) {_SESSION}"
_NUMBERED = r"session (?:number |no\.? ?|#)?(?P<number>\d{1,4})"
_AGO = (
    rf"(?P<number>\d{{1,4}}|{'|'.join(sorted(_CARDINALS, key=len, reverse=True))}) {_SESSION}s? ago"
)
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
    """Return the sessions that a text names by their place ("our fourth session"), in order, none twice."""
    lowered = text.lower()
    found = [
        SessionReference(read_number(match), from_end, *match.span())
        for pattern, from_end, read_number in _PATTERNS
        for match in pattern.finditer(lowered)
    ]
    kept: list[SessionReference] = []
    for reference in found:
        apart = all(reference.end <= other.start or reference.start >= other.end for other in kept)
        if apart and reference.number > 0:
            kept.append(reference)
    return sorted(kept, key=lambda reference: reference.start)


def asks_only_for_a_time(text: str) -> bool:
    """Tell whether a text asks what was said or happened at a time, and names nothing but that time.

    "What did we talk about last month?" does; "What did we decide last month?" names a decision, "What should I do
    today?" is about what is to come, and "See you tomorrow!" asks nothing.
    """
    text = text.strip()
    if len(text) > LONGEST:
        return False
    places = [(phrase.start, phrase.end) for phrase in phrases(text)]
    places += [(reference.start, reference.end) for reference in session_references(text)]
    if not places:
        return False
    words = _words(text)
    asks = is_question(text) or words[0] in _QUESTION_WORDS or not _REQUESTS.isdisjoint(words)
    rest = _words(_without(text, places))
    if not asks or not _AHEAD.isdisjoint(rest) or _TALK.isdisjoint(rest):
        return False
    return all(word in _TALK or word in STOP_WORDS for word in rest)


async def named_time(search: Search) -> NamedTime | None:
    """Return what lies in the time that a question is about alone; None for any other question.

    None too for a time that is to come, and where nothing is older: then the question is asked like any other.
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
        ids += await journal.latest_ids(name, _MOST_IN_TIME)
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
    near: dict[str, float] = {}
    for span in spans:
        start, end = span.start or _FIRST, span.end or _LAST
        times = await search.sources.journal.within(kind, start, end, limit=_MOST_IN_TIME)
        for id_ in times:
            near[id_] = 1.0
        if times:
            continue
        first, _ = span.bounds()
        beside = await search.sources.journal.within(kind, *span.bounds(), limit=_MOST_READ)
        if not beside:
            beside = await search.sources.journal.within(kind, _FIRST, first, limit=_NEAREST)
        for id_, at in beside.items():
            nearness = max(_LEAST_NEAR, span.nearness(from_micros(at)))
            near[id_] = max(near.get(id_, 0.0), nearness)
    allowed = await search.permitted(kind, list(near))
    return {id_: near[id_] for id_ in allowed}


async def _most_telling_first(search: Search, ids: Sequence[str]) -> list[str]:
    """Return the best turn of each session, then the second of each, and so on; the more words of its own, the better.

    So a month is told by all of its sessions, and not by the longest one.
    """
    permitted = await search.permitted("episode", list(dict.fromkeys(ids)))
    step = max(1, -(-len(permitted) // _MOST_READ))
    told: dict[str, float] = {}
    sessions: dict[str, list[str]] = {}
    for turn in await search.sources.journal.turns(permitted[::step]):
        told[turn.uuid] = _telling(turn)
        sessions.setdefault(turn.session, []).append(turn.uuid)
    place: dict[str, int] = {}
    for members in sessions.values():
        members.sort(key=lambda id_: -told[id_])
        place.update((id_, at) for at, id_ in enumerate(members))
    return sorted(told, key=lambda id_: (place[id_], -told[id_]))


def _telling(turn: Turn) -> float:
    """Return how much a turn tells: its words, to 40; a reply's count half, since it mostly repeats."""
    words = min(stated_words(turn), _TELLING_WORDS)
    replies = turn.kind == "turn" and turn.role != "user"
    return words / 2 if replies else words


def _read_number(match: re.Match[str]) -> int:
    word = match["number"]
    digits = re.match(r"\d+", word)
    if digits:
        return int(digits.group())
    return _ORDINALS.get(word) or _CARDINALS[word]


def _one(_: re.Match[str]) -> int:
    return 1


def _two(_: re.Match[str]) -> int:
    return 2


_PATTERNS: Sequence[tuple[re.Pattern[str], bool, Callable[[re.Match[str]], int]]] = (
    (re.compile(rf"\b(?:{_BEFORE_LAST})\b"), True, _two),
    (re.compile(rf"\b(?:{_AGO})\b"), True, _read_number),
    (re.compile(rf"\b(?:{_LATEST})\b"), True, _one),
    (re.compile(rf"\b(?:{_NTH})\b"), False, _read_number),
    (re.compile(rf"\b(?:{_NUMBERED})\b"), False, _read_number),
)
"""Pattern, whether its number counts from the latest session, and how the number is read."""


def _words(text: str) -> list[str]:
    return _WORD.findall(fold(text).replace("’", "'"))


def _without(text: str, places: Sequence[tuple[int, int]]) -> str:
    kept: list[str] = []
    at = 0
    for start, end in sorted(places):
        kept.append(text[at:start])
        at = max(at, end)
    return " ".join([*kept, text[at:]])
