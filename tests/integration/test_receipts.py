"""What an answer says at once: the id of a record that is still taken in, and every mistake of one record."""

from __future__ import annotations

import asyncio

import pytest

from pps.app import App
from pps.core.errors import InvalidRequest
from pps.core.values import NodeDraft
from pps.entities.routing import owner as owner_router
from pps.operations.calls import Calls, owner
from pps.records.saving import RecordGiven


async def test_an_event_that_takes_long_is_answered_with_the_id_that_it_gets(app: App) -> None:
    await app.create("ana")
    async with app.memory("ana") as memory:
        await memory.remember("Zanzibar.", nodes=[NodeDraft("Zanzibar"), NodeDraft("Bo", "Person")])
        assert await memory.settled()
        for title in ("", "Zanzibar", "Bo", "New title"):
            receipt = await memory.records.add_event(
                f"It rains. {title}", wait="journal", title=title
            )
            assert receipt.node_id, title
            assert await memory.settled()
            [record] = (await memory.parts.journal.records.of_turns([receipt.turn_id])).values()
            assert receipt.node_id == record, title


async def test_an_event_never_answers_without_an_id(
    app: App, monkeypatch: pytest.MonkeyPatch
) -> None:
    await app.create("ana")
    monkeypatch.setattr("pps.operations.titled_texts.WAIT_S", 0.0)
    calls, caller = Calls(app), owner(owner_router(), "ana")
    answers = await asyncio.gather(
        *(calls.answer(caller, "add_event", {"content": f"Event {n}."}) for n in range(5))
    )
    assert all(answer.data["node_id"] for answer in answers)


async def test_all_mistakes_of_one_record_are_told_at_once(app: App) -> None:
    await app.create("ana", packs=["constitution"])
    async with app.memory("ana") as memory:
        wrong = RecordGiven(
            "Task",
            "T" * 5_000,
            "Buy.",
            fields={"deadlin": "2026-01-01", "nonsense": 1, "priority": "very", "progress": "x"},
        )
        with pytest.raises(InvalidRequest) as error:
            await memory.records.save([wrong])
    for part in ("Task.deadlin", "Task.nonsense", "Task.title"):
        assert part in error.value.message, error.value.message
