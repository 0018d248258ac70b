"""Squads: which entities share a pool, under which ids and roles.

Membership is looked up at each call.
"""

from __future__ import annotations

import secrets
import sqlite3
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from pps.core import time
from pps.core.errors import InvalidRequest, NotFound
from pps.core.ids import EntityId, check_name
from pps.entities.small_file import SmallFile

SCHEMA = """
CREATE TABLE IF NOT EXISTS squad (
    name TEXT PRIMARY KEY COLLATE NOCASE,
    pool TEXT NOT NULL UNIQUE REFERENCES entity(grp) ON DELETE CASCADE,
    rules TEXT NOT NULL,
    key BLOB NOT NULL,
    created_at TEXT NOT NULL
) STRICT;
CREATE TABLE IF NOT EXISTS member (
    grp TEXT PRIMARY KEY REFERENCES entity(grp) ON DELETE CASCADE,
    squad TEXT NOT NULL REFERENCES squad(name) ON DELETE CASCADE,
    id TEXT NOT NULL,
    role TEXT NOT NULL,
    UNIQUE (squad, id)
) STRICT;
"""
_SQUADS = "SELECT squad.*, entity.name AS entity FROM squad JOIN entity ON entity.grp = squad.pool"
_MEMBERS = """SELECT member.id, member.role, entity.name, entity.grp, entity.archived FROM member
    JOIN entity USING (grp) WHERE member.squad = ? ORDER BY member.rowid"""


@dataclass(frozen=True, slots=True)
class Member:
    """A member of a squad: its id there, its role, and whose memory it has."""

    id: str
    role: str
    entity: EntityId


@dataclass(frozen=True, slots=True)
class Squad:
    """A squad.

    Attributes:
        pool: The entity that holds what is shared.
        rules: Its file's text, as it was when it was made or last given.
        key: What digests of roots are made with; never shown.
        members: By their ids, in the order in which they came; those at rest are left out.
    """

    name: str
    pool: EntityId
    rules: str = field(repr=False)
    key: bytes = field(repr=False)
    created_at: datetime
    members: Mapping[str, Member]


class Squads:
    """The squads of one registry.

    Methods block for well under a millisecond, writes for an fsync.
    """

    def __init__(self, file: SmallFile) -> None:
        self._file = file
        self._seen: tuple[object, dict[str, tuple[str, str]]] = (None, {})

    def begin(self, name: str, pool: EntityId, rules: str) -> Squad:
        """Make a squad, or give one that is there another text of rules.

        Raises:
            InvalidRequest: The entity that is to be its pool has shown a token, or is of a squad.
        """
        check_name(name)
        with self._file.writing() as db:
            row = db.execute("SELECT pool FROM squad WHERE name = ?", (name,)).fetchone()
            if row is None:
                if _taken(db, pool.group) or not _untouched(db, pool.group):
                    raise InvalidRequest(
                        "name",
                        f"there is an entity {pool.name!r}; choose another name for the squad",
                    )
                db.execute("DELETE FROM owed WHERE grp = ?", (pool.group,))
                values = (name, pool.group, rules, secrets.token_bytes(32), time.iso(time.now()))
                db.execute(
                    "INSERT INTO squad (name, pool, rules, key, created_at) VALUES (?, ?, ?, ?, ?)",
                    values,
                )
            else:
                db.execute("UPDATE squad SET rules = ? WHERE name = ?", (rules, name))
            return _squad(db, db.execute(f"{_SQUADS} WHERE squad.name = ?", (name,)).fetchone())

    def add(self, name: str, member: Member) -> None:
        """Make an entity a member; done before, it changes nothing.

        Raises:
            InvalidRequest: The entity is a member under another id or elsewhere, or a pool; or the
                id is another's.
        """
        with self._file.writing() as db:
            group = member.entity.group
            row = db.execute("SELECT squad, id FROM member WHERE grp = ?", (group,)).fetchone()
            if row is not None and (row["squad"], row["id"]) == (name, member.id):
                return
            if row is not None or _taken(db, group):
                raise InvalidRequest(
                    "member", f"{member.entity.name!r} is of a squad already; `pps squad list`"
                )
            if db.execute(
                "SELECT 1 FROM member WHERE squad = ? AND id = ?", (name, member.id)
            ).fetchone():
                raise InvalidRequest(
                    "member", f"{member.id!r} is another entity; `pps squad remove {name}` it first"
                )
            values = (group, name, member.id, member.role)
            db.execute("INSERT INTO member (grp, squad, id, role) VALUES (?, ?, ?, ?)", values)

    def remove(self, name: str, member: str) -> None:
        """Take a member's grant away; its memory stays. NotFound when there is none of that id."""
        with self._file.writing() as db:
            if not db.execute(
                "DELETE FROM member WHERE squad = ? AND id = ?", (name, member)
            ).rowcount:
                raise NotFound("member")

    def get(self, name: str) -> Squad:
        """Return a squad; NotFound when there is none of that name."""
        with self._file.reading() as db:
            row = db.execute(f"{_SQUADS} WHERE squad.name = ?", (name,)).fetchone()
            if row is None:
                raise NotFound("squad")
            return _squad(db, row)

    def list(self) -> list[Squad]:
        with self._file.reading() as db:
            return [
                _squad(db, row) for row in db.execute(f"{_SQUADS} ORDER BY squad.name").fetchall()
            ]

    def of_member(self, entity: str) -> tuple[Squad, Member] | None:
        """Return the squad that the entity of a name is a member of, and as whom.

        None when it is of none.
        """
        squad, id_ = self._whose().get(entity, ("", ""))
        if not id_:
            return None
        with self._file.reading() as db:
            row = db.execute(f"{_SQUADS} WHERE squad.name = ?", (squad,)).fetchone()
            squad_row = _squad(db, row) if row is not None else None
        return (
            (squad_row, squad_row.members[id_]) if squad_row and id_ in squad_row.members else None
        )

    def is_member(self, entity: str) -> bool:
        """Tell whether a named entity is a member of a squad (5 µs while nothing is written)."""
        return bool(self._whose().get(entity, ("", ""))[1])

    def pool_of(self, entity: str) -> str:
        """Return the squad whose pool the entity of a name is; an empty text when it is none's."""
        squad, id_ = self._whose().get(entity, ("", ""))
        return "" if id_ else squad

    def _whose(self) -> Mapping[str, tuple[str, str]]:
        """Return the name of each member and pool → its squad, and the member's id there.

        A pool has none.
        """
        before = self._file.stamp()
        stamp, members = self._seen
        if before is not None and stamp == before:
            return members
        with self._file.reading() as db:
            rows = db.execute(
                """SELECT entity.name, member.squad, member.id
                       FROM member JOIN entity USING (grp) WHERE archived = 0
                   UNION ALL SELECT entity.name, squad.name, ''
                       FROM squad JOIN entity ON entity.grp = squad.pool"""
            ).fetchall()
        members = {row[0]: (row[1], row[2]) for row in rows}
        if before is not None and before == self._file.stamp():
            self._seen = (before, members)
        return members


def check_no_pool(db: sqlite3.Connection, group: str, field_name: str) -> None:
    """Raise InvalidRequest if a group is a pool's: only its squad's operations reach it."""
    row = db.execute("SELECT name FROM squad WHERE pool = ?", (group,)).fetchone()
    if row is not None:
        raise InvalidRequest(
            field_name,
            f"is the pool of the squad {row['name']!r}: only its members reach it, by the toolset "
            "squad",
        )


def _taken(db: sqlite3.Connection, group: str) -> bool:
    statement = "SELECT 1 FROM member WHERE grp = ? UNION ALL SELECT 1 FROM squad WHERE pool = ?"
    return db.execute(statement, (group, group)).fetchone() is not None


def _untouched(db: sqlite3.Connection, group: str) -> bool:
    """Tell whether an entity was made, and has shown no token and is reached by no folder."""
    owed = db.execute("SELECT 1 FROM owed WHERE grp = ?", (group,)).fetchone()
    roads = """SELECT 1 FROM token WHERE grp = ? UNION ALL SELECT 1 FROM route WHERE grp = ?
        UNION ALL SELECT 1 FROM watched WHERE grp = ?"""
    return owed is not None and db.execute(roads, (group,) * 3).fetchone() is None


def _squad(db: sqlite3.Connection, row: sqlite3.Row) -> Squad:
    members = {
        member["id"]: Member(member["id"], member["role"], EntityId(member["name"], member["grp"]))
        for member in db.execute(_MEMBERS, (row["name"],)).fetchall()
        if not member["archived"]
    }
    pool = EntityId(row["entity"], row["pool"])
    return Squad(
        row["name"], pool, row["rules"], row["key"], time.parse(row["created_at"]), members
    )
