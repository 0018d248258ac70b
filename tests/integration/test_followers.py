"""Indexes follow the change log: each from its own position, and anew where the log does not reach back to it."""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

import pytest

from pps.app import App
from pps.config import EmbedderSettings, Settings
from pps.core.errors import StoreUnavailable
from pps.core.values import FactDraft
from pps.index.indexes import EntityIndexes, IndexDoc
from pps.ingest import indexer
from pps.ingest.drafts import RememberOptions
from pps.memory import Memory


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return Settings(home=tmp_path / "home", embedder=EmbedderSettings(name="hash"))


async def tell(memory: Memory, first: int, count: int) -> None:
    turns: list[tuple[str, RememberOptions]] = [
        (
            f"Turn {number}.",
            {"source_ref": str(number), "facts": [FactDraft("Ana", "WENT_TO", f"Place{number}")]},
        )
        for number in range(first, first + count)
    ]
    await memory.remember_many(turns)
    assert await memory.settled()


def data(settings: Settings, entity: str = "ana") -> Path:
    return settings.home / "entities" / entity / "data"


def logged(settings: Settings) -> int:
    with closing(sqlite3.connect(data(settings) / "memory.db")) as db:
        return db.execute("SELECT count(*) FROM change_log").fetchone()[0]


async def test_a_closed_memory_has_saved_positions_and_an_empty_log(settings: Settings) -> None:
    async with App.open(settings) as app:
        await app.create("ana")
        async with app.memory("ana") as memory:
            await tell(memory, 0, 3)
            assert (await memory.stats()).index_lag == 0
        await app.close_all()
        assert logged(settings) == 0
        async with app.memory("ana") as memory:
            positions = memory.parts.indexes.positions
            span = await memory.parts.journal.log_span()
            assert positions == {"text": span.last, "vectors": span.last}
            assert span.dropped == span.last > 0


@pytest.mark.parametrize(
    "lost", ["text", "text/facts", "text/position.json", "vectors.db", "everything"]
)
async def test_an_index_that_lost_its_files_is_made_anew_from_the_truth(
    settings: Settings, lost: str
) -> None:
    async with App.open(settings) as app:
        for name in ("ana", "ben"):
            await app.create(name)
        async with app.memory("ana") as ana, app.memory("ben") as ben:
            await tell(ana, 0, 3)
            await tell(ben, 7, 1)
        await app.close_all()
        names = ["text", "vectors.db", "chroma"] if lost == "everything" else [lost]
        for path in (data(settings) / name for name in names):
            shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)
        async with app.memory("ana") as ana, app.memory("ben") as ben:
            assert (await ana.ledger()).problems == (await ben.ledger()).problems == ()
            assert "Place2" in (await ana.recall("Place2"))["facts"][0].text
            others = await ana.recall("Place7", channels=("facts",))
            assert all("Place7" not in hit.text for hit in others["facts"])


async def test_only_the_index_that_is_behind_is_made_anew(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with App.open(settings) as app:
        await app.create("ana")
        async with app.memory("ana") as memory:
            await tell(memory, 0, 2)
        await app.close_all()
        shutil.rmtree(data(settings) / "text")
        made = list[str]()
        rebuild = indexer.Indexer.rebuild

        async def noted(
            self: indexer.Indexer, progress: indexer.Progress | None = None, which: str = "all"
        ) -> dict[str, int]:
            made.append(which)
            return await rebuild(self, progress, which)  # type: ignore[arg-type]

        monkeypatch.setattr(indexer.Indexer, "rebuild", noted)
        async with app.memory("ana") as memory:
            assert (await memory.ledger()).problems == ()
        assert made == ["text"]


async def test_what_was_written_without_a_model_is_embedded_when_there_is_one(
    settings: Settings,
) -> None:
    without = settings.model_copy(update={"embedder": EmbedderSettings(name="none")})
    for number, some in enumerate((settings, without, settings)):
        async with App.open(some) as app:
            if number == 0:
                await app.create("ana")
            async with app.memory("ana") as memory:
                await tell(memory, number * 200, 200)
    async with App.open(settings) as app, app.memory("ana") as memory:
        assert (await memory.ledger()).problems == ()
        _, vectors = await memory.parts.indexes.counts()
        assert vectors["facts"] == 600


async def test_indexes_that_are_ahead_of_a_restored_journal_are_made_anew(
    settings: Settings, tmp_path: Path
) -> None:
    async with App.open(settings) as app:
        await app.create("ana")
        async with app.memory("ana") as memory:
            await tell(memory, 0, 1)
        await app.close_all()
        shutil.copy(data(settings) / "memory.db", tmp_path / "older.db")
        async with app.memory("ana") as memory:
            await tell(memory, 1, 3)
        await app.close_all()
        shutil.copy(tmp_path / "older.db", data(settings) / "memory.db")
        async with app.memory("ana") as memory:
            assert (await memory.ledger()).problems == ()
            assert all(
                "Turn 3." not in hit.text for hit in (await memory.recall("Turn 3"))["episodes"]
            )


async def on_a_full_disk(_: EntityIndexes) -> int:
    raise StoreUnavailable("the disk is full")


async def test_positions_that_no_disk_took_are_applied_again(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with App.open(settings) as app:
        await app.create("ana")
        async with app.memory("ana") as memory:
            await tell(memory, 0, 2)
            monkeypatch.setattr(
                type(memory.parts.indexes),
                "save_positions",
                on_a_full_disk,
            )
        await app.close_all()
        monkeypatch.undo()
        assert logged(settings) > 0
        async with app.memory("ana") as memory:
            assert (await memory.ledger()).problems == ()
        await app.close_all()
        assert logged(settings) == 0


async def test_a_rebuild_that_is_cut_short_is_done_again(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with App.open(settings) as app:
        await app.create("ana")
        async with app.memory("ana") as memory:
            await tell(memory, 0, 3)
            apply = memory.parts.indexes.apply
            calls = 0

            async def failing(upserts: Sequence[IndexDoc], *rest: object, **named: object) -> None:
                nonlocal calls
                calls += 1
                if calls == 2:
                    raise StoreUnavailable("the disk is full")
                await apply(upserts, *rest, **named)  # type: ignore[arg-type]

            monkeypatch.setattr(memory.parts.indexes, "apply", failing)
            with pytest.raises(StoreUnavailable):
                await memory.reindex()
            await memory.remember("Turn 9.", source_ref="9")
            assert await memory.settled()  # the idle worker makes it anew
            assert (await memory.ledger()).problems == ()
            assert calls > 2


async def test_the_log_keeps_no_text(settings: Settings) -> None:
    async with App.open(settings) as app:
        await app.create("ana")
        async with app.memory("ana") as memory:
            await memory.remember("QUAGGAHEIM is a town.", facts=[FactDraft("Ana", "IN", "Quagga")])
            with closing(sqlite3.connect(data(settings) / "memory.db")) as db:
                rows = db.execute("SELECT kind || ' ' || id FROM change_log").fetchall()
    assert rows
    assert "quagga" not in str(rows).lower()
