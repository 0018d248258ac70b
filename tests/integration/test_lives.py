"""A traveller's life told in sixty-nine turns, and forty-four questions to it: what packs answer, for every source of facts.

The bounds are floors: what each source reached when they were set (``python -m tests.lives`` prints the table).
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.lives import SOURCES, Source, life, lived, score, table

RIGHT: dict[Source, int] = {"none": 42, "rules": 42, "agent": 41, "command": 41, "model": 41}
CURRENT_FIRST: dict[Source, int] = {
    "none": 38,
    "rules": 39,
    "agent": 41,
    "command": 41,
    "model": 36,
}
FACTS: dict[Source, int] = {"none": 0, "rules": 24, "agent": 65, "command": 64, "model": 60}
MOST_UNMARKED: dict[Source, int] = {"none": 3, "rules": 3, "agent": 0, "command": 0, "model": 9}
"""What an agent or a command says ends is never shown without a mark. Without facts, three of fifteen changes are too far
from each other in words ("broke up", another language); a model's summaries of nodes keep what held before."""
MOST_LOUD = 1


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
