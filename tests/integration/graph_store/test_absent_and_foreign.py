"""Every graph store: what does not exist, and what is somebody else's."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pps.core.errors import NotFound
from pps.core.values import GraphCounts
from pps.graph.graph_store import GraphStore
from tests.graph_backend import Backend
from tests.integration.graph_items import T0, a_fact, a_node, an_episode, new_id, two_nodes, vector


async def test_a_fact_with_an_absent_end_is_refused_and_nothing_of_its_batch_is_saved(
    store: GraphStore,
) -> None:
    ana, ben = await two_nodes(store)
    good = [a_fact(ana, ben, str(i)) for i in range(30)]
    with pytest.raises(NotFound):
        await store.save_facts([*good, a_fact(ana, new_id())], {})
    assert (await store.counts()).facts == 0


async def test_a_mention_with_an_absent_end_is_refused_and_nothing_of_its_batch_is_saved(
    store: GraphStore,
) -> None:
    ana, _ = await two_nodes(store)
    episode = an_episode()
    await store.save_episodes([episode])
    for pair in ((new_id(), ana.uuid), (episode.uuid, new_id())):
        with pytest.raises(NotFound):
            await store.save_mentions([(episode.uuid, ana.uuid), pair])
    assert (await store.counts()).mentions == 0


async def test_what_belongs_to_another_group_reads_as_absent(
    store: GraphStore, other: GraphStore
) -> None:
    ana, ben = await two_nodes(other)
    fact, episode = a_fact(ana, ben, valid_at=T0), an_episode()
    fact = replace(fact, episodes=(episode.uuid,))
    await other.save_facts([fact], {fact.uuid: vector(1)})
    await other.save_episodes([episode])
    await other.save_mentions([(episode.uuid, ana.uuid)])
    assert await store.nodes([ana.uuid]) == []
    assert await store.facts([fact.uuid]) == []
    assert await store.episodes([episode.uuid]) == []
    assert await store.fact_vectors([fact.uuid]) == {}
    assert await store.scan_nodes("", 10) == []
    assert await store.scan_facts("", 10) == []
    assert await store.scan_episodes("", 10) == []
    assert await store.facts_of_nodes([ana.uuid], 10) == []
    assert await store.facts_of_episodes([episode.uuid]) == []
    assert await store.facts_between([(ana.uuid, ben.uuid)]) == []
    assert await store.mentioned_nodes([episode.uuid]) == {}
    assert await store.distances(ana.uuid, 3) == {}
    assert await store.timeline() == []
    assert await store.timeline(node=ana.uuid) == []
    assert await store.delete_nodes([ana.uuid]) == 0
    assert await store.delete_facts([fact.uuid]) == 0
    assert await store.delete_episodes([episode.uuid]) == 0
    await store.clear()
    assert await store.counts() == GraphCounts(0, 0, 0, 0)
    assert await other.counts() == GraphCounts(2, 1, 1, 1)


async def test_what_another_group_has_is_untouched_by_a_save_under_its_id(
    backend: Backend, store: GraphStore, other: GraphStore
) -> None:
    """In a shared database the id is taken; in a file of one's own it is free, and is another thing."""
    ana, ben = await two_nodes(other)
    mine = (await two_nodes(store))[0]
    fact, episode = a_fact(ana, ben), an_episode()
    await other.save_facts([fact], {})
    await other.save_episodes([episode])
    with pytest.raises(NotFound):
        await store.save_facts([a_fact(mine, ana)], {})
    with pytest.raises(NotFound):
        await store.save_mentions([(episode.uuid, mine.uuid)])
    for save in (
        store.save_nodes([a_node("new"), replace(ana, name="stolen")], {ana.uuid: vector(1)}),
        store.save_facts([replace(fact, subject=mine.uuid, object=mine.uuid)], {}),
        store.save_episodes([replace(episode, content="stolen")]),
    ):
        if backend.shared:
            with pytest.raises(NotFound):
                await save
        else:
            await save
    assert await other.nodes([ana.uuid]) == [ana]
    assert await other.facts([fact.uuid]) == [fact]
    assert await other.episodes([episode.uuid]) == [episode]
    assert await other.node_vectors([ana.uuid]) == {}
    assert await store.counts() == (
        GraphCounts(2, 0, 0, 0) if backend.shared else GraphCounts(4, 1, 1, 0)
    )


async def test_equal_contents_of_two_groups_stay_apart(
    store: GraphStore, other: GraphStore
) -> None:
    for one in (store, other):
        ana, ben = await two_nodes(one)
        await one.save_facts([a_fact(ana, ben)], {})
    assert await store.counts() == await other.counts() == GraphCounts(2, 1, 0, 0)
    await other.clear()
    assert await store.counts() == GraphCounts(2, 1, 0, 0)
    assert await store.foreign_edges() == 0


async def test_an_edge_into_another_group_is_counted(
    backend: Backend, store: GraphStore, other: GraphStore
) -> None:
    mine, theirs = (await two_nodes(store))[0], (await two_nodes(other))[0]
    assert await store.foreign_edges() == 0
    await backend.plant_crossing_edge(store.group, mine.uuid, theirs.uuid)
    assert await store.foreign_edges() == 1
    assert await other.foreign_edges() == (1 if backend.shared else 0)
