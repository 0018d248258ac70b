"""Graphiti's sixteen search recipes by name. A recipe is copied for each call and never changed."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from graphiti_core.search import search_config_recipes as stock
from graphiti_core.search.search_config import (
    CommunityReranker,
    EdgeReranker,
    EpisodeReranker,
    NodeReranker,
    SearchConfig,
)

from pps.core.errors import InvalidRequest

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
    "COMMUNITY_HYBRID_SEARCH_RRF",
    "COMMUNITY_HYBRID_SEARCH_MMR",
    "COMMUNITY_HYBRID_SEARCH_CROSS_ENCODER",
)

NO_CENTRE = "no centre is known: ordered by reciprocal rank fusion instead of node distance"
NO_VECTORS = "no embedder is set: ordered by reciprocal rank fusion instead of MMR"
NO_RERANKER = "no reranker is set: ordered by reciprocal rank fusion instead of the cross-encoder"


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
class Plan:
    """A recipe's own copy, what PPS does after it, and what could not be done as the recipe says.

    Attributes:
        config: Its limit is twice the caller's when the list is put in order afterwards.
    """

    config: SearchConfig
    rerank: Rerank = Rerank.NOTHING
    notes: tuple[str, ...] = ()


def plan(recipe: str, *, limit: int, means: Means) -> Plan:
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
    config.reranker_min_score = float("-inf")
    if recipe.endswith("NODE_DISTANCE"):
        return _fused(config, limit, Rerank.DISTANCE if means.centre else None, NO_CENTRE)
    if recipe.endswith("CROSS_ENCODER"):
        return _fused(config, limit, Rerank.CROSS_ENCODER if means.reranker else None, NO_RERANKER)
    if recipe.endswith("MMR") and not means.vectors:
        return _fused(config, limit, None, NO_VECTORS)
    config.limit = limit
    return Plan(
        config, Rerank.MENTIONS if recipe.startswith("EDGE") and recipe.endswith("MENTIONS") else Rerank.NOTHING
    )


def _fused(config: SearchConfig, limit: int, rerank: Rerank | None, otherwise: str) -> Plan:
    """Let Graphiti fuse the lists only; order them afterwards, or say why not."""
    _use_fusion(config)
    config.limit = 2 * limit if rerank else limit
    return Plan(config, rerank or Rerank.NOTHING, () if rerank else (otherwise,))


def _use_fusion(config: SearchConfig) -> None:
    if config.edge_config:
        config.edge_config.reranker = EdgeReranker.rrf
    if config.node_config:
        config.node_config.reranker = NodeReranker.rrf
    if config.episode_config:
        config.episode_config.reranker = EpisodeReranker.rrf
    if config.community_config:
        config.community_config.reranker = CommunityReranker.rrf


def raw_cosine(normalised: float) -> float:
    """Return the raw cosine in [-1, 1] of Graphiti's threshold, which is (1 + cosine) / 2 on its main backend."""
    return 2 * normalised - 1
