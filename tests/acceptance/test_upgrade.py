"""A home whose graphs an earlier PPS wrote: upgraded when a memory is opened, or ahead by ``pps upgrade``."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from pps.app import App
from pps.app.opening import self_node_id
from pps.config import load
from pps.core import time
from pps.core.errors import ConfigError
from pps.journal import old_graph
from pps.journal.db import tally
from pps.operations.calls import Caller, Calls
from pps.server import stop
from tests.acceptance.test_homes import NEWEST, check
from tests.erasing import left_in
from tests.integration.interfaces.serving import clean_env
from tests.integration.upgrade.old_graphs import tables_of
from tests.old_homes.making import environment, record, unpack
from tests.waiting import PATIENCE_S

OLD = ("ana", "garbled", "old", "reader", "team_jochi", "team_kublai", "team_mongke", "team_pool")
"""The entities of the home whose graph lies in ``graph.lbug``: an archived one and a squad's pool among them."""


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return unpack(NEWEST, tmp_path / "home")


@pytest_asyncio.fixture
async def app(home: Path) -> AsyncIterator[App]:
    async with App.open(load(env=environment(home))) as opened:
        yield opened


def data_of(home: Path, name: str) -> Path:
    return home / "entities" / name / "data"


def contents(home: Path, *names: str) -> dict[str, bytes]:
    """Return what some entities' graphs and journals hold, with their logs; an empty log is none."""
    files = [
        file
        for name in names
        for file in sorted(data_of(home, name).glob("*"))
        if file.name.startswith(("graph.lbug", "memory.db"))
        and not file.name.endswith(("-shm", ".lock"))
    ]
    return {str(file.relative_to(home)): file.read_bytes() for file in files if file.stat().st_size}


CONFIG_EXIT = 2


class CommandLine:
    """The command line of a home, with or without the library that reads its graphs."""

    def __init__(self, home: Path, tmp_path: Path) -> None:
        self._env = clean_env(home, PPS_EMBEDDER__NAME="minilm")
        self._without = tmp_path / "without"
        self._without.mkdir()
        (self._without / "sitecustomize.py").write_text(
            "import sys; sys.modules['ladybug'] = None\n"
        )

    def run(self, *arguments: str, extra: bool = True) -> subprocess.CompletedProcess[str]:
        path = {} if extra else {"PYTHONPATH": str(self._without)}
        return subprocess.run(
            [sys.executable, "-m", "pps", *arguments],
            env={**self._env, **path},
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )


@pytest.fixture
def command_line(home: Path, tmp_path: Path) -> CommandLine:
    return CommandLine(home, tmp_path)


def states(done: subprocess.CompletedProcess[str]) -> dict[str, str]:
    return {one["entity"]: one["state"] for one in json.loads(done.stdout)["entities"]}


async def test_pps_upgrade_does_it_ahead_for_all_and_exports_stay_the_same(
    home: Path, tmp_path: Path, command_line: CommandLine
) -> None:
    before = contents(home, *OLD)
    planned = command_line.run("upgrade", "--all", "--dry-run", "--json")
    assert planned.returncode == 0, planned.stderr
    expected = dict.fromkeys(OLD, "would_upgrade") | {"harbour": "nothing_to_do"}
    assert states(planned) == expected
    assert contents(home, *OLD) == before
    done = command_line.run("upgrade", "--all", "--json")
    assert done.returncode == 0, done.stderr
    assert states(done) == dict.fromkeys(OLD, "upgraded") | {"harbour": "nothing_to_do"}
    rows = {one["entity"]: one["rows"] for one in json.loads(done.stdout)["entities"]}
    assert rows == {one["entity"]: one["rows"] for one in json.loads(planned.stdout)["entities"]}
    assert [name for name in OLD if old_graph.old_files(data_of(home, name))] == []
    again = command_line.run("upgrade", "--all", "--json", extra=False)
    assert set(states(again).values()) == {"nothing_to_do"}
    check(NEWEST, await record(home, tmp_path, "embedded"), tmp_path)


async def test_a_home_whose_upgrades_were_killed_has_all_that_it_held(
    home: Path, tmp_path: Path
) -> None:
    killed = await asyncio.to_thread(
        subprocess.run,
        [sys.executable, "-m", "tests.integration.upgrade.killed", "--home", str(home)],
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert killed.returncode == 0, killed.stderr
    assert json.loads(killed.stdout) == sorted(OLD)
    check(NEWEST, await record(home, tmp_path, "embedded"), tmp_path)


def test_without_the_extra_an_old_entity_is_refused_and_others_go_on(
    home: Path, command_line: CommandLine
) -> None:
    refused = [name for name in OLD if name not in ("garbled", "old")]
    assert command_line.run("upgrade", "garbled").returncode == 0
    before = contents(home, *refused)
    try:
        status = command_line.run("status", extra=False)  # no server runs
        assert_refused(status, refused)
        assert "graph lies" not in line_after(status.stdout, "  garbled")
        stats = command_line.run("stats", "ana", extra=False)
        assert stats.returncode == CONFIG_EXIT, stats.stderr
        assert "`pip install 'pps[migrate]'`), then run `pps upgrade ana`" in stats.stderr
        assert "turns 1" in command_line.run("stats", "garbled", extra=False).stdout
        assert_refused(command_line.run("status", extra=False), refused)  # of the server
        doctor = command_line.run("doctor", extra=False).stdout
        for name in refused:
            (line,) = [one for one in doctor.splitlines() if one.startswith(f"BAD  entity {name}:")]
            assert f"then run `pps upgrade {name}`" in line
        assert "ok   entity garbled:" in doctor
        upgrade = command_line.run("upgrade", "--all", "--json", extra=False)
        assert upgrade.returncode == 1
        assert {name for name, state in states(upgrade).items() if state == "failed"} == {
            *refused,
            "old",
        }
        single = command_line.run("upgrade", "ana", extra=False)
        assert single.returncode == CONFIG_EXIT
    finally:
        stop(home)
    assert contents(home, *refused) == before


def assert_refused(status: subprocess.CompletedProcess[str], names: list[str]) -> None:
    assert status.returncode == 1
    for name in names:
        assert f"then run `pps upgrade {name}`" in line_after(status.stdout, f"  {name} ")


def line_after(text: str, beginning: str) -> str:
    lines = text.splitlines()
    (at,) = [number for number, line in enumerate(lines) if line.startswith(beginning)]
    return lines[at + 1]


async def test_an_old_entity_is_never_opened_empty(
    app: App, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = contents(home, "ana")
    monkeypatch.setitem(sys.modules, "ladybug", None)
    with pytest.raises(ConfigError, match="pps upgrade ana"):
        async with app.memory("ana"):
            pass
    assert "pps upgrade ana" in (await app.unopenable())["ana"]
    assert contents(home, "ana") == before
    monkeypatch.delitem(sys.modules, "ladybug")
    async with app.memory("ana") as memory:
        assert (await memory.stats()).facts == 15
    assert "ana" not in await app.unopenable()


async def test_doctor_names_the_copy(app: App, home: Path) -> None:
    async with app.memory("garbled"):
        pass
    (copy,) = old_graph.copies(data_of(home, "garbled"))
    answer = await Calls(app).answer(Caller(("owner",)), "doctor", {"entity": "garbled"})
    (note,) = [one for one in as_list(answer.data["notes"]) if "before its upgrade" in str(one)]
    assert str(copy.path) in str(note)
    assert f"{copy.made_at + timedelta(days=30):%Y-%m-%d}" in str(note)
    assert "pps upgrade garbled --drop-copy" in str(note)


def as_list(value: object) -> list[Any]:
    assert isinstance(value, list)
    return value


async def test_the_first_forgetting_for_good_erases_the_copy_and_its_dry_run_says_so(
    app: App, home: Path
) -> None:
    async with app.memory("ana") as memory:
        assert await memory.parts.worker.saved(PATIENCE_S)
        page = await memory.graph.said(None, limit=200)
        turn = next(
            one.turn for one in page.turns if one.turn.kind == "turn" and len(one.turn.content) > 30
        )
        holding = left_in(home / "entities" / "ana", [turn.content])
        assert any("before-upgrade" in name for name in holding), "the copy holds the text"
        soft = await memory.forget([turn.uuid], dry_run=False, soft=True)
        assert old_graph.copies(data_of(home, "ana")), "it can be restored: the copy stays"
        await memory.forgetting.restore(soft.restorable_as)
        softly = await memory.forget([turn.uuid], dry_run=True, soft=True)
        assert not softly.upgrade_copy
        shown = await Calls(app).answer(Caller.of_entity("ana"), "forget", {"ids": [turn.uuid]})
        assert shown.data["upgrade_copy"] is True
        assert "copy of this memory from before its upgrade goes with it" in shown.text
        assert old_graph.copies(data_of(home, "ana")), "a dry run erases nothing"
        await memory.forget([turn.uuid], dry_run=False)
        assert old_graph.copies(data_of(home, "ana")) == []
    await app.close_all()
    assert left_in(home / "entities" / "ana", [turn.content]) == []


async def test_what_is_forgotten_in_time_takes_the_copy_with_it(
    app: App, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The bin held it before the upgrade too, and so does the copy."""
    async with app.memory("ana") as memory:
        journal = memory.parts.journal
        assert await memory.forgetting.list()
        monkeypatch.setattr(journal.bin, "keep", timedelta(0))
        await memory.forgetting.tend()
        assert old_graph.copies(data_of(home, "ana")), "it was over its time only now"
        mark = journal.bin.running
        later = 25 * 3600.0
        monkeypatch.setattr(
            journal.bin, "running", lambda: type(mark())(mark().clock, mark().seconds + later)
        )
        await memory.forgetting.tend()
        assert old_graph.copies(data_of(home, "ana")) == []


async def test_the_copy_is_erased_after_30_days_of_archived_entities_too(
    app: App, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    await app.upgrade("garbled")
    await app.upgrade("old")
    real = time.now
    for days, are_kept in ((29, True), (31, False)):
        monkeypatch.setattr(time, "now", lambda days=days: real() + timedelta(days=days))
        await app.erase_overdue()
        for name in ("garbled", "old"):
            assert bool(old_graph.copies(data_of(home, name))) == are_kept, (days, name)


async def test_the_copy_can_be_dropped_and_goes_with_the_entity(app: App, home: Path) -> None:
    calls = Calls(app)
    await app.upgrade("ana")
    await app.upgrade("garbled")
    stored = tables_of(data_of(home, "ana") / "memory.db")
    for expected in ("copy_erased", "nothing_to_do"):
        answer = await calls.answer(
            Caller(("owner",)), "upgrade", {"entity": "ana", "drop_copy": True}, lambda *_: None
        )
        (report,) = as_list(answer.data["entities"])
        assert report["state"] == expected
    assert old_graph.copies(data_of(home, "ana")) == []
    assert tables_of(data_of(home, "ana") / "memory.db") == stored
    assert old_graph.copies(data_of(home, "garbled"))
    await app.delete("garbled")
    assert not data_of(home, "garbled").exists()


async def test_a_rebuild_takes_no_old_graph_and_leaves_none(app: App, home: Path) -> None:
    (data_of(home, "team_jochi") / "graph.lbug").write_bytes(b"LBUG damaged" * 400)
    with pytest.raises(Exception, match="pps rebuild team_jochi"):
        async with app.memory("team_jochi"):
            pass
    assert old_graph.copies(data_of(home, "team_jochi")) == []
    await app.rebuild("team_jochi")
    assert old_graph.old_files(data_of(home, "team_jochi")) == []
    async with app.memory("team_jochi") as memory:
        assert await memory.parts.worker.saved(PATIENCE_S)
        assert (await memory.stats()).episodes == 3


async def test_what_a_closed_memory_holds_is_counted_before_its_upgrade_too(
    app: App, home: Path
) -> None:
    entity = app.registry.get("ana").entity
    memory = data_of(home, "ana") / "memory.db"
    before = tally(memory, entity.group, self_node_id(entity))
    assert (before.nodes, before.edges) == (21, 15)
    await app.upgrade("ana")
    assert tally(memory, entity.group, self_node_id(entity)) == before
