"""Neo4j is stopped in the middle of ingestion and started again: nothing is lost, unwell meanwhile, then well.

``PPS_OUTAGE_S=60 .venv/bin/python -m pytest -s tests/acceptance/test_neo4j_outage.py`` leaves it away for a minute.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from pps.app import App
from pps.config import EmbedderSettings, JobsSettings, Neo4jSettings, Settings
from pps.core.values import FactDraft
from pps.memory import Memory
from tests.neo4j_server import Neo4jServer, start_neo4j, stop_neo4j

OUTAGE_S = float(os.environ.get("PPS_OUTAGE_S", "2"))
PATIENCE_S = 120.0
BEFORE, MEANWHILE, TOLD = 20, 20, 60


async def until(seen: Callable[[], Awaitable[bool]]) -> float:
    """Wait until something is so; return how long that took, in seconds."""
    began = time.monotonic()
    while not await seen():
        assert time.monotonic() - began < PATIENCE_S
        await asyncio.sleep(0.05)
    return time.monotonic() - began


async def tell(memory: Memory, numbers: range) -> None:
    for number in numbers:
        facts = [FactDraft(f"Person{number % 7}", "WENT_TO", f"Place{number}")]
        receipt = await memory.remember(f"Turn {number}.", source_ref=f"t{number}", facts=facts, wait="journal")
        assert receipt.state == "accepted"


@pytest.mark.neo4j
async def test_a_server_that_is_stopped_and_started_again_costs_nothing(
    tmp_path: Path, neo4j_server: Neo4jServer
) -> None:
    server = neo4j_server
    settings = Settings(
        home=tmp_path / "home",
        store="neo4j",
        embedder=EmbedderSettings(name="hash"),
        neo4j=Neo4jSettings(uri=server.uri, user=server.user, password=server.password, database=server.database),
        jobs=JobsSettings(first_wait_s=0.1, longest_wait_s=2.0, breaker_failures=1),
    )
    async with App.open(settings) as app:
        await app.create("ana")
        async with app.memory("ana") as memory:
            await tell(memory, range(BEFORE))
            assert await memory.settled(PATIENCE_S)
            await tell(memory, range(BEFORE, BEFORE + MEANWHILE))
            try:
                await asyncio.to_thread(stop_neo4j, server.data)
                gone_at = time.monotonic()
                await tell(memory, range(BEFORE + MEANWHILE, TOLD))
                await until(lambda: _unwell(memory))
                problems = (await memory.health()).problems
                assert any("the store failed" in one or "Neo4j" in one for one in problems), problems
                recalled = await memory.recall("Where did Person3 go?")
                assert recalled.channels["facts"].error
                await asyncio.sleep(max(0.0, OUTAGE_S - (time.monotonic() - gone_at)))
            finally:
                await asyncio.to_thread(start_neo4j, server.data, port=server.port, password=server.password)
            assert await memory.settled(PATIENCE_S)
            assert (await memory.health()).ok
            stats = await memory.stats()
            assert (stats.turns, stats.episodes, stats.facts, stats.unfinished_jobs) == (TOLD, TOLD, TOLD, 0)
            ledger = await memory.ledger()
            assert (ledger.problems, ledger.notes) == ((), ())
            recalled = await memory.recall("Where did Person3 go?")
            assert recalled["facts"]
            assert not recalled.channels["facts"].error


async def _unwell(memory: Memory) -> bool:
    return not (await memory.health()).ok
