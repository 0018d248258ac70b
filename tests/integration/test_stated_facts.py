"""Facts in a memory, on each store: found by rules unless given, said again, closed, and from when they hold."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from pps.core.values import Fact, FactDraft
from pps.journal.entries import Change
from pps.memory import Memory

DAY = timedelta(days=1)
START = datetime(2026, 3, 4, 9, tzinfo=UTC)
LIVES = FactDraft("Priya", "LIVES_IN", "Tarn", text="Priya lives in Tarn.")


async def facts(memory: Memory, as_of: datetime | None = None) -> dict[str, Fact]:
    """Return the facts by their text; with ``as_of`` those that held then, by the timeline and by recall alike."""
    found = (await memory.timeline(as_of=as_of)).facts if as_of else (await memory.timeline()).facts
    if as_of:
        recalled = (await memory.recall("Priya Tarn Oslo lives", as_of=as_of, limit=100))["facts"]
        assert {hit.id for hit in recalled} == {fact.uuid for fact in found}
    return {fact.text: fact for fact in found}


async def test_what_people_say_plainly_is_a_fact_by_default_and_what_is_given_stands_alone(
    memory: Memory,
) -> None:
    told = await memory.remember(
        "I live in Tarn. If I lived in Rome, I would sing.", occurred_at=START
    )
    given = await memory.remember(
        "I moved to Rome.", facts=[FactDraft("Ben", "LIVES_IN", "Rome")], occurred_at=START
    )
    answer = await memory.remember("I live in Oslo.", role="assistant")
    kept = await memory.remember("I live in Lima.", extraction="given")
    assert [one.facts for one in (told, given, answer, kept)] == [1, 1, 0, 0]
    assert set(await facts(memory)) == {"I live in Tarn.", "Ben lives in Rome"}
    nodes = {node.name: node.kind for node in await memory.parts.client.scan_nodes("", 100)}
    assert (nodes["User"], nodes["Tarn"]) == ("Person", "Place")


async def test_a_name_that_is_told_stands_for_the_user_from_then_on(memory: Memory) -> None:
    await memory.remember("My name is Nadia.", occurred_at=START)
    await memory.remember("Nadia lives in Tarn.", occurred_at=START + DAY)
    told, lives = (await facts(memory)).values()
    assert {told.subject, told.object, lives.subject} == {told.subject}
    assert (await memory.ledger()).problems == ()


async def test_who_moved_lives_where_the_latest_text_says(memory: Memory) -> None:
    await memory.remember("I live in Tarn.", occurred_at=START)
    await memory.remember("I moved to Oslo yesterday.", occurred_at=START + 3 * DAY)
    await memory.remember("I live in Lima.", occurred_at=START - 90 * DAY, wait="done")
    midnight = (START + 2 * DAY).replace(hour=0)
    spans = {text: (fact.valid_at, fact.invalid_at) for text, fact in (await facts(memory)).items()}
    assert spans == {
        "I live in Lima.": (START - 90 * DAY, START),
        "I live in Tarn.": (START, midnight),
        "I moved to Oslo yesterday.": (midnight, None),
    }
    assert [hit.item.text for hit in (await memory.recall("Where do I live?"))["facts"]] == [
        "I moved to Oslo yesterday."
    ]  # type: ignore[union-attr]


async def test_what_is_said_again_is_one_fact_with_one_support_more(memory: Memory) -> None:
    first = await memory.remember("Priya lives in Tarn.", occurred_at=START)
    second = await memory.remember(
        "So Priya lives in Tarn now, and she sings.", occurred_at=START + DAY
    )
    third = await memory.remember(
        "Yes.", facts=[FactDraft("Priya", "LIVES_IN", "Tarn", text="She is in Tarn.")]
    )
    (fact,) = (await facts(memory)).values()
    assert (fact.text, fact.episodes) == (
        "Priya lives in Tarn.",
        (first.turn_id, second.turn_id, third.turn_id),
    )


async def test_nothing_holds_before_it_was_first_said(memory: Memory) -> None:
    first = await memory.remember("One.", facts=[LIVES], occurred_at=START)
    await memory.remember("Two.", facts=[LIVES], occurred_at=START + 5 * DAY)
    assert [len(await facts(memory, START + day * DAY)) for day in (-1, 0, 1, 6)] == [0, 1, 1, 1]
    await memory.forget([first.turn_id], dry_run=False)
    assert [len(await facts(memory, START + day * DAY)) for day in (-1, 0, 1, 6)] == [0, 0, 0, 1]
    await memory.remember("Three.", facts=[LIVES], occurred_at=START - 5 * DAY)
    assert [len(await facts(memory, START + day * DAY)) for day in (-6, -5, 1, 6)] == [0, 1, 1, 1]


@pytest.mark.parametrize("by", ["log", "reindex"])
async def test_facts_that_were_kept_without_a_day_get_the_day_of_their_first_text(
    memory: Memory, by: str
) -> None:
    await memory.remember("One.", facts=[LIVES], occurred_at=START)
    (fact,) = (await facts(memory)).values()
    await memory.parts.client.save_facts([replace(fact, valid_at=None)], {})
    if by == "reindex":
        await memory.reindex()
    else:  # as the migration of the file leaves it
        await memory.parts.journal.log_changes([Change("fact", fact.uuid)])
        await memory.remember("Two.", occurred_at=START + DAY)
    assert [len(await facts(memory, START + day * DAY)) for day in (-1, 1)] == [0, 1]
    assert [one.valid_at for one in await memory.parts.client.facts([fact.uuid])] == [START]
