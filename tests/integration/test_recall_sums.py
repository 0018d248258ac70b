"""Weighted sums on real stores: semantic, hybrid with its ways from the anchor, the blend with its breakdown."""

from __future__ import annotations

import math
from datetime import timedelta
from itertools import pairwise
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from pps.core.errors import InvalidRequest
from pps.core.recalled import SearchStats
from pps.core.values import NodeDraft
from pps.journal.filters import ItemFilter
from pps.memory import Memory
from pps.operations.catalog import operations_for
from tests.integration.recall_scene import BLEND, START, by_name, sources, uuid_of


async def answered(memory: Memory, **arguments: Any) -> dict[str, Any]:
    """Return what the tool ``recall`` answers, as data."""
    verb = operations_for("entity")["recall"]
    data = (await verb.answer(memory, verb.parse(arguments))).data
    Draft202012Validator(verb.output_schema()).validate(data)
    return data


async def cosines(memory: Memory, query: str) -> dict[str, float]:
    """Return node → the cosine of its name and a query, of every node that there is, without any index."""
    found = sources(memory)
    assert found.embedder is not None
    names = [node.name for node in await found.client.scan_nodes("", 10_000)]
    near = found.embedder.embed_passages(names) @ found.embedder.embed_query(query)
    return dict(zip(names, map(float, near), strict=True))


async def test_semantic_scores_are_cosines_above_the_threshold_of_the_request(
    scene: Memory,
) -> None:
    strict = (await scene.recall("Mira", profile="semantic")).channels["nodes"]
    assert [hit.text.split(":")[0] for hit in strict.hits] == ["Mira"]
    assert strict.hits[0].score == pytest.approx(1.0, abs=0.01)
    assert strict.stats.avg_score == pytest.approx(strict.hits[0].score)

    loose = (await scene.recall("Mira", profile="semantic", min_similarity=-1.0)).channels["nodes"]
    assert len(loose.hits) > len(strict.hits)
    typed = await scene.recall(
        "Mira",
        profile="semantic",
        min_similarity=-1.0,
        filters=ItemFilter(kinds=("Person",)),
        channels=("nodes",),
    )
    assert set(by_name(typed["nodes"])) == {"Mira", "Tomas"}


async def test_the_average_of_nothing_is_nothing(scene: Memory) -> None:
    empty = (await scene.recall("zzz", profile="semantic")).channels["nodes"]

    assert empty.hits == ()
    assert empty.stats == SearchStats(0, None, 0)
    told = (await answered(scene, query="zzz", profile="semantic"))["channels"]
    assert [told[name]["stats"] for name in ("nodes", "facts")] == [
        {"total_results": 0, "avg_score": None, "token_estimate": 0}
    ] * 2


async def test_semantic_brings_exactly_what_is_as_near_as_asked_and_counts_it(
    scene: Memory,
) -> None:
    near = await cosines(scene, "Mira and Tomas")
    options: list[tuple[float, dict[str, Any]]] = [
        (0.7, {}),
        *((one, {"min_similarity": one}) for one in (0.3, -1.0)),
    ]
    for least, more in options:
        wanted = {name: max(0.0, cosine) for name, cosine in near.items() if cosine >= least}
        assert wanted

        nodes = (await scene.recall("Mira and Tomas", profile="semantic", **more)).channels["nodes"]

        assert {name: hit.score for name, hit in by_name(nodes.hits).items()} == pytest.approx(
            wanted, abs=1e-5
        )
        told = (await answered(scene, query="Mira and Tomas", profile="semantic", **more))[
            "channels"
        ]["nodes"]
        assert told["stats"] == {
            "total_results": len(wanted),
            "avg_score": pytest.approx(sum(wanted.values()) / len(wanted), abs=1e-5),
            "token_estimate": math.ceil(sum(len(hit["text"]) for hit in told["hits"]) / 3.5),
        }


async def test_semantic_brings_ten_unless_told_and_never_more_than_fifty(scene: Memory) -> None:
    await scene.remember("Lamps.", nodes=[NodeDraft(f"lamp {number}") for number in range(60)])

    async def found(**more: Any) -> int:
        told = await answered(
            scene, query="lamp", profile="semantic", min_similarity=-1, channels=["nodes"], **more
        )
        return told["channels"]["nodes"]["stats"]["total_results"]

    assert [await found(), await found(limit=1), await found(limit=50)] == [10, 1, 50]
    for profile in ("semantic", "hybrid"):
        with pytest.raises(
            InvalidRequest, match=f"limit: must be 1 to 50 with profile '{profile}'"
        ):
            await scene.recall("lamp", profile=profile, limit=51)
    for wrong in ({"limit": 0}, {"limit": 101}, {"min_similarity": 1.1}, {"min_similarity": -1.1}):
        with pytest.raises(InvalidRequest, match=next(iter(wrong))):
            await answered(scene, query="lamp", profile="semantic", **wrong)


async def test_hybrid_adds_structure_and_meaning_and_shows_the_way(scene: Memory) -> None:
    anchor = await uuid_of(scene, "Tomas")
    hits = by_name((await scene.recall("Oslo", profile="hybrid", center=anchor))["nodes"])

    assert hits["bakery"].signals["structural"] == 1.0
    assert hits["Oslo"].signals["structural"] == 0.5
    assert [(step.relation, step.name) for step in hits["Oslo"].path] == [
        ("OPENS", "bakery"),
        ("IN", "Oslo"),
    ]
    for hit in hits.values():
        assert hit.score == pytest.approx(
            0.6 * hit.signals.get("structural", 0) + 0.4 * hit.signals.get("dense", 0)
        )
        assert len(hit.path) == (
            1 / hit.signals["structural"] if "structural" in hit.signals else 0
        )
    assert (
        "Tomas" not in hits
    )  # the anchor is nothing that was looked for, unless meaning brings it
    assert [one.score >= other.score for one, other in pairwise(hits.values())] == [True] * (
        len(hits) - 1
    )


async def test_hybrid_goes_as_far_as_it_is_told_and_weighs_as_it_is_told(scene: Memory) -> None:
    anchor = await uuid_of(scene, "Tomas")
    near = by_name(
        (await scene.recall("flat", profile="hybrid", center=anchor, max_hops=1))["nodes"]
    )
    assert "Oslo" not in near
    meaning = (
        await scene.recall(
            "Oslo", profile="hybrid", center=anchor, weights={"structural": 0.0, "dense": 1.0}
        )
    )["nodes"]
    assert [hit.text for hit in meaning][:1] == ["Oslo"]
    assert meaning[0].score == pytest.approx(meaning[0].signals["dense"])


async def test_a_way_may_only_use_what_holds(scene: Memory) -> None:
    anchor = await uuid_of(scene, "Tomas")
    before = START + timedelta(days=10)  # the bakery is not yet spoken of

    hits = by_name(
        (await scene.recall("bakery", profile="hybrid", center=anchor, as_of=before))["nodes"]
    )
    assert "bakery" not in hits or hits["bakery"].path == ()


async def test_the_blend_shows_each_signal_and_their_weighted_mean(scene: Memory) -> None:
    anchor = await uuid_of(scene, "Mira")
    options = {"profile": "blended", "center": anchor, "as_of": START + timedelta(days=41)}
    hits = (await scene.recall("Mira grows roses #friend", channels=("nodes", "facts"), **options))[
        "nodes"
    ]

    assert {name for hit in hits for name in hit.signals} == set(BLEND)
    for hit in hits:
        assert all(0 <= signal <= 1 for signal in hit.signals.values())
        assert hit.score == pytest.approx(
            sum(BLEND[name] * signal for name, signal in hit.signals.items())
        )
    mira = by_name(hits)["Mira"]
    assert mira.signals["near_center"] == 1.0
    assert by_name(hits)["roses"].signals["near_center"] == 0.5


async def test_the_blend_renormalises_over_the_signals_that_apply(scene: Memory) -> None:
    hits = (
        await scene.recall(
            "Mira grows roses", profile="blended", weights={"near_center": 0, "recency": 0}
        )
    )["nodes"]

    for hit in hits:  # no tag is asked for, so meaning and words are all there is
        weighed = (0.4 * hit.signals.get("dense", 0) + 0.3 * hit.signals.get("bm25", 0)) / 0.7
        assert hit.score == pytest.approx(weighed)


async def test_a_candidate_keeps_its_cosine_though_only_words_found_it(scene: Memory) -> None:
    hits = (await scene.recall("Tarn", profile="blended", min_similarity=0.99))["nodes"]

    assert all("dense" in hit.signals for hit in hits)


async def test_ranks_say_why_where_ranks_are_joined(scene: Memory) -> None:
    best = (await scene.recall("roses"))["facts"][0]

    assert best.ranks
    assert best.signals == {}
    assert best.path == ()
