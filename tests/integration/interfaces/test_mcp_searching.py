"""The profiles of rows S0-06 and S0-07 through the tool, on both stores: signals, ways, sums, bounds."""

from __future__ import annotations

import asyncio
import contextlib
import math
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

import pytest
from mcp.client.client import Client

from tests.integration.interfaces.every_tool import done, refused
from tests.integration.interfaces.serving import ERAS, Served
from tests.sampling import sample

pytestmark = pytest.mark.parametrize(
    "era", sample(ERAS, 1, "searching")
)  # every tool in each era: test_mcp_http

LAMPS = [f"lamp {number}" for number in range(60)]
CHAIN = [
    {
        "subject": "harbour",
        "relation": "NEAR",
        "object": "crane",
        "text": "The crane stands at the harbour.",
    },
    {
        "subject": "crane",
        "relation": "LOADS",
        "object": "barge",
        "text": "The crane loads the barge.",
    },
    {
        "subject": "barge",
        "relation": "GOES_TO",
        "object": "mill",
        "text": "The barge goes to the mill.",
    },
]

WRONG: list[tuple[dict[str, Any], str]] = [
    ({"profile": "semantic", "limit": 51}, "limit: must be 1 to 50 with profile 'semantic'"),
    ({"profile": "hybrid", "limit": 51}, "limit: must be 1 to 50 with profile 'hybrid'"),
    ({"profile": "semantic", "limit": 0}, "limit"),
    ({"profile": "semantic", "min_similarity": 1.1}, "min_similarity"),
    ({"profile": "semantic", "filters": {"layers": ["cellar"]}}, "filters.layers"),
    ({"profile": "semantic", "filters": {"status": ["x"] * 51}}, "filters.status"),
    ({"profile": "semantic", "include_relationships": "maybe"}, "include_relationships"),
    ({"profile": "hybrid", "max_hops": 5}, "max_hops"),
    ({"profile": "hybrid", "weights": {"structural": -1.0}}, "weights"),
    ({"profile": "hybrid", "weights": {"magic": 1.0}}, "weights"),
]


@dataclass(frozen=True, slots=True)
class Asking:
    """A client whose memory holds a chain of places, a lantern beside it, and sixty lamps."""

    client: Client
    anchor: str

    async def nodes(self, query: str, profile: str, **more: object) -> dict[str, Any]:
        """Return the nodes channel of the tool's answer."""
        told = await done(
            self.client, "recall", query=query, profile=profile, channels=["nodes"], **more
        )
        assert told["profile"] == profile
        assert list(told["channels"]) == ["nodes"]
        return told["channels"]["nodes"]

    async def hybrid(self, **more: object) -> dict[str, dict[str, Any]]:
        """Return name → hit of a hybrid search for a lantern around the harbour."""
        found = await self.nodes("lantern", "hybrid", center=self.anchor, **more)
        return {hit["title"]: hit for hit in found["hits"]}


@contextlib.asynccontextmanager
async def filled(either: Served, era: str) -> AsyncIterator[Asking]:
    """Connect to an entity that holds the scene; what it holds already is not stored twice."""
    async with either.client(either.create(f"searcher_{ERAS.index(era)}"), era) as client:
        nodes = [
            {"name": "lantern", "kind": "Lamp"},
            {"name": "harbour", "kind": "Place"},
            {"name": "keep the quay", "kind": "Goal", "attributes": {"status": "active"}},
            {"name": "sell the quay", "kind": "Goal", "attributes": {"status": "archived"}},
            {"name": "paint the quay", "kind": "Task", "attributes": {"status": "active"}},
        ]
        kept = await done(
            client, "remember", content="The quay.", source_ref="1", nodes=nodes, facts=CHAIN
        )
        await done(
            client,
            "remember",
            content="Lamps.",
            source_ref="2",
            nodes=[{"name": one} for one in LAMPS],
        )
        while (await done(client, "stats"))["unfinished_jobs"]:  # noqa: ASYNC110 - another process works
            await asyncio.sleep(0.05)
        assert kept["state"] in ("done", "accepted", "duplicate")
        [fact] = [
            one for one in (await done(client, "timeline"))["facts"] if one["relation"] == "NEAR"
        ]
        yield Asking(client, fact["subject"])


def assert_stats(channel: dict[str, Any]) -> None:
    """Hold the stats to the hits they are of."""
    hits = channel["hits"]
    assert channel["stats"] == {
        "total_results": len(hits),
        "avg_score": pytest.approx(sum(hit["score"] for hit in hits) / len(hits), abs=1e-5),
        "token_estimate": math.ceil(sum(len(hit["text"]) for hit in hits) / 3.5),
    }


async def test_hybrid_tells_both_signals_their_sum_and_the_way(either: Served, era: str) -> None:
    async with filled(either, era) as asking:
        channel = await asking.nodes("lantern", "hybrid", center=asking.anchor)
        hits = {hit["title"]: hit for hit in channel["hits"]}

        assert_stats(channel)
        assert {name: hit["signals"].get("structural") for name, hit in hits.items()} == {
            "crane": 1.0,
            "barge": 0.5,
            "lantern": None,
        }
        assert hits["lantern"]["signals"]["dense"] == pytest.approx(1.0, abs=0.001)
        for hit in hits.values():
            signals = hit["signals"]
            assert 0 <= signals["dense"] <= 1
            assert hit["score"] == pytest.approx(
                0.6 * signals.get("structural", 0) + 0.4 * signals["dense"], abs=1e-4
            )
        assert [hit["score"] for hit in channel["hits"]] == sorted(
            (hit["score"] for hit in hits.values()), reverse=True
        )
        ways = {
            name: [(step["relation"], step["name"]) for step in hit.get("path") or ()]
            for name, hit in hits.items()
        }
        assert ways == {
            "crane": [("NEAR", "crane")],
            "barge": [("NEAR", "crane"), ("LOADS", "barge")],
            "lantern": [],
        }
        assert [step["node"] for step in hits["barge"]["path"]] == [
            hits["crane"]["id"],
            hits["barge"]["id"],
        ]


async def test_hybrid_takes_its_weights_depth_threshold_and_length_from_the_caller(
    either: Served, era: str
) -> None:
    async with filled(either, era) as asking:
        assert set(await asking.hybrid(max_hops=1)) == {"crane", "lantern"}
        assert (await asking.hybrid(max_hops=3))["mill"]["signals"]["structural"] == pytest.approx(
            1 / 3, abs=1e-4
        )
        assert set(await asking.hybrid(limit=1)) <= {"crane", "lantern"}
        assert set(await asking.hybrid(min_similarity=-1.0, limit=50)) > {
            "crane",
            "barge",
            "lantern",
            "lamp 1",
        }
        weighed = await asking.hybrid(weights={"structural": 1.0, "dense": 3.0})
        assert next(iter(weighed)) == "lantern"
        for hit in weighed.values():
            signals = hit["signals"]
            assert hit["score"] == pytest.approx(
                (signals.get("structural", 0) + 3 * signals["dense"]) / 4, abs=1e-4
            )


async def test_semantic_is_cosine_above_the_threshold_with_its_sums(
    either: Served, era: str
) -> None:
    async with filled(either, era) as asking:
        channel = await asking.nodes("lantern", "semantic")
        assert [hit["title"] for hit in channel["hits"]] == ["lantern"]
        [hit] = channel["hits"]
        assert hit["score"] == pytest.approx(1.0, abs=0.001)
        assert hit["signals"] == {"dense": pytest.approx(hit["score"], abs=1e-4)}
        assert_stats(channel)

        loose = await asking.nodes("lantern", "semantic", min_similarity=-1.0, limit=50)
        assert_stats(loose)
        typed = await asking.nodes(
            "lantern", "semantic", min_similarity=-1.0, filters={"kinds": ["Place", "Lamp"]}
        )
        assert {hit["title"] for hit in typed["hits"]} == {"lantern", "harbour"}
        empty = await asking.nodes("lantern", "semantic", filters={"kinds": ["Nothing"]})
        assert (empty["hits"], empty["stats"]) == (
            [],
            {"total_results": 0, "avg_score": None, "token_estimate": 0},
        )


async def test_semantic_is_held_to_layers_and_statuses_before_it_ranks(
    either: Served, era: str
) -> None:
    async with filled(either, era) as asking:

        async def brought(**filters: object) -> set[str]:
            found = await asking.nodes("lamp 7", "semantic", min_similarity=-1.0, filters=filters)
            return {hit["title"] for hit in found["hits"]}

        assert await brought(layers=["vision"]) == {"keep the quay", "sell the quay"}
        assert await brought(layers=["vision", "execution"]) == {
            "keep the quay",
            "sell the quay",
            "paint the quay",
        }
        assert await brought(status=["active"]) == {"keep the quay", "paint the quay"}
        assert await brought(layers=["vision"], status=["active"]) == {"keep the quay"}
        assert await brought(layers=["vision"], kinds=["Task"]) == set()
        assert await brought(layers=["mind"]) == set()


async def test_relationships_come_with_their_nodes_where_they_are_asked_for(
    either: Served, era: str
) -> None:
    async with filled(either, era) as asking:
        asked = {"query": "harbour crane", "profile": "semantic", "min_similarity": -1.0}
        plain = await asking.nodes(**asked)
        assert {hit.get("relationships") for hit in plain["hits"]} == {None}
        joined = await asking.nodes(**asked, include_relationships=True)
        assert [hit["id"] for hit in joined["hits"]] == [hit["id"] for hit in plain["hits"]]
        ways = {
            hit["title"]: {
                (one["subject_name"], one["relation"], one["object_name"])
                for one in hit["relationships"]
            }
            for hit in joined["hits"]
            if hit.get("relationships")
        }
        near, loads = ("harbour", "NEAR", "crane"), ("crane", "LOADS", "barge")
        assert ways["crane"] == {near, loads}
        assert ways["harbour"] == {near}
        assert not any(name.startswith("lamp") for name in ways)


async def test_semantic_brings_ten_unless_told_and_refuses_more_than_fifty(
    either: Served, era: str
) -> None:
    async with filled(either, era) as asking:

        async def brought(**more: object) -> int:
            return len(
                (await asking.nodes("lamp", "semantic", min_similarity=-1.0, **more))["hits"]
            )

        assert [await brought(), await brought(limit=1), await brought(limit=50)] == [10, 1, 50]


async def test_a_bound_that_is_broken_is_said_with_its_field(either: Served, era: str) -> None:
    async with filled(either, era) as asking:
        for wrong, said in WRONG:
            answer = await refused(asking.client, "recall", query="lamp", **wrong)
            assert said in answer
            assert "\n" not in answer
