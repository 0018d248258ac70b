"""`why`: what became of each candidate of a recall, and why the expected one is not there, on both stores."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import cast
from uuid import uuid4

from pps.core.values import ChannelName, FactDraft
from pps.journal.filters import ItemFilter
from pps.memory import Memory
from pps.recall.request import RecallOptions
from pps.recall.why import WhyCandidate
from tests.integration.recall_scene import START, uuid_of

ROSES, TARN = "Mira grows roses.", "Tomas sold his flat in Tarn."


async def fact_of(memory: Memory, text: str) -> str:
    return next(
        hit.id
        for hit in (await memory.recall(text, channels=("facts",)))["facts"]
        if hit.text == text
    )


async def test_every_candidate_is_told_with_its_ranks_and_its_place(scene: Memory) -> None:
    recalled = await scene.recall("who grows roses?", limit=2)
    why = await scene.why("who grows roses?", limit=2)

    for name, channel in why.channels.items():
        shown = [one.id for one in channel.candidates if one.place]
        assert shown == [hit.id.split("#")[0] for hit in recalled[name]], name
        for one, hit in zip(channel.candidates, recalled[name], strict=False):
            assert (one.ranks, one.verdict) == (
                hit.ranks,
                f"shown at place {shown.index(one.id) + 1}",
            )
    facts = why.channels["facts"]
    assert (facts.limit, facts.found, facts.weights["bm25"]) == (2, 5, 1.0)
    cut = [one for one in facts.candidates if one.place is None]
    assert len(cut) == 3
    assert all("the limit of 2 cuts it" in one.verdict for one in cut)
    damped = await scene.why("who grows roses?", profile="ambient", channels=("facts",))
    [rose] = [one for one in damped.channels["facts"].candidates if one.text == ROSES]
    assert 0 < rose.factor < 1


async def test_what_the_floor_drops_is_told_apart_from_what_a_pack_shows(scene: Memory) -> None:
    asked = "When does the bakery of Tomas open?"
    recalled = await scene.recall(asked, profile="ambient")
    told = {
        one.id: one
        for one in (await scene.why(asked, profile="ambient")).channels["facts"].candidates
    }

    assert recalled.evidence
    for place, hit in enumerate(recalled["facts"], 1):
        assert told[hit.id].place == place
        dropped = hit.id not in recalled.evidence.shown
        assert told[hit.id].verdict.startswith(
            f"at place {place}, but below the floor" if dropped else "shown at"
        )
    assert {one.verdict.split()[0] for one in told.values()} >= {"at", "shown"}
    assert (
        "at place"
        in (await scene.why(asked, await fact_of(scene, ROSES), profile="ambient")).expected
    )


async def test_what_stands_before_a_better_score_is_told_why(scene: Memory) -> None:
    for number, words in enumerate(("Bergen, Ada does.", "Bodo.")):
        text = f"My sister Ada lives in the town of {words}"
        await scene.remember(text, actor="Mira", occurred_at=START + timedelta(days=60 + number))
    tea = FactDraft("Mira", "DRINKS", "tea", "Mira drinks tea in the kitchen.")
    await scene.remember(
        "Tea in the kitchen.", actor="Mira", facts=(tea,)
    )  # just now, the coffee long ago
    await scene.settled()

    async def first_of(query: str, channel: ChannelName, profile: str) -> WhyCandidate:
        told = await scene.why(query, channels=(channel,), profile=profile)
        first, second, *_ = told.channels[channel].candidates
        assert first.joined * first.factor < second.joined * second.factor
        return first

    latest = await first_of("Where does Ada live?", "episodes", "default")
    agreed = await first_of(
        "Mira drinks black coffee in the kitchen each morning.", "facts", "ambient"
    )
    assert latest.text.endswith("Bodo.")
    assert (
        latest.verdict == "shown at place 1, moved up: it is the latest that was said of one thing"
    )
    assert agreed.verdict == "shown at place 1, put first: it is first in every list"


async def test_of_the_expected_one_the_first_reason_is_told(scene: Memory) -> None:
    roses, mira = await fact_of(scene, ROSES), await uuid_of(scene, "Mira")

    async def expected(id: str, query: str = "roses", **options: object) -> str:
        return (await scene.why(query, id, **cast("RecallOptions", options))).expected

    assert await expected(roses) == "facts: shown at place 1"
    assert "nothing of this memory has that id" in await expected(str(uuid4()))
    assert "nothing of this memory has that id" in await expected("no-such-anchor")
    assert "no channel that was asked for holds those: facts" in await expected(
        mira, channels=("facts",)
    )
    late = ItemFilter(since=START + timedelta(days=30), relations=("GROWS",))
    assert "by the filter on since" in await expected(roses, filters=late)
    assert "below 1.0" in await expected(roses, "baker", profile="semantic", min_similarity=1.0)
    assert "Graphiti's own search" in await expected(roses, profile="EDGE_HYBRID_SEARCH_RRF")
    await scene.parts.indexes.apply([], [("facts", roses)])
    assert "not in the indexes yet" in await expected(roses, "tea", profile="e1_only")
    tarn = await fact_of(scene, TARN)
    held = (await scene.parts.client.facts([tarn]))[0]
    await scene.parts.client.save_facts([replace(held, invalid_at=START + timedelta(days=49))], {})
    assert "no longer holds" in await expected(tarn, "tea", channels=("facts",))
