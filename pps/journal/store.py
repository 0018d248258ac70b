"""Connections that read, and functions over a connection as methods of a store."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import queue
import sqlite3
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Coroutine, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractAsyncContextManager
from functools import wraps
from pathlib import Path
from typing import Any, Concatenate, ParamSpec, TypeVar

from pps.core.errors import StoreConflict, StoreUnavailable
from pps.core.sql import Connection
from pps.journal.db import LogIndex, Work, mapping_errors, open_reader
from pps.journal.writer import HeldTransaction, Writer

P = ParamSpec("P")
S = TypeVar("S", bound="Store")
T = TypeVar("T")


READERS = 2
"""Threads of one file with their connections; made when first needed, like that of look-ups."""

FEW = 128
"""Most rows by key that a look-up reads without a thread: 1 ms for a hundred outlines."""


class Readers(ABC):
    """Runs reads beside the writer: each sees one snapshot of all that was acknowledged before it.

    Within ``Writer.transaction`` a task reads what it wrote there.
    """

    def __init__(self, writer: Writer | None) -> None:
        self._writer = writer
        self._marks = itertools.count(-1, -1)

    async def read(self, work: Work[T]) -> T:
        """Run ``work``, which writes nothing, on one snapshot and return its result."""
        if held := self._held():
            return await held.step(work)
        return await self._read(work)

    async def look_up(self, work: Work[T], asked: int) -> T:
        """Read a number of rows (``asked``) by key, without a thread where that is quicker."""
        if held := self._held():
            return await held.step(work)
        return await self._look_up(work, asked)

    async def mark(self) -> int:
        """Return a number that is another one whenever anything was written since, by whomever.

        Within a transaction that is held no two are the same: nothing that was read there is to be
        kept.
        """
        return next(self._marks) if self._held() else await self._mark()

    def _held(self) -> HeldTransaction | None:
        return self._writer.held if self._writer is not None else None

    @abstractmethod
    async def _read(self, work: Work[T]) -> T:
        """Run ``work`` on a connection that cannot write."""

    @abstractmethod
    async def _look_up(self, work: Work[T], asked: int) -> T: ...

    @abstractmethod
    async def _mark(self) -> int: ...

    @abstractmethod
    def close(self) -> None:
        """Let running reads end, then give threads and connections back. Blocks."""


class SqliteReaders(Readers):
    """Reads one file with threads of its own, and few rows at once.

    Args:
        writer: The file's own: a task that holds a transaction of it reads there. None where nobody
            does.
    """

    def __init__(self, path: Path, index: LogIndex = "file", writer: Writer | None = None) -> None:
        super().__init__(writer)
        self._path = path
        self._index: LogIndex = index
        self._threads = ThreadPoolExecutor(READERS, thread_name_prefix="pps-journal-read")
        self._idle: queue.SimpleQueue[sqlite3.Connection] = queue.SimpleQueue()
        self._gate = threading.Lock()
        self._closed = False
        self._looking = threading.Lock()
        self._looks: sqlite3.Connection | None = None

    async def _read(self, work: Work[T]) -> T:
        return await asyncio.wrap_future(self._submit(work))

    async def _look_up(self, work: Work[T], asked: int) -> T:
        """Look up at once where few rows are asked for.

        Handing so little to a thread takes longer than doing it: both threads then wait for the
        interpreter, and with sqlite3 they change places at every row. A file that is locked is
        waited for in a thread.
        """
        if asked <= FEW:
            with contextlib.suppress(StoreConflict):
                return self._look(work)
        return await self._read(work)

    async def _mark(self) -> int:
        """Return SQLite's ``data_version`` (20 µs)."""
        return await self._look_up(
            lambda db: int(db.execute("PRAGMA data_version").fetchone()[0]), 1
        )

    def close(self) -> None:
        """Let running reads end, then give threads and connections back. Blocks."""
        with self._gate:
            self._closed = True
        self._threads.shutdown(wait=True)
        while not self._idle.empty():
            self._idle.get().close()
        with self._looking:
            if self._looks:
                self._looks.close()

    def _look(self, work: Work[T]) -> T:
        with self._looking, mapping_errors(self._path):
            self._refuse_when_closed()
            if self._looks is None:
                self._looks = open_reader(self._path, self._index)
                self._looks.execute("PRAGMA busy_timeout = 0")
            return _in_snapshot(self._looks, work)

    def _submit(self, work: Work[T]) -> Future[T]:
        with self._gate:
            self._refuse_when_closed()
            return self._threads.submit(self._run, work)

    def _refuse_when_closed(self) -> None:
        if self._closed:
            raise StoreUnavailable(f"{self._path.name} is closed: open the memory again")

    def _run(self, work: Work[T]) -> T:
        with mapping_errors(self._path):
            connection = self._borrow()
            try:
                return _in_snapshot(connection, work)
            finally:
                self._idle.put(connection)

    def _borrow(self) -> sqlite3.Connection:
        try:
            return self._idle.get_nowait()
        except queue.Empty:
            return open_reader(self._path, self._index)


def _in_snapshot(connection: sqlite3.Connection, work: Work[T]) -> T:
    try:
        connection.execute("BEGIN")
        return work(connection)
    finally:
        if connection.in_transaction:
            connection.execute("ROLLBACK")


class Store:
    """A part of one memory. Its methods are functions of this package over a connection.

    Every method raises StoreConflict when another process keeps the file locked, StoreUnavailable
    when it is closed or the disk is full, and StoreError when the file is damaged; writes that
    raise have changed nothing. Whatever a method has returned from is on disk, and reads see every
    write that was acknowledged before they began.
    """

    def __init__(self, writer: Writer, readers: Readers) -> None:
        self._writer = writer
        self._readers = readers

    async def read(self, work: Callable[[Connection], T]) -> T:
        """Run ``work``, which writes nothing, on one snapshot."""
        return await self._readers.read(work)

    async def select(self, statement: str, *values: str | int | float) -> list[Any]:
        """Return the rows of one statement."""
        return await self.read(lambda db: db.execute(statement, values).fetchall())

    async def look_up(self, work: Callable[[Connection], T], asked: int) -> T:
        """Do what ``read`` does, at once where few rows are asked for by key."""
        return await self._readers.look_up(work, asked)

    async def write(self, work: Callable[[Connection], T], *, secure: bool = False) -> T:
        """Run ``work`` in one transaction; an exception undoes it. ``secure`` as ``Writer.write``."""
        return await self._writer.write(work, secure=secure)

    def transaction(self) -> AbstractAsyncContextManager[None]:
        """Let all that a block reads and writes be one transaction; see ``Writer.transaction``."""
        return self._writer.transaction()


def reads(
    work: Callable[Concatenate[Connection, P], T],
) -> Callable[Concatenate[Store, P], Coroutine[Any, Any, T]]:
    """Return a function that reads as a store's method."""

    @wraps(work)
    async def method(store: Store, *args: P.args, **kwargs: P.kwargs) -> T:
        return await store.read(lambda db: work(db, *args, **kwargs))

    return method


def looks_up(
    work: Callable[[Connection, Sequence[str]], T],
) -> Callable[[Store, Sequence[str]], Coroutine[Any, Any, T]]:
    """Return a function that reads rows by their keys as a store's method."""

    @wraps(work)
    async def method(store: Store, keys: Sequence[str]) -> T:
        return await store.look_up(lambda db: work(db, keys), len(keys))

    return method


def writes(
    work: Callable[Concatenate[Connection, P], T], *, secure: bool = False
) -> Callable[Concatenate[Store, P], Coroutine[Any, Any, T]]:
    """Return a function that writes as a store's method, one transaction a call."""

    @wraps(work)
    async def method(store: Store, *args: P.args, **kwargs: P.kwargs) -> T:
        return await store.write(lambda db: work(db, *args, **kwargs), secure=secure)

    return method
