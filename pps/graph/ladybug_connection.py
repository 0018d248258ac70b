"""LadybugDB as the driver uses it, blocking: one database file, its connections, rows and errors.

Everything here runs in a thread of the pool. Habits of LadybugDB 0.22 shape it (measured):

- A prepared statement stays in its connection and keeps the memory of its last run in the buffer pool. A
  connection is therefore given up after a slow statement or many, which is what gives the memory back.
- When a checkpoint finds the buffer pool too small, what is committed *after* that is lost, although the error
  says otherwise, and a second checkpoint of the same open database writes a broken primary key index into the file,
  which ends the process (a segmentation fault) at one of the next. So checkpoints are never left to a commit nor to
  closing: they are asked for, and one that fails closes the database, which replays its log when it is opened again
  with a larger pool.
- A time with a zone is stored as if it had none, so times are turned into UTC before they are handed over.
- A log whose last write was cut off (a crash, a full disk) is refused at opening, although everything acknowledged
  is in it. It is then read up to the cut, and kept aside. Writing to a full disk may even end the process, so
  writes are refused while there is still some room.
"""

from __future__ import annotations

import contextlib
import logging
import shutil
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, cast

import ladybug
from ladybug._backend import get_pybind_module

from pps.core.errors import PPSError, StoreConflict, StoreError, StoreUnavailable
from pps.core.file_lock import FileLock
from pps.graph.graph_store import Rows

_log = logging.getLogger(__name__)
_MIB = 2**20
_SLOW_S = 0.05
_MANY_USES = 200
_POOL_FULL = "buffer pool is full"
_NOT_THE_LOG = (
    "Could not set lock",
    "IO exception",
    "not a valid Lbug database",
    "cannot be a directory",
)
# What opening raises: a damaged log may hold a length that is none, which allocating or filling a string refuses.
_NOT_READ = (RuntimeError, ValueError, MemoryError, OverflowError, LookupError)
_LOADING = threading.Lock()
_NAMED_KINDS = ("Parser exception", "Binder exception", "Catalog exception")


@dataclass(frozen=True, slots=True)
class LadybugOptions:
    """How an embedded database is opened.

    Attributes:
        pool_bytes: Bound of the buffer pool at opening. Nothing is reserved: an idle entity uses about 1 MB.
        pool_limit_bytes: The pool is doubled up to this when a statement or a checkpoint does not fit.
        threads: Threads that one statement may use.
        checkpoint_bytes: Size of the log (``.wal``) at which it is folded into the database file.
        max_db_bytes: Address space mapped for the file, a power of two; without it the fifteenth fails.
        free_bytes: Writes are refused when the disk has less room than this.
    """

    pool_bytes: int = 256 * _MIB
    pool_limit_bytes: int = 4096 * _MIB
    threads: int = 2
    checkpoint_bytes: int = 16 * _MIB
    max_db_bytes: int = 64 * 1024 * _MIB
    free_bytes: int = 64 * _MIB


class PoolFull(Exception):
    """The buffer pool was too small; the statement, and with it its transaction, was rolled back."""


class LadybugConnection:
    """One connection; one statement at a time.

    Attributes:
        tired: True when it should be closed instead of used again.
    """

    def __init__(self, database: ladybug.Database) -> None:
        try:
            self._connection = ladybug.Connection(database)
        except (RuntimeError, LookupError) as error:
            raise _mapped(error) from error
        self._uses = 0
        self.tired = False

    def run(self, statement: str, parameters: Mapping[str, Any]) -> Rows:
        """Run one statement and return all its rows; times are aware UTC.

        Raises:
            PoolFull: As it says.
            StoreError, StoreConflict, StoreUnavailable: Everything else that LadybugDB raises.
        """
        started = time.monotonic()
        self._uses += 1
        try:
            result = self._connection.execute(
                statement, {key: _given(value) for key, value in parameters.items()}
            )
            return _rows(result[-1] if isinstance(result, list) else result)
        except (RuntimeError, ValueError, TypeError, OverflowError, LookupError) as error:
            self.tired = True
            raise _mapped(error) from error
        finally:
            self.tired |= self._uses >= _MANY_USES or time.monotonic() - started > _SLOW_S

    def interrupt(self) -> None:
        """Stop the statement that another thread runs here; it fails, or it was just done."""
        self._connection.interrupt()

    def close(self) -> None:
        """Close; an open transaction is rolled back, and the memory of its statements is given back."""
        self._connection.close()


class LadybugFile:
    """The one open database of a file, under a lock that no second opening gets past.

    LadybugDB refuses a second process but lets the same process in, which then reads stale data; the lock on
    a file beside it (``graph.lbug.lock``) refuses both.

    Raises:
        StoreConflict: The file is open already; the message names the holder.
        StoreUnavailable: It cannot be opened or created.
        StoreError: It is not a LadybugDB file, or it is damaged.
    """

    def __init__(self, path: Path, options: LadybugOptions) -> None:
        self._path = path
        self._wal = path.with_name(path.name + ".wal")
        self._options = options
        self._pool_bytes = options.pool_bytes
        self._lock = FileLock(path.with_name(path.name + ".lock"), whose=str(path)).acquire()
        self._opening = threading.Lock()
        try:
            self._database = self._open()
        except BaseException:
            self._lock.release()
            raise

    def connect(self) -> LadybugConnection:
        """Return a new connection (about 40 microseconds); open the database again if that failed before."""
        with self._opening:
            if self._database.is_closed and self._lock.is_mine:
                self._database = self._open()
        return LadybugConnection(self._database)

    def require_room(self) -> None:
        """Raise StoreUnavailable when the disk is nearly full."""
        least = self._options.free_bytes
        if shutil.disk_usage(self._path.parent).free < least:
            raise StoreUnavailable(
                f"the disk of {self._path.parent} is nearly full (under {least >> 20} MiB): free some; "
                "the graph was not changed"
            )

    def checkpoint_is_due(self) -> bool:
        """Tell whether the log has grown past its bound."""
        try:
            return self._wal.stat().st_size > self._options.checkpoint_bytes
        except FileNotFoundError:
            return False

    def reopen(self) -> bool:
        """Close and open again with twice the pool, which brings back all that is committed.

        Every connection has to be closed before.

        Returns:
            False when the pool was at its limit already.
        """
        self._database.close()  # without a checkpoint: the last one may have failed
        room = self._pool_bytes < self._options.pool_limit_bytes
        self._pool_bytes = min(self._pool_bytes * 2, self._options.pool_limit_bytes)
        self._database = self._open()
        return room

    def close(self) -> None:
        """Fold the log into the file, close it and let go of the lock; every connection has to be closed before."""
        try:
            if not self._database.is_closed:
                # If this fails, the log stays and is read at the next opening.
                with contextlib.suppress(RuntimeError):
                    _tell(self._database, "CHECKPOINT")
                self._database.close()
        finally:
            self._lock.release()

    def _open(self) -> ladybug.Database:
        try:
            return self._database_of(strict=True)
        except _NOT_READ as error:
            if any(text in str(error) for text in _NOT_THE_LOG) or not self._wal.exists():
                raise _not_opened(error, self._path) from error
        aside = self._wal.with_name(self._wal.name + ".damaged")
        try:
            shutil.copyfile(self._wal, aside)
            database = self._database_of(strict=False)
            lost = aside.stat().st_size - self._wal.stat().st_size
        except _NOT_READ as error:
            raise _not_opened(error, self._path) from error
        except OSError as error:
            raise StoreUnavailable(f"{aside} cannot be written: {error.strerror}") from error
        _log.error(
            "the last %d bytes of the log of %s were damaged; the whole log is kept in %s",
            lost,
            self._path,
            aside,
        )
        return database

    def _database_of(self, *, strict: bool) -> ladybug.Database:
        with _LOADING:  # a second thread that comes while LadybugDB loads its library is told that there is none
            get_pybind_module()
        database = ladybug.Database(
            self._path,
            buffer_pool_size=self._pool_bytes,
            max_num_threads=self._options.threads,
            max_db_size=self._options.max_db_bytes,
            auto_checkpoint=False,
            throw_on_wal_replay_failure=strict,
        )
        _tell(database, "CALL force_checkpoint_on_close=false")
        return database


def _tell(database: ladybug.Database, statement: str) -> None:
    connection = ladybug.Connection(database)
    try:
        result = connection.execute(statement)
        for one in result if isinstance(result, list) else [result]:
            one.close()
    finally:
        connection.close()


def _given(value: Any) -> Any:
    if isinstance(value, datetime):
        return value if value.tzinfo is None else value.astimezone(UTC).replace(tzinfo=None)
    if isinstance(value, (list, tuple)):
        items = list(cast("list[Any]", value))
        # Vectors are long: their first number tells, so they are not walked.
        return (
            items
            if items and isinstance(items[0], (float, str))
            else [_given(item) for item in items]
        )
    if isinstance(value, dict):
        return {key: _given(item) for key, item in cast("dict[str, Any]", value).items()}
    return value


def _rows(result: ladybug.QueryResult) -> Rows:
    try:
        names = result.get_column_names()
        return [
            dict(zip(names, map(_taken, cast("list[Any]", row)), strict=True)) for row in result
        ]
    finally:
        result.close()


def _taken(value: Any) -> Any:
    if isinstance(value, datetime):
        return value.replace(tzinfo=UTC) if value.tzinfo is None else value
    if isinstance(value, dict):
        return {key: _taken(item) for key, item in cast("dict[str, Any]", value).items()}
    return value


def _mapped(error: Exception) -> PPSError | PoolFull:
    text = str(error)
    if _POOL_FULL in text:
        return PoolFull(text)
    if "Only one write transaction" in text:
        return StoreConflict("the embedded store is being written by somebody else")
    if "closed" in text:
        return StoreUnavailable("the embedded store is closed")
    kind = text.partition(":")[0]
    if kind == "IO exception":
        return StoreUnavailable(
            "the embedded store's file cannot be read or written: is the disk full?"
        )
    # What these say is about the statement. Others may quote a value, which is memory: they stay out.
    if kind in _NAMED_KINDS:
        return StoreError(f"LadybugDB refused a statement: {text.splitlines()[0][:200]}")
    return StoreError(
        f"LadybugDB refused a statement ({kind[:60] if ':' in text else type(error).__name__})"
    )


def _not_opened(error: Exception, path: Path) -> PPSError:
    text = str(error)
    if "Could not set lock" in text:
        return StoreConflict(f"{path} is open already, in another process")
    if "IO exception" in text:
        return StoreUnavailable(
            f"{path} cannot be opened: {text.partition(':')[2].strip().splitlines()[0][:200]}"
        )
    why = text.partition(":")[0][:100] or type(error).__name__
    return StoreError(f"{path} cannot be opened: it is damaged or no graph of PPS ({why})")
