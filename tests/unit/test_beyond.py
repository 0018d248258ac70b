"""Times and numbers beyond what can be kept are refused by their field."""

from __future__ import annotations

from datetime import date
from pathlib import Path
from typing import cast

import pytest

from pps.config.packs import shipped_pack
from pps.config.settings import CalendarSettings
from pps.core.errors import InvalidRequest
from pps.core.kinds import Kinds
from pps.core.record_values import Compare, Condition, RecordQuery
from pps.core.time import parse
from pps.core.values import JSON
from pps.features.calendar.calendar import Calendars
from pps.records.asks import QUERIES
from pps.records.listing import wanted_of
from pps.records.workload import workload
from tests.year import Shelf, ground, year

KINDS = Kinds([shipped_pack("constitution"), shipped_pack("events")])
OUTSIDE = ("0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-14:00")


@pytest.mark.parametrize("text", OUTSIDE)
def test_a_time_that_utc_has_not_is_refused(text: str) -> None:
    with pytest.raises(InvalidRequest, match="since: must be in the years 1 to 9999 of UTC"):
        parse(text, "since")
    with pytest.raises(InvalidRequest, match=r"where\[0\]\.value: must be in the years"):
        wanted_of(KINDS, RecordQuery(where=(Condition("created_at", "=", text),)))


@pytest.mark.parametrize(
    ("name", "given", "field"),
    [("tasks", {"since": OUTSIDE[0]}, "since"), ("metrics", {"until": "0001-01-01"}, "until")],
)
async def test_a_window_of_no_time_is_refused(name: str, given: dict[str, str], field: str) -> None:
    asked = next(one for one in QUERIES if one.name == name)
    with pytest.raises(InvalidRequest, match=field):
        await asked.ask(ground(Shelf(year())), cast("dict[str, JSON]", given))


async def test_a_window_that_ends_with_all_time_is_answered() -> None:
    tasks = next(one for one in QUERIES if one.name == "tasks")
    assert (await tasks.ask(ground(Shelf(year())), {"since": "9999-12-31"})).found == ()


@pytest.mark.parametrize("start", [date.max, date(9999, 12, 28), date.min])
async def test_days_at_the_ends_of_all_time_are_refused(tmp_path: Path, start: date) -> None:
    with pytest.raises(InvalidRequest, match="start_date: must be in the years"):
        await workload(Shelf(year()), KINDS, Calendars(CalendarSettings(), tmp_path), start=start)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("op", "value"),
    [("=", 2**70), ("<", -(2**70)), ("=", 10**400), ("in", [1, 2**63]), ("contains", 2**70)],
)
def test_a_number_beyond_64_bits_is_refused(op: Compare, value: JSON) -> None:
    with pytest.raises(
        InvalidRequest, match=r"where\[0\]\.value: must be a whole number of 64 bits"
    ):
        wanted_of(
            KINDS, RecordQuery(kinds=("Task",), where=(Condition("effort_hours", op, value),))
        )
