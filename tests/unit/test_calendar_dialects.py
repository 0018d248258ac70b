"""ICS as programs write it: zones by other names, UNTIL of any type, empty rules, ranges, declined invitations."""

from __future__ import annotations

from datetime import UTC

import pytest

from pps.features.calendar.ics_lines import zone_named
from tests.unit.test_records_calendar import read, times

HOUR = "DURATION:PT1H"


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("Europe/Berlin", "Europe/Berlin"),
        ("W. Europe Standard Time", "Europe/Berlin"),
        ("Eastern Standard Time", "America/New_York"),
        ("/mozilla.org/20050126_1/Europe/Berlin", "Europe/Berlin"),
        ("/softwarestudio.org/Tzfile/America/Indiana/Knox", "America/Indiana/Knox"),
        ("GMT+0100", "UTC+01:00"),
        ("UTC-05:30", "UTC-05:30"),
        ("Customized Time Zone", "None"),
        ("europe/berlin", "Europe/Berlin"),
        ("tokyo standard time", "Asia/Tokyo"),
        ("(UTC+01:00) Amsterdam, Berlin, Bern, Rome, Stockholm, Vienna", "Europe/Amsterdam"),
        ("(UTC-05:00) Nowhere, New York", "America/New_York"),
        ("(UTC+05:30) Chennai", "UTC+05:30"),
        ("(GMT) Lisbon", "Europe/Lisbon"),
        ("GMT+15", "None"),
    ],
)
def test_a_zone_is_known_by_the_names_that_programs_give_it(name: str, expected: str) -> None:
    assert str(zone_named(name)) == expected


@pytest.mark.parametrize(
    ("event", "expected"),
    [
        (f"DTSTART;TZID=W. Europe Standard Time:20260324T090000\n{HOUR}", ["24 08:00-24 09:00"]),
        (
            f"DTSTART;TZID=/mozilla.org/20050126_1/America/New_York:20260324T090000\n{HOUR}",
            ["24 13:00-24 14:00"],
        ),
        (f"DTSTART;TZID=GMT+0530:20260324T090000\n{HOUR}", ["24 03:30-24 04:30"]),
        (
            f"DTSTART:20260324T090000Z\n{HOUR}\nRDATE:20260325T090000Z",
            ["24 09:00-24 10:00", "25 09:00-25 10:00"],
        ),
        *(
            (
                f"DTSTART;TZID=Europe/Berlin:20260324T090000\n{HOUR}\nRRULE:FREQ=DAILY;UNTIL={until}",
                ["24 08:00-24 09:00", "25 08:00-25 09:00"],
            )
            for until in ("20260325", "20260325T090000", "20260325T080000Z")
        ),
        (
            f"DTSTART:20260324T090000\n{HOUR}\nRRULE:FREQ=DAILY;UNTIL=20260325T080000Z",
            ["24 08:00-24 09:00", "25 08:00-25 09:00"],
        ),
        (
            "DTSTART;VALUE=DATE:20260324\nRRULE:FREQ=DAILY;UNTIL=20260325T000000Z",
            ["23 23:00-24 23:00", "24 23:00-25 23:00"],
        ),
        (f"DTSTART:20260324T090000Z\n{HOUR}\nRRULE:", ["24 09:00-24 10:00"]),
        (
            f"DTSTART:20260324T090000Z\n{HOUR}\nRRULE:freq=daily;count=2;",
            ["24 09:00-24 10:00", "25 09:00-25 10:00"],
        ),
        (f"DTSTART;TZID=GMT+01:00:20260324T090000\n{HOUR}", ["24 08:00-24 09:00"]),
        (
            f"DTSTART;TZID=(UTC+01:00) Amsterdam\\, Berlin:20260324T090000\n{HOUR}",
            ["24 08:00-24 09:00"],
        ),
        (f"DTSTART:20260324T090000Z\n{HOUR}\nRRULE:FREQ=WEEKLY;BYDAY=", ["24 09:00-24 10:00"]),
        (f"DTSTART:20260324T090000Z\n{HOUR}\nATTENDEE;PARTSTAT=DECLINED:mailto:a@example.org", []),
        (
            f"DTSTART:20260324T090000Z\n{HOUR}\nATTENDEE;PARTSTAT=DECLINED:mailto:a@example.org\n"
            "ATTENDEE;PARTSTAT=ACCEPTED:mailto:b@example.org",
            ["24 09:00-24 10:00"],
        ),
    ],
)
def test_what_programs_write_is_read(event: str, expected: list[str]) -> None:
    assert times(read(event)) == expected


def test_an_invitation_that_the_owner_declined_takes_no_time() -> None:
    event = (
        f"DTSTART:20260324T090000Z\n{HOUR}\nATTENDEE;PARTSTAT=DECLINED:mailto:Ana@example.org\n"
        "ATTENDEE;PARTSTAT=ACCEPTED:mailto:b@example.org"
    )
    assert times(read(event, head="X-WR-CALNAME:ana@example.org\n")) == []


def test_an_event_that_ends_before_it_begins_is_told_and_the_others_stay() -> None:
    agenda = read(
        "DTSTART:20260324T090000Z\nDTEND:20260324T080000Z",
        f"DTSTART:20260325T090000Z\n{HOUR}",
    )
    assert [f"{one.start:%d}" for one in agenda.events] == ["25"]
    assert "it ends before it begins" in agenda.problems[0]


def test_an_event_without_a_start_is_told_and_the_others_stay() -> None:
    agenda = read("DTEND:20260324T080000Z", f"DTSTART:20260325T090000Z\n{HOUR}")
    assert [f"{one.start:%d}" for one in agenda.events] == ["25"]
    [problem] = agenda.problems
    assert "it has no DTSTART" in problem


@pytest.mark.parametrize(
    ("name", "hour"),
    [("Eastern Standard Time", "13"), ("America/New_York", "13"), ("Nowhere", "08")],
)
def test_the_calendars_own_zone_has_the_names_of_programs_too(name: str, hour: str) -> None:
    agenda = read(f"DTSTART:20260324T090000\n{HOUR}", head=f"X-WR-TIMEZONE:{name}\n")
    assert [f"{one.start.astimezone(UTC):%H}" for one in agenda.events] == [hour]
    assert bool(agenda.problems) == (name == "Nowhere")


def test_a_zone_that_nobody_knows_is_told_and_the_event_stays() -> None:
    agenda = read(
        f"DTSTART;TZID=Customized Time Zone:20260324T090000\n{HOUR}",
        f"DTSTART:20260325T090000Z\n{HOUR}",
    )
    assert len(agenda.events) == 2
    assert "'Customized Time Zone' is unknown: read as your own" in agenda.problems[0]


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (
            "DTSTART:20260325T110000Z\nDURATION:PT2H",
            ["24 09:00-24 10:00", "25 11:00-25 13:00", "26 11:00-26 13:00"],
        ),
        ("DTSTART:20260325T090000Z\nDURATION:PT1H\nSTATUS:CANCELLED", ["24 09:00-24 10:00"]),
    ],
)
def test_a_change_of_this_and_all_future_times_holds_from_there_on(
    change: str, expected: list[str]
) -> None:
    series = f"DTSTART:20260324T090000Z\n{HOUR}\nRRULE:FREQ=DAILY;COUNT=3"
    later = f"END:VEVENT\nBEGIN:VEVENT\nUID:0\nRECURRENCE-ID;RANGE=THISANDFUTURE:20260325T090000Z\n{change}"
    assert times(read(f"{series}\n{later}")) == expected
