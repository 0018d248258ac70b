"""Which folders of notes feed which entity: real paths, and no folder feeds two."""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from pps.core import time
from pps.core.errors import InvalidRequest, NotFound, UnknownEntity
from pps.core.ids import EntityId, check_name
from pps.entities.file import Refusal, SmallFile
from pps.entities.paths import is_inside, outside, real_path

_COLUMNS = """SELECT watched.path, watched.created_at, entity.name, entity.grp, entity.archived
    FROM watched JOIN entity USING (grp)"""


@dataclass(frozen=True, slots=True)
class WatchedFolder:
    """A folder and the entity that its Markdown files belong to."""

    path: str
    entity: EntityId
    created_at: datetime
    archived: bool


class Watched:
    """The watched folders of one registry. Every path is made real before it is looked at.

    Every method raises InvalidRequest for a path that is not absolute, and StoreUnavailable when the file
    cannot be reached.
    """

    def __init__(self, file: SmallFile, home: Path, refuse: Refusal) -> None:
        self._file = file
        self._refuse = refuse
        self._home = home

    def add(self, path: str, name: str) -> WatchedFolder:
        """Let a folder feed an entity; done before, it changes nothing.

        Raises:
            UnknownEntity: No such entity.
            InvalidRequest: It is no folder, holds or lies in the data folder, or overlaps with a folder that
                is watched already.
        """
        path = outside(self._home, path, "folder")
        check_name(name)
        self._refuse("folder", path)
        if not Path(path).is_dir():
            raise InvalidRequest("folder", f"there is none at {path}")
        with self._file.writing() as db:
            entity = db.execute("SELECT grp FROM entity WHERE name = ? COLLATE BINARY", (name,)).fetchone()
            if entity is None:
                raise UnknownEntity(f"no entity {name!r}; `pps entity list` shows those there are")
            for row in db.execute(_COLUMNS).fetchall():
                if row["path"] == path and row["grp"] == entity["grp"]:
                    return _folder(row)
                if is_inside(path, row["path"]) or is_inside(row["path"], path):
                    raise InvalidRequest("folder", "overlaps with one that is watched already; `pps watch list`")
            made = time.iso(time.now())
            db.execute("INSERT INTO watched (path, grp, created_at) VALUES (?, ?, ?)", (path, entity["grp"], made))
            return _folder(db.execute(f"{_COLUMNS} WHERE watched.path = ?", (path,)).fetchone())

    def remove(self, path: str, name: str) -> WatchedFolder:
        """Let a folder feed an entity no longer; returns what it was.

        Raises:
            NotFound: It does not feed this entity.
        """
        path = real_path(path, "folder")
        with self._file.writing() as db:
            row = db.execute(f"{_COLUMNS} WHERE watched.path = ? AND entity.name = ?", (path, name)).fetchone()
            if row is None:
                raise NotFound("watched folder")
            db.execute("DELETE FROM watched WHERE path = ?", (path,))
            return _folder(row)

    def list(self, name: str | None = None) -> list[WatchedFolder]:
        """Return the watched folders by path, of one entity or of all."""
        with self._file.reading() as db:
            rows = db.execute(f"{_COLUMNS} ORDER BY watched.path").fetchall()
        return [_folder(row) for row in rows if name is None or row["name"] == name]


def _folder(row: sqlite3.Row) -> WatchedFolder:
    return WatchedFolder(
        row["path"], EntityId(row["name"], row["grp"]), time.parse(row["created_at"]), bool(row["archived"])
    )
