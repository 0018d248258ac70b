"""Hooks when the server hangs, refuses or is away: deadlines hold, and what was said waits in the spool."""

from __future__ import annotations

import http.server
import json
import stat
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from pps.link import RunFile, runfile, spool, stop
from tests.integration.hooks.acting import DEADLINE_S, Session
from tests.integration.hooks.conftest import eventually, registered, turns_of
from tests.integration.surfaces.serving import serving

SLOW_MACHINE_S = 4.0
"""What a busy machine may take to start and end a process; `scripts/bench hooks` is what measures."""
SPOOLED = {"UserPromptSubmit", "PostToolUse", "Stop", "PreCompact", "SessionEnd"}


@pytest.fixture
def alone(tmp_path: Path) -> Iterator[Session]:
    """A session whose server is away; the project is the entity ``shop``'s."""
    project, home = tmp_path / "shop", tmp_path / "home"
    project.mkdir()
    registered(home, project)
    yield Session(home, project)
    stop(home)


def in_spool(home: Path) -> list[dict[str, object]]:
    return [json.loads(path.read_bytes()) for path in spool.waiting(home)]


def test_a_server_that_hangs_is_not_waited_for(hanging: Path, tmp_path: Path) -> None:
    sessions = {event: Session(hanging, tmp_path) for event in DEADLINE_S}
    started: dict[str, tuple[subprocess.Popen[bytes], float]] = {}
    for event, session in sessions.items():
        process = session.start(event)
        started[event] = (process, time.monotonic())
        assert process.stdin is not None
        process.stdin.write(json.dumps(session.payload(event)).encode())
        process.stdin.close()
        process.stdin = None
    for event, (process, begun) in sorted(started.items(), key=lambda one: DEADLINE_S[one[0]]):
        out, err = process.communicate(timeout=30)
        assert (event, process.returncode, out, err) == (event, 0, b"", b"")
        assert time.monotonic() - begun < DEADLINE_S[event] + SLOW_MACHINE_S, event
    assert {one["event"] for one in in_spool(hanging)} == SPOOLED - {"SessionEnd"}  # it still waits, by itself


def test_input_that_never_ends_is_not_waited_for(hanging: Path, tmp_path: Path) -> None:
    begun = time.monotonic()
    process = Session(hanging, tmp_path).start("PreToolUse")
    assert process.wait(10) == 0
    assert time.monotonic() - begun < DEADLINE_S["PreToolUse"] + SLOW_MACHINE_S
    process.communicate()


@contextmanager
def answering(home: Path, status: int, body: bytes) -> Iterator[None]:
    """Run something on loopback that answers everything in one way."""

    class Answer(http.server.BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Answer) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        run = RunFile(1, "127.0.0.1", server.server_address[1], "0.1.0", False, runfile.new_secret())
        runfile.write(home, run)
        yield
        server.shutdown()


@pytest.mark.parametrize(
    ("status", "body", "spooled"),
    [
        (503, b"", True),
        (429, b"{}", True),
        (500, b"oops", True),
        (401, b"{}", True),
        (200, b"not JSON", True),
        (200, b'{"context": 7, "kept": false}', True),
        (200, b"{}", False),
        (404, b"{}", False),
        (400, b"{}", False),
    ],
)
def test_a_refusal_for_now_is_told_again_later(alone: Session, status: int, body: bytes, spooled: bool) -> None:
    with answering(alone.home, status, body):
        assert alone.run("UserPromptSubmit").is_silent()
        assert alone.run("SessionStart").is_silent()
    assert [one["event"] for one in in_spool(alone.home)] == ["UserPromptSubmit"] * spooled


def test_a_run_file_that_others_could_have_written_gets_nothing(alone: Session) -> None:
    with answering(alone.home, 200, b'{"context": "evil"}'):
        assert alone.run("UserPromptSubmit").context == "evil"
        runfile.run_file(alone.home).chmod(0o644)
        assert alone.run("UserPromptSubmit").is_silent()
    for broken in (b"", b"{", b"[]", b'{"host": "127.0.0.1"}', bytes(range(256))):
        runfile.run_file(alone.home).write_bytes(broken)
        runfile.run_file(alone.home).chmod(0o600)
        assert alone.run("PreToolUse").is_silent()
    runfile.run_file(alone.home).unlink()


def test_what_belongs_to_nobody_is_not_even_spooled(alone: Session, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    stranger = Session(alone.home, elsewhere)
    for event in SPOOLED:
        assert stranger.run(event).is_silent()
    stranger.options = ("--entity", "nobody")
    assert stranger.run("UserPromptSubmit").is_silent()
    assert Session(tmp_path / "no-home", elsewhere).run("UserPromptSubmit").is_silent()
    time.sleep(0.3)
    assert not (alone.home / "spool").exists()
    assert not (tmp_path / "no-home").exists()


def test_the_spool_is_private_and_has_an_end(alone: Session) -> None:
    assert alone.run("UserPromptSubmit", prompt="Kept.").is_silent()
    folder = spool.spool_folder(alone.home)
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert [stat.S_IMODE(path.stat().st_mode) for path in spool.waiting(alone.home)] == [0o600]
    assert not list(folder.glob(".*"))
    with (folder / "0-large.json").open("wb") as large:
        large.truncate(64 * 1024 * 1024)
    for _ in range(2):
        assert alone.run("UserPromptSubmit", prompt="No room.").is_silent()
    state = spool.look(alone.home)
    assert (state.waiting, state.dropped) == (2, 2)


def test_what_waited_is_taken_in_at_the_next_start_in_order_and_once(alone: Session) -> None:
    alone.says("From before.")
    alone.run("UserPromptSubmit", prompt="One?")
    alone.says("One.")
    alone.run("PostToolUse")
    alone.run("Stop", last_assistant_message="One.")
    alone.run("UserPromptSubmit", prompt="Two?", prompt_id="2")
    alone.says("Two.")
    alone.run("Stop", last_assistant_message="Two.")
    alone.says("Three.")
    alone.run("SessionEnd")
    eventually(lambda: len(spool.waiting(alone.home)) == 6)
    folder = spool.spool_folder(alone.home)
    told = {path.name: path.read_bytes() for path in spool.waiting(alone.home)}
    nobodys = {**in_spool(alone.home)[0], "cwd": "/", "project": "/"}
    (folder / "00000000000000000000-bad.json").write_bytes(b"{")
    (folder / "00000000000000000001-nobody.json").write_text(json.dumps(nobodys))
    with serving(alone.home):
        eventually(lambda: not spool.waiting(alone.home))
        said = [one["content"] for one in turns_of(alone.home, alone.id)]
        assert said == ["One?", "Write: /work/notes.txt", "One.", "Two?", "Two.", "Three."]
        assert [path.name for path in folder.iterdir()] == ["00000000000000000000-bad.bad"]
        for name, body in told.items():
            (folder / name).write_bytes(body)
        eventually(lambda: not spool.waiting(alone.home))
        assert [one["content"] for one in turns_of(alone.home, alone.id)] == said
        assert spool.look(alone.home).bad == 1


def test_a_session_that_begins_starts_the_server_and_does_not_wait_for_it(alone: Session) -> None:
    assert alone.run("SessionStart").is_silent()
    assert not runfile.run_file(alone.home).exists()
    eventually(lambda: runfile.run_file(alone.home).exists(), 60)
    eventually(lambda: alone.run("UserPromptSubmit", prompt="Here?").code == 0 and bool(turns_of(alone.home, alone.id)))
