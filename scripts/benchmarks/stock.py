"""Stock Graphiti, to measure ourselves against: its own brute-force search and its own bulk write, unguarded.

For the throw-away data of a benchmark alone: there is no guard, no index of ours and no journal here. The graph
that PPS writes is a plain Graphiti graph, so the two are asked about the very same rows.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from graphiti_core import Graphiti
from graphiti_core.driver.driver import GraphDriver, GraphProvider
from graphiti_core.edges import EntityEdge, EpisodicEdge
from graphiti_core.nodes import EntityNode, EpisodeType, EpisodicNode
from graphiti_core.search.search_config import EdgeSearchMethod
from graphiti_core.search.search_config_recipes import EDGE_HYBRID_SEARCH_RRF
from graphiti_core.utils.bulk_utils import add_nodes_and_edges_bulk

from benchmarks.stock_text import FullTextDriver
from pps.core.errors import ConfigError
from pps.core.time import now
from pps.core.values import Episode, Fact, Node
from pps.graph.ladybug import open_ladybug
from pps.graph.mapping import mention_id
from pps.graph.neo4j import open_neo4j
from pps.isolation.client import EntityDriver
from pps.isolation.graphiti_models import GraphitiEmbedder, GraphitiReranker, NoExtractor
from pps.models.protocols import Embedder, Vector


@dataclass(frozen=True, slots=True)
class Rows:
    """What is written at once: values of PPS, and vectors by uuid, shape (dimension,)."""

    nodes: Sequence[Node]
    facts: Sequence[Fact]
    episodes: Sequence[Episode]
    mentions: Sequence[tuple[str, str]]
    vectors: Mapping[str, Vector]


class StockGraphiti:
    """Graphiti as it comes, on a driver without a guard.

    On the embedded store its search has no full text: the extension that its dialect asks for is a download.
    Only the half that compares vectors is asked there, which is in its favour when speed is compared, unless the
    driver comes from ``with_full_text``.
    """

    def __init__(self, opened: EntityDriver, embedder: Embedder) -> None:
        if not isinstance(opened.driver, GraphDriver):
            raise ConfigError("store: stock Graphiti is measured on 'embedded' or 'neo4j'")
        self._opened = opened
        self._driver = opened.driver
        self._graphiti = Graphiti(
            graph_driver=self._driver,
            llm_client=NoExtractor(),
            embedder=_QueryEmbedder(embedder),
            cross_encoder=GraphitiReranker(None, 1.0),
        )

    @classmethod
    async def embedded(cls, path: Path, embedder: Embedder) -> StockGraphiti:
        """Open a graph file that no memory holds; errors as ``open_ladybug``."""
        driver = await open_ladybug(path)
        return cls(EntityDriver(driver, "embedded", driver.close), embedder)

    @classmethod
    async def neo4j(cls, connection: Mapping[str, str], embedder: Embedder) -> StockGraphiti:
        """Connect to a server; ``connection`` has uri, user, password and database; errors as ``open_neo4j``."""
        pool = await open_neo4j(**connection)
        return cls(EntityDriver(pool.driver(), "neo4j", pool.close), embedder)

    @property
    def full_text(self) -> bool:
        """Whether its search has the half that matches words."""
        return self._driver.provider != GraphProvider.KUZU or isinstance(
            self._driver, FullTextDriver
        )

    async def facts(self, query: str, group: str, limit: int) -> list[tuple[str, tuple[str, ...]]]:
        """Return the uuids of the best facts with their episodes, best first: ``EDGE_HYBRID_SEARCH_RRF``."""
        recipe = EDGE_HYBRID_SEARCH_RRF.model_copy(deep=True)
        recipe.limit = limit
        if recipe.edge_config is not None and not self.full_text:
            recipe.edge_config.search_methods = [EdgeSearchMethod.cosine_similarity]
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
        """Give the driver back."""
        await self._opened.close()


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
