"""A fact that a command found in several turns is tied to all of them: forgetting, restoring and changing them."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from pps.app import App
from pps.config import Settings
from pps.memory import Memory
from tests.integration.test_extraction_command import Scripted, opened

SPEECH = {
    "subject": "Karolina",
    "relation": "HEARS",
    "object": "speech",
    "text": "Karolina hears a speech at her wedding in Toledo.",
    "said": ["getting married in Toledo", "asked me to give a speech"],
}
WEDDING = {
    "subject": "Karolina",
    "relation": "MARRIES_IN",
    "object": "Toledo",
    "text": "Karolina is getting married in Toledo.",
    "said": "getting married in Toledo",
}
TURNS = ("Karolina is getting married in Toledo.", "Karolina asked me to give a speech there.")


def read_by(command: Scripted, settings: Settings) -> Settings:
    """Return the settings of a store with turns that are read by a command."""
    extractor = command.settings(settings.home).extractor
    return settings.model_copy(update={"extractor": extractor})


@pytest.fixture
async def told(
    settings: Settings, tmp_path: Path
) -> AsyncIterator[tuple[Memory, Scripted, list[str]]]:
    """A memory of two turns on each store; a command found one fact in the first and one in both."""
    command = Scripted(tmp_path / "command")
    command.says([WEDDING, SPEECH])
    async with App.open(read_by(command, settings)) as app, opened(app) as memory:
        turns = [(await memory.remember(text)).turn_id for text in TURNS]
        assert await memory.settled()
        yield memory, command, turns


async def open_facts(memory: Memory) -> dict[str, tuple[str, ...]]:
    page = await memory.timeline()
    return {fact.text: fact.episodes for fact in page.facts if fact.invalid_at is None}


async def test_it_is_supported_by_all_of_them_together(
    told: tuple[Memory, Scripted, list[str]],
) -> None:
    memory, _, turns = told
    found = await open_facts(memory)
    assert set(found[str(SPEECH["text"])]) == set(turns)
    assert found[str(WEDDING["text"])] == (turns[0],)
    assert (await memory.ledger()).problems == ()


@pytest.mark.parametrize("forgotten", [0, 1])
async def test_it_goes_when_one_of_them_is_forgotten_and_the_other_is_read_again(
    told: tuple[Memory, Scripted, list[str]], forgotten: int
) -> None:
    memory, command, turns = told
    plan = await memory.forget([turns[forgotten]])
    assert len(plan.facts) == 2 - forgotten
    command.says([WEDDING])
    await memory.forget([turns[forgotten]], dry_run=False)
    assert str(SPEECH["text"]) not in await open_facts(memory)
    assert await memory.settled()
    again = command.asked[1:]
    if forgotten == 0:  # the later one holds the fact
        assert len(again) == 1
        assert TURNS[1] in again[0]
        assert "Toledo" not in again[0].partition("\nTurns:\n")[2]
    assert (await memory.ledger()).problems == ()
    assert str(SPEECH["text"]) not in await open_facts(memory)


@pytest.mark.parametrize("read_again", [False, True])
async def test_it_comes_back_when_what_was_forgotten_for_a_while_is_restored(
    told: tuple[Memory, Scripted, list[str]], read_again: bool
) -> None:
    memory, command, turns = told
    before = await open_facts(memory)
    done = await memory.forget([turns[0]], dry_run=False, soft=True)
    assert await open_facts(memory) == {}
    if read_again:
        command.says(
            [{**WEDDING, "relation": "ASKS", "object": "me", "said": "speech", "text": "Asks."}]
        )
        assert await memory.settled()
    await memory.forgetting.restore(done.restorable_as)
    assert await memory.settled()
    assert before.items() <= (await open_facts(memory)).items()
    assert (await memory.ledger()).problems == ()
    await memory.forget([turns[0]], dry_run=False)  # its ties are back too
    assert str(SPEECH["text"]) not in await open_facts(memory)


async def test_what_is_erased_from_the_recycle_bin_takes_it_along(
    told: tuple[Memory, Scripted, list[str]], tmp_path: Path
) -> None:
    memory, command, turns = told
    command.says([])
    await memory.forget([turns[1]], dry_run=False, soft=True)
    await memory.forget([turns[0]], dry_run=False)
    [left] = await memory.forgetting.list()
    assert left.facts == 0
    await memory.forgetting.restore(left.id)
    assert await open_facts(memory) == {}
    journal = (tmp_path / "home" / "entities" / "ana" / "data" / "memory.db").read_bytes()
    assert b"Karolina hears a speech" not in journal


@pytest.mark.parametrize("changed", [0, 1])
async def test_it_ends_when_one_of_them_says_something_else_and_both_are_read_again(
    told: tuple[Memory, Scripted, list[str]], changed: int
) -> None:
    memory, command, turns = told
    command.says([WEDDING])
    await memory.records.update(turns[changed], content="Nothing of the kind.")
    assert await memory.settled()
    facts = {fact.text: fact.invalid_at for fact in (await memory.timeline()).facts}
    assert facts[str(SPEECH["text"])] is not None
    assert (facts[str(WEDDING["text"])] is None) is (changed == 1)
    read = "".join(prompt.partition("\nTurns:\n")[2] for prompt in command.asked[1:])
    assert json.dumps("Nothing of the kind.") in read
    assert (TURNS[1] in read) is (changed == 0)
    assert (await memory.ledger()).problems == ()


async def test_a_graph_made_anew_has_it_with_its_ties(settings: Settings, tmp_path: Path) -> None:
    command = Scripted(tmp_path / "command")
    command.says([WEDDING, SPEECH])
    async with App.open(read_by(command, settings)) as app:
        async with opened(app) as memory:
            turns = [(await memory.remember(text)).turn_id for text in TURNS]
            assert await memory.settled()
            before = await open_facts(memory)
        await app.rebuild("ana")
        async with app.memory("ana") as memory:
            assert await memory.settled()
            assert await open_facts(memory) == before
            await memory.forget([turns[0]], dry_run=False)
            assert str(SPEECH["text"]) not in await open_facts(memory)


async def test_a_name_goes_with_the_one_turn_that_says_it_and_comes_back_with_it(
    settings: Settings, tmp_path: Path
) -> None:
    command = Scripted(tmp_path / "command")
    lives = {
        "subject": "User",
        "relation": "LIVES_IN",
        "object": "Oslo",
        "text": "User lives in Oslo.",
        "said": "in Oslo",
    }
    command.says([lives])
    async with App.open(read_by(command, settings)) as app, opened(app) as memory:
        before = await memory.remember("I live in Oslo.")
        assert await memory.settled()
        named = await memory.remember("Hello, I'm Daniel Okafor.")
        assert await memory.settled()
        command.says(
            [{**lives, "object": "Rome", "text": "User lives in Rome.", "said": "to Rome"}]
        )
        moved = await memory.remember("I moved to Rome.")
        assert await memory.settled()
        found = await open_facts(memory)
        assert found["Daniel Okafor lives in Rome."] == (moved.turn_id,)
        facts = (await memory.timeline()).facts
        [person] = await memory.get([facts[0].subject])
        assert {fact.subject for fact in facts} == {person.uuid}
        assert "Daniel Okafor" in person.aliases
        assert {episode for fact in facts for episode in fact.episodes} >= {before.turn_id}
        done = await memory.forget([named.turn_id], dry_run=False, soft=True)
        assert await memory.settled()
        assert "User lives in Rome." in await open_facts(memory)
        assert not any("Daniel" in fact.text for fact in (await memory.timeline()).facts)
        [person] = await memory.get([person.uuid])
        assert person.aliases == ()
        assert not any("Daniel" in hit.text for hit in (await memory.recall("Daniel"))["nodes"])
        await memory.forgetting.restore(done.restorable_as)
        [person] = await memory.get([person.uuid])
        assert "Daniel Okafor" in person.aliases
        assert "Daniel Okafor lives in Rome." in await open_facts(memory)
        assert (await memory.ledger()).problems == ()


async def test_a_fact_of_one_prompt_ends_another_of_the_same_prompt(
    settings: Settings, tmp_path: Path
) -> None:
    command = Scripted(tmp_path / "command")
    rides = {"subject": "User", "relation": "RIDES", "object": "Brompton", "said": "a Brompton"}
    now = {**rides, "object": "Orbea", "said": "an Orbea", "invalidates": ["N1"]}
    command.says(
        [{**rides, "text": "User rides a Brompton."}, {**now, "text": "User rides an Orbea."}]
    )
    async with App.open(read_by(command, settings)) as app, opened(app) as memory:
        await memory.remember("I ride a Brompton.")
        await memory.remember("I ride an Orbea instead.")
        assert await memory.settled()
        assert len(command.asked) == 1
        assert list(await open_facts(memory)) == ["User rides an Orbea."]
