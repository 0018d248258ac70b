"""The spool under many hooks at once and under SIGKILL, of hooks and of the server that drains it."""

from __future__ import annotations

import json
import random
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from pps.server import spool
from tests.integration.hooks.acting import Session
from tests.integration.hooks.conftest import registered, turns_of
from tests.integration.interfaces.serving import clean_env, serving
from tests.sampling import sized
from tests.waiting import PATIENCE_S, wait_until

HOOKS = sized(4, 8)
EACH = 3
SHOTS = sized(6, 16)


@pytest.fixture
def alone(tmp_path: Path) -> Session:
    """A session whose server is away; the project is the entity ``shop``'s."""
    project, home = tmp_path / "shop", tmp_path / "home"
    project.mkdir()
    registered(home, project)
    return Session(home, project)


def in_spool(home: Path) -> list[dict[str, Any]]:
    return [json.loads(path.read_bytes()) for path in spool.waiting(home)]


def said_in(home: Path, session: Session) -> list[str]:
    return [one["content"] for one in turns_of(home, session.id)]


def prompts(session: Session, numbers: range) -> list[str]:
    """Tell the hooks prompts, one after the other; return them."""
    texts = [f"Prompt {number} of {session.id}." for number in numbers]
    for text in texts:
        assert session.run("UserPromptSubmit", prompt=text).is_silent()
    return texts


def test_hooks_that_spool_at_once_leave_every_event_whole_once_and_in_its_sessions_order(
    alone: Session,
) -> None:
    sessions = [Session(alone.home, alone.project) for _ in range(HOOKS)]
    with ThreadPoolExecutor(HOOKS) as threads:
        told = list(threads.map(lambda session: prompts(session, range(EACH)), sessions))
    spooled = in_spool(alone.home)
    assert len(spooled) == len({one["id"] for one in spooled}) == HOOKS * EACH
    for session, texts in zip(sessions, told, strict=True):
        assert [one["text"] for one in spooled if one["session"] == session.id] == texts
    assert not list(spool.spool_folder(alone.home).glob(".*"))
    with serving(alone.home):
        wait_until(lambda: not spool.waiting(alone.home))
        assert [said_in(alone.home, session) for session in sessions] == told


def test_a_hook_killed_while_it_spools_leaves_a_whole_event_or_none(alone: Session) -> None:
    chance = random.Random(7)  # noqa: S311 - a reproducible choice
    payload = json.dumps(alone.payload("UserPromptSubmit", prompt="Shot. " * 20_000)).encode()
    begun = time.monotonic()
    assert alone.raw("UserPromptSubmit", payload).is_silent()
    whole_s = time.monotonic() - begun
    for number in range(SHOTS):
        process = alone.start("UserPromptSubmit")
        assert process.stdin is not None
        process.stdin.write(payload)
        process.stdin.close()
        process.stdin = None
        if number % 2:
            _wait_for_draft(alone.home, process)
        else:
            time.sleep(chance.uniform(0.0, whole_s))
        process.send_signal(signal.SIGKILL)
        process.communicate()
    spooled = in_spool(alone.home)
    assert 1 <= len(spooled) <= SHOTS + 1
    assert {one["text"] for one in spooled} == {"Shot. " * 20_000}
    [later] = prompts(alone, range(1))
    with serving(alone.home):
        wait_until(lambda: not spool.waiting(alone.home))
        said = said_in(alone.home, alone)
        assert "".join(said[:-1]) == "Shot. " * 20_000
        assert said[-1] == later
        assert spool.look(alone.home).bad == 0


def _wait_for_draft(home: Path, process: subprocess.Popen[bytes]) -> None:
    """Return as soon as a hook writes its event to disk, or has ended."""
    folder = spool.spool_folder(home)
    before = set(folder.iterdir())
    while process.poll() is None and set(folder.iterdir()) == before:
        pass


def test_a_server_killed_while_it_drains_keeps_every_event_once_and_in_order(
    alone: Session,
) -> None:
    sessions = [Session(alone.home, alone.project) for _ in range(HOOKS)]
    with ThreadPoolExecutor(HOOKS) as threads:
        told = list(threads.map(conversation, sessions))
    there = HOOKS * EACH * 2
    assert len(spool.waiting(alone.home)) == there
    for kept in (there * 2 // 3, there // 3):
        kill_when(alone.home, kept)
        assert len(spool.waiting(alone.home)) <= kept
    with serving(alone.home):
        wait_until(lambda: not spool.waiting(alone.home))
        assert [said_in(alone.home, session) for session in sessions] == told
        assert spool.look(alone.home).bad == 0


def conversation(session: Session) -> list[str]:
    """Tell the hooks prompts and their answers; return all that was said."""
    said: list[str] = []
    for number in range(EACH):
        said += prompts(session, range(number, number + 1))
        said.append(f"Answer {number} of {session.id}.")
        session.says(said[-1])
        assert session.run("Stop", last_assistant_message=said[-1]).is_silent()
    return said


def kill_when(home: Path, left: int) -> None:
    """Start a server and kill it as soon as no more than so many events wait."""
    with (home / "killed-server.log").open("ab") as log:
        command = [sys.executable, "-m", "pps", "serve"]
        server = subprocess.Popen(
            command, env=clean_env(home), stdout=log, stderr=log, stdin=subprocess.DEVNULL
        )
        try:
            until = time.monotonic() + PATIENCE_S
            while len(spool.waiting(home)) > left:
                assert server.poll() is None, "the server ended at its start"
                assert time.monotonic() < until
                time.sleep(0.001)
        finally:
            server.kill()
            server.wait()
