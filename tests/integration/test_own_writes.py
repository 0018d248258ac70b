"""Reading one's own writes: a recall waits a moment for the turns that were acknowledged before it, and no longer."""

from __future__ import annotations

import asyncio
import time as clock
from collections.abc import AsyncIterator
from dataclasses import replace

import pytest

import pps.memory
from pps.app import App
from pps.core.recalled import Recall
from pps.core.values import FactDraft
from pps.entities.routing import owner as owner_router
from pps.isolation.client import GraphitiChanges
from pps.memory import Memory
from pps.operations.calls import Calls
from pps.operations.calls import owner as owner_of

CITIES = ("Oslo", "Tarn", "Bern", "Lima", "Quito", "Turin")
_STUCK_S = 120.0
"""Far more than a recall takes on a busy machine, and far less than the worker is held."""


@pytest.fixture
async def memory(app: App) -> AsyncIterator[Memory]:
    await app.create("ana")
    async with app.memory("ana") as opened:
        await opened.remember("Priya lives in Oslo.", session="s")
        assert await opened.settled(60)  # an idle worker that is held takes nothing in
        yield opened


def found(recalled: Recall, turn: str) -> bool:
    return turn in [hit.id for hit in recalled["episodes"]]


async def test_a_recall_waits_for_what_was_acknowledged_just_before_it(
    memory: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    # That it waits is the point here, not how quick a disk is.
    monkeypatch.setattr(memory, "parts", replace(memory.parts, extraction="model"))
    monkeypatch.setattr(pps.memory, "READ_OWN_WRITES_S", 60.0)
    for city in CITIES:
        fact = FactDraft("Priya", "VISITED", city, f"Priya visited {city}.")
        receipt = await memory.remember(
            f"I was in {city}.", wait="journal", session="s", facts=[fact]
        )
        assert receipt.state == "accepted"

        recalled = await memory.recall(f"Who visited {city}?")

        assert found(recalled, receipt.turn_id)
        assert f"Priya visited {city}." in [hit.text for hit in recalled["facts"]]


async def test_a_recall_waits_a_twentieth_of_a_second_and_then_answers_without(
    memory: Memory,
) -> None:
    async with memory.parts.worker.held():
        receipt = await memory.remember("Priya moved to Tarn.", wait="journal", session="s")
        started = clock.perf_counter()
        async with asyncio.timeout(_STUCK_S):
            recalled = await memory.recall("Where does Priya live?")
        took_s = clock.perf_counter() - started

        assert [hit.text for hit in recalled["episodes"]] == ["user: Priya lives in Oslo."]
        assert not found(recalled, receipt.turn_id)
        assert took_s >= 0.045  # it did wait
        assert recalled.notes[-1] == pps.memory.NOT_YET_FOUND
        assert await memory.pending()
    assert await memory.settled(60)
    recalled = await memory.recall("Where does Priya live?")
    assert found(recalled, receipt.turn_id)
    assert pps.memory.NOT_YET_FOUND not in recalled.notes


async def test_a_pack_does_not_wait_any_longer(memory: Memory) -> None:
    async with memory.parts.worker.held():
        receipt = await memory.remember("Priya moved to Tarn.", wait="journal", session="s")
        async with asyncio.timeout(_STUCK_S):
            pack = await memory.ambient_recall("Where does Priya live?", session="s")

        assert "Priya lives in Oslo." in pack.text
        assert pack.recall is not None
        assert not found(pack.recall, receipt.turn_id)


class Reading:
    """A reading by a model that does not end before ``done`` is set."""

    def __init__(self) -> None:
        self.begun, self.done = asyncio.Event(), asyncio.Event()

    async def read(self, turn: str) -> GraphitiChanges:
        self.begun.set()
        await self.done.wait()
        return GraphitiChanges()


async def test_a_recall_does_not_wait_for_a_model_that_reads_what_can_be_found_already(
    memory: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    reading = Reading()
    monkeypatch.setattr(memory.parts.client, "extract_episode", reading.read)
    monkeypatch.setattr(memory, "parts", replace(memory.parts, extraction="model"))
    monkeypatch.setattr(
        pps.memory, "READ_OWN_WRITES_S", 60.0
    )  # would be waited out, if it waited for the model
    first = await memory.remember(
        "Priya moved to Tarn.", wait="journal", session="s", extraction="model"
    )
    async with asyncio.timeout(_STUCK_S):
        await reading.begun.wait()
        recalled = await memory.recall("Where does Priya live?")
    assert found(recalled, first.turn_id)
    assert not await memory.settled(0.01)

    reading.done.set()
    assert await memory.settled(60)


async def test_an_empty_answer_says_that_something_is_not_yet_indexed(app: App) -> None:
    await app.create("ben")
    calls = Calls(app)
    caller = owner_of(owner_router(), "ben")
    async with app.memory("ben") as opened, opened.parts.worker.held():
        await opened.remember("Priya moved to Tarn.", wait="journal")
        answer = await calls.answer(caller, "recall", {"query": "Where does Priya live?"})
    assert "Nothing found" in answer.text
    assert pps.memory.NOT_YET_FOUND in answer.text
    assert pps.memory.NOT_YET_FOUND in answer.data["notes"]
