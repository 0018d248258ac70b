"""Records: a change of what one rests on is a change; what is no title; and whose turns are theirs alone."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from pps.app import App
from pps.core.errors import InvalidRequest, StoreConflict
from pps.memory import Memory
from pps.records.saving import RecordGiven


@pytest.fixture
async def memory(app: App) -> AsyncIterator[Memory]:
    await app.create("ana", packs=["constitution"])
    async with app.memory("ana") as memory:
        yield memory


async def test_a_change_of_cites_is_a_version_and_what_was_forgotten_may_stay(
    memory: Memory,
) -> None:
    first, second = [
        (await memory.remember(text, extraction="none")).turn_id for text in ("One.", "Two.")
    ]
    [task] = (await memory.records.save([RecordGiven("Task", "Buy shoes", "That fit.")])).records
    id_ = task.record.id
    [saved] = (
        await memory.records.save([RecordGiven(id=id_, cites=(first,), expected_version=1)])
    ).records
    assert (saved.change, saved.record.version) == ("changed", 2)
    with pytest.raises(StoreConflict):
        await memory.records.save([RecordGiven(id=id_, cites=(second,), expected_version=1)])
    assert [one.number for one in await memory.parts.journal.versions.of(task.record.turn)] == [
        1,
        2,
    ]
    await memory.forget([first], dry_run=False)
    [again] = (
        await memory.records.save([RecordGiven(id=id_, cites=(first,), expected_version=2)])
    ).records
    assert (again.change, again.record.version) == ("unchanged", 2)
    await memory.records.save([RecordGiven(id=id_, cites=(first, second))])
    cites = (await memory.records.cites([id_]))[id_]
    assert {one.id: one.gone for one in cites} == {first: True, second: False}


async def test_a_title_must_be_seen(memory: Memory) -> None:
    with pytest.raises(InvalidRequest, match="white space"):
        await memory.records.save([RecordGiven("Task", "\u200b", "Unseen.")])


async def test_the_source_of_records_is_theirs_alone(memory: Memory) -> None:
    with pytest.raises(InvalidRequest, match="source"):
        await memory.remember("A text.", source="record", session="r-77", source_ref="r-77")
    with pytest.raises(InvalidRequest, match="source"):
        await memory.records.add_event(
            "A text.", source="record", session="r-77", source_ref="r-77"
        )
    [saved] = (
        await memory.records.save([RecordGiven("Task", "Buy shoes", "That fit.", ref="r-77")])
    ).records
    assert saved.change == "created"


async def test_a_title_holds_no_secret(memory: Memory) -> None:
    tasks = [RecordGiven("Task", title, "Text.") for title in ("Plain", "ghp_" + "a1B2" * 9)]
    with pytest.raises(InvalidRequest, match=r"records\[1\].title: holds what looks like a secret"):
        await memory.records.save(tasks)
    saved, error = await memory.records.tried([[tasks[0]], [tasks[1]]])
    assert len(saved) == 1
    assert "records[0].title" in str(error)
