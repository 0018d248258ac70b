"""One SQLite file: opening, checking and migrating it (``schema.sql``), and mapping its errors.

WAL with ``synchronous=FULL``: a commit returns after the log is on disk. ``secure_delete``: deleted
rows are overwritten. Errors of SQLite leave this package only as ``StoreError`` or a subclass.
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
"""Where SQLite keeps the index of the write-ahead log.

``file``: in a file beside the log (``-shm``). ``memory``: in the memory of the one process that has
the database open; even reading needs 32 KiB of disk for the file, which a full disk does not have.
"""


def nothing(connection: Connection) -> None:
    """Do nothing: the ``Work`` of a transaction without a statement."""


APPLICATION_ID = 0x50505331  # "PPS1": tells a memory from a database of another program
BUSY_TIMEOUT_S = 5.0

_UNAVAILABLE = {
    sqlite3.SQLITE_FULL: (
        "the disk is full: free some space, then try again (nothing was acknowledged)"
    ),
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
    """Return the ``StoreError`` for an error of SQLite: what is wrong and what to do."""
    code = getattr(error, "sqlite_errorcode", None)
    primary = code & 0xFF if isinstance(code, int) else sqlite3.SQLITE_ERROR
    # Python raises this one, without a code; the rest of its text quotes the bytes that it read.
    if code is None and str(error).startswith(_UNDECODED):
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
    """Raise SQLite's errors inside the block as ``StoreError`` or a subclass."""
    try:
        yield
    except sqlite3.Error as error:
        raise store_error(error, path) from error
    except OverflowError:
        raise InvalidRequest("number", "must be of at most 64 bits") from None


def prepare_file(path: Path, group: str, migrations: Migrations = MIGRATIONS) -> LogIndex:
    """Create the file if it is absent, upgrade its schema, and check that the group owns it.

    Returns:
        Where every connection must keep the index of the log until all are closed: ``memory`` on a
        full disk, so that the memory can still be read.

    Raises:
        InvalidRequest: ``group`` is not the name of a group.
        IsolationError: The file belongs to another group.
        StoreError: The file was written by a newer PPS or another program, or is damaged (its
            pages are checked after an unclean end).
        StoreConflict, StoreUnavailable: The file is locked, or cannot be opened.
    """
    check_group(group)
    # The last connection that closes removes the log. A log means that the process was killed, and
    # then the pages must be checked.
    has_log = _log_file(path).exists()
    _make_private(path)
    try:
        _prepare(path, group, migrations, "file", check=has_log)
    except StoreUnavailable as error:
        try:
            _prepare(path, group, migrations, "memory", check=has_log)
        except StoreUnavailable:
            raise error from None
        return "memory"
    return "file"


def migrate_and_fill(
    path: Path, group: str, fill: Fill, migrations: Migrations = MIGRATIONS
) -> None:
    """Upgrade a file like ``prepare_file`` and let ``fill`` add rows in the same transaction.

    Foreign keys are not enforced in it: ``fill`` must check its rows.

    Raises:
        IsolationError, StoreError, StoreConflict, StoreUnavailable: As ``prepare_file``; errors of
            ``fill`` pass through.
    """
    check_group(group)
    has_log = _log_file(path).exists()
    _make_private(path)
    _prepare(path, group, migrations, "file", check=has_log, fill=fill)


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
            _refuse_another_owner(connection, path, group)  # before its tables are read
            migrate(connection, path, migrations, group, fill)
            _note_group(connection, path, group)
            _empty_log(connection)
        finally:
            connection.close()


def _empty_log(connection: sqlite3.Connection) -> None:
    """Copy a log that a crash left into the file and empty it, unless the disk is full.

    The log may hold deleted data.
    """
    try:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
    except sqlite3.OperationalError as error:
        if error.sqlite_errorcode != sqlite3.SQLITE_FULL:
            raise


def _check_pages(path: Path, index: LogIndex) -> None:
    """Raise StoreError if the file is damaged.

    A damaged file keeps a log, so that the next opening checks it again.
    """
    # With the index in memory the connection must be writable, and closing it removes the log.
    with closing(_connect(path, index, "ro" if index == "file" else "rw")) as connection:
        is_damaged = bool(damage(connection, "quick_check"))
    if is_damaged:
        _log_file(path).touch(mode=0o600)
        raise StoreError(f"{path.name}: {_BROKEN[sqlite3.SQLITE_CORRUPT]}")


def damage(
    connection: Connection,
    check: Literal["quick_check", "integrity_check"] = "integrity_check",
) -> list[str]:
    """Return up to 5 lines about damaged pages; empty for a sound file. Takes 1 s for 100 MB.

    ``quick_check`` does not compare the indexes with their tables.
    """
    return [line for (line,) in connection.execute(f"PRAGMA {check}(5)") if line != "ok"]


def open_writer(path: Path, index: LogIndex = "file") -> sqlite3.Connection:
    """Return a connection for the writer, which calls for each checkpoint itself (``writer``)."""
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
    """Return a read-only connection that neither creates a log nor changes an existing one."""
    return _connect(path, mode="ro" if _log_file(path).exists() else "immutable")


def migrate(
    connection: sqlite3.Connection,
    path: Path,
    migrations: Migrations,
    group: str,
    fill: Fill | None = None,
) -> None:
    """Apply the missing migrations and then ``fill``, all in one transaction.

    ``{group}`` in a migration is replaced by the file's group.
    """
    newest = len(migrations)
    if _version(connection) == newest and _application(connection) == APPLICATION_ID:
        _check_layout(connection, path, migrations)
        if fill is None:
            return
    connection.execute("BEGIN IMMEDIATE")
    try:
        version = _version(connection)  # again: another process may have upgraded meanwhile
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
            f"{path.name} was written by a newer PPS "
            f"(schema {version}, this one knows {newest}): upgrade pps"
        )


def _check_layout(connection: sqlite3.Connection, path: Path, migrations: Migrations) -> None:
    """Raise StoreError if the tables are not those of the file's version.

    Unreleased versions of PPS wrote such files.
    """
    layout = connection.execute("SELECT value FROM meta WHERE key = 'layout'").fetchone()
    if layout is None or layout[0] != _layout(migrations):
        raise StoreError(
            f"{path.name} was written by an earlier PPS whose tables are not those of this one: "
            "export it with that version, make the entity anew and import it"
        )


def _layout(migrations: Migrations) -> str:
    """Return a digest of the statements of migrations, whatever their white space."""
    text = "\n".join(
        " ".join(statement.split()) for statements in migrations for statement in statements
    )
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _with_group(statement: str, group: str) -> str:
    if "{group}" not in statement:
        return statement
    return statement.replace("{group}", f"'{check_group(group)}'")


def _refuse_another_owner(connection: sqlite3.Connection, path: Path, group: str) -> None:
    if _application(connection) != APPLICATION_ID or not _has_tables(connection):
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
    # The threads of one pool pass a connection on, never two at once. ``mode=rw`` does not create
    # the file: an absent file was removed, and must stay so.
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
    """Counts of nodes, of edges (facts and relations, also ended ones), and of distinct tags."""

    nodes: int = 0
    edges: int = 0
    tags: int = 0


def tally(path: Path, group: str, own: str) -> Tally:
    """Count the items in a group's memory, whether it is open or not. Blocks (1 ms).

    Args:
        path: The ``memory.db``; an absent file, or one without tables, counts as empty.
        group: The group that must own it.
        own: Uuid of the entity's own node, which is not counted.

    Raises:
        IsolationError: The file belongs to another group; nothing else is revealed.
        StoreConflict, StoreUnavailable, StoreError: The file is locked, cannot be opened, or is
            damaged.
    """
    if not path.exists():
        return Tally()
    with mapping_errors(path), closing(open_reader(path)) as connection:
        if not _has_tables(connection):
            return Tally()
        owner = connection.execute("SELECT value FROM meta WHERE key = 'group'").fetchone()
        if owner is None or owner[0] != group:
            raise IsolationError(f"{path.name} belongs to another entity: nothing was read")
        return tally_rows(connection, own, _counted_tables(connection))


def tally_rows(
    connection: Connection, own: str, tables: tuple[str, str, str] = ("node", "fact", "node_tag")
) -> Tally:
    """Count the items in a memory.

    Args:
        connection: A connection to its rows.
        own: Uuid of the entity's own node, which is not counted.
        tables: Names of the tables of nodes, facts and tags.
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
    """Return the tables of nodes, facts and tags.

    Before its graph is upgraded (``store.graph_upgrade``), a file has copies for the filters only.
    """
    is_old = connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'mirror_node'").fetchone()
    return ("mirror_node", "mirror_fact", "mirror_tag") if is_old else ("node", "fact", "node_tag")


def _has_tables(connection: sqlite3.Connection) -> bool:
    meta = connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'meta'").fetchone()
    return meta is not None
