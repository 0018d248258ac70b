"""A real Neo4j for tests: started by scripts/neo4j in a folder of its own, on a free port, with its own password."""

from __future__ import annotations

import json
import os
import secrets
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.ports import lasting_port

SCRIPT = Path(__file__).resolve().parent.parent / "scripts" / "neo4j"
QUICK = "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=128m"
"""Java's compiler in its first stage alone: a test run is short, and the start takes half the time."""
PLANNED_ONCE = "dbms.cypher.min_replan_interval=1h"
"""Tests fill and empty their groups all the time; planning statements anew for that was half of the server's work."""
_START_S = 500
"""How long a start may take: on a busy machine it takes minutes."""

# Read before any test cleans it: Java and Maven are found as the person who runs the tests has them.
_ENVIRONMENT = {
    name: value for name, value in os.environ.items() if not name.startswith(("PPS_", "NEO4J_"))
}


@dataclass(frozen=True, slots=True)
class Neo4jServer:
    """A running server: what it takes to connect, and the folder and port to start it again with."""

    uri: str
    user: str
    password: str
    database: str
    data: Path
    port: int


class CannotStart(Exception):
    """There is no server; the message is what scripts/neo4j said."""


def neo4j_script(*words: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run scripts/neo4j as a person would and return its exit code and what it said."""
    return subprocess.run(
        [sys.executable, str(SCRIPT), *words],
        capture_output=True,
        text=True,
        check=False,
        timeout=900,
        env={**_ENVIRONMENT, **environment},
    )


def start_neo4j(data: Path, *, port: int = 0, password: str = "") -> Neo4jServer:
    """Start a server that ends with this process at the latest; raise CannotStart with the reason."""
    password = password or secrets.token_urlsafe(12)
    data.mkdir(parents=True, exist_ok=True)
    conf = data / "tests.conf"
    conf.write_text(
        f"{(SCRIPT.parent.parent / 'config/neo4j/neo4j.conf').read_text()}\n{PLANNED_ONCE}\n"
    )
    words = (
        "start",
        "--json",
        "--data",
        str(data),
        "--port",
        str(port),
        "--with-pid",
        str(os.getpid()),
    )
    words += ("--conf", str(conf), "--wait", str(_START_S))
    answer = neo4j_script(*words, NEO4J_PASSWORD=password, JDK_JAVA_OPTIONS=QUICK)
    if answer.returncode:
        raise CannotStart(answer.stderr.strip() or answer.stdout.strip())
    found = json.loads(answer.stdout)
    taken = int(found["uri"].rpartition(":")[2])
    return Neo4jServer(found["uri"], found["user"], password, found["database"], data, taken)


def stop_neo4j(data: Path) -> None:
    """Stop the server of a folder; nothing happens when there is none."""
    answer = neo4j_script("stop", "--data", str(data))
    if answer.returncode:
        raise CannotStart(answer.stderr.strip())


@contextmanager
def running_neo4j(data: Path) -> Iterator[Neo4jServer]:
    """Start a server for the block and stop it at its end, whatever happened."""
    try:
        yield start_neo4j(data, port=lasting_port())  # some tests stop it and start it again
    finally:
        stop_neo4j(data)
