"""What only the store on Neo4j must show: the work its statements do, races between groups, stock Graphiti."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from dataclasses import astuple
from datetime import timedelta
from typing import Any

import numpy as np
import pytest
from graphiti_core import Graphiti
from graphiti_core.driver.neo4j_driver import Neo4jDriver
from graphiti_core.edges import EntityEdge
from graphiti_core.nodes import EntityNode, EpisodicNode
from graphiti_core.search.search_config_recipes import (
    COMBINED_HYBRID_SEARCH_RRF,
    EDGE_HYBRID_SEARCH_MMR,
    EDGE_HYBRID_SEARCH_RRF,
    NODE_HYBRID_SEARCH_NODE_DISTANCE,
    NODE_HYBRID_SEARCH_RRF,
)

from pps.core.errors import InvalidRequest, NotFound
from pps.core.ids import new_group
from pps.core.values import Episode, Fact, Node
from pps.graph.graph_store import ByUuid
from pps.isolation import neo4j_cypher as cypher
from pps.isolation.graphiti_models import GraphitiEmbedder, GraphitiReranker, NoExtractor
from pps.isolation.neo4j import Neo4jPool
from pps.isolation.store_neo4j import Neo4jStore
from tests.kitchen import EMBEDDER, T0, new_id, saved_kitchen, vectors_of
from tests.neo4j_server import Neo4jServer

pytestmark = pytest.mark.neo4j


@pytest.fixture
def store(neo4j_pool: Neo4jPool, group: str) -> Neo4jStore:
    return Neo4jStore(neo4j_pool.driver(), group)


@pytest.fixture
async def stock(neo4j_server: Neo4jServer) -> AsyncIterator[Graphiti]:
    """Graphiti as it is, on its own driver, as another program would use it on the same database."""
    driver = Neo4jDriver(neo4j_server.uri, neo4j_server.user, neo4j_server.password)
    graphiti = Graphiti(
        graph_driver=driver,
        llm_client=NoExtractor(),
        embedder=GraphitiEmbedder(EMBEDDER),
        cross_encoder=GraphitiReranker(None, 0.5),
    )
    await graphiti.build_indices_and_constraints()  # it finds that they are there
    yield graphiti
    await graphiti.close()


def statements() -> Iterator[tuple[str, str]]:
    for name, value in vars(cypher).items():
        if name.isupper() and not name.startswith("_"):
            parts = astuple(value) if isinstance(value, ByUuid) else value
            for part in parts if isinstance(parts, tuple) else (parts,):
                yield name, part
    for node in (True, False):
        for dated in (True, False):
            yield (
                "timeline",
                cypher.timeline(node=node, dated=dated, conditions=["e.name = $relation"]),
            )


@pytest.mark.parametrize(
    "statement", [text for _, text in statements()], ids=[name for name, _ in statements()]
)
async def test_every_statement_binds_the_group_and_seeks_in_an_index(
    neo4j_pool: Neo4jPool, statement: str
) -> None:
    """A bound on work: no statement looks at other groups' rows on its way to its own."""
    assert "$group_id" in statement
    assert statement.count("USING INDEX") == statement.count("USING INDEX SEEK"), (
        "a hint that a scan would satisfy"
    )
    given: dict[str, Any] = {
        "uuids": ["x"],
        "rows": [],
        "limit": 10,
        "after": "",
        "last": "",
        "node": "x",
    }
    _, summary, _ = await neo4j_pool.driver().execute_query(
        f"EXPLAIN {statement}", group_id=new_group(), relation="KNOWS", now=T0, **given
    )
    operators = set(_operators(summary.plan))
    assert not operators & {"AllNodesScan", "NodeByLabelScan", "DirectedAllRelationshipsScan"}, (
        operators
    )
    assert not any(
        "TypeScan" in operator or "UndirectedAll" in operator for operator in operators
    ), operators
    assert any("IndexSeek" in operator for operator in operators), operators
    assert not any("IndexScan" in operator for operator in operators), operators


def _operators(plan: dict[str, Any]) -> Iterator[str]:
    yield plan["operatorType"].partition("@")[0]
    for child in plan.get("children", []):
        yield from _operators(child)


@pytest.mark.parametrize("statement", [cypher.SCAN_NODES, cypher.SCAN_EPISODES, cypher.SCAN_FACTS])
async def test_a_page_stops_at_its_limit_instead_of_sorting_the_rest(
    neo4j_pool: Neo4jPool, statement: str
) -> None:
    await _reads_in_order(neo4j_pool, statement)


async def test_a_page_of_the_timeline_stops_at_its_limit(neo4j_pool: Neo4jPool) -> None:
    for since in ([], [cypher.after_last()]):
        await _reads_in_order(neo4j_pool, cypher.timeline(node=False, dated=True, conditions=since))


async def _reads_in_order(pool: Neo4jPool, statement: str) -> None:
    _, summary, _ = await pool.driver().execute_query(
        f"EXPLAIN {statement}", group_id=new_group(), after="", last="", at=T0, limit=10
    )
    operators = set(_operators(summary.plan))
    assert "Limit" in operators
    assert "Top" not in operators


async def test_facts_travel_by_columns_and_each_keeps_its_own(neo4j_pool: Neo4jPool) -> None:
    store = Neo4jStore(neo4j_pool.driver(), new_group())
    ends = [Node(new_id(), name, T0) for name in ("Sam", "Tea, green")]
    await store.save_nodes(ends, {})
    moments = [None, T0, T0 + timedelta(days=1, microseconds=7)]
    facts = [
        Fact(
            uuid=new_id(),
            subject=ends[at % 2].uuid,
            object=ends[1].uuid,
            relation="LIKES, OR SO",
            text=f"a,b,, 'c' \n{at}, and ; | \x1f",
            created_at=T0,
            episodes=tuple(new_id() for _ in range(at % 4)),
            valid_at=moments[at % 3],
            invalid_at=moments[(at + 1) % 3],
            expired_at=moments[(at + 2) % 3],
            attributes={"note": f"x,{at}"} if at % 2 else {},
        )
        for at in range(1_201)
    ]
    vectors = {
        fact.uuid: np.full(3, at, dtype=np.float32) for at, fact in enumerate(facts) if at % 5
    }
    await store.save_facts(facts, vectors)
    found = {fact.uuid: fact for fact in await store.facts([fact.uuid for fact in facts])}
    assert found == {fact.uuid: fact for fact in facts}
    kept = await store.fact_vectors([fact.uuid for fact in facts])
    assert {uuid: vector.tolist() for uuid, vector in kept.items()} == {
        u: v.tolist() for u, v in vectors.items()
    }
    await store.clear()


async def test_an_id_that_would_shift_its_column_is_refused_and_nothing_is_saved(
    neo4j_pool: Neo4jPool,
) -> None:
    store = Neo4jStore(neo4j_pool.driver(), new_group())
    sam = Node(new_id(), "Sam", T0)
    await store.save_nodes([sam], {})
    good, bad = (
        Fact(uuid, sam.uuid, sam.uuid, "IS", "Sam is Sam", T0)
        for uuid in (new_id(), f"{new_id()},x")
    )
    with pytest.raises(InvalidRequest, match="comma"):
        await store.save_facts([good, bad], {})
    assert (await store.counts()).facts == 0
    await store.clear()


async def test_of_two_groups_that_save_one_new_id_at_once_exactly_one_has_it(
    neo4j_pool: Neo4jPool,
) -> None:
    """Thirty races: without unique ids both would succeed."""
    ours, theirs = (Neo4jStore(neo4j_pool.driver(), new_group()) for _ in range(2))
    for _ in range(30):
        node = Node(new_id(), "Sam", T0)
        results = await asyncio.gather(
            ours.save_nodes([node], {}), theirs.save_nodes([node], {}), return_exceptions=True
        )
        assert sorted(type(result) for result in results if result is not None) == [NotFound]
        found = [await store.nodes([node.uuid]) for store in (ours, theirs)]
        assert sorted(map(len, found)) == [0, 1]
    await asyncio.gather(ours.clear(), theirs.clear())


async def test_of_two_groups_that_save_one_fact_at_once_exactly_one_has_it(
    neo4j_pool: Neo4jPool,
) -> None:
    stores = [Neo4jStore(neo4j_pool.driver(), new_group()) for _ in range(2)]
    ends = [[Node(new_id(), "Sam", T0), Node(new_id(), "Tea", T0)] for _ in stores]
    for store, pair in zip(stores, ends, strict=True):
        await store.save_nodes(pair, {})
    for _ in range(10):
        one = new_id()
        facts = [
            Fact(one, pair[0].uuid, pair[1].uuid, "LIKES", "Sam likes tea", T0) for pair in ends
        ]
        work = [store.save_facts([fact], {}) for store, fact in zip(stores, facts, strict=True)]
        results = await asyncio.gather(*work, return_exceptions=True)
        assert sorted(type(result) for result in results if result is not None) == [NotFound]
        assert sorted([len(await store.facts([one])) for store in stores]) == [0, 1]
    await asyncio.gather(*(store.clear() for store in stores))


async def test_writers_that_save_the_same_new_things_at_once_all_succeed(store: Neo4jStore) -> None:
    nodes = [Node(new_id(), f"n{i}", T0) for i in range(30)]
    facts = [
        Fact(new_id(), nodes[i].uuid, nodes[i - 1].uuid, "NEXT", f"fact {i}", T0) for i in range(30)
    ]
    episodes = [Episode(new_id(), "turn", f"text {i}", T0, T0) for i in range(5)]
    pairs = [(episode.uuid, node.uuid) for episode in episodes for node in nodes]

    async def write(step: int) -> None:
        await store.save_nodes(nodes[::step], vectors_of(nodes[::step]))
        await store.save_episodes(episodes[::step])
        await store.save_facts(facts[::step], {})
        await store.save_mentions(pairs[::step])

    await asyncio.gather(*(write(step) for step in (1, -1, 1, -1, 1, -1)))
    counts = await store.counts()
    assert (counts.nodes, counts.facts, counts.episodes, counts.mentions) == (30, 30, 5, 150)
    await store.clear()


async def test_vectors_are_kept_to_the_last_bit(store: Neo4jStore) -> None:
    node = Node(new_id(), "Ana", T0)
    odd = np.array([1 / 3, -1e-38, 3.4e38, 1e-45, 0.1, -0.0, 16_777_217, np.pi], np.float32)
    await store.save_nodes([node], {node.uuid: odd})
    kept = (await store.node_vectors([node.uuid]))[node.uuid]
    assert kept.dtype == np.float32
    assert np.array_equal(kept, odd)


async def test_stock_graphiti_reads_a_graph_that_pps_wrote(
    stock: Graphiti, store: Neo4jStore, group: str
) -> None:
    nodes, facts, episode = await saved_kitchen(store)
    read = await EntityNode.get_by_uuid(stock.driver, nodes[0].uuid)
    assert (read.name, read.group_id, set(read.labels)) == ("Mira", group, {"Entity", "Person"})
    assert read.created_at == T0
    await read.load_name_embedding(stock.driver)
    assert np.array_equal(np.array(read.name_embedding, np.float32), EMBEDDER.embed_query("Mira"))
    edges = await EntityEdge.get_by_group_ids(stock.driver, [group])
    assert {(edge.uuid, edge.fact, edge.source_node_uuid) for edge in edges} == {
        (fact.uuid, fact.text, fact.subject) for fact in facts
    }
    told = await stock.retrieve_episodes(T0 + timedelta(days=1), group_ids=[group])
    assert [(one.uuid, one.content) for one in told] == [(episode.uuid, episode.content)]
    assert (await EpisodicNode.get_by_uuid(stock.driver, episode.uuid)).valid_at == T0


async def test_stock_graphiti_searches_a_graph_that_pps_wrote(
    stock: Graphiti, store: Neo4jStore, group: str
) -> None:
    nodes, facts, episode = await saved_kitchen(store)
    edges = await stock.search_(
        "green tea at dawn", config=EDGE_HYBRID_SEARCH_RRF, group_ids=[group]
    )
    assert edges.edges[0].uuid == facts[0].uuid
    by_variety = await stock.search_(
        "espresso machine", config=EDGE_HYBRID_SEARCH_MMR, group_ids=[group]
    )
    assert {edge.uuid for edge in by_variety.edges} >= {facts[1].uuid, facts[2].uuid}
    found = await stock.search_(
        "espresso machine", config=NODE_HYBRID_SEARCH_RRF, group_ids=[group]
    )
    assert found.nodes[0].uuid == nodes[1].uuid
    near = await stock.search_(
        "green tea",
        config=NODE_HYBRID_SEARCH_NODE_DISTANCE,
        group_ids=[group],
        center_node_uuid=nodes[0].uuid,
    )
    assert nodes[2].uuid in {node.uuid for node in near.nodes}
    # Its vector search alone, where no word helps: the same sentence is the nearest.
    again = await stock.search_(
        episode.content, config=COMBINED_HYBRID_SEARCH_RRF, group_ids=[group]
    )
    assert [one.uuid for one in again.episodes] == [episode.uuid]


async def test_what_stock_graphiti_saves_again_keeps_what_pps_knows(
    stock: Graphiti, store: Neo4jStore, group: str
) -> None:
    nodes, facts, _ = await saved_kitchen(store)
    node = await EntityNode.get_by_uuid(stock.driver, nodes[0].uuid)
    edge = await EntityEdge.get_by_uuid(stock.driver, facts[0].uuid)
    node.summary = "likes mornings"
    edge.invalid_at = T0 + timedelta(days=9)
    await node.load_name_embedding(stock.driver)
    await edge.load_fact_embedding(stock.driver)
    await node.save(stock.driver)
    await edge.save(stock.driver)
    (kept,) = await store.nodes([node.uuid])
    assert (kept.kind, kept.tags, kept.summary) == ("Person", ("home",), "likes mornings")
    (fact,) = await store.facts([edge.uuid])
    assert fact.invalid_at == T0 + timedelta(days=9)
    assert await store.foreign_edges() == 0
