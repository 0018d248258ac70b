"""Whatever changes a graph goes through one door: relations and merges leave nothing of what is forgotten meanwhile."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from pps.app import App
from pps.config import EmbedderSettings, Settings
from pps.core.errors import NotFound
from pps.core.values import FactDraft, NodeDraft, RelationDraft
from pps.graph.graph_store import GraphChange
from pps.ingest.work_rules import Door
from pps.isolation.client import IsolatedGraphitiClient
from pps.journal.db import Work
from pps.memory import Memory

ROUNDS = 20
WRITES = (
    "apply",
    "save_nodes",
    "save_facts",
    "save_episodes",
    "save_mentions",
    "delete_mentions",
    "delete_nodes",
    "delete_facts",
    "delete_episodes",
)


class Halfway:
    """Lets a forget stand still for a moment between what it deletes, and says when it does."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.reached = asyncio.Event()
        apply = IsolatedGraphitiClient.apply

        async def slowly(
            client: IsolatedGraphitiClient, change: GraphChange, *works: Work[object]
        ) -> None:
            await apply(client, change, *works)
            if change.gone_nodes:
                self.reached.set()
                await asyncio.sleep(0.03)

        patch.setattr(IsolatedGraphitiClient, "apply", slowly)

    async def relate(self, memory: Memory, source: str, target: str) -> None:
        await self.reached.wait()
        await memory.records.relate([RelationDraft(source, target, "NEAR")])


async def _nothing_left(memory: Memory, gone: set[str]) -> None:
    client = memory.parts.client
    nodes = {node.uuid for node in await client.scan_nodes("", 1_000)}
    facts = await client.scan_facts("", 1_000)
    assert not gone & nodes
    assert not [fact for fact in facts if not {fact.subject, fact.object} <= nodes]
    for uuid in gone:
        with pytest.raises(NotFound):
            await memory.get([uuid])
    assert (await memory.ledger()).problems == ()


async def test_a_relation_that_is_made_while_its_end_is_forgotten_leaves_nothing_behind(
    app: App, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before, amid and after it, many times, with turns that name the same nodes coming in between."""
    halfway = Halfway(monkeypatch)
    await app.create("ana")
    async with app.memory("ana") as memory:
        await memory.remember("Sea and shore.", nodes=[NodeDraft("Sea"), NodeDraft("Shore")])
        ids = {node.name: node.uuid for node in await memory.parts.client.scan_nodes("", 1_000)}
        gone = set[str]()
        for number in range(ROUNDS):
            name = f"Boat {number}"
            told = await memory.remember(
                f"{name} lies ashore.", facts=[FactDraft(name, "LIES_AT", "Shore")]
            )
            boat = next(
                n.uuid for n in await memory.parts.client.scan_nodes("", 1_000) if n.name == name
            )
            await memory.remember(
                f"A gull sits by the sea, {number}.", nodes=[NodeDraft("Gull")], wait="journal"
            )
            halfway.reached.clear()
            await asyncio.gather(
                memory.records.relate([RelationDraft(ids["Sea"], boat, "SEEN_FROM")]),
                memory.forget([told.turn_id, boat], dry_run=False),
                halfway.relate(memory, ids["Sea"], boat),
                halfway.relate(memory, boat, ids["Shore"]),
            )
            gone.add(boat)
        assert await memory.settled()
        await _nothing_left(memory, gone)


async def test_every_write_to_a_graph_is_made_by_whoever_holds_the_door(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    open_at, inside = list[str](), set[Door]()
    held = Door.held

    @asynccontextmanager
    async def counted(door: Door, timeout_s: float | None = None) -> AsyncGenerator[None]:
        async with held(door, timeout_s):
            inside.add(door)
            yield
            inside.discard(door)

    monkeypatch.setattr(Door, "held", counted)
    async with App.open(Settings(home=tmp_path, embedder=EmbedderSettings(name="hash"))) as app:
        await app.create("ana")
        async with app.memory("ana") as memory:

            def watched(name: str) -> None:
                write = getattr(IsolatedGraphitiClient, name)

                async def called(client: IsolatedGraphitiClient, *arguments: object) -> object:
                    if not inside:  # one memory is open: it has one door
                        open_at.append(name)
                    return await write(client, *arguments)

                monkeypatch.setattr(IsolatedGraphitiClient, name, called)

            for name in WRITES:
                watched(name)
            one = await memory.remember("Ana met Tom.", facts=[FactDraft("Ana", "MET", "Tom")])
            two = await memory.records.add_event("Tom sails to [[Ana]].", title="Trip")
            await memory.records.update(two.node_id, content="Tom rows.")
            await memory.records.append(two.node_id, "And swims.")
            await memory.records.relate([RelationDraft("Ana", "Trip", "NEAR")])
            nodes = {
                node.name: node.uuid for node in await memory.parts.client.scan_nodes("", 1_000)
            }
            merged = await memory.records.merging.merge(nodes["Ana"], nodes["Tom"], dry_run=False)
            await memory.records.merging.undo(merged.id)
            await memory.reindex()
            await memory.reembed()
            await memory.rebuild()
            await memory.forget([one.turn_id, two.turn_id], dry_run=False)
            assert await memory.settled()
    assert open_at == []


@pytest.mark.parametrize("option", ["group_ids", "group_id", "nonsense", "driver"])
async def test_no_method_of_the_client_takes_an_option_that_it_does_not_name(
    app: App, option: str
) -> None:
    await app.create("ana")
    async with app.memory("ana") as memory:
        client = memory.parts.client
        assert "kwargs" not in str(inspect.signature(client.search))
        assert option not in inspect.signature(client.search).parameters
        given: Any = {option: ["other"]}
        with pytest.raises(TypeError, match=option):
            await client.search("bees", recipe="NODE_HYBRID_SEARCH_RRF", **given)
        with pytest.raises(TypeError, match=option):
            await client.timeline(**given)
