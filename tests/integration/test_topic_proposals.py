"""Divergence is told only where a turn of some length is far from all before it; proposals change nothing."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from pps.features.topics.proposals import DreamRequest, consolidation, dream
from pps.features.topics.session_topics import divergence
from pps.features.topics.topic_values import Portfolio
from tests.integration.test_topics import APART, BOATS, BREAD, spaces_by_words, tell

if TYPE_CHECKING:
    from pps.app import App

__all__ = ["spaces_by_words"]
LONG = (
    "Rye dough rests overnight beside the warm oven.",
    "Knead the rye dough before heating the oven.",
    "Salt goes into the rye dough, then the oven.",
)
FAR = "Quarterly invoices overflow accounting spreadsheets everywhere."


async def test_a_turn_about_something_else_raises_alerts_and_a_short_or_near_one_none(
    app: App,
) -> None:
    await app.create("ana")
    async with app.memory("ana") as memory:
        sources = memory.topics.sources
        assert not (await divergence(sources, 2)).alerts
        await tell(memory, *LONG)
        await tell(memory, "Hot oven bakes the rye dough beautifully today.")
        assert not (await divergence(sources, 2)).alerts
        await tell(memory, "Invoices overflow.")
        assert not (await divergence(sources, 2)).alerts
        [turn] = await tell(memory, FAR)
        found = await divergence(sources, 2)
        assert {one.space for one in found.alerts} == {"E1", "E6", "E7"}
        assert {(one.severity, one.turn, one.summary) for one in found.alerts} == {
            ("high", turn, FAR)
        }
        assert not (await divergence(sources, 2, "another session")).alerts


async def test_proposals_change_nothing_and_a_dream_can_be_cut_short(app: App) -> None:
    await app.create("ana")
    async with app.memory("ana") as memory:
        sources = memory.topics.sources
        await tell(memory, *BREAD, *BOATS, *APART)
        again = "The rye dough went into the oven. Really."
        await memory.remember(again, session="t", extraction="none")
        before = await memory.stats()
        found = await consolidation(sources, Portfolio(()), "similarity", 0.9, 100)
        assert [(one.texts, one.reason) for one in found.pairs] == [
            (("The rye dough went into the oven.", again), "says the same")
        ]
        assert not (await consolidation(sources, Portfolio(()), "semantic", 0.9, 100)).pairs
        topics = await memory.topics.detect()
        assert (await consolidation(sources, topics, "semantic", 0.9, 100)).pairs
        dreamt = await dream(sources, DreamRequest())
        assert (dreamt.ended, dreamt.memories) == ("done", 10)
        assert not (await dream(sources, DreamRequest(skip_rem=True))).walks
        assert (await dream(sources, DreamRequest(max_duration_s=0))).ended == "time"
        task = asyncio.create_task(dream(sources, DreamRequest()))
        await asyncio.sleep(0)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        assert await memory.stats() == before


async def test_a_pack_tells_its_topics_and_divergence_and_nothing_where_nothing_is_relevant(
    app: App,
) -> None:
    await app.create("ana")
    async with app.memory("ana") as memory:
        await tell(memory, *BREAD, *BOATS)
        await memory.topics.detect()
        pack = await memory.sessions.inject("What about the rye dough in the oven?", 1_200)
        assert pack.sections["topics"] == 1
        assert "3 memories, emerging" in pack.text
        assert "keel" not in pack.text
        assert (
            "topics"
            not in (await memory.ambient_recall("What about the rye dough in the oven?")).sections
        )
        assert not (await memory.sessions.inject("Quarterly invoices overflow.", 1_200)).sections
        small = await memory.sessions.inject("What about the rye dough in the oven?", 100)
        assert small.tokens <= 100
