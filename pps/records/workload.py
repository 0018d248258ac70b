"""Workload: whether the open tasks and the calendars of some days fit into their hours."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import MAXYEAR, MINYEAR, date, datetime, timedelta
from typing import Literal, TypeAlias

from pps.core.errors import InvalidRequest
from pps.core.kinds import Kinds
from pps.core.record_values import Record, RecordGraph
from pps.core.text import first_line
from pps.core.time import CoarseTime, interval, later, now, read_moment
from pps.records.agenda import Agenda
from pps.records.records import Records
from pps.records.work_hours import WorkHours

Zone: TypeAlias = Literal["green", "yellow", "red"]

OPEN = ("todo", "in_progress")
"""The states of a task whose effort is still to be made."""
YELLOW = 75.0
"""Percent of the working hours from which on a day is yellow."""
RED = 85.0
"""Percent of the working hours above which a day is red."""
DEFAULT_DAYS = 7
MOST_DAYS = 366
_EFFORT = "effort_hours"
_DUE = "due_date"
_SCHEDULED = "SCHEDULED_AS"
_DETAILS = 100
_NAMED = 5


@dataclass(frozen=True, slots=True)
class TaskLoad:
    """An open task that falls into the days.

    Attributes:
        hours: Of its effort that no time block holds; None when its effort is not known.
        due: Absent for one that only time blocks bring here.
    """

    id: str
    title: str
    state: str
    hours: float | None
    due: date | None = None
    overdue: bool = False


@dataclass(frozen=True, slots=True)
class EventLoad:
    """An event of a calendar."""

    title: str
    start: datetime
    end: datetime
    all_day: bool


@dataclass(frozen=True, slots=True)
class DayLoad:
    """The load of one day.

    Attributes:
        calendar_hours: Hours of events and time blocks; overlaps count once.
    """

    day: date
    hours_available: float
    task_hours: float
    calendar_hours: float
    utilisation: float
    zone: Zone


@dataclass(frozen=True, slots=True)
class Workload:
    """How full some days are.

    Attributes:
        start_date, end_date: Half-open, days of ``time_zone``.
        utilisation: Percent that is scheduled of what is available; 999 when there is something and
            no hours for it.
        not_counted: Open tasks without a date, and those in the days without an effort.
        problems: Calendars that could not be read, so that their events may be missing.
        tasks, events: Only where details are asked for, at most 100 each.
    """

    start_date: date
    end_date: date
    time_zone: str
    hours_available: float
    hours_scheduled: float
    task_hours: float
    calendar_hours: float
    utilisation: float
    zone: Zone
    days: tuple[DayLoad, ...]
    recommendations: tuple[str, ...]
    not_counted: Mapping[str, int] = field(default_factory=dict[str, int])
    problems: tuple[str, ...] = ()
    tasks: tuple[TaskLoad, ...] = ()
    events: tuple[EventLoad, ...] = ()


@dataclass(frozen=True, slots=True)
class _TimeStretch:
    start: datetime
    end: datetime
    all_day: bool = False


async def workload(
    reads: Records,
    kinds: Kinds,
    calendars: WorkHours,
    *,
    start: date | None = None,
    end: date | None = None,
    with_calendar: bool = True,
) -> Workload:
    """Return the workload of the days from ``start`` (today) to ``end`` (seven days later).

    Raises:
        InvalidRequest: The days are none, or more than 366.
    """
    today = now().astimezone(calendars.zone).date()
    start = start or today
    for name, day in (("start_date", start), ("end_date", end)):
        if day and not MINYEAR < day.year < MAXYEAR:
            raise InvalidRequest(name, f"must be in the years {MINYEAR + 1} to {MAXYEAR - 1}")
    end = end or start + timedelta(days=DEFAULT_DAYS)
    if end <= start:
        raise InvalidRequest("end_date", "must be after start_date; it is the day after the last")
    if (end - start).days > MOST_DAYS:
        raise InvalidRequest("end_date", f"must be at most {MOST_DAYS} days after start_date")
    days = [start + timedelta(days=offset) for offset in range((end - start).days)]
    edges = [datetime(day.year, day.month, day.day, tzinfo=calendars.zone) for day in (*days, end)]
    agenda = await calendars.agenda(edges[0], edges[-1]) if with_calendar else Agenda()
    return _assessed(_Tasks(await reads.graph(), kinds, calendars), days, edges, today, agenda)


class _Tasks:
    """The open tasks of an entity, as its packs define tasks, and the time blocked for them."""

    def __init__(self, graph: RecordGraph, kinds: Kinds, calendars: WorkHours) -> None:
        tasks = {kind.name for kind in kinds if _EFFORT in kind.fields and kind.lifecycle}
        blocks = {relation.target for relation in kinds.relations() if relation.name == _SCHEDULED}
        self.calendars = calendars
        self.open = {
            record.id: record
            for record in graph.records.values()
            if record.kind in tasks and record.status == "active" and record.state in OPEN
        }
        self.hours: dict[str, float] = {}
        self.blocks: list[_TimeStretch] = []
        holders: dict[str, list[str]] = defaultdict(list)
        for relation in graph.relations:
            if relation.type == _SCHEDULED:
                holders[relation.target].append(relation.source)
        for record in graph.records.values():
            if record.kind not in blocks or record.status != "active":
                continue
            stretch = self._stretch(record)
            of = [task for task in holders[record.id] if task in self.open]
            if stretch and (of or not holders[record.id]):
                self.blocks.append(stretch)
                for task in of:
                    self.hours[task] = self.hours.get(task, 0.0) + _hours(stretch) / len(of)

    def _stretch(self, record: Record) -> _TimeStretch | None:
        ends = [self._moment(record.fields.get(name)) for name in ("start", "end")]
        return _TimeStretch(ends[0], ends[1]) if ends[0] and ends[1] and ends[0] < ends[1] else None

    def _moment(self, value: object) -> datetime | None:
        """Return a field's instant; of a day, month or year its first, on the person's clock."""
        if not isinstance(value, str):
            return None
        moment = read_moment(value, self.calendars.zone)
        return interval(moment, self.calendars.zone)[0]

    def due(self, task: Record) -> date | None:
        """Return the last day on which a task is in time; of a month or year the last one."""
        value = task.fields.get(_DUE)
        if not isinstance(value, str):
            return None
        due = read_moment(value)
        if isinstance(due, CoarseTime):
            due = later(interval(due)[1], -timedelta(days=1))
        return due.date()

    def left(self, task: Record) -> float | None:
        """Return the effort of a task that no block holds; None when it is not known."""
        effort = task.fields.get(_EFFORT)
        return (
            max(0.0, effort - self.hours.get(task.id, 0.0))
            if isinstance(effort, int | float)
            else None
        )


def _assessed(
    tasks: _Tasks, dates: Sequence[date], edges: Sequence[datetime], today: date, agenda: Agenda
) -> Workload:
    by_day: dict[date, float] = defaultdict(float)
    loads: list[TaskLoad] = []
    undated: list[str] = []
    for task in tasks.open.values():
        due = tasks.due(task)
        left = tasks.left(task)
        is_overdue = due is not None and due < today and dates[0] <= today <= dates[-1]
        day = today if is_overdue else due
        if due is None and task.id not in tasks.hours:
            undated.append(f"“{first_line(task.title)}”")
        if day is not None and dates[0] <= day <= dates[-1]:
            by_day[day] += left or 0.0
            loads.append(TaskLoad(task.id, task.title, task.state, left, due, is_overdue))
    stretches = [
        _TimeStretch(event.start, event.end, event.all_day) for event in agenda.events
    ] + tasks.blocks
    loads.sort(key=lambda load: (load.due or today, load.title, load.id))
    booked = _booked(stretches, edges, [tasks.calendars.hours_of(day) for day in dates])
    days = tuple(
        _day(day, tasks.calendars.hours_of(day), by_day[day], hours)
        for day, hours in zip(dates, booked, strict=True)
    )
    available = round(sum(day.hours_available for day in days), 2)
    effort = round(sum(day.task_hours for day in days), 2)
    calendar = round(sum(day.calendar_hours for day in days), 2)
    percent = _percent(effort + calendar, available)
    skipped = {
        "without_date": len(undated),
        "without_effort": sum(load.hours is None for load in loads),
    }
    return Workload(
        start_date=dates[0],
        end_date=dates[-1] + timedelta(days=1),
        time_zone=tasks.calendars.zone.key,
        hours_available=available,
        hours_scheduled=round(effort + calendar, 2),
        task_hours=effort,
        calendar_hours=calendar,
        utilisation=percent,
        zone=zone_of(percent),
        days=days,
        recommendations=recommended(
            days, loads, skipped, agenda.problems, percent, sorted(undated)
        ),
        not_counted={name: count for name, count in skipped.items() if count},
        problems=agenda.problems,
        tasks=tuple(loads[:_DETAILS]),
        events=tuple(
            EventLoad(event.title, event.start, event.end, event.all_day)
            for event in agenda.events[:_DETAILS]
        ),
    )


def zone_of(percent: float) -> Zone:
    """Return the zone of a utilisation in percent: green below 75, red above 85, yellow between."""
    return "green" if percent < YELLOW else "yellow" if percent <= RED else "red"


def _day(day: date, available: float, effort: float, calendar: float) -> DayLoad:
    percent = _percent(effort + calendar, available)
    return DayLoad(day, available, round(effort, 2), round(calendar, 2), percent, zone_of(percent))


def _percent(scheduled: float, available: float) -> float:
    if not available:
        return 999.0 if scheduled else 0.0
    return round(100 * scheduled / available, 1)


def _booked(
    stretches: Iterable[_TimeStretch], edges: Sequence[datetime], available: Sequence[float]
) -> list[float]:
    """Return the booked hours of each day, overlaps counted once.

    An event of a whole day takes all hours of that day.
    """
    ordered = sorted(stretches, key=lambda stretch: stretch.start)
    booked: list[float] = []
    for start, end, hours in zip(edges[:-1], edges[1:], available, strict=True):
        taken = 0.0
        until = start
        is_whole = False
        for event in ordered:
            if event.start >= end:
                break
            if event.end > start:
                is_whole = is_whole or event.all_day or (event.start <= start and event.end >= end)
                first = max(event.start, until)
                last = min(event.end, end)
                if last > first and not event.all_day:
                    taken = taken + _hours(_TimeStretch(first, last))
                    until = last
        booked.append(max(hours, 0.0) if is_whole else taken)
    return booked


def _hours(stretch: _TimeStretch) -> float:
    return (stretch.end.timestamp() - stretch.start.timestamp()) / 3600


def recommended(
    request: Sequence[DayLoad],
    tasks: Sequence[TaskLoad],
    skipped: Mapping[str, int],
    problems: Sequence[str],
    whole: float,
    undated: Sequence[str],
) -> tuple[str, ...]:
    """Return what to do about it, the most pressing first."""
    sentences: list[str] = []
    late = [task for task in tasks if task.overdue]
    if late:
        hours = sum(task.hours or 0 for task in late)
        sentences.append(
            f"{len(late)} overdue with {hours:g} h are counted today: do, move or drop them"
        )
    room = min(request, key=_over)
    for red_day in sorted((day for day in request if day.zone == "red"), key=_over, reverse=True)[
        :3
    ]:
        to = f", such as to {room.day} ({room.utilisation:g} %)" if room.zone == "green" else ""
        movable = min(_over(red_day), red_day.task_hours)
        task_text = _movable(red_day, tasks)
        if movable:
            sentences.append(
                f"{red_day.day} is at {red_day.utilisation:g} %: move {movable:.1f} h "
                f"away{to}{task_text}"
            )
        else:
            sentences.append(
                f"{red_day.day} is at {red_day.utilisation:g} % by its calendar alone: plan no "
                "task there"
            )
    if whole > 100:
        sentences.append(
            "The whole time is overbooked: put off or drop what serves no goal, before anything "
            "new is taken on"
        )
    elif whole > RED:
        sentences.append(
            "The whole time is nearly full: put off or drop what serves no goal, before anything "
            "new is taken on"
        )
    elif whole >= YELLOW:
        sentences.append("Little room is left: take on nothing new without moving something")
    if skipped.get("without_effort"):
        have = "task has" if skipped["without_effort"] == 1 else "tasks have"
        sentences.append(
            f"{skipped['without_effort']} {have} no effort_hours, counted as 0: estimate the effort"
        )
    if skipped.get("without_date"):
        more = f" and {len(undated) - _NAMED} more" if len(undated) > _NAMED else ""
        head = "1 open task has" if len(undated) == 1 else f"{len(undated)} open tasks have"
        sentences.append(f"{head} no due_date, not counted: {', '.join(undated[:_NAMED])}{more}")
    if problems:
        sentences.append("Not every calendar could be read: events may be missing")
    return tuple(sentences)


def _over(day: DayLoad) -> float:
    return day.task_hours + day.calendar_hours - day.hours_available * YELLOW / 100


def _movable(day: DayLoad, tasks: Sequence[TaskLoad]) -> str:
    own = [task for task in tasks if task.due == day.day and task.hours]
    if not own:
        return ""
    largest = max(own, key=lambda task: task.hours or 0)
    return f"; its largest task is “{first_line(largest.title)}” ({largest.hours:g} h)"
