"""*command* extraction: turns are read in groups by a program, and what it answers goes the given path."""

from __future__ import annotations

import asyncio
import json
import os
import shlex
import sys
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from pps.app import App
from pps.config import EmbedderSettings, ExtractorSettings, JobsSettings, Settings
from pps.core.errors import ConfigError, InvalidRequest
from pps.core.values import FactDraft
from pps.ingest.hook_events import SessionEvent
from pps.journal.journal import Journal
from pps.memory import Memory
from pps.operations.upkeep import extracted_text, job_text
from tests import stand_in
from tests.waiting import PATIENCE_S


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
        return [
            (self.folder / f"asked-{at}.txt").read_text()
            for at in range(len(list(self.folder.glob("asked-*"))))
        ]

    def settings(self, home: Path, **more: Any) -> Settings:
        words = (sys.executable, str(Path(stand_in.__file__)), str(self.folder))
        extractor = ExtractorSettings(
            **{"mode": "command", "command": words, "idle_s": 200, **more}
        )
        jobs = JobsSettings(first_wait_s=0.01, attempts=2)
        return Settings(
            home=home, embedder=EmbedderSettings(name="hash"), extractor=extractor, jobs=jobs
        )


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


@asynccontextmanager
async def opened(app: App) -> AsyncIterator[Memory]:
    await app.create("ana")
    async with app.memory("ana") as memory:
        yield memory


LIVES = {
    "subject": "User",
    "relation": "lives in",
    "object": "Oslo",
    "text": "User lives in Oslo.",
    "said": "in Oslo",
}
MOVED = {
    "subject": "User",
    "relation": "LIVES_IN",
    "object": "Rome",
    "text": "User lives in Rome.",
    "said": "to Rome",
}


async def facts(memory: Memory) -> dict[str, bool]:
    page = await memory.timeline()
    return {fact.text: fact.invalid_at is None for fact in page.facts}


async def test_turns_are_read_together_and_a_later_group_ends_what_an_earlier_one_found(
    settings: Settings, command: Scripted
) -> None:
    command.says([LIVES, {**MOVED, "invalidates": ["F1"]}])
    extractor = command.settings(settings.home).extractor
    async with (
        App.open(settings.model_copy(update={"extractor": extractor})) as app,
        opened(app) as memory,
    ):
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


async def test_it_reads_when_the_turns_fill_a_group_or_none_comes_any_more(
    ana: Opened, command: Scripted
) -> None:
    command.says([LIVES])
    async with ana(group_tokens=100) as memory:
        for at in range(8):
            await memory.remember(
                f"I live in Oslo, and this is the {at}th time that I say so to you."
            )
        while not await facts(memory):
            pass
        assert 1 <= len(command.asked) < 8
    async with ana(idle_s=0.2) as memory:
        command.says([MOVED])
        await memory.remember("I moved to Rome.")
        while "User lives in Rome." not in await facts(memory):
            pass


def session_end(number: int) -> SessionEvent:
    return SessionEvent(
        id=f"{number:032x}", at=datetime.now(UTC), event="SessionEnd", session=str(number)
    )


async def until_done(memory: Memory) -> None:
    while (await memory.jobs.mark())[1]:  # noqa: ASYNC110 - the worker and another process are
        await asyncio.sleep(0.02)


async def test_turns_are_grouped_in_every_session_whenever_the_one_before_has_ended(
    ana: Opened, command: Scripted
) -> None:
    command.says([LIVES])
    async with ana() as memory:
        for session in range(3):
            for at in range(4):
                text = f"I live in Oslo: {session}, {at}."
                wait = "journal" if at == 3 else "done"  # the last words are being saved at the end
                await memory.remember(text, session=str(session), wait=wait)
                await asyncio.sleep(0.1)
            await memory.sessions.capture(session_end(session), lambda _: True)
            await until_asked(command, session + 1)
            await until_done(memory)
        await memory.remember("I live in Oslo, as ever.", session="next")
        await asyncio.sleep(0.5)
        assert len(command.asked) == 3
        assert [prompt.count('"turn": ') for prompt in command.asked] == [4, 4, 4]


async def test_what_the_turns_do_not_say_is_dropped_and_counted(
    ana: Opened, command: Scripted
) -> None:
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
        dropped = [(one.what, one.why) for one in job.skipped]
        assert dropped == [
            ("User lives in Oslo.", "its turns do not name both of its ends"),
            ("User lives in Oslo.", "its subject is no name"),
            ("", "a fact is not of the form that was asked for"),
            ("User lives in Oslo.", "no turn of the prompt says it"),
            ("Atlantis", "a node is not named by any turn"),
        ]
        page = await memory.graph.said()
        assert page.turns[0].outcome is not None
        assert page.turns[0].outcome.skipped == job.skipped
        assert "left out: Atlantis: a node is not named by any turn" in job_text(job)
        assert "left out 5 facts or nodes that no turn says" in " ".join(
            (await memory.health()).notes
        )


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


async def until_asked(command: Scripted, times: int) -> None:
    while len(command.asked) < times:  # noqa: ASYNC110 - another process is
        await asyncio.sleep(0.02)


async def test_an_answer_that_is_no_json_is_tried_with_fewer_turns_then_alone_and_parked_at_last(
    ana: Opened, command: Scripted
) -> None:
    command.says([{"do": "prose"}])
    async with ana() as memory:
        for text in ("I live in Oslo.", "I keep bees."):
            await memory.remember(text)
        assert await memory.settled()
        parked = await memory.jobs.list("failed")
        assert [(one.stage, one.code) for one in parked] == [("read", "model_output_invalid")] * 2
        assert "I live in Oslo." in command.asked[0]
        assert "I keep bees." in command.asked[0]
        told = [prompt.partition("\nTurns:\n")[2] for prompt in command.asked[1:]]
        assert not any("I live in Oslo." in turns and "I keep bees." in turns for turns in told)
        command.says([LIVES])
        await memory.jobs.retry()
        assert await memory.settled()
        # Rules read it meanwhile; what the command says again is that fact, in its older words.
        assert await facts(memory) == {"I live in Oslo.": True}


@pytest.mark.parametrize(
    ("act", "more", "why"),
    [
        ("fail", {}, "ended with code 3"),
        ("sleep", {"command_timeout_s": 0.5}, "did not answer within 0.5 s"),
        ("flood", {}, "wrote more than 1,048,576 bytes"),
        ("", {"command": ("pps-no-such-program",)}, "cannot be run"),
    ],
)
async def test_a_command_that_is_away_keeps_its_turns_waiting_and_saves_go_on(
    ana: Opened, command: Scripted, act: str, more: dict[str, Any], why: str
) -> None:
    command.says([{"do": act}, LIVES])
    async with ana(**more) as memory:
        receipt = await memory.remember("I live in Oslo.")
        await memory.settled(0)  # somebody asks for it
        while not (job := await memory.jobs.status(receipt.job_id)).failures:
            pass
        assert why in job.error
        assert (await memory.remember("I keep bees.")).state == "done"
        assert (await memory.recall("bees"))["episodes"]
    command.says([LIVES])
    async with ana() as memory:
        assert await memory.settled()
        assert await facts(memory) == {"I live in Oslo.": True}  # rules read it meanwhile


async def until_known(memory: Memory, *texts: str) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while not set(texts) <= set(await facts(memory)):  # noqa: ASYNC110 - the worker is
            await asyncio.sleep(0.02)


async def test_nothing_that_is_remembered_waits_for_a_command_that_reads(
    ana: Opened, command: Scripted
) -> None:
    command.says([{"do": "hold"}, LIVES])
    async with ana(idle_s=0) as memory:
        await memory.remember("I live in Oslo.")
        await until_asked(command, 1)  # and its answer is held back
        assert (await memory.remember("I keep bees.", timeout_s=PATIENCE_S)).state == "done"
        (command.folder / "go").touch()
        assert await memory.settled(PATIENCE_S)


@pytest.mark.parametrize("act", ["fail", "sleep", "missing"])
async def test_while_a_command_is_away_rules_read_and_it_reads_the_turns_when_it_is_back(
    ana: Opened, command: Scripted, act: str
) -> None:
    absent = {"command": ("pps-no-such-program",)} if act == "missing" else {}
    command.says([{"do": act}])
    async with ana(**absent, idle_s=0, command_timeout_s=1) as memory:
        for text in ("I live in Oslo.", "I'm allergic to walnuts.", "I keep bees.", "A.", "B."):
            assert (await memory.remember(text)).state == "done"
        await until_known(memory, "I live in Oslo.", "I'm allergic to walnuts.")
        assert (await memory.ledger()).problems == ()
        health = await memory.health()
        assert "rules read the turns meanwhile" in " ".join(health.problems)
        pack = (await memory.ambient_recall("", mode="startup")).text
        assert "new facts are those that rules find" in pack
        assert "hooks install" not in pack + " ".join((*health.notes, *health.problems))
        again = await memory.remember("I work at Acme.")
        await until_known(memory, "I work at Acme.")
        assert (await memory.jobs.status(again.turn_id)).stage == "read"
    bees = {**LIVES, "relation": "KEEPS", "object": "bees", "text": "User keeps bees."}
    command.says([{**bees, "said": "bees"}])
    async with ana() as memory:
        assert await memory.settled()
        assert set(await facts(memory)) >= {"I live in Oslo.", "User keeps bees."}
        assert (await memory.jobs.status(again.turn_id)).state == "done"
        health = await memory.health()
        assert (health.problems, health.notes) == ((), ())


async def test_a_command_that_nothing_waits_for_any_more_is_no_trouble(
    ana: Opened, command: Scripted
) -> None:
    command.says([{"do": "fail"}])
    async with ana(idle_s=0) as memory:
        turn = await memory.remember("I live in Oslo.")
        await until_known(memory, "I live in Oslo.")
        assert "rules read the turns meanwhile" in " ".join((await memory.health()).problems)
        await memory.forget([turn.turn_id], dry_run=False)
        async with asyncio.timeout(PATIENCE_S):
            while (await memory.health()).problems:  # noqa: ASYNC110 - the reader looks again
                await asyncio.sleep(0.02)


async def test_a_command_that_is_set_and_found_nothing_yet_is_not_advised_to_be_installed(
    ana: Opened, command: Scripted
) -> None:
    async with ana() as memory:
        for text in ("One.", "Two.", "Three.", "Four.", "Five."):
            await memory.remember(text)
        for text in (
            " ".join((await memory.health()).notes),
            (await memory.ambient_recall("", mode="startup")).text,
        ):
            assert "5 turns and no facts: 'python" in text
            assert "reads the turns when a session pauses or ends" in text
            assert "hooks install" not in text


async def test_a_defect_in_reading_is_told_by_health_until_it_is_gone(
    ana: Opened, command: Scripted, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def failing(*_: object) -> list[str]:
        raise RuntimeError("nobody foresaw it")

    command.says([LIVES])
    async with ana() as memory:
        monkeypatch.setattr(Journal, "named_in", failing)
        await memory.remember("I live in Oslo.")
        while not any(
            "an unforeseen RuntimeError" in one for one in (await memory.health()).problems
        ):
            await memory.settled(0.1)
        monkeypatch.undo()
        assert await memory.settled(60)
        assert (await memory.health()).problems == ()
        assert list(await facts(memory)) == ["User lives in Oslo."]


async def test_a_days_budget_ends_the_reading_until_the_next(
    ana: Opened, command: Scripted
) -> None:
    command.says([LIVES])
    async with ana(tokens_per_day=10) as memory:
        await memory.remember("I live in Oslo.")
        assert await memory.settled()
        await memory.remember("I keep bees.")
        assert not await memory.settled(0.5)
        assert len(command.asked) == 1
        report = await memory.costs.report()
        assert report.paused_until is not None
        assert report.days[0].unmetered == 1
        assert "budget" in " ".join((await memory.health()).notes)


async def test_what_was_there_before_is_read_once_and_what_an_agent_read_is_not(
    ana: Opened, command: Scripted
) -> None:
    command.says([LIVES])
    async with ana(mode="given") as memory:
        for text in ("I live in Oslo.", "One.", "Two.", "Three."):
            await memory.remember(text)
        assert "no facts" not in " ".join((await memory.health()).notes)
        await memory.remember("I keep bees.")
        assert "5 turns and no facts" in " ".join((await memory.health()).notes)
        assert "5 turns and no facts" in (await memory.ambient_recall("", mode="startup")).text
        await memory.remember("Ana sails.", facts=[FactDraft("Ana", "SAILS", "Sea")])
        await memory.remember("Not for reading.", extraction="none")
        with pytest.raises(InvalidRequest, match=r"extractor\.mode"):
            await memory.jobs.extract(dry_run=False)
    seen: list[tuple[str, int, int]] = []
    command.says([LIVES, {"node": {"name": "Atlantis", "kind": "Place"}}])
    async with ana() as memory:
        would = await memory.jobs.extract()
        assert (would.dry_run, would.turns, command.asked) == (True, 5, [])
        assert would.tokens > 500
        done = await memory.jobs.extract(dry_run=False, progress=lambda *at: seen.append(at))
        assert (done.turns, done.read, done.facts, done.waiting) == (5, 5, 1, 0)
        assert done.tokens > 500
        assert [one.why for one in done.left_out] == ["a node is not named by any turn"]
        assert "left out: Atlantis: a node" in extracted_text(done)
        assert seen
        assert not any(
            "Ana sails" in prompt or "Not for reading" in prompt for prompt in command.asked
        )
        assert (await memory.jobs.extract()).turns == 0
        assert "User lives in Oslo." in await facts(memory)
        assert (await memory.ledger()).problems == ()


async def test_what_rules_found_in_a_turn_stays_when_a_command_reads_it(
    ana: Opened, command: Scripted
) -> None:
    bees = {
        "subject": "User",
        "relation": "KEEPS",
        "object": "bees",
        "text": "User keeps bees.",
        "said": "bees",
    }
    command.says([bees])
    async with ana(mode="rules") as memory:
        receipt = await memory.remember("My sister is called Mara. I keep bees.")
        by_rules = {fact.uuid for fact in (await memory.timeline()).facts}
        assert by_rules
    async with ana() as memory:
        await memory.jobs.extract(dry_run=False, progress=lambda *_: None)
        found = {fact.uuid: fact.episodes for fact in (await memory.timeline()).facts}
        assert by_rules < set(found)
        assert set(found.values()) == {(receipt.turn_id,)}


async def test_a_reading_that_is_cut_short_is_done_again_and_nothing_is_doubled(
    ana: Opened, command: Scripted
) -> None:
    command.says([{"do": "hold"}, LIVES])
    async with ana() as memory:
        await memory.remember("I live in Oslo.")
        await memory.settled(0)  # somebody asks for it
        await until_asked(command, 1)
    (command.folder / "go").touch()
    async with ana() as memory:
        assert await memory.settled()
        assert len(command.asked) == 2
        [fact] = (await memory.timeline()).facts
        assert len(fact.episodes) == 1


async def test_a_text_with_other_words_is_read_again_and_what_the_old_ones_said_ends(
    ana: Opened, command: Scripted
) -> None:
    command.says([LIVES, MOVED])
    async with ana() as memory:
        receipt = await memory.remember("I live in Oslo.")
        assert await memory.settled()
        await memory.records.update(receipt.turn_id, content="I moved to Rome.")
        assert await memory.settled()
        assert await facts(memory) == {"User lives in Oslo.": False, "User lives in Rome.": True}


async def test_a_command_is_set_for_one_entity_and_taken_back(
    tmp_path: Path, command: Scripted
) -> None:
    settings = command.settings(tmp_path / "home", mode="given")
    command.says([LIVES])
    line = shlex.join(settings.extractor.command)
    async with App.open(settings) as app:
        await app.create("ana")
        with pytest.raises(ConfigError, match=r"extractor\.model"):
            await app.extract_by("ana", "ollama")
        before = (app.registry.get("ana").folder / "entity.toml").read_text()
        await app.extract_by("ana", line)
        async with app.memory("ana") as memory:
            await memory.remember("I live in Oslo.")
            assert await memory.settled()
            assert await facts(memory) == {"User lives in Oslo.": True}
        await app.extract_by("ana", "")
        assert (app.registry.get("ana").folder / "entity.toml").read_text() == before
        async with app.memory("ana") as memory:
            await memory.remember("I moved to Rome.")
            assert await memory.settled()
    assert len(command.asked) == 1
