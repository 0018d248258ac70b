"""The ledger finds what one store alone lost and names what mends it; closed entities count in health."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from pps.app import App
from pps.config import EmbedderSettings, JobsSettings, Settings
from pps.core.values import FactDraft
from pps.interfaces.http.health import HealthProbe
from pps.interfaces.http.requests import Activity
from pps.memory import Memory
from pps.operations.calls import Calls

RED_AFTER_S = 0.2


@pytest.fixture
async def app(tmp_path: Path) -> AsyncIterator[App]:
    jobs = JobsSettings(red_after_s=RED_AFTER_S)
    settings = Settings(home=tmp_path / "home", embedder=EmbedderSettings(name="hash"), jobs=jobs)
    async with App.open(settings) as opened:
        await opened.create("ana")
        yield opened


async def told(memory: Memory) -> tuple[str, str]:
    """Tell two turns; return the id of the second and that of its fact."""
    turn_id = ""
    for number in range(2):
        facts = [FactDraft("Ana", "WENT_TO", f"Place{number}")]
        receipt = await memory.remember(f"Turn {number}.", source_ref=str(number), facts=facts)
        assert receipt.state == "done"
        turn_id = receipt.turn_id
    return turn_id, (await memory.timeline()).facts[-1].uuid


async def test_a_ledger_that_agrees_has_the_same_ids_everywhere(app: App) -> None:
    async with app.memory("ana") as memory:
        await told(memory)
        ledger = await memory.ledger()
        assert (ledger.problems, ledger.notes) == ((), ())
        counts = {one.what: (one.expected, one.found, one.ok) for one in ledger.agreements}
        assert counts["turns done and episodes of the graph"] == (2, 2, True)
        assert counts["facts and vector index"] == counts["facts and text index"] == (2, 2, True)
        assert len(counts) == 7


async def test_an_entry_that_an_index_lost_is_named_with_the_command_that_brings_it_back(
    app: App,
) -> None:
    async with app.memory("ana") as memory:
        _, fact = await told(memory)
        await memory.parts.indexes.apply([], [("facts", fact)])
        ledger = await memory.ledger()
        assert len(ledger.problems) == 2
        assert all(
            "1 missing, 0 too many" in one and "`pps reindex ana` mends it" in one
            for one in ledger.problems
        )
        assert fact in ledger.problems[0]
    await app.reindex("ana")
    async with app.memory("ana") as memory:
        assert (await memory.ledger()).problems == ()


async def test_a_turn_that_the_graph_lost_is_named_and_taken_in_again(app: App) -> None:
    async with app.memory("ana") as memory:
        turn, _ = await told(memory)
        await memory.parts.client.delete_episodes([turn])
        (problem,) = (await memory.ledger()).problems
        assert "turns done and episodes of the graph differ: 1 missing" in problem
        assert "`pps jobs retry ana ID`" in problem
        assert await memory.jobs.retry([(await memory.jobs.status(turn)).id])
        assert await memory.settled()
        assert (await memory.ledger()).problems == ()
        stats = await memory.stats()
        assert (stats.turns, stats.episodes, stats.facts) == (2, 2, 2)


async def test_a_closed_entity_whose_jobs_wait_is_a_problem_until_they_are_done(app: App) -> None:
    condition = HealthProbe(app, Calls(app), Activity())
    await app.close_all()
    assert await condition.problems() == []
    app.registry.set_pending(app.registry.get("ana").entity, True)
    await asyncio.sleep(RED_AFTER_S + 1.0)  # the registry keeps whole seconds
    (problem,) = await condition.problems()
    assert (problem.entity, "while it is closed" in problem.text) == ("ana", True)
    assert await app.resume_pending() == {}
    assert await condition.problems() == []
