"""The command line, in a zone of the machine and of the entity: what a person types and reads is of their own clock."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from pps.config.zones import machine_zone
from tests.integration.interfaces.serving import Served, clean_env, pps, serving

ZONES = (
    "America/Los_Angeles",
    "America/New_York",
    "Europe/Berlin",
    "Asia/Kathmandu",
    "Pacific/Kiritimati",
)
FAR = "Asia/Tokyo"
"""Where the machine is that asks: it decides nothing."""


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with serving(tmp_path_factory.mktemp("zones") / "home", TZ=FAR) as served:
        yield served


def test_init_takes_the_zone_of_the_machine_for_new_entities(tmp_path: Path) -> None:
    home = tmp_path / "home"
    ended = pps(clean_env(home, TZ="America/Chicago"), "init")
    assert "Time zone of new entities: America/Chicago" in ended.stdout
    assert 'time_zone = "America/Chicago"\n' in (home / "pps.toml").read_text()
    again = pps(clean_env(home, TZ="Asia/Tokyo"), "init", "--json")
    assert json.loads(again.stdout)["time_zone"] == "America/Chicago", "what is there stays"


def test_init_says_how_a_zone_is_set_where_the_settings_are_older(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    (home / "pps.toml").write_text("log_level = 'info'\n")
    ended = pps(clean_env(home, TZ="Asia/Tokyo"), "init")
    assert 'time_zone = "Asia/Tokyo"' in ended.stdout
    assert (home / "pps.toml").read_text() == "log_level = 'info'\n"


@pytest.mark.parametrize(
    ("told", "zone"),
    [
        ("Asia/Kathmandu", "Asia/Kathmandu"),
        (":Europe/Berlin", "Europe/Berlin"),
        ("/usr/share/zoneinfo/America/New_York", "America/New_York"),
    ],
)
def test_the_machines_zone_is_that_of_its_environment(told: str, zone: str) -> None:
    assert machine_zone({"TZ": told}) == zone


def test_a_machine_zone_is_always_one_of_the_database() -> None:
    assert machine_zone({"TZ": "EST5EDT4,M3.2.0,M11.1.0"}) == machine_zone({})


@pytest.mark.parametrize("zone", ZONES)
def test_what_is_typed_and_shown_is_on_the_clock_of_the_entity(served: Served, zone: str) -> None:
    name = zone.rpartition("/")[2].lower()
    made = served.pps("entity", "create", name, "--time-zone", zone)
    assert made.returncode == 0, made.stderr
    for text, at in (
        ("I moved to Austin yesterday.", "2026-06-01T21:30:00"),
        ("Early bird.", "2026-03-10T00:00"),
        ("Night owl.", "2026-03-10T23:30"),
        ("Too late.", "2026-03-11T00:00"),
        ("No clock.", "2026-03-10"),
    ):
        told = served.pps("remember", name, text, "--at", at)
        assert told.returncode == 0, told.stderr
    assert "(since 2026-05-31)" in served.pps("timeline", name).stdout
    found = served.pps("recall", name, "clock owl bird late", "--during", "March 10 2026").stdout
    assert "user: Night owl. (cli, 2026-03-10 23:30)" in found
    assert "user: Early bird. (cli, 2026-03-10 00:00)" in found
    assert "user: No clock. (cli, 2026-03-10)" in found
    assert "Too late." not in found
    data = json.loads(served.pps("recall", name, "owl", "--json").stdout)
    owl = next(hit for hit in data["channels"]["episodes"]["hits"] if "owl" in hit["text"])
    assert owl["occurred_at"].endswith("Z"), "inside, all is UTC"


def test_an_unknown_zone_is_refused_with_the_nearest(served: Served) -> None:
    ended = served.pps("entity", "create", "nobody", "--time-zone", "Europe/Lisboa")
    assert ended.returncode == 2
    assert "--time-zone 'Europe/Lisboa'" in ended.stderr
    assert "did you mean 'Europe/Lisbon'?" in ended.stderr


def test_a_stated_offset_wins(served: Served) -> None:
    served.pps("entity", "create", "offset", "--time-zone", "Pacific/Kiritimati")
    at = "2026-06-01T21:30:00-05:00"
    served.pps("remember", "offset", "I moved to Austin yesterday.", "--at", at)
    assert "(since 2026-05-31)" in served.pps("timeline", "offset").stdout
