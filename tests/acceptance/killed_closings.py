"""What ``test_killed_closings`` runs in processes of its own, to be killed while facts are closed and opened."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime

from pps.config import Settings
from pps.core.values import FactDraft
from pps.index.indexes import EntityIndexes
from pps.ingest.recycle_bin import RecycleBin
from pps.ingest.worker import Worker
from pps.isolation.client import IsolatedGraphitiClient
from pps.journal import closing_rows
from pps.journal import turns as turn_rows
from pps.journal.closing_rows import Closings
from pps.journal.journal import Journal
from pps.memory import Memory
from tests.acceptance.killed_steps import Step, arm, deadly, play

CLOSE_STEPS: tuple[Step, ...] = (
    (closing_rows, "note"),
    (IsolatedGraphitiClient, "apply"),
    (EntityIndexes, "save_positions"),
    (Journal, "drop_entries"),
)
"""Of a statement that closes another: one transaction writes the closing and what the graph says of it."""
OPEN_STEPS: tuple[Step, ...] = (
    (turn_rows, "forget"),
    (IsolatedGraphitiClient, "apply"),
    (closing_rows, "keep_only"),
    (Closings, "forget"),
    (Worker, "forgotten"),
)
"""Of forgetting such a statement: parts of the one transaction, then what follows it."""
RESTORE_STEPS: tuple[Step, ...] = (
    (RecycleBin, "get"),
    (IsolatedGraphitiClient, "apply"),
    (closing_rows, "note"),
)
"""Of restoring it."""


def person(number: int) -> str:
    return f"Person{number}"


async def tell(memory: Memory, number: int, place: str, month: int) -> str:
    """Tell where the person of a round lives since a month; return the turn."""
    name = person(number)
    told = await memory.remember(
        f"{name} lives in {place}.",
        source_ref=f"{number} {place}",
        occurred_at=datetime(2026, month, 10, 9, tzinfo=UTC),
        facts=[FactDraft(name, "LIVES_IN", place, text=f"{name} lives in {place}.")],
    )
    return told.turn_id


def close_killed_at(found: Settings, number: int) -> None:
    """Tell of a later home in a process that dies at a step."""
    deadly(*CLOSE_STEPS[number])
    asyncio.run(play(found, number, _moved))


def open_killed_at(found: Settings, number: int) -> None:
    """Forget the later of two homes in a process that dies at a step."""
    deadly(*OPEN_STEPS[number])
    asyncio.run(play(found, number, _moved_and_forgotten))


def restore_killed_at(found: Settings, number: int) -> None:
    """Forget the later of two homes softly, and restore it in a process that dies at a step."""
    deadly(*RESTORE_STEPS[number])
    asyncio.run(play(found, number, _moved_and_restored))


async def _moved(memory: Memory, number: int) -> None:
    await tell(memory, number, "Rome", 3)
    arm()
    await tell(memory, number, "Milan", 4)


async def _moved_and_forgotten(memory: Memory, number: int) -> None:
    await tell(memory, number, "Rome", 3)
    later = await tell(memory, number, "Milan", 4)
    arm()
    await memory.forget([later], dry_run=False)


async def _moved_and_restored(memory: Memory, number: int) -> None:
    await tell(memory, number, "Rome", 3)
    later = await tell(memory, number, "Milan", 4)
    gone = await memory.forget([later], dry_run=False, soft=True)
    arm()
    await memory.forgetting.restore(gone.restorable_as)
