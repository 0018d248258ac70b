"""Graphiti's search on an entity's indexes and SQL tables, with all of its filters and with communities."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import numpy as np
from graphiti_core.edges import EntityEdge
from graphiti_core.nodes import CommunityNode, EntityNode
from graphiti_core.search.search_filters import DateFilter, SearchFilters
from pydantic import PrivateAttr

from pps.core.errors import InvalidRequest
from pps.core.ids import EntityId
from pps.core.values import Vector
from pps.index.indexes import EntityIndexes
from pps.isolation.counters import IsolationCounters
from pps.isolation.graphiti_search import GroupSearch, raw_cosine
from pps.isolation.sql_objects import SqlObjects, community_node
from pps.store.graph_tables import GraphTables
from pps.store.graphiti_reads import FactFilter, GraphitiReads, TimeColumn, TimeTest
from pps.store.graphiti_tables import GraphitiCommunity, GraphitiTables
from pps.store.sql_graph import SqlGraphStore

_TIME_COLUMNS: tuple[TimeColumn, ...] = ("valid_at", "invalid_at", "created_at", "expired_at")
_WORD = re.compile(r"\w+")
_MOST_HOPS = 10_000
"""Most facts that the rerank by distance reads around its centre."""


class SqlSearch(GroupSearch):
    """``GroupSearch`` with what only SQL tables answer.

    Beside what ``GroupSearch`` does, Graphiti's filters by label, relation and time are read, communities are found
    (there are few: their texts and vectors are compared one by one), and nodes are ranked by distance.

    Raises:
        InvalidRequest: A search is filtered by ``property_filters``: attributes have no columns.
    """

    _reads: GraphitiReads = PrivateAttr()
    _tables: GraphitiTables = PrivateAttr()

    def __init__(
        self,
        entity: EntityId,
        file: GraphTables,
        indexes: EntityIndexes,
        counters: IsolationCounters,
    ) -> None:
        store = SqlGraphStore(file)
        reads = GraphitiReads(file)
        super().__init__(entity, store, SqlObjects(store, reads), indexes, counters)
        self._reads = reads
        self._tables = GraphitiTables(file)

    async def node_fulltext_search(
        self,
        driver: Any,
        query: str,
        search_filter: SearchFilters,
        group_ids: list[str] | None = None,
        limit: int = 100,
    ) -> list[EntityNode]:
        self._check(group_ids)
        allowed = await self._allowed_nodes(search_filter)
        return await self._nodes(self._text(("nodes",), query, allowed), limit)

    async def node_similarity_search(
        self,
        driver: Any,
        search_vector: list[float],
        search_filter: SearchFilters,
        group_ids: list[str] | None = None,
        limit: int = 100,
        min_score: float = 0.7,
    ) -> list[EntityNode]:
        self._check(group_ids)
        allowed = await self._allowed_nodes(search_filter)
        return await self._nodes(self._vector(("nodes",), search_vector, min_score, allowed), limit)

    async def edge_bfs_search(
        self,
        driver: Any,
        bfs_origin_node_uuids: list[str] | None,
        bfs_max_depth: int,
        search_filter: SearchFilters,
        group_ids: list[str] | None = None,
        limit: int = 100,
    ) -> list[EntityEdge]:
        edges = await super().edge_bfs_search(
            driver, bfs_origin_node_uuids, bfs_max_depth, search_filter, group_ids, limit
        )
        allowed = await self._allowed(search_filter)
        return [edge for edge in edges if allowed is None or edge.uuid in allowed]

    async def node_bfs_search(
        self,
        driver: Any,
        bfs_origin_node_uuids: list[str] | None,
        search_filter: SearchFilters,
        bfs_max_depth: int,
        group_ids: list[str] | None = None,
        limit: int = 100,
    ) -> list[EntityNode]:
        nodes = await super().node_bfs_search(
            driver, bfs_origin_node_uuids, search_filter, bfs_max_depth, group_ids, limit
        )
        allowed = await self._allowed_nodes(search_filter)
        return [node for node in nodes if allowed is None or node.uuid in allowed]

    async def community_fulltext_search(
        self, driver: Any, query: str, group_ids: list[str] | None = None, limit: int = 100
    ) -> list[CommunityNode]:
        """Return the communities that share most words with the query, by name and summary."""
        self._check(group_ids)
        wanted = _words(query)
        communities = await self._tables.communities_before(None, None)
        shared = [(len(wanted & _words(f"{one.name} {one.summary}")), one) for one in communities]
        ranked = sorted(
            (pair for pair in shared if pair[0]), key=lambda pair: (-pair[0], pair[1].uuid)
        )
        return self._community_nodes([one for _, one in ranked[:limit]])

    async def community_similarity_search(
        self,
        driver: Any,
        search_vector: list[float],
        group_ids: list[str] | None = None,
        limit: int = 100,
        min_score: float = 0.6,
    ) -> list[CommunityNode]:
        self._check(group_ids)
        query = np.asarray(search_vector, dtype=np.float32)
        least = raw_cosine(min_score)
        vectors = await self._tables.community_vectors()
        scores = {uuid: _cosine(query, vector) for uuid, vector in vectors.items()}
        near = sorted(
            (uuid for uuid in scores if scores[uuid] > least), key=lambda u: (-scores[u], u)
        )
        return self._community_nodes(await self._tables.communities(near[:limit]))

    async def get_embeddings_for_communities(
        self, driver: Any, communities: list[CommunityNode]
    ) -> dict[str, list[float]]:
        vectors = await self._tables.community_vectors([one.uuid for one in communities])
        return {uuid: vector.tolist() for uuid, vector in vectors.items()}

    async def node_distance_reranker(
        self, driver: Any, node_uuids: list[str], center_node_uuid: str, min_score: float = 0
    ) -> tuple[list[str], list[float]]:
        """Return the nodes, nearest first, with Graphiti's scores: 10 for the centre, 1 beside it, 0 elsewhere."""
        touching = await self._store.facts_of_nodes([center_node_uuid], _MOST_HOPS)
        beside = {end for fact in touching for end in (fact.subject, fact.object)}
        scores = {uuid: 1.0 if uuid in beside else 0.0 for uuid in node_uuids}
        if center_node_uuid in scores:
            scores[center_node_uuid] = 10.0
        kept = [
            uuid
            for uuid in sorted(scores, key=lambda uuid: -scores[uuid])
            if scores[uuid] >= min_score
        ]
        return kept, [scores[uuid] for uuid in kept]

    async def _allowed(self, filters: SearchFilters) -> set[str] | None:
        """Return the facts that a filter lets through, or None when it does not restrict."""
        wanted = _fact_filter(filters)
        return await self._reads.facts_matching(wanted) if wanted.restricts() else None

    async def _allowed_nodes(self, filters: SearchFilters | None) -> set[str] | None:
        labels = filters.node_labels if filters else None
        return await self._reads.nodes_labelled(labels) if labels else None

    def _community_nodes(self, communities: Sequence[GraphitiCommunity]) -> list[CommunityNode]:
        return [community_node(self._entity.group, one) for one in communities]


def _fact_filter(filters: SearchFilters) -> FactFilter:
    if filters.property_filters:
        raise InvalidRequest("property_filters", "are not supported: attributes have no columns")
    restricted: list[TimeColumn] = [one for one in _TIME_COLUMNS if getattr(filters, one)]
    return FactFilter(
        uuids=filters.edge_uuids,
        relations=filters.edge_types,
        subjects=filters.edge_source_node_uuids,
        objects=filters.edge_target_node_uuids,
        labels=filters.node_labels or None,
        times=tuple((column, _alternatives(getattr(filters, column))) for column in restricted),
    )


def _alternatives(filters: Sequence[Sequence[DateFilter]]) -> list[list[TimeTest]]:
    return [_time_tests(tests) for tests in filters]


def _time_tests(tests: Sequence[DateFilter]) -> list[TimeTest]:
    return [TimeTest(test.comparison_operator.value, test.date) for test in tests]


def _words(text: str) -> set[str]:
    return set(_WORD.findall(text.casefold()))


def _cosine(one: Vector, other: Vector) -> float:
    """Return the cosine in [-1, 1]; 0 for a vector of zeros, or of another dimension."""
    length = float(np.linalg.norm(one) * np.linalg.norm(other))
    return float(one @ other) / length if one.shape == other.shape and length else 0.0
