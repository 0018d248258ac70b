"""What an actor may not write of a pack's kinds, it reaches by no other door: forgetting, merging, undoing."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pps.app import App
from pps.core.errors import InvalidRequest
from pps.core.values import NodeDraft
from pps.records.records import Join
from pps.records.saving import RecordGiven, RelationGiven

if TYPE_CHECKING:
    from pps.config import Settings


async def test_an_actor_ends_no_relation_that_it_may_not_write(settings: Settings) -> None:
    async with App.open(settings) as app:
        await app.create("ana", packs=["constitution"])
        async with app.memory("ana") as ana:
            goal = RecordGiven(
                "Goal", "Run a marathon", "Before forty.", fields={"deadline": "2027-05-01"}
            )
            records = (
                await ana.records.save([goal, RecordGiven("Task", "Buy shoes", "That fit.")])
            ).records
            run, shoes = (one.record.id for one in records)
            said = await ana.remember("A shop.", nodes=[NodeDraft("The shop")])
            [shop] = (await ana.parts.client.mentioned_nodes([said.turn_id]))[said.turn_id]
            [serves], _ = await ana.records.join([Join(shoes, RelationGiven("SERVES", run))])
            stranger, plan = ana.by("stranger"), ana.by("plan")
            for ids in ([serves], [serves[:13]], [said.turn_id, serves]):
                for dry_run in (True, False):
                    with pytest.raises(InvalidRequest, match="'stranger' may not write Task"):
                        await stranger.forget(ids, dry_run=dry_run)
            with pytest.raises(InvalidRequest, match="'plan' may not write Task"):
                await plan.forget([serves], dry_run=False)
            assert [one.id for one in await ana.records.relations([run])] == [serves]
            assert shop in (await stranger.forget([said.turn_id], dry_run=False)).nodes
            assert (await ana.by("discuss").records.delete([run], dry_run=False)).facts == (serves,)
            assert not await ana.records.relations([shoes])


async def test_an_actor_merges_nothing_into_what_it_may_not_write(settings: Settings) -> None:
    async with App.open(settings) as app:
        await app.create("ana", packs=["constitution"])
        async with app.memory("ana") as ana:
            [goal] = (
                await ana.records.save(
                    [RecordGiven("Goal", "Run", "Far.", fields={"deadline": "2027-05-01"})]
                )
            ).records
            said = await ana.remember("A run.", nodes=[NodeDraft("A run")])
            [thing] = (await ana.parts.client.mentioned_nodes([said.turn_id]))[said.turn_id]
            merging = ana.by("stranger").records.merging
            for dry_run in (True, False):
                with pytest.raises(InvalidRequest, match="'stranger' may not write Goal"):
                    await merging.merge(goal.record.id, thing, dry_run=dry_run)
            done = await ana.by("discuss").records.merging.merge(
                goal.record.id, thing, dry_run=False
            )
            with pytest.raises(InvalidRequest, match="'stranger' may not write Goal"):
                await merging.undo(done.id)
            await ana.by("discuss").records.merging.undo(done.id)
