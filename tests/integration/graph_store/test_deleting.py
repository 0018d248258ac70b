"""Every graph store: what is deleted is gone with all that hangs on it, and nothing else is."""

from __future__ import annotations

from pps.core.values import GraphCounts
from pps.graph.graph_store import GraphStore
from tests.integration.graph_items import a_fact, a_node, an_episode, new_id, two_nodes


async def test_deleting_a_node_deletes_its_facts_on_both_sides_and_its_mentions(
    store: GraphStore,
) -> None:
    ana, ben = await two_nodes(store)
    eva, episode = a_node("Eva"), an_episode()
    await store.save_nodes([eva], {})
    await store.save_episodes([episode])
    await store.save_mentions([(episode.uuid, ana.uuid), (episode.uuid, ben.uuid)])
    stays = a_fact(ben, eva)
    await store.save_facts([a_fact(ana, ben), a_fact(ben, ana), a_fact(ana, ana), stays], {})
    assert await store.delete_nodes([ana.uuid, new_id(), ana.uuid]) == 1
    assert await store.counts() == GraphCounts(2, 1, 1, 1)
    assert await store.scan_facts("", 10) == [stays]
    assert await store.mentioned_nodes([episode.uuid]) == {episode.uuid: [ben.uuid]}


async def test_deleting_facts_and_episodes_leaves_the_rest(store: GraphStore) -> None:
    ana, ben = await two_nodes(store)
    episodes = [an_episode(str(i)) for i in range(3)]
    await store.save_episodes(episodes)
    await store.save_mentions([(episode.uuid, ana.uuid) for episode in episodes])
    facts = [a_fact(ana, ben, str(i), episodes=(episodes[0].uuid,)) for i in range(3)]
    await store.save_facts(facts, {})
    assert await store.delete_facts([fact.uuid for fact in facts[:2]]) == 2
    assert await store.delete_facts([facts[0].uuid]) == 0
    assert await store.delete_episodes([episodes[0].uuid, new_id()]) == 1
    assert await store.counts() == GraphCounts(2, 1, 2, 2)
    assert await store.facts([facts[2].uuid]) == [facts[2]]
    assert await store.facts_of_episodes([episodes[0].uuid]) == [facts[2]]
    await store.save_facts(facts, {})
    assert (await store.counts()).facts == 3


async def test_deleting_hundreds_at_once_deletes_exactly_those(store: GraphStore) -> None:
    nodes = [a_node(str(i)) for i in range(300)]
    await store.save_nodes(nodes, {})
    await store.save_facts([a_fact(nodes[i], nodes[i + 1]) for i in range(299)], {})
    assert await store.delete_nodes([node.uuid for node in nodes[:200]]) == 200
    assert await store.counts() == GraphCounts(100, 99, 0, 0)


async def test_clearing_leaves_nothing(store: GraphStore) -> None:
    ana, ben = await two_nodes(store)
    episode = an_episode()
    await store.save_facts([a_fact(ana, ben)], {})
    await store.save_episodes([episode])
    await store.save_mentions([(episode.uuid, ana.uuid)])
    await store.clear()
    assert await store.counts() == GraphCounts(0, 0, 0, 0)
    await two_nodes(store)
    assert (await store.counts()).nodes == 2


async def test_mentions_are_parted_one_by_one_and_what_is_not_joined_is_passed_over(
    store: GraphStore,
) -> None:
    ana, ben = await two_nodes(store)
    first, second = an_episode(), an_episode()
    await store.save_episodes([first, second])
    await store.save_mentions(
        [(one.uuid, node.uuid) for one in (first, second) for node in (ana, ben)]
    )
    await store.delete_mentions(
        [(first.uuid, ana.uuid), (first.uuid, ana.uuid), (new_id(), ben.uuid)]
    )
    await store.delete_mentions([])
    assert await store.mentioned_nodes([first.uuid, second.uuid]) == {
        first.uuid: [ben.uuid],
        second.uuid: sorted([ana.uuid, ben.uuid]),
    }
