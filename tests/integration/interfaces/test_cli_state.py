"""``pps status`` and ``pps config``: how an installation is, and which settings are in effect."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

from tests.integration.interfaces.serving import Served, pps

SECRET = "sk-proj-abcdefghijklmnopqrstuvwxyz0123456789ABCDEFGH"


def _state(env: dict[str, str]) -> dict[str, Any]:
    ended = pps(env, "status", "--json")
    assert ended.returncode == 0, ended.stderr
    return json.loads(ended.stdout)


def test_status_tells_the_same_with_and_without_a_server_and_starts_none(
    alone: dict[str, str],
) -> None:
    home = Path(alone["PPS_HOME"])
    first = pps(alone, "status")
    assert first.returncode == 0
    assert "none is running" in first.stdout
    assert "pps entity create NAME" in first.stdout
    assert not home.exists(), "a look makes nothing"
    for name in ("ana", "old"):
        assert pps(alone, "entity", "create", name).returncode == 0
    pps(alone, "remember", "ana", "Ana drinks tea.")
    pps(alone, "entity", "archive", "old")
    running = _state(alone)
    assert running["server"]["by_need"] is True
    assert {one["name"]: (one.get("turns"), one["archived"]) for one in running["entities"]} == {
        "ana": (1, False),
        "old": (None, True),
    }
    assert pps(alone, "stop").returncode == 0
    stopped = _state(alone)
    assert "server" not in stopped
    assert not (home / "server.json").exists(), "no server was started"
    for state in (running, stopped):
        state.pop("server", None)
        for one in state["entities"]:
            del one["is_open"]
    assert stopped == running
    text = pps(alone, "status").stdout
    assert "ana  1 turn, the latest of " in text
    assert "archived; `pps entity archive old --undo`" in text


def test_status_tells_what_waits_what_failed_and_what_is_wrong(alone: dict[str, str]) -> None:
    home = Path(alone["PPS_HOME"])
    assert pps(alone, "entity", "create", "ana").returncode == 0
    for number in range(3):
        pps(alone, "remember", "ana", f"Turn {number}.")
    assert pps(alone, "stop").returncode == 0
    with closing(sqlite3.connect(home / "entities" / "ana" / "data" / "memory.db")) as db, db:
        db.execute("UPDATE jobs SET state = 'queued' WHERE id = 1")
        db.execute("UPDATE jobs SET state = 'failed' WHERE id = 2")
    (home / "spool").mkdir(exist_ok=True)
    (home / "spool" / "1.json").write_text("{}")
    ended = pps(alone, "status")
    assert "3 turns" in ended.stdout
    assert "1 to be taken in, 1 failed (`pps jobs list ana`)" in ended.stdout
    assert "Hooks: 1 event wait" in ended.stdout
    card = home / "entities" / "ana" / "entity.toml"
    card.write_text(card.read_text() + "\ntime_zon = 1\n")
    ended = pps(alone, "status")
    assert ended.returncode == 1
    assert "time_zon" in ended.stdout
    assert "(line " in ended.stdout
    assert ended.stderr == ""


def test_status_is_the_owners_alone(served: Served) -> None:
    served.create("mine")
    assert "process" in served.pps("status").stdout
    assert served.link.call("status", "", {})["data"]["server"]["pid"] == served.run.pid


def _settings(env: dict[str, str], *arguments: str) -> dict[str, tuple[str, str]]:
    ended = pps(env, "config", "--json", *arguments)
    assert ended.returncode == 0, ended.stderr
    rows = json.loads(ended.stdout)["settings"]
    return {one["key"]: (one["value"], one["source"]) for one in rows}


def test_config_shows_each_setting_and_where_it_comes_from(alone: dict[str, str]) -> None:
    home = Path(alone["PPS_HOME"])
    assert pps(alone, "entity", "create", "ana", "--time-zone", "Asia/Tokyo").returncode == 0
    assert pps(alone, "stop").returncode == 0
    (home / "pps.toml").write_text('log_level = "error"\n\n[recall]\nbudget_tokens = 900\n')
    env = {**alone, "PPS_RECALL__BUDGET_TOKENS": "1000", "NEO4J_USER": "mira"}
    found = _settings(env)
    assert found["log_level"] == ("error", "pps.toml line 1")
    assert found["recall.budget_tokens"] == ("1000", "environment: PPS_RECALL__BUDGET_TOKENS")
    assert found["neo4j.user"] == ("mira", "environment: NEO4J_USER")
    assert found["server.sessions"] == ("64", "default")
    assert _settings(alone)["recall.budget_tokens"] == ("900", "pps.toml line 4")
    assert set(_settings(alone, "--changed")) == {
        "log_level",
        "recall.budget_tokens",
        "embedder.name",
        "server.port",
        "server.idle_stop_s",
    }
    own = _settings(alone, "ana")
    assert own["time_zone"][0] == "Asia/Tokyo"
    assert own["time_zone"][1].startswith("entity.toml line ")
    assert not (home / "server.json").exists(), "no server was started"
    absent = pps(alone, "config", "nobody")
    assert (absent.returncode, absent.stderr.count("\n")) == (3, 1)
    wrong = pps({**alone, "PPS_RECAL": "x"}, "config")
    assert (wrong.returncode, "PPS_" in wrong.stderr) == (2, True)


def test_config_never_shows_a_secret(alone: dict[str, str]) -> None:
    home = Path(alone["PPS_HOME"])
    assert pps(alone, "entity", "create", "ana").returncode == 0
    assert pps(alone, "stop").returncode == 0
    card = home / "entities" / "ana" / "entity.toml"
    text = card.read_text().replace(
        "[extractor]", f"[extractor]\ncommand = ['x', '--api-key', '{SECRET}']"
    )
    card.write_text(f"{text}\n[calendar]\nurls = ['https://cal.example/{SECRET}.ics']\n")
    (home / "pps.toml").write_text(f"[extractor]\ncommand = ['y', '--api-key', '{SECRET}']\n")
    env = {
        **alone,
        "PPS_NEO4J__PASSWORD": SECRET,
        "NEO4J_URI": f"bolt://mira:{SECRET}@127.0.0.1:7687",
        "PPS_EMBEDDER__BASE_URL": f"http://mira:{SECRET}@127.0.0.1/v1",
        "OPENAI_API_KEY": SECRET,
        "PPS_CALENDAR__URLS": f"https://cal.example/{SECRET}.ics",
    }
    for arguments in ((), ("--json",), ("ana",), ("ana", "--json", "--changed")):
        ended = pps(env, "config", *arguments)
        assert ended.returncode == 0, ended.stderr
        assert SECRET not in ended.stdout + ended.stderr, arguments
        assert "mira:" not in ended.stdout
    found = _settings(env, "ana")
    assert found["neo4j.password"] == ("set", "environment: PPS_NEO4J__PASSWORD")
    assert found["extractor.api_key"] == ("set", "environment: OPENAI_API_KEY")
    assert found["embedder.api_key"] == ("not set", "default")
    assert found["calendar.urls"][0] == "1 set"


def test_config_says_where_a_running_server_has_other_settings(served: Served) -> None:
    text = 'log_level = "error"\n'
    (served.home / "pps.toml").write_text(text)
    ended = served.pps("config")
    (served.home / "pps.toml").unlink()
    assert ended.returncode == 0
    assert "The running server has log_level = info; `pps stop` ends it" in ended.stdout
    assert "The running server" not in served.pps("config").stdout
