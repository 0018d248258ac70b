from __future__ import annotations

import contextlib
import json
import socket
import sqlite3
from collections import Counter
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, Protocol, TypeVar

import pytest

from pps.core.file_lock import FileLock
from pps.server import RunFile, runfile, spool
from tests.integration.hooks.acting import Session
from tests.integration.interfaces.serving import Served, serving
from tests.waiting import wait_until


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


class Told(Protocol):
    """An event that a hook was told."""

    @property
    def event(self) -> str: ...

    @property
    def session(self) -> str: ...


AnyTold = TypeVar("AnyTold", bound=Told)


def not_spooled(home: Path, told: Sequence[AnyTold]) -> list[AnyTold]:
    """Return those events of which the spool has fewer than were told."""
    events = [json.loads(path.read_bytes()) for path in spool.waiting(home)]
    there = Counter((event["event"], event["session"]) for event in events)
    missing: list[AnyTold] = []
    for one in told:
        there[one.event, one.session] -= 1
        if there[one.event, one.session] < 0:
            missing.append(one)
    return missing


def tell_until_spooled(
    home: Path, told: Sequence[AnyTold], again: Callable[[list[AnyTold]], object]
) -> None:
    """Wait until the spool has every event.

    Where a machine stands still for longer than a hook keeps back for writing, its time is up before it wrote: such
    events are told again. What ends a session waits in a process of its own, for 30 s at most.
    """
    for _ in range(12):
        with contextlib.suppress(AssertionError):
            wait_until(lambda: not not_spooled(home, told), timeout_s=45)
            return
        again(not_spooled(home, told))
    raise AssertionError(not_spooled(home, told))


def registered(home: Path, project: Path) -> None:
    """Make a registry with one entity, and a project of it, without a server."""
    from pps.entities.registry import Registry

    registry = Registry(home)
    registry.create("shop")
    registry.routes.add(str(project), "shop")
