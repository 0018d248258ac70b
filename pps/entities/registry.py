"""The registry of entities: one small SQLite file in the data folder.

Every call opens, uses and closes its own connection (0.3 ms), so the registry may be used from any
thread and by several processes at once, and a token that was revoked is refused from then on.
"""

from __future__ import annotations

import contextlib
import itertools
import sqlite3
import stat
import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

from pps.core import time
from pps.core.errors import (
    ConfigError,
    InvalidRequest,
    StoreConflict,
    StoreError,
    StoreUnavailable,
    UnknownEntity,
)
from pps.core.ids import EntityId, check_actor, check_name, new_group
from pps.entities import (
    deletions,
    folder,
    installation_rows,
    memberships,
    moves,
    paths,
    rooms,
    routing,
    tokens,
)
from pps.entities.deletions import UNPUBLISHING_SCHEMA, Deletions, Unpublishing, begin_unpublishing
from pps.entities.folder import Entry
from pps.entities.installation_rows import FeatureSwitches, RunningTime
from pps.entities.memberships import Squads
from pps.entities.moves import Moves, OtherCopy, place_of
from pps.entities.own import set_store
from pps.entities.rooms import Rooms
from pps.entities.routing import Refusal, Routers, Routes, Watched
from pps.entities.small_file import SmallFile
from pps.entities.tokens import PageSessions

_STORES = ("embedded", "postgresql", "neo4j")
_SCHEMA = """
CREATE TABLE IF NOT EXISTS entity (
    name TEXT PRIMARY KEY COLLATE NOCASE,
    grp TEXT NOT NULL UNIQUE,
    store TEXT NOT NULL,
    created_at TEXT NOT NULL,
    archived INTEGER NOT NULL DEFAULT 0,
    pending INTEGER NOT NULL DEFAULT 0
) STRICT;
CREATE TABLE IF NOT EXISTS token (
    id TEXT PRIMARY KEY,
    digest TEXT NOT NULL,
    role TEXT NOT NULL,
    grp TEXT REFERENCES entity(grp) ON DELETE CASCADE,
    created_at TEXT NOT NULL
) STRICT;
-- The only toolsets that a token opens, with commas between; a token that is not here opens all.
CREATE TABLE IF NOT EXISTS token_toolsets (
    token TEXT PRIMARY KEY REFERENCES token(id) ON DELETE CASCADE,
    names TEXT NOT NULL
) STRICT;
CREATE TABLE IF NOT EXISTS router (
    token TEXT PRIMARY KEY REFERENCES token(id) ON DELETE CASCADE,
    label TEXT NOT NULL,
    may_create INTEGER NOT NULL
) STRICT;
CREATE TABLE IF NOT EXISTS router_root (
    token TEXT NOT NULL REFERENCES router(token) ON DELETE CASCADE,
    path TEXT NOT NULL,
    PRIMARY KEY (token, path)
) STRICT, WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS route (
    path TEXT PRIMARY KEY,
    grp TEXT NOT NULL REFERENCES entity(grp) ON DELETE CASCADE,
    created_at TEXT NOT NULL
) STRICT;
CREATE INDEX IF NOT EXISTS route_by_entity ON route (grp);
CREATE TABLE IF NOT EXISTS watched (
    path TEXT PRIMARY KEY,
    grp TEXT NOT NULL REFERENCES entity(grp) ON DELETE CASCADE,
    created_at TEXT NOT NULL
) STRICT;
-- Its files were all made once: one that is missing from then on is gone, and is not made anew.
CREATE TABLE IF NOT EXISTS made (
    grp TEXT PRIMARY KEY REFERENCES entity(grp) ON DELETE CASCADE
) STRICT;
-- Its `create` was begun, and has shown no token yet.
CREATE TABLE IF NOT EXISTS owed (
    grp TEXT PRIMARY KEY REFERENCES entity(grp) ON DELETE CASCADE
) STRICT;
CREATE TABLE IF NOT EXISTS deletion (
    grp TEXT PRIMARY KEY,
    name TEXT NOT NULL UNIQUE COLLATE NOCASE,
    store TEXT NOT NULL
) STRICT;
"""
_CHANGES = ("ALTER TABLE token ADD COLUMN actor TEXT NOT NULL DEFAULT ''",)
NOT_RESTORED = (
    "tokens (`pps entity token NAME`), routes, watched folders, squads, rooms, which entities were "
    "archived, and which graphs of PostgreSQL were published (`pps publish NAME neo4j`)"
)
"""What ``Registry.restored`` cannot read from the entities' folders."""
_ENTITIES = (
    "SELECT entity.*, made.grp IS NOT NULL AS made, "
    "entity.store = 'neo4j' OR published.grp IS NOT NULL AS is_published "
    "FROM entity LEFT JOIN made USING (grp) LEFT JOIN published USING (grp)"
)


@dataclass(frozen=True, slots=True)
class Created:
    """The result of ``create``; ``token`` is shown only once, for a new entity (``is_new``)."""

    entity: EntityId
    folder: Path
    token: str | None = field(repr=False)
    is_new: bool


def check_private(home: Path) -> None:
    """Raise ConfigError if every user of this machine can write a data folder and add files to it.

    One in which only the owner of a file can remove it (sticky, as /tmp) is no better: names are
    taken first.
    """
    if home.stat().st_mode & stat.S_IWOTH:
        raise ConfigError(
            f"{home}: everybody on this machine can write this data folder; run `chmod 700 "
            f"{home}`, or set PPS_HOME "
            "to another"
        )


class Registry:
    """Names, folders and tokens of the entities of one data folder.

    Methods block for well under a millisecond, writes for an fsync; all are safe to call from any
    thread. Every one may raise StoreUnavailable when the file cannot be reached.
    """

    def __init__(self, home: Path, refuse: Refusal = lambda _field, _text: None) -> None:
        """Open the registry of a data folder, making both (mode 0700) when they are not there.

        ``refuse`` raises InvalidRequest for a field's text that must not be kept: one that holds a
        secret.
        """
        self._home = home
        self._refuse = refuse
        try:
            home.mkdir(mode=0o700, parents=True, exist_ok=True)
            check_private(home)
            self.entities_folder.mkdir(mode=0o700, exist_ok=True)
        except OSError as error:
            raise StoreUnavailable(f"{home}: cannot be made ({error.strerror})") from None
        path = home / "registry.db"
        is_there = path.exists() and path.stat().st_size > 0
        lost = [] if is_there else folder.cards(self.entities_folder)
        if lost:
            raise StoreError(
                f"{path} is gone or empty, and {len(lost)} entities have folders here; restore a "
                "backup, or run "
                f"`pps rebuild --registry`, which does not bring back {NOT_RESTORED}"
            )
        schemas = (_SCHEMA, memberships.SCHEMA, installation_rows.SCHEMA)
        more = (rooms.SCHEMA, UNPUBLISHING_SCHEMA, moves.SCHEMA)
        self._file = SmallFile(path, "".join((*schemas, *more)), _CHANGES)
        self._seen: tuple[object, dict[str, Entry]] = (None, {})
        self._making = threading.Lock()  # who mounts an entity waits until its folder is whole
        self.routes = Routes(self._file, refuse)
        self.watched = Watched(self._file, home, refuse)
        self.routers = Routers(self._file, refuse)
        self.squads = Squads(self._file)
        self.running = RunningTime(self._file)
        self.features = FeatureSwitches(self._file)
        self.pages = PageSessions(self._file)
        self.rooms = Rooms(self._file, refuse)
        self.deletions = Deletions(self._file, self.entities_folder)
        self.unpublishing = Unpublishing(self._file)
        self.moves = Moves(self._file)

    def stamp(self) -> object:
        """Return what changes whenever the registry does.

        None while a later change might not show.
        """
        return self._file.stamp()

    @classmethod
    def restored(cls, home: Path) -> list[str]:
        """Make a registry that is gone anew from the cards in the entities' folders.

        Return their names.

        Raises:
            InvalidRequest: It is there.
            StoreError: A folder is called otherwise than its card says.
        """
        path = home / "registry.db"
        cards = folder.cards(home / "entities")
        if path.exists() and path.stat().st_size:
            raise InvalidRequest("--registry", f"{path} is there; move it away first")
        wrong = [place for place, card in cards if place.name != card.entity.name]
        if wrong:
            raise StoreError(
                f"{wrong[0]}: its card names another entity; give the folder that name"
            )
        made = {card.entity.group for place, card in cards if any((place / "data").glob("*"))}
        schema = "".join((_SCHEMA, memberships.SCHEMA, moves.SCHEMA))
        with SmallFile(path, schema, _CHANGES).writing() as db:
            for place, card in cards:
                row = (card.entity.name, card.entity.group, card.store, time.iso(card.created_at))
                db.execute(
                    "INSERT INTO entity (name, grp, store, created_at, pending) VALUES (?, ?, ?, "
                    "?, 1)",
                    row,
                )
                if card.entity.group in made:
                    db.execute("INSERT INTO made (grp) VALUES (?)", (card.entity.group,))
                if card.store == "postgresql" and (place / "data" / folder.JOURNAL).exists():
                    old_copy = OtherCopy("embedded", True, time.now())
                    moves.put_other_copy(db, card.entity.group, old_copy)
        return [card.entity.name for _, card in cards]

    def damage(self) -> list[str]:
        """Return what SQLite finds wrong with the file, a few lines."""
        with self._file.reading() as db:
            lines = [str(row[0]) for row in db.execute("PRAGMA integrity_check(5)")]
        return (
            []
            if lines == ["ok"]
            else [f"registry.db is damaged ({line}): restore a backup" for line in lines]
        )

    @property
    def entities_folder(self) -> Path:
        return self._home / "entities"

    def create(self, name: str, *, store: str = "embedded", time_zone: str = "") -> Created:
        """Register an entity, make its folder and give out its token; raises as ``register``."""
        entry = self.register(name, store=store, time_zone=time_zone)
        token = self.first_token(entry.entity)
        return Created(entry.entity, entry.folder, token, token is not None)

    def register(self, name: str, *, store: str = "embedded", time_zone: str = "") -> Entry:
        """Register an entity and make its folder; done before, it only completes what is missing.

        Args:
            name: Of the entity.
            store: Where its graph is kept.
            time_zone: A name of the IANA database that its new ``entity.toml`` gets; empty names
                none there.

        Raises:
            InvalidRequest: The name breaks the rule or is taken: by an archived entity, by one in
                the other store, or by a folder that this registry does not know.
            StoreConflict: The deletion of one of that name is not finished.
        """
        check_name(name)
        if store not in _STORES:
            raise InvalidRequest("store", f"must be one of {', '.join(_STORES)}")
        with self._making:
            with self._file.writing() as db:
                row = db.execute(f"{_ENTITIES} WHERE name = ?", (name,)).fetchone()
                if row is None:
                    entry = self._insert(db, name, store)
                    db.execute("INSERT INTO owed (grp) VALUES (?)", (entry.entity.group,))
                else:
                    entry = self._entry(row)
                    _check_same(entry, store)
            self._complete(entry, time_zone)
            folder.complete(entry.folder)
        return entry

    def first_token(self, entity: EntityId) -> str | None:
        """Return the token that a new entity is owed, shown this once.

        None when it was given out before.
        """
        with self._file.writing() as db:
            if not db.execute("DELETE FROM owed WHERE grp = ?", (entity.group,)).rowcount:
                return None
            return tokens.issue(db, "entity", entity.group).text

    def set_made(self, entity: EntityId) -> None:
        """Note that all of an entity's files are there.

        Nothing happens when it was deleted meanwhile.
        """
        with self._file.writing() as db:
            db.execute(
                "INSERT OR IGNORE INTO made (grp) SELECT grp FROM entity WHERE grp = ?",
                (entity.group,),
            )

    def create_for(self, path: str, *, store: str = "embedded", time_zone: str = "") -> Created:
        """Return the entity of a project's folder, made and mapped in one step when it has none.

        Its name is the folder's, made legal, with a number behind it when it is taken: an entity
        that is there for something else is never taken over. No token is made.

        Raises:
            InvalidRequest: The path is not absolute.
            UnknownEntity: The folder's entity is archived.
        """
        path = paths.real_path(path)
        with self._making:
            with self._file.writing() as db:
                row = routing.mapped(db, path)
                if row is None:
                    self._refuse("project", path)
                    entry = self._insert(db, self._free_name(db, paths.name_of(path)), store)
                    routing.insert_route(db, path, entry.entity.group)
                else:
                    entry = self._entry(
                        db.execute(f"{_ENTITIES} WHERE grp = ?", (row["grp"],)).fetchone()
                    )
            if entry.archived:
                raise UnknownEntity(f"entity {entry.entity.name!r} is archived")
            self._complete(entry, time_zone)
        return Created(entry.entity, entry.folder, None, row is None)

    def route(self, path: str) -> EntityId | None:
        """Return the entity of the longest mapped folder that is or holds a path.

        Nothing is made.
        """
        return self.routes.nearest(path)

    def is_told(self, entity: EntityId, name: str, folder: str, repository: str = "") -> bool:
        """Tell whether a message was for an entity, by ``name`` or else by its folder.

        A folder that is not mapped counts as the ``repository`` that it is a worktree of.
        """
        if name:
            return name == entity.name
        with contextlib.suppress(InvalidRequest):  # no folder of anybody's
            owner = self.routes.nearest(folder, archived=True)
            if owner is None and repository:
                owner = self.routes.nearest(repository, archived=True)
            return owner == entity
        return False

    def get(self, name: str) -> Entry:
        before = self._file.stamp()
        entry = self._one("name", name)
        if before is not None and before == self._file.stamp():
            stamp, entries = self._seen
            self._seen = (before, {**entries, name: entry} if stamp == before else {name: entry})
        return entry

    def seen(self, name: str) -> Entry | None:
        """Return what ``get`` returned, if nothing was written to the registry since (10 µs).

        Else None.
        """
        stamp, entries = self._seen
        entry = entries.get(name)
        return entry if entry is not None and stamp == self._file.stamp() else None

    def mount(self, name: str, *, include_archived: bool = False) -> Entry:
        """Return the entry of an entity, after a check that its folder holds its data.

        Raises:
            UnknownEntity: No such entity, or it is archived.
            IsolationError: Its folder holds another entity's data.
            StoreError: Its folder is missing or has no readable card.
        """
        entry = self.get(name)
        if entry.archived and not include_archived:
            raise UnknownEntity(
                f"entity {name!r} is archived; `pps entity archive {name} --undo` brings it back"
            )
        with self._making:
            card = folder.check_card(entry.folder, entry.entity)
        if card.store != entry.store:
            if not self._was_changed(entry, card.store):
                raise StoreError(
                    f"{entry.folder}: made for the store {card.store!r}, "
                    f"registered for {entry.store!r}"
                )
            set_store(entry.folder, entry.store)
        return entry

    def _was_changed(self, entry: Entry, before: str) -> bool:
        """Tell whether a kill kept an entity's card from saying that it was published or moved."""
        if place_of(entry.store) == place_of(before):
            return True
        other = self.moves.other_copy(entry.entity.group)
        return other is not None and other.is_kept and other.place == place_of(before)

    def move(self, entry: Entry, store: str) -> None:
        """Make the copy of an entity's memory in another store the true one; its card follows.

        Raises as ``Moves.switch``.
        """
        self.moves.switch(
            entry.entity, store, is_published=entry.is_published, source=place_of(entry.store)
        )
        with self._making:
            set_store(entry.folder, store)

    def set_published(self, entity: EntityId, is_published: bool) -> None:
        """Note whether an entity's graph is published on Neo4j; if not, it is to be removed there.

        Raises:
            UnknownEntity: It was deleted.
        """
        in_file = "neo4j" if is_published else "embedded"
        with self._file.writing() as db:
            changed = db.execute(
                "UPDATE entity SET store = CASE store WHEN 'postgresql' THEN store ELSE ? END "
                "WHERE grp = ? RETURNING store",
                (in_file, entity.group),
            ).fetchone()
            if changed and is_published:
                db.execute("DELETE FROM unpublishing WHERE grp = ?", (entity.group,))
            elif changed:
                begin_unpublishing(db, entity)
            if changed and changed["store"] == "postgresql":
                moves.note_published(db, entity.group, is_published)
        entry = self.by_group(entity.group)
        with self._making:
            set_store(entry.folder, entry.store)

    def by_group(self, group: str) -> Entry:
        return self._one("grp", group)

    def list(self, *, include_archived: bool = False) -> list[Entry]:
        where = "" if include_archived else "WHERE archived = 0"
        with self._file.reading() as db:
            return [self._entry(row) for row in db.execute(f"{_ENTITIES} {where} ORDER BY name")]

    def archive(self, name: str, *, undo: bool = False) -> None:
        """Take an entity out of use, or bring it back.

        Sessions and links of its page end for good.
        """
        statement = "UPDATE entity SET archived = ? WHERE name = ? COLLATE BINARY"
        sessions = (
            "DELETE FROM token WHERE role IN ('page', 'link')"
            " AND grp = (SELECT grp FROM entity WHERE name = ? COLLATE BINARY)"
        )
        with self._file.writing() as db:
            db.execute(sessions, (name,))
            changed = db.execute(statement, (int(not undo), name)).rowcount
        if not changed:
            self.get(name)

    def issue_token(self, name: str, toolsets: Sequence[str] = (), actor: str = "") -> str:
        """Return a new token, shown this once, of an entity.

        Args:
            name: The entity's.
            toolsets: The only ones that it opens; empty for all.
            actor: Who writes with it, whatever a call says; empty for the person.

        Raises UnknownEntity, and InvalidRequest where the actor's name breaks its rule.
        """
        check_actor(actor)
        group = self.get(name).entity.group
        with self._file.writing() as db:
            memberships.check_no_pool(db, group, "name")
            token = tokens.issue(db, "entity", group, actor)
            if toolsets:
                db.execute(
                    "INSERT INTO token_toolsets VALUES (?, ?)", (token.token_id, ",".join(toolsets))
                )
            return token.text

    def bounds_of_token(self, token: str) -> tokens.Bounds:
        """Return the bounds of an entity's token; an invalid token has no toolset."""
        return tokens.bounds(tokens.presented(self._file, token, "entity"))

    def revoke_tokens(self, name: str) -> int:
        """Refuse every token of an entity from now on; returns how many there were."""
        group = self.get(name).entity.group
        with self._file.writing() as db:
            return db.execute("DELETE FROM token WHERE grp = ?", (group,)).rowcount

    def entity_of_token(self, token: str) -> EntityId | None:
        """Return the entity of a token; None if invalid or revoked, or its entity archived."""
        row = tokens.presented(self._file, token, "entity")
        if row is None or row["archived"] != 0:
            return None
        return EntityId(row["name"], row["grp"])

    def operator_token(self) -> str:
        """Return a new operator token (metrics, registry); it is shown this once."""
        with self._file.writing() as db:
            return tokens.issue(db, "operator").text

    def is_operator(self, token: str) -> bool:
        return tokens.presented(self._file, token, "operator") is not None

    def revoke_operator_tokens(self) -> int:
        """Refuse every operator token from now on; returns how many there were."""
        with self._file.writing() as db:
            return db.execute("DELETE FROM token WHERE role = 'operator'").rowcount

    def set_pending(self, entity: EntityId, pending: bool) -> None:
        """Note whether an entity may have open jobs, and since when, so that a restart runs them.

        Raises:
            UnknownEntity: It was deleted; one that has its name now is another.
        """
        moment = int(time.now().timestamp()) if pending else 0
        with self._file.writing() as db:
            changed = db.execute(
                "UPDATE entity SET pending = ? WHERE grp = ?", (moment, entity.group)
            ).rowcount
        if not changed:
            self.by_group(entity.group)

    def pending_since(self) -> dict[str, datetime]:
        """Return the names of the entities that may have unfinished jobs, and since when.

        An open one always may.
        """
        with self._file.reading() as db:
            rows = db.execute(
                "SELECT name, pending FROM entity WHERE pending != 0 AND archived = 0 ORDER BY name"
            )
            return {row["name"]: time.from_micros(row["pending"] * 1_000_000) for row in rows}

    def _insert(self, db: sqlite3.Connection, name: str, store: str) -> Entry:
        place = self.entities_folder / name
        if deletions.taken(db, name):
            raise StoreConflict(f"the deletion of {name!r} is not finished; run this again")
        if place.exists():
            raise InvalidRequest(
                "name", f"{name!r} is taken: {place} exists, but this registry does not know it"
            )
        created_at = time.now()
        entity = EntityId(name, new_group())
        row = (name, entity.group, store, time.iso(created_at))
        db.execute("INSERT INTO entity (name, grp, store, created_at) VALUES (?, ?, ?, ?)", row)
        is_published = store == "neo4j"
        return Entry(entity, place, store, created_at, False, False, is_published)

    def _complete(self, entry: Entry, time_zone: str) -> None:
        """Make an entity's folder, unless it was deleted meanwhile; deletions wait until then."""
        with self._file.writing() as db:
            if not db.execute(
                "SELECT 1 FROM entity WHERE grp = ?", (entry.entity.group,)
            ).fetchone():
                raise StoreConflict(
                    f"{entry.entity.name!r} was deleted while it was made; run this again"
                )
            card = folder.Card(entry.entity, entry.store, entry.created_at)
            folder.make(entry.folder, card, time_zone)

    def _free_name(self, db: sqlite3.Connection, name: str) -> str:
        taken = {
            row["name"]
            for row in db.execute("SELECT name FROM entity UNION SELECT name FROM deletion")
        }
        candidates = itertools.chain(
            [name], (paths.numbered(name, number) for number in itertools.count(2))
        )
        return next(
            candidate
            for candidate in candidates
            if candidate not in taken and not (self.entities_folder / candidate).exists()
        )

    def _one(self, column: str, value: str) -> Entry:
        row = self._file.row(f"{_ENTITIES} WHERE {column} = ? COLLATE BINARY", (value,))
        if row is None:
            text = f"no entity {value!r}" if column == "name" else "no entity of that group"
            raise UnknownEntity(
                f"{text}; `pps entity list` shows those there are, `pps entity create` makes one",
                name=value,
            )
        return self._entry(row)

    def _entry(self, row: sqlite3.Row) -> Entry:
        return Entry(
            EntityId(row["name"], row["grp"]),
            self.entities_folder / row["name"],
            folder.store_named(row["store"]),
            time.parse(row["created_at"]),
            bool(row["archived"]),
            bool(row["made"]),
            bool(row["is_published"]),
        )


def _check_same(entry: Entry, store: str) -> None:
    if entry.archived:
        raise InvalidRequest("name", f"{entry.entity.name!r} is taken by an archived entity")
    if entry.store != store:
        raise InvalidRequest(
            "store", f"{entry.entity.name!r} exists already in the store {entry.store!r}"
        )
