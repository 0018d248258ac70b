"""Twelve things that changed, told in order and backwards: a pack has the current line first, an old one marked."""

from __future__ import annotations

import tomllib
from collections import Counter
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TypedDict

import pytest

from pps.app import App
from pps.config import Settings
from pps.config.settings import ExtractorSettings

MARCH = datetime(2026, 3, 1, 9, 0, tzinfo=UTC)
OTHERS = (
    "The trains were late again.",
    "Can you explain what a monad is?",
    "I baked bread with rye flour.",
    "My neighbour plays the drums at night.",
    "Write me a haiku about rain.",
    "The printer in the hall is broken.",
    "I read a novel about Iceland.",
    "We watched a film about whales.",
)


class Thing(TypedDict):
    name: str
    first: str
    then: str
    ask: str
    old: str
    new: str


THINGS: dict[str, list[Thing]] = tomllib.loads(
    (Path(__file__).parents[1] / "fixtures" / "changed_things.toml").read_text("utf-8")
)


def conversation(things: list[Thing]) -> list[tuple[datetime, str]]:
    """Return what is said and when, in order."""
    said = [(MARCH + timedelta(days=2 * at), one["first"]) for at, one in enumerate(things)]
    said += [(MARCH + timedelta(days=60 + 2 * at), one["then"]) for at, one in enumerate(things)]
    said += [(MARCH + timedelta(days=11 * at, hours=3), one) for at, one in enumerate(OTHERS)]
    return sorted(said)


def verdict(pack: str, thing: Thing) -> str:
    """Return which of its statements a pack has first: "current", "old, marked", "old", or "none" of them.

    A bare name among the nodes states nothing.
    """
    section = ""
    for line in pack.splitlines():
        section = line.removeprefix("## ") if line.startswith("## ") else section
        if section == "Nodes" or not line.startswith("- "):
            continue
        body, _, mark = line.partition(" (superseded ")
        body, _, maybe = body.partition(" (possibly outdated ")
        if thing["new"] in body:
            return "current"
        if thing["old"] in body:
            return "old, marked" if mark or maybe else "old"
    return "none"


@pytest.mark.parametrize(
    ("name", "mode", "goal"),
    [("thing", "rules", 22), ("thing", "given", 22), ("other", "rules", 20)],
)
async def test_of_24_questions_about_changed_things_the_pack_has_the_current_line_first(
    tmp_path: Path, name: str, mode: str, goal: int
) -> None:
    """With the settings that are shipped, and with turns alone: nothing reads them."""
    settings = Settings(home=tmp_path / "home", extractor=ExtractorSettings(mode=mode))  # pyright: ignore[reportArgumentType]
    things = THINGS[name]
    verdicts: Counter[str] = Counter()
    missed: list[str] = []
    async with App.open(settings) as app:
        for order in ("in_order", "backwards"):
            await app.create(order)
            said = conversation(things) if order == "in_order" else conversation(things)[::-1]
            async with app.memory(order) as memory:
                for at, text in said:
                    await memory.remember(text, session=f"{at:%m-%d}", occurred_at=at)
                assert await memory.settled()
                for thing in things:
                    pack = await memory.ambient_recall(thing["ask"], session=thing["name"])
                    found = verdict(pack.text, thing)
                    verdicts[found] += 1
                    if found != "current":
                        missed.append(f"{order}, {thing['name']}: {found}")

    assert verdicts["old"] == 0, missed
    assert verdicts["current"] >= goal, missed
