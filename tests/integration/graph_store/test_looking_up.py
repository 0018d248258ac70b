"""Every graph store: pages through everything, and what belongs to nodes and episodes."""

from __future__ import annotations

import pytest

from pps.graph.graph_store import GraphStore
from tests.integration.graph_items import DAY, T0, a_fact, a_node, an_episode, new_id, two_nodes


async def test_scans_page_through_everything_in_uuid_order(store: GraphStore) -> None:
    nodes = [a_node(str(i)) for i in range(25)]
    episodes = [an_episode(str(i)) for i in range(25)]
    await store.save_nodes(nodes, {})
    await store.save_episodes(episodes)
    facts = [a_fact(nodes[0], node) for node in nodes]
    await store.save_facts(facts, {})
    for scan, items in (
        (store.scan_nodes, nodes),
        (store.scan_facts, facts),
        (store.scan_episodes, episodes),
    ):
        seen: list[str] = []
        while page := await scan(seen[-1] if seen else "", 7):
            assert len(page) <= 7
            seen += [item.uuid for item in page]
        assert seen == sorted(item.uuid for item in items)


async def test_facts_of_nodes_are_the_newest_first_and_no_more_than_asked(
    store: GraphStore,
) -> None:
    nodes = [a_node(str(i)) for i in range(12)]
    await store.save_nodes(nodes, {})
    facts = [
        a_fact(nodes[i], nodes[(i + 1) % 12], str(i), created_at=T0 + i * DAY) for i in range(12)
    ]
    await store.save_facts(facts, {})
    assert await store.facts_of_nodes([nodes[0].uuid], 10) == [facts[11], facts[0]]
    for some in (nodes[:3], nodes):
        ids = {node.uuid for node in some}
        expected = [fact for fact in reversed(facts) if {fact.subject, fact.object} & ids]
        assert await store.facts_of_nodes([node.uuid for node in some], 5) == expected[:5]
    assert await store.facts_of_nodes([], 5) == []
    same = [a_fact(nodes[0], nodes[6], str(i), created_at=T0 + 40 * DAY) for i in range(5)]
    await store.save_facts(same, {})
    assert [fact.uuid for fact in await store.facts_of_nodes([nodes[0].uuid], 5)] == sorted(
        f.uuid for f in same
    )


async def test_facts_of_episodes_are_those_that_name_one(store: GraphStore) -> None:
    ana, ben = await two_nodes(store)
    first, second, third = new_id(), new_id(), new_id()
    facts = [
        a_fact(ana, ben, "a", episodes=(first,)),
        a_fact(ana, ben, "b", episodes=(second, first)),
        a_fact(ana, ben, "c", episodes=(third,)),
        a_fact(ana, ben, "d"),
    ]
    await store.save_facts(facts, {})
    assert await store.facts_of_episodes([first, new_id()]) == sorted(
        facts[:2], key=lambda fact: fact.uuid
    )
    assert await store.facts_of_episodes([second, third, third]) == sorted(
        facts[1:3], key=lambda fact: fact.uuid
    )
    assert await store.facts_of_episodes([]) == []


async def test_facts_between_two_nodes_go_from_the_first_to_the_second(store: GraphStore) -> None:
    ana, ben = await two_nodes(store)
    there = [a_fact(ana, ben, str(i)) for i in range(3)]
    back = a_fact(ben, ana)
    await store.save_facts([*there, back], {})
    assert await store.facts_between([(ana.uuid, ben.uuid)]) == sorted(
        there, key=lambda fact: fact.uuid
    )
    assert await store.facts_between([(ben.uuid, ana.uuid), (new_id(), ana.uuid)]) == [back]
    assert await store.facts_between([]) == []


@pytest.mark.parametrize("many", [3, 30])
async def test_mentioned_nodes_are_told_by_episode(store: GraphStore, many: int) -> None:
    nodes = [a_node(str(i)) for i in range(3)]
    episodes = [an_episode(str(i)) for i in range(many)]
    await store.save_nodes(nodes, {})
    await store.save_episodes(episodes)
    pairs = [(episode.uuid, node.uuid) for episode in episodes[1:] for node in nodes]
    await store.save_mentions(pairs)
    await store.save_mentions(pairs[:4])
    found = await store.mentioned_nodes([episode.uuid for episode in episodes])
    assert found == {episode.uuid: sorted(node.uuid for node in nodes) for episode in episodes[1:]}
    assert (await store.counts()).mentions == len(pairs)
