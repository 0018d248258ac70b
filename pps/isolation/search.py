"""Graphiti's search over the indexes of one entity: its recipes ask here instead of scanning the database."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Any, TypeAlias, TypeVar

import numpy as np
from graphiti_core.driver.search_interface.search_interface import SearchInterface
from graphiti_core.edges import EntityEdge
from graphiti_core.nodes import CommunityNode, EntityNode, EpisodicNode
from graphiti_core.search.search_filters import SearchFilters
from graphiti_core.search.search_utils import rrf
from pydantic import PrivateAttr

from pps.core.ids import EntityId
from pps.graph.protocol import GraphStore
from pps.index.entity import EntityIndexes
from pps.isolation.counters import IsolationCounters
from pps.isolation.matching import edge_matches, node_matches, scope
from pps.isolation.objects import GroupObjects
from pps.isolation.recipes import raw_cosine

_Ranked: TypeAlias = Sequence[tuple[str, float]]
_Search: TypeAlias = Callable[[int], Awaitable[_Ranked]]
_Item = TypeVar("_Item", EntityNode, EntityEdge, EpisodicNode, CommunityNode)

DISTANCE_HOPS = 4
"""Farthest hop that node distance tells apart; farther is as good as apart."""

_FACTS = ("facts", "past_facts")
_MOST = 100_000
_FACTS_PER_HOP = 2_000


@dataclass(frozen=True, slots=True)
class SearchParts:
    """What a search needs of one entity."""

    entity: EntityId
    store: GraphStore
    objects: GroupObjects
    indexes: EntityIndexes
    counters: IsolationCounters


class GroupSearch(SearchInterface):
    """Every search of Graphiti's, on the indexes of one entity and on its store.

    It refuses any groups but ``[ours]`` itself, since with ``None`` nothing would reach the guarded driver.
    Similarities are raw cosine. Lists are full whenever the entity has enough that passes the filters.
    """

    _parts: SearchParts = PrivateAttr()

    def __init__(self, parts: SearchParts) -> None:
        super().__init__()
        self._parts = parts

    async def edge_fulltext_search(
        self,
        driver: Any,
        query: str,
        search_filter: SearchFilters,
        group_ids: list[str] | None = None,
        limit: int = 100,
    ) -> list[EntityEdge]:
        """Return edges by BM25 over facts."""
        self._check(group_ids)
        allowed = await self._allowed(search_filter)
        return await self._edges(lambda k: self._text(_fact_collections(), query, k, allowed), search_filter, limit)

    async def edge_similarity_search(  # noqa: PLR0913 - Graphiti's signature
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
        """Return edges by cosine of their facts above ``min_score``."""
        self._check(group_ids)
        narrowed = _narrowed(search_filter, source_node_uuid, target_node_uuid)
        allowed = await self._allowed(narrowed)
        least = raw_cosine(min_score)
        search = self._vector(_fact_collections(), search_vector, least, allowed)
        return await self._edges(search, narrowed, limit)

    async def node_fulltext_search(
        self,
        driver: Any,
        query: str,
        search_filter: SearchFilters,
        group_ids: list[str] | None = None,
        limit: int = 100,
    ) -> list[EntityNode]:
        """Return nodes by BM25 over names and summaries."""
        self._check(group_ids)
        return await self._nodes(lambda k: self._text(("nodes",), query, k), search_filter, limit)

    async def node_similarity_search(
        self,
        driver: Any,
        search_vector: list[float],
        search_filter: SearchFilters,
        group_ids: list[str] | None = None,
        limit: int = 100,
        min_score: float = 0.7,
    ) -> list[EntityNode]:
        """Return nodes by cosine of their names above ``min_score``."""
        self._check(group_ids)
        return await self._nodes(self._vector(("nodes",), search_vector, raw_cosine(min_score)), search_filter, limit)

    async def episode_fulltext_search(
        self, driver: Any, query: str, search_filter: Any, group_ids: list[str] | None = None, limit: int = 100
    ) -> list[EpisodicNode]:
        """Return episodes by BM25 over their content."""
        self._check(group_ids)
        return await _filled(
            lambda k: self._text(("episodes",), query, k), self._parts.objects.episodes, _anything, limit
        )

    async def community_fulltext_search(
        self, driver: Any, query: str, group_ids: list[str] | None = None, limit: int = 100
    ) -> list[CommunityNode]:
        """Return communities by BM25 over names and summaries."""
        self._check(group_ids)
        return await _filled(
            lambda k: self._text(("communities",), query, k), self._parts.objects.communities, _anything, limit
        )

    async def community_similarity_search(
        self,
        driver: Any,
        search_vector: list[float],
        group_ids: list[str] | None = None,
        limit: int = 100,
        min_score: float = 0.6,
    ) -> list[CommunityNode]:
        """Return communities by cosine of their names above ``min_score``."""
        self._check(group_ids)
        search = self._vector(("communities",), search_vector, raw_cosine(min_score))
        return await _filled(search, self._parts.objects.communities, _anything, limit)

    async def edge_bfs_search(
        self,
        driver: Any,
        bfs_origin_node_uuids: list[str] | None,
        bfs_max_depth: int,
        search_filter: SearchFilters,
        group_ids: list[str] | None = None,
        limit: int = 100,
    ) -> list[EntityEdge]:
        """Return edges within ``bfs_max_depth`` hops of the origins, nearest first."""
        self._check(group_ids)
        _, facts = await self._walk(bfs_origin_node_uuids, bfs_max_depth)
        return await self._edges(_listed(facts), search_filter, limit)

    async def node_bfs_search(
        self,
        driver: Any,
        bfs_origin_node_uuids: list[str] | None,
        search_filter: SearchFilters,
        bfs_max_depth: int,
        group_ids: list[str] | None = None,
        limit: int = 100,
    ) -> list[EntityNode]:
        """Return nodes within ``bfs_max_depth`` hops of the origins, nearest first."""
        self._check(group_ids)
        nodes, _ = await self._walk(bfs_origin_node_uuids, bfs_max_depth)
        return await self._nodes(_listed(nodes), search_filter, limit)

    async def get_embeddings_for_communities(
        self, driver: Any, communities: list[CommunityNode]
    ) -> dict[str, list[float]]:
        """Return the vectors of communities' names."""
        vectors = await self._parts.indexes.vectors("communities", [community.uuid for community in communities])
        return {uuid: vector.tolist() for uuid, vector in vectors.items()}

    async def node_distance_reranker(
        self, driver: Any, node_uuids: list[str], center_node_uuid: str, min_score: float = 0
    ) -> tuple[list[str], list[float]]:
        """Return the nodes, nearest to the centre first, with the score of each: 1 / (1 + hops), 0 beyond reach."""
        hops = await self._parts.store.distances(center_node_uuid, DISTANCE_HOPS)
        scored = sorted(
            ((closeness(hops, [uuid]), uuid) for uuid in dict.fromkeys(node_uuids)), key=_score, reverse=True
        )
        kept = [(uuid, score) for score, uuid in scored if score >= min_score]
        return [uuid for uuid, _ in kept], [score for _, score in kept]

    async def episode_mentions_reranker(
        self, driver: Any, node_uuids: list[list[str]], min_score: float = 0
    ) -> tuple[list[str], list[float]]:
        """Return the nodes, most often mentioned first, with how many episodes mention each."""
        fused, _ = rrf(node_uuids)
        mentions = await self._parts.objects.episodes_of_nodes(fused)
        scored = sorted(((float(len(mentions.get(uuid, ()))), uuid) for uuid in fused), key=_score, reverse=True)
        kept = [(uuid, score) for score, uuid in scored if score >= min_score]
        return [uuid for uuid, _ in kept], [score for _, score in kept]

    def _check(self, group_ids: list[str] | None) -> None:
        if group_ids != [self._parts.entity.group]:
            raise self._parts.counters.refuse(self._parts.entity, "group", "a search asked for other groups")

    async def _text(
        self, collections: Iterable[str], query: str, k: int, allowed: AbstractSet[str] | None = None
    ) -> _Ranked:
        found: list[tuple[str, float]] = []
        for collection in collections:
            hits = await self._parts.indexes.text_search(collection, query, k, allowed)
            found += [(hit.owner, hit.score) for hit in hits]
        return sorted(found, key=lambda hit: -hit[1])

    def _vector(
        self, collections: Iterable[str], vector: list[float], least: float, allowed: AbstractSet[str] | None = None
    ) -> _Search:
        query = np.asarray(vector, dtype=np.float32)

        async def search(k: int) -> _Ranked:
            found: list[tuple[str, float]] = []
            if not query.any():
                return found  # there is no embedder, or the recipe does without
            for collection in collections:
                hits = await self._parts.indexes.vector_search(collection, query, k, allowed)
                found += [(hit.owner, hit.similarity) for hit in hits if hit.similarity > least]
            return sorted(found, key=lambda hit: -hit[1])

        return search

    async def _nodes(self, search: _Search, filters: SearchFilters, limit: int) -> list[EntityNode]:
        async def keep(nodes: Sequence[EntityNode]) -> list[EntityNode]:
            return [node for node in nodes if node_matches(node, filters)]

        return await _filled(search, self._parts.objects.nodes, keep, limit)

    async def _edges(self, search: _Search, filters: SearchFilters, limit: int) -> list[EntityEdge]:
        async def keep(edges: Sequence[EntityEdge]) -> list[EntityEdge]:
            passing = [edge for edge in edges if edge_matches(edge, filters)]
            return await self._with_labelled_ends(passing, filters)

        return await _filled(search, self._parts.objects.edges, keep, limit)

    async def _with_labelled_ends(self, edges: list[EntityEdge], filters: SearchFilters) -> list[EntityEdge]:
        if not filters.node_labels:
            return edges
        ends = {end for edge in edges for end in (edge.source_node_uuid, edge.target_node_uuid)}
        nodes = await self._parts.objects.nodes(sorted(ends))
        good = {node.uuid for node in nodes if node_matches(node, filters)}
        return [edge for edge in edges if {edge.source_node_uuid, edge.target_node_uuid} <= good]

    async def _allowed(self, filters: SearchFilters) -> set[str] | None:
        """Return the facts that the filter's ids leave, or None when it names none: so lists fill at once."""
        named = None if filters.edge_uuids is None else set(filters.edge_uuids)
        sources, targets = filters.edge_source_node_uuids, filters.edge_target_node_uuids
        if sources is None and targets is None:
            return named
        if sources is not None and targets is not None:
            facts = await self._parts.store.facts_between([(s, t) for s in sources for t in targets])
        else:
            facts = await self._parts.store.facts_of_nodes(list(sources or targets or ()), _MOST)
        joined = {
            fact.uuid
            for fact in facts
            if (sources is None or fact.subject in sources) and (targets is None or fact.object in targets)
        }
        return joined if named is None else joined & named

    async def _walk(self, origins: list[str] | None, depth: int) -> tuple[list[str], list[str]]:
        """Return the nodes and the facts within ``depth`` hops of nodes or episodes, nearest first."""
        starts = list(dict.fromkeys(origins or ()))
        if not starts or depth < 1:
            return [], []
        mentioned = await self._parts.store.mentioned_nodes(starts)
        near = dict.fromkeys(node for nodes in mentioned.values() for node in nodes)
        seen: dict[str, None] = dict.fromkeys([*starts, *near])
        facts: dict[str, None] = {}
        # Graphiti counts an episode's mention as its first hop.
        frontier, late = [start for start in starts if start not in mentioned], list(near)
        for _ in range(depth):
            if not (frontier or late):
                break
            touching = await self._parts.store.facts_of_nodes(frontier, _FACTS_PER_HOP) if frontier else []
            facts.update(dict.fromkeys(fact.uuid for fact in touching))
            reached = dict.fromkeys(end for fact in touching for end in (fact.subject, fact.object))
            fresh = [node for node in reached if node not in seen]
            seen.update(dict.fromkeys(fresh))
            frontier, late = [*late, *fresh], []
        return [node for node in seen if node not in starts], list(facts)


def closeness(hops: dict[str, int], nodes: Iterable[str]) -> float:
    """Return 1 / (1 + hops) of the nearest of the nodes, in [0, 1]; 0 when none is within reach."""
    reached = [hops[node] for node in nodes if node in hops]
    return 1 / (1 + min(reached)) if reached else 0.0


async def _filled(
    search: _Search,
    fetch: Callable[[Sequence[str]], Awaitable[list[_Item]]],
    keep: Callable[[Sequence[_Item]], Awaitable[list[_Item]]],
    limit: int,
) -> list[_Item]:
    """Ask for more until ``limit`` items pass or the search has no more to give."""
    wanted = max(1, limit)
    kept: dict[str, _Item] = {}
    seen: set[str] = set()
    while True:
        hits = await search(wanted)
        fresh = [owner for owner, _ in hits if owner not in seen]
        seen.update(fresh)
        kept.update((item.uuid, item) for item in await keep(await fetch(fresh)))
        if len(kept) >= limit or len(hits) < wanted or wanted >= _MOST:
            break
        wanted *= 4
    ranks = [owner for owner, _ in hits if owner in kept]
    return [kept[owner] for owner in dict.fromkeys(ranks)][:limit]


async def _anything(items: Sequence[_Item]) -> list[_Item]:
    return list(items)


def _listed(owners: Sequence[str]) -> _Search:
    async def search(k: int) -> _Ranked:
        return [(owner, 0.0) for owner in owners[:k]]

    return search


def _narrowed(filters: SearchFilters, source: str | None, target: str | None) -> SearchFilters:
    narrowed = filters.model_copy()
    if source is not None:
        narrowed.edge_source_node_uuids = [source]
    if target is not None:
        narrowed.edge_target_node_uuids = [target]
    return narrowed


def _fact_collections() -> tuple[str, ...]:
    wanted = scope()
    return _FACTS if wanted.past or wanted.at is not None else _FACTS[:1]


def _score(scored: tuple[float, str]) -> float:
    return scored[0]
