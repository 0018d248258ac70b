"""Parts of the boundary that need no store: recipes' plans, the scope of a search, errors of models."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx
import pytest

from pps.core.errors import (
    ConfigError,
    InvalidRequest,
    ModelOutputInvalid,
    ModelUnavailable,
    StoreUnavailable,
)
from pps.isolation.graphiti_models import model_error
from pps.isolation.graphiti_objects import EDGES_BY_UUID, NODES_BY_NAME, NODES_BY_UUID
from pps.isolation.graphiti_search import GraphFilters, edge_matches, raw_cosine, within
from pps.isolation.recipes import NO_CENTRE, RECIPES, Means, Rerank, plan

from graphiti_core.edges import EntityEdge  # isort: skip - after what makes it quiet
from graphiti_core.llm_client.errors import EmptyResponseError, RateLimitError  # isort: skip - after what makes it quiet
from graphiti_core.search import search_config_recipes as stock  # isort: skip - after what makes it quiet

DAY = datetime(2026, 1, 1, tzinfo=UTC)
ALL = Means(centre=True, vectors=True, reranker=True)


def edge(**parts: Any) -> EntityEdge:
    given = {
        "group_id": "g",
        "source_node_uuid": "a",
        "target_node_uuid": "b",
        "created_at": DAY,
        "name": "R",
        "fact": "f",
    }
    return EntityEdge(**{**given, **parts})


def test_a_plan_is_a_copy_that_can_be_spoiled() -> None:
    for recipe in RECIPES:
        config = plan(recipe, limit=3, means=ALL).config
        theirs = getattr(stock, recipe)
        for name in ("edge_config", "node_config", "episode_config", "community_config"):
            mine = getattr(config, name)
            assert mine is None or mine is not getattr(theirs, name)
            if mine is not None:
                mine.search_methods.clear()
        assert all(
            getattr(theirs, name).search_methods
            for name in ("edge_config", "node_config", "episode_config", "community_config")
            if getattr(theirs, name)
        )


def test_a_plan_says_what_is_left_to_do() -> None:
    assert plan("EDGE_HYBRID_SEARCH_NODE_DISTANCE", limit=3, means=ALL).rerank is Rerank.DISTANCE
    assert (
        plan("NODE_HYBRID_SEARCH_CROSS_ENCODER", limit=3, means=ALL).rerank is Rerank.CROSS_ENCODER
    )
    assert plan("NODE_HYBRID_SEARCH_CROSS_ENCODER", limit=3, means=ALL).config.limit == 6
    without = plan(
        "NODE_HYBRID_SEARCH_NODE_DISTANCE",
        limit=3,
        means=Means(centre=False, vectors=True, reranker=True),
    )
    assert (without.rerank, without.notes, without.config.limit) == (
        Rerank.NOTHING,
        (NO_CENTRE,),
        3,
    )
    with pytest.raises(InvalidRequest):
        plan("NOTHING", limit=3, means=ALL)


def test_graphitis_thresholds_become_raw_cosine() -> None:
    assert [round(raw_cosine(at), 3) for at in (0.0, 0.5, 0.6, 1.0)] == [-1.0, 0.0, 0.2, 1.0]


def test_a_scope_takes_what_holds_then_and_lies_in_its_span() -> None:
    link = edge(attributes={"pps": json.dumps({"kind": "relation"})})
    with within(DAY, GraphFilters()):
        assert edge_matches(edge())
        assert not edge_matches(edge(expired_at=DAY)), "given up without an end, it never held"
        assert edge_matches(edge(expired_at=DAY, invalid_at=DAY + timedelta(days=1)))
        assert not edge_matches(edge(invalid_at=DAY))
        assert edge_matches(edge(valid_at=DAY.replace(tzinfo=None))), (
            "a store may give it without a zone"
        )
        assert not edge_matches(link)
    with within(DAY, GraphFilters(valid=(DAY - timedelta(days=1), DAY))):
        assert not edge_matches(edge()), "an unknown date lies in no span"
        assert not edge_matches(edge(valid_at=DAY))
        assert edge_matches(edge(valid_at=DAY - timedelta(days=1)))
    with within(DAY, GraphFilters(relations=("Q",))):
        assert not edge_matches(edge())
    assert edge_matches(link), "Graphiti's own pipeline sees all"


class _Status(Exception):
    def __init__(self, status: int) -> None:
        self.status_code = status


@pytest.mark.parametrize(
    ("error", "ours"),
    [
        (RateLimitError(), ModelUnavailable),
        (TimeoutError(), ModelUnavailable),
        (httpx.ConnectError("away"), ModelUnavailable),
        (_Status(429), ModelUnavailable),
        (_Status(503), ModelUnavailable),
        (_Status(401), ConfigError),
        (_Status(404), ConfigError),
        (EmptyResponseError("nothing"), ModelOutputInvalid),
        (json.JSONDecodeError("x", "secret text", 0), ModelOutputInvalid),
        (StoreUnavailable("away"), StoreUnavailable),
        (RuntimeError("secret text"), ModelOutputInvalid),
    ],
)
def test_what_providers_raise_becomes_ours_even_wrapped_and_quotes_nothing(
    error: Exception, ours: type
) -> None:
    wrapped = Exception("wrapped: secret text")
    wrapped.__cause__ = error
    for one in (error, wrapped):
        assert type(model_error(one)) is ours
        assert "secret text" not in str(model_error(one))


def test_no_vector_is_sent_where_graphiti_drops_it_unread() -> None:
    for nodes in (NODES_BY_UUID, NODES_BY_NAME):
        assert "n {.*, name_embedding: null" in nodes
    assert "e {.*, fact_embedding: null" in EDGES_BY_UUID
