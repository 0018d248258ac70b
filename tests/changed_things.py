"""A benchmark of things that are told, changed as people change things, and asked for.

``tests/life/changes`` holds two sets of twelve things with two questions each: ``build`` is what
the rules were built against, ``held_back`` was written before its results were seen. Between the
turns that matter lie thirty others.
"""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Literal

from pps.app import App
from pps.config import Settings
from pps.memory import Memory

SETS = Path(__file__).parent / "life" / "changes"
START = datetime(2026, 2, 2, 9, tzinfo=UTC)
MARKS = ("(superseded ", "(possibly outdated ")
"""Words that say, in a line of a pack, that the line no longer holds."""

Order = Literal["in order", "changes first"]
Verdict = Literal["current first", "old first", "old first, marked", "neither"]


@dataclass(frozen=True, slots=True)
class ChangedThing:
    """One thing as it was told and as it was changed, with words that only one of the two has."""

    topic: str
    told: str
    changed: str
    old: str
    new: str
    questions: tuple[str, ...]


def read_set(name: str) -> list[ChangedThing]:
    rows = json.loads((SETS / f"{name}.json").read_text(encoding="utf-8"))
    return [ChangedThing(**{**row, "questions": tuple(row["questions"])}) for row in rows]


def turns_of(things: list[ChangedThing]) -> list[tuple[str, datetime]]:
    """Return the turns of a set with their times: told, others, changed, others."""
    filler = (SETS / "filler.txt").read_text(encoding="utf-8").splitlines()
    half = len(filler) // 2
    texts = [
        *(thing.told for thing in things),
        *filler[:half],
        *(thing.changed for thing in things),
        *filler[half:],
    ]
    return [(text, START + timedelta(days=2 * number)) for number, text in enumerate(texts)]


async def tell(memory: Memory, turns: list[tuple[str, datetime]], order: Order) -> None:
    """Give a memory the turns, each in a session of its own, the latest first on request."""
    if order == "changes first":
        turns = turns[::-1]
    for text, at in turns:
        await memory.remember(text, session=f"told-{at:%m%d}", occurred_at=at)
    await memory.settled()


def judge(pack: str, thing: ChangedThing) -> Verdict:
    """Tell which statement a pack gives first; the later one may name the old value too."""
    in_nodes = False
    for line in pack.splitlines():
        in_nodes = line == "## Nodes" if line.startswith("## ") else in_nodes
        if in_nodes:
            continue  # the bare name of a node states nothing
        statement = line.lower()
        is_marked = False
        for mark in MARKS:
            statement, found, _ = statement.partition(mark)
            is_marked = is_marked or bool(found)
        if thing.new.lower() in statement:
            return "current first"
        if thing.old.lower() in statement:
            return "old first, marked" if is_marked else "old first"
    return "neither"


async def measure(
    home: Path, name: str, order: Order
) -> tuple[Counter[Verdict], dict[str, tuple[Verdict, str]]]:
    """Return the verdicts of a set, counted and by question, each with the pack's text."""
    things = read_set(name)
    verdicts: dict[str, tuple[Verdict, str]] = {}
    async with App.open(Settings(home=home)) as app:
        await app.create("mira")
        async with app.memory("mira") as memory:
            await tell(memory, turns_of(things), order)
            for thing in things:
                for question in thing.questions:
                    pack = await memory.sessions.pack(question, f"asks: {question}")
                    verdicts[question] = judge(pack.text, thing), pack.text
    return Counter(verdict for verdict, _ in verdicts.values()), verdicts
