"""What was stored as important comes first among equals, where a profile asks for that, and nowhere else."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from pps.app import App
from pps.config import EmbedderSettings, Settings
from pps.operations.perspective_tools import StoreMemoryInput
from pps.recall.profiles import Profiles

OWN = """
[channels.episodes]
{importance}
[channels.episodes.perspectives]
bm25 = 1.0
"""
TEXTS = {
    f"The harbour crane number {word} was oiled.": rank / 10
    for rank, word in enumerate(("seven", "three", "eight", "forty", "sixty"))
}


@pytest.fixture
async def app(tmp_path: Path) -> AsyncIterator[App]:
    settings = Settings(home=tmp_path / "home", embedder=EmbedderSettings(name="hash"))
    folder = settings.home / "profiles"
    folder.mkdir(parents=True)
    for name, line in {"tied": "", "important": "importance = true"}.items():
        (folder / f"{name}.toml").write_text(OWN.format(importance=line))
    async with App.open(settings) as opened:
        yield opened


async def order(app: App, profile: str, query: str = "Who oiled the harbour crane?") -> list[str]:
    async with app.memory("ana") as memory:
        found = await memory.recall(query, profile=profile, channels=("episodes",))
    return [hit.text.removeprefix("user: ") for hit in found.channels["episodes"].hits]


async def test_importance_orders_equals_where_a_profile_asks_for_it_alone(app: App) -> None:
    await app.create("ana")
    async with app.memory("ana") as memory:
        for text, importance in TEXTS.items():
            await memory.remember(text, importance=importance, extraction="none")
    wanted = sorted(TEXTS, key=lambda text: -TEXTS[text])
    assert await order(app, "important") == wanted
    tied = await order(app, "tied")
    assert sorted(tied) == sorted(wanted)
    assert tied != wanted
    # Where the words tell them apart importance changes nothing.
    assert (await order(app, "important", "Which crane was number seven?"))[0].startswith(
        "The harbour crane number seven"
    )


async def test_importance_of_another_memory_counts_nothing(app: App) -> None:
    for name in ("ana", "ben"):
        await app.create(name)
        async with app.memory(name) as memory:
            for text, importance in TEXTS.items():
                given = importance if name == "ana" else 1 - importance
                await memory.remember(text, importance=given, extraction="none")
    async with app.memory("ana") as ana, app.memory("ben") as ben:
        theirs = [use.turn for use in await ben.parts.journal.topics.uses()]
        assert await ana.parts.journal.topics.importances(theirs) == {}
    assert await order(app, "important") == sorted(TEXTS, key=lambda text: -TEXTS[text])


def test_no_shipped_profile_goes_by_importance_and_the_tool_says_so(tmp_path: Path) -> None:
    profiles = Profiles.load(Settings(home=tmp_path))
    for profile in profiles.all():
        for channel in profile.channels.values():
            assert not channel.importance, profile.name
    description = StoreMemoryInput.model_json_schema()["properties"]["importance"]["description"]
    assert "orders hits of equal score where a profile says 'importance = true'" in description
