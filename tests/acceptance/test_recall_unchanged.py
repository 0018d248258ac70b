"""Recall in one entity is the same, result for result, however many other entities there are.

The long form has two hundred of them.
"""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

from pps.app import App
from pps.config import EmbedderSettings, ServerSettings, Settings
from pps.core.values import FactDraft, NodeDraft
from pps.memory import Memory
from tests.integration.recall_scene import SAID, START, play
from tests.sampling import sized

NEIGHBOURS = sized(6, 200)
ASKED = (
    "What does Mira drink in the kitchen?",
    "Tomas",
    "Who grows roses?",
    "What did we say in January 2026?",
    "coffee and tea",
    "咖啡",
)
PROFILES = (
    "default",
    "ambient",
    "blended",
    "hybrid",
    "semantic",
    "e1_only",
    "COMBINED_HYBRID_SEARCH_RRF",
)
Answers = list[tuple[str, str, str, list[tuple[str, str, float]]]]


async def answers(memory: Memory) -> Answers:
    """Return id, text and score of every hit of every channel of every question."""
    found: Answers = []
    for profile in PROFILES:
        for query in ASKED:
            # A fixed moment, so that nothing is older the second time.
            recalled = await memory.recall(query, profile=profile, as_of=START + timedelta(days=60))
            for name, channel in recalled.channels.items():
                assert not channel.error, (profile, query, channel.error)
                hits = [(hit.id, hit.text, round(hit.score, 9)) for hit in channel.hits]
                found.append((profile, query, name, hits))
    return found


async def fill(memory: Memory, number: int) -> None:
    """Give a neighbour the same people and words, and facts that would win if anything leaked."""
    for day, session, speaker, words, facts, _ in SAID[:2]:
        await memory.remember(
            f"{words} ({number}) What does Mira drink in the kitchen? Who grows roses? Tomas, coffee and tea.",
            actor=speaker,
            session=session,
            source_ref=f"{number}-{day}-{words}",
            occurred_at=START,
            nodes=[NodeDraft("Mira", "Person"), NodeDraft("Tomas", "Person")],
            facts=[
                *facts,
                FactDraft("Mira", "DRINKS", "tea", f"Mira drinks tea {number} in the kitchen."),
            ],
        )


@pytest.mark.timeout(1500)
async def test_recall_is_the_same_result_for_result_beside_many_other_entities(
    tmp_path: Path,
) -> None:
    settings = Settings(
        home=tmp_path / "home",
        embedder=EmbedderSettings(name="hash"),
        server=ServerSettings(open_entities=4),
    )
    async with App.open(settings) as app:
        await app.create("mira")
        async with app.memory("mira") as memory:
            await play(memory)
            before = await answers(memory)
        for number in range(NEIGHBOURS):
            await app.create(f"neighbour_{number}")
            async with app.memory(f"neighbour_{number}") as memory:
                await fill(memory, number)
        async with app.memory("mira") as memory:
            after = await answers(memory)

    assert any(hits for *_, hits in before)
    assert after == before
