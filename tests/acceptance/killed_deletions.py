"""What ``test_killed_deletions`` runs in processes of its own, to be killed at a step of a deletion."""

from __future__ import annotations

import asyncio
import json
import shutil

from pps.app import App
from pps.config import Settings
from pps.core.values import FactDraft, NodeDraft
from pps.entities.deletions import Deletions
from pps.entities.registry import Registry
from pps.entities.small_file import SmallFile
from pps.isolation import client as guarded_client
from pps.isolation.store_neo4j import Neo4jStore
from pps.journal.postgresql import Database
from pps.server import spool
from tests.acceptance.killed_steps import arm, deadly

MARK = "zanzibar7"
NAME = "doomed_one"
STEPS: tuple[tuple[object, str], ...] = (
    (App, "_close"),
    (spool, "erase"),
    (Deletions, "begin"),
    (shutil.os, "rmdir"),  # the first folder inside the entity's is gone
    (Deletions, "remove_files"),
    (Database, "erase"),  # its rows are gone
    (Neo4jStore, "_clear_some"),  # some of the graph is gone
    (guarded_client, "erase"),
    (SmallFile, "scrub"),
    (Deletions, "end"),
)
"""What a process is killed right after."""
_OF_ONE_STORE: dict[tuple[object, str], str] = {
    (Database, "erase"): "postgresql",
    (Neo4jStore, "_clear_some"): "neo4j",
    (guarded_client, "erase"): "neo4j",
}
"""Steps that are reached on one store alone."""


def steps(store: str) -> list[int]:
    """Return the numbers of the steps that a store has."""
    return [at for at, step in enumerate(STEPS) if _OF_ONE_STORE.get(step, store) == store]


def killed_at(found: Settings, archived: bool, number: int) -> None:
    """Make an entity that remembers and has routes, and die at a step of its deletion."""
    deadly(*STEPS[number])  # pyright: ignore[reportArgumentType] - modules have their functions patched too
    asyncio.run(_deleted(found, archived))


async def _deleted(found: Settings, archived: bool) -> None:
    async with App.open(found) as app:
        await told(app)
        if archived:
            await app.archive(NAME)
        arm()
        await app.delete(NAME)


async def told(app: App) -> None:
    """Make the entity: turns, facts, an anchor, a route, what hooks left for it; and jobs to be done."""
    await app.create(NAME)
    app.registry.routes.add(f"/work/{MARK}", NAME)
    async with app.memory(NAME) as memory:
        for at in range(3):
            fact = FactDraft(f"{MARK}{at}", "KNOWS", "Ben", text=f"{MARK} knows Ben {at}.")
            node = NodeDraft(
                f"{MARK}{at}", kind="Person", summary=f"Of {MARK}.", attributes={"note": MARK}
            )
            await memory.remember(
                f"About {MARK} {at}.", source_ref=str(at), nodes=[node], facts=[fact]
            )
        await memory.anchor_save(MARK, f"# {MARK}\n\nText of {MARK}.")
        spooled = spool.spool_folder(app.settings.home)
        spooled.mkdir(exist_ok=True)
        (spooled / "1.json").write_text(json.dumps({"entity": NAME, "text": MARK}))
        (spooled / "2.bad").write_text(json.dumps({"project": f"/work/{MARK}/src", "text": MARK}))
        for at in range(30):
            await memory.remember(
                f"Later about {MARK} {at}.", source_ref=f"later{at}", wait="journal"
            )


def group(found: Settings) -> str:
    """Return the group of the entity, or an empty text when its registration is gone."""
    return next((one.entity.group for one in Registry(found.home).list(include_archived=True)), "")
