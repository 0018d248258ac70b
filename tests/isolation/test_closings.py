"""What closes and opens facts is each entity's own: the same names, the same words, the same ids asked for."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from pps.app import App
from pps.core.values import EndingDraft, FactDraft
from pps.journal.closing_rows import ClosingsAround
from pps.journal.entries import JobPayload, TurnDraft
from pps.memory import Memory

START = datetime(2026, 3, 10, 9, tzinfo=UTC)
MONTH = timedelta(days=30)


async def tell(memory: Memory, place: str, at: datetime) -> str:
    told = await memory.remember(
        f"Mara lives in {place}.",
        occurred_at=at,
        facts=[FactDraft("Mara", "LIVES_IN", place, text=f"Mara lives in {place}.")],
    )
    return told.turn_id


async def state(memory: Memory) -> list[tuple[str, datetime | None, tuple[str, ...]]]:
    facts = await memory.parts.client.scan_facts("", 100)
    return sorted((fact.text, fact.invalid_at, fact.episodes) for fact in facts)


async def test_what_one_states_ends_or_forgets_closes_and_opens_nothing_of_another(
    app: App,
) -> None:
    """Both know of a Mara in Rome; one of them is told that she moved, died, and that neither was so."""
    await app.create("ana")
    await app.create("tom")
    async with app.memory("ana") as ana, app.memory("tom") as tom:
        await tell(tom, "Rome", START)
        theirs = await state(tom)
        await tell(ana, "Rome", START)
        later = await tell(ana, "Milan", START + MONTH)
        assert await state(tom) == theirs
        ending = EndingDraft("Mara", (), text="Mara died.")
        draft = TurnDraft("Mara died.", occurred_at=START + 2 * MONTH)
        died = await ana.parts.intake.append(draft, JobPayload(endings=(ending,)))
        assert await ana.settled(60)
        assert all(end is not None for _, end, _ in await state(ana))
        assert await state(tom) == theirs
        soft = await ana.forget([later, died.turn.uuid], dry_run=False, soft=True)
        assert [end for _, end, _ in await state(ana)] == [None]
        await ana.forgetting.restore(soft.restorable_as)
        assert await state(tom) == theirs
        await tell(tom, "Oslo", START + MONTH)
        mine = await state(ana)
        assert [text for text, end, _ in await state(tom) if end is None] == ["Mara lives in Oslo."]
        assert await state(ana) == mine


async def test_closings_and_endings_of_another_are_not_there(app: App) -> None:
    """Every read of closings and endings, asked with all ids of another entity, returns nothing."""
    await app.create("ana")
    await app.create("tom")
    async with app.memory("ana") as ana, app.memory("tom") as tom:
        first = await tell(ana, "Rome", START)
        second = await tell(ana, "Milan", START + MONTH)
        ending = EndingDraft("Mara", ("LIVES_IN",), text="She left.")
        draft = TurnDraft("She left.", occurred_at=START + 2 * MONTH)
        third = (await ana.parts.intake.append(draft, JobPayload(endings=(ending,)))).turn
        assert await ana.settled(60)
        facts = [fact.uuid for fact in await ana.parts.client.scan_facts("", 100)]
        nodes = [node.uuid for node in await ana.parts.client.scan_nodes("", 100)]
        turns = [first, second, third.uuid]
        mine, theirs = ana.parts.journal, tom.parts.journal
        assert len(await mine.closings.of(facts)) == 2
        assert await theirs.closings.of(facts) == []
        later = START + 3 * MONTH
        assert (await mine.closings.around(turns, facts, nodes, later)).closings
        nothing = ClosingsAround({}, [], {})
        assert await theirs.closings.around(turns, facts, nodes, later) == nothing
        assert await theirs.closings.by_facts(facts) == []
        assert await theirs.closings.by_turns(turns) == []
        assert len(await mine.closings.about(nodes)) == 1
        assert await theirs.closings.about(nodes) == []
        assert await theirs.closings.endings_of(turns) == []
        assert await theirs.closings.said_at(turns) == {}
        assert await theirs.closings.said_before(third, 10) == []
        assert await theirs.facts_in_slots([(node, ("livesin",)) for node in nodes]) == []
        assert await theirs.facts_ended([(node, "", ()) for node in nodes]) == []
