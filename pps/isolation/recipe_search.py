"""The client's searches: Graphiti's recipes by name, over the entity's own indexes."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from typing import TypedDict, TypeVar, Unpack

from graphiti_core.edges import EntityEdge
from graphiti_core.errors import NodeLabelValidationError
from graphiti_core.nodes import CommunityNode, EntityNode, EpisodicNode
from graphiti_core.search.search_config import SearchResults
from graphiti_core.search.search_filters import SearchFilters

from pps.core.errors import InvalidRequest
from pps.core.time import now, utc
from pps.core.values import Community, Episode, Fact, Node
from pps.graph.mapping import community_of, episode_of, fact_of, node_of
from pps.isolation.adapters import rerank_scores
from pps.isolation.bound import Bound, check_text
from pps.isolation.matching import Scope, search_filters, within
from pps.isolation.pipeline import GraphitiErrors
from pps.isolation.recipes import RECIPES, Means, Plan, Rerank, plan
from pps.isolation.requests import GraphFilters, GraphitiResults, check_limit
from pps.isolation.search import DISTANCE_HOPS, closeness

_MOST_QUERY = 8_000
_MOST_RESULTS = 1_000
_MOST_ORIGINS = 1_000

TOO_LATE = "the reranker did not finish in time: ordered by reciprocal rank fusion"

_Value = TypeVar("_Value", Node, Fact, Episode, Community)


class SearchOptions(TypedDict, total=False):
    """What a search can be asked.

    Attributes:
        center: Uuid of the node that the recipes with NODE_DISTANCE start from.
        bfs_origins: Uuids of at most 1,000 nodes or episodes that the recipes with breadth-first search start from;
            by default what the other searches find.
        filters: Which nodes and facts may come back.
        as_of: World time, aware; by default now. Facts that do not hold then are left out.
    """

    center: str | None
    bfs_origins: Sequence[str]
    filters: GraphFilters | None
    as_of: datetime | None


class RecipeSearch(Bound):
    """Search by Graphiti's recipes; channels stay apart."""

    def recipes(self) -> list[str]:
        """Return the names of the sixteen recipes."""
        return list(RECIPES)

    async def search(
        self, query: str, *, recipe: str, limit: int = 10, **options: Unpack[SearchOptions]
    ) -> GraphitiResults:
        """Return what a recipe finds in this entity's graph.

        Args:
            query: 1 to 8,000 characters of any text.
            recipe: A name from ``recipes()``.
            limit: Most results in each channel, 1 to 1,000.
            **options: See ``SearchOptions``.

        Returns:
            Each channel best first. Scores compare only within their channel. A step that could not be done as
            the recipe says (no centre, no reranker, no vectors, a reranker out of time) is told in ``notes``.

        Raises:
            InvalidRequest: A bound is broken.
            NotFound: An id is not this entity's; nothing was searched.
        """
        check_text(query, "query", _MOST_QUERY)
        check_limit(limit, _MOST_RESULTS)
        filters = options.get("filters") or GraphFilters()
        await self._check_search_ids(options, filters)
        models = self._inside.models
        center = options.get("center")
        means = Means(center is not None, models.embedder is not None, models.reranker is not None)
        chosen = plan(recipe, limit=limit, means=means)
        found = await self._run(query, chosen, filters, options)
        return await self._reranked(query, _results(found, chosen.notes), chosen, limit, center)

    async def _check_search_ids(self, options: SearchOptions, filters: GraphFilters) -> None:
        """Check every id of the call before it starts."""
        center, origins = options.get("center"), list(options.get("bfs_origins") or ())
        if len(origins) > _MOST_ORIGINS:
            raise InvalidRequest("bfs_origins", f"must be at most {_MOST_ORIGINS}")
        await self._owned("Entity", [*([center] if center else []), *filters.subjects, *filters.objects])
        await self._owned_origins(origins)
        if filters.facts:
            await self._owned_facts(filters.facts)

    async def _run(self, query: str, chosen: Plan, filters: GraphFilters, options: SearchOptions) -> SearchResults:
        as_of = options.get("as_of")
        at = None if filters.past and as_of is None else utc(as_of or now(), "as_of")
        stock_filters = _stock(filters)
        vector = await self._query_vector(query)
        with self._no_breach(), GraphitiErrors(), within(Scope(at, filters.past, filters.typed_links)):
            found = await self._inside.graphiti.search_(
                query,
                config=chosen.config,
                group_ids=[self.entity.group],
                center_node_uuid=options.get("center"),
                bfs_origin_node_uuids=list(options.get("bfs_origins") or ()) or None,
                search_filter=stock_filters,
                query_vector=vector,
            )
        channels = (found.nodes, found.edges, found.episodes, found.communities)
        self._own_groups(item.group_id for channel in channels for item in channel)
        return found

    async def _query_vector(self, query: str) -> list[float]:
        embedder = self._inside.models.embedder
        if embedder is None:
            return [0.0]  # asked for by Graphiti whatever the recipe; there is nothing to compare it with
        return (await asyncio.to_thread(embedder.embed_query, query)).tolist()

    async def _reranked(
        self, query: str, results: GraphitiResults, chosen: Plan, limit: int, center: str | None
    ) -> GraphitiResults:
        if chosen.rerank is Rerank.DISTANCE and center is not None:
            return await self._by_distance(results, center, limit)
        if chosen.rerank is Rerank.MENTIONS:
            # Graphiti put the facts in this order already, and left the scores in another.
            return replace(results, facts=tuple((fact, float(len(fact.episodes))) for fact, _ in results.facts))
        if chosen.rerank is Rerank.CROSS_ENCODER:
            return await self._by_reranker(query, results, limit)
        return results

    async def _by_distance(self, results: GraphitiResults, center: str, limit: int) -> GraphitiResults:
        """Order nodes and facts by hops from the centre, a fact by its nearer end; ties keep the fused order."""
        hops = await self._store.distances(center, DISTANCE_HOPS)
        nodes = [(node, closeness(hops, [node.uuid])) for node, _ in results.nodes]
        facts = [(fact, closeness(hops, [fact.subject, fact.object])) for fact, _ in results.facts]
        return replace(results, nodes=_best(nodes, limit), facts=_best(facts, limit))

    async def _by_reranker(self, query: str, results: GraphitiResults, limit: int) -> GraphitiResults:
        """Order every channel by the reranker's score for each id: equal texts are not one."""
        models = self._inside.models
        late = False

        async def channel(values: Sequence[tuple[_Value, float]], texts: list[str]) -> tuple[tuple[_Value, float], ...]:
            nonlocal late
            scores = await rerank_scores(models.reranker, query, texts, models.rerank_deadline_s)
            if scores is None:
                late = True
                return tuple(values[:limit])
            return _best([(value, score) for (value, _), score in zip(values, scores, strict=True)], limit)

        reranked = GraphitiResults(
            *await asyncio.gather(  # side by side: one deadline holds for all
                channel(results.nodes, [node.name for node, _ in results.nodes]),
                channel(results.facts, [fact.text for fact, _ in results.facts]),
                channel(results.episodes, [episode.content for episode, _ in results.episodes]),
                channel(results.communities, [community.name for community, _ in results.communities]),
            )
        )
        return replace(reranked, notes=(*results.notes, TOO_LATE) if late else results.notes)


def _stock(filters: GraphFilters) -> SearchFilters:
    try:
        return search_filters(filters)
    except NodeLabelValidationError:
        raise InvalidRequest("kinds", "must be labels: a letter, then letters, digits and _") from None
    except ValueError:
        raise InvalidRequest("filters", "are not of the types that they say") from None


def _best(scored: Sequence[tuple[_Value, float]], limit: int) -> tuple[tuple[_Value, float], ...]:
    return tuple(sorted(scored, key=lambda one: -one[1])[:limit])


def _results(found: SearchResults, notes: tuple[str, ...]) -> GraphitiResults:
    """Return Graphiti's results as PPS's values; a result without a score of its own gets the one before it, or 0."""
    return GraphitiResults(
        _scored([_node(node) for node in found.nodes], found.node_reranker_scores),
        _scored([_fact(edge) for edge in found.edges], found.edge_reranker_scores),
        _scored([_episode(episode) for episode in found.episodes], found.episode_reranker_scores),
        _scored([_community(community) for community in found.communities], found.community_reranker_scores),
        notes,
    )


def _scored(values: Sequence[_Value], scores: Sequence[float]) -> tuple[tuple[_Value, float], ...]:
    padded = [float(score) for score in scores[: len(values)]]
    padded += [padded[-1] if padded else 0.0] * (len(values) - len(padded))
    return tuple(zip(values, padded, strict=True))


def _node(node: EntityNode) -> Node:
    row = {"uuid": node.uuid, "name": node.name, "labels": node.labels, "created_at": node.created_at}
    return node_of({**row, "summary": node.summary, "attributes": node.attributes})


def _fact(edge: EntityEdge) -> Fact:
    return fact_of(edge.model_dump())


def _episode(episode: EpisodicNode) -> Episode:
    return episode_of({**episode.model_dump(), "source": episode.source.value})


def _community(community: CommunityNode) -> Community:
    return community_of(community.model_dump())
