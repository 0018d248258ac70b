from __future__ import annotations

import socket
import sqlite3
import time
from collections.abc import Callable, Generator, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest

from pps.core.file_lock import FileLock
from pps.server import RunFile, runfile
from tests.integration.hooks.acting import Session
from tests.integration.interfaces.serving import Served, serving


@pytest.fixture(scope="package")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """One server for all tests of hooks; each test has entities and projects of its own."""
    with serving(tmp_path_factory.mktemp("hooks") / "home") as served:
        yield served


@pytest.fixture(scope="package")
def project(served: Served, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project's folder that the entity ``shop`` is mapped to; tests differ by their sessions."""
    project = tmp_path_factory.mktemp("projects") / "shop"
    project.mkdir()
    served.create("shop")
    served.link.call("route_add", "", {"path": str(project), "entity": "shop"})
    return project


@pytest.fixture
def at_home(served: Served, project: Path) -> Session:
    """A session in that project."""
    return Session(served.home, project)


@pytest.fixture
def turns(served: Served) -> Callable[[Session], list[dict[str, Any]]]:
    """What is kept of a session, by any entity, in order of the journals."""

    def told(session: Session) -> list[dict[str, Any]]:
        return turns_of(session.home, session.id)

    return told


def turns_of(home: Path, session: str) -> list[dict[str, Any]]:
    """Read a session's turns from the journals of all entities, with the name of each's entity."""
    found: list[dict[str, Any]] = []
    for path in sorted(home.glob("entities/*/data/memory.db")):
        with closing(sqlite3.connect(path)) as db:
            db.row_factory = sqlite3.Row
            rows = db.execute("SELECT * FROM turns WHERE session = ? ORDER BY seq", (session,))
            found += [{**dict(row), "entity": path.parents[1].name} for row in rows]
    return found


@pytest.fixture
def hanging(tmp_path: Path) -> Iterator[Path]:
    """The data folder of a server that hangs."""
    with hanging_in(tmp_path) as home:
        yield home


@contextmanager
def hanging_in(project: Path) -> Generator[Path]:
    """Lend a data folder whose run file names a server that takes connections and never answers."""
    home = project / "hanging"
    registered(home, project)
    alive = FileLock(runfile.lock_file(home), what="pps serve")
    with alive, socket.create_server(("127.0.0.1", 0), backlog=64) as listener:
        runfile.write(
            home,
            RunFile(
                1, "127.0.0.1", listener.getsockname()[1], "0.1.0", False, runfile.new_secret()
            ),
        )
        yield home


def registered(home: Path, project: Path) -> None:
    """Make a registry with one entity, and a project of it, without a server."""
    from pps.entities import Registry

    registry = Registry(home)
    registry.create("shop")
    registry.routes.add(str(project), "shop")


def eventually(what: Callable[[], bool], timeout_s: float = 20.0) -> None:
    """Wait until something is so."""
    until = time.monotonic() + timeout_s
    while not what():
        assert time.monotonic() < until
        time.sleep(0.05)
