"""scripts/neo4j as a person uses it: what it says, what it keeps, what it leaves alone."""

from __future__ import annotations

import json
import os
import shutil
import socket
import stat
import subprocess
import sys
from pathlib import Path

import pytest
from neo4j import GraphDatabase

from pps.core.errors import StoreUnavailable
from pps.isolation.neo4j import Neo4jPool
from pps.isolation.store_neo4j import Neo4jStore
from tests.kitchen import saved_kitchen
from tests.neo4j_server import QUICK, SCRIPT, Neo4jServer, neo4j_script, start_neo4j, stop_neo4j
from tests.waiting import wait_until

pytestmark = pytest.mark.neo4j


def test_help_teaches_every_command() -> None:
    answer = neo4j_script("--help")
    assert answer.returncode == 0
    for word in (
        "start",
        "stop",
        "status",
        "prepare",
        "--port",
        "--password",
        "--data",
        "--conf",
        "JDK 17",
        "127.0.0.1",
    ):
        assert word in answer.stdout


def test_status_and_stop_of_a_folder_without_a_server(tmp_path: Path) -> None:
    status = neo4j_script("status", "--data", str(tmp_path))
    assert status.returncode == 3
    assert (
        f"not running (folder {tmp_path}); start it: scripts/neo4j start --data {tmp_path}"
        in status.stdout
    )
    stop = neo4j_script("stop", "--data", str(tmp_path))
    assert (stop.returncode, stop.stdout.strip()) == (0, f"neo4j: not running (folder {tmp_path})")
    assert not list(tmp_path.iterdir())


def test_the_folder_lies_beside_what_pps_keeps(tmp_path: Path) -> None:
    told = neo4j_script("status", PPS_HOME=str(tmp_path / "pps"))
    assert f"folder {tmp_path / 'pps' / 'neo4j'}" in told.stdout
    told = neo4j_script("status", XDG_DATA_HOME=str(tmp_path / "share"))
    if sys.platform != "darwin":
        assert f"folder {tmp_path / 'share' / 'pps' / 'neo4j'}" in told.stdout


def test_a_process_that_is_not_the_server_is_left_alone(tmp_path: Path) -> None:
    """Process ids are used again: a file that names ours must not get us stopped."""
    (tmp_path / "run.json").write_text(json.dumps({"pid": os.getpid(), "port": 7687}))
    assert neo4j_script("status", "--data", str(tmp_path)).returncode == 3
    assert neo4j_script("stop", "--data", str(tmp_path)).returncode == 0


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--password", "short"), "the password must have 8 characters or more, all printable"),
        (("--port", "70000"), "must be 0 to 65535"),
        (("--port", "many"), "invalid port value"),
        (("--conf", "/nowhere/neo4j.conf"), "--conf: there is no file /nowhere/neo4j.conf"),
    ],
)
def test_a_wrong_option_is_said_in_one_line(
    tmp_path: Path, words: tuple[str, ...], said: str
) -> None:
    answer = neo4j_script("start", "--data", str(tmp_path), *words)
    assert answer.returncode in (1, 2)
    assert said in answer.stderr.splitlines()[-1]


def test_a_taken_port_is_said_before_anything_starts(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        answer = neo4j_script("start", "--data", str(tmp_path), "--port", str(port))
    assert answer.returncode == 1
    assert f"port {port} cannot be used" in answer.stderr
    assert "give another: --port N, or --port 0" in answer.stderr


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A checkout that never fetched anything."""
    root = tmp_path / "checkout"
    (root / "scripts").mkdir(parents=True)
    shutil.copy(SCRIPT, root / "scripts" / "neo4j")
    shutil.copytree(SCRIPT.parent.parent / "config" / "neo4j", root / "config" / "neo4j")
    return root


def prepare_with(tree: Path, *programs: str) -> str:
    """Run ``prepare`` where only the given programs exist, and return what it says."""
    folder = tree / "bin"
    folder.mkdir()
    for program in programs:
        (folder / program).symlink_to(str(shutil.which(program)))
    answer = subprocess.run(
        [sys.executable, str(tree / "scripts" / "neo4j"), "prepare"],
        capture_output=True,
        text=True,
        check=False,
        env={"PATH": str(folder), "HOME": str(tree)},
    )
    assert answer.returncode == 1
    (line,) = answer.stderr.splitlines()
    return line


def test_a_missing_jdk_is_said_in_one_line(tree: Path) -> None:
    assert "needs a JDK 17 or newer, and there is no java and javac on the PATH" in prepare_with(
        tree
    )


def test_a_java_without_its_compiler_is_no_jdk(tree: Path) -> None:
    assert "needs a JDK 17 or newer" in prepare_with(tree, "java")


def test_a_missing_maven_is_said_in_one_line(tree: Path) -> None:
    assert "needs Maven to fetch Neo4j, and there is no mvn on the PATH" in prepare_with(
        tree, "java", "javac"
    )


def test_a_running_server_is_told_and_not_started_twice(neo4j_server: Neo4jServer) -> None:
    data = ("--data", str(neo4j_server.data))
    status = neo4j_script("status", *data)
    assert status.returncode == 0
    assert f"answers at {neo4j_server.uri}" in status.stdout
    assert json.loads(neo4j_script("status", "--json", *data).stdout)["uri"] == neo4j_server.uri
    again = neo4j_script("start", *data)
    assert again.returncode == 0
    assert "runs already" in again.stdout
    elsewhere = neo4j_script("start", "--port", "7999", *data)
    assert elsewhere.returncode == 1
    assert (
        f"on port {neo4j_server.port}; stop it first: scripts/neo4j stop --data" in elsewhere.stderr
    )
    told = status.stdout + again.stdout + elsewhere.stderr
    assert neo4j_server.password not in told


async def test_a_restart_keeps_the_data_and_an_open_pool_goes_on(
    neo4j_server: Neo4jServer, neo4j_pool: Neo4jPool, group: str, caplog: pytest.LogCaptureFixture
) -> None:
    store = Neo4jStore(neo4j_pool.driver(), group)
    nodes, facts, _ = await saved_kitchen(store)
    stop_neo4j(neo4j_server.data)
    try:
        with pytest.raises(StoreUnavailable, match="cannot be reached"):
            await store.nodes([nodes[0].uuid])
        with pytest.raises(StoreUnavailable):
            await store.save_nodes(nodes, {})
        with pytest.raises(StoreUnavailable):
            await neo4j_pool.check()
        assert caplog.messages == [], (
            "the error says it; the library's log lines would say it again"
        )
    finally:
        start_neo4j(neo4j_server.data, port=neo4j_server.port, password=neo4j_server.password)
    await neo4j_pool.check()
    assert await store.nodes([node.uuid for node in nodes]) == nodes
    assert await store.facts([fact.uuid for fact in facts]) == facts
    assert await neo4j_pool.missing() == ()


def test_a_server_keeps_its_own_password_private_and_ends_with_its_companion(
    tmp_path: Path,
) -> None:
    data = tmp_path / "neo4j"
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as companion:
        words = ("--data", str(data), "--port", "0", "--with-pid", str(companion.pid))
        answer = neo4j_script("start", *words, JDK_JAVA_OPTIONS=QUICK)
        assert answer.returncode == 0, answer.stderr
        password = (data / "password").read_text().strip()
        state = json.loads((data / "run.json").read_text())
        uri = f"bolt://127.0.0.1:{state['port']}"
        assert f'export NEO4J_URI={uri} NEO4J_USER=neo4j NEO4J_PASSWORD="$(cat ' in answer.stdout
        assert password not in answer.stdout
        assert stat.S_IMODE(data.stat().st_mode) == 0o700
        assert stat.S_IMODE((data / "password").stat().st_mode) == 0o600
        if Path("/proc/self").exists():
            assert password not in (Path("/proc") / str(state["pid"]) / "cmdline").read_text()
        with GraphDatabase.driver(uri, auth=("neo4j", password)) as driver:
            driver.verify_connectivity()
        companion.communicate(b"\n")
    wait_until(lambda: neo4j_script("status", "--data", str(data)).returncode == 3)
    logs = data / "home" / "data" / "transactions"
    assert sum(file.stat().st_size for file in logs.rglob("*") if file.is_file()) < 20_000_000
