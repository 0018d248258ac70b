"""A file that is gone or damaged is said, never made anew by itself; `rebuild` brings a graph back from the journal."""

from __future__ import annotations

import contextlib
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from pps.app import App
from pps.config import EmbedderSettings, Settings
from pps.core.errors import InvalidRequest, StoreError, StoreUnavailable
from pps.core.values import FactDraft, NodeDraft
from pps.entities.registry import Registry
from pps.interfaces.http.health import HealthProbe
from pps.interfaces.http.requests import Activity
from pps.memory import Memory
from pps.operations.calls import Calls
from tests.erasing import deleted, lose_graph


@pytest.fixture
def embedded(tmp_path: Path) -> Settings:
    return Settings(home=tmp_path / "home", embedder=EmbedderSettings(name="hash"))


@pytest.mark.parametrize("how", ["missing", "empty"])
async def test_a_journal_that_is_gone_is_said_and_not_made_anew(
    embedded: Settings, how: str
) -> None:
    async with App.open(embedded) as app:
        folder = (await app.create("ana")).folder
        async with app.memory("ana") as memory:
            await memory.remember("Tea is in the blue tin.")
        await app.close_all()
        lost = folder / "data" / "memory.db"
        take(lost, how)
        for _ in range(2):
            with pytest.raises(
                StoreError, match="is gone or empty, so nothing was opened; restore"
            ):
                async with app.memory("ana"):
                    pass
        assert "is gone" in (await app.unopenable())["ana"]
    async with App.open(embedded) as app:  # before anybody has tried
        assert "pps rebuild ana" not in (await app.unopenable())["ana"]
        await app.resume_pending()
    assert not lost.exists() or lost.stat().st_size == 0


async def test_a_journal_that_is_taken_away_while_it_is_open_is_told_and_nothing_more_is_taken_in(
    embedded: Settings,
) -> None:
    async with App.open(embedded) as app:
        folder = (await app.create("ana")).folder
        async with app.memory("ana") as memory:
            await memory.remember("Tea is in the blue tin.")
            (folder / "data" / "memory.db").unlink()
            assert list(await app.unopenable()) == ["ana"]
            assert [
                (one.entity, one.outage)
                for one in await HealthProbe(app, Calls(app), Activity()).problems()
            ] == [("ana", True)]
        for _ in range(2):
            with pytest.raises(StoreError, match="is gone or empty"):
                async with app.memory("ana"):
                    pass
        assert app.open_names() == []


async def test_an_entity_that_cannot_be_opened_stays_told_and_the_server_is_unwell_when_there_is_no_other(
    embedded: Settings,
) -> None:
    async with App.open(embedded) as app:
        folder = (await app.create("ana")).folder
        await app.close_all()
        (folder / "data" / "memory.db").unlink()
        condition = HealthProbe(app, Calls(app), Activity())
        for _ in range(2):  # the first attempt notes that its jobs are to be resumed
            condition.resuming.in_the_way = await app.resume_pending()
            assert [(one.entity, one.outage) for one in await condition.problems()] == [
                ("ana", True)
            ]
            with pytest.raises(StoreError):
                async with app.memory("ana"):
                    pass
        await app.create("ben")
        assert [(one.entity, one.outage) for one in await condition.problems()] == [("ana", False)]


async def test_what_an_earlier_deletion_left_and_nobody_can_erase_keeps_no_server_from_starting(
    embedded: Settings, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    (embedded.home / "entities" / ".trash").mkdir(parents=True)

    def refused(*_: object) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr("pps.entities.deletions.shutil.rmtree", refused)
    async with App.open(embedded) as app:
        assert ".trash" in caplog.text
        assert list(await app.resume_pending()) == [".trash"]


async def test_an_entity_can_be_read_while_its_registry_cannot_be_written(
    embedded: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with App.open(embedded) as app:
        await app.create("ana")
        async with app.memory("ana") as memory:
            await memory.remember("Tea is in the blue tin.")
        await app.close_all()

        def full(*_: object) -> None:
            raise StoreUnavailable("registry.db: the disk is full")

        monkeypatch.setattr(app.registry, "set_pending", full)
        async with app.memory("ana") as memory:
            assert (await memory.recall("blue tin"))["episodes"]
        await app.close_all()


def take(file: Path, how: str) -> None:
    file.unlink()
    if how == "empty":
        file.touch()


async def all_ids(memory: Memory) -> dict[str, list[str]]:
    client = memory.parts.client
    return {
        "nodes": sorted(one.uuid for one in await client.scan_nodes("", 1000)),
        "facts": sorted(one.uuid for one in await client.scan_facts("", 1000)),
        "episodes": sorted(one.uuid for one in await client.scan_episodes("", 1000)),
    }


async def test_a_graph_is_rebuilt_from_the_journal_under_the_ids_it_had_without_what_was_forgotten(
    settings: Settings,
) -> None:
    async with App.open(settings) as app:
        await app.create("ana")
        async with app.memory("ana") as memory:
            for at in range(5):
                fact = FactDraft(
                    f"Person{at}", "WENT_TO", f"Place{at}", text=f"Person{at} went to Place{at}."
                )
                await memory.remember(f"Turn {at}. #trip", source_ref=str(at), facts=[fact])
            await memory.remember(
                "Tea is in the blue tin.", nodes=[NodeDraft("Tin", kind="Object", summary="Blue.")]
            )
            await memory.remember("A node by itself.", nodes=[NodeDraft("Lonely", kind="Object")])
            await memory.records.add_event("See [[Second]].", title="First", source_ref="first")
            await memory.records.add_event("It is there.", title="Second", source_ref="second")
            await memory.anchor_save("Kitchen", "# Kitchen\n\nThe oven is broken.")
            told = await memory.recall("Person3 Place3")
            lonely = next(
                one
                for one in await memory.parts.client.scan_nodes("", 1000)
                if one.name == "Lonely"
            )
            await memory.forget([told["facts"][0].id, lonely.uuid], dry_run=False)
            assert await memory.settled()
            before = await all_ids(memory)
            # Known only by what was given with the fact that was forgotten, and erased with it.
            named = {
                node.name: node.uuid for node in await memory.parts.client.scan_nodes("", 1000)
            }
            before["nodes"] = sorted({*before["nodes"]} - {named["Person3"], named["Place3"]})
        await app.close_all()
        await lose_graph(app, "ana")
        with pytest.raises(StoreError, match="pps rebuild ana"):
            async with app.memory("ana"):
                pass
        counts = await app.rebuild("ana")
        assert counts["to_read"] == 0
        for _ in range(2):  # the same again, when it is opened again
            async with app.memory("ana") as memory:
                assert await all_ids(memory) == before
                found = await memory.recall("Person2 Place2")
                assert found["facts"][0].text == "Person2 went to Place2."
                assert (await memory.anchor_search("oven"))[0].text
                assert "Person3 went" not in str(
                    await memory.recall("Person3 Place3", channels=("facts",))
                )
                ledger = await memory.ledger()
                assert (ledger.problems, all(one.ok for one in ledger.agreements)) == ((), True)
                assert (await memory.health()).ok
            await app.close_all()
        assert (await app.rebuild("ana"))["episodes"] == counts["episodes"]


async def test_a_graph_that_is_damaged_names_the_command_that_makes_it_anew(
    embedded: Settings,
) -> None:
    async with App.open(embedded) as app:
        folder = (await app.create("ana")).folder
        async with app.memory("ana") as memory:
            await memory.remember("Tea is in the blue tin.")
        await app.close_all()
        with closing(sqlite3.connect(folder / "data" / "memory.db")) as db, db:
            db.execute("UPDATE node SET tags = 'no list'")
        with pytest.raises(StoreError, match="`pps rebuild ana`"):
            async with app.memory("ana"):
                pass
        assert list(await app.unopenable()) == ["ana"]
        await app.rebuild("ana")
        assert await app.unopenable() == {}
        async with app.memory("ana") as memory:
            assert (await memory.recall("blue tin"))["episodes"]


@pytest.mark.parametrize("how", ["missing", "empty"])
async def test_a_registry_that_is_gone_is_said_and_made_anew_from_the_folders_when_it_is_asked_for(
    embedded: Settings, how: str
) -> None:
    async with App.open(embedded) as app:
        for name in ("ana", "ben"):
            await app.create(name)
        async with app.memory("ana") as memory:
            await memory.remember("Tea is in the blue tin.")
        before = [
            (entry.entity, entry.folder, entry.store, entry.created_at, entry.made)
            for entry in app.registry.list()
        ]
    take(embedded.home / "registry.db", how)
    (embedded.home / "entities" / "ben" / "data").rename(embedded.home / "elsewhere")
    assert Registry.restored(embedded.home) == ["ana", "ben"]
    assert {one.entity.name: one.made for one in Registry(embedded.home).list()} == {
        "ana": True,
        "ben": False,
    }
    (embedded.home / "elsewhere").rename(embedded.home / "entities" / "ben" / "data")
    take(embedded.home / "registry.db", how)
    with pytest.raises(StoreError, match=r"2 entities have folders here.*pps rebuild --registry"):
        Registry(embedded.home)
    assert Registry.restored(embedded.home) == ["ana", "ben"]
    with pytest.raises(InvalidRequest, match="is there"):
        Registry.restored(embedded.home)
    async with App.open(embedded) as app:
        after = [
            (entry.entity, entry.folder, entry.store, entry.created_at, entry.made)
            for entry in app.registry.list()
        ]
        assert after == before
        async with app.memory("ana") as memory:
            assert (await memory.recall("blue tin"))["episodes"]


PAGE = 4_096


async def test_damaged_pages_of_a_journal_are_seen_after_an_unclean_end_and_by_the_ledger(
    embedded: Settings, tmp_path: Path
) -> None:
    """Twelve pages, one in each copy, are overwritten: SQLite's check finds every one."""
    async with App.open(embedded) as app:
        file = (await app.create("ana")).folder / "data" / "memory.db"
        async with app.memory("ana") as memory:
            await memory.remember_many(
                [
                    (f"Turn {at}: Person{at} went to Place{at}.", {"source_ref": str(at)})
                    for at in range(300)
                ]
            )
            assert await memory.settled()
    whole = file.read_bytes()
    pages = len(whole) // PAGE
    for page in range(1, pages, max(1, pages // 12)):
        file.write_bytes(whole[: page * PAGE] + b"\x5a" * PAGE + whole[(page + 1) * PAGE :])
        file.with_name("memory.db-wal").touch()  # as a process leaves it that was killed
        async with App.open(embedded) as app:
            for _ in range(2):  # the first refusal leaves what the second goes by
                with pytest.raises(
                    StoreError, match="damaged: stop the server, keep a copy, restore a backup"
                ):
                    async with app.memory("ana"):
                        pass
            assert list(await app.unopenable()) == ["ana"]
        file.with_name("memory.db-wal").unlink(missing_ok=True)
        file.with_name("memory.db-shm").unlink(missing_ok=True)
    file.write_bytes(whole)
    async with App.open(embedded) as app, app.memory("ana") as memory:
        assert (await memory.ledger()).problems == ()


async def test_a_damaged_index_of_a_journal_that_was_closed_well_is_in_the_ledger(
    embedded: Settings,
) -> None:
    """A row that an index lacks harms no answer at once: only the whole check reads indexes and rows side by side."""
    async with App.open(embedded) as app:
        file = (await app.create("ana")).folder / "data" / "memory.db"
        async with app.memory("ana") as memory:
            await memory.remember("Tea is in the blue tin.")
    with closing(sqlite3.connect(file)) as db:
        root = db.execute(
            "SELECT rootpage FROM sqlite_master WHERE name = 'turns_by_kind'"
        ).fetchone()[0]
        db.execute("PRAGMA writable_schema = ON")
        db.execute(
            "UPDATE sqlite_master SET rootpage = (SELECT rootpage FROM sqlite_master WHERE name = 'shown_by_time')"
            " WHERE name = 'turns_by_kind'"
        )
        db.commit()
    assert root
    async with App.open(embedded) as app, app.memory("ana") as memory:
        problems = (await memory.ledger()).problems
        assert problems
        assert problems[0].startswith("memory.db is damaged (")
        assert "restore a backup" in problems[0]


def test_a_damaged_registry_is_a_finding(embedded: Settings) -> None:
    registry = Registry(embedded.home)
    for number in range(200):
        registry.create(f"e{number}")
    assert registry.damage() == []
    deleted(registry, "e7")
    assert registry.damage() == []
    shutil.copy(embedded.home / "registry.db", embedded.home / "whole.db")
    raw = bytearray((embedded.home / "whole.db").read_bytes())
    raw[-PAGE:] = b"\x5a" * PAGE
    (embedded.home / "registry.db").write_bytes(raw)
    with contextlib.suppress(StoreError):  # SQLite may refuse it at once, which is said as well
        assert "restore a backup" in Registry(embedded.home).damage()[0]
