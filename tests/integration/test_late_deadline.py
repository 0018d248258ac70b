"""A stage that its deadline cut off is told in the channel's notes, and the rest still answers."""

from __future__ import annotations

from pathlib import Path

from pps.app import App
from pps.config.settings import RerankerSettings, Settings


async def test_a_late_stage_that_is_cut_off_says_so(tmp_path: Path) -> None:
    settings = Settings(home=tmp_path / "home", reranker=RerankerSettings(deadline_ms=1))
    async with App.open(settings) as app:
        await app.create("ana")
        async with app.memory("ana") as memory:
            for number in range(40):
                await memory.remember(
                    f"The lamp number {number} hangs in the hall and is lit at dusk."
                )
            recalled = await memory.recall("Which lamp hangs in the hall?", profile="pipeline")
    episodes = recalled.channels["episodes"]
    assert episodes.hits
    assert any(note.startswith("late: its 1 ms ran out") for note in episodes.notes)
