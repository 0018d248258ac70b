"""Current facts: sixty cases of supersession, by every source, in any order of import, on both stores."""

from __future__ import annotations

import json
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from pps.app import App
from pps.config import ExtractorSettings, Settings
from pps.memory import Memory
from tests import stand_in
from tests.model_server import memory_read_by, model_server
from tests.supersession.supersession_cases import (
    Play,
    Source,
    act,
    closing_mistakes,
    load_cases,
    mistakes,
    plays,
    script,
    take_in,
)

pytestmark = pytest.mark.timeout(300)


@asynccontextmanager
async def memory_of(settings: Settings, **more: Any) -> AsyncGenerator[Memory]:
    changed = settings.model_copy(update=more)
    async with App.open(changed) as app:
        await app.create("ana")
        async with app.memory("ana") as memory:
            yield memory


def answering(folder: Path, played: list[Play]) -> ExtractorSettings:
    """Return the settings of a stand-in command that answers what the plays say."""
    folder.mkdir()
    (folder / "script.json").write_text(json.dumps(script(played)))
    words = (sys.executable, str(Path(stand_in.__file__)), str(folder))
    return ExtractorSettings(mode="command", command=words, idle_s=200)


@asynccontextmanager
async def memory_by(
    source: Source, settings: Settings, folder: Path, played: list[Play]
) -> AsyncGenerator[Memory]:
    """Open a memory whose facts come from a source."""
    if source == "model":
        with model_server() as server:
            async with memory_read_by(settings, server) as memory:
                yield memory
    elif source == "command":
        extractor = answering(folder, played)
        async with memory_of(settings, extractor=extractor) as memory:
            yield memory
    else:
        async with memory_of(settings) as memory:
            yield memory


def test_there_are_sixty_cases_and_each_has_a_name_of_its_own() -> None:
    names = [case["name"] for case in load_cases()]
    assert len(names) == len(set(names))
    assert len(names) >= 60


@pytest.mark.parametrize("together", [False, True], ids=["batch by batch", "in one batch"])
@pytest.mark.parametrize("source", ["agent", "rules", "command", "model"])
async def test_the_current_fact_is_right_in_any_order_of_import(
    settings: Settings, tmp_path: Path, source: Source, together: bool
) -> None:
    played = plays(source, 6 if settings.store != "neo4j" and source != "model" else 2)
    async with memory_by(source, settings, tmp_path / "command", played) as memory:
        turns = await take_in(memory, source, played, together=together)
        wrong: list[str] = []
        for play in played:
            wrong += await mistakes(memory, play, play.case)
            wrong += await closing_mistakes(memory, play)
        assert not wrong, "\n".join(wrong)
        if together:
            return
        for play in played[:: 1 if settings.store != "neo4j" else 2]:
            for what in play.case.get("then", ()):
                await act(memory, play, turns, what)
                found = await mistakes(memory, play, what)
                wrong += [f"{what['do']}: {one}" for one in found]
        assert not wrong, "\n".join(wrong)
        assert (await memory.ledger()).problems == ()
