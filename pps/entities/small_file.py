"""A small SQLite file, of the registry or an entity's tasks: one short connection a call."""

from __future__ import annotations

import contextlib
import sqlite3
import time
from collections.abc import Generator, Sequence
from pathlib import Path
from typing import Literal

from pps.core.errors import StoreConflict, StoreError, StoreUnavailable

_WAIT_S = 10.0
_TICK_NS = 50_000_000


class SmallFile:
    """A small SQLite file of which every call opens, uses and closes its own connection (0.3 ms).

    So it may be used from any thread and by several processes at once. What is deleted is
    overwritten. A file that is removed while it is in use is not made again: calls are refused.
    """

    def __init__(self, path: Path, schema: str, changes: Sequence[str] = ()) -> None:
        """Make the file (mode 0600) and its tables if they are missing, and upgrade an older file.

        Args:
            path: The file.
            schema: Its tables as they were at first.
            changes: Statements that changed them since, in order; ``user_version`` counts those
                that were done.

        Raises:
            StoreUnavailable: It cannot be reached.
            StoreError: It is no database, or a later version of PPS wrote it.
        """
        self.path = path
        with self._connected("rwc") as db:
            # Not WAL: a connection that comes alone would have to make its files, which a full disk
            # refuses to readers.
            db.execute("PRAGMA journal_mode=DELETE")
            db.executescript(schema)
            done = _version(db)
        if done > len(changes):
            raise StoreError(f"{path}: was written by a later version of PPS; use that one")
        if done < len(changes):
            self._bring_up(changes)
        path.chmod(0o600)

    def _bring_up(self, changes: Sequence[str]) -> None:
        with self.writing() as db:
            for number in range(
                _version(db), len(changes)
            ):  # another process may just have done them
                db.execute(changes[number])
            db.execute(f"PRAGMA user_version = {len(changes)}")

    def stamp(self) -> tuple[int, int, int] | None:
        """Return what changes whenever the file does (5 µs).

        None while a later change might not show.

        A file's time ticks every few milliseconds: as long as the last change is that young,
        another one in the same tick would look the same.
        """
        try:
            seen = self.path.stat()
        except OSError:
            return None
        is_settled = abs(time.time_ns() - seen.st_mtime_ns) > _TICK_NS
        return (seen.st_ino, seen.st_size, seen.st_mtime_ns) if is_settled else None

    @contextlib.contextmanager
    def reading(self) -> Generator[sqlite3.Connection]:
        """Lend a connection.

        Raises:
            StoreConflict: The file stays busy for ten seconds.
            StoreUnavailable: It is gone or cannot be opened.
            StoreError: It is no database.
        """
        with self._connected("rw") as db:
            yield db

    @contextlib.contextmanager
    def _connected(self, mode: Literal["rw", "rwc"]) -> Generator[sqlite3.Connection]:
        """Lend a connection; ``rwc`` makes a file that is missing."""
        address = f"{self.path.absolute().as_uri()}?mode={mode}"
        try:
            with contextlib.closing(
                sqlite3.connect(address, uri=True, timeout=_WAIT_S, isolation_level=None)
            ) as db:
                db.row_factory = sqlite3.Row
                db.execute("PRAGMA foreign_keys=ON")
                db.execute("PRAGMA synchronous=FULL")
                db.execute("PRAGMA secure_delete=ON")
                yield db
        except sqlite3.OperationalError as error:
            busy = error.sqlite_errorcode in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)
            kind = StoreConflict if busy else StoreUnavailable
            raise kind(f"{self.path}: {error}") from None
        except sqlite3.DatabaseError as error:
            raise StoreError(f"{self.path}: {error}; restore it from a backup") from None

    @contextlib.contextmanager
    def writing(self) -> Generator[sqlite3.Connection]:
        """Lend a connection inside a transaction: all of it is on disk afterwards, or none."""
        with self.reading() as db:
            db.execute("BEGIN IMMEDIATE")
            try:
                yield db
            except BaseException:
                if db.in_transaction:  # on a full disk SQLite has undone it already
                    db.execute("ROLLBACK")
                raise
            db.execute("COMMIT")

    def row(self, statement: str, values: Sequence[str | int] = ()) -> sqlite3.Row | None:
        with self.reading() as db:
            row: sqlite3.Row | None = db.execute(statement, values).fetchone()
        return row

    def scrub(self) -> None:
        """Write the file anew, so that no page keeps a stale copy of what was deleted.

        Raises as ``reading``.
        """
        with self.reading() as db:
            db.execute("VACUUM")


def _version(db: sqlite3.Connection) -> int:
    return int(db.execute("PRAGMA user_version").fetchone()[0])
