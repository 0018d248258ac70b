"""Reading connections, and ``Store``, whose methods are functions over a connection."""

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
"""Reading threads of one file, each with a connection that is opened when first needed."""

FEW = 128
"""Maximum rows that a look-up reads by key without a thread: 1 ms for a hundred outlines."""


class Readers(ABC):
    """Runs reads concurrently with the writer.

    Each read sees one snapshot with all writes that were acknowledged before it. Within
    ``Writer.transaction`` a task also sees its own uncommitted writes.
    """

    def __init__(self, writer: Writer | None) -> None:
        self._writer = writer
        self._marks = itertools.count(-1, -1)

    async def read(self, work: Work[T]) -> T:
        """Run ``work``, which must not write, on one snapshot and return its result."""
        held = self._held()
        if held is not None:
            return await held.step(work)
        return await self._read(work)

    async def look_up(self, work: Work[T], rows: int) -> T:
        """Do the same for ``work`` that reads up to ``rows`` rows by key.

        A few rows are read without a thread, which is faster.
        """
        held = self._held()
        if held is not None:
            return await held.step(work)
        return await self._look_up(work, rows)

    async def mark(self) -> int:
        """Return a number that changes with every write, also by other processes; for caches.

        Within a held transaction each call returns another number, so that uncommitted reads are
        not cached.
        """
        if self._held() is not None:
            return next(self._marks)
        return await self._mark()

    def _held(self) -> HeldTransaction | None:
        return self._writer.held if self._writer is not None else None

    @abstractmethod
    async def _read(self, work: Work[T]) -> T:
        """Run ``work`` on a connection that cannot write."""

    @abstractmethod
    async def _look_up(self, work: Work[T], rows: int) -> T: ...

    @abstractmethod
    async def _mark(self) -> int: ...

    @abstractmethod
    def close(self) -> None:
        """Wait for running reads, then end the threads and close the connections. Blocks."""


class SqliteReaders(Readers):
    """Reads one file: in its own threads, and a few rows by key without a thread.

    Args:
        path: The file.
        index: Where the log's index is, see ``db.prepare_file``.
        writer: The file's writer; a task that holds a transaction reads in it. None if there is no
            writer.
    """

    def __init__(self, path: Path, index: LogIndex = "file", writer: Writer | None = None) -> None:
        super().__init__(writer)
        self._path = path
        self._index: LogIndex = index
        self._threads = ThreadPoolExecutor(READERS, thread_name_prefix="pps-journal-read")
        self._idle: queue.SimpleQueue[sqlite3.Connection] = queue.SimpleQueue()
        self._gate = threading.Lock()
        self._closed = False
        self._look_up_lock = threading.Lock()
        self._look_up_connection: sqlite3.Connection | None = None

    async def _read(self, work: Work[T]) -> T:
        return await asyncio.wrap_future(self._submit(work))

    async def _look_up(self, work: Work[T], rows: int) -> T:
        """Read up to ``FEW`` rows on the calling thread.

        A thread would take longer than the read: both threads compete for the interpreter, and
        sqlite3 lets them switch at every row. If the file is locked, a thread waits for it.
        """
        if rows <= FEW:
            with contextlib.suppress(StoreConflict):
                return self._look_up_here(work)
        return await self._read(work)

    async def _mark(self) -> int:
        """Return SQLite's ``data_version`` (20 µs)."""
        return await self._look_up(
            lambda db: int(db.execute("PRAGMA data_version").fetchone()[0]), 1
        )

    def close(self) -> None:
        """Wait for running reads, then end the threads and close the connections. Blocks."""
        with self._gate:
            self._closed = True
        self._threads.shutdown(wait=True)
        while not self._idle.empty():
            self._idle.get().close()
        with self._look_up_lock:
            if self._look_up_connection is not None:
                self._look_up_connection.close()

    def _look_up_here(self, work: Work[T]) -> T:
        with self._look_up_lock, mapping_errors(self._path):
            self._refuse_when_closed()
            if self._look_up_connection is None:
                self._look_up_connection = open_reader(self._path, self._index)
                self._look_up_connection.execute("PRAGMA busy_timeout = 0")
            return _in_snapshot(self._look_up_connection, work)

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
    """Tables of one memory. Its methods are functions of this package over a connection.

    Every method raises StoreConflict if another process locks the file, StoreUnavailable if the
    store is closed or the disk is full, and StoreError if the file is damaged. A write that raises
    has changed nothing. A write that returned is on disk, and reads see every write that returned
    before they began.
    """

    def __init__(self, writer: Writer, readers: Readers) -> None:
        self._writer = writer
        self._readers = readers

    async def read(self, work: Callable[[Connection], T]) -> T:
        """Run ``work``, which must not write, on one snapshot."""
        return await self._readers.read(work)

    async def select(self, statement: str, *values: str | int | float) -> list[Any]:
        """Return the rows of one statement."""
        return await self.read(lambda db: db.execute(statement, values).fetchall())

    async def look_up(self, work: Callable[[Connection], T], rows: int) -> T:
        """Do what ``read`` does, without a thread for few ``rows`` by key."""
        return await self._readers.look_up(work, rows)

    async def write(self, work: Callable[[Connection], T], *, secure: bool = False) -> T:
        """Run ``work`` in one transaction; an exception undoes it.

        ``secure`` as in ``Writer.write``.
        """
        return await self._writer.write(work, secure=secure)

    def transaction(self) -> AbstractAsyncContextManager[None]:
        """Make all reads and writes of a block one transaction; see ``Writer.transaction``."""
        return self._writer.transaction()


def reads(
    work: Callable[Concatenate[Connection, P], T],
) -> Callable[Concatenate[Store, P], Coroutine[Any, Any, T]]:
    """Make a store's method of a function that reads."""

    @wraps(work)
    async def method(store: Store, *args: P.args, **kwargs: P.kwargs) -> T:
        return await store.read(lambda db: work(db, *args, **kwargs))

    return method


def looks_up(
    work: Callable[[Connection, Sequence[str]], T],
) -> Callable[[Store, Sequence[str]], Coroutine[Any, Any, T]]:
    """Make a store's method of a function that reads rows by their keys."""

    @wraps(work)
    async def method(store: Store, keys: Sequence[str]) -> T:
        return await store.look_up(lambda db: work(db, keys), len(keys))

    return method


def writes(
    work: Callable[Concatenate[Connection, P], T], *, secure: bool = False
) -> Callable[Concatenate[Store, P], Coroutine[Any, Any, T]]:
    """Make a store's method of a function that writes; each call is one transaction."""

    @wraps(work)
    async def method(store: Store, *args: P.args, **kwargs: P.kwargs) -> T:
        return await store.write(lambda db: work(db, *args, **kwargs), secure=secure)

    return method
