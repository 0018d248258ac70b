"""Reading time words against a reference time: "last spring", "on 3 March", "im Mai 2023".

Patterns by language find the words; those that are mostly something else ("may", "march", "second",
"fall") count only beside what makes them a time: a preposition, a number, "last". The calendar's
words are read by ``dateparser``, one short phrase at a time in a language that is known, which
takes about a millisecond; seasons, weekends, parts of a month and stretches are worked out here.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import Literal

from pps.core.time import SEASONS, Grain, Span, joined, months_on, season, third, unit, wall

MOST = 4
"""Most phrases of one text that are read."""

_GRAINS: Mapping[str, Grain] = {
    "day": "day",
    "time": "day",
    "week": "week",
    "month": "month",
    "year": "year",
}
_FUZZY = (
    (re.compile(r"\b(?:a )?couple(?: of)?\b"), "2"),
    (re.compile(r"\b(?:a )?few\b|\bseveral\b"), "3"),
    (re.compile(r"\b(?:past|previous)\b"), "last"),
)
_COUNTED = "zero one two three four five six seven eight nine ten eleven twelve"
_NUMBERS = {word: number for number, word in enumerate(_COUNTED.split())} | {"a": 1, "an": 1}
_THIRDS: Sequence[tuple[re.Pattern[str], Literal["early", "mid", "late"]]] = (
    (re.compile(r"\b(?:early|beginning|start)\b"), "early"),
    (re.compile(r"\b(?:mid|middle)\b"), "mid"),
    (re.compile(r"\b(?:late|end)\b"), "late"),
)
_PARTS = re.compile(r"\b(?:early|mid|late|the|beginning|start|middle|end|of|in)\b[ -]?")
_LEADING = re.compile(
    r"^(?:in|on|since|during|of|from|by|before|after|until|till|around|year|this)\b[ -]?"
)
_OVER = re.compile(r"(?:last|past|previous) ")
_OPEN = re.compile(r"\b(since|after|before|until|till)(?: the)?\s*$")
_OPENING = re.compile(r"(since|after|before|until|till)\b")
_SINCE = ("since", "after")
_UNTIL = ("before", "until", "till")
_YEAR_SAID = re.compile(r"\d{4}")
_RANGE = re.compile(r"\s(?:and|to|until|till)\s")
_BETWEEN = re.compile(r"\b(?:between|from)\s*$")
_AND = re.compile(r"^\s*(?:and|to|until|till|-|–)\s*$")
_NTH = ("first", "second", "third", "fourth", "last")
LONGEST = 1_000
"""Characters of a text that are searched."""

_LONG = "january february march april may june july august september october november december"
_SHORT = "jan feb mar apr jun jul aug sept sep oct nov dec"
_MONTH = _LONG.replace(" ", "|")
_ANY_MONTH = rf"(?:{_MONTH}|(?:{_SHORT.replace(' ', '|')})\b\.?)"
WEEKDAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_WEEKDAY = f"(?:{'|'.join(WEEKDAYS)})"
_SEASON = "(?:spring|summer|autumn|fall|winter)"
_YEAR = r"(?:19|20)\d\d"
_DAY = r"\d{1,2}(?:st|nd|rd|th)?"
_COUNT = (
    r"\d{1,3}|an?|one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|(?:a )?few|several"
    r"|a couple(?: of)?"
)
_PART = r"(?:early|mid|late|(?:the )?(?:beginning|start|middle|end) of)"
_BESIDE_MONTH = "in|since|during|before|after|until|till|around|last|next|past|previous"
_BESIDE_YEAR = "in|since|during|of|from|by|before|after|until|till|around|year"

_ENGLISH = (
    ("iso", r"\b\d{4}-\d{2}(?:-\d{2})?\b"),
    ("dotted", r"\b\d{1,2}\.\d{1,2}\.\d{4}\b"),
    (
        "nth_week",
        rf"\b(?:first|second|third|fourth|last) week (?:of|in) (?:{_MONTH})(?:,? {_YEAR})?\b",
    ),
    (
        "date",
        rf"\b(?:{_DAY} (?:of )?{_ANY_MONTH}|{_ANY_MONTH} {_DAY}\b(?![:.]\d))(?:,? {_YEAR})?\b",
    ),
    ("month", rf"\b(?:{_PART}[ -](?:in )?)?{_ANY_MONTH},? (?:of )?{_YEAR}\b"),
    (
        "month",
        rf"\b(?:(?:{_BESIDE_MONTH}|this (?!may|march))(?: {_PART})?|{_PART})[ -]?"
        rf"\b(?:{_MONTH})\b(?! \d)",
    ),
    (
        "range",
        rf"\b(?:between|from) (?:{_MONTH})(?: {_YEAR})? (?:and|to|until|till) (?:{_MONTH})"
        rf"(?:,? {_YEAR})?\b",
    ),
    ("range", rf"\b(?:between|from) {_YEAR} (?:and|to|until|till) {_YEAR}\b"),
    (
        "season",
        r"\b(?:(?:last|this|next|past|previous|in|in the|during the|since) )?"
        rf"{_SEASON} (?:of )?{_YEAR}\b",
    ),
    ("season", rf"\b(?:last|this|next|past|previous|in the|during the) {_SEASON}\b"),
    ("weekend", r"\b(?:last|this|past|previous|next) weekend\b"),
    (
        "window",
        rf"\b(?:the|these|this) (?:last|past) (?:(?:{_COUNT}) )?(?:day|week|month|year)s?\b",
    ),
    ("ago", rf"\b(?:{_COUNT}) (?:day|week|month|year|decade)s? ago\b"),
    ("plain", r"\b(?:last|this|next|past|previous) (?:week|month|year|decade)\b"),
    (
        "plain",
        r"\b(?:day before yesterday|day after tomorrow|last night"
        r"|this (?:morning|afternoon|evening))\b",
    ),
    ("plain", r"\b(?:yesterday|today|tonight|tomorrow)\b"),
    ("weekday", rf"\b(?:on|last|this|past|previous|next|since|until|before|after) {_WEEKDAY}\b"),
    ("year", rf"\b(?:{_PART}|(?:{_BESIDE_YEAR})(?: {_PART})?) {_YEAR}\b(?! \w+s\b)"),
)


@dataclass(frozen=True, slots=True)
class _Tongue:
    """Another language: relative phrases, months' names and prefixes, words that hint at a time."""

    relative: str
    months: str
    before: str
    cues: str


_N = r"(?:\d{1,3}|\w{2,9})"
_LATIN: Mapping[str, _Tongue] = {
    "de": _Tongue(
        r"vorgestern|gestern|heute|(?:letzte|vorige|diese)[nrsm]? (?:woche|monat|jahr)"
        rf"|vor {_N} (?:tag|woche|monat|jahr)e?n?",
        "januar|februar|märz|april|mai|juni|juli|august|september|oktober|november|dezember",
        "im",
        "vorgestern gestern heute woche wochen monat monaten jahr jahren tag tagen",
    ),
    "fr": _Tongue(
        r"avant-hier|aujourd['’]hui|(?:la )?semaine dernière|(?:le )?mois dernier"
        r"|l['’]année dernière"
        rf"|il y a {_N} (?:jours?|semaines?|mois|ans?)",
        "janvier|février|mars|avril|mai|juin|juillet|août|septembre|octobre|novembre|décembre",
        "en",
        "hier aujourd hui semaine semaines mois année jour jours an ans",
    ),
    "es": _Tongue(
        r"anteayer|ayer|hoy|la semana pasada|el mes pasado|el año pasado"
        rf"|hace {_N} (?:días?|semanas?|mes(?:es)?|años?)",
        "enero|febrero|marzo|abril|mayo|junio|julio|agosto|septiembre|octubre|noviembre|diciembre",
        "en",
        "anteayer ayer hoy semana semanas mes meses año años día días",
    ),
    "it": _Tongue(
        r"l['’]altro ieri|ieri|oggi|(?:la )?settimana scorsa|(?:il )?mese scorso|l['’]anno scorso"
        rf"|{_N} (?:giorn[io]|settiman[ae]|mes[ei]|ann[io]) fa",
        "gennaio|febbraio|marzo|aprile|maggio|giugno|luglio|agosto|settembre|ottobre|novembre"
        "|dicembre",
        "a|in|nel",
        "ieri oggi settimana settimane mese mesi anno anni giorno giorni",
    ),
    "pt": _Tongue(
        r"anteontem|ontem|hoje|(?:a )?semana passada|(?:o )?mês passado|(?:o )?ano passado"
        rf"|há {_N} (?:dias?|semanas?|mês|meses|anos?)",
        "janeiro|fevereiro|março|abril|maio|junho|julho|agosto|setembro|outubro|novembro|dezembro",
        "em",
        "anteontem ontem hoje semana semanas mês meses ano anos dia dias",
    ),
    "nl": _Tongue(
        r"eergisteren|gisteren|vandaag|vorige (?:week|maand)|vorig jaar"
        rf"|{_N} (?:dag(?:en)?|we(?:ek|ken)|maand(?:en)?|jaar) geleden",
        "januari|februari|maart|april|mei|juni|juli|augustus|september|oktober|november|december",
        "in",
        "eergisteren gisteren vandaag vorige vorig geleden",
    ),
}
_DENSE: Mapping[str, str] = {
    "ja": r"一昨日|昨日|今日|先々週|[先今]週|[先今]月|[去昨今]年|\d+(?:日|週間|か月|年)前"
    r"|\d{4}年(?:\d{1,2}月(?:\d{1,2}日)?)?|\d{1,2}月(?:\d{1,2}日)?",
    "zh": r"大前天|前天|昨天|今天|[上本]周|上个月|本月|\d+(?:天|周|个月)前",
    "ko": r"그저께|어제|오늘|지난\s?(?:주|달|해)|작년|\d+(?:일|주|개월|년) 전|\d{4}년 \d{1,2}월(?: \d{1,2}일)?",
}
_CUES = f"""
{_LONG} {_SHORT} {" ".join(WEEKDAYS)} spring summer autumn fall winter weekend
week weeks month months year years decade decades day days ago yesterday today tonight tomorrow
night morning afternoon evening
"""
_WORD = re.compile(r"\w+")
_DENSE_SIGN = re.compile("[年月日天周週昨어오그작지]")


@dataclass(frozen=True, slots=True)
class Phrase:
    """Words that name a time, in lower case, with their place, kind and language."""

    text: str
    start: int
    end: int
    kind: str
    language: str


def read_times(text: str, reference: datetime) -> list[Span]:
    """Return the spans that a text names, in order, at most ``MOST``.

    What cannot be read is left out.

    Args:
        text: In any language; English, German, French, Spanish, Italian, Portuguese, Dutch,
            Japanese, Chinese and Korean are read.
        reference: Aware; "yesterday" is the day before it, and "in May" its last May. Days are
            those of its own zone: give it in the person's. A date is read as the whole of that day,
            without a zone.
    """
    zone = reference.tzinfo or UTC
    reference = wall(reference)  # the calendar is read on the wall clock, then set in the zone
    read: list[tuple[Phrase, Span]] = []
    for phrase in phrases(text)[:MOST]:
        span = _read(phrase, reference)
        if span is not None:
            read.append((phrase, _opened(span, phrase, text.lower(), reference)))
    return [span.in_zone(zone) for span in _stretches(read, text.lower())]


def read_time(text: str, reference: datetime) -> Span | None:
    """Return the one span that a text names, or None when it names none or several."""
    spans = read_times(text, reference)
    if len(spans) != 1:
        return None
    return spans[0]


def _read(phrase: Phrase, reference: datetime) -> Span | None:
    reader = _READERS.get(phrase.kind, _calendar)
    try:
        return reader(phrase, reference)
    except (ValueError, OverflowError):  # a day that does not exist, a year beyond the calendar
        return None


def _calendar(phrase: Phrase, reference: datetime) -> Span | None:
    """Read what a calendar knows; the span is the unit that the library says was meant."""
    # Imported on first need: it takes a tenth of a second, and most texts name no time.
    from dateparser.date import DateDataParser

    words = phrase.text
    for pattern, plain in _FUZZY if phrase.language == "en" else ():
        words = pattern.sub(plain, words)
    settings = {
        "RELATIVE_BASE": reference.replace(tzinfo=None),
        "PREFER_DATES_FROM": "past",
        "RETURN_TIME_AS_PERIOD": False,
        "DATE_ORDER": "DMY"
        if phrase.kind == "dotted"
        else "YMD"
        if phrase.kind == "iso"
        else "MDY",
    }
    parser = DateDataParser(languages=[phrase.language], settings=settings)
    data = parser.get_date_data(words)
    moment = data.date_obj
    if moment is None:
        return None
    grain: Grain = "decade" if "decade" in words else _GRAINS.get(str(data.period), "day")
    return unit(moment.replace(tzinfo=UTC), grain, phrase.text)


def _dated(phrase: Phrase, reference: datetime) -> Span | None:
    """Read a month, a day or a year, of which "early" and "the end of" take a third."""
    words = _LEADING.sub("", _LEADING.sub("", phrase.text))
    bare = _PARTS.sub("", words).strip()
    if phrase.kind == "month" and _OVER.match(bare):  # "last May": the last that is over
        span = _calendar(_as(phrase, _OVER.sub("", bare)), months_on(reference, -1))
    else:
        span = _calendar(_as(phrase, bare), reference)
    if span is None:
        return None
    return _cut(span, phrase.text)


def _year(phrase: Phrase, reference: datetime) -> Span | None:
    match = _YEAR_SAID.search(phrase.text)
    year = int(match.group()) if match else reference.year
    span = unit(datetime(year, 1, 1, tzinfo=UTC), "year", phrase.text)
    return _cut(span, phrase.text)


def _cut(span: Span, words: str) -> Span:
    """Return the third of a span that the words tell, or all of it."""
    for pattern, which in _THIRDS:
        if pattern.search(words):
            span = third(span, which)
    return Span(span.start, span.end, span.grain, words)


def _season(phrase: Phrase, reference: datetime) -> Span | None:
    name = next(word for word in SEASONS if word in phrase.text)
    year = _YEAR_SAID.search(phrase.text)
    if year:
        return season(name, int(year.group()), phrase.text)
    near = [season(name, reference.year + step, phrase.text) for step in (-2, -1, 0, 1)]
    if "next" in phrase.text:
        return next(period for period in near if period.start and period.start > reference)
    ended = re.match(r"last|past|previous", phrase.text)
    return [
        period
        for period in near
        if period.start and period.end and (period.end if ended else period.start) <= reference
    ][-1]


def _weekend(phrase: Phrase, reference: datetime) -> Span:
    """Read the weekend of this week, the one before or the one after; weeks begin on Mondays."""
    step = 0 if "this" in phrase.text else 7 if "next" in phrase.text else -7
    week = unit(reference + timedelta(days=step), "week")
    return Span(
        week.end - timedelta(days=2) if week.end else None, week.end, "stretch", phrase.text
    )


def _window(phrase: Phrase, reference: datetime) -> Span | None:
    words = phrase.text
    for pattern, plain in _FUZZY[:2]:
        words = pattern.sub(plain, words)
    parts = words.split()[2:]
    count = 1 if len(parts) == 1 else _NUMBERS.get(parts[0], 0) or int(parts[0])
    name = parts[-1].removesuffix("s")
    days = {"day": 1, "week": 7}.get(name, 0)
    months = {"month": 1, "year": 12}.get(name, 0)
    start = months_on(reference, -count * months) - timedelta(days=count * days)
    return Span(start, reference, "stretch", phrase.text)


def _nth_week(phrase: Phrase, reference: datetime) -> Span | None:
    which, _, _, month = phrase.text.split(" ", 3)
    span = _calendar(_as(phrase, month), reference)
    if span is None or span.start is None or span.end is None:
        return None
    start = (
        span.end - timedelta(days=7)
        if which == "last"
        else span.start + timedelta(days=7 * _NTH.index(which))
    )
    return Span(start, start + timedelta(days=7), "week", phrase.text)


def _range(phrase: Phrase, reference: datetime) -> Span | None:
    first, last = _RANGE.split(phrase.text.split(" ", 1)[1], maxsplit=1)
    year = _YEAR_SAID.search(last)
    if year and not _YEAR_SAID.search(first):
        first = f"{first} {year.group()}"
    reader = _year if first[0].isdigit() else _calendar
    ends = reader(_as(phrase, first), reference), reader(_as(phrase, last), reference)
    return joined(ends[0], ends[1]) if ends[0] and ends[1] else None


_READERS: Mapping[str, Callable[[Phrase, datetime], Span | None]] = {
    "month": _dated,
    "date": _dated,
    "weekday": _dated,
    "year": _year,
    "season": _season,
    "weekend": _weekend,
    "window": _window,
    "nth_week": _nth_week,
    "range": _range,
}


def _as(phrase: Phrase, words: str) -> Phrase:
    return replace(phrase, text=words, kind="plain")


def _opened(span: Span, phrase: Phrase, lowered: str, reference: datetime) -> Span:
    """Return "since X" as from X to now, and "before X" as all that lies before it."""
    opening = _OPENING.match(phrase.text) or _OPEN.search(lowered[: phrase.start])
    word = opening.group(1) if opening else ""
    if word in _SINCE and span.start is not None and span.end is not None:
        start = span.start if word == "since" else span.end
        return (
            Span(start, max(start, reference), "stretch", phrase.text)
            if start <= reference
            else span
        )
    if word in _UNTIL and phrase.kind != "ago":
        return Span(None, span.start, "stretch", phrase.text)
    return span


def _stretches(read: list[tuple[Phrase, Span]], lowered: str) -> list[Span]:
    """Return the spans, those of "between X and Y" made one."""
    spans: list[Span] = []
    for at, (phrase, span) in enumerate(read):
        before = read[at - 1][0] if at else None
        if (
            before
            and _AND.match(lowered[before.end : phrase.start])
            and _BETWEEN.search(lowered[: before.start])
        ):
            spans[-1] = joined(spans[-1], span)
        else:
            spans.append(span)
    return spans


def names_time(text: str) -> bool:
    """Tell whether a text may name a time, by a look at its words.

    What costs more is only done then.
    """
    return _has_cue(text[:LONGEST].lower())


def phrases(text: str) -> list[Phrase]:
    """Return the phrases of a text that may name a time, in order.

    Of those that overlap, the longest.

    A text without a word of time or a digit costs a look at its words and nothing else.
    """
    lowered = text[:LONGEST].lower()
    if not _has_cue(lowered):
        return []
    matches = [
        Phrase(hit.group(), hit.start(), hit.end(), kind, language)
        for kind, language, pattern in _patterns()
        for hit in pattern.finditer(lowered)
    ]
    phrases: list[Phrase] = []
    for match in sorted(matches, key=lambda phrase: (phrase.start - phrase.end, phrase.start)):
        if all(match.end <= other.start or match.start >= other.end for other in phrases):
            phrases.append(match)
    return sorted(phrases, key=lambda phrase: phrase.start)


def _has_cue(lowered: str) -> bool:
    cues = _cues()
    if any(word in cues or word[0].isdigit() for word in _WORD.findall(lowered)):
        return True
    return not lowered.isascii() and _DENSE_SIGN.search(lowered) is not None


@cache
def _cues() -> frozenset[str]:
    words = _CUES.split()
    for tongue in _LATIN.values():
        words += [*tongue.months.split("|"), *tongue.cues.split()]
    return frozenset(words)


@cache
def _patterns() -> tuple[tuple[str, str, re.Pattern[str]], ...]:
    english = [(kind, "en", re.compile(pattern)) for kind, pattern in _ENGLISH]
    latin = [("plain", language, re.compile(_latin(tongue))) for language, tongue in _LATIN.items()]
    dense = [("plain", language, re.compile(pattern)) for language, pattern in _DENSE.items()]
    return (*english, *latin, *dense)


def _latin(tongue: _Tongue) -> str:
    of = "(?:de |del )?"
    month = f"(?:{tongue.months})"
    dated = (
        rf"\d{{1,2}}(?:\.|er|º)? {of}{month}(?: {of}{_YEAR})?|{month} {of}{_YEAR}"
        rf"|(?:{tongue.before}) {month}"
    )
    return rf"\b(?:{tongue.relative}|{dated})\b"
