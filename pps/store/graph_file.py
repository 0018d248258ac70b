"""The file that holds one entity's graph: opened for one group, one thread writes, two read.

WAL with ``synchronous=FULL`` on the writer: what a write returned from is on disk. ``secure_delete``: what is deleted
is overwritten. A process may be killed at any moment; the next opening finds the last whole transaction.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Generator
from contextlib import contextmanager
from importlib.resources import files
from pathlib import Path
from typing import TypeVar

from pps.core.errors import StoreError
from pps.core.ids import check_group
from pps.journal.db import Migrations, migrations_of, prepare_file
from pps.journal.store import Readers
from pps.journal.writer import Writer
from pps.store.sql_session import SqlSession

_T = TypeVar("_T")

MIGRATIONS: Migrations = migrations_of((files("pps.store") / "graph_schema.sql").read_text("utf-8"))


class GraphFile:
    """An open graph file, bound to one group for life: every session on it is of that group.

    Making one blocks: see ``open_graph_file``.

    Args:
        path: The file; its folder exists.
        group: Whose it is.
        remedy: What a reader of an error about damage is told to do, such as "`pps rebuild ana` makes it anew".

    Raises:
        IsolationError: The file belongs to another group.
        StoreError: It is damaged, or no graph of PPS.
        StoreConflict, StoreUnavailable: It is locked, cannot be opened, or the disk is full. So with every method.
    """

    def __init__(self, path: Path, group: str, remedy: str = "") -> None:
        self.path = path
        self.group = check_group(group)
        self._remedy = remedy
        index = prepare_file(path, group, MIGRATIONS)
        self._writer = Writer(path, index)
        self._readers = Readers(path, index)

    async def close(self) -> None:
        """Finish what was begun and give the threads and connections back; doing it again does nothing."""
        await asyncio.to_thread(self._close)

    async def read(self, work: Callable[[SqlSession], _T]) -> _T:
        """Run ``work`` in a thread, on one snapshot that has every write that was acknowledged before."""
        with self._naming_the_remedy():
            return await self._readers.read(
                lambda connection: work(SqlSession(connection, self.group))
            )

    async def look_up(self, work: Callable[[SqlSession], _T], rows: int) -> _T:
        """Do what ``read`` does, on this thread where at most ``FEW`` rows are read by key.

        Other tasks get their turn first: somebody who looks again and again would keep them all waiting.
        """
        await asyncio.sleep(0)
        with self._naming_the_remedy():
            return await self._readers.look_up(
                lambda connection: work(SqlSession(connection, self.group)), rows
            )

    async def write(self, work: Callable[[SqlSession], _T], *, secure: bool = False) -> _T:
        """Run ``work`` in one transaction and return its result once it is on disk; what it raises undoes it.

        Args:
            work: Changes rows. It may share its transaction with other writes, each of which is undone alone.
            secure: Empty the log too before returning, and scrub the file soon after: nothing that was deleted stays.
        """
        with self._naming_the_remedy():
            return await self._writer.write(
                lambda connection: work(SqlSession(connection, self.group)), secure=secure
            )

    @contextmanager
    def _naming_the_remedy(self) -> Generator[None]:
        try:
            yield
        except StoreError as error:
            if type(error) is not StoreError or not self._remedy:  # the others pass by themselves
                raise
            raise StoreError(f"{error.message}; {self._remedy}") from error

    def _close(self) -> None:
        self._readers.close()
        self._writer.close()  # last, so that it leaves one file without a log


async def open_graph_file(path: Path, group: str, remedy: str = "") -> GraphFile:
    """Open the file of a group's graph, or make it; arguments and errors as ``GraphFile``."""
    return await asyncio.to_thread(GraphFile, path, group, remedy)
