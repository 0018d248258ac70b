"""What ``test_killed_steps`` runs in processes of its own: a memory that kills itself after a given step.

A step is a durable change of the tables, the text index or the vector index, or a part of the one transaction.
"""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import signal
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from multiprocessing.process import BaseProcess
from types import ModuleType
from typing import Any, TypeAlias

from pps.app import App
from pps.config import Settings
from pps.core.values import FactDraft
from pps.index.indexes import EntityIndexes
from pps.index.text_index import TextIndex
from pps.index.vector_index import VectorIndex
from pps.ingest import forget, indexer, recycle_bin, worker, write_path
from pps.ingest.linking import Linker
from pps.ingest.recycle_bin import RecycleBin
from pps.ingest.worker import Worker
from pps.isolation.client import IsolatedGraphitiClient
from pps.journal import turns as turn_rows
from pps.journal.bin_rows import Bin
from pps.journal.closing_rows import Closings
from pps.journal.job_queue import JobQueue
from pps.journal.journal import Journal
from pps.journal.versions import Versions
from pps.memory import Memory
from pps.store import sql_graph
from tests.sampling import sample
from tests.waiting import PATIENCE_S

TURNS = 3
Step: TypeAlias = tuple[type | ModuleType, str]
"""Where a function is, and its name."""
STEPS: tuple[Step, ...] = (
    (JobQueue, "take"),
    (Journal, "append_many"),
    (write_path, "log_changes"),
    (sql_graph, "put_nodes"),
    (sql_graph, "put_facts"),
    (sql_graph, "put_episodes"),
    (sql_graph, "put_mentions"),
    (worker, "end_jobs"),
    (IsolatedGraphitiClient, "apply"),
    (TextIndex, "replace"),
    (TextIndex, "commit"),
    (VectorIndex, "replace"),
    (EntityIndexes, "apply"),
    (EntityIndexes, "save_positions"),
    (Journal, "drop_entries"),
)
"""What a process is killed right after: steps that are durable, and those within the one transaction."""

RECORD_STEPS: tuple[Step, ...] = (
    (Journal, "append_many"),
    (write_path, "put_records"),
    (IsolatedGraphitiClient, "apply"),
    (Linker, "waiting"),
    (Versions, "revise"),
)
"""Of records: their place in the journal, links that waited and are not made yet, a new version."""
FORGET_STEPS: tuple[Step, ...] = (
    (forget, "_begin"),
    (turn_rows, "log_changes"),
    (sql_graph, "put_facts"),
    (turn_rows, "forget"),
    (IsolatedGraphitiClient, "apply"),
    (Closings, "forget"),
    (Worker, "forgotten"),
    (EntityIndexes, "apply"),
    (EntityIndexes, "save_positions"),
    (Journal, "drop_entries"),
    (EntityIndexes, "purge"),
)
"""Of forgetting: parts of the one transaction, then what follows until nothing of it is left in any file."""
UNDONE_FORGET_STEPS = frozenset(FORGET_STEPS[: FORGET_STEPS.index((Worker, "forgotten"))])
"""Those within the transaction: a process that dies there has forgotten nothing."""

SOFT_STEPS: tuple[Step, ...] = (
    (RecycleBin, "taken"),
    *FORGET_STEPS,
)
"""Of forgetting softly: what can be restored is put on disk by the same transaction."""
UNDONE_SOFT_STEPS = UNDONE_FORGET_STEPS | {SOFT_STEPS[0]}
RESTORE_STEPS: tuple[Step, ...] = (
    (RecycleBin, "get"),
    (recycle_bin, "put_back"),
    (sql_graph, "put_nodes"),
    (IsolatedGraphitiClient, "apply"),
    (Bin, "end"),
    (EntityIndexes, "apply"),
    (EntityIndexes, "save_positions"),
    (Journal, "drop_entries"),
    (RecycleBin, "restore"),
)
UNDONE_RESTORE_STEPS = frozenset(RESTORE_STEPS[: RESTORE_STEPS.index((EntityIndexes, "apply"))])

_armed = False


def process(target: Callable[..., None], *given: Any) -> BaseProcess:
    """Start a process that does this."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(
        ["tests.integration.interfaces.preloaded", __name__, target.__module__]
    )
    child = context.Process(target=target, args=given)
    child.start()
    return child


def killed(
    steps: Sequence[Step], target: Callable[..., None], found: Settings, *given: Any
) -> list[int]:
    """Run a round for each step of a sample, in a process that dies there; return their numbers, which come last."""
    reached = range(len(steps))
    if found.store == "neo4j":  # entries stay until they are published, which waits for no step
        reached = [number for number in reached if steps[number] != (Journal, "drop_entries")]
    rounds = sample(reached, {"neo4j": 2}.get(found.store, 4), f"{target.__name__} {found.store}")
    for number in rounds:
        child = process(target, found, *given, number)
        child.join(60)
        assert child.exitcode == -signal.SIGKILL, f"{steps[number][1]}: was not reached"
    return rounds


@asynccontextmanager
async def taken_up(found: Settings) -> AsyncIterator[Memory]:
    """Open what the last kill left, once it has come to its end; all stores must agree, also after the block."""
    async with App.open(found) as app, app.memory("ana") as memory:
        assert await memory.settled(60)
        yield memory
        if (publisher := memory.parts.indexer.publisher) is not None:
            await publisher.catch_up(PATIENCE_S)  # ``settled`` waits for the indexes alone
        ledger = await memory.ledger()
        assert ledger.problems == ()
        assert all(one.ok for one in ledger.agreements)
        assert (await memory.stats()).index_lag == 0
        assert (await memory.health()).ok


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def deadly(kind: type | ModuleType, name: str) -> None:
    """Let a method kill the process when it has done its work, once turns come in."""
    indexer.SAVED_AFTER_ENTRIES = 1  # after each change of the indexes, so that this is a step too
    inner: Callable[..., Any] = getattr(kind, name)

    async def awaited(*args: Any, **kwargs: Any) -> Any:
        done: Awaitable[Any] = inner(*args, **kwargs)
        value = await done
        if (
            _armed and value != [] and not (name == "waiting" and value is None)
        ):  # an empty hand is no step
            die()
        return value

    def plain(*args: Any, **kwargs: Any) -> Any:
        value = inner(*args, **kwargs)
        if _armed:
            die()
        return value

    setattr(kind, name, awaited if asyncio.iscoroutinefunction(inner) else plain)


def killed_at(found: Settings, number: int) -> None:
    """Remember the turns of a round in a process that dies at a step; it must not come to its end."""
    deadly(*STEPS[number])
    asyncio.run(play(found, number, _told))


def record_killed_at(found: Settings, number: int) -> None:
    """Keep and change the records of a round in a process that dies at a step."""
    deadly(*RECORD_STEPS[number])
    asyncio.run(play(found, number, _recorded))


def forget_killed_at(found: Settings, number: int) -> None:
    """Forget a turn of a round in a process that dies at a step."""
    deadly(*FORGET_STEPS[number])
    asyncio.run(play(found, number, _forgotten))


def soft_killed_at(found: Settings, number: int) -> None:
    """Forget a turn of a round softly in a process that dies at a step."""
    deadly(*SOFT_STEPS[number])
    asyncio.run(play(found, number, _forgotten_softly))


def restore_killed_at(found: Settings, number: int) -> None:
    """Forget a turn of a round softly and restore it in a process that dies at a step of that."""
    deadly(*RESTORE_STEPS[number])
    asyncio.run(play(found, number, _restored))


async def play(
    found: Settings, number: int, work: Callable[[Memory, int], Awaitable[None]]
) -> None:
    """Do the work of a round in ana's memory, once what an earlier round left has come to its end."""
    async with App.open(found) as app:
        await app.create("ana")
        async with app.memory("ana") as memory:
            assert await memory.settled()
            await work(memory, number)


def arm() -> None:
    """Let the next step kill."""
    global _armed
    _armed = True


async def _told(memory: Memory, number: int) -> None:
    arm()
    await memory.remember_many(
        [
            (
                f"Turn {number}/{turn}: Person{turn} went to Place{number}.",
                {
                    "source_ref": f"{number}/{turn}",
                    "facts": [FactDraft(f"Person{turn}", "WENT_TO", f"Place{number}")],
                },
            )
            for turn in range(TURNS)
        ]
    )
    await memory.settled()


async def _recorded(memory: Memory, number: int) -> None:
    arm()
    await tell_records(memory, number)


async def tell_records(memory: Memory, number: int) -> None:
    """Keep a record that links to a later one, then that one, then change the first; told again, nothing is new."""
    early = await memory.records.add_event(
        f"See [[Later {number}]].", title=f"Early {number}", source_ref=f"early/{number}"
    )
    await memory.records.add_event(
        "It is there.", title=f"Later {number}", source_ref=f"later/{number}"
    )
    await memory.records.update(early.turn_id, content=f"Changed. See [[Later {number}]].")


async def _forgotten(memory: Memory, number: int) -> None:
    gone = await _to_forget(memory, number)
    arm()
    await memory.forget([gone], dry_run=False)


async def _forgotten_softly(memory: Memory, number: int) -> None:
    gone = await _to_forget(memory, number)
    arm()
    await memory.forget([gone], dry_run=False, soft=True)


async def _restored(memory: Memory, number: int) -> None:
    gone = await _to_forget(memory, number)
    held = await memory.forget([gone], dry_run=False, soft=True)
    arm()
    await memory.forgetting.restore(held.restorable_as)


async def _to_forget(memory: Memory, number: int) -> str:
    both = FactDraft("Ana", "KNOWS", f"Both{number}")
    await memory.remember(f"Kept {number}.", source_ref=f"kept/{number}", facts=[both])
    gone = await memory.remember(
        f"Gone {number}.",
        source_ref=f"gone/{number}",
        facts=[both, FactDraft("Ana", "KNOWS", f"Gone{number}")],
    )
    assert await memory.settled()
    return gone.turn_id
