"""The one thread that writes: group commit, so that many waiting writes share one fsync.

While a commit waits for the disk, new writes queue up; the next transaction takes them all. Each
write runs inside its own savepoint, so a bad one is undone alone. Results are handed out only
after the commit, that is, after the log is on disk.
"""

from __future__ import annotations

import asyncio
import queue
import sqlite3
import threading
from collections import defaultdict
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar, cast

from pps.core.errors import StoreUnavailable
from pps.journal.db import Work, open_writer, store_error

T = TypeVar("T")

BATCH_LIMIT = 256
"""Most writes in one transaction."""
CHECKPOINT_ROWS = 2_000
"""Changed rows after which the log is copied into the file, between transactions."""
RETRY_S = 0.5
"""How long an idle writer waits before it tries again to empty the log after a secure delete."""


@dataclass(frozen=True, slots=True)
class _Write:
    work: Work[object]
    future: asyncio.Future[object]
    secure: bool


@dataclass(frozen=True, slots=True)
class _Outcome:
    write: _Write
    value: object = None
    error: BaseException | None = None


class Writer:
    """Owns the writing connection and its thread. ``write`` may be called from any event loop."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._connection = open_writer(path)
        self._queue: queue.SimpleQueue[_Write | None] = queue.SimpleQueue()
        self._gate = threading.Lock()
        self._closed = False
        self._changes_at_checkpoint = self._connection.total_changes
        self._log_holds_deleted = False
        self._thread = threading.Thread(target=self._run, name="pps-journal", daemon=True)
        self._thread.start()

    async def write(self, work: Work[T], *, secure: bool = False) -> T:
        """Run ``work`` inside the next transaction; return its result once it is on disk.

        Args:
            work: Gets the connection; must not begin or end a transaction. What it raises is raised
                here, and its own changes are undone.
            secure: Also empty the log before returning, so that what was deleted is in no file.
        """
        future: asyncio.Future[object] = asyncio.get_running_loop().create_future()
        with self._gate:
            if self._closed:
                raise StoreUnavailable(f"{self._path.name} is closed: open the memory again")
            self._queue.put(_Write(work, future, secure))
        return cast("T", await future)

    def close(self) -> None:
        """Finish what was queued, then give the thread and the connection back. Blocks."""
        with self._gate:
            if not self._closed:
                self._closed = True
                self._queue.put(None)
        self._thread.join()

    def _run(self) -> None:
        open_ = True
        while open_:
            batch, open_ = self._take()
            outcomes = self._commit(batch) if batch else []
            _deliver([outcome for outcome in outcomes if not outcome.write.secure])
            self._tidy(any(write.secure for write in batch))
            _deliver([outcome for outcome in outcomes if outcome.write.secure])
        self._connection.close()

    def _take(self) -> tuple[list[_Write], bool]:
        """Return all that waits (at least one write, unless the log needs care) and whether to go on."""
        batch: list[_Write] = []
        try:
            item = self._queue.get(timeout=RETRY_S if self._log_holds_deleted else None)
            while item is not None:
                batch.append(item)
                if len(batch) == BATCH_LIMIT:
                    return batch, True
                item = self._queue.get_nowait()
        except queue.Empty:
            return batch, True
        return batch, False

    def _commit(self, batch: Sequence[_Write]) -> list[_Outcome]:
        outcomes: list[_Outcome] = []
        try:
            self._connection.execute("BEGIN IMMEDIATE")
            for write in batch:
                outcomes.append(self._attempt(write))  # noqa: PERF401 - what failed alone is kept
            self._connection.execute("COMMIT")
        except sqlite3.Error as error:
            self._roll_back()
            return self._all_failed(batch, outcomes, error)
        return outcomes

    def _attempt(self, write: _Write) -> _Outcome:
        """Run one write in its savepoint. Raises sqlite3.Error when the whole transaction is lost."""
        connection = self._connection
        connection.execute("SAVEPOINT one")
        try:
            value = write.work(connection)
        except sqlite3.Error as error:
            if not connection.in_transaction:  # full disk or broken file: SQLite undid everything
                raise
            outcome = _Outcome(write, error=self._explain(error))
        except BaseException as error:  # noqa: BLE001 - handed to the one who waits for it
            outcome = _Outcome(write, error=error)
        else:
            connection.execute("RELEASE one")
            return _Outcome(write, value)
        connection.execute("ROLLBACK TO one")
        connection.execute("RELEASE one")
        return outcome

    def _all_failed(
        self, batch: Sequence[_Write], outcomes: Sequence[_Outcome], error: sqlite3.Error
    ) -> list[_Outcome]:
        """Fail every write of a lost transaction; one that had failed by itself keeps its own reason."""
        own = {id(outcome.write): outcome for outcome in outcomes if outcome.error is not None}
        return [own.get(id(write)) or _Outcome(write, error=self._explain(error)) for write in batch]

    def _explain(self, error: sqlite3.Error) -> BaseException:
        mapped = store_error(error, self._path)
        mapped.__cause__ = error
        return mapped

    def _roll_back(self) -> None:
        if self._connection.in_transaction:
            self._connection.execute("ROLLBACK")

    def _tidy(self, deleted: bool) -> None:
        """Move the log into the file when it has grown, and empty it after a secure delete."""
        self._log_holds_deleted = self._log_holds_deleted or deleted
        grown = self._connection.total_changes - self._changes_at_checkpoint >= CHECKPOINT_ROWS
        if not (grown or self._log_holds_deleted):
            return
        mode = "TRUNCATE" if self._log_holds_deleted else "PASSIVE"
        try:
            (busy, _, _) = self._connection.execute(f"PRAGMA wal_checkpoint({mode})").fetchone()
        except sqlite3.Error:
            return  # the log stays whole and is tried again; a write that cannot go on will say why
        if not busy:
            self._changes_at_checkpoint = self._connection.total_changes
            self._log_holds_deleted = False


def _deliver(outcomes: Sequence[_Outcome]) -> None:
    by_loop: defaultdict[asyncio.AbstractEventLoop, list[_Outcome]] = defaultdict(list)
    for outcome in outcomes:
        by_loop[outcome.write.future.get_loop()].append(outcome)
    for loop, ready in by_loop.items():
        with suppress(RuntimeError):  # the loop is closed: nobody waits, and the write stands all the same
            loop.call_soon_threadsafe(_resolve, ready)


def _resolve(outcomes: Sequence[_Outcome]) -> None:
    for outcome in outcomes:
        future = outcome.write.future
        if future.done():  # its caller was cancelled
            continue
        if outcome.error is not None:
            future.set_exception(outcome.error)
        else:
            future.set_result(outcome.value)
