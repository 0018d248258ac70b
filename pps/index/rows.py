"""The rows of a vector index as they were written: a small SQLite file beside Chroma's own.

Chroma's graph of neighbours is not safe from a kill: it saves its files in place, and one that is caught
in the middle cannot be loaded, or takes the process down. So every row is kept here as well. The graph
can then be made again without asking a model. Which rows are in the graph is noted here too; all others are
scanned in memory.
"""

from __future__ import annotations

import json
import sqlite3
import threading
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeAlias, cast

import numpy as np

from pps.core.errors import StoreError
from pps.core.sql import insert
from pps.models.protocols import Matrix, Vector

RowKey: TypeAlias = tuple[str, int]
"""An owner and a part."""

_KEYS_GIVEN = """collection = ? AND (owner, part) IN
    (SELECT json_extract(value, '$[0]'), json_extract(value, '$[1]') FROM json_each(?))"""

State: TypeAlias = Literal["clean", "open", "probing"]
"""``clean`` after a close; ``open`` while it is open, so a crash leaves it; ``probing`` while a graph that
a crash may have torn is tried out."""

_SCHEMA = """
CREATE TABLE IF NOT EXISTS marks (key TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS rows (
    collection TEXT NOT NULL, owner TEXT NOT NULL, part INTEGER NOT NULL, at INTEGER, vector BLOB NOT NULL);
CREATE UNIQUE INDEX IF NOT EXISTS rows_key ON rows (collection, owner, part);
CREATE TABLE IF NOT EXISTS merged (
    collection TEXT NOT NULL, owner TEXT NOT NULL, part INTEGER NOT NULL, stale INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (collection, owner, part)) WITHOUT ROWID;
DROP TABLE IF EXISTS waiting;
CREATE TABLE IF NOT EXISTS sizes (collection TEXT PRIMARY KEY, size INTEGER NOT NULL);
CREATE TRIGGER IF NOT EXISTS rows_in AFTER INSERT ON rows BEGIN
    INSERT INTO sizes VALUES (new.collection, 1) ON CONFLICT DO UPDATE SET size = size + 1;
END;
CREATE TRIGGER IF NOT EXISTS rows_out AFTER DELETE ON rows BEGIN
    UPDATE sizes SET size = size - 1 WHERE collection = old.collection;
END;
"""
_PAGE = 1000


@dataclass(frozen=True, slots=True, eq=False)
class VectorRow:
    """One vector of an owner. ``at`` is a time in microseconds since 1970 UTC, kept beside it as a number."""

    owner: str
    part: int
    vector: Vector
    at: int | None = None


class RowStore:
    """All rows of one entity; every method may be called from several threads, and takes its turn.

    A change survives a kill when its call returns; a loss of power may take the last ones, never a half.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock = threading.RLock()
        with self._errors():
            self._db = sqlite3.connect(path, check_same_thread=False, isolation_level=None)
            try:
                for pragma in ("journal_mode=WAL", "synchronous=NORMAL", "secure_delete=ON"):
                    self._db.execute(f"PRAGMA {pragma}")
                self._db.executescript(_SCHEMA)
            except sqlite3.Error:
                self._db.close()
                raise

    def marks(self) -> dict[str, str]:
        """Return whose rows these are and of which model; empty for a new file."""
        with self._reading() as db:
            return dict(cast("list[tuple[str, str]]", db.execute("SELECT key, value FROM marks").fetchall()))

    def mark(self, marks: Mapping[str, str]) -> None:
        """Set marks; others stay."""
        with self._changing() as db:
            db.executemany("INSERT OR REPLACE INTO marks VALUES (?, ?)", list(marks.items()))

    def compare(self, collection: str, keys: Sequence[RowKey], matrix: Matrix) -> dict[RowKey, bool]:
        """Return of the keys that have a row whether it holds that vector already."""
        place = {key: at for at, key in enumerate(keys)}
        return {
            key: np.array_equal(row, matrix[place[key]])
            for batch, stored in self.pages(collection, {owner for owner, _ in keys})
            for key, row in zip(batch, stored, strict=True)
            if key in place
        }

    def put(
        self, collection: str, rows: Iterable[VectorRow], drop: Iterable[RowKey] = (), stale: Iterable[RowKey] = ()
    ) -> None:
        """Add or replace rows and drop others, all or nothing.

        Args:
            collection: Where.
            rows: What is added or replaced.
            drop: The keys of what goes.
            stale: Keys of those rows of which the graph has an older vector from now on.
        """
        with self._changing() as db:
            insert(
                db,
                "INSERT INTO rows",
                [
                    (collection, row.owner, row.part, row.at, np.asarray(row.vector, dtype=np.float32).tobytes())
                    for row in rows
                ],
                "ON CONFLICT (collection, owner, part) DO UPDATE SET at = excluded.at, vector = excluded.vector",
            )
            older = json.dumps(list(stale))
            db.execute(f"UPDATE merged SET stale = 1 WHERE {_KEYS_GIVEN}", (collection, older))  # noqa: S608 - constants
            gone = json.dumps(list(drop))
            for table in ("rows", "merged"):
                db.execute(f"DELETE FROM {table} WHERE {_KEYS_GIVEN}", (collection, gone))  # noqa: S608 - constants

    def fresh(self) -> Iterator[tuple[str, list[RowKey], Matrix, list[RowKey]]]:
        """Yield the rows whose vector is in no graph, by collection and pages, the longest there first.

        With each page come those of its keys of which the graph has an older vector.
        """
        after = 0
        while True:
            with self._reading() as db:
                found = cast(
                    "list[tuple[int, str, str, int, bytes, int | None]]",
                    db.execute(
                        "SELECT r.rowid, r.collection, r.owner, r.part, r.vector, m.stale FROM rows r "
                        "LEFT JOIN merged m USING (collection, owner, part) "
                        "WHERE r.rowid > ? AND m.stale IS NOT 0 ORDER BY r.rowid LIMIT ?",
                        (after, _PAGE),
                    ).fetchall(),
                )
            if not found:
                return
            after = found[-1][0]
            for collection in dict.fromkeys(row[1] for row in found):
                some = [row for row in found if row[1] == collection]
                keys = [(row[2], row[3]) for row in some]
                over = [key for key, row in zip(keys, some, strict=True) if row[5]]
                yield collection, keys, _matrix([row[4] for row in some]), over

    def merged(self, collection: str) -> dict[RowKey, bool]:
        """Return the keys of the rows that the graph has a vector of, and whether it is an older one."""
        with self._reading() as db:
            found = db.execute("SELECT owner, part, stale FROM merged WHERE collection = ?", (collection,)).fetchall()
        return {(owner, part): bool(stale) for owner, part, stale in found}

    def inside(self, collection: str) -> int:
        """Return how many rows the graph has a vector of, the latest or an older one."""
        with self._reading() as db:
            counted = db.execute("SELECT count(*) FROM merged WHERE collection = ?", (collection,)).fetchone()
        return cast("tuple[int]", counted)[0]

    def merge(self, collection: str, keys: Iterable[RowKey]) -> None:
        """Note that the graph has the latest vector of these rows."""
        with self._changing() as db:
            db.executemany("INSERT OR REPLACE INTO merged VALUES (?, ?, ?, 0)", [(collection, *key) for key in keys])

    def unmerge(self) -> None:
        """Note that no graph has any row."""
        with self._changing() as db:
            db.execute("DELETE FROM merged")

    def keys(self, collection: str, owners: Iterable[str]) -> list[RowKey]:
        """Return the keys of the owners' rows."""
        with self._reading() as db:
            return _keys(
                db.execute(
                    "SELECT owner, part FROM rows WHERE collection = ? AND owner IN (SELECT value FROM json_each(?))",
                    (collection, json.dumps(list(owners))),
                )
            )

    def every_key(self, collection: str) -> list[RowKey]:
        """Return the key of every row of a collection."""
        with self._reading() as db:
            return _keys(db.execute("SELECT owner, part FROM rows WHERE collection = ?", (collection,)))

    def vectors(self, collection: str, keys: Iterable[RowKey]) -> Iterator[tuple[list[RowKey], Matrix]]:
        """Yield the rows of the keys that are there, by pages, in no order; each page shape (n, dimension)."""
        wanted = set(keys)
        for batch, matrix in self.pages(collection, {owner for owner, _ in wanted}):
            some = [at for at, key in enumerate(batch) if key in wanted]
            if some:
                yield ([batch[at] for at in some], matrix[some]) if len(some) < len(batch) else (batch, matrix)

    def pages(self, collection: str, owners: Iterable[str] | None = None) -> Iterator[tuple[list[RowKey], Matrix]]:
        """Yield every row of the owners, or of the collection, by pages in no order."""
        wanted = list(self.owners(collection) if owners is None else owners)
        for at in range(0, len(wanted), _PAGE):
            with self._reading() as db:
                found = cast(
                    "list[tuple[str, int, bytes]]",
                    db.execute(
                        "SELECT owner, part, vector FROM rows "
                        "WHERE collection = ? AND owner IN (SELECT value FROM json_each(?))",
                        (collection, json.dumps(wanted[at : at + _PAGE])),
                    ).fetchall(),
                )
            if found:
                yield [(row[0], row[1]) for row in found], _matrix([row[2] for row in found])

    def owners(self, collection: str) -> set[str]:
        """Return every owner of a row."""
        return {owner for owner, _ in self.every_key(collection)}

    def sizes(self) -> dict[str, int]:
        """Return how many rows each collection has; one that never had any is left out."""
        with self._reading() as db:
            return dict(cast("list[tuple[str, int]]", db.execute("SELECT collection, size FROM sizes").fetchall()))

    def size(self, collection: str) -> int:
        """Return how many rows a collection has."""
        return self.sizes().get(collection, 0)

    def count(self, collection: str) -> int:
        """Return how many owners have a row."""
        with self._reading() as db:
            counted = db.execute("SELECT count(DISTINCT owner) FROM rows WHERE collection = ?", (collection,))
            return cast("tuple[int]", counted.fetchone())[0]

    def clear(self) -> None:
        """Drop every row; marks stay."""
        with self._changing() as db:
            db.execute("DELETE FROM rows")
            db.execute("DELETE FROM merged")

    def close(self) -> None:
        """Close the file."""
        with self._lock, self._errors():
            self._db.close()

    @contextmanager
    def _reading(self) -> Generator[sqlite3.Connection]:
        with self._lock, self._errors():
            yield self._db

    @contextmanager
    def _changing(self) -> Generator[sqlite3.Connection]:
        with self._lock, self._errors():
            self._db.execute("BEGIN IMMEDIATE")
            try:
                yield self._db
            except BaseException:
                if self._db.in_transaction:  # on a full disk SQLite has undone it already
                    self._db.execute("ROLLBACK")
                raise
            self._db.execute("COMMIT")

    @contextmanager
    def _errors(self) -> Generator[None]:
        try:
            yield
        except sqlite3.Error as error:
            raise StoreError(
                f"the vector rows in {self._path} failed ({error}); "
                "`pps reindex` rebuilds them from the journal, the anchors and the graph"
            ) from error


def _matrix(vectors: Sequence[bytes]) -> Matrix:
    return np.frombuffer(b"".join(vectors), dtype=np.float32).reshape(len(vectors), -1)


def _keys(cursor: sqlite3.Cursor) -> list[RowKey]:
    return cast("list[RowKey]", cursor.fetchall())
