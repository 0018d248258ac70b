"""When somebody is busy, by their calendars."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, slots=True)
class Busy:
    """One event, or one time of one that recurs; half-open.

    Attributes:
        all_day: It says days, not hours.
        title: As the calendar has it, one line.
    """

    start: datetime
    end: datetime
    all_day: bool
    title: str


@dataclass(frozen=True, slots=True)
class Agenda:
    """What calendars say of a stretch of time.

    Attributes:
        events: By their start; cancelled ones and those that leave one free are not among them.
        problems: What could not be read, named by file and line; all the rest was.
    """

    events: tuple[Busy, ...] = ()
    problems: tuple[str, ...] = ()
