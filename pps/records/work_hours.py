"""The hours that an entity's days have for work, and the calendars that a feature provides."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, date, datetime, tzinfo
from pathlib import Path
from typing import TypeAlias
from zoneinfo import ZoneInfo

from pps.config.settings import CalendarSettings, Settings
from pps.config.zones import zone_name
from pps.records.agenda import Agenda


class WorkHours:
    """The hours that an entity's days have for work, without any calendar.

    Args:
        zone: The entity's, where the settings name none for its days.
    """

    def __init__(self, settings: CalendarSettings, zone: tzinfo = UTC) -> None:
        self.zone = ZoneInfo(settings.time_zone or zone_name(zone))
        self._settings = settings

    def hours_of(self, day: date) -> float:
        """Return the hours that a day of the week has for work."""
        hours = self._settings.hours
        return hours[day.weekday()] if isinstance(hours, tuple) else hours

    async def agenda(self, start: datetime, end: datetime) -> Agenda:
        """Return what calendars say of a time: nothing here."""
        del start, end
        return Agenda()


MakeCalendars: TypeAlias = Callable[[Settings, Mapping[str, object], Path, tzinfo], WorkHours]
"""Settings, what an entity sets itself, its folder and its zone → its hours and calendars."""


class ProvidedCalendars:
    """The hours and calendars of an entity: those that a feature provides, while one is on.

    Args:
        find: Returns what makes them; None while no feature provides any.
    """

    def __init__(
        self,
        find: Callable[[], MakeCalendars | None],
        settings: Settings,
        own: Mapping[str, object],
        folder: Path,
        zone: tzinfo,
    ) -> None:
        self._find = find
        self._given = (settings, own, folder, zone)
        merged = CalendarSettings.model_validate({**settings.calendar.model_dump(), **own})
        self._hours = WorkHours(merged, zone)
        self._made: tuple[MakeCalendars, WorkHours] | None = None

    def current(self) -> WorkHours:
        """Return the present ones; what a feature made is kept while it is on."""
        make = self._find()
        if make is None:
            self._made = None
            return self._hours
        if self._made is None or self._made[0] != make:
            self._made = (make, make(*self._given))
        return self._made[1]
