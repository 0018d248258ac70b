"""Graphiti's own pipeline on SQL tables: every call goes through a hook, and no statement is sent."""

from __future__ import annotations

import inspect
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from graphiti_core import Graphiti
from graphiti_core.driver.graph_operations.graph_operations import GraphOperationsInterface
from graphiti_core.driver.search_interface.search_interface import SearchInterface
from graphiti_core.edges import EntityEdge
from graphiti_core.nodes import EntityNode, EpisodeType
from graphiti_core.search import search_config_recipes as recipes
from graphiti_core.search.search_config import (
    EdgeReranker,
    EdgeSearchConfig,
    EdgeSearchMethod,
    NodeReranker,
    NodeSearchConfig,
    NodeSearchMethod,
    SearchConfig,
    SearchResults,
)
from graphiti_core.search.search_filters import ComparisonOperator, DateFilter, SearchFilters
from graphiti_core.utils.bulk_utils import RawEpisode

from pps.core.errors import InvalidRequest
from pps.core.ids import EntityId, new_group
from pps.core.values import GraphCounts
from pps.index.indexes import EntityIndexes, IndexDoc
from pps.isolation.binding import Models
from pps.isolation.client import EntityDriver
from pps.isolation.sql_operations import SqlOperations, clusters
from pps.isolation.sql_search import SqlSearch
from pps.models.hash import HashEmbedder
from pps.models.protocols import ExtractorModel
from pps.proof.arena import ExposedClient, OverlapReranker
from tests.graph_file import open_graph_file
from tests.model_server import model_server

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.timeout(300)]

T0 = datetime(2026, 1, 1, tzinfo=UTC)
DAY = timedelta(days=1)
_DIMENSION = 64

UNHOOKED = {
    "node_get_by_attribute_values",
    *("episodic_node_delete_by_group_id", "community_node_delete_by_group_id"),
    *("community_node_delete_by_uuids", "community_node_save_bulk"),
    *("saga_node_delete_by_group_id", "saga_node_delete_by_uuids", "saga_node_save_bulk"),
    *("episodic_edge_delete", "episodic_edge_delete_by_uuids", "episodic_edge_get_by_uuid"),
    *("episodic_edge_get_by_uuids", "episodic_edge_get_by_group_ids"),
    *("community_edge_delete", "community_edge_delete_by_uuids", "community_edge_get_by_uuid"),
    *("has_episode_edge_save_bulk", "has_episode_edge_delete_by_uuids"),
    *("has_episode_edge_get_by_uuid", "has_episode_edge_get_by_group_ids"),
    *("next_episode_edge_save_bulk", "next_episode_edge_delete_by_uuids"),
    *("next_episode_edge_get_by_uuid", "next_episode_edge_get_by_group_ids"),
}
"""Hooks that nothing of Graphiti's pipeline and recipes calls; with them a call is refused by the driver."""


@dataclass
class Pipeline:
    """Graphiti on one entity's file, with the indexes that its searches read."""

    client: ExposedClient
    indexes: EntityIndexes

    @property
    def graphiti(self) -> Graphiti:
        return self.client.inside.graphiti

    @property
    def group(self) -> str:
        return self.client.entity.group

    @property
    def driver(self) -> Any:
        return self.client.inside.guard

    async def add(self, text: str, at: datetime, **more: Any) -> Any:
        added = await self.graphiti.add_episode(
            "turn", text, "chat", at, group_id=self.group, **more
        )
        await self.follow()
        return added

    async def follow(self) -> None:
        """Bring the indexes up to date, as PPS does after each write."""
        embed = HashEmbedder(_DIMENSION).embed_passages
        docs: list[IndexDoc] = []
        for node in await self.client.scan_nodes("", 1_000):
            docs.append(  # noqa: PERF401
                IndexDoc(
                    "node", node.uuid, "nodes", node.summary, node.name, vectors=embed([node.name])
                )
            )
        for fact in await self.client.scan_facts("", 1_000):
            docs.append(  # noqa: PERF401
                IndexDoc("fact", fact.uuid, "facts", fact.text, vectors=embed([fact.text]))
            )
        for episode in await self.client.scan_episodes("", 1_000):
            docs.append(IndexDoc("episode", episode.uuid, "episodes", episode.content))  # noqa: PERF401
        await self.indexes.apply(docs)

    async def search(self, query: str, config: SearchConfig, **more: Any) -> SearchResults:
        return await self.graphiti.search_(query, config, group_ids=[self.group], **more)

    async def facts(self) -> dict[str, EntityEdge]:
        edges = await EntityEdge.get_by_group_ids(self.driver, [self.group])
        return {edge.fact: edge for edge in edges}

    async def node(self, name: str) -> EntityNode:
        nodes = await EntityNode.get_by_group_ids(self.driver, [self.group])
        return next(node for node in nodes if node.name == name)


@pytest.fixture(scope="module")
def base_url() -> Iterator[str]:
    with model_server() as server:
        yield server.base_url


@pytest_asyncio.fixture(loop_scope="module")
async def pipeline(tmp_path: Path, base_url: str) -> AsyncIterator[Pipeline]:
    entity, embedder = EntityId("ana", new_group()), HashEmbedder(_DIMENSION)
    indexes = await EntityIndexes.open(
        tmp_path, group=entity.group, fingerprint=embedder.fingerprint
    )
    file = await open_graph_file(tmp_path / "graph.db", entity.group, indexes=indexes)
    model = ExtractorModel("compatible", model="m", base_url=base_url, timeout_s=20)
    client = await ExposedClient.open(
        entity,
        EntityDriver(file, "embedded", file.close),
        indexes,
        Models(embedder, OverlapReranker(), model, rerank_deadline_s=5),
    )
    yield Pipeline(client, indexes)
    assert client.counters.total == 0, "no statement was sent"
    await client.close()
    await indexes.close()
    await file.close()


TEXT = "Ana: Ana lives in Lisbon. Ana knows Ben. Ben works at Acme."


async def test_an_episode_becomes_nodes_facts_and_mentions(pipeline: Pipeline) -> None:
    added = await pipeline.add(TEXT, T0)
    assert {node.name for node in added.nodes} == {"Ana", "Lisbon", "Ben", "Acme"}
    assert set(await pipeline.facts()) == {
        "Ana lives in Lisbon",
        "Ana knows Ben",
        "Ben works at Acme",
    }
    assert await pipeline.client.counts() == GraphCounts(4, 3, 1, 4)
    read = await pipeline.graphiti.get_nodes_and_edges_by_episode([added.episode.uuid])
    assert (len(read.nodes), len(read.edges)) == (4, 3)
    for node in await EntityNode.get_by_group_ids(pipeline.driver, [pipeline.group]):
        await node.load_name_embedding(pipeline.driver)
        assert node.name_embedding is not None
        assert len(node.name_embedding) == _DIMENSION


async def test_a_later_episode_closes_an_older_fact_and_supports_one_that_it_repeats(
    pipeline: Pipeline,
) -> None:
    await pipeline.add(TEXT, T0)
    await pipeline.add("Ana: Ana moved to Porto. Ana knows Ben.", T0 + 30 * DAY)
    facts = await pipeline.facts()
    assert facts["Ana lives in Lisbon"].invalid_at == T0 + 30 * DAY
    assert facts["Ana lives in Lisbon"].expired_at is not None
    assert len(facts["Ana knows Ben"].episodes) == 2
    assert (await pipeline.client.counts()).nodes == 5
    told = await pipeline.graphiti.retrieve_episodes(T0 + 20 * DAY, 5, [pipeline.group])
    assert [episode.content for episode in told] == [TEXT]


async def test_many_episodes_are_added_in_one_bulk(pipeline: Pipeline) -> None:
    await pipeline.add(TEXT, T0)
    texts = [
        "Cleo: Cleo likes Tea. Cleo knows Ana.",
        "Dan: Dan owns Boat.",
        "Cleo: Cleo likes Tea.",
    ]
    added = await pipeline.graphiti.add_episode_bulk(
        [
            RawEpisode(
                name=f"turn {number}",
                content=text,
                source_description="",
                source=EpisodeType.message,
                reference_time=T0 + (40 + number) * DAY,
            )
            for number, text in enumerate(texts)
        ],
        group_id=pipeline.group,
    )
    assert len(added.episodes) == 3
    facts = await pipeline.facts()
    assert {"Cleo likes Tea", "Cleo knows Ana", "Dan owns Boat"} <= set(facts)
    assert facts["Cleo knows Ana"].target_node_uuid == (await pipeline.node("Ana")).uuid


async def test_a_triplet_finds_the_node_that_is_there(pipeline: Pipeline) -> None:
    await pipeline.add(TEXT, T0)
    ana = await pipeline.node("Ana")
    added = await pipeline.graphiti.add_triplet(
        EntityNode(name="Ana", group_id=pipeline.group),
        EntityEdge(
            group_id=pipeline.group,
            source_node_uuid="",
            target_node_uuid="",
            created_at=T0,
            name="MARRIED_TO",
            fact="Ana is married to Eve",
            valid_at=T0,
        ),
        EntityNode(name="Eve", group_id=pipeline.group),
    )
    assert added.edges[0].source_node_uuid == ana.uuid
    assert "Ana is married to Eve" in await pipeline.facts()


async def test_an_extraction_that_is_run_again_tells_the_same(pipeline: Pipeline) -> None:
    added = await pipeline.add(TEXT, T0)
    changes = await pipeline.client.extract_episode(added.episode.uuid)
    assert set(changes.nodes) == {node.uuid for node in added.nodes}
    assert set(changes.facts) == {edge.uuid for edge in added.edges}


async def test_every_recipe_of_graphiti_answers(pipeline: Pipeline) -> None:
    await pipeline.add(TEXT, T0)
    await pipeline.add("Ana: Ana moved to Porto. Ben knows Cleo.", T0 + DAY)
    await pipeline.graphiti.build_communities([pipeline.group])
    ana = await pipeline.node("Ana")
    every = sorted(name for name, value in vars(recipes).items() if isinstance(value, SearchConfig))
    assert len(every) >= 15
    empty: list[str] = []
    for name in every:
        config = getattr(recipes, name).model_copy(deep=True)
        config.reranker_min_score = float("-inf")
        found = await pipeline.search(
            "where does Ana live? Porto", config, center_node_uuid=ana.uuid
        )
        if not (found.nodes or found.edges or found.episodes or found.communities):
            empty.append(name)
    assert empty == []


async def test_a_walk_reaches_what_is_two_hops_away(pipeline: Pipeline) -> None:
    added = await pipeline.add(TEXT, T0)
    config = SearchConfig(
        edge_config=EdgeSearchConfig(
            search_methods=[EdgeSearchMethod.bfs], reranker=EdgeReranker.rrf, bfs_max_depth=2
        ),
        node_config=NodeSearchConfig(
            search_methods=[NodeSearchMethod.bfs], reranker=NodeReranker.rrf, bfs_max_depth=2
        ),
        limit=50,
    )
    for origin in ((await pipeline.node("Ana")).uuid, added.episode.uuid):
        found = await pipeline.search("x", config, bfs_origin_node_uuids=[origin])
        assert {"Ana knows Ben", "Ben works at Acme"} <= {edge.fact for edge in found.edges}
        assert {"Ben", "Acme"} <= {node.name for node in found.nodes}


async def test_filters_of_relation_time_and_label_are_read(pipeline: Pipeline) -> None:
    await pipeline.add(TEXT, T0)
    await pipeline.add("Cleo: Cleo knows Ana.", T0 + 40 * DAY)
    before = DateFilter(date=T0 + 20 * DAY, comparison_operator=ComparisonOperator.less_than)
    open_ended = DateFilter(comparison_operator=ComparisonOperator.is_null)

    async def found(**filters: Any) -> set[str]:
        results = await pipeline.search(
            "Ana Ben Cleo knows works lives",
            recipes.EDGE_HYBRID_SEARCH_RRF,
            search_filter=SearchFilters(**filters),
        )
        return {edge.fact for edge in results.edges}

    assert await found(edge_types=["KNOWS"]) == {"Ana knows Ben", "Cleo knows Ana"}
    assert await found(edge_types=["KNOWS"], valid_at=[[before]]) == {"Ana knows Ben"}
    assert await found(edge_types=["KNOWS"], invalid_at=[[open_ended]]) == {
        "Ana knows Ben",
        "Cleo knows Ana",
    }
    assert await found(valid_at=[[before, open_ended]]) == set()
    assert await found(node_labels=["Nothing"]) == set()
    assert await found(node_labels=["Entity"], edge_types=["WORKS_AT"]) == {"Ben works at Acme"}
    ana = (await pipeline.node("Ana")).uuid
    assert await found(edge_source_node_uuids=[ana], edge_types=["KNOWS"]) == {"Ana knows Ben"}
    nodes = await pipeline.search(
        "Ana", recipes.NODE_HYBRID_SEARCH_RRF, search_filter=SearchFilters(node_labels=["Nothing"])
    )
    assert nodes.nodes == []
    with pytest.raises(InvalidRequest, match="property_filters"):
        await found(
            property_filters=[
                {
                    "property_name": "age",
                    "property_value": 41,
                    "comparison_operator": ComparisonOperator.equals,
                }
            ]
        )


async def test_communities_are_built_found_and_built_anew(pipeline: Pipeline) -> None:
    await pipeline.add(TEXT, T0)
    await pipeline.add(
        "Ana: Ana likes Ben. Ana drinks Tea.", T0 + DAY
    )  # two facts join Ana and Ben
    communities, members = await pipeline.graphiti.build_communities([pipeline.group])
    assert communities
    assert {edge.target_node_uuid for edge in members} <= {
        node.uuid for node in await pipeline.client.scan_nodes("", 100)
    }
    found = await pipeline.search(communities[0].name, recipes.COMMUNITY_HYBRID_SEARCH_RRF)
    assert found.communities
    again, _ = await pipeline.graphiti.build_communities([pipeline.group])
    assert len(again) == len(communities), "the older ones were removed"


async def test_label_propagation_ends_where_labels_would_swing_for_ever() -> None:
    swinging = [("a", "b", 2), ("b", "a", 2)]
    assert clusters(["a", "b"], swinging) == [["a", "b"]]
    two_groups = [(x, y, 2) for group in ("abc", "def") for x in group for y in group if x != y]
    assert sorted(map(sorted, clusters(list("abcdef"), two_groups))) == [list("abc"), list("def")]
    assert clusters(["a", "b"], []) == [["a"], ["b"]]
    ring = [(str(i), str((i + step) % 50), 2) for i in range(50) for step in (1, 49)]
    found = clusters([str(i) for i in range(50)], ring, rounds=3)
    assert sorted(node for group in found for node in group) == sorted(str(i) for i in range(50))


async def test_the_hooks_are_those_that_graphiti_knows() -> None:
    """A hook that Graphiti adds, drops or renames fails here."""
    asked = {
        name
        for name, value in vars(GraphOperationsInterface).items()
        if inspect.iscoroutinefunction(value)
    }
    ours = {name for name in vars(SqlOperations) if name in asked}
    public = {name for name in vars(SqlOperations) if not name.startswith("_")} - {
        "model_post_init"
    }
    assert asked - ours == UNHOOKED
    assert {
        name for name in public if inspect.iscoroutinefunction(getattr(SqlOperations, name))
    } == ours
    searches = {
        name for name, value in vars(SearchInterface).items() if inspect.iscoroutinefunction(value)
    }
    inherited = {name for kind in SqlSearch.__mro__[:2] for name in vars(kind)}
    assert searches - inherited <= {"build_node_search_filters", "build_edge_search_filters"}
    for name in ours:
        mine = list(inspect.signature(getattr(SqlOperations, name)).parameters)
        theirs = list(inspect.signature(getattr(GraphOperationsInterface, name)).parameters)
        assert mine == theirs, name
