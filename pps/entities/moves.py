"""Copies that moves left in other stores, and the graphs that a server's store publishes.

The registry says where a memory is. A move notes its target before it copies the first row, and
names the new store in one transaction when the copy was compared: so at any moment exactly one
store is the true one, and what another store holds of the memory is known, to be finished or
erased.
"""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass
from datetime import datetime
from typing import Final, Literal, TypeAlias

from pps.core import time
from pps.core.errors import UnknownEntity
from pps.core.ids import EntityId
from pps.entities.small_file import SmallFile

Place: TypeAlias = Literal["embedded", "postgresql"]
"""Where tables are: in a file, or in a database."""
PLACES: Final[tuple[Place, ...]] = ("embedded", "postgresql")

SCHEMA = """
-- What a store that is not its own holds of an entity: of a move that is not finished, or (`kept`)
-- of the store before it. It outlives the entity's row, so that a deletion knows what to erase.
CREATE TABLE IF NOT EXISTS other_copy (
    grp TEXT PRIMARY KEY,
    place TEXT NOT NULL,
    kept INTEGER NOT NULL,
    at TEXT NOT NULL
) STRICT;
-- Entities of the store `postgresql` whose graph is published on Neo4j; of those in files the store
-- `neo4j` says so.
CREATE TABLE IF NOT EXISTS published (
    grp TEXT PRIMARY KEY REFERENCES entity(grp) ON DELETE CASCADE
) STRICT;
"""


@dataclass(frozen=True, slots=True)
class OtherCopy:
    """What a store that is not an entity's own holds of it.

    Attributes:
        is_kept: It is the memory as it was when it was moved away; else a copy whose move is not
            finished.
        at: When the move was finished, or begun.
    """

    place: Place
    is_kept: bool
    at: datetime


def place_of(store: str) -> Place:
    """Return where the tables of a store's entity are; ``neo4j`` means a file, and published."""
    return "postgresql" if store == "postgresql" else "embedded"


class Moves:
    """The moves of one registry's entities.

    Methods block for less than a millisecond, writes for an fsync.
    """

    def __init__(self, file: SmallFile) -> None:
        self._file = file

    def other_copy(self, group: str) -> OtherCopy | None:
        """Return what another store holds of an entity; None where none does."""
        row = self._file.row("SELECT place, kept, at FROM other_copy WHERE grp = ?", (group,))
        if row is None:
            return None
        return OtherCopy(row["place"], bool(row["kept"]), time.parse(row["at"]))

    def begin(self, entity: EntityId, target: Place) -> None:
        """Note that a copy is made in another store, before its first row."""
        with self._file.writing() as db:
            put_other_copy(db, entity.group, OtherCopy(target, False, time.now()))

    def switch(self, entity: EntityId, store: str, *, is_published: bool, source: Place) -> None:
        """Make the copy the true one, and note the old store's copy, in one transaction.

        Args:
            entity: Whose memory was copied.
            store: What it is registered with from now on.
            is_published: Its graph is published on Neo4j.
            source: Where it was.

        Raises:
            UnknownEntity: It was deleted meanwhile.
        """
        with self._file.writing() as db:
            changed = db.execute(
                "UPDATE entity SET store = ? WHERE grp = ?", (store, entity.group)
            ).rowcount
            if not changed:
                raise UnknownEntity(f"no entity {entity.name!r}; it was deleted", name=entity.name)
            note_published(db, entity.group, is_published and store == "postgresql")
            put_other_copy(db, entity.group, OtherCopy(source, True, time.now()))

    def end(self, group: str) -> None:
        """Note that no other store holds anything of an entity any more."""
        with self._file.writing() as db:
            end_other_copy(db, group)


def put_other_copy(db: sqlite3.Connection, group: str, copy: OtherCopy) -> None:
    """Note in an open transaction what another store holds of an entity."""
    db.execute(
        "INSERT OR REPLACE INTO other_copy (grp, place, kept, at) VALUES (?, ?, ?, ?)",
        (group, copy.place, int(copy.is_kept), time.iso(copy.at)),
    )


def end_other_copy(db: sqlite3.Connection, group: str) -> None:
    db.execute("DELETE FROM other_copy WHERE grp = ?", (group,))


def note_published(db: sqlite3.Connection, group: str, is_published: bool) -> None:
    """Note in an open transaction whether the graph of an entity on PostgreSQL is published."""
    if is_published:
        db.execute("INSERT OR IGNORE INTO published (grp) VALUES (?)", (group,))
    else:
        db.execute("DELETE FROM published WHERE grp = ?", (group,))


def is_published(db: sqlite3.Connection, group: str) -> bool:
    """Tell whether the graph of an entity on PostgreSQL is published."""
    row = db.execute("SELECT 1 FROM published WHERE grp = ?", (group,)).fetchone()
    return row is not None


def has_rows_in_database(db: sqlite3.Connection, group: str) -> bool:
    """Tell whether a database that is not an entity's store has rows of it."""
    row = db.execute(
        "SELECT 1 FROM other_copy WHERE grp = ? AND place = 'postgresql'", (group,)
    ).fetchone()
    return row is not None
