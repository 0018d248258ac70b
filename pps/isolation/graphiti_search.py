"""Graphiti's search over the indexes of one entity, in place of scans of the database."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Generator, Sequence
from collections.abc import Set as AbstractSet
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, TypeAlias, TypeVar, cast

import numpy as np
from graphiti_core.driver.search_interface.search_interface import SearchInterface
from graphiti_core.edges import EntityEdge
from graphiti_core.nodes import CommunityNode, EntityNode, EpisodicNode
from graphiti_core.search.search_filters import SearchFilters
from graphiti_core.search.search_utils import rrf
from pydantic import PrivateAttr

from pps.core.errors import InvalidRequest, IsolationError
from pps.core.ids import EntityId
from pps.core.time import utc
from pps.graph.graph_store import GraphStore
from pps.graph.mapping import ATTRIBUTE, is_label
from pps.index.indexes import EntityIndexes
from pps.isolation.counters import IsolationCounters
from pps.isolation.graphiti_objects import GraphitiObjects

_Ranked: TypeAlias = Sequence[tuple[str, float]]
_Search: TypeAlias = Callable[[int], Awaitable[_Ranked]]
_Item = TypeVar("_Item", EntityNode, EntityEdge, EpisodicNode)
_Span: TypeAlias = tuple[datetime | None, datetime | None]

_FACTS = ("facts", "past_facts")
_MOST = 100_000
_FACTS_PER_HOP = 2_000


@dataclass(frozen=True, slots=True)
class GraphFilters:
    """Which nodes and facts a search may bring back; an empty part does not restrict.

    Attributes:
        kinds: Labels; a node needs one of them, a fact needs both its ends to have one.
        relations: Names of facts, exact.
        valid: Half-open span ``(from, until)`` of ``valid_at``, aware; None is open.
    """

    kinds: tuple[str, ...] = ()
    relations: tuple[str, ...] = ()
    valid: _Span = (None, None)

    def check(self) -> None:
        """Raise InvalidRequest for what is no label, or a moment without a zone."""
        if not all(map(is_label, self.kinds)):
            raise InvalidRequest("kinds", "must be labels: a letter, then letters, digits and _")
        for moment in filter(None, self.valid):
            utc(moment, "valid")


_scope: ContextVar[tuple[datetime, GraphFilters] | None] = ContextVar(
    "pps_search_scope", default=None
)


@contextmanager
def within(at: datetime, chosen: GraphFilters) -> Generator[None]:
    """Restrict searches in the block, and in tasks it starts, to items that pass and hold then.

    What holds is by world time, and no fact of the kind ``relation`` is seen. Graphiti's own
    pipeline sees all.
    """
    token = _scope.set((at, chosen))
    try:
        yield
    finally:
        _scope.reset(token)


def node_matches(node: EntityNode) -> bool:
    """Tell whether a node has one of the scope's labels."""
    scope = _scope.get()
    return scope is None or not scope[1].kinds or not set(scope[1].kinds).isdisjoint(node.labels)


def edge_matches(edge: EntityEdge) -> bool:
    """Tell whether an edge is in the scope, but for the labels of its ends."""
    scope = _scope.get()
    if scope is None:
        return True
    at, wanted = scope
    return (
        (not wanted.relations or edge.name in wanted.relations)
        and _in_span(edge.valid_at, wanted.valid)
        and not _is_typed_link(edge)
        and _holds(edge, at)
    )


class GroupSearch(SearchInterface):
    """Every search of Graphiti's, on the indexes of one entity and on its store.

    It refuses any groups but ``[ours]`` itself, since with ``None`` nothing would reach the guarded
    driver. Of Graphiti's filters those of its pipeline are read, by ids; recipes are narrowed by
    ``within``. Similarities are raw cosine. Lists are full whenever the entity has enough that
    passes.
    """

    _entity: EntityId = PrivateAttr()
    _store: GraphStore = PrivateAttr()
    _objects: GraphitiObjects = PrivateAttr()
    _indexes: EntityIndexes = PrivateAttr()
    _counters: IsolationCounters = PrivateAttr()

    def __init__(
        self,
        entity: EntityId,
        store: GraphStore,
        objects: GraphitiObjects,
        indexes: EntityIndexes,
        counters: IsolationCounters,
    ) -> None:
        super().__init__()
        self._entity = entity
        self._store = store
        self._objects = objects
        self._indexes = indexes
        self._counters = counters

    async def edge_fulltext_search(
        self,
        driver: Any,
        query: str,
        search_filter: SearchFilters,
        group_ids: list[str] | None = None,
        limit: int = 100,
    ) -> list[EntityEdge]:
        self._check(group_ids)
        return await self._edges(
            self._text(_FACTS, query, await self._allowed(search_filter)), limit
        )

    async def edge_similarity_search(
        self,
        driver: Any,
        search_vector: list[float],
        source_node_uuid: str | None,
        target_node_uuid: str | None,
        search_filter: SearchFilters,
        group_ids: list[str] | None = None,
        limit: int = 100,
        min_score: float = 0.7,
    ) -> list[EntityEdge]:
        self._check(group_ids)
        search = self._vector(_FACTS, search_vector, min_score, await self._allowed(search_filter))
        return await self._edges(search, limit)

    async def node_fulltext_search(
        self,
        driver: Any,
        query: str,
        search_filter: SearchFilters,
        group_ids: list[str] | None = None,
        limit: int = 100,
    ) -> list[EntityNode]:
        self._check(group_ids)
        return await self._nodes(self._text(("nodes",), query), limit)

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
        return await self._nodes(self._vector(("nodes",), search_vector, min_score), limit)

    async def episode_fulltext_search(
        self,
        driver: Any,
        query: str,
        search_filter: Any,
        group_ids: list[str] | None = None,
        limit: int = 100,
    ) -> list[EpisodicNode]:
        self._check(group_ids)
        return await _filled(self._text(("episodes",), query), self._objects.episodes, limit)

    async def edge_bfs_search(
        self,
        driver: Any,
        bfs_origin_node_uuids: list[str] | None,
        bfs_max_depth: int,
        search_filter: SearchFilters,
        group_ids: list[str] | None = None,
        limit: int = 100,
    ) -> list[EntityEdge]:
        self._check(group_ids)
        _, facts = await self._walk(bfs_origin_node_uuids, bfs_max_depth)
        return await self._edges(_listed(facts), limit)

    async def node_bfs_search(
        self,
        driver: Any,
        bfs_origin_node_uuids: list[str] | None,
        search_filter: SearchFilters,
        bfs_max_depth: int,
        group_ids: list[str] | None = None,
        limit: int = 100,
    ) -> list[EntityNode]:
        self._check(group_ids)
        nodes, _ = await self._walk(bfs_origin_node_uuids, bfs_max_depth)
        return await self._nodes(_listed(nodes), limit)

    async def episode_mentions_reranker(
        self, driver: Any, node_uuids: list[list[str]], min_score: float = 0
    ) -> tuple[list[str], list[float]]:
        """Return the nodes, most often mentioned first, with how many episodes mention each."""
        fused, _ = rrf(node_uuids)
        mentions = await self._objects.episodes_of_nodes(fused)
        counts = {uuid: float(len(mentions.get(uuid, ()))) for uuid in fused}
        ranked = [
            uuid
            for uuid in sorted(fused, key=lambda uuid: -counts[uuid])
            if counts[uuid] >= min_score
        ]
        return ranked, [counts[uuid] for uuid in ranked]

    # Without these, Graphiti would send a statement of its own.

    async def community_fulltext_search(self, *_: Any, **__: Any) -> list[CommunityNode]:
        raise self._unasked()

    async def community_similarity_search(self, *_: Any, **__: Any) -> list[CommunityNode]:
        raise self._unasked()

    async def get_embeddings_for_communities(self, *_: Any, **__: Any) -> dict[str, list[float]]:
        raise self._unasked()

    async def node_distance_reranker(self, *_: Any, **__: Any) -> tuple[list[str], list[float]]:
        raise self._unasked()

    def _unasked(self) -> IsolationError:
        return self._counters.refuse(self._entity, "operation", "a search that PPS never asks for")

    def _check(self, group_ids: list[str] | None) -> None:
        if group_ids != [self._entity.group]:
            raise self._counters.refuse(self._entity, "group", "a search asked for other groups")

    def _text(
        self, collections: Sequence[str], query: str, allowed: AbstractSet[str] | None = None
    ) -> _Search:
        async def search(k: int) -> _Ranked:
            ranked: list[tuple[str, float]] = []
            for collection in collections:
                hits = await self._indexes.text_search(collection, query, k, allowed)
                ranked += [(hit.owner, hit.score) for hit in hits]
            return sorted(ranked, key=lambda hit: -hit[1])

        return search

    def _vector(
        self,
        collections: Sequence[str],
        vector: list[float],
        least: float,
        allowed: AbstractSet[str] | None = None,
    ) -> _Search:
        query = np.asarray(vector, dtype=np.float32)
        least = raw_cosine(least)

        async def search(k: int) -> _Ranked:
            ranked: list[tuple[str, float]] = []
            if not query.any():
                return ranked  # there is no embedder, or the recipe does without
            for collection in collections:
                hits = await self._indexes.vector_search(collection, query, k, allowed)
                ranked += [(hit.owner, hit.similarity) for hit in hits if hit.similarity > least]
            return sorted(ranked, key=lambda hit: -hit[1])

        return search

    async def _nodes(self, search: _Search, limit: int) -> list[EntityNode]:
        async def fetch(uuids: Sequence[str]) -> list[EntityNode]:
            return [node for node in await self._objects.nodes(uuids) if node_matches(node)]

        return await _filled(search, fetch, limit)

    async def _edges(self, search: _Search, limit: int) -> list[EntityEdge]:
        async def fetch(uuids: Sequence[str]) -> list[EntityEdge]:
            edges = [edge for edge in await self._objects.edges(uuids) if edge_matches(edge)]
            scope = _scope.get()
            if scope is None or not scope[1].kinds:
                return edges
            ends = {end for edge in edges for end in (edge.source_node_uuid, edge.target_node_uuid)}
            good = {
                node.uuid for node in await self._objects.nodes(sorted(ends)) if node_matches(node)
            }
            return [
                edge for edge in edges if {edge.source_node_uuid, edge.target_node_uuid} <= good
            ]

        return await _filled(search, fetch, limit)

    async def _allowed(self, filters: SearchFilters) -> set[str] | None:
        """Return the facts that the filter's ids allow, or None when it has none."""
        named = None if filters.edge_uuids is None else set(filters.edge_uuids)
        sources = filters.edge_source_node_uuids
        targets = filters.edge_target_node_uuids
        if not (sources and targets):
            return named
        facts = await self._store.facts_between(
            [(source, target) for source in sources for target in targets]
        )
        joined = {fact.uuid for fact in facts}
        return joined if named is None else joined & named

    async def _walk(self, origins: list[str] | None, depth: int) -> tuple[list[str], list[str]]:
        """Return nodes and facts within ``depth`` hops of nodes or episodes, nearest first."""
        starts = list(dict.fromkeys(origins or ()))
        if not starts or depth < 1:
            return [], []
        mentioned = await self._store.mentioned_nodes(starts)
        near = dict.fromkeys(node for nodes in mentioned.values() for node in nodes)
        seen: dict[str, None] = dict.fromkeys([*starts, *near])
        facts: dict[str, None] = {}
        # Graphiti counts an episode's mention as its first hop: those nodes join one hop later.
        frontier = [start for start in starts if start not in mentioned]
        joining = list(near)
        for _ in range(depth):
            if not (frontier or joining):
                break
            touching = (
                await self._store.facts_of_nodes(frontier, _FACTS_PER_HOP) if frontier else []
            )
            facts.update(dict.fromkeys(fact.uuid for fact in touching))
            reached = dict.fromkeys(end for fact in touching for end in (fact.subject, fact.object))
            fresh = [node for node in reached if node not in seen]
            seen.update(dict.fromkeys(fresh))
            frontier = [*joining, *fresh]
            joining = []
        return [node for node in seen if node not in starts], list(facts)


def raw_cosine(normalised: float) -> float:
    """Return the raw cosine in [-1, 1] of Graphiti's threshold, which is (1 + cosine) / 2."""
    return 2 * normalised - 1


async def _filled(
    search: _Search, fetch: Callable[[Sequence[str]], Awaitable[list[_Item]]], limit: int
) -> list[_Item]:
    """Fetch more hits until ``limit`` items pass or the search is exhausted."""
    fetched = max(1, limit)
    passed: dict[str, _Item] = {}
    seen: set[str] = set()
    while True:
        hits = await search(fetched)
        fresh = [owner for owner, _ in hits if owner not in seen]
        seen.update(fresh)
        passed.update((item.uuid, item) for item in await fetch(fresh))
        if len(passed) >= limit or len(hits) < fetched or fetched >= _MOST:
            break
        fetched *= 4
    ranks = [owner for owner, _ in hits if owner in passed]
    return [passed[owner] for owner in dict.fromkeys(ranks)][:limit]


def _listed(owners: Sequence[str]) -> _Search:
    async def search(k: int) -> _Ranked:
        return [(owner, 0.0) for owner in owners[:k]]

    return search


def _in_span(moment: datetime | None, span: _Span) -> bool:
    start, end = span
    if start is None and end is None:
        return True
    return (
        moment is not None
        and (start is None or _aware(moment) >= start)
        and (end is None or _aware(moment) < end)
    )


def _holds(edge: EntityEdge, at: datetime) -> bool:
    """Tell whether ``valid_at <= at < invalid_at``; a fact given up without an end never holds."""
    if edge.expired_at is not None and edge.invalid_at is None:
        return False
    return (edge.valid_at is None or _aware(edge.valid_at) <= at) and (
        edge.invalid_at is None or at < _aware(edge.invalid_at)
    )


def _is_typed_link(edge: EntityEdge) -> bool:
    raw: object = edge.attributes.get(ATTRIBUTE)
    ours = cast("dict[str, Any]", json.loads(raw) if isinstance(raw, str) else raw or {})
    return ours.get("kind") == "relation"


def _aware(moment: datetime) -> datetime:
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment
