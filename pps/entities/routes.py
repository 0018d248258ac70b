"""Which entity a project's folder belongs to: one row a mapped folder, real paths only."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from pps.core import time
from pps.core.errors import InvalidRequest, NotFound, UnknownEntity
from pps.core.ids import EntityId, check_name
from pps.entities.file import Refusal, SmallFile
from pps.entities.paths import ancestors, is_inside, real_path

_COLUMNS = (
    "SELECT route.path, route.created_at, entity.name, entity.grp, entity.archived FROM route JOIN entity USING (grp)"
)


@dataclass(frozen=True, slots=True)
class ProjectRoute:
    """A mapped folder and its entity. ``archived`` ones are listed, but lead nowhere."""

    path: str
    entity: EntityId
    created_at: datetime
    archived: bool


class Routes:
    """The mapped folders of one registry. Every path is made real before it is looked at.

    Methods block for well under a millisecond, writes for an fsync. Every one raises InvalidRequest for a path
    that is not absolute, and StoreUnavailable when the file cannot be reached.
    """

    def __init__(self, file: SmallFile, refuse: Refusal) -> None:
        self._file = file
        self._refuse = refuse

    def nearest(self, path: str, *, archived: bool = False) -> EntityId | None:
        """Return the entity of the longest mapped folder that is or holds a path, or None.

        One that is archived counts as none, unless ``archived`` are asked for.
        """
        with self._file.reading() as db:
            row = _nearest(db, real_path(path, "path"))
        return None if row is None or (row["archived"] and not archived) else EntityId(row["name"], row["grp"])

    def exactly(self, path: str) -> EntityId | None:
        """Return the entity that a folder itself is mapped to; None when it is not, or that one is archived."""
        with self._file.reading() as db:
            row = mapped(db, real_path(path, "path"))
        return None if row is None or row["archived"] else EntityId(row["name"], row["grp"])

    def add(self, path: str, name: str) -> ProjectRoute:
        """Map a folder to an entity that there is; done before, it changes nothing.

        Raises:
            UnknownEntity: No such entity.
            InvalidRequest: The folder is mapped to another entity.
        """
        path = real_path(path, "path")
        check_name(name)
        self._refuse("path", path)
        with self._file.writing() as db:
            entity = db.execute("SELECT grp FROM entity WHERE name = ? COLLATE BINARY", (name,)).fetchone()
            if entity is None:
                raise UnknownEntity(f"no entity {name!r}; `pps entity list` shows those there are")
            row = mapped(db, path)
            if row is not None and row["grp"] != entity["grp"]:
                raise InvalidRequest("path", f"belongs to {row['name']!r}; `pps route remove` it first")
            return _route(row or insert(db, path, entity["grp"]))

    def remove(self, path: str) -> None:
        """Take a folder's mapping away; the entity and what it knows stay. Raises NotFound when it has none."""
        path = real_path(path, "path")
        with self._file.writing() as db:
            if not db.execute("DELETE FROM route WHERE path = ?", (path,)).rowcount:
                raise NotFound("route")

    def list(self, inside: Sequence[str] = ("/",)) -> list[ProjectRoute]:
        """Return the mapped folders at or below any of some real roots, by path."""
        with self._file.reading() as db:
            rows = db.execute(f"{_COLUMNS} ORDER BY route.path").fetchall()
        return [_route(row) for row in rows if any(is_inside(row["path"], root) for root in inside)]


def mapped(db: sqlite3.Connection, path: str) -> sqlite3.Row | None:
    """Return the row of a real path and its entity (path, created_at, name, grp, archived), or None."""
    row: sqlite3.Row | None = db.execute(f"{_COLUMNS} WHERE route.path = ?", (path,)).fetchone()
    return row


def insert(db: sqlite3.Connection, path: str, group: str) -> sqlite3.Row:
    """Map a real path to a group, inside the caller's transaction; returns its row, as ``mapped`` does."""
    db.execute("INSERT INTO route (path, grp, created_at) VALUES (?, ?, ?)", (path, group, time.iso(time.now())))
    row: sqlite3.Row = db.execute(f"{_COLUMNS} WHERE route.path = ?", (path,)).fetchone()
    return row


def _nearest(db: sqlite3.Connection, path: str) -> sqlite3.Row | None:
    within = "WHERE route.path IN (SELECT value FROM json_each(?)) ORDER BY length(route.path) DESC LIMIT 1"
    row: sqlite3.Row | None = db.execute(f"{_COLUMNS} {within}", (json.dumps(ancestors(path)),)).fetchone()
    return row


def _route(row: sqlite3.Row) -> ProjectRoute:
    return ProjectRoute(
        row["path"], EntityId(row["name"], row["grp"]), time.parse(row["created_at"]), bool(row["archived"])
    )
