"""Folders mapped to entities: projects, watched folders of notes, and the routers that use them."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import TypeAlias

from pps.core import time
from pps.core.errors import InvalidRequest, NotFound, UnknownEntity
from pps.core.ids import EntityId, check_name
from pps.entities import tokens
from pps.entities.memberships import check_no_pool
from pps.entities.paths import ancestors, is_inside, outside, real_path
from pps.entities.small_file import SmallFile

MAX_ROOTS = 64
"""Most project roots of one router."""
MAX_LABEL = 100
"""Most characters of a router's label."""
Refusal: TypeAlias = Callable[[str, str], None]
"""Raises InvalidRequest when the text of a field must not be kept."""

_ROUTES = "SELECT route.*, entity.name, entity.archived FROM route JOIN entity USING (grp)"
_WATCHED = "SELECT watched.*, entity.name, entity.archived FROM watched JOIN entity USING (grp)"
_ROUTERS = (
    "SELECT token.id, token.created_at, router.label, router.may_create "
    "FROM router JOIN token ON token.id = router.token"
)


@dataclass(frozen=True, slots=True)
class MappedFolder:
    """A folder that is mapped to an entity, or watched for it.

    ``archived`` ones are listed, but lead nowhere.
    """

    path: str
    entity: EntityId
    created_at: datetime
    archived: bool


class Routes:
    """The mapped folders of one registry. Every path is made real before it is looked at.

    Methods block for well under a millisecond, writes for an fsync. Every one raises InvalidRequest
    for a path that is not absolute, and StoreUnavailable when the file cannot be reached.
    """

    def __init__(self, file: SmallFile, refuse: Refusal) -> None:
        self._file = file
        self._refuse = refuse

    def nearest(self, path: str, *, archived: bool = False) -> EntityId | None:
        """Return the entity of the longest mapped folder that is or holds a path, or None.

        One that is archived counts as none, unless ``archived`` are asked for.
        """
        within = (
            "WHERE route.path IN (SELECT value FROM json_each(?)) ORDER BY length(route.path) DESC "
            "LIMIT 1"
        )
        row = self._file.row(
            f"{_ROUTES} {within}", (json.dumps(ancestors(real_path(path, "path"))),)
        )
        return (
            None
            if row is None or (row["archived"] and not archived)
            else EntityId(row["name"], row["grp"])
        )

    def exactly(self, path: str) -> EntityId | None:
        """Return the entity that a folder itself is mapped to.

        None when it is not, or that one is archived.
        """
        row = self._file.row(f"{_ROUTES} WHERE route.path = ?", (real_path(path, "path"),))
        return None if row is None or row["archived"] else EntityId(row["name"], row["grp"])

    def add(self, path: str, name: str) -> MappedFolder:
        """Map a folder to an entity that there is; done before, it changes nothing.

        Raises:
            UnknownEntity: No such entity.
            InvalidRequest: The folder is mapped to another entity.
        """
        path = real_path(path, "path")
        check_name(name)
        self._refuse("path", path)
        with self._file.writing() as db:
            group = _group_of(db, name)
            check_no_pool(db, group, "entity")
            row = mapped(db, path)
            if row is not None and row["grp"] != group:
                raise InvalidRequest(
                    "path", f"belongs to {row['name']!r}; `pps route remove` it first"
                )
            if row is None:
                insert_route(db, path, group)
            return _folder(mapped(db, path))

    def remove(self, path: str) -> None:
        """Take a folder's mapping away; the entity and what it knows stay.

        Raises NotFound when it has none.
        """
        path = real_path(path, "path")
        with self._file.writing() as db:
            if not db.execute("DELETE FROM route WHERE path = ?", (path,)).rowcount:
                raise NotFound("route")

    def list(self, inside: Sequence[str] = ("/",)) -> list[MappedFolder]:
        with self._file.reading() as db:
            rows = db.execute(f"{_ROUTES} ORDER BY route.path").fetchall()
        return [
            _folder(row) for row in rows if any(is_inside(row["path"], root) for root in inside)
        ]


class Watched:
    """The watched folders and files of one registry: no folder feeds two entities.

    As ``Routes`` in paths, cost and errors.
    """

    def __init__(self, file: SmallFile, home: Path, refuse: Refusal) -> None:
        self._file = file
        self._refuse = refuse
        self._home = home

    def add(self, path: str, name: str) -> MappedFolder:
        """Let a folder, or a Markdown file, feed an entity; done before, it changes nothing.

        Raises:
            UnknownEntity: No such entity.
            InvalidRequest: It is neither, holds or lies in the data folder, or overlaps with a
                folder that is watched already.
        """
        path = outside(self._home, path, "folder")
        check_name(name)
        self._refuse("folder", path)
        is_note = Path(path).is_file() and path.lower().endswith((".md", ".markdown"))
        if not (Path(path).is_dir() or is_note):
            raise InvalidRequest("folder", f"there is no folder and no Markdown file at {path}")
        with self._file.writing() as db:
            group = _group_of(db, name)
            check_no_pool(db, group, "entity")
            for row in db.execute(_WATCHED).fetchall():
                if row["path"] == path and row["grp"] == group:
                    return _folder(row)
                if is_inside(path, row["path"]) or is_inside(row["path"], path):
                    raise InvalidRequest(
                        "folder", "overlaps with one that is watched already; `pps watch list`"
                    )
            values = (path, group, time.iso(time.now()))
            db.execute("INSERT INTO watched (path, grp, created_at) VALUES (?, ?, ?)", values)
            return _folder(db.execute(f"{_WATCHED} WHERE watched.path = ?", (path,)).fetchone())

    def remove(self, path: str, name: str) -> MappedFolder:
        """Let a folder feed an entity no longer; returns what it was.

        NotFound when it does not feed this entity.
        """
        path = real_path(path, "folder")
        with self._file.writing() as db:
            row = db.execute(
                f"{_WATCHED} WHERE watched.path = ? AND entity.name = ?", (path, name)
            ).fetchone()
            if row is None:
                raise NotFound("watched folder")
            db.execute("DELETE FROM watched WHERE path = ?", (path,))
            return _folder(row)

    def list(self, name: str | None = None) -> list[MappedFolder]:
        with self._file.reading() as db:
            rows = db.execute(f"{_WATCHED} ORDER BY watched.path").fetchall()
        return [_folder(row) for row in rows if name is None or row["name"] == name]


@dataclass(frozen=True, slots=True)
class Router:
    """Whoever asks for projects by their paths.

    Attributes:
        id: The public id of its token, or ``owner`` and the roots for the owner of the machine.
        roots: Real paths; a project is reached when its real path is one of them or below one.
        may_create: Whether a project that has no entity yet gets one when it is written to.
    """

    id: str
    roots: tuple[str, ...]
    may_create: bool

    @property
    def is_owner(self) -> bool:
        """Whether it is the owner of the machine, who may know the names of all entities."""
        return self.id.startswith("owner:")

    def reaches(self, path: str) -> bool:
        return any(is_inside(path, root) for root in self.roots)


@dataclass(frozen=True, slots=True)
class RouterEntry:
    """A router as the owner sees it in a list."""

    router: Router
    label: str
    created_at: datetime


@dataclass(frozen=True, slots=True)
class NewRouter:
    """A router just made; ``token`` is shown this once."""

    entry: RouterEntry
    token: str = field(repr=False)


def owner(roots: Sequence[str] = ("/",)) -> Router:
    """Return the router of the machine's owner, for any project below some roots.

    Raises:
        InvalidRequest: A root is not an absolute path, or there are too many or none.
    """
    paths = _real(roots)
    return Router(f"owner:{','.join(paths)}", paths, may_create=True)


class Routers:
    """The router tokens of one registry, their digests kept, their texts not.

    As ``Registry`` in cost and errors.
    """

    def __init__(self, file: SmallFile, refuse: Refusal) -> None:
        self._file = file
        self._refuse = refuse

    def create(
        self, roots: Sequence[str], *, label: str = "", may_create: bool = True
    ) -> NewRouter:
        """Make a router and its token.

        Args:
            roots: 1 to 64 absolute paths; links in them are followed now, once and for all.
            label: What it is for, at most 100 characters; for people.
            may_create: Whether it may make entities for projects that have none.

        Raises:
            InvalidRequest: A bound is broken; nothing was made.
        """
        if len(label) > MAX_LABEL or not label.isprintable():
            raise InvalidRequest(
                "label", f"must have at most {MAX_LABEL} characters, all printable"
            )
        paths = _real(roots)
        self._refuse("label", label)
        for path in paths:
            self._refuse("roots", path)
        with self._file.writing() as db:
            token = tokens.issue(db, "router")
            db.execute(
                "INSERT INTO router VALUES (?, ?, ?)", (token.token_id, label, int(may_create))
            )
            db.executemany(
                "INSERT INTO router_root VALUES (?, ?)", [(token.token_id, path) for path in paths]
            )
            row = db.execute(f"{_ROUTERS} WHERE token.id = ?", (token.token_id,)).fetchone()
            return NewRouter(_entry(db, row), token.text)

    def list(self) -> list[RouterEntry]:
        with self._file.reading() as db:
            rows = db.execute(f"{_ROUTERS} ORDER BY token.created_at, token.id").fetchall()
            return [_entry(db, row) for row in rows]

    def revoke(self, router_id: str) -> None:
        """Refuse a router's token from now on; raises NotFound when there is none of that id."""
        revoke = "DELETE FROM token WHERE id = ? AND role = 'router'"
        with self._file.writing() as db:
            if not (router_id.isascii() and db.execute(revoke, (router_id,)).rowcount):
                raise NotFound("router")

    def of_token(self, token: str) -> Router | None:
        """Return the router that a token stands for; None for a wrong or revoked one."""
        row = tokens.presented(self._file, token, "router")
        if row is None:
            return None
        with self._file.reading() as db:
            router_row = db.execute(f"{_ROUTERS} WHERE token.id = ?", (row["id"],)).fetchone()
            return _entry(db, router_row).router if router_row else None


def mapped(db: sqlite3.Connection, path: str) -> sqlite3.Row | None:
    """Return the row of a real path with its entity, or None if the path is not mapped."""
    row: sqlite3.Row | None = db.execute(f"{_ROUTES} WHERE route.path = ?", (path,)).fetchone()
    return row


def insert_route(db: sqlite3.Connection, path: str, group: str) -> None:
    db.execute(
        "INSERT INTO route (path, grp, created_at) VALUES (?, ?, ?)",
        (path, group, time.iso(time.now())),
    )


def _group_of(db: sqlite3.Connection, name: str) -> str:
    row = db.execute("SELECT grp FROM entity WHERE name = ? COLLATE BINARY", (name,)).fetchone()
    if row is None:
        raise UnknownEntity(
            f"no entity {name!r}; `pps entity list` shows those there are", name=name
        )
    return str(row["grp"])


def _folder(row: sqlite3.Row | None) -> MappedFolder:
    if row is None:
        raise NotFound("route")
    entity = EntityId(row["name"], row["grp"])
    return MappedFolder(row["path"], entity, time.parse(row["created_at"]), bool(row["archived"]))


def _entry(db: sqlite3.Connection, row: sqlite3.Row) -> RouterEntry:
    roots = db.execute(
        "SELECT path FROM router_root WHERE token = ? ORDER BY path", (row["id"],)
    ).fetchall()
    router = Router(row["id"], tuple(root["path"] for root in roots), bool(row["may_create"]))
    return RouterEntry(router, row["label"], time.parse(row["created_at"]))


def _real(roots: Sequence[str]) -> tuple[str, ...]:
    if not 1 <= len(roots) <= MAX_ROOTS:
        raise InvalidRequest("roots", f"must be 1 to {MAX_ROOTS} paths")
    return tuple(sorted({real_path(root, "roots") for root in roots}))
