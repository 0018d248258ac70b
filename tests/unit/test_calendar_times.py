"""Dates beside instants: what a day, month or year is in a zone, and words of time read on a wall clock."""

from __future__ import annotations

import copy
import pickle
from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from pps.core.errors import InvalidRequest
from pps.core.time import (
    CoarseTime,
    at_wall,
    coarse,
    coarse_text,
    has_begun,
    interval,
    offset_of,
    parse,
    plain,
    precision_of,
    read_moment,
    shown,
    wall,
    with_precision,
    zoned,
)
from pps.core.time_reading import read_time, read_times
from pps.core.values import Turn, local_time
from pps.ingest.rules import extract

ZONES = (
    "Europe/Berlin",
    "America/New_York",
    "America/Los_Angeles",
    "Asia/Kathmandu",
    "Pacific/Kiritimati",
)


def at(text: str, zone: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=ZoneInfo(zone))


def turn(content: str, occurred_at: datetime, utc_offset_s: int | None = None) -> Turn:
    return Turn("t", 1, "user", content, "s", occurred_at, occurred_at, utc_offset_s=utc_offset_s)


class TestCoarseTime:
    def test_is_the_midnight_in_utc_that_begins_it(self) -> None:
        assert coarse(date(2026, 3, 10)) == datetime(2026, 3, 10, tzinfo=UTC)
        assert coarse(date(2026, 3, 10), "month") == datetime(2026, 3, 1, tzinfo=UTC)
        assert coarse(date(2026, 3, 10), "year") == datetime(2026, 1, 1, tzinfo=UTC)

    def test_keeps_its_precision_in_copies(self) -> None:
        month = coarse(date(2026, 3, 1), "month")
        for same in (copy.deepcopy(month), pickle.loads(pickle.dumps(month))):  # noqa: S301
            assert (same, precision_of(same)) == (month, "month")

    @pytest.mark.parametrize(
        "computed",
        [
            coarse(date(2026, 3, 10)) + timedelta(hours=5),
            coarse(date(2026, 3, 10)).replace(hour=5),
            coarse(date(2026, 3, 10)).astimezone(ZoneInfo("Asia/Tokyo")),
            plain(coarse(date(2026, 3, 10))),
        ],
    )
    def test_what_is_computed_from_it_is_an_instant(self, computed: datetime) -> None:
        assert type(computed) is datetime
        assert precision_of(computed) == "instant"

    @pytest.mark.parametrize("zone", ZONES)
    def test_is_shown_as_the_same_date_in_every_zone(self, zone: str) -> None:
        assert shown(coarse(date(2026, 3, 10)), ZoneInfo(zone)) == "2026-03-10"
        assert shown(coarse(date(2026, 3, 10), "month"), ZoneInfo(zone)) == "2026-03"
        assert shown(coarse(date(2026, 3, 10), "year"), ZoneInfo(zone)) == "2026"

    def test_an_instant_is_refused(self) -> None:
        with pytest.raises(ValueError, match="no date"):
            coarse(date(2026, 3, 10), "instant")

    @pytest.mark.parametrize(
        ("zone", "day", "hours"),
        [
            ("Europe/Berlin", date(2026, 3, 29), 23),
            ("Europe/Berlin", date(2026, 10, 25), 25),
            ("America/New_York", date(2026, 3, 8), 23),
            ("America/New_York", date(2026, 11, 1), 25),
            ("Asia/Kathmandu", date(2026, 3, 29), 24),
            ("Africa/Cairo", date(2026, 4, 24), 23),  # its clock goes from 23:59 to 01:00
        ],
    )
    def test_a_day_has_the_hours_of_its_zone(self, zone: str, day: date, hours: int) -> None:
        first, after = interval(coarse(day), ZoneInfo(zone))
        assert after - first == timedelta(hours=hours)
        assert first.astimezone(ZoneInfo(zone)).date() == day

    def test_a_month_covers_all_its_days(self) -> None:
        first, after = interval(coarse(date(2026, 2, 1), "month"), ZoneInfo("Asia/Kathmandu"))
        assert first == datetime(2026, 1, 31, 18, 15, tzinfo=UTC)
        assert after == datetime(2026, 2, 28, 18, 15, tzinfo=UTC)
        assert interval(first) == (first, first)

    def test_begins_at_midnight_of_the_reference_time(self) -> None:
        day = coarse(date(2026, 6, 2))
        assert has_begun(day, at("2026-06-02T00:00", "Pacific/Kiritimati"))  # 1 June in UTC
        assert not has_begun(day, at("2026-06-01T23:59", "America/Los_Angeles"))  # 2 June in UTC
        assert has_begun(plain(day), at("2026-06-01T23:59", "America/Los_Angeles"))

    def test_what_was_stored_at_midnight_without_a_precision_is_a_day(self) -> None:
        midnight = datetime(2026, 3, 1, tzinfo=UTC)
        assert precision_of(with_precision(midnight)) == "day"
        assert precision_of(with_precision(midnight, "month")) == "month"
        assert precision_of(with_precision(midnight, "instant")) == "instant"
        assert precision_of(with_precision(midnight + timedelta(seconds=1), "day")) == "instant"


class TestReading:
    @pytest.mark.parametrize(
        ("text", "precision"),
        [("2026", "year"), ("2026-03", "month"), ("2026-03-10", "day"), ("20260310", "day")],
    )
    def test_a_date_alone_has_no_zone(self, text: str, precision: str) -> None:
        read = read_moment(text, ZoneInfo("America/Los_Angeles"))
        assert (precision_of(read), read.tzinfo) == (precision, UTC)
        assert coarse_text(read).replace("-", "") == text.replace("-", "")

    def test_a_time_without_a_zone_is_of_the_zone_given(self) -> None:
        read = read_moment("2026-06-01T21:30", ZoneInfo("America/Chicago"))
        assert read == datetime(2026, 6, 2, 2, 30, tzinfo=UTC)

    def test_an_offset_is_kept_and_utc_is_none(self) -> None:
        assert offset_of(read_moment("2026-06-01T21:30-05:00")) == -18_000
        assert offset_of(read_moment("2026-06-01T21:30+00:00")) is None
        assert offset_of(read_moment("2026-06-01T21:30Z")) is None
        assert offset_of(coarse(date(2026, 6, 1))) is None

    def test_a_machine_time_without_a_zone_is_refused(self) -> None:
        with pytest.raises(InvalidRequest, match="must carry a time zone"):
            parse("2026-06-01T21:30")
        assert isinstance(parse("2026-06-01"), CoarseTime)

    @pytest.mark.parametrize("text", ["2026-13", "2026-02-30", "tomorrow", "", "10000-01-01"])
    def test_what_is_no_time_is_refused(self, text: str) -> None:
        with pytest.raises(InvalidRequest, match="must be ISO 8601"):
            read_moment(text)

    def test_a_year_at_the_end_of_the_calendar_is_refused_in_a_zone_beyond_it(self) -> None:
        with pytest.raises(InvalidRequest, match="years 1 to 9999"):
            zoned(datetime(9999, 12, 31, 23), ZoneInfo("America/Los_Angeles"))  # noqa: DTZ001


class TestClockChanges:
    @pytest.mark.parametrize("zone", ["Europe/Berlin", "America/New_York"])
    def test_wall_and_back(self, zone: str) -> None:
        noon = at("2026-07-01T12:00", zone)
        assert at_wall(wall(noon), ZoneInfo(zone)) == noon

    def test_an_hour_that_is_there_twice_is_the_first(self) -> None:
        clock = datetime(2026, 10, 25, 2, 30, tzinfo=UTC)
        assert at_wall(clock, ZoneInfo("Europe/Berlin")) == datetime(
            2026, 10, 25, 0, 30, tzinfo=UTC
        )

    @pytest.mark.parametrize(
        ("zone", "said", "hours"),
        [
            ("Europe/Berlin", "2026-03-30T00:10", 23),
            ("Europe/Berlin", "2026-10-26T00:10", 25),
            ("America/New_York", "2026-03-09T00:10", 23),
            ("America/New_York", "2026-11-02T00:10", 25),
        ],
    )
    def test_yesterday_is_the_whole_day_of_the_change(
        self, zone: str, said: str, hours: int
    ) -> None:
        span = read_time("yesterday", at(said, zone))
        assert span is not None
        assert span.start is not None
        assert span.end is not None
        assert span.end.astimezone(UTC) - span.start.astimezone(UTC) == timedelta(hours=hours)
        assert span.end == at(said[:10], zone)


@pytest.mark.parametrize("zone", ZONES)
@pytest.mark.parametrize("clock", ["00:01", "12:00", "23:59"])
class TestRelativeWords:
    def test_are_days_of_the_zone(self, zone: str, clock: str) -> None:
        said = at(f"2026-06-01T{clock}", zone)
        words = "today, yesterday, last night, this morning"
        days = [span.began() for span in read_times(words, said)]
        assert [shown(day) for day in days if day] == [
            "2026-06-01",
            "2026-05-31",
            "2026-05-31",
            "2026-06-01",
        ]

    def test_last_month_is_that_of_the_zone(self, zone: str, clock: str) -> None:
        span = read_time("last month", at(f"2026-03-01T{clock}", zone))
        assert span is not None
        assert span.start == at("2026-02-01", zone)
        assert span.end == at("2026-03-01", zone)
        assert shown(span.began() or span.start) == "2026-02"

    def test_rules_date_a_move_by_the_wall_clock(self, zone: str, clock: str) -> None:
        said = at(f"2026-06-01T{clock}", zone).astimezone(UTC)
        found = extract(turn("I moved to Austin yesterday.", said), ZoneInfo(zone))
        assert [coarse_text(fact.valid_at) for fact in found.facts if fact.valid_at] == [
            "2026-05-31"
        ]

    def test_rules_take_today_for_begun(self, zone: str, clock: str) -> None:
        said = at(f"2026-06-01T{clock}", zone).astimezone(UTC)
        found = extract(turn("I moved to Austin today.", said), ZoneInfo(zone))
        assert [coarse_text(fact.valid_at) for fact in found.facts if fact.valid_at] == [
            "2026-06-01"
        ]


def test_the_offset_of_a_turn_wins_over_the_zone() -> None:
    said = datetime(2026, 6, 2, 2, 30, tzinfo=UTC)  # 21:30 on 1 June in Chicago
    found = extract(turn("I moved to Austin yesterday.", said, -18_000), ZoneInfo("Asia/Tokyo"))
    assert [coarse_text(fact.valid_at) for fact in found.facts if fact.valid_at] == ["2026-05-31"]


def test_a_turn_of_a_date_alone_is_read_on_that_date() -> None:
    said = turn("yesterday", coarse(date(2026, 6, 1)))
    for zone in ZONES:
        assert shown(local_time(said, ZoneInfo(zone))) == "2026-06-01"


@pytest.mark.parametrize(
    ("words", "precision"),
    [("in March 2026", "month"), ("in 2019", "year"), ("on 3 March 2026", "day")],
)
def test_the_words_tell_the_precision(words: str, precision: str) -> None:
    said = datetime(2026, 6, 1, 12, tzinfo=UTC)
    (fact,) = extract(turn(f"I moved to Milan {words}.", said)).facts
    assert fact.valid_at is not None
    assert precision_of(fact.valid_at) == precision
