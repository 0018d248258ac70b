"""The writing thread of a memory, with group commit: waiting writes share one fsync.

While a commit waits for the disk, new writes queue up; the next transaction takes them all. Each
write runs inside its own savepoint, so a failed one is undone alone. Results are delivered only
after the commit, that is, after the log is on disk.

``transaction`` is for writes that depend on reads within the same transaction: it holds the thread,
and the reads and writes of one task run there as steps, which are committed or undone together.
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
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar, cast

from pps.core.errors import StoreConflict, StoreUnavailable
from pps.core.log_context import unforeseen
from pps.core.sql import Connection
from pps.journal.db import LogIndex, Work, mapping_errors, nothing, open_writer, store_error

T = TypeVar("T")

_log = logging.getLogger(__name__)

BATCH_LIMIT = 256
"""Maximum number of writes in one transaction."""
CHECKPOINT_ROWS = 2_000
"""Changed rows after which the log is copied into the file, between transactions."""
CHECKPOINT_BYTES = 16 * 1024 * 1024
"""Size of the log at which it is copied too, whatever the number of changed rows."""
RETRY_S = 0.5
"""Delay before an idle writer retries to empty the log after a secure delete."""
SCRUB_IDLE_S = 1.0
"""Idle time after which a due scrub begins."""
SCRUB_RETRY_S = 60.0
STEP_WAIT_S = 60.0
"""Time without a step after which a held transaction is undone."""


_SELECT_DUE = "SELECT 1 FROM meta WHERE key = 'scrub_due'"
_SET_DUE = "INSERT INTO meta (key, value) VALUES ('scrub_due', '1') ON CONFLICT DO NOTHING"
_CLEAR_DUE = "DELETE FROM meta WHERE key = 'scrub_due'"


@dataclass(eq=False, slots=True)
class _Write:
    work: Work[object]
    future: asyncio.Future[object]
    secure: bool = False


class _Aborted(Exception):
    """Raised in the writer's thread to undo a held transaction with all its steps."""


_Errors = type[Exception] | tuple[type[Exception], ...]


class HeldTransaction:
    """A transaction that one task fills step by step; see ``Writer.transaction``.

    Attributes:
        secure: Whether any step was written with ``secure`` (see ``Writer.write``).
        is_over: Whether the block of ``Writer.transaction`` has ended.
    """

    def __init__(self) -> None:
        self.secure = False
        self.is_over = False
        self._steps: queue.SimpleQueue[_Write | bool] = queue.SimpleQueue()
        self._gate = threading.Lock()
        self._lost: BaseException | None = None

    async def step(self, work: Work[T], *, secure: bool = False) -> T:
        """Run ``work`` in the transaction and return its result.

        An exception of ``work`` undoes this step alone and is raised here.
        """
        self.secure |= secure
        future: asyncio.Future[object] = asyncio.get_running_loop().create_future()
        with self._gate:
            if self._lost is not None:
                raise self._lost
            self._steps.put(_Write(work, future))
        return cast("T", await future)

    def end(self, *, commit: bool) -> None:
        """End the block: commit the steps, or undo them."""
        self.is_over = True
        self._steps.put(commit)

    def serve(
        self,
        attempt: Callable[[_Write], _Outcome],
        explain: Callable[[Exception], BaseException],
    ) -> None:
        """Run steps on the writer's thread until ``end`` is called.

        Args:
            attempt: Runs one step; raises the database's error if the whole transaction is lost.
            explain: Returns the ``PPSError`` for such an error.

        Raises:
            _Aborted: The block ended without a commit.
            StoreConflict: No step came for ``STEP_WAIT_S``.
        """
        try:
            while True:
                step = self._steps.get(timeout=STEP_WAIT_S)
                if step is True:
                    return
                if step is False:
                    raise _Aborted
                try:
                    outcome = attempt(step)
                except Exception as error:
                    _deliver([_Outcome(step, error=explain(error))])
                    raise
                _deliver([outcome])
        except queue.Empty:
            timed_out = StoreConflict("a change was not finished in time and is undone: try again")
            self._fail_steps(timed_out)
            raise timed_out from None
        except Exception as error:
            self._fail_steps(explain(error))
            raise

    def _fail_steps(self, error: BaseException) -> None:
        """Fail the waiting steps and all later ones."""
        with self._gate:
            self._lost = error
        with suppress(queue.Empty):
            while True:
                step = self._steps.get_nowait()
                if isinstance(step, _Write):
                    _deliver([_Outcome(step, error=error)])


_HELD: ContextVar[Mapping[Writer, HeldTransaction] | None] = ContextVar("held", default=None)
"""Writer → the transaction that the running task holds; tasks that it starts inherit them."""


@dataclass(frozen=True, slots=True)
class _Outcome:
    write: _Write
    value: object = None
    error: BaseException | None = None


class Writer(ABC):
    """Owns the writing connection and its thread. ``write`` may be called from any event loop.

    Args:
        name: Name of the store in errors and in the log.
    """

    errors: _Errors
    """Exception types of the database's library."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._queue: queue.SimpleQueue[_Write | None] = queue.SimpleQueue()
        self._gate = threading.Lock()
        self._closed = False
        self.commits = 0
        """Number that grows with each commit, before results are delivered, and each held step."""
        self._thread = threading.Thread(target=self._run, name="pps-journal", daemon=True)
        self._thread.start()

    @abstractmethod
    def _begin(self) -> Connection:
        """Begin a transaction and return its connection."""

    @abstractmethod
    def _commit(self, *, secure: bool) -> None:
        """Commit the transaction to disk; ``secure`` as in ``write``."""

    @abstractmethod
    def _roll_back(self) -> None:
        """Roll back the transaction if one is open."""

    @abstractmethod
    def _is_open(self) -> bool:
        """Return whether the transaction is still open: a full disk or lost connection ends it."""

    @abstractmethod
    def _explain(self, error: Exception) -> BaseException:
        """Return the ``PPSError`` for one of ``errors``."""

    @abstractmethod
    def _tidy(self, *, deleted: bool) -> None:
        """Maintain the file after a batch; called before ``secure`` writes are answered.

        ``deleted`` is whether the batch had a ``secure`` write.
        """

    @abstractmethod
    def _patience_s(self) -> float | None:
        """Return how long to wait for a write before ``_idle`` is called; None: forever."""

    @abstractmethod
    def _idle(self) -> None:
        """Do due maintenance while no write waits."""

    @abstractmethod
    def _end(self) -> None:
        """Finish due maintenance and close the connection."""

    async def write(self, work: Work[T], *, secure: bool = False) -> T:
        """Run ``work`` inside the next transaction; return its result once it is on disk.

        Args:
            work: Called with the connection; must not begin or end a transaction. An exception
                undoes its changes and is raised here.
            secure: Also remove deleted rows from the log before returning, and from the file once
                the writer is idle, or at close.
        """
        held = self.held
        if held is not None:
            self.commits += 1
            return await held.step(work, secure=secure)
        return cast("T", await self._put(_Write(work, self._future(), secure)))

    @property
    def held(self) -> HeldTransaction | None:
        """The transaction of this writer that the running task holds, if any."""
        held = (_HELD.get() or {}).get(self)
        return None if held is None or held.is_over else held

    @asynccontextmanager
    async def transaction(self) -> AsyncGenerator[None]:
        """Make all reads and writes of a block one transaction, on disk when the block ends.

        Reads in the block see its writes; other tasks see them after the commit. An exception
        undoes the whole block. All other writes wait until the block ends, so it must not call a
        model, start a program or wait for another writer. A nested block joins the outer one.

        Raises:
            StoreConflict: ``STEP_WAIT_S`` passed without a step.
            StoreUnavailable, StoreError: As ``write``; nothing was changed.
        """
        if self.held is not None:
            yield
            return
        held = HeldTransaction()
        write = _Write(nothing, self._future())
        write.work = lambda db: self._serve_steps(db, held, write)
        ended = self._put(write)
        token = _HELD.set({**(_HELD.get() or {}), self: held})
        try:
            yield
        except BaseException:
            held.end(commit=False)
            with suppress(BaseException):
                await asyncio.shield(ended)
            raise
        finally:
            _HELD.reset(token)
        held.end(commit=True)
        await ended

    def _serve_steps(self, connection: Connection, held: HeldTransaction, write: _Write) -> None:
        try:
            held.serve(lambda step: self._attempt(connection, step), self._explain)
        finally:
            self.commits += 1  # invalidates caches of uncommitted reads
        write.secure = held.secure

    def _future(self) -> asyncio.Future[object]:
        return asyncio.get_running_loop().create_future()

    def _put(self, write: _Write) -> asyncio.Future[object]:
        with self._gate:
            if self._closed:
                raise StoreUnavailable(f"{self._name} is closed: open the memory again")
            self._queue.put(write)
        return write.future

    def close(self) -> None:
        """Finish the queued writes, then end the thread and close the connection. Blocks."""
        with self._gate:
            if not self._closed:
                self._closed = True
                self._queue.put(None)
        self._thread.join()

    def _run(self) -> None:
        is_open = True
        while is_open:
            batch, is_open = self._take()
            try:
                self._serve(batch)
            except BaseException as error:  # noqa: BLE001 - a defect: logged, and raised in callers
                unforeseen(
                    _log,
                    f"{self._name}: a defect in the writer; what was acknowledged stands",
                    error,
                )
                _deliver([_Outcome(write, error=error) for write in batch])
        self._end()

    def _serve(self, batch: Sequence[_Write]) -> None:
        """Commit a batch and deliver its results; those of ``secure`` writes after ``_tidy``."""
        outcomes = self._transact(batch) if batch else []
        _deliver([outcome for outcome in outcomes if not outcome.write.secure])
        self._tidy(deleted=any(write.secure for write in batch))
        _deliver([outcome for outcome in outcomes if outcome.write.secure])
        if not batch:
            self._idle()

    def _take(self) -> tuple[list[_Write], bool]:
        """Return the next batch and whether the writer is still open.

        The batch is empty if ``_patience_s`` passed without a write.
        """
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
                # No comprehension: outcomes stay when a later write raises.
                outcomes.append(self._attempt(connection, write))  # noqa: PERF401
            self._commit(secure=any(write.secure for write in batch))
            self.commits += 1
        except self.errors as error:
            return self._all_failed(batch, outcomes, error)
        finally:
            self._roll_back()  # after a defect too: the next batch must be able to begin
        return outcomes

    def _attempt(self, connection: Connection, write: _Write) -> _Outcome:
        """Run one write in its savepoint; raises one of ``errors`` if the transaction is lost."""
        connection.execute("SAVEPOINT one")
        try:
            value = write.work(connection)
        except self.errors as error:
            if not self._is_open():  # a full disk, damaged file or lost connection undid everything
                raise
            outcome = _Outcome(write, error=self._explain(error))
        except BaseException as error:  # noqa: BLE001 - raised in the caller
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
        """Fail every write of a lost transaction; a write that had failed keeps its own error."""
        failed = {id(outcome.write): outcome for outcome in outcomes if outcome.error is not None}
        return [
            failed.get(id(write)) or _Outcome(write, error=self._explain(error)) for write in batch
        ]


def _deliver(outcomes: Sequence[_Outcome]) -> None:
    """Resolve the futures of writes, each on its own event loop."""
    by_loop: defaultdict[asyncio.AbstractEventLoop, list[_Outcome]] = defaultdict(list)
    for outcome in outcomes:
        by_loop[outcome.write.future.get_loop()].append(outcome)
    for loop, ready in by_loop.items():
        with suppress(RuntimeError):  # the loop is closed: nobody waits; the write is committed
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
    """Writes one file, checkpoints its log, and scrubs it after secure writes."""

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
        """Checkpoint the log if it has grown; empty it after a secure delete."""
        self._log_holds_deleted = self._log_holds_deleted or deleted
        self._scrub_due = self._scrub_due or deleted
        if not (self._log_holds_deleted or self._log_has_grown()):
            return
        mode = "TRUNCATE" if self._log_holds_deleted else "PASSIVE"
        try:
            (busy, _, _) = self._connection.execute(f"PRAGMA wal_checkpoint({mode})").fetchone()
        except sqlite3.Error:
            return  # retried after the next write; a write that fails for it tells its caller
        if not busy:
            self._changes_at_checkpoint = self._connection.total_changes
            self._log_holds_deleted = False

    def _log_has_grown(self) -> bool:
        if self._connection.total_changes - self._changes_at_checkpoint >= CHECKPOINT_ROWS:
            return True
        log = self._path.with_name(self._path.name + "-wal")
        return log.exists() and log.stat().st_size >= CHECKPOINT_BYTES

    def _scrub(self) -> None:
        """Rewrite the file, so that no page keeps a stale copy of deleted data: 2 s for 100 MB.

        ``secure_delete`` overwrites a deleted row in place, but not the copies that SQLite left
        when it moved rows between pages. The flag in ``meta`` is cleared only after success.
        """
        try:
            self._connection.execute("VACUUM")
            self._connection.execute(_CLEAR_DUE)
        except sqlite3.Error:
            self._scrub_not_before = time.monotonic() + SCRUB_RETRY_S
            _log.warning("%s could not be scrubbed yet; it will be tried again", self._path.name)
            return
        self._scrub_due = False
        self._log_holds_deleted = True  # the file keeps its old pages until the log is copied
        self._tidy(deleted=False)
