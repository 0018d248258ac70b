"""Entities that come and go: all at once, against each other, and where something fails on the way."""

from __future__ import annotations

import asyncio
import contextlib
from pathlib import Path

import pytest

from pps.app import App
from pps.config import EmbedderSettings, Neo4jSettings, Settings
from pps.core.errors import StoreConflict, StoreError, UnknownEntity
from pps.entities import folder as entity_folder


@pytest.fixture
def embedded(tmp_path: Path) -> Settings:
    return Settings(home=tmp_path / "home", embedder=EmbedderSettings(name="hash"))


async def test_deletions_of_different_entities_at_once_all_succeed(embedded: Settings) -> None:
    async with App.open(embedded) as app:
        names = [f"e{number}" for number in range(40)]
        for name in names:
            app.registry.create(name)
        await asyncio.gather(*map(app.delete, names))
        assert app.registry.list() == []
        assert list(app.registry.entities_folder.iterdir()) == []


async def test_a_creation_that_races_a_deletion_gives_a_fresh_entity_or_says_that_it_was_deleted(
    embedded: Settings,
) -> None:
    async with App.open(embedded) as app:

        async def tried(work: str) -> None:
            with contextlib.suppress(StoreConflict, UnknownEntity):
                await (app.create("ana") if work == "create" else app.delete("ana"))

        for _ in range(4):
            await asyncio.gather(
                *(tried(work) for work in ("create", "delete", "create", "delete"))
            )
        await app.create("ana")
        async with app.memory("ana") as memory:
            assert (await memory.stats()).turns == 0
        await app.delete("ana")
        assert list(app.registry.entities_folder.iterdir()) == []


async def test_an_entity_that_is_to_be_published_gets_its_token_although_the_server_is_away(
    embedded: Settings,
) -> None:
    away = embedded.model_copy(
        update={"neo4j": Neo4jSettings(uri="bolt://127.0.0.1:9", password="x")}
    )
    async with App.open(away) as app:
        made = await app.create("ana", store="neo4j")
        assert made.is_new
        assert made.token is not None
        assert app.registry.entity_of_token(made.token) == made.entity
        again = await app.create("ana", store="neo4j")
        assert (again.entity, again.is_new, again.token) == (made.entity, False, None)
        async with app.memory("ana") as memory:
            assert (await memory.remember("Tea is in the blue tin.")).state == "done"
            assert "Neo4j" in str((await memory.health()).problems)


async def test_an_entity_whose_folder_could_not_be_written_is_completed_with_its_token(
    embedded: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with App.open(embedded) as app:
        with monkeypatch.context() as full:
            full.setattr(entity_folder, "write", no_room)
            with pytest.raises(StoreError, match="No space left"):
                await app.create("ana")
        made = await app.create("ana")
        assert made.is_new
        assert made.token is not None
        await app.delete("ana")


def no_room(*_: object) -> None:
    raise OSError(28, "No space left on device")


async def test_a_deletion_is_not_begun_while_another_process_has_the_memory_open(
    embedded: Settings,
) -> None:
    async with App.open(embedded) as app, App.open(embedded) as other:
        await app.create("ben")
        async with app.memory("ben"):
            with pytest.raises(StoreConflict, match="held by process"):
                await other.delete("ben")
        assert [entry.entity.name for entry in app.registry.list()] == ["ben"]
        assert app.registry.deletions.pending() == []
