"""One SQLite file: opening, checking and migrating it (``schema.sql``), and mapping its errors.

WAL with ``synchronous=FULL``: a commit returns after the log is on disk. ``secure_delete``: what is
deleted is overwritten. Errors of SQLite leave this package only as ``StoreError`` and its kinds.
"""

from __future__ import annotations

import hashlib
import os
import re
import sqlite3
from collections.abc import Callable, Generator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Literal, TypeAlias, TypeVar

from pps.core.errors import (
    InvalidRequest,
    IsolationError,
    StoreConflict,
    StoreError,
    StoreUnavailable,
)
from pps.core.ids import check_group, is_group
from pps.core.sql import Connection

T = TypeVar("T")
Work: TypeAlias = Callable[[Connection], T]
Fill: TypeAlias = Callable[[sqlite3.Connection], None]
Migrations: TypeAlias = tuple[tuple[str, ...], ...]
LogIndex: TypeAlias = Literal["file", "memory"]
"""Where SQLite keeps the index of the log: in a file beside it (``-shm``), or in the memory of the
one process that has the file open. The file takes 32 KiB of disk even to read, which a full disk
does not have."""


def nothing(connection: Connection) -> None:
    """Do nothing: a work for where there is none."""


APPLICATION_ID = 0x50505331  # "PPS1", so that another program's file is not taken for a memory
BUSY_TIMEOUT_S = 5.0

_UNAVAILABLE = {
    sqlite3.SQLITE_FULL: "the disk is full: free some space, then try again (nothing was acknowledged)",
    sqlite3.SQLITE_IOERR: "the disk reported an error: check it and its free space, then try again",
    sqlite3.SQLITE_CANTOPEN: "the file cannot be opened: check that its folder exists and is yours",
    sqlite3.SQLITE_READONLY: "the file cannot be written: check its permissions and its disk",
    sqlite3.SQLITE_PERM: "the file may not be opened: check its permissions",
    sqlite3.SQLITE_NOMEM: "there is no memory left for it: close something, then try again",
}
_BROKEN = {
    sqlite3.SQLITE_CORRUPT: "the file is damaged: stop the server, keep a copy, restore a backup",
    sqlite3.SQLITE_NOTADB: "the file is not a memory (or is damaged): restore a backup",
    sqlite3.SQLITE_TOOBIG: "a value is too big for it",
}


def _statements(text: str) -> tuple[str, ...]:
    plain = re.sub(r"^ *--.*\n", "", text, flags=re.MULTILINE)
    return tuple(statement.strip() for statement in plain.split(";\n") if statement.strip())


def migrations_of(schema: str) -> Migrations:
    """Return the statements of a schema file, in which ``-- version n`` begins each version."""
    return tuple(map(_statements, re.split(r"(?m)^-- version \d+\n", schema)[1:]))


MIGRATIONS = migrations_of((files("pps.journal") / "schema.sql").read_text("utf-8"))
"""Entry n brings a file from version n to n + 1."""

_UNDECODED = "Could not decode to UTF-8"


def store_error(error: sqlite3.Error, path: Path) -> StoreError:
    """Return the error of our tree that says what a library's error means and what to do next."""
    code = getattr(error, "sqlite_errorcode", None)
    primary = code & 0xFF if isinstance(code, int) else sqlite3.SQLITE_ERROR
    if code is None and str(error).startswith(
        _UNDECODED
    ):  # by Python, not SQLite; the rest quotes what it read
        primary = sqlite3.SQLITE_CORRUPT
    if primary in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
        return StoreConflict(
            f"{path.name} is locked by another process: stop that one, or try again"
        )
    if primary in _UNAVAILABLE:
        return StoreUnavailable(f"{path.name}: {_UNAVAILABLE[primary]}")
    if primary in _BROKEN:
        return StoreError(f"{path.name}: {_BROKEN[primary]}")
    return StoreError(f"{path.name}: {error}: this is a defect of PPS, please report it")


@contextmanager
def mapping_errors(path: Path) -> Generator[None]:
    """Turn errors of SQLite inside the block into StoreError and its kinds."""
    try:
        yield
    except sqlite3.Error as error:
        raise store_error(error, path) from error
    except OverflowError:
        raise InvalidRequest("number", "must be of at most 64 bits") from None


def prepare_file(path: Path, group: str, migrations: Migrations = MIGRATIONS) -> LogIndex:
    """Make the file when it is absent, bring its schema up to date, and check whose it is.

    Returns where every connection to it must keep the index of the log until all are closed:
    ``memory`` on a full disk, where what is there can still be read.

    Raises:
        InvalidRequest: It is no group's name.
        IsolationError: The file belongs to another group.
        StoreError: It was written by a newer PPS, is damaged (looked for when it was cut short), or
            is another's.
        StoreConflict, StoreUnavailable: It is locked, or cannot be opened.
    """
    check_group(group)
    # Who closes it last leaves no log: with one, it was cut short, and what lies in the pages may
    # be anything.
    was_cut_short = _log_file(path).exists()
    _make_private(path)
    try:
        _prepare(path, group, migrations, "file", check=was_cut_short)
    except StoreUnavailable as error:
        try:
            _prepare(path, group, migrations, "memory", check=was_cut_short)
        except StoreUnavailable:
            raise error from None
        return "memory"
    return "file"


def migrate_and_fill(
    path: Path, group: str, fill: Fill, migrations: Migrations = MIGRATIONS
) -> None:
    """Upgrade a file as ``prepare_file``, and let ``fill`` add rows, in one transaction.

    Foreign keys are not enforced meanwhile: ``fill`` checks what it adds.

    Raises:
        IsolationError, StoreError, StoreConflict, StoreUnavailable: As ``prepare_file``; or what
            ``fill`` raises.
    """
    check_group(group)
    was_cut_short = _log_file(path).exists()
    _make_private(path)
    _prepare(path, group, migrations, "file", check=was_cut_short, fill=fill)


def _log_file(path: Path) -> Path:
    return path.with_name(path.name + "-wal")


def _prepare(
    path: Path,
    group: str,
    migrations: Migrations,
    index: LogIndex,
    *,
    check: bool,
    fill: Fill | None = None,
) -> None:
    with mapping_errors(path):
        if check:
            _check_pages(path, index)
        connection = _connect(path, index)
        try:
            connection.execute("PRAGMA journal_mode = WAL")
            _refuse_another_owner(connection, path, group)  # before its tables are looked at
            migrate(connection, path, migrations, group, fill)
            _note_group(connection, path, group)
            _empty_log(connection)
        finally:
            connection.close()


def _empty_log(connection: sqlite3.Connection) -> None:
    """Move a log that a crash left into the file, so that no deleted data stays; not if full."""
    try:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
    except sqlite3.OperationalError as error:
        if error.sqlite_errorcode != sqlite3.SQLITE_FULL:
            raise


def _check_pages(path: Path, index: LogIndex) -> None:
    """Raise StoreError for a damaged file; its log stays, as the sign of an unclean end."""
    # With the index in memory a connection must be able to write, and closing it takes the log
    # away.
    with closing(_connect(path, index, "ro" if index == "file" else "rw")) as connection:
        is_damaged = bool(damage(connection, "quick_check"))
    if is_damaged:
        _log_file(path).touch(mode=0o600)
        raise StoreError(f"{path.name}: {_BROKEN[sqlite3.SQLITE_CORRUPT]}")


def damage(
    connection: Connection,
    check: Literal["quick_check", "integrity_check"] = "integrity_check",
) -> list[str]:
    """Return what SQLite finds wrong with a file's pages, a few lines; 1 s for 100 MB.

    The quick check leaves out the indexes.
    """
    return [line for (line,) in connection.execute(f"PRAGMA {check}(5)") if line != "ok"]


def open_writer(path: Path, index: LogIndex = "file") -> sqlite3.Connection:
    """Return the connection that writes: FULL, and checkpoints only when told (see ``writer``)."""
    connection = _connect(path, index)
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute("PRAGMA secure_delete = ON")
    connection.execute("PRAGMA foreign_keys = ON")
    connection.execute("PRAGMA recursive_triggers = OFF")
    connection.execute("PRAGMA wal_autocheckpoint = 0")
    connection.execute("PRAGMA journal_size_limit = 8388608")
    return connection


def open_reader(path: Path, index: LogIndex = "file") -> sqlite3.Connection:
    """Return a connection that cannot write."""
    connection = _connect(path, index)
    connection.execute("PRAGMA query_only = ON")
    return connection


def open_untouched(path: Path) -> sqlite3.Connection:
    """Return a connection that only reads a file: it leaves a log as it is and makes none."""
    return _connect(path, mode="ro" if _log_file(path).exists() else "immutable")


def migrate(
    connection: sqlite3.Connection,
    path: Path,
    migrations: Migrations,
    group: str,
    fill: Fill | None = None,
) -> None:
    """Apply missing migrations, all or none; ``{group}`` in them is the file's group.

    ``fill`` runs after them, in the same transaction.
    """
    newest = len(migrations)
    if _version(connection) == newest and _application(connection) == APPLICATION_ID:
        _check_layout(connection, path, migrations)
        if fill is None:
            return
    connection.execute("BEGIN IMMEDIATE")
    try:
        version = _version(connection)  # again: another process may have been first
        _check_origin(connection, path, version, newest)
        if version:
            _check_layout(connection, path, migrations[:version])
        for statements in migrations[version:]:
            for statement in statements:
                connection.execute(_with_group(statement, group))
        connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        connection.execute(f"PRAGMA user_version = {newest}")
        connection.execute(
            "INSERT OR REPLACE INTO meta (key, value) VALUES ('layout', ?)", (_layout(migrations),)
        )
        if fill is not None:
            fill(connection)
        connection.execute("COMMIT")
    finally:
        if connection.in_transaction:
            connection.execute("ROLLBACK")


def _check_origin(connection: sqlite3.Connection, path: Path, version: int, newest: int) -> None:
    blank = (
        version == 0 and not connection.execute("SELECT 1 FROM sqlite_master LIMIT 1").fetchone()
    )
    if not blank and _application(connection) != APPLICATION_ID:
        raise StoreError(f"{path.name} belongs to another program: choose another folder")
    if version > newest:
        raise StoreError(
            f"{path.name} was written by a newer PPS (schema {version}, this one knows {newest}): upgrade pps"
        )


def _check_layout(connection: sqlite3.Connection, path: Path, migrations: Migrations) -> None:
    """Refuse a file whose tables are not those of its version, from before the first release."""
    layout = connection.execute("SELECT value FROM meta WHERE key = 'layout'").fetchone()
    if layout is None or layout[0] != _layout(migrations):
        raise StoreError(
            f"{path.name} was written by an earlier PPS whose tables are not those of this one: "
            "export it with that version, make the entity anew and import it"
        )


def _layout(migrations: Migrations) -> str:
    """Return a digest of the statements that make the tables; white space does not count."""
    text = "\n".join(
        " ".join(statement.split()) for statements in migrations for statement in statements
    )
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _with_group(statement: str, group: str) -> str:
    if "{group}" not in statement:
        return statement
    return statement.replace("{group}", f"'{check_group(group)}'")


def _refuse_another_owner(connection: sqlite3.Connection, path: Path, group: str) -> None:
    if _application(connection) != APPLICATION_ID or not _begun(connection):
        return
    row = connection.execute("SELECT value FROM meta WHERE key = 'group'").fetchone()
    if row is None or row[0] == group:
        return
    if not is_group(row[0]):
        raise StoreError(f"{path.name}: {_BROKEN[sqlite3.SQLITE_CORRUPT]}")
    raise IsolationError(f"{path.name} belongs to another entity: nothing was read")


def _note_group(connection: sqlite3.Connection, path: Path, group: str) -> None:
    connection.execute(
        "INSERT INTO meta (key, value) VALUES ('group', ?) ON CONFLICT DO NOTHING", (group,)
    )
    _refuse_another_owner(connection, path, group)


def _connect(
    path: Path, index: LogIndex = "file", mode: Literal["rw", "ro", "immutable"] = "rw"
) -> sqlite3.Connection:
    # A connection moves between threads of one pool, never to two at once. None makes the file: it
    # is there, or gone.
    name = f"{path.absolute().as_uri()}?mode={'ro&immutable=1' if mode == 'immutable' else mode}"
    if index == "memory":
        name += "&vfs=unix-excl"
    connection = sqlite3.connect(
        name, uri=True, timeout=BUSY_TIMEOUT_S, isolation_level=None, check_same_thread=False
    )
    connection.execute("PRAGMA trusted_schema = OFF")
    connection.execute("PRAGMA temp_store = MEMORY")  # no text in temporary files
    return connection


def _make_private(path: Path) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        # SQLite gives its log files the permissions of the file.
        os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise StoreUnavailable(
            f"{path.name} cannot be opened ({reason}): check its folder"
        ) from error


def _version(connection: sqlite3.Connection) -> int:
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    return version


def _application(connection: sqlite3.Connection) -> int:
    (number,) = connection.execute("PRAGMA application_id").fetchone()
    return number


@dataclass(frozen=True, slots=True)
class Tally:
    """The number of nodes, of edges (ended ones too), and of different tags of nodes."""

    nodes: int = 0
    edges: int = 0
    tags: int = 0


def tally(path: Path, group: str, own: str) -> Tally:
    """Return the number of items in a group's memory, open or not. Blocks (1 ms).

    Args:
        path: Its ``memory.db``; one that is not there, or not begun, holds nothing.
        group: Whose it must be.
        own: Uuid of the entity's own node, which says nothing and is not counted.

    Raises:
        IsolationError: The file belongs to another group; nothing is told of it.
        StoreConflict, StoreUnavailable, StoreError: It is locked, cannot be opened, or is damaged.
    """
    if not path.exists():
        return Tally()
    with mapping_errors(path), closing(open_reader(path)) as connection:
        if not _begun(connection):
            return Tally()
        owner = connection.execute("SELECT value FROM meta WHERE key = 'group'").fetchone()
        if owner is None or owner[0] != group:
            raise IsolationError(f"{path.name} belongs to another entity: nothing was read")
        return tally_rows(connection, own, _counted_tables(connection))


def tally_rows(
    connection: Connection, own: str, tables: tuple[str, str, str] = ("node", "fact", "node_tag")
) -> Tally:
    """Return how much a memory holds.

    Args:
        connection: To its rows.
        own: Uuid of the entity's own node, which is not counted.
        tables: Of nodes, facts and tags.
    """
    node, fact, tag = tables
    (nodes,) = connection.execute(
        f"SELECT count(*) FROM {node} WHERE uuid <> ?",  # noqa: S608 - literals
        (own,),
    ).fetchone()
    (edges,) = connection.execute(f"SELECT count(*) FROM {fact}").fetchone()  # noqa: S608
    (tags,) = connection.execute(f"SELECT count(DISTINCT tag) FROM {tag}").fetchone()  # noqa: S608
    return Tally(nodes, edges, tags)


def _counted_tables(connection: sqlite3.Connection) -> tuple[str, str, str]:
    """Return the tables of nodes, facts and tags; before an upgrade, the tables of filters."""
    is_old = connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'mirror_node'").fetchone()
    return ("mirror_node", "mirror_fact", "mirror_tag") if is_old else ("node", "fact", "node_tag")


def _begun(connection: sqlite3.Connection) -> bool:
    return (
        connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'meta'").fetchone() is not None
    )
