"""Graphiti's search recipes by name: over an entity's own indexes, or as they are on Neo4j. A recipe is copied for each call."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from enum import Enum
from typing import TypeAlias, TypedDict, TypeVar

from graphiti_core.search import search_config_recipes as stock
from graphiti_core.search.search_config import (
    EdgeReranker,
    EdgeSearchMethod,
    EpisodeReranker,
    NodeReranker,
    NodeSearchMethod,
    SearchConfig,
    SearchResults,
)
from graphiti_core.search.search_filters import SearchFilters

from pps.core.errors import InvalidRequest
from pps.core.time import now, utc
from pps.core.values import Episode, Fact, Node
from pps.graph.mapping import episode_of, fact_of, node_of
from pps.isolation.binding import Inside
from pps.isolation.counters import NoBreach
from pps.isolation.graphiti_models import GraphitiErrors, rerank_scores
from pps.isolation.graphiti_search import GraphFilters, edge_matches, node_matches, within

RECIPES: tuple[str, ...] = (
    "COMBINED_HYBRID_SEARCH_RRF",
    "COMBINED_HYBRID_SEARCH_MMR",
    "COMBINED_HYBRID_SEARCH_CROSS_ENCODER",
    "EDGE_HYBRID_SEARCH_RRF",
    "EDGE_HYBRID_SEARCH_MMR",
    "EDGE_HYBRID_SEARCH_NODE_DISTANCE",
    "EDGE_HYBRID_SEARCH_EPISODE_MENTIONS",
    "EDGE_HYBRID_SEARCH_CROSS_ENCODER",
    "NODE_HYBRID_SEARCH_RRF",
    "NODE_HYBRID_SEARCH_MMR",
    "NODE_HYBRID_SEARCH_NODE_DISTANCE",
    "NODE_HYBRID_SEARCH_EPISODE_MENTIONS",
    "NODE_HYBRID_SEARCH_CROSS_ENCODER",
)
"""All of Graphiti's but the three over communities, which no memory has."""

NO_CENTRE = "no centre is known: ordered by reciprocal rank fusion instead of node distance"
NO_VECTORS = "no embedder is set: ordered by reciprocal rank fusion instead of MMR"
NO_RERANKER = "no reranker is set: ordered by reciprocal rank fusion instead of the cross-encoder"
TOO_LATE = "the reranker did not finish in time: ordered by reciprocal rank fusion"

_DISTANCE_HOPS = 4  # the farthest that node distance tells apart; farther is as good as apart
_MOST_QUERY = 8_000
_Value = TypeVar("_Value", Node, Fact, Episode)


class SearchOptions(TypedDict, total=False):
    """What a search can be asked.

    Attributes:
        center: Uuid of the node that the recipes with NODE_DISTANCE start from.
        filters: Which nodes and facts may come back.
        as_of: World time, aware; by default now. Facts that do not hold then are left out, and so are those of the
            kind ``relation``.
    """

    center: str | None
    filters: GraphFilters | None
    as_of: datetime | None


@dataclass(frozen=True, slots=True)
class GraphitiResults:
    """What a recipe found, channel by channel, best first, each with a score.

    Attributes:
        notes: Where a step of the recipe could not be done and what was done instead.
    """

    nodes: tuple[tuple[Node, float], ...] = ()
    facts: tuple[tuple[Fact, float], ...] = ()
    episodes: tuple[tuple[Episode, float], ...] = ()
    notes: tuple[str, ...] = ()


class Rerank(Enum):
    """What is left for PPS to do after Graphiti's part of a recipe."""

    NOTHING = "nothing"
    MENTIONS = "mentions"
    DISTANCE = "distance"
    CROSS_ENCODER = "cross-encoder"


@dataclass(frozen=True, slots=True)
class Means:
    """What a search can use: a centre node, vectors, a reranker."""

    centre: bool
    vectors: bool
    reranker: bool


@dataclass(frozen=True, slots=True)
class RecipePlan:
    """A recipe's own copy, what PPS does after it, and what could not be done as the recipe says.

    Attributes:
        config: Its limit is twice the caller's when the list is put in order afterwards.
    """

    config: SearchConfig
    rerank: Rerank = Rerank.NOTHING
    notes: tuple[str, ...] = ()


def plan(recipe: str, *, limit: int, means: Means) -> RecipePlan:
    """Return how to run a recipe.

    Graphiti's node distance looks one hop far and aligns its scores for facts with nodes; its cross-encoder
    step keeps one of several results with equal text. Both are therefore done by PPS, on the fused list.
    Thresholds on reranked scores are lifted: the stock 0 drops what MMR and cross-encoders score below it,
    which starves a list that could be full.

    Raises:
        InvalidRequest: There is no recipe of this name.
    """
    if recipe not in RECIPES:
        raise InvalidRequest("recipe", f"must be one of {', '.join(RECIPES)}")
    stored: SearchConfig = getattr(stock, recipe)
    config = stored.model_copy(deep=True)
    config.community_config = None
    config.reranker_min_score = float("-inf")
    config.limit = limit
    if recipe.endswith("NODE_DISTANCE"):
        return _fused(config, Rerank.DISTANCE if means.centre else None, NO_CENTRE)
    if recipe.endswith("CROSS_ENCODER"):
        return _fused(config, Rerank.CROSS_ENCODER if means.reranker else None, NO_RERANKER)
    if recipe.endswith("MMR") and not means.vectors:
        return _fused(config, None, NO_VECTORS)
    return RecipePlan(
        config,
        Rerank.MENTIONS if recipe == "EDGE_HYBRID_SEARCH_EPISODE_MENTIONS" else Rerank.NOTHING,
    )


def _fused(config: SearchConfig, rerank: Rerank | None, otherwise: str) -> RecipePlan:
    """Let Graphiti fuse the lists only; order them afterwards, or say why not."""
    if config.edge_config:
        config.edge_config.reranker = EdgeReranker.rrf
    if config.node_config:
        config.node_config.reranker = NodeReranker.rrf
    if config.episode_config:
        config.episode_config.reranker = EpisodeReranker.rrf
    if rerank is None:
        return RecipePlan(config, notes=(otherwise,))
    config.limit *= 2
    return RecipePlan(config, rerank)


async def search_recipe(
    inside: Inside, query: str, recipe: str, limit: int, options: SearchOptions
) -> GraphitiResults:
    """Return what a recipe finds; see ``IsolatedGraphitiClient.search``, which checked the centre and the limit."""
    if not query.strip() or len(query) > _MOST_QUERY:
        raise InvalidRequest("query", f"must be 1 to {_MOST_QUERY} characters")
    models, center = inside.models, options.get("center")
    means = Means(center is not None, models.embedder is not None, models.reranker is not None)
    chosen = plan(recipe, limit=limit, means=means)
    filters = options.get("filters") or GraphFilters()
    at = utc(options.get("as_of") or now(), "as_of")
    filters.check()
    # Graphiti asks for a vector whatever the recipe; without an embedder there is nothing to compare it with.
    vector = (
        (await asyncio.to_thread(models.embedder.embed_query, query)).tolist()
        if models.embedder
        else [0.0]
    )

    async def search(config: SearchConfig, search_filter: SearchFilters) -> SearchResults:
        return await inside.graphiti.search_(
            query,
            config=config,
            group_ids=[inside.entity.group],
            center_node_uuid=center,
            search_filter=search_filter,
            query_vector=vector,
        )

    with NoBreach(inside.entity), GraphitiErrors(), within(at, filters):
        if inside.guard.search_interface is not None:  # its searches see what passes and no more
            found = await search(chosen.config, SearchFilters())
        else:
            if not means.vectors:
                _leave_out_vectors(chosen.config)
            found = await _narrowed_search(search, chosen.config, filters)
    inside.lock.own_groups(
        item.group_id for channel in (found.nodes, found.edges, found.episodes) for item in channel
    )
    results = _results(found, chosen.notes)
    if chosen.rerank is Rerank.DISTANCE and center is not None:
        return await _by_distance(inside, results, center, limit)
    if chosen.rerank is Rerank.MENTIONS:
        # Graphiti put the facts in this order already, and left the scores in another.
        return replace(
            results, facts=tuple((fact, float(len(fact.episodes))) for fact, _ in results.facts)
        )
    if chosen.rerank is Rerank.CROSS_ENCODER:
        return await _by_reranker(inside, query, results, limit)
    return results


_Searching: TypeAlias = Callable[[SearchConfig, SearchFilters], Awaitable[SearchResults]]
_OVER_FETCH, _MOST_FETCHED = 2, 20_000


async def _narrowed_search(
    search: _Searching, config: SearchConfig, filters: GraphFilters
) -> SearchResults:
    """Return what a recipe finds of what passes, with lists as long as the recipe's limit where there is enough.

    The database knows kinds and relations. What holds at a time, and which facts are relations, is told afterwards, so
    more is asked for than is wanted, and more again as long as a list was cut off and lacks something.
    """
    in_database = SearchFilters(
        node_labels=list(filters.kinds) or None, edge_types=list(filters.relations) or None
    )
    limit, fetched = config.limit, config.limit * _OVER_FETCH
    while True:
        config.limit = fetched
        found = await search(config, in_database)
        narrowed = _narrowed(found, limit)
        lists = (
            (found.nodes, narrowed.nodes),
            (found.edges, narrowed.edges),
            (found.episodes, narrowed.episodes),
        )
        lacks = any(len(all_) >= fetched and len(passing) < limit for all_, passing in lists)
        if not lacks or fetched >= _MOST_FETCHED:
            return narrowed
        fetched *= 4


def _narrowed(found: SearchResults, limit: int) -> SearchResults:
    """Return the first results that the scope lets pass, at most ``limit`` in each channel, with their scores."""
    nodes = [place for place, node in enumerate(found.nodes) if node_matches(node)][:limit]
    edges = [place for place, edge in enumerate(found.edges) if edge_matches(edge)][:limit]
    episodes = range(min(limit, len(found.episodes)))
    return SearchResults(
        nodes=[found.nodes[place] for place in nodes],
        node_reranker_scores=_scores_at(found.node_reranker_scores, nodes),
        edges=[found.edges[place] for place in edges],
        edge_reranker_scores=_scores_at(found.edge_reranker_scores, edges),
        episodes=[found.episodes[place] for place in episodes],
        episode_reranker_scores=_scores_at(found.episode_reranker_scores, episodes),
    )


def _scores_at(scores: Sequence[float], places: Iterable[int]) -> list[float]:
    return [scores[place] for place in places if place < len(scores)]


def _leave_out_vectors(config: SearchConfig) -> None:
    """Let a recipe go by text and graph: there is no vector to compare with."""
    if config.edge_config:
        methods = config.edge_config.search_methods
        config.edge_config.search_methods = [
            one for one in methods if one != EdgeSearchMethod.cosine_similarity
        ]
    if config.node_config:
        methods_of_nodes = config.node_config.search_methods
        config.node_config.search_methods = [
            one for one in methods_of_nodes if one != NodeSearchMethod.cosine_similarity
        ]


async def _by_distance(
    inside: Inside, results: GraphitiResults, center: str, limit: int
) -> GraphitiResults:
    """Order nodes and facts by hops from the centre, a fact by its nearer end; ties keep the fused order."""
    hops = await inside.store.distances(center, _DISTANCE_HOPS)
    nodes = [(node, _closeness(hops, node.uuid)) for node, _ in results.nodes]
    facts = [(fact, _closeness(hops, fact.subject, fact.object)) for fact, _ in results.facts]
    return replace(results, nodes=_best(nodes, limit), facts=_best(facts, limit))


def _closeness(hops: Mapping[str, int], *nodes: str) -> float:
    """Return 1 / (1 + hops) of the nearest of the nodes, in [0, 1]; 0 when none is within reach."""
    reached = [hops[node] for node in nodes if node in hops]
    return 1 / (1 + min(reached)) if reached else 0.0


async def _by_reranker(
    inside: Inside, query: str, results: GraphitiResults, limit: int
) -> GraphitiResults:
    """Order every channel by the reranker's score for each id: equal texts are not one."""
    models, late = inside.models, False

    async def channel(
        values: Sequence[tuple[_Value, float]], texts: list[str]
    ) -> tuple[tuple[_Value, float], ...]:
        nonlocal late
        scores = await rerank_scores(models.reranker, query, texts, models.rerank_deadline_s)
        if scores is None:
            late = True
            return tuple(values[:limit])
        return _best(
            [(value, score) for (value, _), score in zip(values, scores, strict=True)], limit
        )

    reranked = GraphitiResults(
        *await asyncio.gather(  # side by side: one deadline holds for all
            channel(results.nodes, [node.name for node, _ in results.nodes]),
            channel(results.facts, [fact.text for fact, _ in results.facts]),
            channel(results.episodes, [episode.content for episode, _ in results.episodes]),
        )
    )
    return replace(reranked, notes=(*results.notes, TOO_LATE) if late else results.notes)


def _best(scored: Sequence[tuple[_Value, float]], limit: int) -> tuple[tuple[_Value, float], ...]:
    return tuple(sorted(scored, key=lambda one: -one[1])[:limit])


def _results(found: SearchResults, notes: tuple[str, ...]) -> GraphitiResults:
    """Return Graphiti's results as PPS's values; a result without a score of its own gets the one before it, or 0."""
    return GraphitiResults(
        _scored([node_of(node.model_dump()) for node in found.nodes], found.node_reranker_scores),
        _scored([fact_of(edge.model_dump()) for edge in found.edges], found.edge_reranker_scores),
        _scored(
            [
                episode_of({**one.model_dump(), "source": one.source.value})
                for one in found.episodes
            ],
            found.episode_reranker_scores,
        ),
        notes,
    )


def _scored(values: Sequence[_Value], scores: Sequence[float]) -> tuple[tuple[_Value, float], ...]:
    padded = [float(score) for score in scores[: len(values)]]
    padded += [padded[-1] if padded else 0.0] * (len(values) - len(padded))
    return tuple(zip(values, padded, strict=True))
