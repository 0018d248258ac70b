"""ICS files: when they say that somebody is busy.

Their text is data from outside: it is shown beside a workload, never obeyed and never kept as
memory.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta, tzinfo
from textwrap import shorten
from zoneinfo import ZoneInfo

from ical.calendar import Calendar
from ical.calendar_stream import CalendarStream
from ical.event import Event, EventStatus
from ical.exceptions import CalendarError
from ical.recur_adapter import RecurAdapter

from pps.core.text import first_line
from pps.features.calendar.ics_lines import is_declined, normalised, zone_named
from pps.records.agenda import Agenda, Busy

_RECURS = 20_000
"""Most times of one event that are counted from its first: 54 years of every day."""
_PROBLEMS = 20
_LONGEST_TITLE = 200
_LONGEST_ZONE = 50_000

_EDGES = re.compile(r"^(?P<edge>BEGIN|END):(?P<what>VEVENT|VTIMEZONE)[ \t]*\r?$", re.I | re.M)
_OWN_ZONE = re.compile(r"^X-WR-TIMEZONE:(.*)$", re.I | re.M)
_OWNER = re.compile(r"^X-WR-CALNAME:\s*([^\s@:]+@[^\s@:]+)\s*$", re.I | re.M)
_TZID = re.compile(r"^TZID(?:;[^:]*)?:(.*?)\s*$", re.I | re.M)
_RANGE = re.compile(r"^(RECURRENCE-ID[^:]*?);RANGE=THISANDFUTURE([^:]*:.*)$", re.I)
_FOLD = re.compile(r"\r?\n[ \t]")
_NEEDED = re.compile(
    r"(?:UID|DTSTART|DTEND|DURATION|RRULE|RDATE|EXDATE|RECURRENCE-ID|STATUS|TRANSP|SUMMARY)(?=[;:])",
    re.I,
)
_DAY_OF = re.compile(
    r"^(DTSTART|DTEND)(?:;[^:\r\n]*)?:(\d{4}(?:0[1-9]|1[0-2])(?:0[1-9]|[12]\d|3[01]))(?:T\d{6}Z?)?\r?$",
    re.I | re.M,
)
_MALFORMED = (CalendarError, ValueError, TypeError, ArithmeticError, LookupError, AttributeError)
"""What the library raises of a text that is no calendar."""


@dataclass(frozen=True, slots=True)
class _Block:
    """What stands between an event's edges, and the line on which it begins, from 1.

    Attributes:
        is_range: It changes one time of a series and all that follow.
        is_declined: Whose calendar it is declined it.
    """

    line: int
    text: str
    is_range: bool = False
    is_declined: bool = False


@dataclass(frozen=True, slots=True)
class _Future:
    """A change of one time of a series and of all that follow: RECURRENCE-ID;RANGE=THISANDFUTURE."""

    since: datetime | date
    shift: timedelta
    duration: timedelta
    title: str
    is_busy: bool


def read_ics(text: str, source: str, start: datetime, end: datetime, zone: tzinfo) -> Agenda:
    """Return what an ICS text says of a stretch of time; what is broken in it is named by its line.

    ``source`` is its name for that. Days, and hours without a zone (floating ones), are those of
    ``zone``.
    """
    problems: list[str] = []
    blocks, frame = _cut(text, source, problems)
    own_zones = frozenset(_TZID.findall("\n".join(frame)))
    named = _OWNER.search(text)
    owner = named[1] if named else ""
    blocks = [_readable(block, source, own_zones, owner, zone, problems) for block in blocks]
    window = tuple(
        moment.astimezone(zone).strftime("%Y%m%d")
        for moment in (start - timedelta(days=2), end + timedelta(1))
    )
    near = [block for block in blocks if _may_fall(block.text, *window)]
    events: list[tuple[int, Event]] = []
    for line, event in _parsed(near, frame, source, problems):
        if event.dtstart is None:
            problems.append(f"{source}:{line}: it has no DTSTART: it takes no time")
        else:
            events.append((line, event))
    ranged = {block.line for block in blocks if block.is_range}
    moved = {
        (event.uid, _instant(event, zone))
        for line, event in events
        if event.recurrence_id and line not in ranged
    }
    futures = _futures([event for line, event in events if line in ranged], zone)
    declined = {block.line for block in blocks if block.is_declined}
    busies: list[Busy] = []
    for line, event in events:
        if line in declined or line in ranged or not _is_busy(event):
            continue
        try:
            for begin, stop, title in _times(event, end, zone, moved, futures.get(event.uid, [])):
                if stop > start and begin < end and stop > begin:
                    all_day = not isinstance(event.dtstart, datetime)
                    busies.append(Busy(begin, stop, all_day, first_line(title)[:_LONGEST_TITLE]))
        except _MALFORMED as error:
            problems.append(f"{source}:{line}: {_why(error)}")
    busies.sort(key=lambda busy: (busy.start, busy.end, busy.title))
    if len(problems) > _PROBLEMS:
        problems[_PROBLEMS:] = [f"{source}: {len(problems) - _PROBLEMS} more like these"]
    return Agenda(tuple(busies), tuple(problems))


def _is_busy(event: Event) -> bool:
    is_free = (event.transparency or "").upper() == "TRANSPARENT"
    return event.status != EventStatus.CANCELLED and not is_free


def _readable(
    block: _Block,
    source: str,
    own_zones: frozenset[str],
    owner: str,
    zone: tzinfo,
    problems: list[str],
) -> _Block:
    """Return an event's block with its lines as the library reads them.

    What was guessed is told.
    """
    lines = _needed(block.text)
    is_range = any(_RANGE.match(line) for line in lines)
    text, guessed = normalised([_RANGE.sub(r"\1\2", line) for line in lines], own_zones, zone)
    problems += [f"{source}:{block.line}: {problem}" for problem in dict.fromkeys(guessed)]
    declined = is_declined(_unfolded(block.text), owner)
    return _Block(block.line, "\n".join(text), is_range, declined)


def _futures(events: Sequence[Event], zone: tzinfo) -> dict[str, list[_Future]]:
    """Return by series the changes that hold from one of its times on, the earliest first."""
    futures: dict[str, list[_Future]] = {}
    for event in events:
        since = _instant(event, zone)
        span = event.timespan_of(zone)
        if isinstance(since, datetime):
            shift = span.start.astimezone(UTC) - since
        else:
            shift = span.start.date() - since
        futures.setdefault(str(event.uid), []).append(
            _Future(
                since,
                shift,
                span.end - span.start,
                event.summary or "",
                _is_busy(event),
            )
        )
    for changes in futures.values():
        changes.sort(key=lambda change: str(change.since))
    return futures


def _own_zone(text: str, source: str, problems: list[str]) -> list[str]:
    """Return the line of the calendar's own zone, by its IANA name.

    A zone that nobody knows is told.
    """
    match = _OWN_ZONE.search(text)
    if match is None or not (name := match[1].strip()):
        return []
    zone = zone_named(name)
    if isinstance(zone, ZoneInfo):
        return [f"X-WR-TIMEZONE:{zone.key}"]
    problems.append(f"{source}: time zone {name[:60]!r} is unknown: read as your own")
    return []


def _cut(text: str, source: str, problems: list[str]) -> tuple[list[_Block], list[str]]:
    """Return the events of a text and, as their frame, its time zones and the calendar's own zone."""
    blocks: list[_Block] = []
    frame = _own_zone(text, source, problems)
    name = ""
    began = 0
    inner = 0
    line = 1
    at = 0
    for edge in _EDGES.finditer(text):
        line = line + text.count("\n", at, edge.start())
        at = edge.start()
        component = edge["what"].upper()
        if edge["edge"].upper() == "END" and component == name:
            body = text[inner : edge.start()]
            if component == "VEVENT":
                blocks.append(_Block(began, body))
            else:
                frame.append(f"BEGIN:VTIMEZONE{_zone(body)}END:VTIMEZONE")
            name = ""
        elif edge["edge"].upper() == "BEGIN":
            if name:
                problems.append(f"{source}:{began}: BEGIN:{name} has no end")
            name = component
            began = line
            inner = edge.end()
    if name:
        problems.append(f"{source}:{began}: BEGIN:{name} has no end")
    if "BEGIN:VCALENDAR" not in text.upper():
        problems.append(f"{source}:1: is no calendar, it has no BEGIN:VCALENDAR")
    return blocks, frame


def _zone(body: str) -> str:
    """Return a time zone in which what began once and never recurs says so: the library overlooks it otherwise."""

    def once(match: re.Match[str]) -> str:
        recurs = re.search(r"^R(RULE|DATE)[;:]", match[2], re.I | re.M)
        return (
            match[0]
            if recurs
            else f"BEGIN:{match[1]}\nRRULE:FREQ=YEARLY;COUNT=1{match[2]}END:{match[1]}"
        )

    return (
        body
        if len(body) > _LONGEST_ZONE
        else re.sub(r"(?is)BEGIN:(STANDARD|DAYLIGHT)(.*?)END:\1", once, body)
    )


def _unfolded(body: str) -> list[str]:
    return _FOLD.sub("", body).splitlines()


def _needed(body: str) -> list[str]:
    """Return the lines of an event that say when it is and what it is called, without its alarms."""
    lines: list[str] = []
    depth = 0
    for line in _unfolded(body):
        start = line[:6].upper()
        depth += start == "BEGIN:"
        if not depth and _NEEDED.match(line):
            lines.append(line)
        depth -= start.startswith("END:")
    return lines


def _may_fall(text: str, first: str, last: str) -> bool:
    """Tell, by the days in its text alone, whether an event may fall between two days.

    When in doubt, it may.
    """
    days = {name.upper(): day for name, day in _DAY_OF.findall(text)}
    upper = text.upper()
    if "DTSTART" not in days or "RECURRENCE-ID" in upper or "RDATE" in upper:
        return True
    return days["DTSTART"] <= last and (
        "RRULE" in upper or "DURATION" in upper or days.get("DTEND", days["DTSTART"]) >= first
    )


def _parsed(
    blocks: Sequence[_Block], frame: Sequence[str], source: str, problems: list[str]
) -> Iterator[tuple[int, Event]]:
    """Yield the events with their lines.

    One that the library refuses is named, by halving until it is found.
    """
    if not blocks:
        return
    try:
        events = _library(blocks, frame)
    except _MALFORMED as error:
        if len(blocks) > 1:
            half = len(blocks) // 2
            yield from _parsed(blocks[:half], frame, source, problems)
            yield from _parsed(blocks[half:], frame, source, problems)
        elif frame:  # a broken time zone breaks none of the events that do without it
            yield from _parsed(blocks, (), source, problems)
        else:
            problems.append(f"{source}:{blocks[0].line}: {_why(error)}")
        return
    yield from zip((block.line for block in blocks), events, strict=True)


def _library(blocks: Sequence[_Block], frame: Sequence[str]) -> list[Event]:
    inner = "\n".join(f"BEGIN:VEVENT\n{block.text}\nEND:VEVENT" for block in blocks)
    text = "\n".join(["BEGIN:VCALENDAR", "VERSION:2.0", "PRODID:-", *frame, inner, "END:VCALENDAR"])
    calendars: list[Calendar] = CalendarStream.from_ics(text).calendars
    return calendars[0].events


def _instant(event: Event, zone: tzinfo) -> datetime | date:
    """Return which time of an event that recurs this one takes the place of."""
    assert event.recurrence_id is not None  # noqa: S101 - asked before
    value = type(event.recurrence_id).to_value(event.recurrence_id)
    if not isinstance(value, datetime):
        return value
    own = event.recurrence_id.tzinfo or value.tzinfo
    start = event.dtstart
    fallback = start.tzinfo if isinstance(start, datetime) and start.tzinfo else zone
    return value.replace(tzinfo=own or fallback).astimezone(UTC)


def _times(
    event: Event,
    end: datetime,
    zone: tzinfo,
    moved: set[tuple[str, datetime | date]],
    futures: Sequence[_Future],
) -> Iterator[tuple[datetime, datetime, str]]:
    """Yield each time of an event that begins before ``end``, with what it is called then."""
    title = event.summary or ""
    recurs = event.as_rrule()
    if recurs is None:
        span = event.timespan_of(zone)
        yield span.start, span.end, title
        return
    if event.rrule and event.rrule.freq in ("MINUTELY", "SECONDLY"):
        raise ValueError("it recurs more often than every hour")
    adapter = RecurAdapter(event, zone)
    earliest = min((change.shift for change in futures), default=timedelta(0))
    for count, when in enumerate(recurs):
        if count == _RECURS:
            raise ValueError(f"it recurs more than {_RECURS:,} times")
        span = adapter.get(when).key
        if span.start + min(earliest, timedelta(0)) >= end:
            return
        instant = span.start.astimezone(UTC) if isinstance(when, datetime) else when
        if (event.uid, instant) in moved:
            continue
        change = next((each for each in reversed(futures) if each.since <= instant), None)  # pyright: ignore[reportOperatorIssue]
        if change is None:
            yield span.start, span.end, title
        elif change.is_busy:
            begins = (span.start.astimezone(zone).replace(tzinfo=None) + change.shift).replace(
                tzinfo=zone
            )
            yield begins, begins + change.duration, change.title or title


def _why(error: Exception) -> str:
    """Return what is wrong in a line, without what the calendar says."""
    text = str(error).rsplit("component: ", 1)[-1].removeprefix("Value error, ")
    return (
        shorten(first_line(re.sub(r"'[^']*'", "'…'", text)), 160, placeholder=" …")
        or type(error).__name__
    )
