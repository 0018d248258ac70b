"""Both graph stores: distances, paths, neighbours and subgraphs."""

from __future__ import annotations

import random

import pytest

from pps.core.errors import InvalidRequest
from pps.core.values import Fact, Node
from pps.graph.protocol import GraphStore
from tests.integration.graph_items import a_fact, a_node, new_id


async def chain(store: GraphStore, length: int) -> tuple[list[Node], list[Fact]]:
    nodes = [a_node(str(i)) for i in range(length)]
    await store.save_nodes(nodes, {})
    ends = [(nodes[i], nodes[i + 1]) if i % 2 else (nodes[i + 1], nodes[i]) for i in range(length - 1)]
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


async def test_the_shortest_path_walks_facts_in_either_direction(store: GraphStore) -> None:
    nodes, facts = await chain(store, 6)
    path = await store.shortest_path(nodes[0].uuid, nodes[4].uuid, 4)
    assert path is not None
    assert list(path.nodes) == nodes[:5]
    assert list(path.facts) == facts[:4]
    assert await store.shortest_path(nodes[0].uuid, nodes[4].uuid, 3) is None
    shortcut = a_fact(nodes[4], nodes[1])
    await store.save_facts([shortcut], {})
    path = await store.shortest_path(nodes[0].uuid, nodes[4].uuid, 4)
    assert path is not None
    assert [node.name for node in path.nodes] == ["0", "1", "4"]
    here = await store.shortest_path(nodes[0].uuid, nodes[0].uuid, 2)
    assert here is not None
    assert (list(here.nodes), list(here.facts)) == ([nodes[0]], [])
    assert await store.shortest_path(nodes[0].uuid, new_id(), 4) is None


async def test_neighbours_are_the_nearest_with_the_facts_among_them(store: GraphStore) -> None:
    nodes, facts = await chain(store, 6)
    found = await store.neighbours(nodes[0].uuid, 3, 10)
    assert {node.uuid for node in found.nodes} == {node.uuid for node in nodes[:4]}
    assert {fact.uuid for fact in found.facts} == {fact.uuid for fact in facts[:3]}
    assert dict(found.hops) == {node.uuid: hop for hop, node in enumerate(nodes[:4])}
    nearest = await store.neighbours(nodes[0].uuid, 5, 2)
    assert {node.uuid for node in nearest.nodes} == {node.uuid for node in nodes[:3]}
    assert (await store.neighbours(new_id(), 3, 10)).nodes == ()


async def test_a_subgraph_has_the_facts_among_its_nodes_only(store: GraphStore) -> None:
    nodes, facts = await chain(store, 4)
    found = await store.subgraph([nodes[0].uuid, nodes[1].uuid, nodes[3].uuid, new_id()])
    assert {node.uuid for node in found.nodes} == {nodes[0].uuid, nodes[1].uuid, nodes[3].uuid}
    assert list(found.facts) == [facts[0]]
    assert set(found.hops.values()) == {0}


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
        frontier = [far for near in frontier for far in around[near] if far not in hops and not hops.update({far: hop})]
    assert await store.distances(nodes[0].uuid, 6) == hops
    for end in dice.sample(nodes, 15):
        path = await store.shortest_path(nodes[0].uuid, end.uuid, 6)
        assert (None if path is None else len(path.facts)) == hops.get(end.uuid)


@pytest.mark.parametrize("hops", [-1, 9])
async def test_walks_of_no_or_too_many_hops_are_refused(store: GraphStore, hops: int) -> None:
    for walk in (store.distances(new_id(), hops), store.neighbours(new_id(), hops, 5)):
        with pytest.raises(InvalidRequest):
            await walk
    with pytest.raises(InvalidRequest):
        await store.shortest_path(new_id(), new_id(), hops)
