"""Every graph store: what is saved comes back as it was, is updated by saving it again, or is refused."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from pps.core.errors import InvalidRequest, StoreError
from pps.core.values import GraphCounts
from pps.graph.graph_store import GraphStore
from tests.graph_backend import Backend
from tests.integration.graph_items import (
    DAY,
    T0,
    TEXT,
    a_fact,
    a_node,
    an_episode,
    new_id,
    two_nodes,
    vector,
)


async def test_a_node_comes_back_as_it_was_saved(store: GraphStore) -> None:
    node = a_node(
        TEXT,
        kind="Person",
        summary=TEXT,
        aliases=("A.", TEXT),
        tags=("kitchen", "咖啡"),
        attributes={
            "age": 41,
            "ratio": 0.5,
            "none": None,
            "yes": True,
            "list": [1, "b"],
            "deep": {"k": [TEXT]},
        },
    )
    await store.save_nodes([node], {})
    assert await store.nodes([node.uuid]) == [node]


async def test_a_fact_comes_back_as_it_was_saved(store: GraphStore) -> None:
    ana, ben = await two_nodes(store)
    fact = a_fact(
        ana,
        ben,
        TEXT,
        relation="MET_AT",
        kind="relation",
        episodes=(new_id(), new_id()),
        valid_at=T0,
        invalid_at=T0 + DAY,
        expired_at=T0 + 2 * DAY,
        attributes={"weight": 0.25, "who": TEXT},
    )
    await store.save_facts([fact], {})
    assert await store.facts([fact.uuid]) == [fact]


async def test_a_fact_without_any_time_comes_back_without_any(store: GraphStore) -> None:
    ana, ben = await two_nodes(store)
    fact = a_fact(ana, ben)
    await store.save_facts([fact], {})
    [found] = await store.facts([fact.uuid])
    assert (found.valid_at, found.invalid_at, found.expired_at, found.episodes) == (
        None,
        None,
        None,
        (),
    )


@pytest.mark.parametrize("source", ["message", "text", "json"])
async def test_an_episode_comes_back_as_it_was_saved(store: GraphStore, source: str) -> None:
    episode = an_episode(
        TEXT * 400, source=source, description=TEXT, facts=(new_id(),), valid_at=T0 - DAY
    )
    await store.save_episodes([episode])
    assert await store.episodes([episode.uuid]) == [episode]


async def test_items_come_in_the_order_asked_once_each_and_absent_ones_are_left_out(
    store: GraphStore,
) -> None:
    nodes = [a_node(str(i)) for i in range(20)]
    await store.save_nodes(nodes, {})
    asked = [node.uuid for node in reversed(nodes)]
    assert await store.nodes([new_id(), *asked, asked[0]]) == nodes[::-1]
    facts = [a_fact(nodes[0], node) for node in nodes]
    await store.save_facts(facts, {})
    assert await store.facts([fact.uuid for fact in reversed(facts)]) == facts[::-1]
    assert await store.nodes([]) == []
    assert await store.facts([new_id()]) == []
    assert await store.episodes([new_id()]) == []


async def test_saving_again_updates_and_adds_nothing(store: GraphStore) -> None:
    ana, ben = await two_nodes(store)
    fact, episode = a_fact(ana, ben), an_episode()
    for _ in range(2):
        await store.save_nodes([ana, ben], {})
        await store.save_facts([fact], {})
        await store.save_episodes([episode])
        await store.save_mentions([(episode.uuid, ana.uuid), (episode.uuid, ana.uuid)])
    assert await store.counts() == GraphCounts(2, 1, 1, 1)
    renamed = replace(ana, name="Ana María", kind="Person", summary="s", tags=("x",), attributes={})
    closed = replace(
        fact, text="no more", invalid_at=T0 + DAY, expired_at=T0, episodes=(episode.uuid,)
    )
    told = replace(episode, content="other", facts=(fact.uuid,))
    await store.save_nodes([renamed], {})
    await store.save_facts([closed], {})
    await store.save_episodes([told])
    assert await store.nodes([ana.uuid]) == [renamed]
    assert await store.facts([fact.uuid]) == [closed]
    assert await store.episodes([episode.uuid]) == [told]
    reopened = replace(closed, invalid_at=None, expired_at=None, episodes=())
    await store.save_facts([reopened], {})
    assert await store.facts([fact.uuid]) == [reopened]


async def test_of_two_values_with_one_id_in_a_batch_the_last_counts(store: GraphStore) -> None:
    first = a_node("first")
    await store.save_nodes([first, replace(first, name="last")], {})
    assert [node.name for node in await store.nodes([first.uuid])] == ["last"]


async def test_saving_nothing_does_nothing(store: GraphStore) -> None:
    await store.save_nodes([], {})
    await store.save_facts([], {})
    await store.save_episodes([])
    await store.save_mentions([])
    assert await store.counts() == GraphCounts(0, 0, 0, 0)


async def test_a_fact_whose_ends_change_is_moved(store: GraphStore) -> None:
    ana, ben = await two_nodes(store)
    eva = a_node("Eva")
    await store.save_nodes([eva], {})
    fact = a_fact(ana, ben)
    await store.save_facts([fact], {fact.uuid: vector(3)})
    moved = replace(fact, subject=ben.uuid, object=eva.uuid)
    await store.save_facts([moved], {})
    assert await store.facts([fact.uuid]) == [moved]
    assert await store.facts_of_nodes([ana.uuid], 5) == []
    assert await store.facts_of_nodes([eva.uuid], 5) == [moved]
    assert (await store.distances(ana.uuid, 3)) == {ana.uuid: 0}
    assert (await store.counts()).facts == 1


async def test_a_fact_may_join_a_node_to_itself(store: GraphStore) -> None:
    ana, _ = await two_nodes(store)
    fact = a_fact(ana, ana, "Ana trusts herself")
    await store.save_facts([fact], {})
    assert await store.facts_of_nodes([ana.uuid], 5) == [fact]
    assert await store.facts_between([(ana.uuid, ana.uuid)]) == [fact]
    assert await store.distances(ana.uuid, 2) == {ana.uuid: 0}


@pytest.mark.parametrize("text", ["half of a pair: \ud800", "\udfff"])
async def test_a_text_that_is_not_unicode_is_refused(store: GraphStore, text: str) -> None:
    with pytest.raises((InvalidRequest, StoreError)):
        await store.save_nodes([a_node("good"), a_node(text)], {})
    with pytest.raises((InvalidRequest, StoreError)):
        await store.save_episodes([an_episode(text)])
    assert await store.counts() == GraphCounts(0, 0, 0, 0)


async def test_vectors_are_kept_by_a_server_alone_and_stay_when_none_is_given(
    backend: Backend, store: GraphStore
) -> None:
    ana, ben = await two_nodes(store)
    fact, bare = a_fact(ana, ben), a_fact(ben, ana)
    await store.save_nodes([ana], {ana.uuid: vector(1, 384)})
    await store.save_facts([fact, bare], {fact.uuid: vector(2, 384), new_id(): vector(9, 384)})
    await store.save_nodes([replace(ana, summary="new")], {})
    await store.save_facts([replace(fact, text="new")], {})
    nodes = await store.node_vectors([ana.uuid, ben.uuid])
    facts = await store.fact_vectors([fact.uuid, bare.uuid])
    if not backend.shared:  # the indexes of the entity have them
        assert (nodes, facts) == ({}, {})
        return
    assert (nodes.keys(), facts.keys()) == ({ana.uuid}, {fact.uuid})
    np.testing.assert_allclose(nodes[ana.uuid], vector(1, 384), rtol=1e-6)
    np.testing.assert_allclose(facts[fact.uuid], vector(2, 384), rtol=1e-6)
    assert facts[fact.uuid].dtype == np.float32
    await store.save_facts([fact], {fact.uuid: vector(4, 384)})
    np.testing.assert_allclose(
        (await store.fact_vectors([fact.uuid]))[fact.uuid], vector(4, 384), rtol=1e-6
    )


@pytest.mark.parametrize(
    "kind", ["", "Entity", "1st", "a b", "x`y", "Person)", "ü", "a" * 65, "Person\n"]
)
async def test_a_kind_that_is_no_label_is_refused(store: GraphStore, kind: str) -> None:
    with pytest.raises(InvalidRequest):
        await store.save_nodes([a_node(), a_node(kind=kind)], {})
    assert (await store.counts()).nodes == 0


@pytest.mark.parametrize("name", ["uuid", "group_id", "labels", "_private"])
async def test_attributes_with_the_names_of_columns_are_refused(
    store: GraphStore, name: str
) -> None:
    with pytest.raises(InvalidRequest):
        await store.save_nodes([a_node(attributes={name: "x"})], {})
    assert (await store.counts()).nodes == 0
