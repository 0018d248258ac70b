"""Correcting a fact: never true and no longer true are two things, words agree with ends, and undoing leaves no trace."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import UTC, date, datetime, timedelta
from typing import TYPE_CHECKING

import pytest

from pps.core.errors import InvalidRequest, NotFound
from pps.core.time import coarse, now
from pps.core.values import Fact, FactDraft
from pps.ingest.correcting import RightFact, was_never_true

if TYPE_CHECKING:
    from pps.app import App
    from pps.memory import Memory

BEGAN = datetime(2026, 1, 5, tzinfo=UTC)


@pytest.fixture
async def ana(app: App) -> AsyncIterator[Memory]:
    await app.create("ana")
    async with app.memory("ana") as memory:
        yield memory


async def lives_in(memory: Memory, place: str, began: datetime | None = BEGAN) -> str:
    draft = FactDraft("Ana", "LIVES_IN", place, f"Ana lives in {place}.", valid_at=began)
    await memory.remember(f"Ana said: I live in {place}.", facts=[draft], extraction="none")
    return await fact_named(memory, place)


async def fact_named(memory: Memory, name: str) -> str:
    [fact] = [one for one in (await memory.timeline(limit=100)).facts if name in one.text]
    return fact.uuid


async def fact(memory: Memory, id: str) -> Fact:
    [found] = await memory.parts.client.facts([id])
    return found


async def held_at(memory: Memory, moment: datetime) -> list[str]:
    return [one.text for one in (await memory.timeline(as_of=moment)).facts]


async def test_what_was_never_true_held_at_no_time_and_what_is_no_longer_true_did(
    ana: Memory,
) -> None:
    later = BEGAN + timedelta(days=30)
    lisbon = await lives_in(ana, "Lisbon")
    done = await ana.correcting.correct(lisbon, "no_longer_true", since=coarse(date(2026, 3, 1)))
    assert done.state == "done"
    assert await held_at(ana, later) == ["Ana lives in Lisbon."]
    assert await held_at(ana, now()) == []
    assert (await fact(ana, lisbon)).invalid_at == datetime(2026, 3, 1, tzinfo=UTC)
    await ana.forget([done.turn_id], dry_run=False, soft=True)
    assert (await fact(ana, lisbon)).invalid_at is None
    await ana.correcting.correct(lisbon, "never_true")
    assert await held_at(ana, later) == []
    assert await held_at(ana, now()) == []
    assert was_never_true(await fact(ana, lisbon))
    found = await ana.recall("Ana lives in Lisbon", channels=["facts"])
    assert "Ana lives in Lisbon." not in [hit.text for hit in found["facts"]]


async def test_the_right_fact_takes_the_whole_time_of_one_that_was_never_true(ana: Memory) -> None:
    lisbon = await lives_in(ana, "Lisbon")
    done = await ana.correcting.correct(lisbon, "never_true", RightFact(object="Porto"))
    right = await fact(ana, done.right)
    assert (right.text, right.valid_at) == ("Ana lives in Porto.", BEGAN)
    assert await held_at(ana, BEGAN + timedelta(days=1)) == ["Ana lives in Porto."]


async def test_the_right_fact_begins_where_one_that_is_no_longer_true_ends(ana: Memory) -> None:
    lisbon = await lives_in(ana, "Lisbon")
    moved = datetime(2026, 4, 1, tzinfo=UTC)
    await ana.correcting.correct(lisbon, "no_longer_true", RightFact(object="Porto"), since=moved)
    assert await held_at(ana, BEGAN + timedelta(days=1)) == ["Ana lives in Lisbon."]
    assert await held_at(ana, moved) == ["Ana lives in Porto."]


@pytest.mark.parametrize("verdict", ["never_true", "no_longer_true"])
@pytest.mark.parametrize("right", [None, RightFact(object="Porto")])
async def test_a_mistaken_correction_that_is_undone_leaves_the_true_fact_open(
    ana: Memory, verdict: str, right: RightFact | None
) -> None:
    lisbon = await lives_in(ana, "Lisbon")
    before = await fact(ana, lisbon)
    done = await ana.correcting.correct(lisbon, verdict, right)  # pyright: ignore[reportArgumentType]
    assert (await fact(ana, lisbon)).invalid_at is not None
    undone = await ana.forget([done.turn_id], dry_run=False, soft=True)
    assert await fact(ana, lisbon) == before
    assert await held_at(ana, now()) == ["Ana lives in Lisbon."]
    await ana.forgetting.restore(undone.restorable_as)
    assert (await fact(ana, lisbon)).invalid_at is not None
    await ana.forget([done.turn_id], dry_run=False)
    assert await fact(ana, lisbon) == before


async def test_what_was_never_true_ends_nothing_any_more(ana: Memory) -> None:
    lisbon = await lives_in(ana, "Lisbon")
    porto = await lives_in(ana, "Porto", BEGAN + timedelta(days=60))
    assert (await fact(ana, lisbon)).invalid_at is not None
    done = await ana.correcting.correct(porto, "never_true")
    assert (await fact(ana, lisbon)).invalid_at is None
    assert await held_at(ana, now()) == ["Ana lives in Lisbon."]
    await ana.forget([done.turn_id], dry_run=False, soft=True)
    assert (await fact(ana, lisbon)).invalid_at is not None
    assert (await fact(ana, porto)).invalid_at is None


async def test_what_is_said_again_later_holds_again(ana: Memory) -> None:
    lisbon = await lives_in(ana, "Lisbon")
    await ana.correcting.correct(lisbon, "never_true")
    await ana.remember(
        "I live in Lisbon now.",
        facts=[FactDraft("Ana", "LIVES_IN", "Lisbon", "Ana lives in Lisbon.")],
        occurred_at=now() + timedelta(seconds=1),
        extraction="none",
    )
    open_facts = [one for one in (await ana.timeline()).facts if one.invalid_at is None]
    assert [one.text for one in open_facts] == ["Ana lives in Lisbon."]
    assert was_never_true(await fact(ana, lisbon))


@pytest.mark.parametrize(
    ("right", "field", "said"),
    [
        (RightFact(text="Ana lives in Porto."), "text", "does not name the object 'Lisbon'"),
        (RightFact(text="Bob lives in Lisbon."), "text", "does not name the subject 'Ana'"),
        (
            RightFact(object="Porto", text="Ana lives in Lisbon."),
            "text",
            "does not name the object 'Porto'",
        ),
        (RightFact(relation="WORKS_IN"), "text", "must be given with another relation"),
        (RightFact(text="Ana lives in Lisbon."), "text", "says what the fact says already"),
        (RightFact(object="x" * 501), "facts[0].object", "500"),
    ],
)
async def test_words_that_contradict_a_field_are_refused_by_its_name(
    ana: Memory, right: RightFact, field: str, said: str
) -> None:
    lisbon = await lives_in(ana, "Lisbon")
    before = await ana.stats()
    with pytest.raises(InvalidRequest) as refused:
        await ana.correcting.correct(lisbon, "never_true", right)
    assert field in str(refused.value)
    assert said in str(refused.value)
    assert await ana.stats() == before
    assert (await fact(ana, lisbon)).invalid_at is None


async def test_subject_and_relation_are_changed_and_the_words_with_a_name(ana: Memory) -> None:
    lisbon = await lives_in(ana, "Lisbon")
    done = await ana.correcting.correct(lisbon, "never_true", RightFact(subject="Bob"))
    assert (await fact(ana, done.right)).text == "Bob lives in Lisbon."
    right = RightFact(relation="WORKS_IN", text="Bob works in Lisbon.")
    done = await ana.correcting.correct(done.right, "never_true", right)
    assert (await fact(ana, done.right)).relation == "WORKS_IN"
    [bob] = await ana.get(["Bob"])
    assert (await fact(ana, done.right)).subject == bob.uuid


async def test_a_correction_says_what_still_says_the_old_thing(ana: Memory) -> None:
    lisbon = await lives_in(ana, "Lisbon")
    await ana.remember("Since ana lives in Lisbon, we met there.", extraction="none")
    await ana.remember("Lisbon is sunny.", extraction="none")
    await ana.anchor_save("Where", "Ana: Lisbon.")
    done = await ana.correcting.correct(lisbon, "never_true", RightFact(object="Porto"))
    assert [item.text for item in done.mentions.items] == [
        "user: Ana said: I live in Lisbon.",
        "user: Since ana lives in Lisbon, we met there.",
        "Where",
    ]


async def test_a_correction_of_what_somebody_said_of_themselves_names_what_still_says_so(
    ana: Memory,
) -> None:
    for text in (
        "I live in Utrecht.",
        "I still love living in Utrecht, the canals are great.",
        "Cork is rainy.",
    ):
        await ana.remember(text)
    [utrecht] = [fact for fact in (await ana.timeline()).facts if fact.relation == "LIVES_IN"]
    done = await ana.correcting.correct(utrecht.uuid, "never_true", RightFact(object="Leiden"))
    assert done.mentions.names == ("Utrecht",)
    assert [item.text for item in done.mentions.items if item.kind == "turn"] == [
        "user: I live in Utrecht.",
        "user: I still love living in Utrecht, the canals are great.",
    ]


async def test_another_end_that_the_sentence_does_not_name_is_refused_with_the_fact_s_ends(
    ana: Memory,
) -> None:
    await ana.remember("My boss is Petra.")
    petra = await fact_named(ana, "Petra")
    with pytest.raises(InvalidRequest, match="the fact is Petra BOSS_OF User"):
        await ana.correcting.correct(petra, "never_true", RightFact(object="Mirjam"))
    done = await ana.correcting.correct(petra, "never_true", RightFact(subject="Mirjam"))
    assert (await fact(ana, done.right)).text == "My boss is Mirjam."


async def test_what_cannot_be_corrected_is_refused_and_changes_nothing(ana: Memory) -> None:
    lisbon = await lives_in(ana, "Lisbon")
    cases = (
        (lisbon, "no_longer_true", coarse(date(2025, 1, 1)), "since: lies before the fact began"),
        (lisbon, "never_true", coarse(date(2026, 1, 1)), "since: is for what is right instead"),
    )
    for id_, verdict, since, said in cases:
        with pytest.raises(InvalidRequest, match=said):
            await ana.correcting.correct(id_, verdict, since=since)  # pyright: ignore[reportArgumentType]
    [node] = await ana.get(["Lisbon"])
    for absent in (node.uuid, "5b3c1a52-0000-4000-8000-000000000000"):
        with pytest.raises(NotFound):
            await ana.correcting.correct(absent, "never_true")
    assert (await fact(ana, lisbon)).invalid_at is None
    await ana.correcting.correct(lisbon, "no_longer_true")
    with pytest.raises(InvalidRequest, match="has ended already"):
        await ana.correcting.correct(lisbon, "no_longer_true")
    await ana.correcting.correct(lisbon, "never_true")
    with pytest.raises(InvalidRequest, match="never to have been true"):
        await ana.correcting.correct(lisbon, "never_true")


async def test_a_day_in_which_a_fact_began_ends_it_after_it_began(ana: Memory) -> None:
    lisbon = await lives_in(ana, "Lisbon", None)
    today = coarse(now().date())
    await ana.correcting.correct(lisbon, "no_longer_true", since=today)
    ended = await fact(ana, lisbon)
    assert ended.invalid_at is not None
    assert ended.valid_at is not None
    assert ended.invalid_at > ended.valid_at
    assert not was_never_true(ended)
