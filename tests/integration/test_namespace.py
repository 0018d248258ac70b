"""Each entity has its namespace in Chroma, with the collection ``anchors``, from its creation; and its folder whole."""

from __future__ import annotations

import asyncio
import shutil
import sqlite3
import time
from contextlib import closing
from pathlib import Path

from pps.app import App
from pps.config import EmbedderSettings, Settings

_PATIENCE_S = 60.0


def settings_of(home: Path) -> Settings:
    return Settings(home=home, embedder=EmbedderSettings(name="hash"))


async def collections(folder: Path) -> list[str]:
    """Return the names of the collections of anchors in an entity's namespace, once it is there."""
    database = folder / "data" / "chroma" / "anchors" / "chroma.sqlite3"
    deadline = time.monotonic() + _PATIENCE_S
    while not database.exists():
        assert time.monotonic() < deadline
        await asyncio.to_thread(time.sleep, 0.05)
    with closing(sqlite3.connect(database)) as db:
        return [name for (name,) in db.execute("SELECT name FROM collections")]


async def test_an_entity_has_its_collection_of_anchors_from_its_creation(tmp_path: Path) -> None:
    async with App.open(settings_of(tmp_path / "home")) as app:
        app.makes_namespaces = True
        created = await app.create("ana")
        other = await app.create("ben")
        assert await collections(created.folder) == ["anchors"]
        assert await collections(other.folder) == ["anchors"]
    async with App.open(settings_of(tmp_path / "home")) as app:
        app.makes_namespaces = True
        async with app.memory("ana") as memory:  # it stays, and takes the first anchor
            assert await collections(created.folder) == ["anchors"]
            await memory.anchor_save("Zanzibar", "Where cloves grow.")
            assert await memory.settled()
            found = await memory.recall("cloves", channels=("anchors",))
            assert len(found.channels["anchors"].hits) == 1
    async with App.open(settings_of(tmp_path / "home")) as app, app.memory("ana") as memory:
        found = await memory.recall("cloves", channels=("anchors",))
        assert len(found.channels["anchors"].hits) == 1
        await memory.forget(["zanzibar"], dry_run=False)
        found = await memory.recall("cloves", channels=("anchors",))
        assert found.channels["anchors"].hits == ()


async def test_what_was_deleted_from_a_folder_is_made_again_by_creating_it_once_more(
    tmp_path: Path,
) -> None:
    async with App.open(settings_of(tmp_path / "home")) as app:
        created = await app.create("ana")
        shutil.rmtree(created.folder / "anchors")
        (created.folder / "identity.md").unlink()
        card = (created.folder / "entity.toml").read_text()
        again = await app.create("ana")
        assert again.entity == created.entity
        assert (created.folder / "anchors").is_dir()
        assert "ana" in (created.folder / "identity.md").read_text()
        assert (created.folder / "entity.toml").read_text() == card
        (created.folder / "identity.md").write_text("I am Ana.")
        await app.create("ana")
        assert (created.folder / "identity.md").read_text() == "I am Ana."
