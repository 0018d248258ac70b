"""Documents: what one imports or follows is in no other, and no folder feeds two."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from pps.app import App
from pps.core.errors import InvalidRequest, NotFound, UnknownEntity
from pps.core.values import FactDraft
from pps.entities.routing import Watched
from pps.entities.routing import owner as router
from pps.ingest.importing.run import Wanted
from pps.memory import Memory
from pps.operations.calls import Calls, owner
from tests.waiting import PATIENCE_S

MARKS = {"ana": "kanarieana", "bob": "kanariebob"}


def notes(folder: Path, mark: str) -> Path:
    """Make a folder whose file names are the same for everybody."""
    folder.mkdir(parents=True)
    (folder / "diary.md").write_text(
        f"# Diary\n\nThe word of this house is {mark}. Tea is at four."
    )
    (folder / "same.md").write_text("# Same\n\nEverybody has this very note.")
    return folder


async def shown(memory: Memory) -> str:
    found = [
        await memory.recall(word, limit=50) for word in (*MARKS.values(), "tea diary same note")
    ]
    return repr(found)


async def test_what_one_imports_or_follows_is_in_no_other(app: App, tmp_path: Path) -> None:
    for name in MARKS:
        await app.create(name)
    async with app.memory("ana") as ana, app.memory("bob") as bob:
        folders = {name: notes(tmp_path / name / "notes", mark) for name, mark in MARKS.items()}
        for name, memory in (("ana", ana), ("bob", bob)):
            synced = await memory.documents.follow(folders[name])
            assert (synced.added, synced.stored) == (2, 2)
            # Read again from elsewhere the notes are other documents, of this entity alone.
            assert (await memory.documents.import_files(Wanted((tmp_path / name,)))).stored == 2
            assert await memory.settled(60)
        for mine, theirs, memory in (("ana", "bob", ana), ("bob", "ana", bob)):
            assert MARKS[mine] in await shown(memory)
            assert MARKS[theirs] not in (await shown(memory)).replace(
                f"query='{MARKS[theirs]}'", ""
            )
        before = (await bob.stats()).turns, await shown(bob)
        assert await ana.documents.drop(folders["bob"]) == 0
        assert await ana.documents.drop(folders["ana"]) == 2
        (folders["ana"] / "diary.md").unlink()
        await ana.documents.follow(folders["ana"])
        assert ((await bob.stats()).turns, len(await shown(bob)) > 0) == (before[0], True)
        assert (await bob.documents.follow(folders["bob"])).unchanged == 2


async def test_a_link_in_a_folder_leads_to_nobody_elses_notes(app: App, tmp_path: Path) -> None:
    for name in MARKS:
        await app.create(name)
    theirs = notes(tmp_path / "bob", MARKS["bob"])
    mine = notes(tmp_path / "ana", MARKS["ana"])
    (mine / "linked.md").symlink_to(theirs / "diary.md")
    (mine / "linked").symlink_to(theirs, target_is_directory=True)
    async with app.memory("ana") as ana:
        synced = await ana.documents.follow(mine)
        assert synced.added == 2
        assert [one.what for one in synced.skipped] == ["linked.md"]
        done = await ana.documents.import_files(Wanted((mine,)))
        assert done.turns == 2
        assert done.passed == {"hidden or linked folders": 1, "links and special files": 1}
        assert await ana.settled(PATIENCE_S)
        assert MARKS["bob"] not in (await shown(ana)).replace(f"query='{MARKS['bob']}'", "")


async def test_no_folder_feeds_two_and_none_of_an_entity_feeds_another(
    app: App, tmp_path: Path
) -> None:
    for name in MARKS:
        await app.create(name)
    watched: Watched = app.registry.watched
    theirs = notes(tmp_path / "notes", MARKS["bob"])
    (theirs / "below").mkdir()
    watched.add(str(theirs), "bob")
    (tmp_path / "alias").symlink_to(theirs, target_is_directory=True)
    home, entities = app.settings.home, app.registry.entities_folder
    refused = (
        theirs,
        theirs / "below",
        tmp_path,
        tmp_path / "alias",
        theirs / ".." / "notes",
        Path("/"),
    )
    inside = (home, entities, entities / "bob", entities / "bob" / "anchors", home.parent)
    for folder in (*refused, *inside):
        with pytest.raises(InvalidRequest):
            watched.add(os.fspath(folder), "ana")
    with pytest.raises(UnknownEntity):
        watched.add(str(tmp_path / "nobody"), "nobody") if (
            tmp_path / "nobody"
        ).mkdir() is None else None
    with pytest.raises(NotFound):
        watched.remove(str(theirs), "ana")
    assert [(one.path, one.entity.name) for one in watched.list()] == [(str(theirs), "bob")]
    assert watched.list("ana") == []
    async with app.memory("ana") as ana:
        for path in (
            entities,
            entities / "bob",
            entities / "bob" / "entity.toml",
            tmp_path / "way",
        ):
            if path.name == "way":
                path.symlink_to(entities / "bob", target_is_directory=True)
            with pytest.raises(InvalidRequest, match="another"):
                await ana.documents.import_files(Wanted((path,), avoid=entities))
        (entities / "bob" / "anchors" / "secret.md").write_text(f"# Secret\n\n{MARKS['bob']}")
        (home / "talk.jsonl").write_text('{"content": "hello"}\n')
        done = await ana.documents.import_files(Wanted((home,), avoid=entities))
        assert done.passed["folders of entities"] == 1
        assert done.turns == 1


async def test_a_deleted_entity_leaves_no_folder_to_its_name(app: App, tmp_path: Path) -> None:
    await app.create("ana")
    folder = notes(tmp_path / "notes", MARKS["ana"])
    app.registry.watched.add(str(folder), "ana")
    await app.delete("ana")
    await app.create("ana")
    assert app.registry.watched.list() == []


async def test_what_one_exports_holds_nothing_of_another(app: App, tmp_path: Path) -> None:
    for name, mark in MARKS.items():
        await app.create(name)
        async with app.memory(name) as memory:
            fact = FactDraft("Ana", "KNOWS", mark, text=f"Ana knows {mark}.")
            await memory.remember(
                f"The word is {mark}.", source_ref="same", session="same", facts=[fact]
            )
    async with app.memory("ana") as ana, app.memory("bob") as bob:
        assert await ana.documents.export(tmp_path / "ana.jsonl") > 0
        written = (tmp_path / "ana.jsonl").read_text()
        assert MARKS["ana"] in written
        assert MARKS["bob"] not in written
        assert ana.entity.group not in written
        with pytest.raises(InvalidRequest, match="already"):
            await ana.documents.export(tmp_path / "ana.jsonl")
        before = await bob.timeline()
        await bob.documents.import_files(Wanted((tmp_path / "ana.jsonl",)))
        known = {fact.uuid for fact in before.facts} | {
            fact.uuid for fact in (await ana.timeline()).facts
        }
        assert all(
            fact.uuid not in known or fact in before.facts for fact in (await bob.timeline()).facts
        )


async def test_no_owners_command_reads_from_or_writes_into_the_data_folder(
    app: App, tmp_path: Path
) -> None:
    for name in MARKS:
        await app.create(name)
    home, theirs = app.settings.home, app.registry.get("bob").folder / "anchors"
    (theirs / "secret.md").write_text(f"# Secret\n\n{MARKS['bob']}")
    (tmp_path / "way").symlink_to(theirs, target_is_directory=True)
    inside = [
        theirs,
        theirs / "secret.md",
        tmp_path / "way",
        home / "registry.db",
        theirs / ".." / "anchors",
        home,
    ]
    attacks = [
        (task, path) for task in ("import", "watch_add", "anchors_import") for path in inside
    ]
    attacks += [("export", path / "new.md") for path in (theirs, tmp_path / "way", home)]
    attacks += [(task, home.parent) for task in ("watch_add", "anchors_import")]  # around it
    for task, path in attacks:
        named = {"paths": [os.fspath(path)]} if task == "import" else {"path": os.fspath(path)}
        with pytest.raises(InvalidRequest, match="data folder"):
            await Calls(app).answer(owner(router()), task, {"entity": "ana", **named})
    assert [one.name for one in theirs.iterdir()] == ["secret.md"]
    async with app.memory("ana") as ana:
        assert (await ana.anchor_list(), (await ana.stats()).turns) == ([], 0)
