"""A small pool of reading connections, each used by one thread at a time."""

from __future__ import annotations

import asyncio
import contextlib
import queue
import sqlite3
import threading
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import TypeVar

from pps.core.errors import StoreConflict, StoreUnavailable
from pps.journal.db import Work, mapping_errors, open_reader

T = TypeVar("T")

READERS = 2
"""Threads of one file, and their connections; both are made when first needed, as is the one of look-ups."""

FEW = 128
"""Rows by key that a look-up reads without a thread of its own: about a millisecond for a hundred facts' outlines."""


class Readers:
    """Runs reads beside the writer: each sees one snapshot of all that was acknowledged before it."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._threads = ThreadPoolExecutor(READERS, thread_name_prefix="pps-journal-read")
        self._idle: queue.SimpleQueue[sqlite3.Connection] = queue.SimpleQueue()
        self._gate = threading.Lock()
        self._closed = False
        self._looking = threading.Lock()
        self._looks: sqlite3.Connection | None = None

    async def read(self, work: Work[T]) -> T:
        """Run ``work`` on a connection that cannot write and return its result."""
        return await asyncio.wrap_future(self._submit(work))

    async def look_up(self, work: Work[T], asked: int) -> T:
        """Do what ``read`` does for work that looks ``asked`` rows up by key; at once where they are few.

        Handing so little to a thread takes longer than doing it: both threads then wait for the interpreter, and with
        sqlite3 they change places at every row. A file that is locked is waited for in a thread.
        """
        if asked <= FEW:
            with contextlib.suppress(StoreConflict):
                return self._look(work)
        return await self.read(work)

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
                self._looks = open_reader(self._path)
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
            return open_reader(self._path)


def _in_snapshot(connection: sqlite3.Connection, work: Work[T]) -> T:
    try:
        connection.execute("BEGIN")
        return work(connection)
    finally:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
