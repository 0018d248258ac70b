"""A memory moved between a file and PostgreSQL: all of it is there, one store is the true one, and the other is erased."""

from __future__ import annotations

import asyncio
import itertools
import os
import signal
import sqlite3
import sys
import tarfile
from collections.abc import AsyncIterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from pps.app import App
from pps.app.moving import file_of
from pps.config import EmbedderSettings, Settings, load
from pps.core.errors import (
    InvalidRequest,
    StoreConflict,
    StoreError,
    StoreUnavailable,
    UnknownEntity,
)
from pps.core.values import FactDraft, NodeDraft
from pps.entities import folder
from pps.entities.moves import Place
from pps.journal import copying
from pps.journal.copying import Digests, digests_of_file, digests_of_group, table_shapes
from pps.journal.db import open_reader
from pps.journal.postgresql import tables_of
from pps.operations.calls import Caller, Calls
from tests.acceptance.moving_process import STEPS
from tests.erasing import left_in
from tests.postgresql_server import PostgresqlServer
from tests.sampling import sample
from tests.third_party import add_to_path, ask, install, listed

pytestmark = [pytest.mark.postgresql, pytest.mark.timeout(300)]

MARK = "zanzibarine"
_OLD_HOME = Path(__file__).parents[1] / "fixtures" / "home_00d652a.tar.xz"
_PROCESS = Path(__file__).with_name("moving_process.py")
OTHER: dict[Place, Place] = {"embedded": "postgresql", "postgresql": "embedded"}


@pytest.fixture
def settings(postgresql_server: PostgresqlServer, tmp_path: Path) -> Settings:
    return Settings(
        home=tmp_path / "home",
        embedder=EmbedderSettings(name="hash"),
        postgresql=postgresql_server.settings,
    )


@pytest.fixture
async def app(settings: Settings) -> AsyncIterator[App]:
    async with App.open(settings) as opened:
        yield opened


async def fill(app: App, name: str, store: Place = "embedded") -> None:
    """Make a memory with something in every part: turns, facts, records, versions, the bin, jobs, anchors."""
    await app.create(name, store=store, packs=["constitution"])
    async with app.memory(name) as memory:
        for number in range(6):
            fact = FactDraft(
                "Klara", "LIVES_IN", f"Town {number}", text=f"Klara lives in {number}."
            )
            await memory.remember(
                f"Klara moved to Town {number}, the {MARK} one. #towns",
                source_ref=f"ref {number}",
                session="letters",
                facts=[fact],
                nodes=[NodeDraft("Klara", kind="Person", aliases=("Klärchen",))],
            )
        await memory.records.add_event("See [[Garden]].", title="First", source_ref="first")
        await memory.records.add_event("It grows.", title="Garden", source_ref="second")
        await memory.anchor_save("Kitchen", "# Kitchen\n\nThe oven is broken.")
        assert await memory.settled()
        turns = (await memory.graph.said(None, limit=50)).turns
        changed, binned = (
            next(turn.turn for turn in turns if turn.turn.source_ref == ref)
            for ref in ("ref 1", "ref 2")
        )
        await memory.records.update(changed.uuid, content=f"Klara moved to Lyon, the {MARK} one.")
        await memory.forget([binned.uuid], dry_run=False, soft=True)
        await memory.recall("Klara", session="letters")
        assert await memory.settled()


async def digests(app: App, name: str) -> Digests:
    """Return what the store that is true has of a memory that nobody has open."""
    entry = app.registry.get(name)
    if entry.store != "postgresql":
        with closing(open_reader(file_of(entry))) as db:
            return digests_of_file(db, table_shapes(db))
    model = file_of(entry).with_name("shapes.db")
    copying.prepare_file(model, entry.entity.group)
    with closing(sqlite3.connect(model)) as db:
        shapes = table_shapes(db)
    copying.erase_file(model)
    database = await app.database()
    return await asyncio.to_thread(
        database.read, entry.entity.group, lambda rows: digests_of_group(rows, shapes)
    )


async def rows_left(app: App, name: str) -> int:
    """Return how many rows a database has of an entity."""
    group = app.registry.get(name).entity.group
    database = await app.database()

    def count(db: Any) -> int:
        return sum(
            db.execute(f'SELECT count(*) FROM "{table}"').fetchone()[0]  # noqa: S608 - of the catalogue
            for table in tables_of(db)
        )

    return await asyncio.to_thread(database.read, group, count)


async def answers(app: App, name: str) -> list[object]:
    """Return what a memory says, whatever store it is in."""
    calls, owner = Calls(app), Caller.of_entity(name)
    asked = [
        await calls.answer(owner, "timeline", {"limit": 1000}),
        await calls.answer(owner, "turns_list", {"limit": 100}),
        await calls.answer(owner, "forgotten", {}),
        await calls.answer(owner, "nodes_list", {"query": "Klara"}),
    ]
    async with app.memory(name) as memory:
        found = await memory.recall(f"Klara {MARK}", session="later")
        ledger = await memory.ledger()
        assert ledger.problems == ()
        assert (await memory.health()).problems == ()
    hits = [[hit.id for hit in found[channel]] for channel in ("facts", "nodes", "episodes")]
    return [*(answer.data for answer in asked), hits]


@pytest.mark.parametrize("first", ["embedded", "postgresql"])
async def test_all_of_a_memory_moves_and_goes_on_in_its_new_store_without_a_restart(
    app: App, first: Place, postgresql_server: PostgresqlServer
) -> None:
    await fill(app, "ana", first)
    before = await answers(app, "ana")
    target = OTHER[first]
    report = await app.move("ana", target)
    assert (report.state, report.store) == ("moved", target)
    assert {"turns", "fact", "node", "versions", "bin", "records"} <= {*report.rows}
    assert app.registry.get("ana").store == target
    assert folder.card_of(app.registry.get("ana").folder).store == target
    assert await answers(app, "ana") == before
    async with app.memory("ana") as memory:
        restored = (await memory.forgetting.list())[0]
        await memory.forgetting.restore(restored.id)
        turn = (await memory.remember("Klara moved to Oslo.", source_ref="after")).turn_id
        assert await memory.settled()
        assert (await memory.get([turn]))[0]
        ids = [turn.turn.seq for turn in (await memory.graph.said(None, limit=50)).turns]
        assert len(ids) == len(set(ids))
    assert (await app.move("ana", target)).state == "nothing_to_do"
    await app.drop_moved_source("ana")
    after = await answers(app, "ana")
    await app.move("ana", first)
    assert await answers(app, "ana") == after
    await app.drop_moved_source("ana")
    assert await answers(app, "ana") == after


async def test_rows_of_a_feature_move_also_when_it_is_switched_off(
    app: App, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, settings: Settings
) -> None:
    add_to_path(install(tmp_path / "site"), monkeypatch)
    async with App.open(settings) as opened:
        calls = Calls(opened)
        await opened.create("ana")
        await ask(calls, "ana", "deadline_add", text=MARK)
        await opened.switch_feature("deadlines", on=False)
        for target in ("postgresql", "embedded"):
            report = await opened.move("ana", target)
            assert report.rows["feature_deadlines__entries"] == 1
            await opened.drop_moved_source("ana")
        await opened.switch_feature("deadlines", on=True)
        assert await listed(calls, "ana") == [MARK]


@pytest.mark.parametrize(
    ("target", "step"), sample(itertools.product(("postgresql", "embedded"), STEPS), 4)
)
async def test_a_kill_at_any_step_leaves_one_true_store_and_a_second_run_finishes(
    settings: Settings, postgresql_server: PostgresqlServer, target: Place, step: str
) -> None:
    source = OTHER[target]
    async with App.open(settings) as app:
        await fill(app, "ana", source)
        before = await answers(app, "ana")
    environment = {
        **os.environ,
        "URL": postgresql_server.url,
        "OWNER_URL": postgresql_server.owner_url,
        "PYTHONPATH": str(Path(__file__).parents[2]),
    }
    killed = await asyncio.create_subprocess_exec(
        sys.executable,
        str(_PROCESS),
        str(settings.home),
        "ana",
        target,
        step,
        env=environment,
        stderr=asyncio.subprocess.PIPE,
    )
    _, said = await killed.communicate()
    assert killed.returncode == -signal.SIGKILL, said.decode()
    is_switched = step in ("switched", "card written")
    async with App.open(settings) as app:
        assert app.registry.get("ana").store == (target if is_switched else source)
        assert await answers(app, "ana") == before
        async with app.memory("ana") as memory:
            await memory.remember("Said after the kill.", source_ref="late")
            assert await memory.settled()
        late = await answers(app, "ana")
        kept, cut_short = await app.moved_copy("ana")
        assert (len(kept), len(cut_short)) == ((1, 0) if is_switched else (0, 1))
        assert "pps move ana --drop-source" in (kept + cut_short)[0]
        report = await app.move("ana", target)
        assert report.state == ("nothing_to_do" if is_switched else "moved")
        assert report.kept
        assert app.registry.get("ana").store == target
        assert folder.card_of(app.registry.get("ana").folder).store == target
        assert await answers(app, "ana") == late
        await app.drop_moved_source("ana")
        assert await app.moved_copy("ana") == ([], [])
        assert await answers(app, "ana") == late
        if target == "embedded":
            assert await rows_left(app, "ana") == 0
        else:
            assert not file_of(app.registry.get("ana")).exists()


@pytest.mark.parametrize("target", ["postgresql", "embedded"])
async def test_a_copy_that_is_not_the_same_is_erased_and_nothing_is_switched(
    app: App, target: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    await fill(app, "ana", OTHER[target])
    before = await answers(app, "ana")
    inserting = copying.insert_rows

    def lossy(db: Any, shape: Any, rows: Any, group: str = "") -> None:
        inserting(db, shape, rows[1:] if shape.name == "fact_ties" else rows, group)
        if shape.name == "support":
            db.execute("UPDATE episode SET description = 'changed'")

    with monkeypatch.context() as broken:
        broken.setattr(copying, "insert_rows", lossy)
        with pytest.raises(StoreError, match=r"not the same as the memory in .*episode"):
            await app.move("ana", target)
    assert app.registry.get("ana").store == OTHER[target]
    assert await app.moved_copy("ana") == ([], [])
    assert await answers(app, "ana") == before
    if target == "postgresql":
        assert await rows_left(app, "ana") == 0
    else:
        assert left_in(app.registry.get("ana").folder, ["memory.db"]) == []


async def test_what_is_kept_is_named_and_holds_the_text_until_it_is_dropped_and_nothing_does_after(
    app: App, postgresql_server: PostgresqlServer, settings: Settings
) -> None:
    await fill(app, "ana")
    group = app.registry.get("ana").entity.group
    await app.move("ana", "postgresql")
    (note,), _ = await app.moved_copy("ana")
    assert str(file_of(app.registry.get("ana"))) in note
    examined = await Calls(app).answer(Caller(("owner",)), "doctor", {"entity": "ana"})
    assert note in examined.data["notes"]  # pyright: ignore[reportOperatorIssue]
    with pytest.raises(InvalidRequest, match="--drop-source` first"):
        await app.move("ana", "embedded")
    await app.close_all()
    assert "entities/ana/data/memory.db" in left_in(settings.home, [MARK])
    assert (await app.drop_moved_source("ana")).state == "dropped"
    assert (await app.drop_moved_source("ana")).state == "nothing_to_do"
    assert "entities/ana/data/memory.db" not in left_in(settings.home, [MARK, "memory.db"])
    await app.move("ana", "embedded")
    assert await postgresql_server.rows_with(MARK, group)
    await app.drop_moved_source("ana")
    assert await postgresql_server.rows_with(group) == []


@pytest.mark.parametrize("target", ["postgresql", "embedded"])
async def test_a_final_forget_erases_what_is_kept_and_its_dry_run_says_so(
    app: App, postgresql_server: PostgresqlServer, settings: Settings, target: Place
) -> None:
    await fill(app, "ana", OTHER[target])
    group = app.registry.get("ana").entity.group
    await app.move("ana", target)
    async with app.memory("ana") as memory:
        turn = (await memory.graph.said(None, limit=1)).turns[0].turn
        softly = await memory.forget([turn.uuid], dry_run=True, soft=True)
        assert not softly.moved_copy
        shown = await Calls(app).answer(Caller.of_entity("ana"), "forget", {"ids": [turn.uuid]})
        assert shown.data["moved_copy"] is True
        assert "another store keeps of this memory" in shown.text
        assert (await app.moved_copy("ana"))[0], "a dry run erases nothing"
        await memory.forget([turn.uuid], dry_run=False)
        assert await app.moved_copy("ana") == ([], [])
    if target == "embedded":
        assert await postgresql_server.rows_with(group) == []
    else:
        assert not file_of(app.registry.get("ana")).exists()
    assert await app.unopenable() == {}


@pytest.mark.parametrize("target", ["postgresql", "embedded"])
async def test_deleting_an_entity_erases_both_stores(
    app: App, postgresql_server: PostgresqlServer, settings: Settings, target: Place
) -> None:
    await fill(app, "ana", OTHER[target])
    group = app.registry.get("ana").entity.group
    await app.move("ana", target)
    await app.delete("ana")
    assert await postgresql_server.rows_with(group) == []
    assert left_in(settings.home, [MARK, group, "ana"]) == []


@pytest.mark.parametrize("target", ["postgresql", "embedded"])
async def test_an_archived_memory_moves_whole_and_stays_archived(
    app: App, postgresql_server: PostgresqlServer, settings: Settings, target: Place
) -> None:
    await fill(app, "ana", OTHER[target])
    group = app.registry.get("ana").entity.group
    before = await answers(app, "ana")
    await app.archive("ana")
    copied = await digests(app, "ana")
    report = await app.move("ana", target)
    moved = await digests(app, "ana")
    assert report.state == "moved"
    assert report.rows == {name: table.rows for name, table in copied.items() if table.rows}
    assert all(moved[name] == copied[name] for name in report.rows)
    entry = app.registry.get("ana")
    assert (entry.archived, entry.store) == (True, target)
    assert app.open_names() == []
    with pytest.raises(UnknownEntity, match="is archived"):
        async with app.memory("ana"):
            pass
    examined = await Calls(app).answer(Caller(("owner",)), "doctor", {"entity": "ana"})
    assert "keeps this memory as it was before its move" in examined.text
    assert "`pps entity archive ana --undo` brings it back" in examined.text
    assert (await app.drop_moved_source("ana")).state == "dropped"
    if target == "embedded":
        assert await postgresql_server.rows_with(group) == []
    else:
        assert "entities/ana/data/memory.db" not in left_in(settings.home, [MARK, "memory.db"])
    assert (await app.move("ana", target)).state == "nothing_to_do"
    await app.archive("ana", undo=True)
    assert await answers(app, "ana") == before


@pytest.mark.parametrize("target", ["postgresql", "embedded"])
async def test_deleting_an_archived_memory_that_was_moved_erases_both_stores(
    app: App, postgresql_server: PostgresqlServer, settings: Settings, target: Place
) -> None:
    await fill(app, "ana", OTHER[target])
    group = app.registry.get("ana").entity.group
    await app.archive("ana")
    await app.move("ana", target)
    await app.delete("ana")
    assert await postgresql_server.rows_with(group) == []
    assert left_in(settings.home, [MARK, group, "ana"]) == []


async def test_an_archived_memory_of_an_earlier_version_is_upgraded_before_it_moves(
    postgresql_server: PostgresqlServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with tarfile.open(_OLD_HOME) as packed:
        packed.extractall(tmp_path / "old home", filter="data")
    monkeypatch.setenv("PPS_HOME", str(tmp_path / "old home"))
    settings = load().model_copy(update={"postgresql": postgresql_server.settings})
    async with App.open(settings) as app:
        entry = app.registry.get("old")
        assert entry.archived
        with closing(open_reader(file_of(entry))) as db:
            texts = db.execute("SELECT content FROM turns ORDER BY seq").fetchall()
        assert texts
        report = await app.move("old", "postgresql")
        assert report.rows["turns"] == len(texts)
        assert app.registry.get("old").archived
        database = await app.database()
        statement = "SELECT content FROM turns ORDER BY seq"
        moved = await asyncio.to_thread(
            database.read, entry.entity.group, lambda db: db.execute(statement).fetchall()
        )
        assert moved == texts


async def test_a_text_that_postgresql_cannot_store_is_named_and_nothing_is_changed(
    app: App,
) -> None:
    await app.create("ana")
    async with app.memory("ana") as memory:
        turn = (await memory.remember("No zero in it.")).turn_id
        assert await memory.settled()
        await memory.parts.journal.write(
            lambda db: db.execute("UPDATE turns SET actor = 'a' || char(0)")
        )
    with pytest.raises(InvalidRequest, match=r"has the character U\+0000"):
        await app.move("ana", "postgresql")
    assert app.registry.get("ana").store == "embedded"
    assert await rows_left(app, "ana") == 0
    async with app.memory("ana") as memory:
        assert (await memory.get([turn]))[0]


async def test_without_a_server_nothing_moves_and_a_memory_in_use_is_waited_for(
    settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with App.open(settings) as app:
        await app.create("ana")
        monkeypatch.setattr("pps.app.hosting._PATIENCE_S", 0.2)
        async with app.memory("ana"):
            with pytest.raises(StoreConflict, match="is in use"):
                await app.move("ana", "postgresql")
        assert app.registry.moves.other_copy(app.registry.get("ana").entity.group) is None
    away = settings.postgresql.model_validate(
        {"url": f"postgresql://pps:x@/pps?host={tmp_path}", "owner_url": ""}
    )
    async with App.open(settings.model_copy(update={"postgresql": away})) as app:
        with pytest.raises(StoreUnavailable, match="check the server"):
            await app.move("ana", "postgresql")
        assert app.registry.get("ana").store == "embedded"


@pytest.mark.parametrize("target", ["postgresql", "embedded"])
async def test_of_two_moves_at_once_one_moves_and_what_is_said_between_them_stays(
    app: App, target: Place
) -> None:
    """The second waits; what the first left must not be taken for the memory."""
    await app.create("ana", store=OTHER[target])

    async def move(number: int) -> str:
        report = await app.move("ana", target)
        async with app.memory("ana") as memory:
            await memory.remember(f"Said after move {number}.", source_ref=str(number))
        return report.state

    states = await asyncio.gather(*[move(number) for number in range(3)])
    assert sorted(states) == ["moved", "nothing_to_do", "nothing_to_do"]
    async with app.memory("ana") as memory:
        assert await memory.settled()
        assert (await memory.stats()).turns == 3
        assert (await memory.ledger()).problems == ()
    entry = app.registry.get("ana")
    other = app.registry.moves.other_copy(entry.entity.group)
    assert other is not None
    assert (entry.store, other.place, other.is_kept) == (target, OTHER[target], True)


async def test_a_registry_made_anew_knows_the_file_that_a_move_left(settings: Settings) -> None:
    from pps.entities.registry import Registry

    async with App.open(settings) as app:
        await fill(app, "ana")
        await app.move("ana", "postgresql")
    (settings.home / "registry.db").unlink()
    assert Registry.restored(settings.home) == ["ana"]
    async with App.open(settings) as app:
        assert app.registry.get("ana").store == "postgresql"
        assert (await app.moved_copy("ana"))[0]
        await app.drop_moved_source("ana")
        assert not file_of(app.registry.get("ana")).exists()
