"""Undo: every correction, soft forgetting, change of a text and edit of an anchor, from one list and by one verb."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pytest

from pps.core.errors import Changed, InvalidRequest, NotFound
from pps.core.values import FactDraft
from pps.ingest.correcting import RightFact
from tests.held_files import files_below

if TYPE_CHECKING:
    from pathlib import Path

    from pps.app import App
    from pps.config import Settings
    from pps.memory import Memory

NOBODY = "5b3c1a52-0000-4000-8000-000000000000"


@pytest.fixture
async def ana(app: App) -> AsyncIterator[Memory]:
    await app.create("ana")
    async with app.memory("ana") as memory:
        yield memory


async def lisbon(memory: Memory) -> str:
    draft = FactDraft("Ana", "LIVES_IN", "Lisbon", "Ana lives in Lisbon.")
    await memory.remember("I live in Lisbon.", facts=[draft], extraction="none")
    return (await memory.timeline()).facts[0].uuid


async def open_facts(memory: Memory) -> list[str]:
    return [fact.text for fact in (await memory.timeline()).facts if fact.invalid_at is None]


async def test_a_correction_is_undone_done_again_and_undone(ana: Memory) -> None:
    fact = await lisbon(ana)
    done = await ana.correcting.correct(fact, "never_true", RightFact(object="Porto"))
    [edit] = (await ana.undoing.list()).edits
    assert (edit.id, edit.kind, edit.text) == (done.turn_id, "correction", "Ana lives in Porto.")
    undone = await ana.undoing.undo(edit.id)
    assert (undone.kind, undone.item) == ("correction", fact)
    assert await open_facts(ana) == ["Ana lives in Lisbon."]
    again = await ana.undoing.undo(undone.redo)
    assert await open_facts(ana) == ["Ana lives in Porto."]
    await ana.undoing.undo(again.redo)
    assert await open_facts(ana) == ["Ana lives in Lisbon."]
    with pytest.raises(NotFound):
        await ana.undoing.undo(again.redo)


async def test_a_soft_forgetting_is_undone(ana: Memory) -> None:
    fact = await lisbon(ana)
    gone = await ana.forget([fact], dry_run=False, soft=True)
    [edit] = (await ana.undoing.list()).edits
    assert (edit.id, edit.kind) == (gone.restorable_as, "forgetting")
    assert edit.until is not None
    await ana.undoing.undo(edit.id[:8])
    assert await open_facts(ana) == ["Ana lives in Lisbon."]
    assert (await ana.undoing.list()).edits == ()


async def test_the_latest_change_of_a_text_is_undone_and_undoing_is_undone(ana: Memory) -> None:
    told = await ana.remember("Tea at ten. #kitchen", extraction="none")
    await ana.records.update(told.turn_id, content="Tea at eleven.", tags=["noon"])
    await ana.records.append(told.turn_id, "Bring milk.")
    page = await ana.undoing.list()
    latest, first = page.edits
    assert (latest.id, first.id) == (f"{told.turn_id}@3", f"{told.turn_id}@2")
    assert first.why_not == "it was changed again since"
    with pytest.raises(Changed, match="changed again since"):
        await ana.undoing.undo(first.id)
    undone = await ana.undoing.undo(latest.id)
    [turn] = await ana.get([told.turn_id])
    assert turn.content == "Tea at eleven."  # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType]
    await ana.undoing.undo(undone.redo)
    [turn] = await ana.get([told.turn_id])
    assert turn.content == "Tea at eleven.\n\nBring milk."  # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType]


async def test_a_changed_record_gets_its_title_tags_and_fields_back(ana: Memory) -> None:
    kept = await ana.records.add_event("It is out.", title="Light", metadata={"floor": 1})
    await ana.records.update(kept.node_id, title="Lamp", metadata={"floor": 2, "room": "hall"})
    [edit] = (await ana.undoing.list()).edits
    await ana.undoing.undo(edit.id)
    newest = (await ana.records.history(kept.node_id))[0].version
    assert (newest.title, dict(newest.fields)) == ("Light", {"floor": 1})


async def test_an_anchor_has_versions_and_each_edit_is_undone(ana: Memory) -> None:
    await ana.anchor_save("Bread", "Rye.", slug="bread")
    await ana.anchor_save("Bread", "Rye.", slug="bread")  # no change, no version
    assert len(await ana.anchor_versions("bread")) == 1
    await ana.by("chef").anchor_save("Loaf", "Oats.", slug="bread", tags=["kitchen"])
    await ana.anchor_save("Loaf", "Oats, water.", slug="bread", tags=["kitchen"])
    versions = await ana.anchor_versions("bread")
    assert [(one.number, one.title, one.text, one.actor) for one in versions] == [
        (1, "Bread", "Rye.", ""),
        (2, "Loaf", "Oats.", "chef"),
        (3, "Loaf", "Oats, water.", ""),
    ]
    assert [edit.id for edit in (await ana.undoing.list()).edits] == ["bread@3", "bread@2"]
    with pytest.raises(Changed, match="changed again since"):
        await ana.undoing.undo("bread@2")
    undone = await ana.undoing.undo("bread@3")
    assert (await ana.anchor_read("bread")).text == "Oats."
    await ana.undoing.undo(undone.redo)
    assert (await ana.anchor_read("bread")).text == "Oats, water."
    await ana.anchor_revert("bread", 1)
    read = await ana.anchor_read("bread")
    assert (read.title, read.text, read.tags) == ("Bread", "Rye.", ())
    assert [hit.text for hit in await ana.anchor_search("Rye")] == ["Rye."]
    for version in (0, 9):
        with pytest.raises(InvalidRequest, match="version: must be one of 1 to"):
            await ana.anchor_revert("bread", version)
    for absent in ("bread@1", "bread@99", "nothing@2"):
        with pytest.raises(NotFound):
            await ana.undoing.undo(absent)


async def test_versions_of_an_anchor_hold_no_secret_and_go_with_it(
    ana: Memory, settings: Settings
) -> None:
    secret = "AKIA" + "IOSFODNN7EXAMPLQ"
    await ana.anchor_save("Keys", f"quetzalkoatl {secret}", slug="keys")
    await ana.anchor_save("Keys", "Nothing.", slug="keys")
    assert secret not in str(await ana.anchor_versions("keys"))
    gone = await ana.forget(["keys"], dry_run=False, soft=True)
    assert await ana.parts.journal.anchor_versions.of("keys") == []
    await ana.undoing.undo(gone.restorable_as)
    assert [one.text for one in await ana.anchor_versions("keys")][-1] == "Nothing."
    assert len(await ana.anchor_versions("keys")) == 2
    await ana.forget(["keys"], dry_run=False)
    assert await ana.parts.journal.anchor_versions.of("keys") == []
    assert _nowhere(ana.parts.journal.path.parent, b"quetzalkoatl")


async def test_deleting_an_anchor_erases_its_versions_by_every_way(ana: Memory) -> None:
    for slug in ("one", "two"):
        await ana.anchor_save("Bird", "quetzalkoatl", slug=slug)
        await ana.anchor_save("Bird", "wren", slug=slug)
    await ana.anchor_delete("one")
    (ana.parts.journal.path.parent.parent / "anchors" / "two.md").unlink()
    await ana.anchor_resync()
    for slug in ("one", "two"):
        assert await ana.parts.journal.anchor_versions.of(slug) == []
        with pytest.raises(NotFound):
            await ana.anchor_versions(slug)
    assert _nowhere(ana.parts.journal.path.parent, b"quetzalkoatl")


async def test_a_crash_between_keeping_the_old_text_and_writing_makes_no_version(
    ana: Memory,
) -> None:
    await ana.anchor_save("Bread", "Rye.", slug="bread")
    file = ana.parts.journal.path.parent.parent / "anchors" / "bread.md"
    at = datetime(2026, 3, 1, tzinfo=UTC)
    versions = ana.parts.journal.anchor_versions
    await versions.keep("bread", file.read_text(encoding="utf-8"), at, at, "")
    assert len(await ana.anchor_versions("bread")) == 1
    assert (await ana.undoing.list()).edits == ()
    await ana.anchor_save("Bread", "Oats.", slug="bread")
    assert [one.text for one in await ana.anchor_versions("bread")] == ["Rye.", "Oats."]


async def test_what_is_no_change_is_not_undone(ana: Memory) -> None:
    told = await ana.remember("Tea at ten.", extraction="none")
    with pytest.raises(InvalidRequest, match="corrects no fact"):
        await ana.undoing.undo(told.turn_id)
    for absent in (NOBODY, f"{NOBODY}@2", f"{told.turn_id}@2", "x", "../anchors@2"):
        with pytest.raises(NotFound):
            await ana.undoing.undo(absent)
    with pytest.raises(InvalidRequest, match="cursor"):
        await ana.undoing.list(cursor="x")


async def test_changes_come_in_pages_the_latest_first(ana: Memory) -> None:
    for number in range(7):
        await ana.anchor_save("Bread", f"Loaf {number}.", slug="bread")
    first = await ana.undoing.list(limit=4)
    assert [edit.id for edit in first.edits] == ["bread@7", "bread@6", "bread@5", "bread@4"]
    assert first.next_cursor is not None
    second = await ana.undoing.list(limit=4, cursor=first.next_cursor)
    assert [edit.id for edit in second.edits] == ["bread@3", "bread@2"]
    assert second.next_cursor is None


def _nowhere(folder: Path, word: bytes) -> bool:
    return not [path for path, content in files_below(folder) if word in content]
