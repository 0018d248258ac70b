"""Topics, their snapshots and what is proposed of them are one entity's own."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from pps.core.time import now
from pps.core.values import NodeDraft
from pps.features.topics import calibration
from pps.features.topics.proposals import DreamRequest, consolidation, dream
from pps.features.topics.session_topics import divergence
from pps.features.topics.topic_values import Portfolio
from pps.ingest.drafts import RememberOptions
from pps.journal.topic_rows import Phrases, Place
from tests.integration.test_topics import BOATS, BREAD, spaces_by_words, tell

if TYPE_CHECKING:
    from pps.app import App

__all__ = ["spaces_by_words"]
pytestmark = pytest.mark.timeout(300)


@pytest.mark.beside_the_graph
async def test_topics_of_one_entity_hold_and_change_nothing_of_anothers(app: App) -> None:
    for name in ("ana", "ben"):
        await app.create(name)
    async with app.memory("ana") as ana, app.memory("ben") as ben:
        await tell(ana, *BREAD)
        theirs = await tell(ben, *BREAD, *BOATS)
        before = await ben.topics.detect()
        found = await ana.topics.detect()
        assert len(found.topics) == 1
        assert not {one for topic in found.topics for one in topic.members} & set(theirs)
        assert not {one.id for one in found.topics} & {one.id for one in before.topics}
        await ana.topics.detect(force=True)
        after = await ben.topics.portfolio()
        assert [(one.id, one.members) for one in after.topics] == [
            (one.id, one.members) for one in before.topics
        ]


async def test_names_of_topics_come_from_own_turns_and_own_nodes_alone(app: App) -> None:
    for name in ("ana", "ben"):
        await app.create(name)
    async with app.memory("ana") as ana, app.memory("ben") as ben:
        await tell(ana, *BREAD, *BOATS)
        theirs = await tell(ben, *(f"{one} kanarie kanarie" for one in (*BREAD, *BOATS)))
        await ben.remember("Keel paint is ours.", nodes=[NodeDraft("keel paint", "Secret")])
        found = await ana.topics.detect()
        told = await ben.topics.detect()
        assert "kanarie" in str(told)
        assert "kanarie" not in str(found)
        own = await ana.topics.sources.journal.topics.phrases()
        assert own
        assert not [place for some in own.values() for place in some if place.turn in theirs]
        # Places in another's turns are not kept, whoever asks for it, and name nothing.
        rows = ana.topics.sources.journal.topics
        forged: Phrases = {(topic.id, "name"): [Place(theirs[0], 0, 40)] for topic in found.topics}
        await rows.keep(now(), await rows.snapshot(found.at or now()), forged)
        assert await rows.phrases() == {}
        assert "kanarie" not in str(await ana.topics.portfolio())


async def test_what_one_entity_measured_holds_for_it_alone(app: App) -> None:
    for name in ("ana", "ben"):
        await app.create(name)
    async with app.memory("ana") as ana, app.memory("ben") as ben:
        for memory, texts in ((ana, BREAD), (ben, BOATS)):
            for session in ("s", "t"):
                drafts = [
                    (f"{text} {n}", RememberOptions(session=session))
                    for n in range(7)
                    for text in texts
                ]
                await memory.remember_many(drafts)
            await memory.settled()
        shipped = await calibration.states(ben.topics.sources)
        measured = await calibration.calibrate(ana.topics.sources)
        assert {one.measured for one in measured.perspectives if one.name in ("dense", "bm25")} == {
            "here"
        }
        assert await calibration.states(ben.topics.sources) == shipped
        theirs = await calibration.calibrate(ben.topics.sources)
        await calibration.uncalibrate(ana.topics.sources)
        assert await calibration.states(ana.topics.sources) == shipped
        assert replace(theirs, read=0) == await calibration.states(ben.topics.sources)


async def test_alerts_dreams_and_proposals_of_one_entity_know_nothing_of_anothers(app: App) -> None:
    for name in ("ana", "ben"):
        await app.create(name)
    async with app.memory("ana") as ana, app.memory("ben") as ben:
        await tell(ana, *BREAD)
        theirs = await tell(ben, *(f"{one} kanarie" for one in (*BREAD, *BOATS)))
        sources = ana.topics.sources
        told = [
            await consolidation(sources, Portfolio(()), "similarity", 0.0, 2_000),
            await consolidation(sources, await ben.topics.detect(), "semantic", 0.0, 2_000),
            await dream(sources, DreamRequest()),
            await divergence(sources, 48, "s"),
        ]
        assert "kanarie" not in str(told)
        assert not [one for one in theirs if one in str(told)]


async def test_what_one_entitys_packs_explore_and_what_it_knows_by_kind_is_never_anothers(
    app: App,
) -> None:
    for name in ("ana", "ben"):
        await app.create(name)
    async with app.memory("ana") as ana, app.memory("ben") as ben:
        await tell(ana, *BREAD)
        theirs = await tell(ben, *(f"{one} kanarie" for one in (*BREAD, *BOATS)))
        secret = "Kanarienvogel was what we chose."
        await ben.remember(
            secret, nodes=[NodeDraft("Kanarienvogel", "ORM", "kanarie")], importance=1.0
        )
        for memory in (ana, ben):
            await memory.topics.detect()
        for seed in range(5):
            ana.topics.injecting.chance.seed(seed)
            pack = await ana.sessions.inject("rye dough in the oven", 2_000, "s", explore=True)
            assert "kanarie" not in pack.text.lower()
            assert not {*theirs} & {*pack.shown}
        assert await ana.parts.journal.of_kinds_in("which ORM do we use", 8) == []
        assert (
            await ana.parts.journal.mentioning(
                await ben.parts.journal.of_kinds_in("which ORM", 8), 50
            )
            == {}
        )
        found = await ana.recall("which ORM do we use", profile="multi_space")
        assert "kanarie" not in str(found).lower()
        features = await ana.parts.journal.select("SELECT item FROM features")
        assert not [one for one in features if one[0] in theirs]
