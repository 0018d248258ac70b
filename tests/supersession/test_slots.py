"""Slots beyond what is said: merged nodes, an installation's own table, work done twice, facts of old homes."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from pps.app import App
from pps.config import Settings
from pps.core.errors import ConfigError
from pps.core.recalled import Hit
from pps.core.values import EndingDraft, Fact, FactDraft, Node, NodeDraft
from pps.journal.entries import JobPayload, TurnDraft
from pps.memory import Memory

START = datetime(2026, 3, 10, 9, tzinfo=UTC)
MONTH = timedelta(days=30)


@pytest.fixture
async def memory(app: App) -> AsyncGenerator[Memory]:
    await app.create("ana")
    async with app.memory("ana") as opened:
        yield opened


async def tell(
    memory: Memory, name: str, place: str, at: datetime, relation: str = "LIVES_IN"
) -> str:
    text = f"{name} is at {place}."
    told = await memory.remember(
        text, occurred_at=at, facts=[FactDraft(name, relation, place, text=text)]
    )
    return told.turn_id


async def end(memory: Memory, name: str, at: datetime) -> str:
    ending = EndingDraft(name, ("LIVES_IN",), text=f"{name} is gone.")
    draft = TurnDraft(f"{name} is gone.", occurred_at=at)
    appended = await memory.parts.intake.append(draft, JobPayload(endings=(ending,)))
    assert await memory.settled(60)
    return appended.turn.uuid


async def facts(memory: Memory) -> dict[str, Fact]:
    """Return the facts of the memory by their texts."""
    return {
        fact.text: fact
        for fact in await memory.parts.client.scan_facts("", 100)
        if fact.kind == "fact"
    }


async def held(memory: Memory) -> set[str]:
    return {text for text, fact in (await facts(memory)).items() if fact.invalid_at is None}


async def node(memory: Memory, name: str) -> str:
    return (await memory.parts.journal.resolve([name]))[name.lower()]


async def test_merging_two_nodes_makes_one_slot_of_two_and_undoing_it_two_again(
    memory: Memory,
) -> None:
    await tell(memory, "Sam", "Rome", START)
    await tell(memory, "Samuel", "Milan", START + MONTH)
    assert await held(memory) == {"Sam is at Rome.", "Samuel is at Milan."}
    done = await memory.records.merging.merge(
        await node(memory, "Samuel"), await node(memory, "Sam"), dry_run=False
    )
    assert await held(memory) == {"Samuel is at Milan."}
    assert (await facts(memory))["Sam is at Rome."].invalid_at == START + MONTH
    await memory.records.merging.undo(done.id)
    assert await held(memory) == {"Sam is at Rome.", "Samuel is at Milan."}
    assert (await memory.ledger()).problems == ()


async def test_an_ending_goes_with_a_node_that_is_merged(memory: Memory) -> None:
    await end(memory, "Sam", START + MONTH)
    await tell(memory, "Sam", "Oslo", START)
    await tell(memory, "Samuel", "Milan", START)
    assert await held(memory) == {"Samuel is at Milan."}
    await memory.records.merging.merge(
        await node(memory, "Samuel"), await node(memory, "Sam"), dry_run=False
    )
    assert await held(memory) == set()


async def test_an_installation_turns_a_slot_off_and_gives_names_of_its_own(
    settings: Settings,
) -> None:
    settings.home.mkdir(mode=0o700, parents=True)
    (settings.home / "relations.toml").write_text(
        "[WORKS_AT]\nsingle = false\n\n[LIVES_IN]\nalso = ['WOHNT_IN']\n"
    )
    async with App.open(settings) as app:
        await app.create("ana")
        async with app.memory("ana") as memory:
            await tell(memory, "Mira", "Bosch", START, "WORKS_AT")
            await tell(memory, "Mira", "Miele", START + MONTH, "WORKS_AT")
            await tell(memory, "Mira", "Rome", START)
            await tell(memory, "Mira", "Milan", START + MONTH, "wohnt_in")
            assert await held(memory) == {
                "Mira is at Bosch.",
                "Mira is at Miele.",
                "Mira is at Milan.",
            }


async def test_a_memory_does_not_open_with_a_mistake_in_the_table(settings: Settings) -> None:
    settings.home.mkdir(mode=0o700, parents=True)
    (settings.home / "relations.toml").write_text("[LIVES_IN]\nsingle = 1\n")
    async with App.open(settings) as app:
        with pytest.raises(ConfigError, match=r"relations\.toml:2: LIVES_IN\.single"):
            await app.create("ana")


async def test_work_that_is_done_twice_comes_to_the_same(memory: Memory) -> None:
    await tell(memory, "Mira", "Rome", START)
    await tell(memory, "Mira", "Milan", START + MONTH)
    await tell(memory, "Mira", "Rome", START + 2 * MONTH)
    await end(memory, "Mira", START + 3 * MONTH)
    before = await facts(memory)
    ids = [fact.uuid for fact in before.values()]
    closings = await memory.parts.journal.closings.of(ids)
    await memory.parts.journal.write(
        lambda db: db.execute("UPDATE jobs SET state = 'queued', stage = 0")
    )
    memory.parts.worker.notify()
    assert await memory.settled(60)
    assert await facts(memory) == before
    again = await memory.parts.journal.closings.of(ids)
    assert [replace(one, closed_at=START) for one in again] == [
        replace(one, closed_at=START) for one in closings
    ]


async def test_a_graph_that_is_made_anew_closes_the_same(settings: Settings) -> None:
    async with App.open(settings) as app:
        await app.create("ana")
        async with app.memory("ana") as memory:
            await tell(memory, "Mira", "Milan", START + MONTH)
            await tell(memory, "Mira", "Rome", START)
            before = await facts(memory)
        await app.rebuild("ana")
        async with app.memory("ana") as memory:
            after = await facts(memory)
            assert await held(memory) == {"Mira is at Milan."}
            assert {text: fact.invalid_at for text, fact in after.items()} == {
                text: fact.invalid_at for text, fact in before.items()
            }


async def test_a_fact_that_an_old_home_closed_stays_closed(memory: Memory) -> None:
    """Old homes have no closings: such an end is the fact's own."""
    await tell(memory, "Mira", "Rome", START)
    [rome] = (await facts(memory)).values()
    ended = replace(rome, invalid_at=START + MONTH, expired_at=START + MONTH + MONTH)
    await memory.parts.client.save_facts([ended], {})
    later = await tell(memory, "Mira", "Milan", START + 2 * MONTH)
    assert (await facts(memory))["Mira is at Rome."].invalid_at == START + MONTH
    await memory.forget([later], dry_run=False)
    assert (await facts(memory))["Mira is at Rome."].invalid_at == START + MONTH


async def test_a_rebuilt_index_leaves_what_is_closed_closed(memory: Memory) -> None:
    await tell(memory, "Mira", "Milan", START + MONTH)
    first = await tell(memory, "Mira", "Rome", START)
    await memory.reindex()
    assert await held(memory) == {"Mira is at Milan."}
    recalled = (await memory.recall("Where is Mira?"))["facts"]
    assert [hit.item.text for hit in recalled] == ["Mira is at Milan."]  # type: ignore[union-attr]
    await memory.forget([first], dry_run=False)
    assert await held(memory) == {"Mira is at Milan."}


async def test_what_closed_a_fact_is_told_by_the_journal(memory: Memory) -> None:
    first = await tell(memory, "Mira", "Rome", START)
    second = await tell(memory, "Mira", "Milan", START + MONTH)
    third = await end(memory, "Mira", START + 2 * MONTH)
    known = await facts(memory)
    rome, milan = known["Mira is at Rome."], known["Mira is at Milan."]
    told = {
        one.fact: one for one in await memory.parts.journal.closings.of([rome.uuid, milan.uuid])
    }
    assert (told[rome.uuid].by_fact, told[rome.uuid].by_turn) == (milan.uuid, second)
    assert (told[rome.uuid].cause, told[rome.uuid].at) == ("superseded", START + MONTH)
    assert (told[milan.uuid].by_fact, told[milan.uuid].by_turn) == ("", third)
    assert (told[milan.uuid].cause, told[milan.uuid].at) == ("ended", START + 2 * MONTH)
    await memory.forget([first, second, third], dry_run=False)
    assert await memory.parts.journal.closings.of([rome.uuid, milan.uuid]) == []


async def test_what_else_the_sentence_of_an_ended_fact_says_is_not_marked(memory: Memory) -> None:
    text = "I live in Hamburg and work as a nurse at St. Georg."
    await memory.remember(text, occurred_at=START, extraction="rules")
    quit_ = "I quit my job at St. Georg last week; I start at Altona clinic in May."
    await memory.remember(quit_, occurred_at=START + MONTH, extraction="rules")
    assert await memory.settled(60)
    page = await memory.timeline()
    by_relation = {fact.relation: fact for fact in page.facts if fact.text == text}
    home = by_relation["LIVES_IN"]
    assert home.invalid_at is None
    assert home.uuid not in page.successors
    work = by_relation["WORKS_AT"]
    assert work.invalid_at is not None
    assert page.successors[work.uuid].text.startswith("I quit my job")


async def nodes_found(memory: Memory, query: str) -> dict[str, Hit]:
    recalled = await memory.recall(query, channels=["nodes"])
    return {hit.item.name: hit for hit in recalled["nodes"] if isinstance(hit.item, Node)}


@pytest.mark.parametrize(
    ("summary", "is_marked"),
    [
        ("Mira paints boats and lives in Rome near the river.", True),
        ("Mira paints boats; she moved from Rome to Milan.", False),
        ("Mira paints boats and dislikes Romeo.", False),
    ],
)
async def test_a_summary_that_names_only_the_old_value_is_marked(
    memory: Memory, summary: str, is_marked: bool
) -> None:
    text = "Mira lives in Rome."
    await memory.remember(
        text,
        occurred_at=START,
        nodes=[NodeDraft("Mira", kind="Person", summary=summary)],
        facts=[FactDraft("Mira", "LIVES_IN", "Rome", text=text)],
    )
    hit = (await nodes_found(memory, "Where does Mira live?"))["Mira"]
    assert hit.superseded_by is None
    second = await tell(memory, "Mira", "Milan", START + MONTH)
    hit = (await nodes_found(memory, "Where does Mira live?"))["Mira"]
    if is_marked:
        assert hit.superseded_by is not None
        assert not hit.superseded_by.sure
        assert hit.superseded_by.text == "Mira is at Milan."
        pack = await memory.ambient_recall("Where does Mira live?")
        for line in pack.text.splitlines():
            assert "lives in Rome near" not in line or "possibly outdated since" in line, line
    else:
        assert hit.superseded_by is None
    await memory.forget([second], dry_run=False)
    hit = (await nodes_found(memory, "Where does Mira live?"))["Mira"]
    assert hit.superseded_by is None
