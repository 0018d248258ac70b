"""The application: a bounded open set, indexes built anew, entities that come and go."""

from __future__ import annotations

import asyncio
import json
import sqlite3
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from pps.app import App
from pps.config import EmbedderSettings, ServerSettings, Settings
from pps.core.errors import ConfigError, StoreConflict, StoreError, UnknownEntity
from pps.models.bert import BGE_SMALL


async def remembered(app: App, name: str, text: str) -> None:
    await app.create(name)
    async with app.memory(name) as memory:
        await memory.remember(text, source_ref=text)


async def found(app: App, name: str, query: str) -> list[str]:
    async with app.memory(name) as memory:
        return [hit.text for hit in (await memory.recall(query))["episodes"]]


async def test_an_index_that_cannot_be_opened_says_what_to_do_and_reindex_does_it(
    tmp_path: Path,
) -> None:
    settings = Settings(home=tmp_path, embedder=EmbedderSettings(name="hash"))
    async with App.open(settings) as app:
        await remembered(app, "ana", "Tea is in the blue tin.")
    for file in (tmp_path / "entities" / "ana" / "data" / "text").rglob("meta.json"):
        file.write_text("{not json", encoding="utf-8")
    async with App.open(settings) as app:
        with pytest.raises(StoreError, match="reindex"):
            await found(app, "ana", "tea")
        counts = await app.reindex("ana")
        assert counts["episodes"] == 1
        assert await found(app, "ana", "tea") == ["user: Tea is in the blue tin."]


async def test_another_model_is_refused_until_everything_is_embedded_anew(tmp_path: Path) -> None:
    async with App.open(
        Settings(home=tmp_path, embedder=EmbedderSettings(name="hash", dimension=64))
    ) as app:
        await remembered(app, "ana", "Tea is in the blue tin.")
    async with App.open(
        Settings(home=tmp_path, embedder=EmbedderSettings(name="hash", dimension=128))
    ) as app:
        with pytest.raises(ConfigError, match="pps reembed ana"):
            await found(app, "ana", "tea")
        await app.reembed("ana")
        assert await found(app, "ana", "tea") == ["user: Tea is in the blue tin."]


async def model_of(app: App, name: str) -> str:
    async with app.memory(name) as memory:
        return json.loads((await memory.stats()).fingerprint)["model"]


async def test_an_entity_goes_on_with_the_model_of_its_vectors_and_a_new_one_begins_with_the_one_set(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with App.open(Settings(home=tmp_path, embedder=EmbedderSettings(name="minilm"))) as app:
        await remembered(app, "ana", "Tea is in the blue tin.")
    async with App.open(
        Settings(home=tmp_path, embedder=EmbedderSettings(name="bge-small"))
    ) as app:
        await remembered(app, "ben", "Coffee is in the red jar.")
        async with app.memory("ana") as memory:
            await memory.remember("The kettle is broken.")
            await memory.settled()
            recalled = await memory.recall("Where is the tea kept?")
        assert recalled["episodes"][0].text == "user: Tea is in the blue tin."
        assert recalled["episodes"][0].ranks["dense"] == 1
        assert (await model_of(app, "ana"), await model_of(app, "ben")) == (
            "all-MiniLM-L6-v2",
            "bge-small-en-v1.5",
        )
        await app.reembed("ana")
        assert await model_of(app, "ana") == "bge-small-en-v1.5"
    gone = replace(BGE_SMALL, weights=replace(BGE_SMALL.weights, package="no_such_package"))
    monkeypatch.setattr("pps.models.bert.BGE_SMALL", gone)
    async with App.open(Settings(home=tmp_path, embedder=EmbedderSettings(name="minilm"))) as app:
        with pytest.raises(
            ConfigError,
            match=r"vectors are of bge-small-en-v1.5.*pip install .*or run `pps reembed ana`",
        ):
            await found(app, "ana", "tea")


async def test_without_any_model_recall_goes_by_text_and_says_so(tmp_path: Path) -> None:
    async with App.open(Settings(home=tmp_path, embedder=EmbedderSettings(name="none"))) as app:
        await remembered(app, "ana", "Tea is in the blue tin.")
        assert await found(app, "ana", "blue tin") == ["user: Tea is in the blue tin."]
        async with app.memory("ana") as memory:
            assert any("text and graph" in note for note in (await memory.health()).notes)
    async with App.open(Settings(home=tmp_path, embedder=EmbedderSettings(name="hash"))) as app:
        assert await found(app, "ana", "blue tin") == ["user: Tea is in the blue tin."]
        async with app.memory("ana") as memory:
            stats = await memory.stats()
        assert stats.vector_indexed["episodes"] == 1


async def test_a_second_process_is_told_who_holds_the_files(tmp_path: Path) -> None:
    settings = Settings(home=tmp_path, embedder=EmbedderSettings(name="hash"))
    async with App.open(settings) as first, App.open(settings) as second:
        await remembered(first, "ana", "Tea.")
        async with first.memory("ana"):
            with pytest.raises(StoreConflict, match="process"):
                await found(second, "ana", "tea")


async def test_what_a_closed_entity_still_had_to_do_is_done_at_the_next_start(
    tmp_path: Path,
) -> None:
    settings = Settings(home=tmp_path, embedder=EmbedderSettings(name="hash"))
    async with App.open(settings) as app:
        await app.create("ana")
        async with app.memory("ana") as memory:
            for number in range(20):
                await memory.remember(f"Turn {number}.", source_ref=str(number), wait="journal")
    async with App.open(settings) as app:
        await app.resume_pending()
        async with app.memory("ana") as memory:
            stats = await memory.stats()
    assert (stats.turns, stats.episodes, stats.unfinished_jobs) == (20, 20, 0)


async def test_more_users_than_places_are_served_and_the_set_shrinks_again(tmp_path: Path) -> None:
    settings = Settings(
        home=tmp_path,
        embedder=EmbedderSettings(name="hash"),
        server=ServerSettings(open_entities=2),
    )
    async with App.open(settings) as app:
        names = [f"e{number}" for number in range(5)]
        for name in names:
            await app.create(name)

        async def use(name: str) -> None:
            async with app.memory(name) as memory:
                await memory.remember(f"{name} was here.", source_ref="1")

        await asyncio.gather(*(use(name) for name in names for _ in range(2)))
        assert len(app.open_names()) <= 2
        for name in names:
            assert await found(app, name, "who was here") == [f"user: {name} was here."]


async def test_a_deleted_entity_is_gone_and_its_name_begins_anew(
    app: App, settings: Settings
) -> None:
    await remembered(app, "ana", "A secret.")
    await app.delete("ana")
    with pytest.raises(UnknownEntity):
        await found(app, "ana", "secret")
    assert not (settings.home / "entities" / "ana").exists()
    await app.create("ana")
    assert await found(app, "ana", "secret") == []


async def test_one_whose_journal_cannot_be_read_is_closed_like_the_others_and_the_next_start_looks(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    settings = Settings(home=tmp_path, embedder=EmbedderSettings(name="hash"))
    async with App.open(settings) as app:
        for name in ("ana", "bob"):
            await remembered(app, name, "Tea.")
        with closing(sqlite3.connect(tmp_path / "entities" / "bob" / "data" / "memory.db")) as db:
            db.execute("DROP TABLE change_log")
        await app.close_all()
        assert app.open_names() == []
        assert list(app.registry.pending_since()) == ["bob"]
        assert "bob: whether it has jobs left cannot be read" in caplog.text
        assert await found(app, "ana", "tea") == ["user: Tea."]
