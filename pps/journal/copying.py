"""Copies a memory between a SQLite file and a PostgreSQL database, and compares all its rows.

Both stores have the same tables (a test compares the schemas), with those of features. A copy is
read from one snapshot and written in one transaction, so it is complete or absent. Indexes are not
copied: with either store they are local files that follow the change log, and the copy keeps the
log's positions.
"""

from __future__ import annotations

import hashlib
import os
import sqlite3
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from graphlib import TopologicalSorter
from pathlib import Path
from typing import Final, TypeAlias

from pps.core.errors import InvalidRequest, IsolationError, StoreError
from pps.core.sql import Connection, Value
from pps.journal.db import mapping_errors, open_reader, open_writer, prepare_file
from pps.journal.feature_tables import create_in_file, kept_tables
from pps.journal.meta import OF_STORE
from pps.journal.old_graph import sync_folder
from pps.journal.postgresql import Database, PostgresConnection, delete_all

Row: TypeAlias = tuple[Value, ...]
Tell: TypeAlias = Callable[[str, int, int], None]
"""Progress callback: table, rows copied so far, total (0: unknown).

An exception that it raises aborts the copy and undoes it.
"""

_PAGE: Final = 2_000
_COUNTERS: Final = "numbers"
_FIRST_POSITION: Final = {"change_log": 1}
"""Value of a table's counter in a new file, before any row; tables not listed start at 0."""


@dataclass(frozen=True, slots=True)
class TableShape:
    """The columns of a table.

    Attributes:
        columns: Columns to copy: all but the group and generated columns.
        key: Columns of the primary key without the group; rows are read in their order.
        group: Name of the column with the group; empty if only the PostgreSQL table has one.
    """

    name: str
    columns: tuple[str, ...]
    key: tuple[str, ...]
    group: str

    def places(self) -> str:
        return ", ".join(f'"{column}"' for column in self.columns)


@dataclass(frozen=True, slots=True)
class TableDigest:
    """The number of a memory's rows in a table, and the SHA-256 of all of them in key order."""

    rows: int
    digest: str


Digests: TypeAlias = dict[str, TableDigest]


def copy_to_database(file: Path, database: Database, group: str, tell: Tell) -> Digests:
    """Copy a memory from its file into a database and replace the group's rows there. Blocks.

    Nobody may have the file open.

    Args:
        file: The ``memory.db``, at the newest schema version.
        database: The target.
        group: The file's owner; no row of another group is read, written or deleted.
        tell: Progress callback.

    Returns:
        The digests of the tables, which are equal in the file and the database.

    Raises:
        IsolationError: The file belongs to another entity.
        InvalidRequest: A text contains U+0000; the error names the table and the row.
        StoreError: The copy differs from the file; the error names the tables.
        StoreUnavailable, StoreConflict, ConfigError: The file or the server cannot be used.
    """
    with mapping_errors(file), _snapshot(file) as source:
        _check_owner(source, group)
        shapes = table_shapes(source)
        features = kept_tables(source)

        def make_feature_tables(target: Connection) -> None:
            for table in features:
                # ``Database.write`` passes one.
                assert isinstance(target, PostgresConnection)  # noqa: S101
                target.have_feature_table(
                    table.sql_name, {column.name: column.type for column in table.columns}
                )

        def fill(target: Connection) -> None:
            delete_all(target)  # rows of an earlier copy
            for shape in shapes:
                for done, rows in _counted(_pages(source, shape)):
                    _refuse_nul(shape, rows)
                    insert_rows(target, shape, rows)
                    tell(shape.name, done, 0)
            target.executemany(
                "INSERT INTO counter (name, value) VALUES (?, ?)",
                [*_numbers_of_file(source).items()],
            )

        database.write(group, make_feature_tables)
        database.write(group, fill)
        expected = digests_of_file(source, shapes)
        copied = database.read(group, lambda target: digests_of_group(target, shapes))
    check_same(expected, copied)
    return copied


def copy_to_file(database: Database, group: str, file: Path, tell: Tell) -> Digests:
    """Copy a group's memory into a new file, which replaces an existing one. Blocks.

    The file gets its name once it is complete and on disk. Arguments and errors as
    ``copy_to_database``.
    """
    draft = draft_of(file)
    _remove(draft)
    prepare_file(draft, group)
    try:
        with mapping_errors(draft), closing(open_writer(draft)) as target:
            expected = database.read(group, lambda source: _fill_file(source, target, group, tell))
            target.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
            copied = digests_of_file(target, table_shapes(target))
        check_same(expected, copied)
        _sync(draft)
        _remove(file)
        draft.replace(file)
        sync_folder(file.parent)
    except BaseException:
        _remove(draft)
        raise
    return copied


def _fill_file(source: Connection, target: sqlite3.Connection, group: str, tell: Tell) -> Digests:
    """Copy a group's rows in one transaction; return the digests of the source's rows."""
    target.execute("BEGIN IMMEDIATE")
    try:
        for table in kept_tables(source):
            create_in_file(target, group, table)
        shapes = table_shapes(target)
        marks = ", ".join("?" * len(OF_STORE))
        target.execute(f"DELETE FROM meta WHERE key NOT IN ({marks})", OF_STORE)  # noqa: S608
        for shape in shapes:
            for done, rows in _counted(_pages(source, shape)):
                insert_rows(target, shape, rows, group)
                tell(shape.name, done, 0)
        for name, number in _numbers_of_group(source, shapes).items():
            target.execute("DELETE FROM sqlite_sequence WHERE name = ?", (name,))
            target.execute("INSERT INTO sqlite_sequence (name, seq) VALUES (?, ?)", (name, number))
        target.execute("COMMIT")
    finally:
        if target.in_transaction:
            target.execute("ROLLBACK")
    return digests_of_group(source, shapes)


def draft_of(file: Path) -> Path:
    """Return the path of a memory's file while it is being filled."""
    return file.with_name(f"{file.stem}.moving{file.suffix}")


def erase_file(file: Path) -> None:
    """Remove a memory's file, its log and its draft. Blocks.

    Raises:
        StoreError: A file cannot be removed.
    """
    for path in (draft_of(file), file):
        _remove(path)
    sync_folder(file.parent)


def table_shapes(db: sqlite3.Connection) -> list[TableShape]:
    """Return the tables of a memory's file, each after the tables that it references."""
    names = {
        name
        for (name,) in db.execute(
            "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'"
        )
    }
    sorter = TopologicalSorter[str]()
    for name in sorted(names):
        references = db.execute(f'PRAGMA foreign_key_list("{name}")')
        sorter.add(name, *({row[2] for row in references} - {name}))
    return [_shape_of(db, name) for name in sorter.static_order()]


def _shape_of(db: sqlite3.Connection, name: str) -> TableShape:
    """Read a table's columns with ``table_xinfo``.

    Field 1 of its rows is the column's name, 5 its place in the primary key (0: none), and 6 is not
    0 for generated columns.
    """
    rows = db.execute(f'PRAGMA table_xinfo("{name}")').fetchall()
    group = next((row[1] for row in rows if row[1] in ("grp", "group_id")), "")
    own_rows = [row for row in rows if row[1] != group]
    key = sorted((row[5], row[1]) for row in own_rows if row[5])
    return TableShape(
        name,
        tuple(row[1] for row in own_rows if not row[6]),
        tuple(column for _, column in key),
        group,
    )


def digests_of_file(db: sqlite3.Connection, shapes: Sequence[TableShape]) -> Digests:
    """Return table → digest of its rows in a file, and the digest of the tables' counters."""
    return _digests(db, shapes, _numbers_of_file(db))


def digests_of_group(db: Connection, shapes: Sequence[TableShape]) -> Digests:
    """Return the same for the rows of the transaction's group in a database."""
    return _digests(db, shapes, _numbers_of_group(db, shapes))


def _digests(db: Connection, shapes: Sequence[TableShape], numbers: dict[str, int]) -> Digests:
    digests = {shape.name: _digest(_pages(db, shape)) for shape in shapes}
    digests[_COUNTERS] = _digest([sorted(numbers.items())])
    return digests


def _digest(pages: Iterator[Sequence[Row]] | Sequence[Sequence[Row]]) -> TableDigest:
    count = 0
    digest = hashlib.sha256()
    for rows in pages:
        count += len(rows)
        for row in rows:
            digest.update(repr(tuple(row)).encode("utf-8", "surrogatepass") + b"\n")
    return TableDigest(count, digest.hexdigest())


def check_same(expected: Digests, copied: Digests) -> None:
    """Raise StoreError with the names of the tables whose digests differ."""
    names = sorted({*expected, *copied})
    different = [name for name in names if expected.get(name) != copied.get(name)]
    if different:
        raise StoreError(
            f"the copy is not the same as the memory in {', '.join(different)}: "
            "this is a defect of PPS, please report it"
        )


def _pages(db: Connection, shape: TableShape) -> Iterator[list[Row]]:
    """Yield a table's rows in the order of its key, without rows about the store itself."""
    key = ", ".join(f'"{column}"' for column in shape.key)
    marks = ", ".join("?" * len(shape.key))
    places = [shape.columns.index(column) for column in shape.key]
    condition = ""
    after = tuple[Value, ...]()
    while True:
        rows = db.execute(
            f'SELECT {shape.places()} FROM "{shape.name}" '  # noqa: S608 - names of a schema
            f"{condition} ORDER BY {key} LIMIT {_PAGE}",
            after,
        ).fetchall()
        if rows:
            yield [row for row in rows if shape.name != "meta" or row[0] not in OF_STORE]
        if len(rows) < _PAGE:
            return
        condition = f"WHERE ({key}) > ({marks})"
        after = tuple(rows[-1][place] for place in places)


def _counted(pages: Iterator[list[Row]]) -> Iterator[tuple[int, list[Row]]]:
    """Yield (rows up to and with this page, the page)."""
    done = 0
    for rows in pages:
        done += len(rows)
        yield done, rows


def insert_rows(
    target: Connection, shape: TableShape, rows: Sequence[Row], group: str = ""
) -> None:
    """Insert rows. A file needs the ``group`` of the rows; a database adds it by itself."""
    places = shape.places()
    count = len(shape.columns)
    if group and shape.group:
        places = f'{places}, "{shape.group}"'
        count += 1
        rows = [(*row, group) for row in rows]
    marks = ", ".join("?" * count)
    statement = f'INSERT INTO "{shape.name}" ({places}) VALUES ({marks})'  # noqa: S608
    target.executemany(statement, rows)


def _refuse_nul(shape: TableShape, rows: Sequence[Row]) -> None:
    for row in rows:
        if any(isinstance(value, str) and "\0" in value for value in row):
            key = ", ".join(str(row[shape.columns.index(column)]) for column in shape.key)
            raise InvalidRequest(
                "to",
                f"{shape.name} {key} has the character U+0000, which PostgreSQL cannot store; "
                "change or forget it first",
            )


def _numbers_of_file(db: sqlite3.Connection) -> dict[str, int]:
    """Return table → its counter (the last number of a row), for tables that have used it."""
    return _used_counters(dict(db.execute("SELECT name, seq FROM sqlite_sequence").fetchall()))


def _numbers_of_group(db: Connection, shapes: Sequence[TableShape]) -> dict[str, int]:
    names = {shape.name for shape in shapes}
    rows = db.execute("SELECT name, value FROM counter").fetchall()
    return _used_counters({name: value for name, value in rows if name in names})


def _used_counters(numbers: dict[str, int]) -> dict[str, int]:
    return {
        name: number for name, number in numbers.items() if number > _FIRST_POSITION.get(name, 0)
    }


def _check_owner(source: sqlite3.Connection, group: str) -> None:
    row = source.execute("SELECT value FROM meta WHERE key = 'group'").fetchone()
    if row is None or row[0] != group:
        raise IsolationError("the file belongs to another entity: nothing was copied")


@contextmanager
def _snapshot(file: Path) -> Generator[sqlite3.Connection]:
    with closing(open_reader(file)) as connection:
        connection.execute("BEGIN")
        yield connection
        connection.execute("ROLLBACK")


def _sync(file: Path) -> None:
    handle = os.open(file, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _remove(file: Path) -> None:
    """Remove a file of SQLite with its log; StoreError if one of them cannot be removed."""
    for path in (file, file.with_name(f"{file.name}-wal"), file.with_name(f"{file.name}-shm")):
        try:
            path.unlink(missing_ok=True)
        except OSError as error:
            raise StoreError(f"{path}: cannot be removed ({error.strerror})") from None
