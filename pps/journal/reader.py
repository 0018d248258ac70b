"""A small pool of reading connections, each used by one thread at a time."""

from __future__ import annotations

import asyncio
import queue
import sqlite3
import threading
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import TypeVar

from pps.core.errors import StoreUnavailable
from pps.journal.db import Work, mapping_errors, open_reader

T = TypeVar("T")

READERS = 2
"""Threads and connections of one file; both are made when first needed."""


class Readers:
    """Runs reads beside the writer: each sees one snapshot of all that was acknowledged before it."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._threads = ThreadPoolExecutor(READERS, thread_name_prefix="pps-journal-read")
        self._idle: queue.SimpleQueue[sqlite3.Connection] = queue.SimpleQueue()
        self._gate = threading.Lock()
        self._closed = False

    async def read(self, work: Work[T]) -> T:
        """Run ``work`` on a connection that cannot write and return its result."""
        return await asyncio.wrap_future(self._submit(work))

    def _submit(self, work: Work[T]) -> Future[T]:
        with self._gate:
            if self._closed:
                raise StoreUnavailable(f"{self._path.name} is closed: open the memory again")
            return self._threads.submit(self._run, work)

    def close(self) -> None:
        """Let running reads end, then give threads and connections back. Blocks."""
        with self._gate:
            self._closed = True
        self._threads.shutdown(wait=True)
        while not self._idle.empty():
            self._idle.get().close()

    def _run(self, work: Work[T]) -> T:
        with mapping_errors(self._path):
            connection = self._borrow()
            try:
                connection.execute("BEGIN")
                return work(connection)
            finally:
                self._give_back(connection)

    def _borrow(self) -> sqlite3.Connection:
        try:
            return self._idle.get_nowait()
        except queue.Empty:
            return open_reader(self._path)

    def _give_back(self, connection: sqlite3.Connection) -> None:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        self._idle.put(connection)
