"""A question about a time alone shows what lies in that time, and nothing else as long as there is any."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from pps.app import App
from pps.config import EmbedderSettings, Settings
from pps.core.values import FactDraft, Turn
from pps.ingest.drafts import RememberOptions
from pps.memory import Memory

FIRST = datetime(2025, 3, 3, 9, tzinfo=UTC)
DAYS, TURNS = 12, 14
SUBJECTS = [
    "bread",
    "boats",
    "wine",
    "chess",
    "roses",
    "trains",
    "tea",
    "clocks",
    "maps",
    "bees",
    "paint",
    "rope",
]


def said(day: int, number: int) -> tuple[str, RememberOptions]:
    subject = SUBJECTS[day]
    text = f"We talk about {subject} number {number} and what we discuss of {subject} then."
    if number % 2:
        text = "What did we talk about?"
    at = FIRST + timedelta(days=10 * day, minutes=number)
    fact = FactDraft("Mira", "LIKES", f"{subject} {number}", f"Mira likes {subject}", valid_at=at)
    return text, {
        "session": f"session of {subject}",
        "occurred_at": at,
        "actor": "Mira",
        "facts": () if number % 2 else (fact,),
    }


@pytest.fixture
async def memory(tmp_path: Path) -> AsyncIterator[Memory]:
    settings = Settings(home=tmp_path / "home", embedder=EmbedderSettings(name="hash"))
    async with App.open(settings) as app:
        await app.create("ana")
        async with app.memory("ana") as opened:
            # Written in another order than it was said: a session's place goes by its first turn's time.
            days = sorted(range(DAYS), key=lambda day: day % 5)
            await opened.remember_many([said(day, at) for day in days for at in range(TURNS)])
            assert await opened.settled()
            yield opened


async def shown(memory: Memory, query: str, **options: object) -> Sequence[Turn]:
    recalled = await memory.recall(query, limit=10, **options)  # type: ignore[arg-type]
    turns = [hit.item for hit in recalled.channels["episodes"].hits]
    assert all(isinstance(turn, Turn) for turn in turns)
    return [turn for turn in turns if isinstance(turn, Turn)]


@pytest.mark.parametrize(
    ("query", "days"),
    [
        ("What did we talk about on March 3rd 2025?", {0}),
        ("What did we discuss in April 2025?", {3, 4, 5}),
        ("What did we talk about between March 10 2025 and March 30 2025?", {1, 2}),
        ("What did we discuss in our fourth session?", {3}),
        ("What did we discuss 3 sessions ago?", {9}),
        ("What did we talk about in our last conversation?", {11}),
    ],
)
async def test_all_that_is_shown_lies_in_the_time(
    memory: Memory, query: str, days: set[int]
) -> None:
    turns = await shown(memory, query)
    assert len(turns) == 10
    assert {turn.session for turn in turns} == {f"session of {SUBJECTS[day]}" for day in days}
    assert not turns[0].content.endswith("?"), "what tells most comes first"


async def test_facts_are_those_of_the_time(memory: Memory) -> None:
    for query in ("What happened in April 2025?", "What did we discuss in our fifth session?"):
        recalled = await memory.recall(query, limit=5)
        texts = {hit.text for hit in recalled.channels["facts"].hits}
        assert texts
        assert texts <= {f"Mira likes {SUBJECTS[day]}" for day in (3, 4, 5)}


async def test_the_session_that_asks_is_not_counted(memory: Memory) -> None:
    turns = await shown(
        memory, "What did we discuss in our last session?", session="session of rope"
    )
    assert {turn.session for turn in turns} == {"session of paint"}


async def test_a_time_of_which_there_is_nothing_gives_the_nearest_and_says_so(
    memory: Memory,
) -> None:
    recalled = await memory.recall("What did we talk about on March 8th 2025?", limit=3)
    sessions = {
        hit.item.session for hit in recalled.channels["episodes"].hits if isinstance(hit.item, Turn)
    }
    assert sessions == {"session of bread"}
    assert any("nothing here is of that time" in note for note in recalled.notes)


async def test_a_question_that_names_more_goes_by_its_words_too(memory: Memory) -> None:
    turns = await shown(memory, "What did Mira say of chess in April 2025?")
    assert turns[0].session == "session of chess"


async def test_a_filter_holds_beside_the_time(memory: Memory) -> None:
    from pps.journal.filters import ItemFilter

    wanted = ItemFilter(sessions=("session of trains",))
    turns = await shown(memory, "What did we discuss in April 2025?", filters=wanted)
    assert not turns or {turn.session for turn in turns} == {"session of trains"}
    assert "session of chess" not in {turn.session for turn in turns}


async def test_a_prompt_s_pack_holds_what_lies_in_the_time(memory: Memory) -> None:
    pack = await memory.ambient_recall("What did we talk about on March 3rd 2025?", session="new")
    assert "bread number" in pack.text
    assert "boats" not in pack.text
