"""Graphiti's search on an entity's indexes and SQL tables, with its filters and communities."""

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
"""Most facts around the centre that ranking by distance reads."""


class SqlSearch(GroupSearch):
    """``GroupSearch`` with the searches that only SQL tables can answer.

    It also applies Graphiti's filters by label, relation and time, finds communities (there are
    few, so each text and vector is compared), and ranks nodes by distance.

    Raises:
        InvalidRequest: A search has ``property_filters``: attributes have no columns.
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
        """Return the communities whose name and summary share most words with the query."""
        self._check(group_ids)
        query_words = _words(query)
        matches: list[tuple[int, str, GraphitiCommunity]] = []
        for community in await self._tables.communities_before(None, None):
            shared = query_words & _words(f"{community.name} {community.summary}")
            if shared:
                matches.append((-len(shared), community.uuid, community))
        matches.sort(key=lambda match: match[:2])
        return self._community_nodes([community for _, _, community in matches[:limit]])

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
            (uuid for uuid in scores if scores[uuid] > least),
            key=lambda uuid: (-scores[uuid], uuid),
        )
        return self._community_nodes(await self._tables.communities(near[:limit]))

    async def get_embeddings_for_communities(
        self, driver: Any, communities: list[CommunityNode]
    ) -> dict[str, list[float]]:
        vectors = await self._tables.community_vectors(
            [community.uuid for community in communities]
        )
        return {uuid: vector.tolist() for uuid, vector in vectors.items()}

    async def node_distance_reranker(
        self, driver: Any, node_uuids: list[str], center_node_uuid: str, min_score: float = 0
    ) -> tuple[list[str], list[float]]:
        """Return the nodes, nearest first, with Graphiti's scores.

        10 for the centre, 1 for its neighbours, 0 for all others.
        """
        touching = await self._store.facts_of_nodes([center_node_uuid], _MOST_HOPS)
        beside = {end for fact in touching for end in (fact.subject, fact.object)}
        scores = {uuid: 1.0 if uuid in beside else 0.0 for uuid in node_uuids}
        if center_node_uuid in scores:
            scores[center_node_uuid] = 10.0
        ranked = [
            uuid
            for uuid in sorted(scores, key=lambda uuid: -scores[uuid])
            if scores[uuid] >= min_score
        ]
        return ranked, [scores[uuid] for uuid in ranked]

    async def _allowed(self, filters: SearchFilters) -> set[str] | None:
        """Return the facts that pass a filter, or None when it restricts nothing."""
        fact_filter = _fact_filter(filters)
        if not fact_filter.restricts():
            return None
        return await self._reads.facts_matching(fact_filter)

    async def _allowed_nodes(self, filters: SearchFilters | None) -> set[str] | None:
        labels = filters.node_labels if filters else None
        return await self._reads.nodes_labelled(labels) if labels else None

    def _community_nodes(self, communities: Sequence[GraphitiCommunity]) -> list[CommunityNode]:
        return [community_node(self._entity.group, community) for community in communities]


def _fact_filter(filters: SearchFilters) -> FactFilter:
    if filters.property_filters:
        raise InvalidRequest("property_filters", "are not supported: attributes have no columns")
    times: list[tuple[TimeColumn, list[list[TimeTest]]]] = []
    for column in _TIME_COLUMNS:
        # Graphiti's alternatives, each a list of tests that must all hold.
        alternatives: Sequence[Sequence[DateFilter]] = getattr(filters, column) or ()
        if alternatives:
            times.append((column, [_time_tests(tests) for tests in alternatives]))
    return FactFilter(
        uuids=filters.edge_uuids,
        relations=filters.edge_types,
        subjects=filters.edge_source_node_uuids,
        objects=filters.edge_target_node_uuids,
        labels=filters.node_labels or None,
        times=tuple(times),
    )


def _time_tests(tests: Sequence[DateFilter]) -> list[TimeTest]:
    return [TimeTest(test.comparison_operator.value, test.date) for test in tests]


def _words(text: str) -> set[str]:
    return set(_WORD.findall(text.casefold()))


def _cosine(left: Vector, right: Vector) -> float:
    """Return the cosine in [-1, 1]; 0 for a vector of zeros, or of another dimension."""
    length = float(np.linalg.norm(left) * np.linalg.norm(right))
    return float(left @ right) / length if left.shape == right.shape and length else 0.0
