"""Correcting, undoing and the versions of anchors reach one entity alone."""

from __future__ import annotations

import pytest

from pps.ingest.correcting import RightFact
from tests.isolation.house import House, everything, outcome

pytestmark = pytest.mark.timeout(300)
NOBODY = "5b3c1a52-0000-4000-8000-000000000000"


async def test_a_fact_of_another_is_nobodys_to_correct(house: House) -> None:
    one, other, _ = house.all
    before = await everything(other)
    for verdict in ("never_true", "no_longer_true"):
        for right in (None, RightFact(object="Tea"), RightFact(object=other.mark)):
            answers = [
                await outcome(one.memory.correcting.correct(id_, verdict, right))
                for id_ in (other.fact, NOBODY)
            ]
            assert answers[0] == answers[1]
    assert await everything(other) == before


async def test_a_correction_of_what_both_know_changes_and_shows_ones_own_alone(
    house: House,
) -> None:
    one, other, _ = house.all
    before = await everything(other)
    [coffee] = [
        fact for fact in (await one.memory.timeline(limit=100)).facts if "drinks" in fact.text
    ]
    done = await one.memory.correcting.correct(coffee.uuid, "never_true", RightFact(object="Tea"))
    assert done.mentions.total
    assert house.seen(one, (done, done.mentions)) == []
    assert await everything(other) == before


async def test_what_another_changed_is_neither_seen_nor_undone(house: House) -> None:
    one, other, _ = house.all
    before = await everything(other)
    theirs = (await other.memory.undoing.list(limit=200)).edits
    assert {edit.kind for edit in theirs} == {"correction", "forgetting", "anchor"}
    assert house.seen(one, await one.memory.undoing.list(limit=200)) == []
    for edit in theirs:
        nobodys = "nothing@2" if edit.kind == "anchor" else NOBODY
        answers = [await outcome(one.memory.undoing.undo(id_)) for id_ in (edit.id, nobodys)]
        assert answers[0] == answers[1], edit
    assert await everything(other) == before
    own = await one.memory.undoing.undo(one.corrected)
    assert house.seen(one, own) == []
    assert await everything(other) == before
    for edit in theirs:
        await other.memory.undoing.undo(edit.id)


async def test_the_versions_of_anothers_anchor_are_nobodys(house: House) -> None:
    one, other, _ = house.all
    before = await everything(other)
    for slug in (other.edited, other.slug, "nothing", "../other/anchors/x"):
        for ask in (one.memory.anchor_versions(slug), one.memory.anchor_revert(slug, 1)):
            assert str(await outcome(ask)).startswith(("NotFound", "InvalidRequest: slug"))
    assert await everything(other) == before
    assert len(await other.memory.anchor_versions(other.edited)) == 2
    kitchen = [await each.memory.anchor_versions("kitchen") for each in house.all]
    for each, versions in zip(house.all, kitchen, strict=True):
        assert house.seen(each, versions) == []
