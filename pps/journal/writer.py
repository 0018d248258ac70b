"""The one thread of a memory that writes: group commit, so that many waiting writes share one fsync.

While a commit waits for the disk, new writes queue up; the next transaction takes them all. Each
write runs inside its own savepoint, so a bad one is undone alone. Results are handed out only
after the commit, that is, after the log is on disk.

Where a write depends on what it reads of the state that it makes, ``transaction`` holds the thread:
the reads and writes of one task run there as steps, until all are committed together or undone
together.
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
STEP_WAIT_S = 60.0
"""How long a transaction that is held waits for its next step before it is undone."""


_SELECT_DUE = "SELECT 1 FROM meta WHERE key = 'scrub_due'"
_SET_DUE = "INSERT INTO meta (key, value) VALUES ('scrub_due', '1') ON CONFLICT DO NOTHING"
_CLEAR_DUE = "DELETE FROM meta WHERE key = 'scrub_due'"


@dataclass(eq=False, slots=True)
class _Write:
    work: Work[object]
    future: asyncio.Future[object]
    secure: bool = False


class _TakenBack(Exception):
    """Ends a transaction that is held, with all its steps undone."""


_Errors = type[Exception] | tuple[type[Exception], ...]


class HeldTransaction:
    """The steps of one task in one transaction of a writer; see ``Writer.transaction``.

    Attributes:
        secure: Whether a step asked for what ``Writer.write`` calls so.
        is_over: Whether the block that held it has ended.
    """

    def __init__(self) -> None:
        self.secure = False
        self.is_over = False
        self._steps: queue.SimpleQueue[_Write | bool] = queue.SimpleQueue()
        self._gate = threading.Lock()
        self._lost: BaseException | None = None

    async def step(self, work: Work[T], *, secure: bool = False) -> T:
        """Run ``work`` on the transaction and return its result; an exception undoes it alone."""
        self.secure |= secure
        future: asyncio.Future[object] = asyncio.get_running_loop().create_future()
        with self._gate:
            if self._lost is not None:
                raise self._lost
            self._steps.put(_Write(work, future))
        return cast("T", await future)

    def end(self, *, commit: bool) -> None:
        """Take no more steps."""
        self.is_over = True
        self._steps.put(commit)

    def serve(
        self,
        attempt: Callable[[_Write], _Outcome],
        explain: Callable[[Exception], BaseException],
    ) -> None:
        """Run the steps as they come, on the writer's thread, until the end.

        Args:
            attempt: Does a step; raises what the database raises when the whole transaction is
                lost.
            explain: Returns the error of our tree for that.

        Raises:
            _TakenBack: The transaction is to be undone.
            StoreConflict: No step came for a minute.
        """
        try:
            while (step := self._steps.get(timeout=STEP_WAIT_S)) is not True:
                if step is False:
                    raise _TakenBack
                try:
                    outcome = attempt(step)
                except Exception as error:
                    _deliver([_Outcome(step, error=explain(error))])
                    raise
                _deliver([outcome])
        except queue.Empty:
            late = StoreConflict("a change was not finished in time and is undone: try again")
            self._lose(late)
            raise late from None
        except Exception as error:
            self._lose(explain(error))
            raise

    def _lose(self, error: BaseException) -> None:
        """Fail the steps that wait, and all that come."""
        with self._gate:
            self._lost = error
        with suppress(queue.Empty):
            while True:
                if isinstance(step := self._steps.get_nowait(), _Write):
                    _deliver([_Outcome(step, error=error)])


_HELD: ContextVar[Mapping[Writer, HeldTransaction] | None] = ContextVar("held", default=None)
"""The transactions that the running task holds; each task that it starts meanwhile takes part."""


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

    errors: _Errors
    """What the database's library raises."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._queue: queue.SimpleQueue[_Write | None] = queue.SimpleQueue()
        self._gate = threading.Lock()
        self._closed = False
        self.commits = 0
        """Grows with each transaction on disk, before its callers know, and with each held step."""
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
            secure: Also empty the log before returning, and scrub the file soon after: once the
                writer is idle, or at close.
        """
        if held := self.held:
            self.commits += 1
            return await held.step(work, secure=secure)
        return cast("T", await self._put(_Write(work, self._future(), secure)))

    @property
    def held(self) -> HeldTransaction | None:
        """The transaction that the running task holds here; None for none."""
        held = (_HELD.get() or {}).get(self)
        return None if held is None or held.is_over else held

    @asynccontextmanager
    async def transaction(self) -> AsyncGenerator[None]:
        """Make all reads and writes of a block one transaction, on disk when the block ends.

        Reads see what was written in the block; others see it once it is on disk. What the block
        raises undoes all of it. Other writes wait meanwhile, so the block asks no model, starts no
        program and waits for nobody who writes. Within a block a further one is part of it.

        Raises:
            StoreConflict: A minute passed without a step.
            StoreUnavailable, StoreError: As ``write``; nothing was changed.
        """
        if self.held:
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
            self.commits += 1  # what was read of it meanwhile is not to be kept
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
        _deliver([outcome for outcome in outcomes if not outcome.write.secure])
        self._tidy(deleted=any(write.secure for write in batch))
        _deliver([outcome for outcome in outcomes if outcome.write.secure])
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
        """Run one write in its savepoint. Raises one of ``errors`` when the transaction is lost."""
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
        """Fail every write of a lost transaction; a write that had failed keeps its own error."""
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
        """Rewrite the file, so that no page keeps a stale copy of deleted data: 2 s for 100 MB.

        ``secure_delete`` overwrites a deleted row where it lies, not the copies that SQLite left
        when it moved rows between pages. The flag in ``meta`` goes only when it is done.
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
