"""Sixty prompts that need nothing, to a memory of five hundred turns: nearly all are given nothing, the rest little."""

from __future__ import annotations

import json
from pathlib import Path

from benchmarks.notes import read_notes
from pps.app import App
from pps.config import Settings

LIFE = Path(__file__).parents[1] / "life"
NEEDLESS = [line.replace("\\n", "\n") for line in (LIFE / "needless.txt").read_text().splitlines()]


def said() -> list[str]:
    """Return five hundred turns: a life, then notes and the chat around them."""
    life = [str(one["text"]) for one in json.loads((LIFE / "turns.json").read_text())]
    notes = max(read_notes(), key=lambda one: len(one.turns))
    return [*life, *(turn.content for turn in notes.turns.values())][:500]


async def test_prompts_that_need_nothing_are_given_nothing_or_little(tmp_path: Path) -> None:
    turns = said()
    assert (len(turns), len(NEEDLESS)) == (500, 60)
    async with App.open(Settings(home=tmp_path)) as app:
        await app.create("jonas")
        async with app.memory("jonas") as memory:
            await memory.remember_many(
                [(text, {"source_ref": str(at)}) for at, text in enumerate(turns)]
            )
            await memory.settled()
            packs = {
                one: await memory.sessions.pack(one, f"s{at}") for at, one in enumerate(NEEDLESS)
            }
            given = {one: pack.tokens for one, pack in packs.items() if pack.sections}
    assert len(given) <= 0.15 * len(NEEDLESS), given
    assert all(tokens < 120 for tokens in given.values()), given
