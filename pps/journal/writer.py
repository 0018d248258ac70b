"""The one thread of a memory that writes: group commit, so that many waiting writes share one fsync.

While a commit waits for the disk, new writes queue up; the next transaction takes them all. Each
write runs inside its own savepoint, so a bad one is undone alone. Results are handed out only
after the commit, that is, after the log is on disk.
"""

from __future__ import annotations

import asyncio
import logging
import queue
import sqlite3
import threading
import time
from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar, cast

from pps.core.errors import StoreUnavailable
from pps.core.log_context import unforeseen
from pps.core.sql import Connection
from pps.journal.db import LogIndex, Work, mapping_errors, open_writer, store_error

T = TypeVar("T")

_log = logging.getLogger(__name__)

BATCH_LIMIT = 256
"""Most writes in one transaction."""
CHECKPOINT_ROWS = 2_000
"""Changed rows after which the log is copied into the file, between transactions."""
CHECKPOINT_BYTES = 16 * 1024 * 1024
"""Size of the log at which the same happens, whatever the number of rows."""
RETRY_S = 0.5
"""How long an idle writer waits before it tries again to empty the log after a secure delete."""
SCRUB_IDLE_S = 1.0
"""How long nothing must be written before a scrub that is due begins by itself."""
SCRUB_RETRY_S = 60.0


_SELECT_DUE = "SELECT 1 FROM meta WHERE key = 'scrub_due'"
_SET_DUE = "INSERT INTO meta (key, value) VALUES ('scrub_due', '1') ON CONFLICT DO NOTHING"
_CLEAR_DUE = "DELETE FROM meta WHERE key = 'scrub_due'"


@dataclass(frozen=True, slots=True)
class _Write:
    work: Work[object]
    future: asyncio.Future[object]
    secure: bool = False


@dataclass(frozen=True, slots=True)
class _Outcome:
    write: _Write
    value: object = None
    error: BaseException | None = None


class Writer(ABC):
    """Owns the writing connection and its thread. ``write`` may be called from any event loop.

    Args:
        name: What the store is called in errors and in the log.
    """

    errors: type[Exception] | tuple[type[Exception], ...]
    """What the database's library raises."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._queue: queue.SimpleQueue[_Write | None] = queue.SimpleQueue()
        self._gate = threading.Lock()
        self._closed = False
        self.commits = 0
        """Transactions on disk so far; counted before anyone is told of them."""
        self._thread = threading.Thread(target=self._run, name="pps-journal", daemon=True)
        self._thread.start()

    @abstractmethod
    def _begin(self) -> Connection:
        """Begin a transaction and return its connection."""

    @abstractmethod
    def _commit(self, *, secure: bool) -> None:
        """Put the transaction on disk; ``secure`` as ``write``."""

    @abstractmethod
    def _roll_back(self) -> None:
        """End the transaction that is open, if one is."""

    @abstractmethod
    def _is_open(self) -> bool:
        """Tell whether the transaction is still there: a full disk or a lost connection ends it."""

    @abstractmethod
    def _explain(self, error: Exception) -> BaseException:
        """Return the error of our tree for one of ``errors``."""

    @abstractmethod
    def _tidy(self, *, deleted: bool) -> None:
        """Take care of what was deleted, before ``secure`` writes are answered."""

    @abstractmethod
    def _patience_s(self) -> float | None:
        """Return how long to wait for writes before ``_idle``; None is for ever."""

    @abstractmethod
    def _idle(self) -> None:
        """Do what waits for a pause."""

    @abstractmethod
    def _end(self) -> None:
        """Finish what is due and give the connection back."""

    async def write(self, work: Work[T], *, secure: bool = False) -> T:
        """Run ``work`` inside the next transaction; return its result once it is on disk.

        Args:
            work: Gets the connection; must not begin or end a transaction. What it raises is raised
                here, and its own changes are undone.
            secure: Also empty the log before returning, and scrub the file soon after: once the writer is idle, or
                at close.
        """
        future: asyncio.Future[object] = asyncio.get_running_loop().create_future()
        with self._gate:
            if self._closed:
                raise StoreUnavailable(f"{self._name} is closed: open the memory again")
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
            try:
                self._serve(batch)
            except BaseException as error:  # noqa: BLE001 - a defect: said in the log, and to whoever still waits
                unforeseen(
                    _log,
                    f"{self._name}: a defect in the writer; what was acknowledged stands",
                    error,
                )
                _deliver([_Outcome(write, error=error) for write in batch])
        self._end()

    def _serve(self, batch: Sequence[_Write]) -> None:
        """Commit a batch and answer it; what asked for care of the file is answered after that."""
        outcomes = self._transact(batch) if batch else []
        _deliver([one for one in outcomes if not one.write.secure])
        self._tidy(deleted=any(write.secure for write in batch))
        _deliver([one for one in outcomes if one.write.secure])
        if not batch:
            self._idle()

    def _take(self) -> tuple[list[_Write], bool]:
        """Return all that waits (nothing when the file needs care first) and whether to go on."""
        batch: list[_Write] = []
        try:
            item = self._queue.get(timeout=self._patience_s())
            while item is not None:
                batch.append(item)
                if len(batch) == BATCH_LIMIT:
                    return batch, True
                item = self._queue.get_nowait()
        except queue.Empty:
            return batch, True
        return batch, False

    def _transact(self, batch: Sequence[_Write]) -> list[_Outcome]:
        outcomes: list[_Outcome] = []
        try:
            connection = self._begin()
            for write in batch:
                outcomes.append(self._attempt(connection, write))  # noqa: PERF401 - what failed alone is kept
            self._commit(secure=any(write.secure for write in batch))
            self.commits += 1
        except self.errors as error:
            return self._all_failed(batch, outcomes, error)
        finally:
            self._roll_back()  # a defect too must not leave it open: the next batch could not begin
        return outcomes

    def _attempt(self, connection: Connection, write: _Write) -> _Outcome:
        """Run one write in its savepoint. Raises one of ``errors`` when the whole transaction is lost."""
        connection.execute("SAVEPOINT one")
        try:
            value = write.work(connection)
        except self.errors as error:
            if (
                not self._is_open()
            ):  # full disk, broken file or lost connection: everything is undone
                raise
            outcome = _Outcome(write, error=self._explain(error))
        except BaseException as error:  # noqa: BLE001 - handed to the one who waits for it
            outcome = _Outcome(write, error=error)
        else:
            connection.execute("RELEASE SAVEPOINT one")
            return _Outcome(write, value)
        connection.execute("ROLLBACK TO SAVEPOINT one")
        connection.execute("RELEASE SAVEPOINT one")
        return outcome

    def _all_failed(
        self, batch: Sequence[_Write], outcomes: Sequence[_Outcome], error: Exception
    ) -> list[_Outcome]:
        """Fail every write of a lost transaction; one that had failed by itself keeps its own reason."""
        own = {id(outcome.write): outcome for outcome in outcomes if outcome.error is not None}
        return [
            own.get(id(write)) or _Outcome(write, error=self._explain(error)) for write in batch
        ]


def _deliver(outcomes: Sequence[_Outcome]) -> None:
    by_loop: defaultdict[asyncio.AbstractEventLoop, list[_Outcome]] = defaultdict(list)
    for outcome in outcomes:
        by_loop[outcome.write.future.get_loop()].append(outcome)
    for loop, ready in by_loop.items():
        with suppress(
            RuntimeError
        ):  # the loop is closed: nobody waits, and the write stands all the same
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


class SqliteWriter(Writer):
    """Writes one file, moves its log into it, and scrubs it after secure writes."""

    errors = sqlite3.Error

    def __init__(self, path: Path, index: LogIndex = "file") -> None:
        self._path = path
        with mapping_errors(path):
            self._connection = open_writer(path, index)
            self._scrub_due = self._connection.execute(_SELECT_DUE).fetchone() is not None
        self._changes_at_checkpoint = self._connection.total_changes
        self._log_holds_deleted = False
        self._scrub_not_before = 0.0
        super().__init__(path.name)

    def _begin(self) -> Connection:
        self._connection.execute("BEGIN IMMEDIATE")
        return self._connection

    def _commit(self, *, secure: bool) -> None:
        if secure:
            self._connection.execute(_SET_DUE)
        self._connection.execute("COMMIT")

    def _is_open(self) -> bool:
        return self._connection.in_transaction

    def _idle(self) -> None:
        if self._scrub_due and time.monotonic() >= self._scrub_not_before:
            self._scrub()

    def _end(self) -> None:
        if self._scrub_due:
            self._scrub()
        self._connection.close()

    def _patience_s(self) -> float | None:
        if self._log_holds_deleted:
            return RETRY_S
        if self._scrub_due:
            return max(SCRUB_IDLE_S, self._scrub_not_before - time.monotonic())
        return None

    def _explain(self, error: Exception) -> BaseException:
        if not isinstance(error, sqlite3.Error):
            return error
        mapped = store_error(error, self._path)
        mapped.__cause__ = error
        return mapped

    def _roll_back(self) -> None:
        if self._connection.in_transaction:
            self._connection.execute("ROLLBACK")

    def _tidy(self, *, deleted: bool) -> None:
        """Move the log into the file when it has grown, and empty it after a secure delete."""
        self._log_holds_deleted = self._log_holds_deleted or deleted
        self._scrub_due = self._scrub_due or deleted
        if not (self._log_holds_deleted or self._log_has_grown()):
            return
        mode = "TRUNCATE" if self._log_holds_deleted else "PASSIVE"
        try:
            (busy, _, _) = self._connection.execute(f"PRAGMA wal_checkpoint({mode})").fetchone()
        except sqlite3.Error:
            return  # the log stays whole and is tried again: a write that cannot go on tells its caller why
        if not busy:
            self._changes_at_checkpoint = self._connection.total_changes
            self._log_holds_deleted = False

    def _log_has_grown(self) -> bool:
        if self._connection.total_changes - self._changes_at_checkpoint >= CHECKPOINT_ROWS:
            return True
        log = self._path.with_name(self._path.name + "-wal")
        return log.exists() and log.stat().st_size >= CHECKPOINT_BYTES

    def _scrub(self) -> None:
        """Write the file anew, so that no page keeps a stale copy of what was deleted: about 2 s for 100 MB.

        ``secure_delete`` overwrites a deleted row where it lies, not the copies that SQLite left when it moved rows
        between pages. The flag in ``meta`` goes only when it is done.
        """
        try:
            self._connection.execute("VACUUM")
            self._connection.execute(_CLEAR_DUE)
        except sqlite3.Error:
            self._scrub_not_before = time.monotonic() + SCRUB_RETRY_S
            _log.warning("%s could not be scrubbed yet; it will be tried again", self._path.name)
            return
        self._scrub_due = False
        self._log_holds_deleted = (
            True  # the pages as they were stay in the file until the log is moved
        )
        self._tidy(deleted=False)
