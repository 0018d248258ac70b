"""Stock Graphiti, to measure ourselves against: its own search and its own bulk write.

For the throw-away data of a benchmark alone. The graph that PPS writes is a plain Graphiti graph, so the two are asked
about the very same rows.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import Any, cast

from graphiti_core import Graphiti
from graphiti_core.driver.driver import GraphDriver
from graphiti_core.edges import EntityEdge, EpisodicEdge
from graphiti_core.nodes import EntityNode, EpisodeType, EpisodicNode
from graphiti_core.search.search_config_recipes import EDGE_HYBRID_SEARCH_RRF
from graphiti_core.utils.bulk_utils import add_nodes_and_edges_bulk

from pps.config import Settings
from pps.core.time import now
from pps.core.values import Episode, Fact, Node
from pps.entities.folder import JOURNAL
from pps.entities.registry import Entry
from pps.graph.mapping import mention_id
from pps.index.indexes import EntityIndexes
from pps.isolation.client import EntityDriver
from pps.isolation.graphiti_models import GraphitiEmbedder, GraphitiReranker, NoExtractor
from pps.isolation.neo4j import open_neo4j
from pps.journal.journal import Journal
from pps.models.protocols import Embedder, Vector
from pps.proof.arena import ExposedClient
from pps.store.graph_tables import GraphTables


@dataclass(frozen=True, slots=True)
class Rows:
    """What is written at once: values of PPS, and vectors by uuid, shape (dimension,)."""

    nodes: Sequence[Node]
    facts: Sequence[Fact]
    episodes: Sequence[Episode]
    mentions: Sequence[tuple[str, str]]
    vectors: Mapping[str, Vector]


class StockGraphiti:
    """Graphiti as it comes, asked without PPS's recall in between.

    On Neo4j it has a driver without a guard, and its search is brute force. On the embedded store there are no
    statements of Graphiti's: its search and its bulk write run as they are, on PPS's hooks, tables and indexes.
    """

    def __init__(self, driver: GraphDriver, embedder: Embedder, stack: AsyncExitStack) -> None:
        self._stack = stack
        self._graphiti = Graphiti(
            graph_driver=driver,
            llm_client=NoExtractor(),
            embedder=_QueryEmbedder(embedder),
            cross_encoder=GraphitiReranker(None, 1.0),
        )

    @classmethod
    async def open(cls, settings: Settings, entry: Entry, embedder: Embedder) -> StockGraphiti:
        """Open the graph of an entity whose memory is closed."""
        async with AsyncExitStack() as stack:
            if entry.store == "neo4j":
                at = settings.neo4j
                password = at.password.get_secret_value()
                pool = await open_neo4j(at.uri, at.user, password, at.database)
                stack.push_async_callback(pool.close)
                driver: GraphDriver = pool.driver()
            else:
                driver = await _on_tables(entry, embedder, stack)
            return cls(driver, embedder, stack.pop_all())

    async def facts(self, query: str, group: str, limit: int) -> list[tuple[str, tuple[str, ...]]]:
        """Return the uuids of the best facts with their episodes, best first: ``EDGE_HYBRID_SEARCH_RRF``."""
        recipe = EDGE_HYBRID_SEARCH_RRF.model_copy(deep=True)
        recipe.limit = limit
        found = await self._graphiti.search_(query, config=recipe, group_ids=[group])
        return [(edge.uuid, tuple(edge.episodes)) for edge in found.edges]

    async def write(self, group: str, rows: Rows) -> None:
        """Write rows by Graphiti's own bulk write, vectors given."""
        await add_nodes_and_edges_bulk(
            cast(GraphDriver, self._graphiti.driver),
            [_episode(one, group) for one in rows.episodes],
            [_mention(pair, group) for pair in rows.mentions],
            [_node(one, group, rows.vectors) for one in rows.nodes],
            [_fact(one, group, rows.vectors) for one in rows.facts],
            self._graphiti.embedder,
        )

    async def close(self) -> None:
        """Close what was opened."""
        await self._stack.aclose()


async def _on_tables(entry: Entry, embedder: Embedder, stack: AsyncExitStack) -> GraphDriver:
    data, group = entry.folder / "data", entry.entity.group
    journal = await Journal.open(data / JOURNAL, group)
    stack.push_async_callback(journal.close)
    indexes = await EntityIndexes.open(data, group=group, fingerprint=embedder.fingerprint)
    stack.push_async_callback(indexes.close)
    opened = EntityDriver(GraphTables(journal), "embedded", journal.close)
    client = await ExposedClient.open(entry.entity, opened, indexes)
    stack.push_async_callback(client.close)
    return client.inside.guard


class _QueryEmbedder(GraphitiEmbedder):
    """Embeds a query as a query, so that both sides of a comparison ask with the same vector."""

    def __init__(self, embedder: Embedder) -> None:
        super().__init__(embedder)
        self._queries = embedder

    async def create(self, input_data: Any) -> list[float]:
        """Return the vector of a query."""
        text = input_data if isinstance(input_data, str) else cast("list[str]", input_data)[0]
        return (await asyncio.to_thread(self._queries.embed_query, text)).tolist()


def _node(node: Node, group: str, vectors: Mapping[str, Vector]) -> EntityNode:
    return EntityNode(
        uuid=node.uuid,
        name=node.name,
        group_id=group,
        labels=["Entity"],
        created_at=node.created_at,
        summary=node.summary,
        name_embedding=vectors[node.uuid].tolist(),
    )


def _fact(fact: Fact, group: str, vectors: Mapping[str, Vector]) -> EntityEdge:
    return EntityEdge(
        uuid=fact.uuid,
        group_id=group,
        source_node_uuid=fact.subject,
        target_node_uuid=fact.object,
        name=fact.relation,
        fact=fact.text,
        fact_embedding=vectors[fact.uuid].tolist(),
        episodes=list(fact.episodes),
        created_at=fact.created_at,
        valid_at=fact.valid_at,
        invalid_at=fact.invalid_at,
    )


def _episode(episode: Episode, group: str) -> EpisodicNode:
    return EpisodicNode(
        uuid=episode.uuid,
        name=episode.name,
        group_id=group,
        source=EpisodeType.message,
        source_description=episode.description,
        content=episode.content,
        created_at=episode.created_at,
        valid_at=episode.valid_at,
        entity_edges=list(episode.facts),
    )


def _mention(pair: tuple[str, str], group: str) -> EpisodicEdge:
    source, target = pair
    return EpisodicEdge(
        uuid=mention_id(group, source, target),
        group_id=group,
        source_node_uuid=source,
        target_node_uuid=target,
        created_at=now(),
    )
