"""Both graph stores: large batches, transactions, writers beside readers, a restart."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import timedelta

import pytest

from pps.core.errors import StoreError
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


async def test_a_transaction_that_raises_leaves_nothing(
    backend: Backend, store: GraphStore
) -> None:
    class Enough(Exception):
        pass

    async def create(*, fail: bool) -> None:
        async with backend.driver.transaction() as tx:
            await tx.run(
                "CREATE (:Entity {uuid: $uuid, group_id: $group_id})",
                uuid=new_id(),
                group_id=store.group,
            )
            if fail:
                raise Enough

    with pytest.raises(Enough):
        await create(fail=True)
    assert (await store.counts()).nodes == 0
    await create(fail=False)
    assert (await store.counts()).nodes == 1


async def test_a_written_function_of_a_session_is_a_transaction(
    backend: Backend, store: GraphStore
) -> None:
    async def work(tx: object, name: str, *, fail: bool) -> str:
        await tx.run(  # type: ignore[attr-defined]
            "CREATE (:Entity {uuid: $uuid, name: $name, group_id: $group_id})",
            uuid=new_id(),
            name=name,
            group_id=store.group,
        )
        if fail:
            raise ValueError
        return name

    async with backend.driver.session() as session:
        with pytest.raises(ValueError):  # noqa: PT011 - raised by the function above
            await session.execute_write(work, "lost", fail=True)
        assert await session.execute_write(work, "kept", fail=False) == "kept"
    assert (await store.counts()).nodes == 1


async def test_a_statement_that_is_refused_is_an_error_of_the_store(backend: Backend) -> None:
    with pytest.raises(StoreError):
        await backend.driver.execute_query("MATCH (n RETURN n")


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
    assert fact.uuid in await store.fact_vectors([fact.uuid])
