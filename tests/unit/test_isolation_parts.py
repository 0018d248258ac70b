"""Parts of the boundary that need no store: recipes' plans, filters by date, communities, errors of models."""

from __future__ import annotations

import json
from collections import Counter
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx
import pytest

from pps.core.errors import ConfigError, InvalidRequest, ModelOutputInvalid, ModelUnavailable, StoreUnavailable
from pps.isolation import objects
from pps.isolation.communities import label_propagation
from pps.isolation.matching import Scope, edge_matches, within
from pps.isolation.model_errors import model_error
from pps.isolation.recipes import NO_CENTRE, RECIPES, Means, Rerank, plan, raw_cosine

from graphiti_core.driver.driver import GraphProvider  # isort: skip - after what makes it quiet
from graphiti_core.edges import EntityEdge  # isort: skip - after what makes it quiet
from graphiti_core.llm_client.errors import EmptyResponseError, RateLimitError  # isort: skip - after what makes it quiet
from graphiti_core.search import search_config_recipes as stock  # isort: skip - after what makes it quiet
from graphiti_core.search.search_filters import ComparisonOperator, DateFilter, SearchFilters  # isort: skip - after what makes it quiet

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
    assert plan("NODE_HYBRID_SEARCH_CROSS_ENCODER", limit=3, means=ALL).rerank is Rerank.CROSS_ENCODER
    assert plan("NODE_HYBRID_SEARCH_CROSS_ENCODER", limit=3, means=ALL).config.limit == 6
    without = plan("NODE_HYBRID_SEARCH_NODE_DISTANCE", limit=3, means=Means(centre=False, vectors=True, reranker=True))
    assert (without.rerank, without.notes, without.config.limit) == (Rerank.NOTHING, (NO_CENTRE,), 3)
    with pytest.raises(InvalidRequest):
        plan("NOTHING", limit=3, means=ALL)


def test_graphitis_thresholds_become_raw_cosine() -> None:
    assert [round(raw_cosine(at), 3) for at in (0.0, 0.5, 0.6, 1.0)] == [-1.0, 0.0, 0.2, 1.0]


@pytest.mark.parametrize(
    ("operator", "days", "passes"),
    [
        (ComparisonOperator.equals, 0, True),
        (ComparisonOperator.not_equals, 0, False),
        (ComparisonOperator.greater_than, -1, True),
        (ComparisonOperator.greater_than, 0, False),
        (ComparisonOperator.greater_than_equal, 0, True),
        (ComparisonOperator.less_than, 1, True),
        (ComparisonOperator.less_than, 0, False),
        (ComparisonOperator.less_than_equal, 0, True),
        (ComparisonOperator.is_null, 0, False),
        (ComparisonOperator.is_not_null, 0, True),
    ],
)
def test_every_comparison_of_dates_is_honoured(operator: ComparisonOperator, days: int, passes: bool) -> None:
    wanted = SearchFilters(valid_at=[[DateFilter(date=DAY + timedelta(days=days), comparison_operator=operator)]])
    assert edge_matches(edge(valid_at=DAY), wanted) is passes
    assert edge_matches(edge(valid_at=DAY.replace(tzinfo=None)), wanted) is passes, "a store may give it without a zone"


def test_dates_are_any_of_the_lists_and_all_of_a_list() -> None:
    def condition(operator: ComparisonOperator, days: int) -> DateFilter:
        return DateFilter(date=DAY + timedelta(days=days), comparison_operator=operator)

    late = condition(ComparisonOperator.greater_than, 5)
    early = condition(ComparisonOperator.less_than, 5)
    null = DateFilter(comparison_operator=ComparisonOperator.is_null)
    assert not edge_matches(edge(valid_at=DAY), SearchFilters(valid_at=[[early, late]]))
    assert edge_matches(edge(valid_at=DAY), SearchFilters(valid_at=[[late], [early]]))
    assert edge_matches(edge(), SearchFilters(valid_at=[[late], [null]]))
    assert not edge_matches(edge(), SearchFilters(valid_at=[[late]])), "an unknown date is not later"


def test_a_fact_given_up_without_an_end_never_holds_and_typed_links_come_when_asked() -> None:
    with within(Scope(at=DAY)):
        assert edge_matches(edge(), SearchFilters())
        assert not edge_matches(edge(expired_at=DAY), SearchFilters())
        assert edge_matches(edge(expired_at=DAY, invalid_at=DAY + timedelta(days=1)), SearchFilters())
        assert not edge_matches(edge(invalid_at=DAY), SearchFilters())
    link = edge(attributes={"pps": json.dumps({"kind": "relation"})})
    with within(Scope(typed_links=False)):
        assert not edge_matches(link, SearchFilters())
    assert edge_matches(link, SearchFilters())


def test_communities_come_to_an_end_where_graphitis_go_back_and_forth() -> None:
    two = {"a": Counter({"b": 2}), "b": Counter({"a": 2})}
    assert label_propagation(two) == [["a", "b"]]
    triangles = {
        **{x: Counter({y: 1 for y in "abc" if y != x}) for x in "abc"},
        **{x: Counter({y: 1 for y in "xyz" if y != x}) for x in "xyz"},
    }
    triangles["c"]["x"] = triangles["x"]["c"] = 1
    assert label_propagation(triangles) == [["a", "b", "c"], ["x", "y", "z"]]
    assert label_propagation({"alone": Counter()}) == [["alone"]]
    assert label_propagation({}) == []


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
def test_what_providers_raise_becomes_ours_even_wrapped_and_quotes_nothing(error: Exception, ours: type) -> None:
    wrapped = Exception("wrapped: secret text")
    wrapped.__cause__ = error
    for one in (error, wrapped):
        assert type(model_error(one)) is ours
        assert "secret text" not in str(model_error(one))


def test_no_vector_is_sent_where_graphiti_drops_it_unread() -> None:
    for text in (objects._STATEMENTS[GraphProvider.NEO4J].node, objects._NAMED[GraphProvider.NEO4J]):
        assert "n {.*, name_embedding: null" in text
    assert "e {.*, fact_embedding: null" in objects._STATEMENTS[GraphProvider.NEO4J].edge
