"""Backlogs of several entities, worked off at once: what is embedded ahead, and kept, stays with whoever brought it."""

from __future__ import annotations

import asyncio
import gc
import uuid

import pytest

from pps.app import App
from pps.core.values import FactDraft
from pps.ingest.drafts import RememberOptions
from pps.ingest.passage_vectors import PassageVectors
from pps.memory import Memory
from tests.sampling import sized

TURNS = sized(300, 600)
NAMES = ("ana", "ben", "chloe")


def backlog(mark: str) -> list[tuple[str, RememberOptions]]:
    """Return turns that are alike in every entity, but for one word."""
    items: list[tuple[str, RememberOptions]] = []
    for number in range(TURNS):
        fact = FactDraft(
            "Ana", "KEEPS", f"Thing {number % 50}", text=f"Ana keeps thing {number} for {mark}."
        )
        items.append(
            (
                f"Note {number} for {mark}.",
                {"source_ref": f"{number}", "extraction": "given", "facts": [fact]},
            )
        )
    return items


async def taken_in(memory: Memory, mark: str) -> None:
    await memory.remember_many(backlog(mark))
    await memory.settled()


@pytest.mark.beside_the_graph
async def test_of_backlogs_at_once_each_ends_whole_and_only_where_it_came_in(app: App) -> None:
    marks = {name: f"kanarie{uuid.uuid4().hex[:12]}" for name in NAMES}
    for name in NAMES:
        await app.create(name)
    async with app.memory("ana") as ana, app.memory("ben") as ben, app.memory("chloe") as chloe:
        memories = dict(zip(NAMES, (ana, ben, chloe), strict=True))
        await asyncio.gather(*(taken_in(memories[name], mark) for name, mark in marks.items()))
        for name, memory in memories.items():
            stats = await memory.stats()
            assert (stats.turns, stats.facts, stats.vector_indexed["episodes"]) == (
                TURNS,
                TURNS,
                TURNS,
            )
            others = [mark for other, mark in marks.items() if other != name]
            for other in others:
                found = await memory.recall(f"Note 7 for {other}.", limit=50)
                shown = repr(found)
                assert marks[name] in shown
                assert not any(mark in shown.replace(found.query, "") for mark in others)
        kept = [one for one in gc.get_objects() if type(one) is PassageVectors]
        texts = [
            repr([list(held) for held in vars(one).values() if isinstance(held, dict)])
            for one in kept
        ]
        held = [{mark for mark in marks.values() if mark in one} for one in texts]
    assert sorted(map(len, (one for one in held if one))) == [1, 1, 1]
    assert set.union(*held) == set(marks.values())
