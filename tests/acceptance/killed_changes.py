"""What ``test_killed_changes`` runs in processes of its own, to be killed while a text is changed or read."""

from __future__ import annotations

import asyncio

from pps.app import App
from pps.config import Settings
from pps.index.indexes import EntityIndexes
from pps.ingest import worker, write_path
from pps.ingest.write_path import Pipeline
from pps.isolation.client import IsolatedGraphitiClient
from pps.journal.job_queue import JobQueue
from pps.journal.journal import Journal
from pps.journal.versions import Versions
from pps.store import sql_graph
from tests.acceptance.killed_steps import Step, arm, deadly

STEPS: tuple[Step, ...] = (
    (Versions, "revise"),
    (JobQueue, "take"),
    (write_path, "log_changes"),
    (sql_graph, "put_facts"),
    (sql_graph, "put_episodes"),
    (worker, "end_jobs"),
    (IsolatedGraphitiClient, "apply"),
    (EntityIndexes, "apply"),
    (EntityIndexes, "save_positions"),
    (Journal, "drop_entries"),
    (IsolatedGraphitiClient, "extract_episode"),
    (Pipeline, "read"),
    (JobQueue, "finish"),
)
"""The methods that make each step of a change durable; a process is killed right after one."""


def text(number: int) -> str:
    """Return the words of a round; the second sentence is the same in all."""
    return f"Ana lives in City{number}. Ben knows Ana."


def killed_at(found: Settings, turn: str, number: int) -> None:
    """Change the text in a process that dies at a step; it must not come to its end."""
    deadly(*STEPS[number])
    asyncio.run(_changed(found, turn, number))


async def _changed(found: Settings, turn: str, number: int) -> None:
    async with App.open(found) as app, app.memory("ana") as memory:
        assert await memory.settled(60)
        arm()
        await memory.records.update(turn, content=text(number + 1))


def read(found: Settings) -> None:
    """Tell the text of a round to a process, and again to the next, until it is read."""
    asyncio.run(_read(found))


async def _read(found: Settings) -> None:
    async with App.open(found) as app, app.memory("ana") as memory:
        await memory.remember(text(1), source_ref="1")
        assert await memory.settled(60)
