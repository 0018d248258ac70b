"""S2-03: Graphiti's recipes by name, through the boundary, on both stores."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
import pytest_asyncio
from graphiti_core.search import search_config_recipes as stock
from graphiti_core.search.search_config import SearchConfig
from graphiti_core.search.search_filters import SearchFilters
from graphiti_core.search.search_utils import edge_bfs_search, edge_fulltext_search

from pps.core.errors import InvalidRequest
from pps.core.values import Fact, Node
from pps.isolation.graphiti_search import GraphFilters
from pps.isolation.recipes import NO_CENTRE, NO_RERANKER, NO_VECTORS, RECIPES, TOO_LATE
from pps.models.protocols import Reranked
from pps.models.reranker import MiniLMReranker
from pps.proof.arena import Arena, Being, ExposedClient

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.timeout(300)]

RRF = "EDGE_HYBRID_SEARCH_RRF"
BEGAN = datetime(2025, 1, 1, tzinfo=UTC)


@pytest_asyncio.fixture(loop_scope="module")
async def being(standing_arena: Arena) -> AsyncIterator[Being]:
    """One entity beside others on the store of the test, grown by a chain of nodes and facts; it keeps its models."""
    being = standing_arena.beings[0]
    if "Station 0" not in {node.name for node in being.nodes.values()}:
        await grown(standing_arena)
    client = being.client
    yield being
    being.client = client


async def grown(arena: Arena) -> None:
    """Give the first entity a chain of nodes Ana - n1 - n2 - … with facts of known times."""
    being = arena.beings[0]
    ana = named(being, "Ana")
    nodes = [
        replace(
            ana, uuid=being.mint("node"), name=f"Station {i}", kind="Place" if i % 2 else "Thing"
        )
        for i in range(6)
    ]
    chain = [ana, *nodes]
    facts = [
        Fact(
            being.mint("fact"),
            chain[i].uuid,
            chain[i + 1].uuid,
            "LEADS_TO" if i % 2 else "JOINS",
            f"The tram stops at station {i}.",
            BEGAN,
            valid_at=BEGAN + timedelta(days=i),
            invalid_at=BEGAN + timedelta(days=30) if i == 0 else None,
            episodes=tuple(list(being.episodes)[: i % 3]),
        )
        for i in range(6)
    ]
    await arena.save(being, nodes, facts, [])


def named(being: Being, name: str) -> Node:
    return next(node for node in being.nodes.values() if node.name == name)


def texts(facts: Sequence[tuple[Fact, float]]) -> list[str]:
    return [fact.text for fact, _ in facts]


def with_models(being: Being, **models: Any) -> None:
    inside = being.client.inside
    being.client = ExposedClient(replace(inside, models=replace(inside.models, **models)))


class Slow:
    name = "slow"

    def rerank(self, query: str, passages: Sequence[str], *, deadline_s: float) -> Reranked:
        time.sleep(0.01)
        return Reranked((), complete=False)


async def test_all_recipes_of_graphiti_are_there_by_name() -> None:
    theirs = {name for name, value in vars(stock).items() if isinstance(value, SearchConfig)}
    assert set(RECIPES) == {name for name in theirs if not name.startswith("COMMUNITY")}
    assert len(RECIPES) == 13


async def test_each_recipe_fills_its_own_channels_and_no_other(being: Being) -> None:
    center = named(being, "Ana").uuid
    for recipe in RECIPES:
        found = await being.client.search(
            "Ana drinks coffee in the kitchen", recipe=recipe, limit=4, center=center
        )
        head = recipe.split("_")[0]
        channels = {
            "nodes": found.nodes,
            "facts": found.facts,
            "episodes": found.episodes,
        }
        filled = {name for name, hits in channels.items() if hits}
        expected = {
            "EDGE": {"facts"},
            "NODE": {"nodes"},
            "COMBINED": {"facts", "nodes", "episodes"},
        }
        assert filled == expected[head], recipe
        assert all(len(hits) <= 4 for hits in channels.values())
        for hits in channels.values():
            scores = [score for _, score in hits]
            assert scores == sorted(scores, reverse=True), recipe
        assert found.notes == ()


async def test_no_recipe_is_changed_by_being_used(being: Being) -> None:
    before = {name: getattr(stock, name).model_dump() for name in RECIPES}
    for recipe in RECIPES:
        await being.client.search("coffee", recipe=recipe, limit=7, center=named(being, "Ana").uuid)
    assert {name: getattr(stock, name).model_dump() for name in RECIPES} == before


async def test_a_large_search_beside_a_small_one_keeps_its_size(being: Being) -> None:
    async def search(limit: int) -> int:
        return len((await being.client.search("tram stops station", recipe=RRF, limit=limit)).facts)

    sizes = await asyncio.gather(*(search(limit) for limit in (50, 1, 50, 2, 50, 1)))
    assert sizes == [sizes[0], 1, sizes[0], 2, sizes[0], 1]
    assert sizes[0] >= 5


async def test_a_list_is_full_when_the_entity_has_enough_that_passes_the_filter(
    being: Being,
) -> None:
    filters = GraphFilters(relations=("JOINS",))
    found = await being.client.search("tram", recipe=RRF, limit=2, filters=filters)
    assert len(found.facts) == 2
    assert {fact.relation for fact, _ in found.facts} == {"JOINS"}
    for recipe in ("EDGE_HYBRID_SEARCH_MMR", "EDGE_HYBRID_SEARCH_CROSS_ENCODER"):
        assert (
            len((await being.client.search("tram station", recipe=recipe, limit=5)).facts) == 5
        ), recipe


async def test_node_distance_orders_by_hops_and_scores_each_id(being: Being) -> None:
    ana = named(being, "Ana")
    found = await being.client.search(
        "station tram", recipe="NODE_HYBRID_SEARCH_NODE_DISTANCE", limit=10, center=ana.uuid
    )
    scores = {node.name: score for node, score in found.nodes}
    stations = [name for name in scores if name.startswith("Station")]
    assert stations[:4] == ["Station 0", "Station 1", "Station 2", "Station 3"]
    assert [scores[f"Station {i}"] for i in range(5)] == [1 / 2, 1 / 3, 1 / 4, 1 / 5, 0.0]
    facts = (
        await being.client.search(
            "tram stops", recipe="EDGE_HYBRID_SEARCH_NODE_DISTANCE", limit=10, center=ana.uuid
        )
    ).facts
    near = {fact.text: score for fact, score in facts if "tram" in fact.text}
    assert near["The tram stops at station 1."] == 1 / 2
    assert near["The tram stops at station 4."] == 1 / 5
    assert near["The tram stops at station 5."] == 0.0


async def test_episode_mentions_orders_by_supporting_episodes(being: Being) -> None:
    found = await being.client.search(
        "tram stops at station", recipe="EDGE_HYBRID_SEARCH_EPISODE_MENTIONS", limit=6
    )
    assert [score for _, score in found.facts] == sorted(
        (float(len(f.episodes)) for f, _ in found.facts), reverse=True
    )
    nodes = await being.client.search("Ana", recipe="NODE_HYBRID_SEARCH_EPISODE_MENTIONS", limit=6)
    assert (nodes.nodes[0][0].name, nodes.nodes[0][1]) == ("Ana", 2.0)


async def test_without_a_centre_it_falls_back_to_fusion_and_says_so(being: Being) -> None:
    for head, plain in (("NODE", "NODE_HYBRID_SEARCH_RRF"), ("EDGE", RRF)):
        found = await being.client.search(
            "Ana coffee", recipe=f"{head}_HYBRID_SEARCH_NODE_DISTANCE"
        )
        assert found.notes == (NO_CENTRE,)
        assert (found.nodes, found.facts) == (
            (await being.client.search("Ana coffee", recipe=plain)).nodes,
            (await being.client.search("Ana coffee", recipe=plain)).facts,
        )


async def test_without_a_reranker_or_in_time_it_falls_back_and_says_so(being: Being) -> None:
    recipe = "EDGE_HYBRID_SEARCH_CROSS_ENCODER"
    with_models(being, reranker=Slow())
    late = await being.client.search("Ana coffee", recipe=recipe, limit=3)
    assert late.notes == (TOO_LATE,)
    assert len(late.facts) == 3
    with_models(being, reranker=None)
    without = await being.client.search("Ana coffee", recipe=recipe, limit=3)
    assert without.notes == (NO_RERANKER,)
    assert texts(without.facts) == texts(late.facts)


async def test_the_cross_encoder_recipe_orders_by_the_real_model(being: Being) -> None:
    reranker = MiniLMReranker()
    with_models(being, reranker=reranker, rerank_deadline_s=120.0)
    found = await being.client.search(
        "Where is station 3?", recipe="EDGE_HYBRID_SEARCH_CROSS_ENCODER", limit=10
    )
    with_models(being, rerank_deadline_s=0.0)
    late = await being.client.search(
        "Where is station 3?", recipe="COMBINED_HYBRID_SEARCH_CROSS_ENCODER", limit=10
    )
    await asyncio.to_thread(reranker.close)
    assert found.notes == ()
    assert texts(found.facts)[0] == "The tram stops at station 3."
    assert found.facts[0][1] > found.facts[1][1]
    assert late.notes == (TOO_LATE,)


async def test_without_any_model_it_searches_by_text_and_graph(being: Being) -> None:
    with_models(being, embedder=None, reranker=None)
    found = await being.client.search("Ana coffee", recipe="EDGE_HYBRID_SEARCH_MMR", limit=3)
    assert found.notes == (NO_VECTORS,)
    assert found.facts


async def test_equal_texts_stay_apart_in_the_cross_encoder_recipe(being: Being) -> None:
    fact = next(fact for fact in being.facts.values() if "coffee in the kitchen" in fact.text)
    twin = replace(fact, uuid=being.mint("fact"))
    await being.client.save_facts([twin], {})
    from pps.index.indexes import IndexDoc

    await being.indexes.apply([IndexDoc("fact", twin.uuid, "facts", twin.text)])
    found = await being.client.search(
        "coffee kitchen", recipe="EDGE_HYBRID_SEARCH_CROSS_ENCODER", limit=10
    )
    assert {fact.uuid, twin.uuid} <= {one.uuid for one, _ in found.facts}


async def test_breadth_first_search_brings_what_the_words_do_not(being: Being) -> None:
    """As Graphiti asks: of PPS's hook, or of Neo4j, where it follows facts from subject to object alone."""
    guard, own = being.client.inside.guard, [being.entity.group]
    start = named(being, "Station 4").uuid
    found = await edge_bfs_search(guard, [start], 3, SearchFilters(), own, 20)
    wanted = {"The tram stops at station 5."}
    if not being.shared:
        wanted.add("The tram stops at station 4.")
    assert wanted <= {edge.fact for edge in found}
    episode = next(iter(being.episodes))
    found = await edge_bfs_search(guard, [episode], 3, SearchFilters(), own, 20)
    assert "Ana lives in Lisbon." in {edge.fact for edge in found}, (
        "an episode leads to what it mentions"
    )


async def test_graphitis_own_pipeline_searches_by_ids_in_all_facts(being: Being) -> None:
    guard = being.client.inside.guard

    async def found(**ids: list[str]) -> set[str]:
        edges = await edge_fulltext_search(
            guard, "tram stops at", SearchFilters(**ids), [being.entity.group], 20
        )
        return {edge.fact[-2] for edge in edges if "tram" in edge.fact}

    tram = sorted(
        (fact for fact in being.facts.values() if "tram" in fact.text), key=lambda fact: fact.text
    )
    assert await found() == {"0", "1", "2", "3", "4", "5"}, "one that has ended too"
    assert await found(edge_uuids=[tram[2].uuid]) == {"2"}
    ends = [tram[3].object, tram[3].subject]
    assert await found(edge_source_node_uuids=ends, edge_target_node_uuids=ends) == {"3"}


async def test_as_of_brings_what_held_then_and_by_default_what_holds_now(being: Being) -> None:
    async def found(**options: Any) -> set[str]:
        hits = (
            await being.client.search("tram stops at station", recipe=RRF, limit=20, **options)
        ).facts
        return {text[-2] for text in texts(hits) if "tram" in text}

    assert await found() == {"1", "2", "3", "4", "5"}, "the first has ended"
    assert await found(as_of=BEGAN + timedelta(days=2)) == {"0", "1", "2"}
    assert await found(as_of=BEGAN + timedelta(days=30)) == {"1", "2", "3", "4", "5"}, (
        "an end is not part of it"
    )
    assert await found(as_of=BEGAN - timedelta(days=1)) == set()
    with pytest.raises(InvalidRequest):
        await found(as_of=datetime(2025, 1, 1))  # noqa: DTZ001 - that is what is refused


async def test_every_filter_is_honoured(being: Being) -> None:
    async def found(**parts: Any) -> set[str]:
        filters, at = GraphFilters(**parts), BEGAN + timedelta(days=10)
        hits = await being.client.search(
            "tram stops at station", recipe=RRF, limit=20, filters=filters, as_of=at
        )
        return {fact.text[-2] for fact, _ in hits.facts if "tram" in fact.text}

    assert await found(relations=("LEADS_TO",)) == {"1", "3", "5"}
    assert await found(valid=(BEGAN + timedelta(days=2), BEGAN + timedelta(days=4))) == {"2", "3"}
    assert await found(valid=(None, BEGAN + timedelta(days=1))) == {"0"}
    assert await found(kinds=("Place",)) == set(), "both ends need a label"
    nodes = await being.client.search(
        "station", recipe="NODE_HYBRID_SEARCH_RRF", limit=20, filters=GraphFilters(kinds=("Place",))
    )
    assert {node.name for node, _ in nodes.nodes} == {"Station 1", "Station 3", "Station 5"}


async def test_bounds_are_kept_and_named(being: Being) -> None:
    search = being.client.search
    for wrong in (
        {"query": "", "recipe": RRF},
        {"query": "   ", "recipe": RRF},
        {"query": "x" * 8_001, "recipe": RRF},
        {"query": "x", "recipe": "edge_hybrid_search_rrf"},
        {"query": "x", "recipe": RRF, "limit": 0},
        {"query": "x", "recipe": RRF, "limit": 1_001},
        {"query": "x", "recipe": RRF, "limit": True},
        {
            "query": "x",
            "recipe": RRF,
            "filters": GraphFilters(kinds=("Place) DETACH DELETE n //",)),
        },
        {"query": "x", "recipe": RRF, "filters": GraphFilters(valid=(datetime(2025, 1, 1), None))},  # noqa: DTZ001
    ):
        with pytest.raises(InvalidRequest):
            await search(**wrong)  # type: ignore[arg-type]
    for text in (
        "x" * 8_000,
        "🦆" * 100,
        '"-+AND (OR) ~*?:\\/',
        "咖啡",
        "word " * 1_500,
        "\n\n\t\x00a",
    ):
        await search(text, recipe="COMBINED_HYBRID_SEARCH_RRF")
