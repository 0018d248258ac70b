"""What comes first: what every perspective finds first, short notes among talk, the latest of several statements."""

from __future__ import annotations

import random
from collections.abc import AsyncIterator, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from benchmarks.notes import SIZES, read_notes
from benchmarks.quality import write
from pps.app import App
from pps.config import EmbedderSettings, Settings
from pps.core.recalled import Hit
from pps.core.values import FactDraft, NodeDraft, Turn
from pps.ingest.drafts import RememberOptions
from pps.memory import Memory
from pps.recall.perspectives import PERSPECTIVES
from pps.recall.profiles import Profiles

START = datetime(2026, 1, 5, 8, tzinfo=UTC)
WORDS = "bees heather crane rope lantern mill barge ferry stone ladder violet kettle anchor copper garden harbour"

QUERIES = ("Who keeps {} now?", "{}", "How should I place {} for Violet?", "{} in January")


@pytest.fixture
async def app(tmp_path: Path) -> AsyncIterator[App]:
    async with App.open(
        Settings(home=tmp_path / "home", embedder=EmbedderSettings(name="hash"))
    ) as opened:
        yield opened


@pytest.fixture
async def mixed(app: App) -> AsyncIterator[Memory]:
    """Short notes of a person, long replies of an agent, old and new facts, near and far nodes, drawn at random."""
    chance = random.Random(5)  # noqa: S311 - the same each time
    words = WORDS.split()
    await app.create("ana")
    async with app.memory("ana") as memory:
        said: list[tuple[str, RememberOptions]] = []
        for number in range(24):
            size = chance.choice((2, 3, 4, 40))
            subject, *_, other = chance.sample(words, 4)
            text = " ".join(chance.choices(words, k=size)) + chance.choice((".", "?", "!"))
            fact = FactDraft(
                f"{subject} {number}", "NEAR", other, " ".join(chance.sample(words, size % 7 + 2))
            )
            options = RememberOptions(
                role=chance.choice(("user", "assistant")),
                actor=chance.choice(("", "Violet", "Ben")),
                session=chance.choice(("one", "two")),
                occurred_at=START + timedelta(days=10 * number),
                nodes=[NodeDraft(fact.subject), NodeDraft(other)],
                facts=[fact],
            )
            said.append((text, options))
        await memory.remember_many(said)
        await memory.settled()
        await memory.anchor_save("Mill", f"# Mill\n\n{WORDS}\n\n## Rope\n\nThe rope of the mill.")
        yield memory


def unanimous(hits: Sequence[Hit]) -> list[str]:
    """Return the hits that every finding perspective ranks first; all candidates must be among the hits."""
    spoke = {name for hit in hits for name in hit.ranks if PERSPECTIVES[name].finds}
    return [hit.id for hit in hits if all(hit.ranks.get(name) == 1 for name in spoke)]


async def test_no_shipped_profile_puts_a_hit_that_every_finding_perspective_ranks_first_below_another(
    app: App, mixed: Memory
) -> None:
    chance = random.Random(6)  # noqa: S311 - the same each time
    profiles = [one.name for one in Profiles.load(app.settings).all() if one.origin == "shipped"]
    assert len(profiles) >= 10
    seen = 0
    for _ in range(30):
        asked = " ".join(chance.sample(WORDS.split(), chance.choice((1, 2, 5))))
        query = chance.choice(
            ("Who keeps {} now?", "{}", "How should I place {} for Violet?", "{} in January")
        ).format(asked)
        for name in profiles:
            recalled = await mixed.recall(query, profile=name, limit=50, min_similarity=-1.0)
            for channel in recalled.channels.values():
                agreed = unanimous(channel.hits)
                assert agreed in ([], [channel.hits[0].id] if channel.hits else []), (
                    name,
                    channel.name,
                    query,
                )
                seen += len(agreed)
    assert seen > 100


async def test_a_unanimous_hit_gives_way_when_the_session_was_just_shown_it(mixed: Memory) -> None:
    first = (await mixed.recall("kettle", profile="ambient", channels=("facts",)))["facts"][0]
    await mixed.parts.journal.given.record("now", "turn", 1, [first.id] * 4)

    again = await mixed.recall("kettle", profile="ambient", channels=("facts",), session="now")

    assert again["facts"][0].id != first.id


@pytest.mark.parametrize("profile", ["default", "ambient"])
async def test_short_notes_among_talk_come_first(tmp_path: Path, profile: str) -> None:
    notes = read_notes()
    assert {len(one.turns) - 24 for one in notes if one.name.startswith("024")} >= {12}
    assert sum(len(one.questions) for one in notes) >= 200 * len(SIZES)
    chosen = next(one for one in notes if one.name.startswith("024"))
    real = Settings(home=tmp_path / "home", embedder=EmbedderSettings(name="minilm"))
    async with App.open(real) as app:
        written = await write(app, chosen, "notes", lambda *_: None)
        async with app.memory("notes") as memory:
            asked = [one for one in chosen.questions if not one.category.startswith("updated")]
            right = 0
            for question in asked:
                hit = (await memory.recall(question.text, profile=profile, channels=("episodes",)))[
                    "episodes"
                ][0]
                assert isinstance(hit.item, Turn)
                right += written.ids[hit.item.uuid] in question.gold
    assert right >= 0.95 * len(asked)


async def test_a_question_about_now_gets_the_latest_of_two_open_facts_and_of_two_statements(
    app: App,
) -> None:
    await app.create("ben")
    async with app.memory("ben") as memory:
        for day, paint in enumerate(("green", "copper"), start=1):
            text = f"The painter of the mill uses {paint} paint."
            fact = FactDraft("painter", "USES_IN_MILL", f"{paint} paint", text)
            await memory.remember(text, occurred_at=START + timedelta(days=day), facts=[fact])
        await memory.settled()

        async def first(query: str) -> list[str]:
            found = await memory.recall(query)
            return [
                found[channel][0].text.split("uses ")[1].split()[0]
                for channel in ("facts", "episodes")
            ]

        assert await first("Which paint is it that the painter of the mill uses?") == [
            "copper",
            "copper",
        ]
        assert await first("Is it green paint that the painter of the mill uses?") == [
            "green",
            "green",
        ]
