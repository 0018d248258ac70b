"""Reading of ICS texts: the times at which their events make somebody busy.

The text comes from outside: it is shown beside a workload, and never obeyed or stored as memory.
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

_MOST_RECURRENCES = 20_000
"""Most recurrences of one event, counted from its first: 54 years of a daily event."""
_MOST_PROBLEMS = 20
_LONGEST_TITLE = 200
_LONGEST_ZONE = 50_000

_EDGES = re.compile(r"^(?P<edge>BEGIN|END):(?P<what>VEVENT|VTIMEZONE)[ \t]*\r?$", re.I | re.M)
_OWN_ZONE = re.compile(r"^X-WR-TIMEZONE:(.*)$", re.I | re.M)
_OWNER = re.compile(r"^X-WR-CALNAME:\s*([^\s@:]+@[^\s@:]+)\s*$", re.I | re.M)
_TZID = re.compile(r"^TZID(?:;[^:]*)?:(.*?)\s*$", re.I | re.M)
_RANGE = re.compile(r"^(RECURRENCE-ID[^:]*?);RANGE=THISANDFUTURE([^:]*:.*)$", re.I)
_FOLD = re.compile(r"\r?\n[ \t]")
_NEEDED_PROPERTIES = re.compile(
    r"(?:UID|DTSTART|DTEND|DURATION|RRULE|RDATE|EXDATE|RECURRENCE-ID|STATUS|TRANSP|SUMMARY)"
    r"(?=[;:])",
    re.I,
)
_DAY_OF = re.compile(
    r"^(DTSTART|DTEND)(?:;[^:\r\n]*)?"
    r":(\d{4}(?:0[1-9]|1[0-2])(?:0[1-9]|[12]\d|3[01]))(?:T\d{6}Z?)?\r?$",
    re.I | re.M,
)
_MALFORMED = (CalendarError, ValueError, TypeError, ArithmeticError, LookupError, AttributeError)
"""Exceptions that the library raises for malformed texts."""


@dataclass(frozen=True, slots=True)
class _Block:
    """The text between an event's BEGIN and END.

    Attributes:
        line: The line of BEGIN, from 1.
        is_range: It changes one time of a series and all following times.
        is_declined: The calendar's owner declined it.
    """

    line: int
    text: str
    is_range: bool = False
    is_declined: bool = False


@dataclass(frozen=True, slots=True)
class _Future:
    """A change of a series from one time on: RECURRENCE-ID;RANGE=THISANDFUTURE."""

    since: datetime | date
    shift: timedelta
    duration: timedelta
    title: str
    is_busy: bool


def read_ics(text: str, source: str, start: datetime, end: datetime, zone: tzinfo) -> Agenda:
    """Return the busy times of an ICS text in a period, and its problems with their lines.

    Args:
        text: The ICS text.
        source: Its name in problems.
        start: The beginning of the period.
        end: The end of the period, excluded.
        zone: Zone of whole days and of floating times.
    """
    problems: list[str] = []
    blocks, frame = _split(text, source, problems)
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
        (event.uid, _replaced_instant(event, zone))
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
            problems.append(f"{source}:{line}: {_error_text(error)}")
    busies.sort(key=lambda busy: (busy.start, busy.end, busy.title))
    if len(problems) > _MOST_PROBLEMS:
        problems[_MOST_PROBLEMS:] = [f"{source}: {len(problems) - _MOST_PROBLEMS} more like these"]
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
    """Normalise an event's lines for the library, and add guesses to the problems."""
    lines = _needed(block.text)
    is_range = any(_RANGE.match(line) for line in lines)
    text, guessed = normalised([_RANGE.sub(r"\1\2", line) for line in lines], own_zones, zone)
    problems += [f"{source}:{block.line}: {problem}" for problem in dict.fromkeys(guessed)]
    declined = is_declined(_unfolded(block.text), owner)
    return _Block(block.line, "\n".join(text), is_range, declined)


def _futures(events: Sequence[Event], zone: tzinfo) -> dict[str, list[_Future]]:
    """Return UID of a series → its changes that apply from a time on, the earliest first."""
    futures: dict[str, list[_Future]] = {}
    for event in events:
        since = _replaced_instant(event, zone)
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
    """Return the line with the calendar's own zone, under its IANA name, if it has one.

    An unknown zone is added to the problems.
    """
    match = _OWN_ZONE.search(text)
    name = match[1].strip() if match else ""
    if not name:
        return []
    zone = zone_named(name)
    if isinstance(zone, ZoneInfo):
        return [f"X-WR-TIMEZONE:{zone.key}"]
    problems.append(f"{source}: time zone {name[:60]!r} is unknown: read as your own")
    return []


def _split(text: str, source: str, problems: list[str]) -> tuple[list[_Block], list[str]]:
    """Split a text into its events and their frame: time zones and the calendar's own zone."""
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
                frame.append(f"BEGIN:VTIMEZONE{_with_single_observances(body)}END:VTIMEZONE")
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


def _with_single_observances(body: str) -> str:
    """Add a rule with COUNT=1 to a zone's observances without a rule.

    The library ignores an observance that has none.
    """

    def add_rule(match: re.Match[str]) -> str:
        if re.search(r"^R(RULE|DATE)[;:]", match[2], re.I | re.M):
            return match[0]
        return f"BEGIN:{match[1]}\nRRULE:FREQ=YEARLY;COUNT=1{match[2]}END:{match[1]}"

    if len(body) > _LONGEST_ZONE:
        return body
    return re.sub(r"(?is)BEGIN:(STANDARD|DAYLIGHT)(.*?)END:\1", add_rule, body)


def _unfolded(body: str) -> list[str]:
    return _FOLD.sub("", body).splitlines()


def _needed(body: str) -> list[str]:
    """Return the lines of an event with its times and title, without those of its alarms."""
    lines: list[str] = []
    depth = 0
    for line in _unfolded(body):
        start = line[:6].upper()
        depth += start == "BEGIN:"
        if not depth and _NEEDED_PROPERTIES.match(line):
            lines.append(line)
        depth -= start.startswith("END:")
    return lines


def _may_fall(text: str, first: str, last: str) -> bool:
    """Return whether an event may fall between two days, from the dates in its text alone.

    In doubt, return True.
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
    """Yield line and event for each block.

    If the library refuses the blocks, they are halved until the malformed event is isolated and
    added to the problems.
    """
    if not blocks:
        return
    try:
        events = _parse_events(blocks, frame)
    except _MALFORMED as error:
        if len(blocks) > 1:
            half = len(blocks) // 2
            yield from _parsed(blocks[:half], frame, source, problems)
            yield from _parsed(blocks[half:], frame, source, problems)
        elif frame:  # a malformed zone must not lose the events that do not use it
            yield from _parsed(blocks, (), source, problems)
        else:
            problems.append(f"{source}:{blocks[0].line}: {_error_text(error)}")
        return
    yield from zip((block.line for block in blocks), events, strict=True)


def _parse_events(blocks: Sequence[_Block], frame: Sequence[str]) -> list[Event]:
    inner = "\n".join(f"BEGIN:VEVENT\n{block.text}\nEND:VEVENT" for block in blocks)
    text = "\n".join(["BEGIN:VCALENDAR", "VERSION:2.0", "PRODID:-", *frame, inner, "END:VCALENDAR"])
    calendars: list[Calendar] = CalendarStream.from_ics(text).calendars
    return calendars[0].events


def _replaced_instant(event: Event, zone: tzinfo) -> datetime | date:
    """Return the time of a recurring event that this changed event replaces."""
    assert event.recurrence_id is not None  # noqa: S101 - callers check it
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
    """Yield begin, end and title for each time of an event that begins before ``end``."""
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
        if count == _MOST_RECURRENCES:
            raise ValueError(f"it recurs more than {_MOST_RECURRENCES:,} times")
        span = adapter.get(when).key
        if span.start + min(earliest, timedelta(0)) >= end:
            return
        instant = span.start.astimezone(UTC) if isinstance(when, datetime) else when
        if (event.uid, instant) in moved:
            continue
        change = None
        for future in futures:  # the earliest first
            if future.since <= instant:  # pyright: ignore[reportOperatorIssue]
                change = future
        if change is None:
            yield span.start, span.end, title
        elif change.is_busy:
            begins = (span.start.astimezone(zone).replace(tzinfo=None) + change.shift).replace(
                tzinfo=zone
            )
            yield begins, begins + change.duration, change.title or title


def _error_text(error: Exception) -> str:
    """Return an error's message without the calendar's own texts."""
    text = str(error).rsplit("component: ", 1)[-1].removeprefix("Value error, ")
    plain = first_line(re.sub(r"'[^']*'", "'…'", text))
    return shorten(plain, 160, placeholder=" …") or type(error).__name__
