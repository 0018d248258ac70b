"""Hooks when the server hangs, refuses or is away: deadlines hold, and what was said waits in the spool."""

from __future__ import annotations

import http.server
import json
import os
import select
import stat
import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from pps.core.file_lock import FileLock
from pps.server import RunFile, runfile, spool, stop
from tests.integration.hooks.acting import DEADLINE_S, Session
from tests.integration.hooks.conftest import hanging_in, registered, turns_of
from tests.integration.interfaces.serving import serving
from tests.proving import Proving, stranger
from tests.waiting import PATIENCE_S, wait_until

TRIES = 12
"""A busy machine may stop a process at any moment: the best of so many tries counts."""
KEPT_BACK_S = 0.5
"""Most that a hook keeps of its deadline for start, end and writing an event to disk."""
LEFT_ALONE_S = 30.0
SPOOLED = {"UserPromptSubmit", "PostToolUse", "Stop", "PreCompact", "SessionEnd"}


@dataclass(frozen=True)
class LeftAlone:
    """A session's end that a server which hangs was told, and the end of a pipe that its last process holds open."""

    home: Path
    closes: int


@pytest.fixture(scope="module", autouse=True)
def left_alone(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LeftAlone]:
    """Begins with the first test of this file, so that its 30 seconds pass beside them."""
    folder = tmp_path_factory.mktemp("left-alone")
    closes, held = os.pipe()
    with hanging_in(folder) as home:
        session = Session(home, folder, keeps_deadlines=True)
        process = session.start("SessionEnd", keeps=[held])
        os.close(held)
        process.communicate(json.dumps(session.payload("SessionEnd")).encode(), timeout=PATIENCE_S)
        yield LeftAlone(home, closes)
    os.close(closes)


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


def took_s(session: Session, event: str, given: bytes) -> float:
    """Return how long a hook's process lived, which says nothing and ends well."""
    begun = time.monotonic()
    ended = session.raw(event, given)
    took = time.monotonic() - begun
    assert (event, ended.code, ended.out, ended.err) == (event, 0, b"", b"")
    return took


def all_at_once(
    home: Path, project: Path, events: Sequence[str], *, told: bool
) -> dict[str, float]:
    """Return how long the hook of each event lived, told its event or nothing, all started together."""

    def run(event: str) -> float:
        session = Session(home, project, keeps_deadlines=True)
        return took_s(session, event, json.dumps(session.payload(event)).encode() if told else b"")

    with ThreadPoolExecutor(len(events)) as threads:
        return dict(zip(events, threads.map(run, events), strict=True))


def test_a_server_that_hangs_is_waited_for_as_long_as_the_deadline_allows(
    hanging: Path, tmp_path: Path
) -> None:
    """A process' start and end are what the same program takes that is told nothing, in the same crowd."""
    nothing_s = max(all_at_once(hanging, tmp_path, list(DEADLINE_S), told=False).values())
    least_s = {event: deadline_s - KEPT_BACK_S for event, deadline_s in DEADLINE_S.items()} | {
        "SessionEnd": 0.0
    }
    most_s = {event: deadline_s + nothing_s for event, deadline_s in DEADLINE_S.items()}
    wrong = dict.fromkeys(DEADLINE_S, 0.0)
    for _ in range(TRIES):
        lived = all_at_once(hanging, tmp_path, list(wrong), told=True)
        wrong = {
            event: took
            for event, took in lived.items()
            if not least_s[event] < took < most_s[event]
        }
        there = {one["event"] for one in in_spool(hanging)} | {"SessionEnd"}
        wrong |= dict.fromkeys(SPOOLED - there, 0.0)  # its time was up before it wrote
        if not wrong:
            break
    assert not wrong, most_s
    assert {one["event"] for one in in_spool(hanging)} == SPOOLED - {
        "SessionEnd"
    }  # it still waits, by itself


def test_input_that_never_ends_is_not_waited_for(hanging: Path, tmp_path: Path) -> None:
    session = Session(hanging, tmp_path, keeps_deadlines=True)
    nothing_s = max(took_s(session, "PreToolUse", b"") for _ in range(3))
    lived: list[float] = []
    for _ in range(TRIES):
        begun = time.monotonic()
        process = session.start("PreToolUse")
        assert process.wait(60) == 0
        lived.append(time.monotonic() - begun)
        process.communicate()
        if lived[-1] < DEADLINE_S["PreToolUse"] + nothing_s:
            return
    raise AssertionError(lived)


@contextmanager
def answering(home: Path, status: int, body: bytes) -> Iterator[None]:
    """Run something on loopback that answers everything in one way."""

    class Answer(Proving):
        def do_POST(self) -> None:  # noqa: N802 - http.server calls it so
            self.rfile.read(int(self.headers["Content-Length"]))
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

    alive = FileLock(runfile.lock_file(home), what="pps serve")
    with alive, http.server.ThreadingHTTPServer(("127.0.0.1", 0), Answer) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        run = RunFile(
            1, "127.0.0.1", server.server_address[1], "0.1.0", False, runfile.new_secret()
        )
        runfile.write(home, run)
        Answer.run = run
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
def test_a_refusal_for_now_is_told_again_later(
    alone: Session, status: int, body: bytes, spooled: bool
) -> None:
    with answering(alone.home, status, body):
        assert alone.run("UserPromptSubmit").is_silent()
        assert alone.run("SessionStart").is_silent()
    assert [one["event"] for one in in_spool(alone.home)] == ["UserPromptSubmit"] * spooled


def test_a_stranger_who_has_the_port_of_a_server_that_was_killed_gets_nothing(
    alone: Session,
) -> None:
    with http.server.ThreadingHTTPServer(
        ("127.0.0.1", 0), http.server.BaseHTTPRequestHandler
    ) as stranger:
        run = RunFile(
            1, "127.0.0.1", stranger.server_address[1], "0.1.0", False, runfile.new_secret()
        )
        runfile.write(alone.home, run)
        runfile.lock_file(alone.home).touch()
        assert alone.run("UserPromptSubmit").is_silent()
        stranger.socket.setblocking(False)
        with pytest.raises(BlockingIOError):
            stranger.socket.accept()
    assert [one["event"] for one in in_spool(alone.home)] == ["UserPromptSubmit"]


def test_a_stranger_who_has_the_port_while_a_new_server_starts_is_told_nothing_and_says_nothing(
    alone: Session,
) -> None:
    """The new server holds the lock already; whoever listens where the killed one did would get prompt and secret."""
    evil = b'{"context": "evil"}'
    answer = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(evil), evil.ljust(64))
    with stranger(answer) as seen, FileLock(runfile.lock_file(alone.home), what="pps serve"):
        run = RunFile(1, "127.0.0.1", seen.port, "0.1.0", False, runfile.new_secret())
        runfile.write(alone.home, run)
        assert alone.run("UserPromptSubmit", prompt="A secret thought.").is_silent()
        assert alone.run("SessionStart").is_silent()
    assert seen.told.count(b"GET /owner/proof/") == 2
    for word in (run.secret, run.secret[6:], "secret thought", "Authorization"):
        assert word.encode() not in seen.told
    assert [one["event"] for one in in_spool(alone.home)] == ["UserPromptSubmit"]


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
    wait_until(lambda: len(spool.waiting(alone.home)) == 6)
    folder = spool.spool_folder(alone.home)
    told = {path.name: path.read_bytes() for path in spool.waiting(alone.home)}
    nobodys = {**in_spool(alone.home)[0], "cwd": "/", "project": "/"}
    (folder / "00000000000000000000-bad.json").write_bytes(b"{")
    (folder / "00000000000000000001-nobody.json").write_text(json.dumps(nobodys))
    with serving(alone.home):
        wait_until(lambda: not spool.waiting(alone.home))
        said = [one["content"] for one in turns_of(alone.home, alone.id)]
        assert said == ["One?", "Write: /work/notes.txt", "One.", "Two?", "Two.", "Three."]
        assert [path.name for path in folder.iterdir()] == ["00000000000000000000-bad.bad"]
        for name, body in told.items():
            (folder / name).write_bytes(body)
        wait_until(lambda: not spool.waiting(alone.home))
        assert [one["content"] for one in turns_of(alone.home, alone.id)] == said
        assert spool.look(alone.home).bad == 1


def test_a_session_that_begins_starts_the_server_and_does_not_wait_for_it(alone: Session) -> None:
    assert alone.run("SessionStart").is_silent()
    assert not runfile.run_file(alone.home).exists()
    wait_until(lambda: runfile.run_file(alone.home).exists())
    wait_until(
        lambda: (
            alone.run("UserPromptSubmit", prompt="Here?").code == 0
            and bool(turns_of(alone.home, alone.id))
        )
    )


def test_what_a_sessions_end_leaves_behind_spools_at_its_own_deadline_and_ends(
    left_alone: LeftAlone,
) -> None:
    closed, _, _ = select.select([left_alone.closes], [], [], 2 * LEFT_ALONE_S)
    assert closed
    assert os.read(left_alone.closes, 1) == b""
    [path] = spool.waiting(left_alone.home)
    told = json.loads(path.read_bytes())
    waited_s = int(path.name.split("-")[0]) / 1e9 - told["at"]
    assert told["event"] == "SessionEnd"
    assert waited_s > LEFT_ALONE_S - KEPT_BACK_S
