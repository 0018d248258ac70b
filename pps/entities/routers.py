"""Routers: who may use the project tools, and for which projects."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime

from pps.core import time
from pps.core.errors import InvalidRequest, NotFound
from pps.entities import grants
from pps.entities.file import Refusal, SmallFile
from pps.entities.paths import is_inside, real_path

MAX_ROOTS = 64
"""Most project roots of one router."""

MAX_LABEL = 100
"""Most characters of a router's label."""


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
        """Tell whether a real path is inside one of the roots."""
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
    """Return the router that the owner of the machine is: any project below some roots, made when it is missing.

    Raises:
        InvalidRequest: A root is not an absolute path, or there are too many or none.
    """
    paths = _real(roots)
    return Router(f"owner:{','.join(paths)}", paths, may_create=True)


def _real(roots: Sequence[str]) -> tuple[str, ...]:
    if not 1 <= len(roots) <= MAX_ROOTS:
        raise InvalidRequest("roots", f"must be 1 to {MAX_ROOTS} paths")
    return tuple(sorted({real_path(root, "roots") for root in roots}))


class Routers:
    """The router tokens of one registry, their digests kept, their texts not. As ``Registry`` in cost and errors."""

    def __init__(self, file: SmallFile, refuse: Refusal) -> None:
        self._file = file
        self._refuse = refuse

    def create(self, roots: Sequence[str], *, label: str = "", may_create: bool = True) -> NewRouter:
        """Make a router and its token.

        Args:
            roots: 1 to 64 absolute paths; links in them are followed now, once and for all.
            label: What it is for, at most 100 characters; for people.
            may_create: Whether it may make entities for projects that have none.

        Raises:
            InvalidRequest: A bound is broken; nothing was made.
        """
        if len(label) > MAX_LABEL or not label.isprintable():
            raise InvalidRequest("label", f"must have at most {MAX_LABEL} characters, all printable")
        paths = _real(roots)
        self._refuse("label", label)
        for path in paths:
            self._refuse("roots", path)
        with self._file.writing() as db:
            token = grants.issue(db, "router")
            db.execute("INSERT INTO router VALUES (?, ?, ?)", (token.token_id, label, int(may_create)))
            db.executemany("INSERT INTO router_root VALUES (?, ?)", [(token.token_id, path) for path in paths])
            entry = _entry(db, _row(db, token.token_id))
        return NewRouter(entry, token.text)

    def list(self) -> list[RouterEntry]:
        """Return the routers, oldest first."""
        with self._file.reading() as db:
            rows = db.execute(f"{_COLUMNS} ORDER BY token.created_at, token.id").fetchall()
            return [_entry(db, row) for row in rows]

    def revoke(self, router_id: str) -> None:
        """Refuse a router's token from now on; raises NotFound when there is none of that id."""
        with self._file.writing() as db:
            found = router_id.isascii() and db.execute(_REVOKE, (router_id,)).rowcount
            if not found:
                raise NotFound("router")

    def of_token(self, token: str) -> Router | None:
        """Return the router that a token stands for; None for a wrong or revoked one."""
        row = grants.presented(self._file, token, "router")
        if row is None:
            return None
        with self._file.reading() as db:
            kept = db.execute(f"{_COLUMNS} WHERE token.id = ?", (row["id"],)).fetchone()
            return _entry(db, kept).router if kept else None


_REVOKE = "DELETE FROM token WHERE id = ? AND role = 'router'"
_COLUMNS = (
    "SELECT token.id, token.created_at, router.label, router.may_create "
    "FROM router JOIN token ON token.id = router.token"
)


def _row(db: sqlite3.Connection, router_id: str) -> sqlite3.Row:
    row: sqlite3.Row = db.execute(f"{_COLUMNS} WHERE token.id = ?", (router_id,)).fetchone()
    return row


def _entry(db: sqlite3.Connection, row: sqlite3.Row) -> RouterEntry:
    roots = db.execute("SELECT path FROM router_root WHERE token = ? ORDER BY path", (row["id"],)).fetchall()
    router = Router(row["id"], tuple(one["path"] for one in roots), bool(row["may_create"]))
    return RouterEntry(router, row["label"], time.parse(row["created_at"]))
