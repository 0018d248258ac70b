"""Every graph store: distances."""

from __future__ import annotations

import random

import pytest

from pps.core.errors import InvalidRequest
from pps.core.values import Fact, Node
from pps.graph.graph_store import GraphStore
from tests.integration.graph_items import a_fact, a_node, new_id


async def chain(store: GraphStore, length: int) -> tuple[list[Node], list[Fact]]:
    nodes = [a_node(str(i)) for i in range(length)]
    await store.save_nodes(nodes, {})
    ends = [
        (nodes[i], nodes[i + 1]) if i % 2 else (nodes[i + 1], nodes[i]) for i in range(length - 1)
    ]
    facts = [a_fact(*pair) for pair in ends]
    await store.save_facts(facts, {})
    return nodes, facts


async def test_distances_count_hops_in_both_directions(store: GraphStore) -> None:
    nodes, _ = await chain(store, 6)
    assert await store.distances(nodes[2].uuid, 2) == {
        nodes[2].uuid: 0,
        nodes[1].uuid: 1,
        nodes[3].uuid: 1,
        nodes[0].uuid: 2,
        nodes[4].uuid: 2,
    }
    assert await store.distances(nodes[2].uuid, 0) == {nodes[2].uuid: 0}
    assert await store.distances(new_id(), 2) == {}


async def test_walks_agree_with_a_search_by_hand_on_a_random_graph(store: GraphStore) -> None:
    dice = random.Random(7)  # noqa: S311 - a graph, not a secret
    nodes = [a_node(str(i)) for i in range(60)]
    await store.save_nodes(nodes, {})
    facts = [a_fact(dice.choice(nodes), dice.choice(nodes)) for _ in range(80)]
    await store.save_facts(facts, {})
    around: dict[str, set[str]] = {node.uuid: set() for node in nodes}
    for fact in facts:
        around[fact.subject].add(fact.object)
        around[fact.object].add(fact.subject)
    hops = {nodes[0].uuid: 0}
    frontier = [nodes[0].uuid]
    for hop in range(1, 7):
        frontier = [
            far
            for near in frontier
            for far in around[near]
            if far not in hops and not hops.update({far: hop})
        ]
    assert await store.distances(nodes[0].uuid, 6) == hops


@pytest.mark.parametrize("hops", [-1, 9])
async def test_walks_of_no_or_too_many_hops_are_refused(store: GraphStore, hops: int) -> None:
    with pytest.raises(InvalidRequest):
        await store.distances(new_id(), hops)
