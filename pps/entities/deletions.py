"""Deletions: a name is noted first and erased then, so that a start finishes after a kill."""

from __future__ import annotations

import shutil
import sqlite3
from dataclasses import dataclass
from pathlib import Path

from pps.core.errors import IsolationError, StoreError, UnknownEntity
from pps.core.ids import EntityId
from pps.entities import moves
from pps.entities.folder import card_of
from pps.entities.small_file import SmallFile

UNPUBLISHING_SCHEMA = """
-- Groups whose published graph is to be removed from Neo4j; their entities may be no more.
CREATE TABLE IF NOT EXISTS unpublishing (grp TEXT PRIMARY KEY) STRICT;
"""


@dataclass(frozen=True, slots=True)
class Deletion:
    """An entity that is no more.

    What was its own is being removed, and nobody gets its name until that is done.

    Attributes:
        in_database: A PostgreSQL database has rows of it: it was there, or was moved from or to
            there.
        was_published: Its graph was published on Neo4j.
    """

    entity: EntityId
    store: str
    folder: Path
    in_database: bool
    was_published: bool


class Deletions:
    """The deletions under way in one registry. Every step may be done again, by any process."""

    def __init__(self, file: SmallFile, entities_folder: Path) -> None:
        self._file = file
        self._folder = entities_folder

    def begin(self, entity: EntityId) -> Deletion:
        """Remove an entity's registration, tokens, routes and watched folders.

        Note its files for removal.

        The caller has closed its memory and holds its files.

        Raises:
            UnknownEntity: Somebody else deleted it.
            IsolationError: Its folder holds another entity's data; nothing was changed.
        """
        _check_own(self._folder / entity.name, entity)
        with self._file.writing() as db:
            is_published = moves.is_published(db, entity.group)
            row = db.execute(
                "DELETE FROM entity WHERE grp = ? RETURNING name, grp, store", (entity.group,)
            ).fetchone()
            if row is None:
                raise UnknownEntity(
                    f"no entity {entity.name!r}; it was deleted meanwhile", name=entity.name
                )
            if is_published:
                begin_unpublishing(db, entity)
            db.execute("INSERT INTO deletion (name, grp, store) VALUES (?, ?, ?)", tuple(row))
            return self._deletion(db, row, was_published=is_published)

    def pending(self) -> list[Deletion]:
        with self._file.reading() as db:
            rows = db.execute("SELECT * FROM deletion ORDER BY name").fetchall()
            return [self._deletion(db, row) for row in rows]

    def remove_files(self, deletion: Deletion) -> None:
        """Remove the folder. Raises StoreError when some of it cannot be erased."""
        _check_own(deletion.folder, deletion.entity)
        _remove(deletion.folder)

    def end(self, deletion: Deletion) -> None:
        """Let the name go, once the folder is gone.

        Of a published graph the registry keeps the group until it is gone, and nothing else.
        """
        self._file.scrub()  # first: whoever is killed in between comes here again
        with self._file.writing() as db:
            if deletion.store == "neo4j":
                begin_unpublishing(db, deletion.entity)
            moves.end_other_copy(db, deletion.entity.group)
            db.execute("DELETE FROM deletion WHERE grp = ?", (deletion.entity.group,))

    def sweep(self) -> None:
        """Remove the folder where deletions of earlier versions left files after a kill."""
        _remove(self._folder / ".trash")

    def _deletion(
        self, db: sqlite3.Connection, row: sqlite3.Row, *, was_published: bool = False
    ) -> Deletion:
        store = row["store"]
        group = row["grp"]
        return Deletion(
            EntityId(row["name"], group),
            store,
            self._folder / row["name"],
            in_database=store == "postgresql" or moves.has_rows_in_database(db, group),
            was_published=was_published or store == "neo4j",
        )


def taken(db: sqlite3.Connection, name: str) -> bool:
    return db.execute("SELECT 1 FROM deletion WHERE name = ?", (name,)).fetchone() is not None


def _check_own(folder: Path, entity: EntityId) -> None:
    try:
        owner = card_of(folder).entity
    except StoreError:
        return  # cut short while it was made or removed: the registry says whose it is
    if owner != entity:
        raise IsolationError(
            f"{folder} holds another entity's data, not {entity.name}'s; nothing was removed"
        )


def _remove(folder: Path) -> None:
    while folder.exists() or folder.is_symlink():
        try:
            shutil.rmtree(folder)
        except FileNotFoundError:
            continue  # another process removes it too
        except OSError as error:
            why = error.strerror or error
            raise StoreError(
                f"{folder}: some files could not be erased ({why}); remove it, then delete again"
            ) from None


class Unpublishing:
    """The published graphs of one registry that are to be removed.

    Every step may be done again, by any process.
    """

    def __init__(self, file: SmallFile) -> None:
        self._file = file

    def groups(self) -> list[str]:
        """Return the groups that wait."""
        with self._file.reading() as db:
            return [row["grp"] for row in db.execute("SELECT grp FROM unpublishing ORDER BY grp")]

    def end(self, group: str) -> None:
        """Note that a group is gone from Neo4j, or is published again.

        Nothing of it is left in the file.
        """
        with self._file.writing() as db:
            db.execute("DELETE FROM unpublishing WHERE grp = ?", (group,))


def begin_unpublishing(db: sqlite3.Connection, entity: EntityId) -> None:
    """Note in an open transaction that an entity's published graph is to be removed."""
    db.execute("INSERT OR IGNORE INTO unpublishing (grp) VALUES (?)", (entity.group,))
