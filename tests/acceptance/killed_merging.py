"""What ``test_killed_merging`` runs in processes of its own, to be killed at a step of a merge or of its undoing."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime

from pps.config import Settings
from pps.core.values import FactDraft
from pps.index.indexes import EntityIndexes
from pps.ingest.slots import Slots
from pps.ingest.write_path import Pipeline
from pps.isolation.client import IsolatedGraphitiClient
from pps.journal.merge_rows import Merges
from pps.memory import Memory
from pps.store import sql_graph
from tests.acceptance.killed_steps import Step, arm, deadly, play

STEPS: tuple[Step, ...] = (
    (Merges, "put"),
    (sql_graph, "put_nodes"),
    (sql_graph, "put_facts"),
    (Slots, "settle"),
    (IsolatedGraphitiClient, "apply"),
    (Pipeline, "keep_vectors"),
    (EntityIndexes, "apply"),
    (EntityIndexes, "save_positions"),
)
"""Parts of the one transaction, then what follows it."""
UNDONE_STEPS = frozenset(STEPS[: STEPS.index((Pipeline, "keep_vectors"))])
"""Those within the transaction: a process that dies there has changed nothing."""


def names(number: int) -> tuple[str, str]:
    """Return the names of a round's person: the node that stays, and the one that goes."""
    return f"Sam{number}", f"Samuel{number}"


async def ids(memory: Memory, number: int) -> dict[str, str]:
    """Return name → node for the names of a round's person."""
    kept, gone = names(number)
    found = await memory.parts.journal.resolve([kept, gone])
    return {name: found[name.lower()] for name in (kept, gone)}


def merge_killed_at(found: Settings, number: int) -> None:
    """Merge the two nodes of a person in a process that dies at a step."""
    deadly(*STEPS[number])
    asyncio.run(play(found, number, _merged))


def undo_killed_at(found: Settings, number: int) -> None:
    """Merge the two nodes of a person, and take it back in a process that dies at a step."""
    deadly(*STEPS[number])
    asyncio.run(play(found, number, _merged_and_undone))


async def _told(memory: Memory, number: int) -> dict[str, str]:
    """Tell where a round's person lived by one name and lives by the other; return name → node."""
    for name, place, month in zip(names(number), ("Rome", "Milan"), (1, 4), strict=True):
        text = f"{name} lives in {place}."
        await memory.remember(
            text,
            occurred_at=datetime(2026, month, 3, tzinfo=UTC),
            facts=[FactDraft(name, "LIVES_IN", place, text=text)],
        )
    assert await memory.settled(60)
    return await ids(memory, number)


async def _merged(memory: Memory, number: int) -> None:
    both = await _told(memory, number)
    arm()
    await memory.records.merging.merge(*both.values(), dry_run=False)


async def _merged_and_undone(memory: Memory, number: int) -> None:
    both = await _told(memory, number)
    merge = await memory.records.merging.merge(*both.values(), dry_run=False)
    arm()
    await memory.records.merging.undo(merge.id)
