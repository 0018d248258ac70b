"""The owner's socket: who else may lie at its place or at its other end, and what is sent there (nothing)."""

from __future__ import annotations

import json
import os
import socket
import stat
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import httpx
import pytest

from pps.core.errors import StoreUnavailable
from pps.core.file_lock import FileLock
from pps.interfaces.http.auth import BY_SOCKET
from pps.server import Link, RunFile, connect, owner_socket, runfile, stop
from pps.server.link import OwnerConnection, ServerAway
from pps.server.owner_socket import HOME_HEADER, ForeignSocket, home_header
from tests.integration.hooks.acting import PATIENT
from tests.integration.interfaces.serving import (
    Served,
    clean_env,
    pps,
    serving,
    wait_for_run_file,
    without_socket,
)
from tests.waiting import PATIENCE_S, wait_until

NOBODY = 65_534
HOOK = Path(__file__).parents[2] / "config" / "claude" / "hooks" / "pps_hook.py"

needs_root = pytest.mark.usefixtures("as_root")


@pytest.fixture
def as_root() -> None:
    if os.getuid() != 0:
        pytest.fail("this test makes a process of another user: run it as root, as CI does")


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with serving(tmp_path_factory.mktemp("socket") / "home") as served:
        served.create("ana")
        yield served


def hook(home: Path, event: str = "UserPromptSubmit", **env: str) -> dict[str, Any]:
    """Run the hook once for the entity ana; return what it printed."""
    given = {"session_id": "s1", "prompt": "The oven is broken.", "cwd": "/"}
    done = subprocess.run(
        [
            *(sys.executable, "-I", "-S", str(PATIENT), str(HOOK)),
            *(event, "--entity", "ana", "--home", str(home)),
        ],
        input=json.dumps(given),
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        env={**os.environ, **env},
        check=True,
    )
    return json.loads(done.stdout) if done.stdout else {}


def reaches(home: Path) -> bool:
    """Run the hook; tell whether the server took its event."""
    hook(home)
    return not spooled(home)


def spooled(home: Path) -> list[str]:
    return [
        json.loads(path.read_text())["text"] for path in sorted((home / "spool").glob("*.json"))
    ]


def test_the_run_file_names_a_private_socket_and_no_secret(served: Served) -> None:
    run = json.loads(runfile.run_file(served.home).read_text())
    assert {"pid", "host", "port", "version"} <= run.keys()
    assert run["secret"] == ""
    path = Path(run["socket"])
    assert path.name == owner_socket.socket_name(served.home)
    assert stat.S_ISSOCK(path.stat().st_mode)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.lstat().st_mode) == 0o700
    assert served.link.call("stats", "ana", {})["data"]["turns"] >= 0
    wait_until(lambda: reaches(served.home))


def test_over_tcp_nobody_is_the_owner_while_there_is_a_socket(served: Served) -> None:
    with httpx.Client(base_url=served.run.url, trust_env=False, timeout=PATIENCE_S) as http:
        for token in ("", "x", "pps_w_", runfile.new_secret()):
            headers = {"Authorization": f"Bearer {token}"} if token else {}
            named = {**headers, HOME_HEADER: home_header(str(served.home)), "PPS-Entity": "ana"}
            for method, path in (
                ("GET", "/owner/status"),
                ("POST", "/owner/hooks"),
                ("POST", "/owner/tools"),
                ("POST", "/owner/stop"),
                ("POST", "/v1/stats"),
            ):
                answer = http.request(method, path, headers=named, json={})
                assert answer.status_code == 401, (path, token)
        assert http.get("/health").status_code == 200
        assert http.get("/openapi.json").status_code == 200
        assert http.get("/page/ana/").status_code == 200


def test_an_old_hook_is_told_to_be_installed_again_and_its_event_is_kept(served: Served) -> None:
    with httpx.Client(base_url=served.run.url, trust_env=False, timeout=PATIENCE_S) as http:
        for answer in (
            http.get(f"/owner/proof/{'0' * 32}"),
            http.post("/owner/hooks", headers={"Authorization": "Bearer pps_w_"}, json={}),
        ):
            assert answer.status_code in (401, 410)
            assert BY_SOCKET in answer.json()["detail"]
            assert "pps hooks install" in BY_SOCKET
    event = {
        "id": "1" * 32,
        "at": time.time(),
        "event": "UserPromptSubmit",
        "session": "old",
        "entity": "ana",
        "text": "An old hook kept this.",
    }
    folder = served.home / "spool"
    folder.mkdir(mode=0o700, exist_ok=True)
    (folder / "1780000000000000-1.json").write_text(json.dumps(event))
    wait_until(lambda: "An old hook kept this." in served.pps("turns", "ana").stdout)


def test_a_token_on_the_socket_is_a_token_and_not_the_owner(served: Served) -> None:
    token = served.create("ben")
    with served.owner(Authorization=f"Bearer {token}") as http:
        assert http.post("/v1/entity_list", json={}).status_code == 404
        assert http.get("/owner/status").status_code == 401
        asked = http.post("/v1/stats", headers={"PPS-Entity": "ana"}, json={})
        assert asked.status_code == 403


@pytest.mark.parametrize("home", ["", "/", "/nowhere", "%00", "a" * 5_000])
def test_a_client_that_means_another_folder_is_refused(served: Served, home: str) -> None:
    with served.owner() as http:
        headers = {HOME_HEADER: home}
        for method, path in (("GET", "/owner/status"), ("POST", "/v1/entity_list")):
            assert http.request(method, path, headers=headers, json={}).status_code == 421
        origin = {"Origin": "https://evil.example"}
        assert http.get("/owner/status", headers=origin).status_code == 403


def test_a_socket_whose_server_is_of_another_home_is_no_server(
    served: Served, tmp_path: Path
) -> None:
    """The other home's run file names this server's socket, as one that was copied does; its lock is held."""
    other = tmp_path / "other"
    other.mkdir()
    (other / "registry.db").write_bytes((served.home / "registry.db").read_bytes())
    with FileLock(runfile.lock_file(other), what="pps serve"):
        runfile.write(other, served.run)
        run = runfile.read(other)
        assert run is not None
        with pytest.raises(ServerAway, match="another"):
            Link(run).call("remember", "ana", {"content": "For another home."})
        with pytest.raises(StoreUnavailable):
            connect(other, start=False)
        hook(other)
    assert spooled(other) == ["The oven is broken."]
    assert "For another home." not in served.pps("turns", "ana").stdout


def test_two_homes_at_once_have_a_socket_each_and_one_of_300_characters_too(
    served: Served, tmp_path: Path
) -> None:
    long = tmp_path.joinpath(*("a home of many characters %20 ü" for _ in range(10)), "home")
    assert len(str(long)) > 300
    with serving(long) as second:
        second.create("zoe")
        assert second.run.socket != served.run.socket
        assert len(os.fsencode(second.run.socket)) <= owner_socket.MAX_PATH_BYTES
        names = [
            [one["name"] for one in each.link.call("entity_list", "", {})["data"]["entities"]]
            for each in (served, second)
        ]
        assert "zoe" in names[1]
        assert "zoe" not in names[0]
        assert "ana" not in names[1]
        assert second.pps("stats", "zoe").returncode == 0


def test_where_no_socket_can_be_made_the_server_proves_itself_as_before(tmp_path: Path) -> None:
    with serving(tmp_path / "home", **without_socket(tmp_path)) as served:
        assert served.run.socket == ""
        assert served.run.secret.startswith("pps_w_")
        served.create("ana")
        assert served.pps("stats", "ana").returncode == 0
        wait_until(lambda: reaches(served.home))


def test_a_socket_left_by_a_killed_server_is_no_server_and_is_replaced(tmp_path: Path) -> None:
    env = clean_env(tmp_path / "home", PPS_SERVER__IDLE_STOP_S="60")
    home = tmp_path / "home"
    try:
        assert pps(env, "entity", "create", "ana").returncode == 0
        killed = wait_for_run_file(home)
        os.kill(killed.pid, 9)
        with pytest.raises(StoreUnavailable):
            _until_nobody_listens(killed)
        assert Path(killed.socket).is_socket()
        hook(home)
        assert spooled(home) == ["The oven is broken."]
        assert pps(env, "stats", "ana").returncode == 0
        started = wait_for_run_file(home)
        assert started.pid != killed.pid
        assert started.socket == killed.socket
    finally:
        stop(home)
    assert not Path(killed.socket).exists()


def _until_nobody_listens(run: RunFile) -> None:
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        Link(run).status()
        time.sleep(0.1)


def test_a_server_whose_socket_is_removed_goes_on_by_its_proof(tmp_path: Path) -> None:
    with serving(tmp_path / "home") as served:
        served.create("ana")
        Path(served.run.socket).unlink()

        def is_without_socket() -> bool:
            run = runfile.read(served.home)
            return run is not None and not run.socket

        wait_until(is_without_socket)
        run = runfile.read(served.home)
        assert run is not None
        assert Link(run).call("stats", "ana", {})["data"]["turns"] == 0
        assert served.pps("stats", "ana").returncode == 0


@pytest.fixture
def places(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A temporary folder of a name short enough for sockets, where this process makes them."""
    folder = Path("/tmp") / f"pps-test-{os.getpid()}-{os.urandom(4).hex()}"  # noqa: S108
    folder.mkdir(0o700)
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(folder / "runtime"))
    monkeypatch.setattr("tempfile.tempdir", str(folder))
    yield folder
    subprocess.run(["rm", "-rf", str(folder)], check=True)


def test_a_socket_is_made_in_the_runtime_directory_where_it_is_private(
    places: Path, tmp_path: Path
) -> None:
    runtime, temporary = places / "runtime", places / f"pps-{os.getuid()}"
    for mode, folder in ((None, temporary), (0o755, temporary), (0o700, runtime / "pps")):
        if mode is not None:
            runtime.mkdir(exist_ok=True)
            runtime.chmod(mode)
        listener = owner_socket.listen(tmp_path)
        assert listener is not None
        with closing(listener):
            assert Path(listener.getsockname()).parent == folder


@pytest.mark.parametrize("planted", ["symlink", "loose", "file"])
def test_a_folder_that_others_could_change_has_no_socket(
    places: Path, tmp_path: Path, planted: str
) -> None:
    folder = places / f"pps-{os.getuid()}"
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir(0o700)
    if planted == "symlink":
        folder.symlink_to(elsewhere)
    elif planted == "file":
        folder.touch()
    else:
        folder.mkdir()
        folder.chmod(0o777)
    assert owner_socket.listen(tmp_path) is None
    assert list(elsewhere.iterdir()) == []
    with pytest.raises(OSError):  # noqa: PT011 - of any class: nothing is sent
        owner_socket.connect(str(folder / owner_socket.socket_name(tmp_path)), 5)


@needs_root
@pytest.mark.parametrize("mode", [0o700, 0o755, 0o777])
def test_a_folder_of_another_user_has_no_socket_and_nothing_is_sent_there(
    places: Path, tmp_path: Path, mode: int
) -> None:
    folder = places / f"pps-{os.getuid()}"
    folder.mkdir()
    os.chown(folder, NOBODY, NOBODY)
    folder.chmod(mode)
    assert owner_socket.listen(tmp_path) is None
    with pytest.raises(ForeignSocket, match="not a folder of mode 0700"):
        owner_socket.connect(str(folder / owner_socket.socket_name(tmp_path)), 5)


@pytest.mark.parametrize("planted", ["symlink", "file", "folder"])
def test_what_lies_at_the_sockets_own_place_is_replaced_and_never_followed(
    places: Path, tmp_path: Path, planted: str
) -> None:
    folder = places / f"pps-{os.getuid()}"
    folder.mkdir(0o700)
    path = folder / owner_socket.socket_name(tmp_path)
    target = tmp_path / "target"
    target.write_text("kept")
    if planted == "symlink":
        path.symlink_to(target)
    elif planted == "file":
        path.write_text("old")
    else:
        path.mkdir()
    listener = owner_socket.listen(tmp_path)
    assert target.read_text() == "kept"
    if planted == "folder":
        assert listener is None
        return
    assert listener is not None
    with closing(listener):
        assert stat.S_ISSOCK(path.lstat().st_mode)


_LISTEN_AS_NOBODY = """
import os, socket, sys
path, uid = sys.argv[1], int(sys.argv[2])
listener = socket.socket(socket.AF_UNIX)
listener.bind(path)
os.chmod(path, 0o777)
os.setuid(uid)
listener.listen(8)
print("listening", flush=True)
told = b""
while True:
    link, _ = listener.accept()
    link.settimeout(30)
    while piece := link.recv(4096):
        told += piece
        print(len(told), flush=True)
"""


@needs_root
def test_another_users_process_at_the_socket_is_told_nothing(places: Path, tmp_path: Path) -> None:
    """Whoever came to listen in the owner's own folder: the peer's user id gives it away before anything is sent."""
    folder = places / f"pps-{os.getuid()}"
    folder.mkdir(0o700)
    path = folder / owner_socket.socket_name(tmp_path)
    command = [sys.executable, "-c", _LISTEN_AS_NOBODY, str(path), str(NOBODY)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as other:
        assert other.stdout is not None
        try:
            assert other.stdout.readline() == "listening\n"
            run = RunFile(1, "127.0.0.1", 1, "0.2.0", False, socket=str(path))
            (tmp_path / "registry.db").touch()
            with FileLock(runfile.lock_file(tmp_path), what="pps serve"):
                runfile.write(tmp_path, run)
                with pytest.raises(ForeignSocket, match="another user listens"):
                    owner_socket.connect(str(path), 5)
                with pytest.raises(ServerAway):
                    Link(run).call("remember", "ana", {"content": "A secret thought."})
                hook(tmp_path)
        finally:
            other.kill()
            other.wait()
        assert other.stdout.read() == ""


_ASK_AS_NOBODY = """
import os, socket, sys
os.setuid(int(sys.argv[2]))
link = socket.socket(socket.AF_UNIX)
link.settimeout(30)
try:
    link.connect(sys.argv[1])
    link.sendall(b"GET /health HTTP/1.1\\r\\nHost: 127.0.0.1\\r\\nConnection: close\\r\\n\\r\\n")
    print(link.recv(4096) or "closed")
except OSError as error:
    print(type(error).__name__)
"""


@needs_root
@pytest.mark.parametrize("open_folder", [False, True], ids=["private folder", "opened folder"])
def test_another_users_process_is_not_answered_on_the_socket(
    tmp_path: Path, open_folder: bool
) -> None:
    """The folder keeps it out; where somebody opened folder and socket, the server hangs up without an answer."""
    folder = Path("/tmp") / f"pps-test-{os.urandom(4).hex()}"  # noqa: S108
    folder.mkdir(0o755)
    try:
        with serving(tmp_path / "home", XDG_RUNTIME_DIR="", TMPDIR=str(folder)) as served:
            path = Path(served.run.socket)
            assert path.parent.parent == folder
            if open_folder:
                path.parent.chmod(0o755)
                path.chmod(0o666)
            asked = subprocess.run(
                [sys.executable, "-c", _ASK_AS_NOBODY, str(path), str(NOBODY)],
                capture_output=True,
                text=True,
                check=True,
                timeout=60,
            )
            refusals = ("closed", "ConnectionResetError", "BrokenPipeError")
            assert asked.stdout.strip() in (refusals if open_folder else ("PermissionError",))
            path.parent.chmod(0o700)
            assert served.link.status()["pid"] == served.run.pid
    finally:
        subprocess.run(["rm", "-rf", str(folder)], check=True)


def test_the_socket_says_whose_process_is_at_its_other_end() -> None:
    mine, theirs = socket.socketpair()
    with mine, theirs:
        assert owner_socket.peer_uid(mine) == os.getuid()


def test_a_connection_of_the_owner_names_its_home_and_shows_no_secret(served: Served) -> None:
    with closing(OwnerConnection(served.run, 5)) as connection:
        assert connection.owner_headers() == {HOME_HEADER: home_header(str(served.home))}
        connection.request("GET", "/owner/status", headers=connection.owner_headers())
        assert json.loads(connection.getresponse().read())["pid"] == served.run.pid
