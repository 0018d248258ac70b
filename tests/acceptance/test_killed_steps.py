"""A process is killed after each step of the write path: every step can be done again.

Each round tells the same turns to a real memory whose process dies by SIGKILL at one step. The next round's
process takes up what is left; at the end every id is there once, in journal, graph and both indexes.
"""

from __future__ import annotations

import multiprocessing
import signal
from pathlib import Path

import pytest

from pps.app import App
from tests.acceptance.killed_steps import STEPS, TURNS, killed_at, settings


@pytest.mark.timeout(300)
async def test_a_kill_after_any_step_loses_and_doubles_nothing(tmp_path: Path) -> None:
    home = tmp_path / "home"
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["tests.acceptance.killed_steps"])
    for number, (_, name) in enumerate(STEPS):
        child = context.Process(target=killed_at, args=(str(home), number))
        child.start()
        child.join(60)
        assert child.exitcode == -signal.SIGKILL, f"{name}: was not reached"
    async with App.open(settings(home)) as app, app.memory("ana") as memory:
        assert await memory.settled(60)
        told = len(STEPS) * TURNS
        stats = await memory.stats()
        assert (stats.turns, stats.episodes, stats.facts, stats.index_lag) == (told, told, told, 0)
        ledger = await memory.ledger()
        assert ledger.problems == ()
        assert all(one.ok for one in ledger.agreements)
        jobs = await memory.jobs.list("done", limit=1_000)
        assert len(jobs) == told
        assert (await memory.health()).ok
