"""A traveller's life told in sixty-nine turns, and forty-four questions to it: what packs answer, for every source of facts.

The bounds are floors: what each source reached when they were set (``python -m tests.lives`` prints the table).
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.lives import SOURCES, Source, life, lived, score, table

RIGHT: dict[Source, int] = {"none": 42, "rules": 42, "agent": 40, "command": 40, "model": 40}
CURRENT_FIRST: dict[Source, int] = {
    "none": 34,
    "rules": 31,
    "agent": 40,
    "command": 40,
    "model": 35,
}
FACTS: dict[Source, int] = {"none": 0, "rules": 17, "agent": 65, "command": 64, "model": 60}
MOST_UNMARKED: dict[Source, int] = {
    "none": 13,
    "rules": 15,
    "agent": 14,
    "command": 14,
    "model": 21,
}
MOST_LOUD = 2


def test_the_life_is_long_enough_and_its_facts_are_its_own() -> None:
    told = life()
    assert len(told.turns) >= 60
    assert len(told.questions) >= 40
    for fact in told.facts:
        for words in fact["said"]:
            assert sum(words in turn["text"] for turn in told.turns) == 1, words
    offsets = {turn["at"][-6:] for turn in told.turns}
    assert {"+00:00", "+09:00", "-05:00", "+01:00"} == offsets


@pytest.mark.parametrize("source", SOURCES)
async def test_packs_answer_it(source: Source, tmp_path: Path) -> None:
    async with lived(source, tmp_path) as memory:
        found = await score(memory)
    told = life()
    shown = f"{table({source: found})}\n{found}"
    right = len(told.questions) - len(found.missed)
    assert found.facts >= FACTS[source], shown
    assert right >= RIGHT[source], shown
    assert right - len(found.late) >= CURRENT_FIRST[source], shown
    assert len(found.unmarked) <= MOST_UNMARKED[source], shown
    assert len(found.loud) <= MOST_LOUD, shown
