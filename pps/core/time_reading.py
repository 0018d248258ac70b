"""Reading time words against a reference time: "last spring", "two weeks ago", "on 3 March", "im Mai 2023".

The calendar's words are read by ``dateparser``, one short phrase at a time in a language that is known,
which takes about a millisecond; seasons, weekends, parts of a month and stretches are worked out here.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Literal

from pps.core.spans import SEASONS, Grain, Span, joined, months_on, season, third, unit
from pps.core.time_words import Phrase, phrases

MOST = 4
"""Most phrases of one text that are read."""

_GRAINS: Mapping[str, Grain] = {"day": "day", "time": "day", "week": "week", "month": "month", "year": "year"}
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
_LEADING = re.compile(r"^(?:in|on|since|during|of|from|by|before|after|until|till|around|year|this)\b[ -]?")
_OVER = re.compile(r"(?:last|past|previous) ")
_OPEN = re.compile(r"\b(since|after|before|until|till)(?: the)?\s*$")
_OPENING = re.compile(r"(since|after|before|until|till)\b")
_SINCE, _UNTIL = ("since", "after"), ("before", "until", "till")
_YEAR = re.compile(r"\d{4}")
_RANGE = re.compile(r"\s(?:and|to|until|till)\s")
_BETWEEN = re.compile(r"\b(?:between|from)\s*$")
_AND = re.compile(r"^\s*(?:and|to|until|till|-|–)\s*$")
_NTH = ("first", "second", "third", "fourth", "last")


def read_times(text: str, reference: datetime) -> list[Span]:
    """Return the spans that a text names, in order, at most ``MOST``; what cannot be read is left out.

    Args:
        text: In any language; English, German, French, Spanish, Italian, Portuguese, Dutch, Japanese, Chinese
            and Korean are read.
        reference: Aware; "yesterday" is the day before it, and "in May" its last May. Days are those of UTC.
    """
    reference = reference.astimezone(UTC)
    read: list[tuple[Phrase, Span]] = []
    for phrase in phrases(text)[:MOST]:
        span = _read(phrase, reference)
        if span is not None:
            read.append((phrase, _opened(span, phrase, text.lower(), reference)))
    return _stretches(read, text.lower())


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
        "DATE_ORDER": "DMY" if phrase.kind == "dotted" else "YMD" if phrase.kind == "iso" else "MDY",
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
    found = _YEAR.search(phrase.text)
    year = int(found.group()) if found else reference.year
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
    year = _YEAR.search(phrase.text)
    if year:
        return season(name, int(year.group()), phrase.text)
    near = [season(name, reference.year + step, phrase.text) for step in (-2, -1, 0, 1)]
    if "next" in phrase.text:
        return next(one for one in near if one.start and one.start > reference)
    ended = re.match(r"last|past|previous", phrase.text)
    return [one for one in near if one.start and one.end and (one.end if ended else one.start) <= reference][-1]


def _weekend(phrase: Phrase, reference: datetime) -> Span:
    """Read the weekend of this week, the one before or the one after; weeks begin on Mondays."""
    step = 0 if "this" in phrase.text else 7 if "next" in phrase.text else -7
    week = unit(reference + timedelta(days=step), "week")
    return Span(week.end - timedelta(days=2) if week.end else None, week.end, "stretch", phrase.text)


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
    start = span.end - timedelta(days=7) if which == "last" else span.start + timedelta(days=7 * _NTH.index(which))
    return Span(start, start + timedelta(days=7), "week", phrase.text)


def _range(phrase: Phrase, reference: datetime) -> Span | None:
    first, last = _RANGE.split(phrase.text.split(" ", 1)[1], maxsplit=1)
    year = _YEAR.search(last)
    if year and not _YEAR.search(first):
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
    return Phrase(words, phrase.start, phrase.end, "plain", phrase.language)


def _opened(span: Span, phrase: Phrase, lowered: str, reference: datetime) -> Span:
    """Return "since X" as from X to now, and "before X" as all that lies before it."""
    said = _OPENING.match(phrase.text) or _OPEN.search(lowered[: phrase.start])
    word = said.group(1) if said else ""
    if word in _SINCE and span.start is not None and span.end is not None:
        start = span.start if word == "since" else span.end
        return Span(start, max(start, reference), "stretch", phrase.text) if start <= reference else span
    if word in _UNTIL and phrase.kind != "ago":
        return Span(None, span.start, "stretch", phrase.text)
    return span


def _stretches(read: list[tuple[Phrase, Span]], lowered: str) -> list[Span]:
    """Return the spans, those of "between X and Y" made one."""
    spans: list[Span] = []
    for at, (phrase, span) in enumerate(read):
        before = read[at - 1][0] if at else None
        if before and _AND.match(lowered[before.end : phrase.start]) and _BETWEEN.search(lowered[: before.start]):
            spans[-1] = joined(spans[-1], span)
        else:
            spans.append(span)
    return spans
