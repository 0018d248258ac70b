"""*command* extraction: turns are read in groups by a program, and what it answers goes the given path."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from pps.app import App
from pps.config import EmbedderSettings, ExtractorSettings, JobsSettings, Settings
from pps.memory import Memory
from tests import stand_in


class Scripted:
    """A stand-in command with its script, and the prompts that it got."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir()
        self.says([])

    def says(self, script: Sequence[dict[str, Any]]) -> None:
        (self.folder / "script.json").write_text(json.dumps(script))

    @property
    def asked(self) -> list[str]:
        return [(self.folder / f"asked-{at}.txt").read_text() for at in range(len(list(self.folder.glob("asked-*"))))]

    def settings(self, home: Path, **more: Any) -> Settings:
        words = (sys.executable, str(Path(stand_in.__file__)), str(self.folder))
        extractor = ExtractorSettings(**{"mode": "command", "command": words, "idle_s": 200, **more})
        jobs = JobsSettings(first_wait_s=0.01, attempts=2)
        return Settings(home=home, embedder=EmbedderSettings(name="hash"), extractor=extractor, jobs=jobs)


Opened = Callable[..., AbstractAsyncContextManager[Memory]]


@pytest.fixture
def command(tmp_path: Path) -> Scripted:
    return Scripted(tmp_path / "command")


@pytest.fixture
def ana(tmp_path: Path, command: Scripted) -> Opened:
    @asynccontextmanager
    async def opened(**more: Any) -> AsyncIterator[Memory]:
        async with App.open(command.settings(tmp_path / "home", **more)) as app:
            if not any(entry.entity.name == "ana" for entry in app.registry.list()):
                await app.create("ana")
            async with app.memory("ana") as memory:
                yield memory

    return opened


LIVES = {"subject": "User", "relation": "lives in", "object": "Oslo", "text": "User lives in Oslo.", "said": "in Oslo"}
MOVED = {"subject": "User", "relation": "LIVES_IN", "object": "Rome", "text": "User lives in Rome.", "said": "to Rome"}


async def facts(memory: Memory) -> dict[str, bool]:
    page = await memory.timeline()
    return {fact.text: fact.invalid_at is None for fact in page.facts}


async def test_turns_are_read_together_and_a_later_group_ends_what_an_earlier_one_found(
    ana: Opened, command: Scripted
) -> None:
    command.says([LIVES, {**MOVED, "invalidates": ["F1"]}])
    async with ana() as memory:
        first = await memory.remember("I live in Oslo.", session="one")
        await memory.remember("I keep bees there.", session="one")
        assert (first.state, first.facts, command.asked) == ("done", 0, [])
        assert await memory.settled()
        [prompt] = command.asked
        assert "I live in Oslo." in prompt
        assert "I keep bees there." in prompt
        assert await facts(memory) == {"User lives in Oslo.": True}
        await memory.remember("I moved to Rome.", session="two")
        assert await memory.settled()
        assert '"fact": "F1", "text": "User lives in Oslo."' in command.asked[1]
        assert "I keep bees there." not in command.asked[1]
        assert await facts(memory) == {"User lives in Oslo.": False, "User lives in Rome.": True}
        assert (await memory.ledger()).problems == ()


async def test_it_reads_when_the_turns_fill_a_group_or_none_comes_any_more(ana: Opened, command: Scripted) -> None:
    command.says([LIVES])
    async with ana(group_tokens=100) as memory:
        for at in range(8):
            await memory.remember(f"I live in Oslo, and this is the {at}th time that I say so to you.")
        while not await facts(memory):
            pass
        assert 1 <= len(command.asked) < 8
    async with ana(idle_s=0.2) as memory:
        command.says([MOVED])
        await memory.remember("I moved to Rome.")
        while "User lives in Rome." not in await facts(memory):
            pass


async def test_what_the_turns_do_not_say_is_dropped_and_counted(ana: Opened, command: Scripted) -> None:
    wrong = [
        {**LIVES, "object": "Paris"},
        {**LIVES, "subject": "She"},
        {**LIVES, "relation": ""},
        {**LIVES, "turns": [9]},
        {"node": {"name": "Atlantis", "kind": "Place"}},
        {"node": {"name": "Oslo", "kind": "Place", "summary": "A city that the user lives in."}},
    ]
    command.says([*wrong, LIVES])
    async with ana() as memory:
        receipt = await memory.remember("I live in Oslo.")
        assert await memory.settled()
        assert await facts(memory) == {"User lives in Oslo.": True}
        job = await memory.jobs.status(receipt.job_id)
        assert (job.nodes, job.facts) == (2, 1)


async def test_a_program_runs_in_an_empty_folder_and_gets_nothing_of_ours_but_the_mark(
    ana: Opened, command: Scripted, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NEO4J_PASSWORD", "hunter22")
    monkeypatch.setenv("PPS_NEO4J__PASSWORD", "hunter22")
    async with ana() as memory:
        await memory.remember("I live in Oslo.")
        assert await memory.settled()
    folder, *rest = (command.folder / "env-0.txt").read_text().splitlines()
    assert rest == ["PPS_INSIDE_EXTRACTOR"]
    assert not os.path.exists(folder)  # noqa: ASYNC240, PTH110
