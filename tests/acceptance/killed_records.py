"""What ``test_killed_records`` runs in processes of its own, to be killed while a record is changed and related."""

from __future__ import annotations

import asyncio

from pps.app import App
from pps.config import Settings
from pps.index.indexes import EntityIndexes
from pps.ingest import worker, write_path
from pps.isolation.client import IsolatedGraphitiClient
from pps.journal.job_queue import JobQueue
from pps.journal.journal import Journal
from pps.journal.record_rows import RecordStore
from pps.records.saving import RecordGiven, RelationGiven
from pps.store import sql_graph
from tests.acceptance.killed_steps import Step, arm, deadly

STEPS: tuple[Step, ...] = (
    (RecordStore, "write"),
    (JobQueue, "take"),
    (write_path, "log_changes"),
    (sql_graph, "put_nodes"),
    (worker, "end_jobs"),
    (IsolatedGraphitiClient, "apply"),
    (EntityIndexes, "apply"),
    (EntityIndexes, "save_positions"),
    (Journal, "drop_entries"),
    (RecordStore, "projected"),
)
"""The methods that make each step of a save durable; a process is killed right after one."""


def killed_at(found: Settings, number: int) -> None:
    """Change a record and relate it to a new one in a process that dies at a step; it must not come to its end."""
    deadly(*STEPS[number])
    asyncio.run(_saved(found, number))


async def _saved(found: Settings, number: int) -> None:
    async with App.open(found) as app, app.memory("ana") as memory:
        assert await memory.settled(60)
        arm()
        serves = RelationGiven("SERVES", "Run a marathon")
        goal = RecordGiven(
            "Goal", "Run a marathon", f"Finish it, {number}.", fields={"target": f"Round {number}"}
        )
        await memory.records.save(
            [goal, RecordGiven("Task", f"Task {number}", "To do.", relations=(serves,))]
        )
