"""A command that reads turns sees one entity's at a time, and what is forgotten while it reads stays forgotten."""

from __future__ import annotations

import asyncio
import json
import os
import shlex
import sys
from collections.abc import AsyncIterator, Mapping
from pathlib import Path

import pytest

from pps.app import App
from pps.config import EmbedderSettings, ExtractorSettings, JobsSettings, Settings
from pps.core.values import FactDraft
from pps.memory import Memory
from tests import stand_in
from tests.held_files import files_below
from tests.waiting import PATIENCE_S

LIVES = {
    "subject": "Mara",
    "relation": "LIVES_IN",
    "object": "Oslo",
    "text": "Mara lives in Oslo.",
    "said": "in Oslo",
}
HIDES = {
    "subject": "Mara",
    "relation": "HIDES",
    "object": "gold",
    "text": "Mara hides gold.",
    "said": "quartzmine",
}


@pytest.fixture
def command(tmp_path: Path) -> Path:
    folder = tmp_path / "command"
    folder.mkdir()
    return folder


@pytest.fixture
async def app(tmp_path: Path, command: Path) -> AsyncIterator[App]:
    words = (sys.executable, str(Path(stand_in.__file__)), str(command))
    extractor = ExtractorSettings(mode="command", command=words, idle_s=200)
    settings = Settings(
        home=tmp_path / "home", embedder=EmbedderSettings(name="hash"), extractor=extractor
    )
    async with App.open(settings) as app:
        yield app


async def until(path: Path) -> None:
    while not os.path.exists(path):  # noqa: ASYNC110, ASYNC240, PTH110 - another process makes it
        await asyncio.sleep(0.02)


def asked(command: Path) -> list[str]:
    """Return the prompts that the stand-in got."""
    return [path.read_text() for path in command.glob("asked-*.txt")]


def kept(folder: Path, word: str) -> list[str]:
    """Return the files below a folder that hold a word, but the graph's own: its log keeps what it was told a while."""
    return [
        path.name
        for path, content in files_below(folder)
        if word.encode() in content and not path.name.startswith("graph.")
    ]


async def test_a_prompt_holds_turns_facts_and_names_of_one_entity_alone(
    app: App, command: Path
) -> None:
    (command / "script.json").write_text(json.dumps([LIVES]))
    words: Mapping[str, str] = {"ana": "kanariedach", "tom": "zinnoberrot"}
    for name, mark in words.items():
        await app.create(name)
        async with app.memory(name) as memory:
            known = [FactDraft("Mara", "HAS", mark, text=f"Mara has a {mark}.")]
            await memory.remember(f"Mara has a {mark}.", extraction="none", facts=known)
    for name, mark in words.items():
        async with app.memory(name) as memory:
            await memory.remember(f"Mara lives in Oslo, with her {mark}.", wait="journal")
    for name in words:
        async with app.memory(name) as memory:
            assert await memory.settled()
            assert "Mara lives in Oslo." in [fact.text for fact in (await memory.timeline()).facts]
    prompts = asked(command)
    for mark, foreign in (tuple(words.values()), tuple(words.values())[::-1]):
        [prompt] = [one for one in prompts if mark in one]
        assert f"Mara has a {mark}." in prompt  # what is known
        assert f"with her {mark}" in prompt
        assert foreign not in prompt


async def test_a_command_that_is_set_for_one_reads_nothing_of_another(
    tmp_path: Path, command: Path
) -> None:
    (command / "script.json").write_text(json.dumps([LIVES]))
    given = ExtractorSettings(mode="given")
    settings = Settings(
        home=tmp_path / "home", embedder=EmbedderSettings(name="hash"), extractor=given
    )
    async with App.open(settings) as app:
        for name, mark in (("ana", "kanariedach"), ("tom", "zinnoberrot")):
            await app.create(name)
            async with app.memory(name) as memory:
                await memory.remember(f"Mara lives in Oslo, with her {mark}.")
        theirs = (app.registry.get("tom").folder / "entity.toml").read_text()
        await app.extract_by(
            "ana", shlex.join((sys.executable, str(Path(stand_in.__file__)), str(command)))
        )
        async with app.memory("ana") as memory:
            done = await memory.jobs.extract(dry_run=False, progress=lambda *_: None)
        assert (done.turns, done.read) == (1, 1)
        assert (app.registry.get("tom").folder / "entity.toml").read_text() == theirs
        async with app.memory("tom") as memory:
            assert (await memory.timeline()).facts == ()
            assert (await memory.jobs.extract()).turns == 1
    assert not any("zinnoberrot" in prompt for prompt in asked(command))


async def test_a_command_of_ones_own_that_fails_keeps_nobody_else_waiting_and_is_told_to_nobody_else(
    tmp_path: Path, command: Path
) -> None:
    (command / "script.json").write_text(json.dumps([LIVES]))
    (tmp_path / "quartzmine").mkdir()
    (tmp_path / "quartzmine" / "script.json").write_text(json.dumps([{"do": "fail"}]))
    words = (sys.executable, str(Path(stand_in.__file__)))
    settings = Settings(
        home=tmp_path / "home",
        embedder=EmbedderSettings(name="hash"),
        extractor=ExtractorSettings(mode="command", command=(*words, str(command)), idle_s=200),
        jobs=JobsSettings(breaker_failures=1),
    )
    async with App.open(settings) as app:
        for name in ("ana", "ben"):
            await app.create(name)
        await app.extract_by("ana", shlex.join((*words, str(tmp_path / "quartzmine"))))
        async with app.memory("ana") as ana, app.memory("ben") as ben, asyncio.timeout(PATIENCE_S):
            await ana.remember("Mara lives in Oslo.", wait="journal")
            settling = asyncio.create_task(ana.settled())
            while not (unwell := await ana.health()).problems:  # noqa: ASYNC110 - a process comes to its end
                await asyncio.sleep(0.02)
            assert not unwell.outage  # it is ana's alone: the server is well
            await ben.remember("Mara lives in Oslo.", wait="journal")
            assert await ben.settled()
            assert [fact.text for fact in (await ben.timeline()).facts] == ["Mara lives in Oslo."]
            health = await ben.health()
            assert (health.problems, health.outage) == ((), False)
            assert "ended with code 3" in repr(unwell)
            assert "ended with code 3" not in repr(health)
            settling.cancel()


@pytest.mark.parametrize("change", ["forget", "update"])
async def test_what_is_forgotten_or_changed_while_it_is_read_leaves_nothing_behind(
    app: App, command: Path, tmp_path: Path, change: str
) -> None:
    (command / "script.json").write_text(json.dumps([{"do": "hold"}, LIVES, HIDES]))
    await app.create("ana")
    async with app.memory("ana") as memory:
        await memory.remember("Mara lives in Oslo.", wait="journal")
        secret = await memory.remember("Mara hides gold in the quartzmine.")
        settling = asyncio.create_task(memory.settled())
        await until(command / "asked-0.txt")
        await changed(memory, secret.turn_id, change)
        (command / "go").touch()
        assert await settling
        assert [fact.text for fact in (await memory.timeline()).facts] == ["Mara lives in Oslo."]
        assert (await memory.ledger()).problems == ()
    assert "quartzmine" not in (command / "asked-1.txt").read_text()
    if change == "forget":
        assert kept(tmp_path / "home", "quartzmine") == []


async def changed(memory: Memory, turn: str, change: str) -> None:
    async with asyncio.timeout(PATIENCE_S):  # it waits for no command
        if change == "forget":
            await memory.forget([turn], dry_run=False)
        else:
            await memory.records.update(turn, content="Mara hides nothing.")


async def test_what_is_forgotten_while_its_words_are_used_stands_in_no_fact_of_another(
    app: App, command: Path, tmp_path: Path
) -> None:
    (command / "script.json").write_text(json.dumps([HIDES]))
    await app.create("ana")
    async with app.memory("ana") as memory:
        secret = await memory.remember("Mara hides gold in the quartzmine.")
        assert await memory.settled()
        told = {**LIVES, "text": "Mara, who hides gold, lives in Oslo."}
        (command / "script.json").write_text(json.dumps([{"do": "hold"}, told]))
        await memory.remember("Mara lives in Oslo.")
        settling = asyncio.create_task(memory.settled())
        await until(command / "asked-1.txt")
        assert "Mara hides gold." in (command / "asked-1.txt").read_text()
        await memory.forget([secret.turn_id], dry_run=False)
        (command / "script.json").write_text(json.dumps([LIVES]))
        (command / "go").touch()
        assert await settling
        assert [fact.text for fact in (await memory.timeline()).facts] == ["Mara lives in Oslo."]
    assert "gold" not in (command / "asked-2.txt").read_text()
    assert kept(tmp_path / "home", "quartzmine") == []
    assert kept(tmp_path / "home", "hides gold") == []


async def test_an_answer_ties_and_ends_nothing_of_another_entity(app: App, command: Path) -> None:
    """Numbers that a prompt does not have, ids and sentences of another entity name nothing here."""
    (command / "script.json").write_text(json.dumps([LIVES]))
    await app.create("ana")
    await app.create("tom")
    async with app.memory("tom") as tom:
        theirs = await tom.remember("Mara lives in Oslo.")
        assert await tom.settled()
        [fact] = (await tom.timeline()).facts
    moved = {
        **LIVES,
        "object": "Rome",
        "text": "Mara lives in Rome.",
        "said": "Rome",
        "invalidates": [fact.uuid, "Mara lives in Oslo.", "F1", "F7"],
        "turns": [1, 2, 99, theirs.turn_id],
        "cites": [theirs.turn_id],
        "uses": [theirs.turn_id],
    }
    (command / "script.json").write_text(json.dumps([moved]))
    async with app.memory("ana") as ana:
        await ana.remember("Mara moved to Rome.")
        assert await ana.settled()
        [own] = (await ana.timeline()).facts
        assert (own.text, theirs.turn_id in own.episodes) == ("Mara lives in Rome.", False)
    async with app.memory("tom") as tom:
        [fact] = (await tom.timeline()).facts
        assert (fact.text, fact.invalid_at) == ("Mara lives in Oslo.", None)
        await tom.forget([theirs.turn_id], dry_run=False)
    async with app.memory("ana") as ana:
        assert len((await ana.timeline()).facts) == 1


async def test_what_only_a_forgotten_turn_said_stands_in_no_fact_of_another(
    app: App, command: Path, tmp_path: Path
) -> None:
    moved = {**LIVES, "text": "Mara, who has diabetes, lives in Oslo."}
    (command / "script.json").write_text(json.dumps([moved]))
    await app.create("ana")
    async with app.memory("ana") as memory:
        secret = await memory.remember("Mara has diabetes.", wait="journal")
        await memory.remember("Mara lives in Oslo.", wait="journal")
        assert await memory.settled()
        assert [fact.text for fact in (await memory.timeline()).facts] == [moved["text"]]
        (command / "script.json").write_text(json.dumps([LIVES]))
        await memory.forget([secret.turn_id], dry_run=False)
        assert (await memory.timeline()).facts == ()
        assert kept(tmp_path / "home", "diabetes") == []
        assert await memory.settled()  # the other turn is read again
        assert [fact.text for fact in (await memory.timeline()).facts] == ["Mara lives in Oslo."]
    assert kept(tmp_path / "home", "diabetes") == []
