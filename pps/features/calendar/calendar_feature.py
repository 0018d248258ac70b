"""The feature ``calendar``: calendars count in workloads, and a tool returns the days ahead."""

from __future__ import annotations

from pps.operations.feature import Feature

FEATURE = Feature(
    name="calendar",
    summary="How full the days are, with the events of the calendars that the settings name.",
    modules=("pps.features.calendar.workload_tools",),
    provides={"calendars": "pps.features.calendar.calendar:Calendars.of"},
)
