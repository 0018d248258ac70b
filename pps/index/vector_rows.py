"""The rows of a vector index as they are kept: ``vectors.db``, a small SQLite file of one entity.

What is searched, a scan in memory or a graph of neighbours in Chroma, is made of these rows, and
can be made again without asking a model.
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
"""An owner and a part."""

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
"""Tables until 2026-11: which rows were in a graph of neighbours, and which in memory."""
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
    """All rows of one entity; every method may be called from several threads, and takes its turn.

    A change survives a kill when its call returns; a loss of power may take the last ones, never a
    half. The file is locked as long as it is open: what is searched would not see another's
    changes.
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
        """Return the group, the model and the built state of the rows; empty for a new file."""
        return dict(self._read("SELECT key, value FROM marks"))

    def mark(self, marks: Mapping[str, str]) -> None:
        """Set marks; others stay."""
        with self._changing() as db:
            db.executemany("INSERT OR REPLACE INTO marks VALUES (?, ?)", list(marks.items()))

    def unmark(self, key: str) -> None:
        with self._changing() as db:
            db.execute("DELETE FROM marks WHERE key = ?", (key,))

    def changed(self, collection: str, rows: Mapping[RowKey, Vector]) -> list[RowKey]:
        """Return the keys of those rows that are not there with just that vector."""
        same = {
            key
            for keys, matrix in self.pages(collection, {owner for owner, _ in rows})
            for key, vector in zip(keys, matrix, strict=True)
            if key in rows and np.array_equal(vector, rows[key])
        }
        return [key for key in rows if key not in same]

    def put(self, collection: str, rows: Iterable[VectorRow], drop: Iterable[RowKey] = ()) -> None:
        """Add or replace rows and drop others, all or nothing; Chroma lacks rows from here on."""
        with self._changing() as db:
            insert(
                db,
                "INSERT INTO rows (collection, owner, part, vector)",
                [(collection, row.owner, row.part, row.vector.tobytes()) for row in rows],
                "ON CONFLICT (collection, owner, part) DO UPDATE SET vector = excluded.vector",
            )
            db.execute(
                "DELETE FROM rows WHERE collection = ? AND (owner, part) IN "
                "(SELECT json_extract(value, '$[0]'), json_extract(value, '$[1]') FROM json_each(?))",
                (collection, json.dumps(list(drop))),
            )
            db.execute("DELETE FROM marks WHERE key = ?", (whole(collection),))

    def scan(
        self, collections: Iterable[str], after: int, limit: int = _PAGE
    ) -> tuple[int, list[Keyed]]:
        """Return the next rows by collection in the order of addition, and the last number.

        At the end there are none. Other collections' rows are read on the way: nothing orders a
        collection's alone.
        """
        rows = self._read(
            f"SELECT owner, part, vector, collection, rowid FROM rows WHERE +collection IN {LIST} "  # noqa: S608
            "AND rowid > ? ORDER BY rowid LIMIT ?",
            (listed(collections), after, limit),
        )
        by_collection: dict[str, list[Any]] = {}
        for row in rows:
            by_collection.setdefault(row[3], []).append(row)
        return (rows[-1][4] if rows else after), [
            Keyed(name, *_keyed(some)) for name, some in by_collection.items()
        ]

    def keys(self, collection: str, owners: Iterable[str] | None = None) -> list[RowKey]:
        """Return the keys of the owners' rows, or of all."""
        if owners is None:
            return self._read("SELECT owner, part FROM rows WHERE collection = ?", (collection,))
        return self._read(
            f"SELECT owner, part FROM rows WHERE collection = ? AND owner IN {LIST}",  # noqa: S608 - a constant
            (collection, listed(owners)),
        )

    def pages(
        self, collection: str, owners: Iterable[str] | None = None
    ) -> Iterator[tuple[list[RowKey], Matrix]]:
        """Yield rows of the owners, or of the collection, in pages of shape (n, dimension)."""
        wanted = list(self.owners(collection) if owners is None else owners)
        for at in range(0, len(wanted), _PAGE):
            rows = self._read(
                f"SELECT owner, part, vector FROM rows WHERE collection = ? AND owner IN {LIST}",  # noqa: S608 - as above
                (collection, listed(wanted[at : at + _PAGE])),
            )
            if rows:
                yield _keyed(rows)

    def owners(self, collection: str) -> set[str]:
        return {owner for owner, _ in self.keys(collection)}

    def sizes(self) -> dict[str, int]:
        """Return how many rows each collection has; one that never had any is left out."""
        return dict(self._read("SELECT collection, size FROM sizes"))

    def count(self, collection: str) -> int:
        """Return how many owners have a row."""
        return self._read(
            "SELECT count(DISTINCT owner) FROM rows WHERE collection = ?", (collection,)
        )[0][0]

    def note_tokens(self, hashes: Mapping[str, str], gone: Iterable[str] = ()) -> None:
        """Note token states to make: of texts with another hash than their states; drop others.

        Args:
            hashes: Owner → hash of its text.
            gone: Owners that have no text any more.
        """
        with self._changing() as db:
            db.executemany(
                "INSERT INTO token_states VALUES (?, ?, 0, NULL) ON CONFLICT (owner) DO UPDATE "
                "SET hash = excluded.hash, made = 0, states = NULL WHERE hash != excluded.hash",
                list(hashes.items()),
            )
            db.execute(f"DELETE FROM token_states WHERE owner IN {LIST}", (listed(gone),))  # noqa: S608 - a constant

    def tokens_due(self, limit: int) -> dict[str, str]:
        """Return owner → hash of at most ``limit`` texts whose token states are to be made."""
        return dict(
            self._read("SELECT owner, hash FROM token_states WHERE made = 0 LIMIT ?", (limit,))
        )

    def put_tokens(self, states: Mapping[str, tuple[str, bytes]]) -> None:
        """Store owner → (hash of its text, token states); an owner whose text changed stays due."""
        with self._changing() as db:
            db.executemany(
                "UPDATE token_states SET states = ?, made = 1 WHERE owner = ? AND hash = ?",
                [(blob, owner, text_hash) for owner, (text_hash, blob) in states.items()],
            )

    def tokens(self, owners: Iterable[str]) -> dict[str, bytes]:
        """Return owner → token states of those that have any."""
        return dict(
            self._read(
                f"SELECT owner, states FROM token_states WHERE owner IN {LIST} "  # noqa: S608 - a constant
                "AND made = 1",
                (listed(owners),),
            )
        )

    def all_tokens(self) -> dict[str, bytes]:
        """Return owner → token states of all owners; for a memory small enough for that."""
        return dict(self._read("SELECT owner, states FROM token_states WHERE made = 1"))

    def token_owners(self) -> set[str]:
        """Return the owners that have token states, or wait for them."""
        return {owner for (owner,) in self._read("SELECT owner FROM token_states")}

    def token_counts(self) -> tuple[int, int]:
        """Return how many texts have token states, and how many wait for them."""
        counts = dict(self._read("SELECT made, count(*) FROM token_states GROUP BY made"))
        return counts.get(1, 0), counts.get(0, 0)

    def clear_tokens(self) -> None:
        """Drop every token state and every note of one."""
        with self._changing() as db:
            db.execute("DELETE FROM token_states")

    def clear(self) -> None:
        """Drop every row, and that any collection is whole in Chroma; other marks stay."""
        with self._changing() as db:
            db.execute("DELETE FROM rows")
            db.execute("DELETE FROM token_states")
            db.execute("DELETE FROM sizes")
            db.execute(f"DELETE FROM marks WHERE key GLOB '{whole('*')}'")  # noqa: S608 - a constant

    def flush(self) -> None:
        """Make sure that what was changed survives a loss of power too."""
        with self._lock, row_errors(self._path):
            self._db.execute("PRAGMA wal_checkpoint(FULL)").fetchall()

    def empty_log(self) -> None:
        """Write the log into the file and empty it: what was deleted is in neither any more."""
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
    """Return the mark of a collection whose Chroma files match its rows, since it was closed."""
    return f"whole {collection}"


def moved(older: Path, path: Path, group: str) -> None:
    """Move rows from Chroma's folder, their place until 2026-11; safe against a kill.

    Raises:
        IsolationError: They are another group's, and stay where they are.
    """
    if path.exists() or not older.exists():
        return
    with row_errors(older), closing(sqlite3.connect(older, isolation_level=None, timeout=0)) as db:
        owner = db.execute("SELECT value FROM marks WHERE key = 'pps_group'").fetchone()
        if owner is not None and owner[0] != group:
            raise IsolationError(f"{older} holds the vectors of another entity")
        db.execute(
            "PRAGMA journal_mode=DELETE"
        )  # what its log holds is in the file then, and the log is gone
    older.rename(path)
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


@contextmanager
def row_errors(path: Path) -> Generator[None]:
    """Raise what SQLite raises as a StoreError that names the command that helps."""
    try:
        yield
    except sqlite3.Error as error:
        # Python's own errors have no code: a text that is no UTF-8, a closed file.
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
