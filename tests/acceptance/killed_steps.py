"""What ``test_killed_steps`` runs in processes of its own: a memory that kills itself after a given step.

A step is one durable change: of the journal, the graph, the filter columns, the text index, the vector index.
"""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Awaitable, Callable
from importlib import import_module
from pathlib import Path
from typing import Any

from pps.app import App
from pps.config import EmbedderSettings, Settings
from pps.core.values import FactDraft
from pps.index.entity import EntityIndexes
from pps.index.text import TextIndex
from pps.index.vectors import VectorIndex
from pps.isolation.client import IsolatedGraphitiClient
from pps.journal.journal import Journal
from pps.journal.queue import JobQueue

for _late in ("chromadb", "chromadb.api.rust", "detect_secrets", "ladybug", "tantivy"):
    import_module(_late)  # once, in the process that the others are forked from

TURNS = 3
STEPS: tuple[tuple[type, str], ...] = (
    (JobQueue, "take"),
    (Journal, "append_many"),
    (Journal, "mark_dirty"),
    (IsolatedGraphitiClient, "save_nodes"),
    (IsolatedGraphitiClient, "save_episodes"),
    (IsolatedGraphitiClient, "save_facts"),
    (IsolatedGraphitiClient, "save_mentions"),
    (Journal, "mirror_nodes"),
    (Journal, "mirror_facts"),
    (TextIndex, "replace"),
    (TextIndex, "commit"),
    (VectorIndex, "replace"),
    (EntityIndexes, "apply"),
    (Journal, "clear_dirty"),
    (JobQueue, "end"),
)
"""The methods that make each step durable; a process is killed right after one."""

_armed = False


def settings(home: Path) -> Settings:
    return Settings(home=home, embedder=EmbedderSettings(name="hash"))


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def deadly(kind: type, name: str) -> None:
    """Let a method kill the process when it has done its work, once turns come in."""
    inner: Callable[..., Any] = getattr(kind, name)

    async def awaited(*args: Any, **kwargs: Any) -> Any:
        done: Awaitable[Any] = inner(*args, **kwargs)
        value = await done
        if _armed and value != []:  # an empty hand is no step
            die()
        return value

    def plain(*args: Any, **kwargs: Any) -> Any:
        value = inner(*args, **kwargs)
        if _armed:
            die()
        return value

    setattr(kind, name, awaited if asyncio.iscoroutinefunction(inner) else plain)


def arm() -> None:
    """Let the next step kill."""
    global _armed
    _armed = True


def killed_at(home: str, number: int) -> None:
    """Remember the turns of a round in a process that dies at a step; it must not come to its end."""
    deadly(*STEPS[number])
    asyncio.run(_told(Path(home), number))


async def _told(home: Path, number: int) -> None:
    async with App.open(settings(home)) as app:
        await app.create("ana")
        async with app.memory("ana") as memory:
            assert await memory.settled()
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
