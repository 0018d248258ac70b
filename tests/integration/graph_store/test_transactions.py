"""Every graph store: large batches, transactions, writers beside readers, a restart."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import timedelta

import pytest
from graphiti_core.nodes import EntityNode
from graphiti_core.utils.bulk_utils import add_nodes_and_edges_bulk_tx

from pps.core.ids import new_group
from pps.core.values import GraphCounts
from pps.graph.graph_store import GraphStore
from tests.graph_backend import Backend
from tests.integration.graph_items import (
    T0,
    TEXT,
    a_fact,
    a_node,
    an_episode,
    new_id,
    two_nodes,
    vector,
)
from tests.sampling import sized

ROWS = sized(2_000, 10_000)


async def test_thousands_of_rows_are_one_batch_and_can_be_saved_again(store: GraphStore) -> None:
    nodes = [a_node(f"node {i}") for i in range(ROWS)]
    facts = [
        a_fact(nodes[i], nodes[i * 7 % ROWS], f"fact {i}", valid_at=T0 + timedelta(seconds=i))
        for i in range(ROWS)
    ]
    await store.save_nodes(nodes, {})
    await store.save_facts(facts, {})
    assert await store.counts() == GraphCounts(ROWS, ROWS, 0, 0)
    again = [replace(fact, text=f"again {i}", episodes=(new_id(),)) for i, fact in enumerate(facts)]
    await store.save_facts(again, {})
    await store.save_nodes([replace(node, summary="seen") for node in nodes], {})
    assert await store.counts() == GraphCounts(ROWS, ROWS, 0, 0)
    some = again[::997]
    assert await store.facts([fact.uuid for fact in some]) == some
    assert [node.summary for node in await store.nodes([nodes[-1].uuid])] == ["seen"]
    assert len(await store.scan_facts("", ROWS)) == ROWS


async def test_what_graphiti_saves_in_a_function_of_a_session_is_one_transaction(
    backend: Backend, store: GraphStore
) -> None:
    driver = backend.driver_of(store.group)

    async def work(tx: object, name: str, *, fail: bool) -> str:
        nodes = [
            EntityNode(name=f"{name} {i}", group_id=store.group, name_embedding=[0.1])
            for i in range(2)
        ]
        await add_nodes_and_edges_bulk_tx(tx, [], [], nodes, [], None, driver=driver)  # type: ignore[arg-type]
        if fail:
            raise ValueError
        return name

    async with driver.session() as session:
        with pytest.raises(ValueError):  # noqa: PT011 - raised by the function above
            await session.execute_write(work, "lost", fail=True)
        assert (await store.counts()).nodes == 0
        assert await session.execute_write(work, "kept", fail=False) == "kept"
    assert (await store.counts()).nodes == 2


async def test_writers_and_readers_at_once_lose_nothing(store: GraphStore) -> None:
    ana, ben = await two_nodes(store)

    async def write(turn: int) -> None:
        fresh = [a_node(f"{turn}.{i}") for i in range(5)]
        await store.save_nodes(
            [*fresh, replace(ana, summary=str(turn))], {node.uuid: vector(turn) for node in fresh}
        )
        await store.save_facts(
            [a_fact(ana, node) for node in fresh] + [a_fact(node, ben) for node in fresh], {}
        )

    async def read() -> None:
        for _ in range(10):
            facts = await store.facts_of_nodes([ana.uuid], 500)
            assert len(facts) % 5 == 0, "half of a batch was seen"
            await asyncio.sleep(0)

    await asyncio.gather(*(write(turn) for turn in range(16)), *(read() for _ in range(4)))
    assert await store.counts() == GraphCounts(82, 160, 0, 0)
    assert await store.foreign_edges() == 0


async def test_everything_is_there_after_a_restart(backend: Backend) -> None:
    group = new_group()
    store = backend.store(group)
    ana, ben = await two_nodes(store)
    fact, episode = a_fact(ana, ben, TEXT, valid_at=T0), an_episode(TEXT)
    await store.save_facts([fact], {fact.uuid: vector(1)})
    await store.save_episodes([episode])
    await store.save_mentions([(episode.uuid, ana.uuid)])
    await backend.reopen()
    store = backend.store(group)
    assert await store.counts() == GraphCounts(2, 1, 1, 1)
    assert await store.facts([fact.uuid]) == [fact]
    assert await store.episodes([episode.uuid]) == [episode]
    assert await store.distances(ana.uuid, 1) == {ana.uuid: 0, ben.uuid: 1}
    assert (fact.uuid in await store.fact_vectors([fact.uuid])) == backend.shared
