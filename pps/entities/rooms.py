"""Rooms: where a person talks with entities, and which entities were in them from when until when.

What is said in a room lies in the memories of those who were there, never here: a room has a title,
the name of its person, who came and went, and a counter of positions. Every change of a room has a
position of its own, so that who was away gets what it missed, once and in order.
"""

from __future__ import annotations

import secrets
import sqlite3
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal, TypeAlias

from pps.core import time
from pps.core.bounds import check_length
from pps.core.errors import InvalidRequest, NotFound
from pps.core.ids import EntityId
from pps.entities.small_file import SmallFile

SCHEMA = """
CREATE TABLE IF NOT EXISTS room (
    id TEXT PRIMARY KEY,
    title TEXT NOT NULL,
    person TEXT NOT NULL,
    owned_by TEXT UNIQUE REFERENCES entity(grp) ON DELETE CASCADE,
    off_record INTEGER NOT NULL,
    position INTEGER NOT NULL,
    created_at TEXT NOT NULL
) STRICT;
CREATE TABLE IF NOT EXISTS room_change (
    room TEXT NOT NULL REFERENCES room(id) ON DELETE CASCADE,
    position INTEGER NOT NULL,
    grp TEXT NOT NULL REFERENCES entity(grp) ON DELETE CASCADE,
    change TEXT NOT NULL,
    at TEXT NOT NULL,
    PRIMARY KEY (room, position)
) STRICT, WITHOUT ROWID;
"""

Change: TypeAlias = Literal["joined", "sent_out", "called_in", "left"]
MAX_TITLE = 120
MAX_PERSON = 100
MOST_MEMBERS = 12
MOST_ROOMS = 500
_AFTER: dict[Change, tuple[Change | None, ...]] = {
    "joined": (None, "left"),
    "sent_out": ("joined", "called_in"),
    "called_in": ("sent_out",),
    "left": ("joined", "called_in", "sent_out"),
}
"""Change → what an entity's last change must have been; None is never having been in the room."""


@dataclass(frozen=True, slots=True)
class PresenceChange:
    """That an entity came, went, was sent out or called in again, at a position of its room."""

    position: int
    entity: EntityId
    change: Change
    at: datetime


@dataclass(frozen=True, slots=True)
class TalkRoom:
    """A room.

    Attributes:
        person: What its person is called there; empty where they have no name.
        owned_by: The entity whose own room it is: no other ever joins it. None of a room of
            several.
        off_record: Nothing that is said there is kept.
        position: Of its last change; the next one has a higher one.
        changes: Who came and went, in order; of entities that were deleted nothing is left.
        at_rest: Those of them that are archived: they hear nothing, and nothing can be asked of
            them.
    """

    id: str
    title: str
    person: str
    owned_by: EntityId | None
    off_record: bool
    position: int
    created_at: datetime
    changes: tuple[PresenceChange, ...] = ()
    at_rest: frozenset[EntityId] = frozenset()

    def members(self, position: int | None = None) -> dict[EntityId, Change]:
        """Return each member of the room, also one sent out → its last change, in order of joining.

        Args:
            position: As they were then; as they are now when None.
        """
        last: dict[EntityId, Change] = {}
        for change in self.changes:
            if position is not None and change.position > position:
                break
            if change.change in ("joined", "left"):
                last.pop(change.entity, None)
            if change.change != "left":
                last[change.entity] = change.change
        return last

    def present(self) -> tuple[EntityId, ...]:
        """Return the entities that hear what is said now."""
        return self._hearing(self.members())

    def present_at(self, position: int) -> tuple[EntityId, ...]:
        """Return the entities that heard what was said at a position."""
        return self._hearing(self.members(position))

    def ever(self) -> tuple[EntityId, ...]:
        """Return every entity that was ever in the room."""
        return tuple(dict.fromkeys(change.entity for change in self.changes))

    def _hearing(self, members: Mapping[EntityId, Change]) -> tuple[EntityId, ...]:
        return tuple(
            entity
            for entity, change in members.items()
            if change != "sent_out" and entity not in self.at_rest
        )


class Rooms:
    """The rooms of one data folder.

    Methods block for well under a millisecond, writes for an fsync.
    """

    def __init__(self, file: SmallFile, refuse: Callable[[str, str], None]) -> None:
        self._file = file
        self._refuse = refuse

    def list(self) -> list[TalkRoom]:
        """Return all rooms, the one that was made last first."""
        with self._file.reading() as db:
            rows = db.execute("SELECT * FROM room ORDER BY created_at DESC, id").fetchall()
            return [_room(db, row) for row in rows]

    def get(self, id: str) -> TalkRoom:
        """Return a room; NotFound when there is none of that id."""
        with self._file.reading() as db:
            return _get(db, id)

    def own(self, entity: EntityId, person: str = "") -> TalkRoom:
        """Return an entity's own room, made when it is first asked for, with a person of that name.

        Raises NotFound for an entity that was deleted.
        """
        with self._file.writing() as db:
            row = db.execute("SELECT * FROM room WHERE owned_by = ?", (entity.group,)).fetchone()
            if row is not None:
                return _room(db, row)
            if not db.execute("SELECT 1 FROM entity WHERE grp = ?", (entity.group,)).fetchone():
                raise NotFound("entity")
            id_ = _insert(db, "", person, entity.group)
            _append(db, id_, entity, "joined")
            return _get(db, id_)

    def create(self, title: str, person: str, entities: Sequence[EntityId]) -> TalkRoom:
        """Make a room of some entities.

        Raises:
            InvalidRequest: A text is too long or holds a secret, or there are no entities, too
                many, or one twice.
            NotFound: One of them was deleted.
        """
        self._check_texts(title, person)
        if not 1 <= len(entities) <= MOST_MEMBERS or len(set(entities)) < len(entities):
            raise InvalidRequest("entities", f"must be 1 to {MOST_MEMBERS} entities, each once")
        with self._file.writing() as db:
            if db.execute("SELECT count(*) FROM room").fetchone()[0] >= MOST_ROOMS:
                raise InvalidRequest("title", f"there are {MOST_ROOMS} rooms already; delete one")
            id_ = _insert(db, title, person, None)
            for entity in entities:
                _append(db, id_, entity, "joined")
            return _get(db, id_)

    def change(self, id: str, entity: EntityId, change: Change) -> PresenceChange:
        """Let an entity come, go, be sent out or called in again.

        Raises:
            InvalidRequest: It is so already, or the room is another entity's own; nothing was
                changed.
            NotFound: There is no such room or entity.
        """
        with self._file.writing() as db:
            room = _get(db, id)
            if room.owned_by is not None and (change == "left" or entity != room.owned_by):
                raise InvalidRequest(
                    "entity", f"this room is {room.owned_by.name}'s own: nobody else joins it"
                )
            last = room.members().get(entity)
            if last not in _AFTER[change]:
                raise InvalidRequest("entity", f"{entity.name} cannot be {change} now")
            if change == "joined" and len(room.members()) >= MOST_MEMBERS:
                raise InvalidRequest("entity", f"a room has at most {MOST_MEMBERS} entities")
            return _append(db, id, entity, change)

    def describe(
        self,
        id: str,
        *,
        title: str | None = None,
        person: str | None = None,
        off_record: bool | None = None,
    ) -> TalkRoom:
        """Give a room another title, its person another name, or let it be off the record.

        Raises as ``create``.
        """
        self._check_texts(title or "", person or "")
        values = {"title": title, "person": person, "off_record": off_record}
        changed = {name: value for name, value in values.items() if value is not None}
        with self._file.writing() as db:
            _get(db, id)
            for name, value in changed.items():
                column = {"title": "title", "person": "person", "off_record": "off_record"}[name]
                statement = f"UPDATE room SET {column} = ? WHERE id = ?"  # noqa: S608 - literals
                db.execute(statement, (value, id))
            _advance(db, id)
            return _get(db, id)

    def advance(self, id: str) -> int:
        """Return the position of the next change of a room.

        It is on disk, and never given again.
        """
        with self._file.writing() as db:
            return _advance(db, id)

    def delete(self, id: str) -> None:
        """Take a room away; what its entities heard there stays with them.

        NotFound when there is none.
        """
        with self._file.writing() as db:
            if not db.execute("DELETE FROM room WHERE id = ?", (id,)).rowcount:
                raise NotFound("room")

    def _check_texts(self, title: str, person: str) -> None:
        check_length("title", title, 0, MAX_TITLE)
        check_length("person", person, 0, MAX_PERSON)
        for field, text in (("title", title), ("person", person)):
            if any(not character.isprintable() for character in text):
                raise InvalidRequest(field, "must be one line of printable characters")
            self._refuse(field, text)


def _insert(db: sqlite3.Connection, title: str, person: str, owner: str | None) -> str:
    id_ = f"room-{secrets.token_hex(6)}"
    db.execute(
        "INSERT INTO room (id, title, person, owned_by, off_record, position, created_at)"
        " VALUES (?, ?, ?, ?, 0, 0, ?)",
        (id_, title, person, owner, time.iso(time.now())),
    )
    return id_


def _advance(db: sqlite3.Connection, id: str) -> int:
    row = db.execute(
        "UPDATE room SET position = position + 1 WHERE id = ? RETURNING position", (id,)
    ).fetchone()
    if row is None:
        raise NotFound("room")
    return int(row["position"])


def _append(db: sqlite3.Connection, id: str, entity: EntityId, change: Change) -> PresenceChange:
    if not db.execute("SELECT 1 FROM entity WHERE grp = ?", (entity.group,)).fetchone():
        raise NotFound("entity")
    position = _advance(db, id)
    at = time.now()
    db.execute(
        "INSERT INTO room_change (room, position, grp, change, at) VALUES (?, ?, ?, ?, ?)",
        (id, position, entity.group, change, time.iso(at)),
    )
    return PresenceChange(position, entity, change, at)


def _get(db: sqlite3.Connection, id: str) -> TalkRoom:
    row = db.execute("SELECT * FROM room WHERE id = ?", (id,)).fetchone()
    if row is None:
        raise NotFound("room")
    return _room(db, row)


def _room(db: sqlite3.Connection, row: sqlite3.Row) -> TalkRoom:
    changes: list[PresenceChange] = []
    at_rest: set[EntityId] = set()
    rows = db.execute(
        "SELECT room_change.*, entity.name, entity.archived "
        "FROM room_change JOIN entity USING (grp) WHERE room = ? ORDER BY position",
        (row["id"],),
    )
    for change_row in rows:
        entity = EntityId(change_row["name"], change_row["grp"])
        at = time.parse(change_row["at"])
        changes.append(PresenceChange(change_row["position"], entity, change_row["change"], at))
        if change_row["archived"]:
            at_rest.add(entity)
    members = (change.entity for change in changes)
    owner = next((entity for entity in members if entity.group == row["owned_by"]), None)
    return TalkRoom(
        id=row["id"],
        title=row["title"],
        person=row["person"],
        owned_by=owner,
        off_record=bool(row["off_record"]),
        position=row["position"],
        created_at=time.parse(row["created_at"]),
        changes=tuple(changes),
        at_rest=frozenset(at_rest),
    )
