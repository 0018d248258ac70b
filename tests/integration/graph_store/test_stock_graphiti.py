"""Every graph store: stock Graphiti on the same graph."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from graphiti_core.edges import EntityEdge
from graphiti_core.nodes import EntityNode, EpisodicNode

from pps.graph.graph_store import GraphStore
from tests.graph_backend import Backend
from tests.integration.graph_items import T0, a_fact, a_node, an_episode, new_id, vector


async def test_stock_graphiti_reads_what_the_store_wrote(
    backend: Backend, store: GraphStore
) -> None:
    ana, ben = a_node("Ana", kind="Person", summary="s", aliases=("A",)), a_node("Ben")
    await store.save_nodes([ana, ben], {ana.uuid: vector(1)})
    fact, episode = a_fact(ana, ben, valid_at=T0, episodes=(new_id(),)), an_episode()
    await store.save_facts([fact], {fact.uuid: vector(2)})
    await store.save_episodes([episode])
    await store.save_mentions([(episode.uuid, ana.uuid)])
    node = await EntityNode.get_by_uuid(backend.driver_of(store.group), ana.uuid)
    assert (node.name, node.summary, node.group_id, set(node.labels)) == (
        "Ana",
        "s",
        store.group,
        {"Entity", "Person"},
    )
    assert node.created_at == T0
    if backend.shared:  # in the tables there is none: the indexes of the entity have it
        await node.load_name_embedding(backend.driver_of(store.group))
        np.testing.assert_allclose(node.name_embedding, vector(1), rtol=1e-6)
    [edge] = await EntityEdge.get_by_uuids(backend.driver_of(store.group), [fact.uuid])
    assert (edge.source_node_uuid, edge.target_node_uuid, edge.fact) == (
        ana.uuid,
        ben.uuid,
        fact.text,
    )
    assert (edge.valid_at, edge.invalid_at, edge.episodes) == (T0, None, list(fact.episodes))
    [told] = await EpisodicNode.get_by_entity_node_uuid(backend.driver_of(store.group), ana.uuid)
    assert (told.uuid, told.content, told.valid_at) == (episode.uuid, episode.content, T0)


async def test_the_store_reads_what_stock_graphiti_wrote(
    backend: Backend, store: GraphStore
) -> None:
    group = store.group
    ana = EntityNode(
        name="Ana",
        group_id=group,
        labels=["Person"],
        summary="s",
        attributes={"age": 41},
        created_at=T0,
    )
    ben = EntityNode(name="Ben", group_id=group, labels=[], created_at=T0)
    for number, node in enumerate((ana, ben)):
        node.name_embedding = vector(number).tolist()
        await node.save(backend.driver_of(store.group))
    edge = EntityEdge(
        source_node_uuid=ana.uuid,
        target_node_uuid=ben.uuid,
        name="KNOWS",
        fact="Ana knows Ben",
        group_id=group,
        created_at=T0,
        valid_at=T0,
        attributes={"since": "school"},
        fact_embedding=vector(5).tolist(),
    )
    await edge.save(backend.driver_of(store.group))
    [first, second] = await store.nodes([ana.uuid, ben.uuid])
    assert (first.kind, first.summary, dict(first.attributes)) == ("Person", "s", {"age": 41})
    assert (second.kind, second.name) == ("Thing", "Ben")
    [fact] = await store.facts_of_nodes([ben.uuid], 5)
    assert (fact.uuid, fact.subject, fact.object, fact.kind) == (
        edge.uuid,
        ana.uuid,
        ben.uuid,
        "fact",
    )
    assert (fact.valid_at, dict(fact.attributes)) == (T0, {"since": "school"})
    assert await store.foreign_edges() == 0


async def test_attributes_of_graphitis_own_pipeline_are_kept_beside_ours(
    backend: Backend, store: GraphStore
) -> None:
    ana = EntityNode(
        name="Ana", group_id=store.group, attributes={"age": 41, "town": "Rome"}, created_at=T0
    )
    ana.name_embedding = vector(1).tolist()
    await ana.save(backend.driver_of(store.group))
    [node] = await store.nodes([ana.uuid])
    await store.save_nodes(
        [replace(node, tags=("x",), attributes={**node.attributes, "mine": 1, "town": "Oslo"})], {}
    )
    stock = await EntityNode.get_by_uuid(backend.driver_of(store.group), ana.uuid)
    assert (stock.attributes["age"], stock.attributes["town"]) == (41, "Rome")
    stock.attributes["age"] = 42
    if backend.shared:
        await stock.load_name_embedding(backend.driver_of(store.group))
    await stock.save(backend.driver_of(store.group))
    [node] = await store.nodes([ana.uuid])
    assert dict(node.attributes) == {"age": 42, "town": "Oslo", "mine": 1}
    assert node.tags == ("x",)
