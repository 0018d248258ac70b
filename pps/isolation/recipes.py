"""Graphiti's search recipes by name, over an entity's own indexes or on Neo4j.

Each call works on its own copy of a recipe.
"""

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
"""All of Graphiti's recipes but the three over communities, which no memory has."""

NO_CENTRE = "no centre is known: ordered by reciprocal rank fusion instead of node distance"
NO_VECTORS = "no embedder is set: ordered by reciprocal rank fusion instead of MMR"
NO_RERANKER = "no reranker is set: ordered by reciprocal rank fusion instead of the cross-encoder"
TOO_LATE = "the reranker did not finish in time: ordered by reciprocal rank fusion"

_DISTANCE_HOPS = 4  # node distance ranks up to here; nodes farther away rank like unconnected ones
_MOST_QUERY = 8_000
_Value = TypeVar("_Value", Node, Fact, Episode)


class SearchOptions(TypedDict, total=False):
    """Options of a search.

    Attributes:
        center: Uuid of the node from which the recipes with NODE_DISTANCE measure.
        filters: The nodes and facts that may come back.
        as_of: World time, aware; now by default. Facts that do not hold then are left out, and so
            are facts of the kind ``relation``.
    """

    center: str | None
    filters: GraphFilters | None
    as_of: datetime | None


@dataclass(frozen=True, slots=True)
class GraphitiResults:
    """The results of a recipe by channel, best first, each with a score.

    Attributes:
        notes: The steps of the recipe that could not be done, and what was done instead.
    """

    nodes: tuple[tuple[Node, float], ...] = ()
    facts: tuple[tuple[Fact, float], ...] = ()
    episodes: tuple[tuple[Episode, float], ...] = ()
    notes: tuple[str, ...] = ()


class Rerank(Enum):
    """The reranking that PPS does after Graphiti's part of a recipe."""

    NOTHING = "nothing"
    MENTIONS = "mentions"
    DISTANCE = "distance"
    CROSS_ENCODER = "cross-encoder"


@dataclass(frozen=True, slots=True)
class Means:
    """Whether a search has a centre node, vectors and a reranker."""

    centre: bool
    vectors: bool
    reranker: bool


@dataclass(frozen=True, slots=True)
class RecipePlan:
    """A copy of a recipe, the reranking after it, and notes on steps that cannot be done.

    Attributes:
        config: Its limit is twice the caller's when PPS orders the list afterwards.
    """

    config: SearchConfig
    rerank: Rerank = Rerank.NOTHING
    notes: tuple[str, ...] = ()


def plan(recipe: str, *, limit: int, means: Means) -> RecipePlan:
    """Return how to run a recipe.

    PPS does two steps itself, on the fused list: Graphiti's node distance reaches only one hop and
    gives the scores of nodes to facts, and its cross-encoder step drops all but one of several
    results with equal text. Thresholds on reranked scores are removed: MMR and cross-encoders score
    below the stock threshold of 0, which would leave lists short.

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
    """Return a plan in which Graphiti only fuses the lists, and PPS reranks them.

    Without ``rerank`` they stay fused, and ``otherwise`` is noted.
    """
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
    """Run a recipe.

    ``IsolatedGraphitiClient.search`` documents it, and has checked the centre and the limit.
    """
    if not query.strip() or len(query) > _MOST_QUERY:
        raise InvalidRequest("query", f"must be 1 to {_MOST_QUERY} characters")
    models = inside.models
    center = options.get("center")
    means = Means(center is not None, models.embedder is not None, models.reranker is not None)
    chosen = plan(recipe, limit=limit, means=means)
    filters = options.get("filters") or GraphFilters()
    at = utc(options.get("as_of") or now(), "as_of")
    filters.check()
    # Graphiti needs a vector for every recipe; without an embedder there are none to compare it
    # with.
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
        if inside.guard.search_interface is not None:  # its searches apply the scope themselves
            graphiti_results = await search(chosen.config, SearchFilters())
        else:
            if not means.vectors:
                _leave_out_vectors(chosen.config)
            graphiti_results = await _narrowed_search(search, chosen.config, filters)
    inside.lock.own_groups(
        item.group_id
        for channel in (graphiti_results.nodes, graphiti_results.edges, graphiti_results.episodes)
        for item in channel
    )
    results = _results(graphiti_results, chosen.notes)
    if chosen.rerank is Rerank.DISTANCE and center is not None:
        return await _by_distance(inside, results, center, limit)
    if chosen.rerank is Rerank.MENTIONS:
        # Graphiti has put the facts in this order, but not their scores.
        return replace(
            results, facts=tuple((fact, float(len(fact.episodes))) for fact, _ in results.facts)
        )
    if chosen.rerank is Rerank.CROSS_ENCODER:
        return await _by_reranker(inside, query, results, limit)
    return results


_Searching: TypeAlias = Callable[[SearchConfig, SearchFilters], Awaitable[SearchResults]]
_OVER_FETCH = 2
_MOST_FETCHED = 20_000


async def _narrowed_search(
    search: _Searching, config: SearchConfig, filters: GraphFilters
) -> SearchResults:
    """Run a recipe and apply the scope, with lists up to the recipe's limit.

    The database filters by kinds and relations. Which facts hold at a time, and which are
    relations, is checked afterwards. So the search fetches more than the limit, and runs again with
    a larger one as long as a full list has too few results that pass.
    """
    in_database = SearchFilters(
        node_labels=list(filters.kinds) or None, edge_types=list(filters.relations) or None
    )
    limit = config.limit
    fetched = limit * _OVER_FETCH
    while True:
        config.limit = fetched
        graphiti_results = await search(config, in_database)
        narrowed = _narrowed(graphiti_results, limit)
        lists = (
            (graphiti_results.nodes, narrowed.nodes),
            (graphiti_results.edges, narrowed.edges),
            (graphiti_results.episodes, narrowed.episodes),
        )
        is_short = any(len(all_) >= fetched and len(passing) < limit for all_, passing in lists)
        if not is_short or fetched >= _MOST_FETCHED:
            return narrowed
        fetched *= 4


def _narrowed(graphiti_results: SearchResults, limit: int) -> SearchResults:
    """Return the first results in the scope, with scores, at most ``limit`` in each channel."""
    nodes = [place for place, node in enumerate(graphiti_results.nodes) if node_matches(node)][
        :limit
    ]
    edges = [place for place, edge in enumerate(graphiti_results.edges) if edge_matches(edge)][
        :limit
    ]
    episodes = range(min(limit, len(graphiti_results.episodes)))
    return SearchResults(
        nodes=[graphiti_results.nodes[place] for place in nodes],
        node_reranker_scores=_scores_at(graphiti_results.node_reranker_scores, nodes),
        edges=[graphiti_results.edges[place] for place in edges],
        edge_reranker_scores=_scores_at(graphiti_results.edge_reranker_scores, edges),
        episodes=[graphiti_results.episodes[place] for place in episodes],
        episode_reranker_scores=_scores_at(graphiti_results.episode_reranker_scores, episodes),
    )


def _scores_at(scores: Sequence[float], places: Iterable[int]) -> list[float]:
    return [scores[place] for place in places if place < len(scores)]


def _leave_out_vectors(config: SearchConfig) -> None:
    """Remove the searches by vector from a recipe."""
    if config.edge_config:
        methods = config.edge_config.search_methods
        config.edge_config.search_methods = [
            method for method in methods if method != EdgeSearchMethod.cosine_similarity
        ]
    if config.node_config:
        methods_of_nodes = config.node_config.search_methods
        config.node_config.search_methods = [
            method for method in methods_of_nodes if method != NodeSearchMethod.cosine_similarity
        ]


async def _by_distance(
    inside: Inside, results: GraphitiResults, center: str, limit: int
) -> GraphitiResults:
    """Order nodes and facts by hops from the centre, a fact by its nearer node.

    Ties keep the fused order.
    """
    hops = await inside.store.distances(center, _DISTANCE_HOPS)
    nodes = [(node, _closeness(hops, node.uuid)) for node, _ in results.nodes]
    facts = [(fact, _closeness(hops, fact.subject, fact.object)) for fact, _ in results.facts]
    return replace(results, nodes=_best(nodes, limit), facts=_best(facts, limit))


def _closeness(hops: Mapping[str, int], *nodes: str) -> float:
    """Return 1 / (1 + hops) for the nearest of the nodes, in [0, 1]; 0 when none is reached."""
    reached = [hops[node] for node in nodes if node in hops]
    return 1 / (1 + min(reached)) if reached else 0.0


async def _by_reranker(
    inside: Inside, query: str, results: GraphitiResults, limit: int
) -> GraphitiResults:
    """Order every channel by the reranker's score of each item; items with equal texts all stay."""
    models = inside.models
    late = False

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
        *await asyncio.gather(  # at the same time: one deadline holds for all
            channel(results.nodes, [node.name for node, _ in results.nodes]),
            channel(results.facts, [fact.text for fact, _ in results.facts]),
            channel(results.episodes, [episode.content for episode, _ in results.episodes]),
        )
    )
    return replace(reranked, notes=(*results.notes, TOO_LATE) if late else results.notes)


def _best(scored: Sequence[tuple[_Value, float]], limit: int) -> tuple[tuple[_Value, float], ...]:
    return tuple(sorted(scored, key=lambda pair: -pair[1])[:limit])


def _results(graphiti_results: SearchResults, notes: tuple[str, ...]) -> GraphitiResults:
    """Return Graphiti's results as values of PPS.

    A result without a score gets the last score before it, or 0.
    """
    return GraphitiResults(
        _scored(
            [node_of(node.model_dump()) for node in graphiti_results.nodes],
            graphiti_results.node_reranker_scores,
        ),
        _scored(
            [fact_of(edge.model_dump()) for edge in graphiti_results.edges],
            graphiti_results.edge_reranker_scores,
        ),
        _scored(
            [
                episode_of({**episode.model_dump(), "source": episode.source.value})
                for episode in graphiti_results.episodes
            ],
            graphiti_results.episode_reranker_scores,
        ),
        notes,
    )


def _scored(values: Sequence[_Value], scores: Sequence[float]) -> tuple[tuple[_Value, float], ...]:
    padded = [float(score) for score in scores[: len(values)]]
    padded += [padded[-1] if padded else 0.0] * (len(values) - len(padded))
    return tuple(zip(values, padded, strict=True))
