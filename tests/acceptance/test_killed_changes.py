"""A process is killed after each step of a change of a text that a model reads: the change comes to the same end.

Each round gives one text other words in a real memory whose process dies by SIGKILL at one step. The next round's
process takes up what is left; at the end only what the last words say holds, and every earlier fact is there once.
"""

from __future__ import annotations

import multiprocessing
import signal
from datetime import UTC, datetime
from pathlib import Path

import pytest

from pps.app import App
from pps.ingest.indexer import holds
from tests.acceptance.killed_changes import STEPS, killed_at, settings, text
from tests.model_server import model_server


@pytest.mark.timeout(300)
async def test_a_kill_after_any_step_of_a_change_leaves_what_the_last_words_say(tmp_path: Path) -> None:
    home = tmp_path / "home"
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["tests.acceptance.killed_changes"])
    with model_server() as server:
        found = settings(home, server.base_url)
        async with App.open(found) as app:
            await app.create("ana")
            async with app.memory("ana") as memory:
                turn = (await memory.remember(text(0))).turn_id
        for number, (_, name) in enumerate(STEPS):
            child = context.Process(target=killed_at, args=(str(home), server.base_url, turn, number))
            child.start()
            child.join(60)
            assert child.exitcode == -signal.SIGKILL, f"{name}: was not reached"
        async with App.open(found) as app, app.memory("ana") as memory:
            assert await memory.settled(60)
            facts = await memory._parts.client.scan_facts("", 100)
            told = [f"Ana lives in City{number}" for number in range(len(STEPS) + 1)]
            assert sorted(fact.text for fact in facts) == sorted([*told, "Ben knows Ana"])
            assert {fact.episodes for fact in facts} == {(turn,)}
            moment = datetime.now(UTC)
            assert {fact.text for fact in facts if holds(fact, moment)} == {told[-1], "Ben knows Ana"}
            assert len(await memory.records.history(turn)) == len(STEPS) + 1
            ledger = await memory.ledger()
            assert ledger.problems == ()
            assert all(one.ok for one in ledger.agreements)
            assert (await memory.stats()).index_lag == 0
            assert (await memory.health()).ok
