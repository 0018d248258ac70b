from __future__ import annotations

import errno
import http.server
import json
import os
import stat
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import ClassVar

import pytest

from pps.core.errors import InvalidRequest, NotFound, StoreConflict, StoreError, StoreUnavailable
from pps.core.file_lock import FileLock, is_held
from pps.server import Link, RunFile, connect, runfile, stop
from pps.server.link import OwnerConnection, ServerAway, error_from
from tests.proving import Proving, stranger


def _run(port: int = 1, **changes: object) -> RunFile:
    values = {
        "pid": os.getpid(),
        "host": "127.0.0.1",
        "port": port,
        "version": "0.1.0",
        "auto": True,
    }
    return RunFile(**{**values, "secret": runfile.new_secret(), **changes})


def test_a_lock_is_held_once_and_names_its_holder(tmp_path: Path) -> None:
    path = tmp_path / "x.lock"
    assert not is_held(path)
    with FileLock(path, what="pps serve"):
        assert is_held(path)
        with (
            pytest.raises(StoreConflict, match=rf"pps serve \(process {os.getpid()}\)"),
            FileLock(path, what="me"),
        ):
            pass
    with FileLock(path, what="me"):
        pass


def test_a_lock_dies_with_its_process(tmp_path: Path) -> None:
    path = tmp_path / "x.lock"
    code = (
        "import sys,time;from pathlib import Path;from pps.core.file_lock import FileLock\n"
        "with FileLock(Path(sys.argv[1]), what='other'):\n print('held',flush=True);time.sleep(60)"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code, str(path)], stdout=subprocess.PIPE, text=True
    ) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == "held\n"
        assert is_held(path)
        other.kill()
        other.wait()
    assert not is_held(path)


def test_a_run_file_is_private_and_reads_back(tmp_path: Path) -> None:
    run = _run()
    runfile.write(tmp_path, run)
    assert stat.S_IMODE(runfile.run_file(tmp_path).stat().st_mode) == 0o600
    assert runfile.read(tmp_path) == run
    assert run.secret not in repr(run)
    runfile.remove(tmp_path, os.getpid() + 1)
    assert runfile.read(tmp_path) == run
    runfile.remove(tmp_path, os.getpid())
    assert runfile.read(tmp_path) is None


def test_a_run_file_that_others_may_read_is_refused(tmp_path: Path) -> None:
    runfile.write(tmp_path, _run())
    runfile.run_file(tmp_path).chmod(0o644)
    with pytest.raises(StoreError, match="not private"):
        runfile.read(tmp_path)


@pytest.mark.parametrize("end", ["removed", "killed"])
def test_a_run_file_is_written_on_a_full_disk_in_the_room_of_an_earlier_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, end: str
) -> None:
    def refuse(path: Path, data: bytes) -> None:
        path.touch(0o600)  # a name takes no room
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    first = _run()
    runfile.write(tmp_path, first)
    monkeypatch.setattr(runfile, "_write_new", refuse)
    for _ in range(3):
        if end == "removed":
            runfile.remove(tmp_path, os.getpid())
            assert runfile.read(tmp_path) is None
        again = _run()
        runfile.write(tmp_path, again)
        assert runfile.read(tmp_path) == again
        assert stat.S_IMODE(runfile.run_file(tmp_path).stat().st_mode) == 0o600
    kept = b"".join(path.read_bytes() for path in tmp_path.iterdir())
    assert first.secret.encode() not in kept
    empty = tmp_path / "empty"
    empty.mkdir()
    with pytest.raises(StoreError, match="cannot be written"):
        runfile.write(empty, _run())
    assert list(empty.iterdir()) == []


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"pid": 1, "surprise": 2}'])
def test_a_run_file_without_sense_is_said(tmp_path: Path, text: str) -> None:
    path = runfile.run_file(tmp_path)
    path.touch(0o600)
    path.write_text(text)
    with pytest.raises(StoreError, match="not a run file"):
        runfile.read(tmp_path)


def test_a_server_on_every_interface_is_asked_on_loopback() -> None:
    assert _run(5, host="0.0.0.0").url == "http://127.0.0.1:5"  # noqa: S104 - never bound
    assert _run(5, host="::").url == "http://[::1]:5"


def test_nobody_at_the_address_is_a_server_away(tmp_path: Path) -> None:
    with pytest.raises(ServerAway):
        Link(_run()).status()
    runfile.write(tmp_path, _run())
    with pytest.raises(StoreUnavailable, match="pps serve"):
        connect(tmp_path, start=False)


def test_errors_keep_their_class_on_the_way() -> None:
    invalid = error_from(
        {"code": "invalid_request", "detail": "limit: too large", "field": "limit"}
    )
    assert isinstance(invalid, InvalidRequest)
    assert (str(invalid), invalid.field) == ("limit: too large", "limit")
    away = error_from({"code": "store_unavailable", "detail": "x"})
    assert isinstance(away, StoreUnavailable)
    assert away.retryable
    assert isinstance(error_from({"detail": "not ours"}), StoreError)


class _Scripted(Proving):
    answers: ClassVar[dict[str, tuple[int, bytes]]] = {}

    asked: ClassVar[list[str]] = []

    def do_GET(self) -> None:  # noqa: N802 - http.server calls it so
        if not self.path.startswith("/owner/proof/"):
            self.asked.append(self.path)
        super().do_GET()

    def do_POST(self) -> None:  # noqa: N802 - likewise
        self.asked.append(self.path)
        self.rfile.read(int(self.headers["Content-Length"]))
        status, body = self.answers[self.path]
        self.send_response(status)
        self.end_headers()
        self.wfile.write(body)
        self.close_connection = True


@pytest.fixture
def scripted() -> Iterator[Link]:
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), _Scripted)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    _Scripted.run = _run(server.server_address[1])
    yield Link(_Scripted.run)
    server.shutdown()
    thread.join()
    server.server_close()


def test_work_yields_reports_and_returns_the_result(scripted: Link) -> None:
    lines = [{"what": "facts", "done": 1, "total": 2}, {"result": {"facts": 2}, "text": "2"}]
    _Scripted.answers = {
        "/v1/reindex": (200, b"".join(json.dumps(line).encode() + b"\n" for line in lines))
    }
    work = scripted.follow("reindex", "", {"entity": "ana"})
    assert next(work) == lines[0]
    with pytest.raises(StopIteration) as ended:
        next(work)
    assert ended.value.value == {"data": {"facts": 2}, "text": "2"}


def test_work_that_is_cut_off_is_not_taken_for_done(scripted: Link) -> None:
    _Scripted.answers = {"/v1/reindex": (200, b'{"what": "facts", "done": 1, "total": 2}\n')}
    with pytest.raises(ServerAway, match="run the command again"):
        list(scripted.follow("reindex", "", {}))


def test_an_error_in_the_middle_of_work_is_raised(scripted: Link) -> None:
    body = b'{"what": "x", "done": 0, "total": 0}\n{"problem": {"code": "not_found", "detail": "id not found"}}\n'
    _Scripted.answers = {"/v1/reindex": (200, body)}
    with pytest.raises(NotFound):
        list(scripted.follow("reindex", "", {}))


@pytest.mark.parametrize("body", [b"", b"[]", b"<html>"])
def test_an_answer_that_is_not_ours_is_an_error(scripted: Link, body: bytes) -> None:
    _Scripted.answers = {"/v1/stats": (200, body)}
    with pytest.raises(StoreError):
        scripted.call("stats", "ana", {})


def test_what_has_the_port_of_a_server_that_was_killed_is_not_asked(
    scripted: Link, tmp_path: Path
) -> None:
    runfile.write(tmp_path, scripted.run)
    _Scripted.asked.clear()
    with pytest.raises(StoreUnavailable, match="no server is running"):
        connect(tmp_path, start=False)
    assert stop(tmp_path) is None
    assert _Scripted.asked == []
    with (
        FileLock(runfile.lock_file(tmp_path), what="pps serve"),
        pytest.raises(StoreError, match="not an answer"),
    ):
        connect(tmp_path, start=False)
    assert _Scripted.asked == ["/owner/status"]


STRANGE = b"HTTP/1.1 200 OK\r\nContent-Length: 64\r\n\r\n" + b"0" * 64


@pytest.mark.parametrize(
    "answer",
    [STRANGE, b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n" + b"x" * 99, b"x" * 9_000],
)
def test_nothing_is_told_to_who_does_not_prove_that_it_wrote_the_run_file(
    tmp_path: Path, answer: bytes
) -> None:
    """A new server holds the lock, and has not written its own run file yet; the old one's port is a stranger's."""
    with stranger(answer) as seen, FileLock(runfile.lock_file(tmp_path), what="pps serve"):
        run = _run(seen.port)
        runfile.write(tmp_path, run)
        with pytest.raises(ServerAway, match="no server answers"):
            Link(run).call("remember", "ana", {"content": "A secret thought."})
        with pytest.raises(StoreUnavailable):
            connect(tmp_path, start=False)
    assert seen.told.startswith(b"GET /owner/proof/")
    for word in (run.secret, run.secret[6:], "secret thought", "Authorization"):
        assert word.encode() not in seen.told


def test_a_stranger_that_sends_a_byte_now_and_then_holds_nobody_for_longer_than_the_call_may_take() -> (
    None
):
    with (
        stranger(b"x", every_s=0.05) as seen,
        closing(OwnerConnection(_run(seen.port), 0.3)) as connection,
        pytest.raises(TimeoutError),
    ):
        connection.connect()


def test_a_proof_is_of_one_nonce_one_port_and_one_process() -> None:
    run = _run(5)
    nonce, _ = runfile.question(run)
    good = runfile.proof(run.secret, nonce, 5, run.pid)
    runfile.check(run, nonce, b"HTTP/1.1 200 OK\r\n\r\n" + good.encode())
    others = (
        runfile.proof(run.secret, nonce, 6, run.pid),
        runfile.proof(run.secret, nonce, 5, run.pid + 1),
    )
    for other in (
        *others,
        runfile.proof(runfile.new_secret(), nonce, 5, run.pid),
        runfile.proof(run.secret, "0" * 32, 5, run.pid),
    ):
        with pytest.raises(runfile.Stranger):
            runfile.check(run, nonce, b"HTTP/1.1 200 OK\r\n\r\n" + other.encode())
