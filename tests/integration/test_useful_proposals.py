"""Consolidation and dream propose what is worth a thought, or nothing: read on the shipped lives and on invented ones."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from pps.app import App
from pps.config import EmbedderSettings, Settings
from pps.features.topics.proposals import Dream, DreamRequest, Pair, Proposals, consolidation, dream
from pps.features.topics.topic_tools import dream_words, proposals_words
from pps.features.topics.topic_values import Portfolio
from pps.ingest.drafts import RememberOptions
from pps.ingest.importing.formats import read_lines

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from pps.memory import Memory

TESTS = Path(__file__).parents[1]
SAMPLE = TESTS.parent / "config" / "sample"
LIVES: dict[str, dict[str, list[str]]] = json.loads(
    (TESTS / "life" / "topics.json").read_text("utf-8")
)
AT = datetime(2026, 3, 2, 9, tzinfo=UTC)
RESTATED = {
    "I'm allergic to sesame, so keep it out of anything you suggest to cook.": "Don't suggest recipes with sesame, I'm allergic to it.",
    "My sister Judith lives in Leipzig.": "Judith, my sister, is living in Leipzig.",
    "Deploys go out on Thursdays, never on Fridays.": "We deploy on Thursdays. Never deploy on a Friday.",
    "The staging database is PostgreSQL 15 on port 5433.": "Staging runs PostgreSQL 15, port 5433.",
    "The wifi is called GaivotaNet.": "GaivotaNet is the name of the wifi here.",
    "The tiler charges 55 euros an hour.": "55 euros per hour is what the tiler wants.",
    "The Windows installer is not signed.": "Our Windows installer still isn't signed.",
    "My knee hurts when I lift the flour sacks.": "Lifting flour sacks hurts my knee.",
    "Die neue Pumpe für die Heizung kostet 640 Euro.": "640 Euro kostet die neue Pumpe der Heizung.",
    "Dr. Falk is the neurologist at the memory clinic.": "The neurologist at the memory clinic is Dr. Falk.",
}
TRIVIAL = (
    "Yes.",
    "Yes.",
    "… yes.",
    "Thanks, that works.",
    "ok",
    "Good night!",
    "Expected, please.",
)


@pytest.fixture
async def memory(tmp_path: Path) -> AsyncIterator[Memory]:
    settings = Settings(home=tmp_path / "home", embedder=EmbedderSettings(name="minilm"))
    async with App.open(settings) as app:
        await app.create("ana")
        async with app.memory("ana") as opened:
            yield opened


async def tell(
    memory: Memory, session: str, texts: list[str], days: int = 0, role: str = "user"
) -> None:
    options = RememberOptions(
        session=session, role=role, extraction="none", occurred_at=AT + timedelta(days=days)
    )
    await memory.remember_many([(text, options) for text in texts])
    await memory.settled()


async def proposals(memory: Memory) -> tuple[Proposals, Dream]:
    sources = memory.topics.sources
    found = await consolidation(sources, Portfolio(()), "similarity", None, 2_000)
    return found, await dream(sources, DreamRequest())


async def test_what_was_said_twice_is_proposed_and_nothing_else_of_two_lives(
    memory: Memory,
) -> None:
    for number, (name, texts) in enumerate(LIVES["renovation"].items()):
        await tell(memory, name, texts, number)
    for number, (name, texts) in enumerate(LIVES["game"].items()):
        await tell(memory, name, texts, number + 10)
    await tell(memory, "first", [*RESTATED], 30)
    await tell(memory, "again", [*RESTATED.values()], 60)
    found, _ = await proposals(memory)
    same = {one.texts for one in found.pairs if one.reason == "says the same"}
    assert same <= {*RESTATED.items()}
    assert len(same) >= 8, same


async def test_replies_questions_and_echoes_are_not_proposed(memory: Memory) -> None:
    for number, text in enumerate(TRIVIAL):
        await tell(memory, f"small {number}", [text], number)
    await tell(memory, "a", ["The EpiPen is in the red pouch in the drawer left of the stove."], 9)
    await tell(
        memory, "a", ["The red pouch with the EpiPen: drawer left of the stove."], 9, "assistant"
    )
    await tell(memory, "b", ["Where is the red pouch with the EpiPen?"], 12)
    found, dreamt = await proposals(memory)
    assert found.pairs == dreamt.replayed == dreamt.proposed == ()
    assert proposals_words(found) == "Nothing to consolidate among 10 memories."
    assert dream_words(dreamt).endswith("\nNothing to propose.")


async def test_the_same_said_many_times_is_proposed_once(memory: Memory) -> None:
    for number in range(5):
        await tell(
            memory, f"s{number}", ["The spare key hangs behind the boiler in the cellar."], number
        )
    found, _ = await proposals(memory)
    [pair] = found.pairs
    assert (pair.reason, pair.shared) == ("says the same", ("boiler", "cellar", "hangs"))


async def test_a_plan_that_changed_is_proposed_as_amended_and_another_number_says_not_the_same(
    memory: Memory,
) -> None:
    await tell(memory, "a", ["I have a dentist appointment on 21 July at 15:30 with Dr. Ramos."])
    await tell(memory, "b", ["The dentist moved my appointment to 23 July."], 5)
    await tell(memory, "c", ["A build of the documentation takes 41 minutes."], 6)
    await tell(memory, "d", ["A build of the documentation takes 12 minutes."], 7)
    found, dreamt = await proposals(memory)
    assert [
        (one.texts[0][:14], one.reason) for one in found.pairs if "dentist" in one.texts[0]
    ] == [("I have a denti", "amends it")]
    assert not [one for one in found.pairs if one.reason == "says the same"]
    assert not [one for one in dreamt.replayed if "dentist" in one.texts[0]]


async def test_a_dream_links_what_means_something_else_and_shares_something_rare(
    memory: Memory,
) -> None:
    await tell(memory, "flat", ["I live in Lisbon, in a rented flat in Graça."])
    await tell(memory, "cat", ["Pixel is buried in the garden behind the house in Graça."], 30)
    for number, (name, texts) in enumerate(LIVES["compiler"].items()):
        await tell(memory, name, texts, number + 40)
    _, dreamt = await proposals(memory)
    assert [one.shared for one in dreamt.proposed if "Lisbon" in one.texts[0]] == [("Graça",)]


@pytest.mark.parametrize("name", ["theo", "mira"])
async def test_every_proposal_on_a_shipped_life_says_why_and_restates_nothing(
    memory: Memory, name: str
) -> None:
    await memory.remember_many(list(read_lines(SAMPLE / name / "turns.jsonl")))
    await memory.settled()
    found, dreamt = await proposals(memory)
    pairs = [*found.pairs, *dreamt.replayed, *dreamt.proposed]
    assert dreamt.replayed
    assert dreamt.proposed
    for some in (found.pairs, dreamt.replayed, dreamt.proposed):
        assert len({id_ for one in some for id_ in (one.first, one.second)}) == 2 * len(some)
    turns = {one.uuid: one for one in await memory.parts.journal.turns(_ids(pairs))}
    for pair in pairs:
        assert pair.shared, pair
        assert min(len(text) for text in pair.texts) > 20, pair
        assert not all(text.endswith("?") for text in pair.texts), pair
    for pair in (*dreamt.replayed, *dreamt.proposed):
        assert turns[pair.first].session != turns[pair.second].session, pair


def _ids(pairs: list[Pair]) -> list[str]:
    return sorted({id_ for pair in pairs for id_ in (pair.first, pair.second)})
