"""The stored rows of a vector index: ``vectors.db``, a SQLite file of one entity.

The scan in memory and Chroma's graph of neighbours are built from these rows and can be rebuilt
without calling a model.
"""

from __future__ import annotations

import json
import os
import sqlite3
import threading
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from pps.core.errors import IsolationError, StoreConflict, StoreError
from pps.core.sql import LIST, insert, listed
from pps.models.protocols import Matrix, Vector

RowKey: TypeAlias = tuple[str, int]
"""Owner, and number of the part of its text."""

_SCHEMA = """
CREATE TABLE IF NOT EXISTS marks (key TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS rows (
    collection TEXT NOT NULL, owner TEXT NOT NULL, part INTEGER NOT NULL, vector BLOB NOT NULL);
CREATE UNIQUE INDEX IF NOT EXISTS rows_key ON rows (collection, owner, part);
CREATE TABLE IF NOT EXISTS sizes (collection TEXT PRIMARY KEY, size INTEGER NOT NULL);
CREATE TABLE IF NOT EXISTS token_states (
    owner TEXT PRIMARY KEY, hash TEXT NOT NULL, made INTEGER NOT NULL, states BLOB);
CREATE INDEX IF NOT EXISTS token_states_made ON token_states (made, owner, hash);
CREATE TRIGGER IF NOT EXISTS rows_in AFTER INSERT ON rows BEGIN
    INSERT INTO sizes VALUES (new.collection, 1) ON CONFLICT DO UPDATE SET size = size + 1;
END;
CREATE TRIGGER IF NOT EXISTS rows_out AFTER DELETE ON rows BEGIN
    UPDATE sizes SET size = size - 1 WHERE collection = old.collection;
END;
"""
_LAYERED = """
DROP TABLE IF EXISTS merged;
DROP TABLE IF EXISTS waiting;
DELETE FROM marks WHERE key IN ('state', 'layout', 'files');
"""
"""Removes tables used until 2026-11: which rows were in Chroma, and which in memory."""
_PAGE = 1000


@dataclass(frozen=True, slots=True, eq=False)
class VectorRow:
    """One vector of an owner."""

    owner: str
    part: int
    vector: Vector


class Keyed(NamedTuple):
    """Rows of one collection; ``matrix`` has shape (keys, dimension)."""

    collection: str
    keys: list[RowKey]
    matrix: Matrix


class RowStore:
    """All rows of one entity. Methods may be called from several threads and run one at a time.

    A change that returned survives a kill. A loss of power may undo the last changes, each of them
    completely. The file is locked while it is open, because the searched copies would not follow
    changes of another process.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock = threading.RLock()
        with row_errors(path):
            self._db = sqlite3.connect(
                path, check_same_thread=False, isolation_level=None, timeout=0
            )
            try:
                for pragma in (
                    "locking_mode=EXCLUSIVE",
                    "journal_mode=WAL",
                    "synchronous=NORMAL",
                    "secure_delete=ON",
                ):
                    self._db.execute(f"PRAGMA {pragma}")
                self._db.executescript(f"BEGIN EXCLUSIVE; {_SCHEMA} {_LAYERED} COMMIT;")
            except sqlite3.Error:
                self._db.close()
                raise

    def marks(self) -> dict[str, str]:
        """Return all marks: group, model, position, built collections; empty for a new file."""
        return dict(self._read("SELECT key, value FROM marks"))

    def mark(self, marks: Mapping[str, str]) -> None:
        """Set marks; other marks stay."""
        with self._changing() as db:
            db.executemany("INSERT OR REPLACE INTO marks VALUES (?, ?)", list(marks.items()))

    def unmark(self, key: str) -> None:
        with self._changing() as db:
            db.execute("DELETE FROM marks WHERE key = ?", (key,))

    def changed(self, collection: str, rows: Mapping[RowKey, Vector]) -> list[RowKey]:
        """Return the keys of the rows that are not stored yet with exactly this vector."""
        unchanged = set[RowKey]()
        owners = {owner for owner, _ in rows}
        for keys, matrix in self.pages(collection, owners):
            for key, vector in zip(keys, matrix, strict=True):
                if key in rows and np.array_equal(vector, rows[key]):
                    unchanged.add(key)
        return [key for key in rows if key not in unchanged]

    def put(self, collection: str, rows: Iterable[VectorRow], drop: Iterable[RowKey] = ()) -> None:
        """Add or replace rows and drop others in one transaction.

        Also removes the mark that the Chroma collection is intact.
        """
        with self._changing() as db:
            insert(
                db,
                "INSERT INTO rows (collection, owner, part, vector)",
                [(collection, row.owner, row.part, row.vector.tobytes()) for row in rows],
                "ON CONFLICT (collection, owner, part) DO UPDATE SET vector = excluded.vector",
            )
            db.execute(
                "DELETE FROM rows WHERE collection = ? AND (owner, part) IN "
                "(SELECT json_extract(value, '$[0]'), json_extract(value, '$[1]') "
                "FROM json_each(?))",
                (collection, json.dumps(list(drop))),
            )
            db.execute("DELETE FROM marks WHERE key = ?", (whole(collection),))

    def scan(
        self, collections: Iterable[str], after: int, limit: int = _PAGE
    ) -> tuple[int, list[Keyed]]:
        """Return the rowid of the last row read, and up to ``limit`` rows after ``after``.

        Rows are grouped by collection, in the order of their addition; none at the end. There is no
        index in that order, so rows of other collections are read and skipped.
        """
        rows = self._read(
            "SELECT owner, part, vector, collection, rowid FROM rows "  # noqa: S608
            f"WHERE +collection IN {LIST} AND rowid > ? ORDER BY rowid LIMIT ?",
            (listed(collections), after, limit),
        )
        by_collection: dict[str, list[Any]] = {}
        for row in rows:
            by_collection.setdefault(row[3], []).append(row)
        last = rows[-1][4] if rows else after
        return last, [
            Keyed(name, *_keyed(collection_rows)) for name, collection_rows in by_collection.items()
        ]

    def keys(self, collection: str, owners: Iterable[str] | None = None) -> list[RowKey]:
        """Return the keys of the rows of the owners (None: of all)."""
        if owners is None:
            return self._read("SELECT owner, part FROM rows WHERE collection = ?", (collection,))
        return self._read(
            f"SELECT owner, part FROM rows WHERE collection = ? AND owner IN {LIST}",  # noqa: S608
            (collection, listed(owners)),
        )

    def pages(
        self, collection: str, owners: Iterable[str] | None = None
    ) -> Iterator[tuple[list[RowKey], Matrix]]:
        """Yield (keys, vectors of shape (n, dimension)) of the owners' rows (None: of all)."""
        wanted = list(self.owners(collection) if owners is None else owners)
        for at in range(0, len(wanted), _PAGE):
            rows = self._read(
                "SELECT owner, part, vector FROM rows "  # noqa: S608
                f"WHERE collection = ? AND owner IN {LIST}",
                (collection, listed(wanted[at : at + _PAGE])),
            )
            if rows:
                yield _keyed(rows)

    def owners(self, collection: str) -> set[str]:
        return {owner for owner, _ in self.keys(collection)}

    def sizes(self) -> dict[str, int]:
        """Return collection → number of rows; collections that never had a row are left out."""
        return dict(self._read("SELECT collection, size FROM sizes"))

    def count(self, collection: str) -> int:
        """Return the number of owners with a row."""
        return self._read(
            "SELECT count(DISTINCT owner) FROM rows WHERE collection = ?", (collection,)
        )[0][0]

    def note_tokens(self, hashes: Mapping[str, str], gone: Iterable[str] = ()) -> None:
        """Mark the token states of texts with a new hash as due; delete those of removed owners.

        Args:
            hashes: Owner → hash of its text.
            gone: Owners whose text was removed.
        """
        with self._changing() as db:
            db.executemany(
                "INSERT INTO token_states VALUES (?, ?, 0, NULL) ON CONFLICT (owner) DO UPDATE "
                "SET hash = excluded.hash, made = 0, states = NULL WHERE hash != excluded.hash",
                list(hashes.items()),
            )
            statement = f"DELETE FROM token_states WHERE owner IN {LIST}"  # noqa: S608
            db.execute(statement, (listed(gone),))

    def tokens_due(self, limit: int) -> dict[str, str]:
        """Return owner → hash of its text, for up to ``limit`` texts with due token states."""
        return dict(
            self._read("SELECT owner, hash FROM token_states WHERE made = 0 LIMIT ?", (limit,))
        )

    def put_tokens(self, states: Mapping[str, tuple[str, bytes]]) -> None:
        """Store owner → (hash of its text, token states).

        Owners whose text has changed meanwhile stay due.
        """
        with self._changing() as db:
            db.executemany(
                "UPDATE token_states SET states = ?, made = 1 WHERE owner = ? AND hash = ?",
                [(blob, owner, text_hash) for owner, (text_hash, blob) in states.items()],
            )

    def tokens(self, owners: Iterable[str]) -> dict[str, bytes]:
        """Return owner → token states; owners without are left out."""
        return dict(
            self._read(
                f"SELECT owner, states FROM token_states WHERE owner IN {LIST} "  # noqa: S608
                "AND made = 1",
                (listed(owners),),
            )
        )

    def all_tokens(self) -> dict[str, bytes]:
        """Return owner → token states of all owners; for small memories only."""
        return dict(self._read("SELECT owner, states FROM token_states WHERE made = 1"))

    def token_owners(self) -> set[str]:
        """Return the owners with stored or due token states."""
        return {owner for (owner,) in self._read("SELECT owner FROM token_states")}

    def token_counts(self) -> tuple[int, int]:
        """Return the number of texts with token states, and the number of due ones."""
        counts = dict(self._read("SELECT made, count(*) FROM token_states GROUP BY made"))
        return counts.get(1, 0), counts.get(0, 0)

    def clear_tokens(self) -> None:
        """Delete all stored and due token states."""
        with self._changing() as db:
            db.execute("DELETE FROM token_states")

    def clear(self) -> None:
        """Delete all rows, token states and marks of intact Chroma collections."""
        with self._changing() as db:
            db.execute("DELETE FROM rows")
            db.execute("DELETE FROM token_states")
            db.execute("DELETE FROM sizes")
            db.execute(f"DELETE FROM marks WHERE key GLOB '{whole('*')}'")  # noqa: S608

    def flush(self) -> None:
        """Make all changes survive a loss of power."""
        with self._lock, row_errors(self._path):
            self._db.execute("PRAGMA wal_checkpoint(FULL)").fetchall()

    def empty_log(self) -> None:
        """Checkpoint and empty the log, so that neither it nor the file has deleted rows."""
        with self._lock, row_errors(self._path):
            self._db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()

    def close(self) -> None:
        with self._lock, row_errors(self._path):
            self._db.close()

    def _read(self, query: str, values: Sequence[str | int] = ()) -> list[Any]:
        with self._lock, row_errors(self._path):
            return self._db.execute(query, values).fetchall()

    @contextmanager
    def _changing(self) -> Generator[sqlite3.Connection]:
        with self._lock, row_errors(self._path):
            self._db.execute("BEGIN IMMEDIATE")
            try:
                yield self._db
            except BaseException:
                if self._db.in_transaction:  # on a full disk SQLite has undone it already
                    self._db.execute("ROLLBACK")
                raise
            self._db.execute("COMMIT")


def whole(collection: str) -> str:
    """Return the key of the mark that a collection's Chroma files are intact.

    It is set on closing, to the listing of the files.
    """
    return f"whole {collection}"


def moved(older: Path, path: Path, group: str) -> None:
    """Move the file of rows out of Chroma's folder, its place until 2026-11. Safe against a kill.

    Raises:
        IsolationError: The rows belong to another group; the file is not moved.
    """
    if path.exists() or not older.exists():
        return
    with row_errors(older), closing(sqlite3.connect(older, isolation_level=None, timeout=0)) as db:
        owner = db.execute("SELECT value FROM marks WHERE key = 'pps_group'").fetchone()
        if owner is not None and owner[0] != group:
            raise IsolationError(f"{older} holds the vectors of another entity")
        db.execute("PRAGMA journal_mode=DELETE")  # copies the log into the file and removes it
    older.rename(path)
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


@contextmanager
def row_errors(path: Path) -> Generator[None]:
    """Raise SQLite's errors inside the block as ``StoreError`` with the command that helps."""
    try:
        yield
    except sqlite3.Error as error:
        # Errors of Python's module have no code: a text that is not UTF-8, a closed file.
        code = (getattr(error, "sqlite_errorcode", None) or 0) & 0xFF
        if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
            raise StoreConflict(f"{path} is open already; close it there first") from None
        raise StoreError(
            f"the vector rows in {path} failed ({error}); "
            "`pps reindex` rebuilds them from the journal, the anchors and the graph"
        ) from error


def _keyed(rows: Sequence[Any]) -> tuple[list[RowKey], Matrix]:
    matrix = np.frombuffer(b"".join(row[2] for row in rows), dtype=np.float32).reshape(
        len(rows), -1
    )
    return [(row[0], row[1]) for row in rows], matrix
