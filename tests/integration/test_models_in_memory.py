"""A memory whose facts come from a language model: on both stores, through failures, without losing a turn."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from datetime import UTC, datetime

import pytest

from pps.config import Settings
from pps.core.values import Fact
from pps.memory import Memory
from tests.model_server import ModelServer, memory_read_by, model_server

_WHEN = datetime(2026, 3, 1, 9, tzinfo=UTC)


@pytest.fixture
def server() -> Iterator[ModelServer]:
    with model_server(retry_after="0") as running:
        yield running


@pytest.fixture
async def memory(settings: Settings, server: ModelServer) -> AsyncIterator[Memory]:
    async with memory_read_by(settings, server) as opened:
        yield opened


async def facts(memory: Memory, query: str) -> list[str]:
    recalled = await memory.recall(query)
    return [hit.item.text for hit in recalled["facts"] if isinstance(hit.item, Fact)]


async def test_what_is_said_becomes_facts_that_are_recalled(memory: Memory) -> None:
    receipt = await memory.remember("Ana lives in Lisbon. Ben knows Ana.", occurred_at=_WHEN)
    assert receipt.state == "done"
    assert "Ana lives in Lisbon" in await facts(memory, "Where does Ana live?")
    found = await memory.recall("Where does Ana live?")
    assert [hit.id for hit in found["episodes"]] == [receipt.turn_id]


async def test_a_later_fact_replaces_an_earlier_one(memory: Memory) -> None:
    await memory.remember("Ana lives in Lisbon.", occurred_at=_WHEN)
    await memory.remember("Ana lives in Porto.", occurred_at=datetime(2026, 5, 1, tzinfo=UTC))
    assert await facts(memory, "Where does Ana live?") == ["Ana lives in Porto"]


async def test_a_model_that_fails_and_comes_back_loses_nothing(
    memory: Memory, server: ModelServer
) -> None:
    server.first = ["server_error", "server_error", "rate_limited", "rate_limited"]
    receipt = await memory.remember("Ana lives in Lisbon.", occurred_at=_WHEN, wait="journal")
    assert receipt.state == "accepted"
    assert await memory.settled(60)
    assert await facts(memory, "Where does Ana live?") == ["Ana lives in Lisbon"]
    assert (await memory.stats()).facts == 1


async def test_a_model_that_only_talks_nonsense_costs_the_facts_and_not_the_turn(
    memory: Memory, server: ModelServer
) -> None:
    server.mode = "malformed"
    receipt = await memory.remember("Ana lives in Lisbon.", occurred_at=_WHEN)
    assert receipt.state == "failed"
    found = await memory.recall("Where does Ana live?")
    assert [hit.id for hit in found["turns"] or found["episodes"]] == [receipt.turn_id]
    server.mode = "good"
    assert (await memory.remember("Ben lives in Porto.", occurred_at=_WHEN)).state == "done"
