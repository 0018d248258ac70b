"""``scripts/bench scale`` on a memory of a hundred facts: every section is measured, and the report says so."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import numpy as np
import pytest

from benchmarks import scale_report
from benchmarks.generator import FACTS_A_TURN, World, node_name
from benchmarks.latency import percentiles
from benchmarks.probe import Asked, asked, bench_embedder
from benchmarks.scale import Plan, scale
from pps.app import App
from pps.config import load
from pps.core.errors import InvalidRequest
from pps.core.time import now
from pps.models.bert import BertEmbedder

TURNS = [(number, f"Turn {number}.") for number in range(12)]


def test_a_world_is_the_same_each_time_and_does_not_depend_on_its_size() -> None:
    assert list(World(3).turns(4, 6)) == list(World(3).turns(0, 8))[4:6]
    assert list(World(3).turns(0, 1)) != list(World(4).turns(0, 1))
    assert World(3).questions(5, 20) == World(3).questions(5, 20)
    assert len({node_name(number) for number in range(5_000)}) == 5_000
    assert all(len(World(3).facts(number)) == FACTS_A_TURN for number in range(20))


def test_the_vectors_of_a_world_lie_in_clusters_and_are_the_same_for_the_same_seed() -> None:
    turns = range(0, 288, 12)  # two of each of twelve sessions
    facts = [fact.text for number in turns for fact in World(7).facts(number)]
    draw, words = (
        np.random.default_rng(7),
        sorted({word for fact in facts for word in fact.split()}),
    )
    embedder = BertEmbedder()
    vectors = embedder.embed_passages(facts)
    salad = embedder.embed_passages(
        [" ".join(draw.choice(words, len(fact.split()))) for fact in facts]
    )
    noise = draw.standard_normal(vectors.shape)
    noise /= np.linalg.norm(noise, axis=1, keepdims=True)

    assert _nearest(vectors) > 3 * _nearest(noise)
    assert _nearest(vectors) > _nearest(salad) + 0.05
    assert np.allclose(
        embedder.embed_passages([fact.text for fact in World(7).facts(12)]), vectors[4:8], atol=1e-3
    )
    assert not set(facts) & {fact.text for number in turns for fact in World(8).facts(number)}


def _nearest(vectors: np.ndarray) -> float:
    """Return how near a vector's nearest neighbour is, on average (cosine)."""
    near = vectors @ vectors.T
    np.fill_diagonal(near, -1)
    return float(near.max(axis=1).mean())


def test_percentiles_are_times_that_were_measured() -> None:
    found = percentiles([float(number) for number in range(1, 101)])
    assert found == {"p50": 50.0, "p95": 95.0, "p99": 99.0, "calls": 100}
    assert percentiles([7.0])["p99"] == 7.0


@pytest.mark.parametrize("plan", [Plan(only=("speed",)), Plan(sizes=(10,)), Plan(calls=0)])
def test_an_option_that_means_nothing_is_refused_before_anything_is_made(
    plan: Plan, tmp_path: Path
) -> None:
    with pytest.raises(InvalidRequest):
        asyncio.run(scale(plan, "", {"PPS_HOME": str(tmp_path)}, lambda *_: None))
    assert not any(tmp_path.iterdir())


async def test_ambient_recall_is_timed_as_hooks_ask_it_within_a_session_for_which_what_it_was_shown_is_noted(
    tmp_path: Path,
) -> None:
    began = now()
    env = {"PPS_HOME": str(tmp_path / "home"), "PPS_EMBEDDER__NAME": "hash"}
    async with App.open(load(env=env), embedder=bench_embedder(env)) as app:
        await app.create("ana")
        async with app.memory("ana") as memory:
            await memory.remember_many(
                [(turn, {"facts": World(3).facts(number)}) for number, turn in TURNS]
            )
            assert await memory.settled(60)
        await app.close_all()
        wanted = Asked("ana", seed=3, turns=len(TURNS), calls=2, parts=("latency",))
        found = (await asyncio.to_thread(asked, wanted, env))["latency"]
        async with app.memory("ana") as memory:
            shown = await memory.parts.journal.given.times_shown("live", began)
    assert shown
    assert [
        found["ambient_recall_by_clients"][clients]["calls"] for clients in ("1", "4", "8")
    ] == [2, 2, 2]


async def test_recall_filters_and_edges_are_measured_on_one_memory_beside_stock_graphiti(
    tmp_path: Path,
) -> None:
    plan = Plan(sizes=(100,), middle=100, only=("recall", "filters", "edges", "nearest"), calls=2)
    env = {"PPS_HOME": str(tmp_path / "home"), "PPS_EMBEDDER__NAME": "hash"}
    found = await scale(plan, "embedded", env, lambda *_: None)

    assert found["command"] == (
        "scripts/bench scale --sizes 100 --middle 100 --only recall,filters,edges,nearest --calls 2 --store embedded"
    )
    recall = found["recall"]["100"]
    assert recall["latency"]["ambient_recall_by_clients"]["8"]["calls"] == 2
    assert recall["memory_mib"]["in_use"] > 50
    assert set(recall["beside"]) == {"facts", "dense-alone", "bm25-alone", "stock_search"}
    for way in recall["beside"].values():
        assert [way["by_clients"][clients]["calls"] for clients in ("1", "4", "8")] == [2, 2, 2]
        assert way["cold_ms"]["p50"] > 0
    assert found["filters"]["by_tag"]["share90"]["fewest_results"] == 10
    assert found["edges"]["stock_graphiti"]["p50"] > 0
    assert found["nearest"]["vectors"] == 100
    for kind in ("scan", "graph"):
        assert found["nearest"][kind]["query_ms"] > 0
        assert [found["nearest"][kind][probe] for probe in ("naming", "vague", "near_a_fact")] == [
            1.0,
            1.0,
            1.0,
        ]
    page = scale_report.markdown(found, "scale")
    assert found["command"] in page
    assert "times faster" in page
    assert not (tmp_path / "home").exists()
    json.dumps(found)
