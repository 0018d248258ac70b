"""Homes of an earlier PPS: no graph, copy or journal of one entity gets into another's memory by an upgrade."""

from __future__ import annotations

import shutil
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from pps.app import App
from pps.config import load
from pps.core.errors import IsolationError, StoreError
from pps.journal import old_graph
from pps.operations.calls import Caller, Calls
from tests.integration.upgrade.old_graphs import WORD, make_ladybug_graph
from tests.old_homes.contents import export_lines
from tests.old_homes.making import environment, unpack
from tests.waiting import PATIENCE_S

OWNER = Caller(("owner",))
BOAT = "boat"
"""A word of ana's alone among the entities of the home whose memories are on SQL tables or are to be."""


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return unpack("home_60bedfb", tmp_path / "home")


@pytest_asyncio.fixture
async def app(home: Path) -> AsyncIterator[App]:
    async with App.open(load(env=environment(home))) as opened:
        yield opened


def data_of(home: Path, name: str) -> Path:
    return home / "entities" / name / "data"


def contents(data: Path) -> dict[str, bytes]:
    return {
        str(file.relative_to(data)): file.read_bytes()
        for file in data.rglob("*")
        if file.is_file() and "lock" not in file.name and not file.name.endswith("-shm")
    }


def give(giver: Path, taker: Path, *names: str) -> None:
    for name in names:
        for file in taker.glob(f"{name}*"):
            file.unlink()
        for file in giver.glob(f"{name}*"):
            shutil.copy(file, taker)


async def test_the_graph_of_another_is_refused_and_nothing_of_it_is_copied(
    app: App, home: Path
) -> None:
    theirs, mine = data_of(home, "ana"), data_of(home, "garbled")
    give(theirs, mine, "graph.lbug")
    before = contents(mine), contents(theirs)
    with pytest.raises(IsolationError, match="another entity's data"):
        await app.upgrade("garbled", dry_run=True)
    with pytest.raises(IsolationError, match="another entity's data"):
        await app.upgrade("garbled")
    with pytest.raises(IsolationError, match="another entity's data"):
        async with app.memory("garbled"):
            pass
    assert (contents(mine), contents(theirs)) == before
    answer = await Calls(app).answer(OWNER, "upgrade", {"all": True}, lambda *_: None)
    reports = {report["entity"]: report for report in answer.data["entities"]}  # pyright: ignore
    assert reports["garbled"]["state"] == "failed"
    assert BOAT not in answer.text
    assert reports["ana"]["state"] == "upgraded"
    assert contents(mine) == before[0]


async def test_a_link_to_the_graph_of_another_is_refused(app: App, home: Path) -> None:
    theirs, mine = data_of(home, "ana"), data_of(home, "garbled")
    before = contents(theirs)
    (mine / "graph.lbug").unlink()
    (mine / "graph.lbug").symlink_to(theirs / "graph.lbug")
    with pytest.raises(IsolationError):
        await app.upgrade("garbled")
    assert old_graph.copies(mine) == []
    assert contents(theirs) == before


async def test_the_journal_of_another_takes_in_no_graph(app: App, home: Path) -> None:
    theirs, mine = data_of(home, "ana"), data_of(home, "garbled")
    give(theirs, mine, "memory.db")
    before = contents(mine)
    with pytest.raises(IsolationError, match="belongs to another entity"):
        await app.upgrade("garbled")
    assert contents(mine) == before


async def test_a_graph_of_several_groups_is_refused(app: App, home: Path, tmp_path: Path) -> None:
    """A file whose nodes are an entity's own and whose episodes are another's."""
    from tests.integration.upgrade.old_graphs import LadybugFile

    mine = data_of(home, "garbled")
    group, other = (app.registry.get(name).entity.group for name in ("garbled", "ana"))
    for file in mine.glob("graph.lbug*"):
        file.unlink()
    with LadybugFile(mine / "graph.lbug", group) as file:
        file.node("Ada")
        file.episode("first", group_id=other)
    with pytest.raises(IsolationError):
        await app.upgrade("garbled")
    for file in mine.glob("graph.lbug*"):
        file.unlink()
    with LadybugFile(mine / "graph.lbug", group) as file:
        file.node("Ada", group_id="")
    with pytest.raises(StoreError, match="damaged"):
        await app.upgrade("garbled")
    assert old_graph.copies(mine) == []


async def test_the_copy_of_one_is_not_read_through_another(
    app: App, home: Path, tmp_path: Path
) -> None:
    theirs, mine = data_of(home, "ana"), data_of(home, "garbled")
    await app.upgrade("ana")
    (copy,) = old_graph.copies(theirs)
    shutil.copytree(copy.path, mine / copy.path.name)
    (mine / f"{copy.path.name[:-4]}0001Z").symlink_to(copy.path)
    async with app.memory("garbled") as memory:
        assert await memory.parts.worker.saved(PATIENCE_S)
        found = await memory.recall(BOAT)
        lines = await export_lines(memory, tmp_path)
    assert BOAT not in repr(found.channels)
    assert BOAT not in "".join(lines)
    assert old_graph.copies(theirs) == [copy], "what was in the way in the other folder goes alone"
    assert (copy.path / "graph.lbug").stat().st_size


async def test_what_erases_the_copy_of_one_leaves_that_of_another(app: App, home: Path) -> None:
    for name in ("ana", "garbled", "reader"):
        await app.upgrade(name)
    (theirs,) = old_graph.copies(data_of(home, "ana"))
    link = data_of(home, "garbled") / "before-upgrade-20200101T000000000000Z"
    link.symlink_to(theirs.path)
    assert await app.erase_upgrade_copy("garbled")
    assert not await app.erase_upgrade_copy("garbled")
    async with app.memory("reader") as memory:
        page = await memory.graph.said(None, limit=10)
        await memory.forget([page.turns[0].turn.uuid], dry_run=False)
    assert old_graph.copies(data_of(home, "reader")) == []
    (copy,) = old_graph.copies(data_of(home, "ana"))
    assert sorted(file.name for file in copy.path.iterdir())[0] == "graph.lbug"


async def test_a_stray_graph_of_another_beside_an_upgraded_memory_is_not_read(
    app: App, home: Path, tmp_path: Path
) -> None:
    await app.upgrade("ana")
    group = app.registry.get("garbled").entity.group
    make_ladybug_graph(tmp_path / "other", group)
    shutil.copy(tmp_path / "other" / "graph.lbug", data_of(home, "ana"))
    async with app.memory("ana") as memory:
        assert WORD not in repr((await memory.recall(WORD)).channels)
    answer = await Calls(app).answer(OWNER, "doctor", {"entity": "ana"}, lambda *_: None)
    assert "is not read: the graph is in memory.db" in answer.text
    await app.close_all()
    assert (data_of(home, "ana") / "graph.lbug").exists()
