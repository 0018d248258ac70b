"""ICS files and addresses: what they say is busy, and what of them cannot be read or may not be asked."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from datetime import UTC, date, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from ipaddress import ip_address
from pathlib import Path
from threading import Thread
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from pps.config.settings import CalendarSettings
from pps.features.calendar import calendar, ics_child
from pps.features.calendar.calendar import Calendars, is_public
from pps.features.calendar.ics import Agenda, read_ics

BERLIN = ZoneInfo("Europe/Berlin")
START, END = datetime(2026, 3, 23, tzinfo=BERLIN), datetime(2026, 3, 30, tzinfo=BERLIN)
"""A week in whose last night the clocks go forward."""


def ics(*events: str, head: str = "") -> str:
    blocks = "".join(
        f"BEGIN:VEVENT\nUID:{at}\nDTSTAMP:20260101T000000Z\n{one}\nEND:VEVENT\n"
        for at, one in enumerate(events)
    )
    return f"BEGIN:VCALENDAR\nVERSION:2.0\nPRODID:-//t//t\n{head}{blocks}END:VCALENDAR\n"


def read(*events: str, head: str = "") -> Agenda:
    return read_ics(ics(*events, head=head), "a.ics", START, END, BERLIN)


def times(agenda: Agenda) -> list[str]:
    assert agenda.problems == ()
    return [
        f"{one.start.astimezone(UTC):%d %H:%M}-{one.end.astimezone(UTC):%d %H:%M}"
        for one in agenda.events
    ]


@pytest.mark.parametrize(
    ("event", "expected"),
    [
        ("DTSTART:20260324T090000Z\nDTEND:20260324T100000Z", ["24 09:00-24 10:00"]),
        ("DTSTART:20260324T090000Z\nDURATION:PT90M", ["24 09:00-24 10:30"]),
        ("DTSTART;TZID=America/New_York:20260324T090000\nDURATION:PT1H", ["24 13:00-24 14:00"]),
        ("DTSTART:20260324T090000\nDTEND:20260324T100000", ["24 08:00-24 09:00"]),  # floating: the reader's hours
        ("DTSTART;VALUE=DATE:20260324\nDTEND;VALUE=DATE:20260326", ["23 23:00-25 23:00"]),
        ("DTSTART;VALUE=DATE:20260329", ["28 23:00-29 22:00"]),  # a day of 23 hours
        ("DTSTART:20260322T230000Z\nDTEND:20260323T010000Z", ["22 23:00-23 01:00"]),
        ("DTSTART:20260322T200000Z\nDTEND:20260322T230000Z", []),  # half-open at both ends
        ("DTSTART:20260329T220000Z\nDTEND:20260329T230000Z", []),
        ("DTSTART:20260324T090000Z\nDTEND:20260324T100000Z\nSTATUS:CANCELLED", []),
        ("DTSTART:20260324T090000Z\nDTEND:20260324T100000Z\nTRANSP:TRANSPARENT", []),
        ("DTSTART:20260324T090000Z", []),  # it takes no time
        (  # the hour stays when the clocks change
            "DTSTART;TZID=Europe/Berlin:20200101T090000\nDURATION:PT1H\nRRULE:FREQ=DAILY;BYDAY=SA,SU",
            ["28 08:00-28 09:00", "29 07:00-29 08:00"],
        ),
        (
            "DTSTART:20260323T090000Z\nDURATION:PT1H\nRRULE:FREQ=DAILY;COUNT=4\nEXDATE:20260324T090000Z,20260325T090000Z",
            ["23 09:00-23 10:00", "26 09:00-26 10:00"],
        ),
        (
            "DTSTART:20260323T090000Z\nDURATION:PT1H\nRRULE:FREQ=WEEKLY\nRDATE:20260325T120000Z",
            ["23 09:00-23 10:00", "25 12:00-25 13:00"],
        ),
        ("DTSTART;VALUE=DATE:20200325\nRRULE:FREQ=YEARLY", ["24 23:00-25 23:00"]),
        ("DTSTART:20260301T090000Z\nDURATION:PT1H\nRRULE:FREQ=DAILY;UNTIL=20260323T090000Z", ["23 09:00-23 10:00"]),
        ("DTSTART:20260324T090000Z\nDURATION:PT1H\nBEGIN:VALARM\nDURATION:PT9H\nEND:VALARM", ["24 09:00-24 10:00"]),
        ("DTSTART;TZID=Europe/\n Berlin:20260324T090000\nLOCATION:x\n DTSTART:1\nDURATION:PT1H", ["24 08:00-24 09:00"]),
    ],
)  # fmt: skip
def test_what_an_event_takes(event: str, expected: list[str]) -> None:
    assert times(read(event)) == expected


def test_one_time_of_a_series_that_was_moved_or_cancelled_takes_its_place() -> None:
    series = "DTSTART;TZID=Europe/Berlin:20260323T090000\nDURATION:PT1H\nRRULE:FREQ=DAILY;COUNT=4"
    text = ics(series) + ics(
        "RECURRENCE-ID:20260324T080000Z\nDTSTART:20260327T120000Z\nDURATION:PT2H",
        "RECURRENCE-ID;TZID=Europe/Berlin:20260325T090000\nDTSTART:20260325T080000Z\nSTATUS:CANCELLED",
    ).replace("UID:1", "UID:0")
    agenda = read_ics(text, "a.ics", START, END, BERLIN)
    assert times(agenda) == ["23 08:00-23 09:00", "26 08:00-26 09:00", "27 12:00-27 14:00"]


def test_a_zone_that_the_file_makes_is_used() -> None:
    zone = (
        "BEGIN:VTIMEZONE\nTZID:Ours\nBEGIN:STANDARD\nDTSTART:19700101T000000\nTZOFFSETFROM:+0500\nTZOFFSETTO:+0500\n"
        "END:STANDARD\nEND:VTIMEZONE\n"
    )
    event = "DTSTART;TZID=Ours:20260324T090000\nDURATION:PT1H"
    assert times(read(event, head=zone)) == ["24 04:00-24 05:00"]
    broken = read(
        "DTSTART:20260324T090000Z\nDURATION:PT1H", event, head=zone.replace("+0500", "east")
    )
    assert len(broken.events) == 1  # what needs no such zone is read
    assert broken.problems[0].startswith("a.ics:18: ")


def test_the_calendars_own_zone_is_that_of_times_without_one() -> None:
    agenda = read("DTSTART:20260324T090000\nDURATION:PT1H", head="X-WR-TIMEZONE:America/New_York\n")
    assert times(agenda) == ["24 13:00-24 14:00"]


@pytest.mark.parametrize(
    ("broken", "why"),
    [
        ("DTSTART:20261324T090000Z", "month"),
        ("DTSTART:yesterday", "Expected value to match"),
        ("DTSTART;TZID=Mars/Base:20260324T090000\nRRULE:FREQ=DAILY", "time zone"),
        ("DTSTART:20260324T090000Z\nRRULE:FREQ=SOMETIMES", ""),
        (
            "DTSTART:20260324T090000Z\nDURATION:PT1H\nRRULE:FREQ=SECONDLY",
            "more often than every hour",
        ),
        ("DTSTART:19700101T090000Z\nDURATION:PT1H\nRRULE:FREQ=HOURLY", "more than 20,000 times"),
        ("DTSTART:20260324T090000Z\nDTEND:20260324T100000", "timezone"),
    ],
)
def test_a_broken_event_is_named_by_its_line_and_the_others_are_read(broken: str, why: str) -> None:
    good = "DTSTART:20260324T090000Z\nDURATION:PT1H"
    agenda = read(good, broken, good)
    assert len(agenda.events) == 2
    (problem,) = agenda.problems
    assert problem.startswith("a.ics:10: ")
    assert why in problem


def test_what_is_no_calendar_or_has_no_end_is_named() -> None:
    assert read_ics("<html>", "a.ics", START, END, BERLIN).problems == (
        "a.ics:1: is no calendar, it has no BEGIN:VCALENDAR",
    )
    text = ics("DTSTART:20260324T090000Z\nDURATION:PT1H", "DTSTART:20260325T090000Z\nDURATION:PT1H")
    cut = read_ics(text.replace("END:VEVENT\n", "", 1), "a.ics", START, END, BERLIN)
    assert cut.problems == ("a.ics:4: BEGIN:VEVENT has no end",)
    assert len(cut.events) == 1


@pytest.mark.timeout(120)
def test_ten_thousand_events_are_read_at_once() -> None:
    events = [
        f"DTSTART;TZID=Europe/Berlin:2026{at % 12 + 1:02d}{at % 28 + 1:02d}T120000\nDURATION:PT30M\nSUMMARY:{at}"
        for at in range(10_000)
    ]
    assert len(read(*events).events) > 50


@pytest.mark.timeout(120)
def test_many_events_without_an_end_take_no_time() -> None:
    agenda = read_ics("BEGIN:VCALENDAR\n" + "BEGIN:VEVENT\n" * 200_000, "a.ics", START, END, BERLIN)
    assert len(agenda.problems) == 21


async def agenda_of(folder: Path, **settings: object) -> Agenda:
    made = CalendarSettings.model_validate({"time_zone": "Europe/Berlin", **settings})
    return await Calendars(made, folder, lambda _: True).agenda(START, END)


async def test_files_are_read_together_and_one_that_is_not_there_is_said(tmp_path: Path) -> None:
    (tmp_path / "a.ics").write_text(ics("DTSTART:20260325T090000Z\nDURATION:PT1H"))
    (tmp_path / "b.ics").write_bytes(
        ics("SUMMARY:x\nDTSTART:20260324T090000Z\nDURATION:PT1H").encode().replace(b"x", b"\xff")
    )
    agenda = await agenda_of(tmp_path, files=["a.ics", "b.ics", "gone.ics"])
    assert [one.start.day for one in agenda.events] == [24, 25]
    assert agenda.problems == (
        "b.ics:7: is not UTF-8",
        "gone.ics: cannot be read (No such file or directory)",
    )


async def test_a_changed_file_is_read_anew(tmp_path: Path) -> None:
    calendars = Calendars(CalendarSettings(files=(Path("a.ics"),)), tmp_path)
    for count in (1, 2):
        (tmp_path / "a.ics").write_text(ics(*["DTSTART:20260325T090000Z\nDURATION:PT1H"] * count))
        assert len((await calendars.agenda(START, END)).events) == count


@pytest.mark.parametrize(
    ("event", "zone_rule"),
    [
        ("DTSTART:20200101T090000Z\nDURATION:PT1H\nRRULE:FREQ=HOURLY;BYMONTH=2;BYMONTHDAY=30", ""),
        ("DTSTART;TZID=Ours:20260324T090000\nDURATION:PT1H", "FREQ=SECONDLY"),
    ],
)
async def test_a_calendar_that_is_never_read_to_its_end_is_named_in_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, event: str, zone_rule: str
) -> None:
    zone = (
        "BEGIN:VTIMEZONE\nTZID:Ours\nBEGIN:STANDARD\nDTSTART:19000101T000000\nTZOFFSETFROM:+0500\nTZOFFSETTO:+0500\n"
        f"RRULE:{zone_rule}\nEND:STANDARD\nEND:VTIMEZONE\n"
    )
    (tmp_path / "bomb.ics").write_text(ics(event, head=zone if zone_rule else ""))
    monkeypatch.setattr(ics_child, "READ_S", 4.0)
    calendars = Calendars(CalendarSettings(files=(Path("bomb.ics"),)), tmp_path)
    tried: list[str] = []

    async def counted(text: str, source: str, *rest: Any) -> Any:
        tried.append(source)
        return await ics_child.read_apart(text, source, *rest)

    monkeypatch.setattr(calendar, "read_apart", counted)
    for _ in range(5):  # only the first time it is tried
        agenda = await calendars.agenda(START, END)
        assert agenda.problems == (
            "bomb.ics: takes longer than 15 s to read, its events are not counted",
        )
    assert tried == ["bomb.ics"]


@contextmanager
def served(
    status: int = 200, body: str = "", location: str = ""
) -> Generator[tuple[str, list[str]]]:
    asked: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(self.path)
            self.send_response(status if self.path != "/there" else 200)
            if location:
                self.send_header("Location", location)
            self.end_headers()
            self.wfile.write(body.encode())

        def log_message(self, format: str, *args: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/cal?key=secret", asked
    finally:
        server.shutdown()
        server.server_close()


EVENT = ics("DTSTART:20260325T090000Z\nDURATION:PT1H")


async def test_an_address_is_fetched_once_and_kept(tmp_path: Path) -> None:
    with served(body=EVENT) as (url, asked):
        calendars = Calendars(
            CalendarSettings.model_validate({"urls": [url]}), tmp_path, lambda _: True
        )
        for _ in range(3):
            assert times(await calendars.agenda(START, END)) == ["25 09:00-25 10:00"]
        assert asked == ["/cal?key=secret"]


async def test_an_address_of_this_machine_is_not_asked(tmp_path: Path) -> None:
    with served(body=EVENT) as (url, asked):
        for one in (
            url,
            url.replace("127.0.0.1", "localhost"),
            url.replace("127.0.0.1", "[::ffff:127.0.0.1]"),
        ):
            calendars = Calendars(CalendarSettings.model_validate({"urls": [one]}), tmp_path)
            agenda = await calendars.agenda(START, END)
            assert agenda.events == ()
            assert agenda.problems == (
                "urls[0]: could not be fetched (lies on this machine or its net), its events are not counted",
            )
        assert asked == []


@pytest.mark.parametrize(
    ("address", "is_outside"),
    [("93.184.215.14", True), ("127.0.0.1", False), ("10.1.2.3", False), ("169.254.169.254", False), ("0.0.0.1", False),
     ("100.64.0.1", False), ("224.0.0.1", False), ("::1", False), ("fe80::1", False), ("fd00::1", False),
     ("::ffff:10.0.0.1", False), ("64:ff9b::7f00:1", False), ("2002:7f00:1::", False), ("2606:4700::1111", True)],
)  # fmt: skip
def test_only_addresses_outside_are_asked(address: str, is_outside: bool) -> None:
    assert is_public(ip_address(address)) is is_outside


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        ({"status": 404}, "answers 404"),
        ({"status": 302, "location": "http://example.org/cal"}, "leads to another host"),
        ({"status": 302, "location": "file:///etc/hosts"}, "is no http or https address"),
        ({"status": 302, "location": "/cal"}, "leads on and on"),
        ({"body": "x" * 2_000}, "is larger than 1,000 bytes"),
    ],
)
async def test_an_address_that_cannot_be_had_is_said(
    tmp_path: Path, answer: dict[str, str], why: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(calendar, "MOST_BYTES", 1_000)
    with served(**answer) as (url, _):  # type: ignore[arg-type] - a status is a number
        agenda = await agenda_of(tmp_path, urls=[url])
    assert agenda.problems == (
        f"urls[0]: could not be fetched ({why}), its events are not counted",
    )
    assert "secret" not in str(agenda)


async def test_a_way_on_the_same_host_is_gone(tmp_path: Path) -> None:
    with served(302, EVENT, "/there") as (url, asked):
        assert times(await agenda_of(tmp_path, urls=[url])) == ["25 09:00-25 10:00"]
        assert asked == ["/cal?key=secret", "/there"]


async def test_what_was_fetched_last_stands_in_and_that_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with served(body=EVENT) as (url, _):
        calendars = Calendars(
            CalendarSettings.model_validate({"urls": [url]}), tmp_path, lambda _: True
        )
        assert len((await calendars.agenda(START, END)).events) == 1
    monkeypatch.setattr(calendar, "REFRESH_S", -1.0)
    for _ in range(2):  # the second time it is left alone
        agenda = await calendars.agenda(START, END)
        assert len(agenda.events) == 1
        assert "urls[0]: could not be fetched" in agenda.problems[0]
        assert "its events are as of" in agenda.problems[0]


def test_hours_are_of_each_day_of_the_week() -> None:
    week = CalendarSettings.model_validate({"hours": [8, 8, 8, 8, 6, 0, 0]})
    hours = Calendars(week, Path()).hours_of
    assert [hours(date(2026, 3, 23) + timedelta(days=at)) for at in range(7)] == [
        8,
        8,
        8,
        8,
        6,
        0,
        0,
    ]
    assert Calendars(CalendarSettings(), Path()).hours_of(date(2026, 3, 28)) == 10
