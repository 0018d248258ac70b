"""Tables of features in ``memory.db``: made from declarations, and known to the core as data.

The table ``feature_tables`` lists them, so forgetting, the recycle bin and exports cover their rows
even when a feature is off or its package is gone. ``feature_sources`` names the items that each row
is about; a row is erased with any of them. A row has the entity's group, and a CHECK holds it to
the group of the file.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from pps.core.bounds import MAX_CONTENT, check_length, check_range
from pps.core.errors import InvalidRequest, NotFound, StoreError
from pps.core.feature_parts import (
    MAX_SELECTED,
    CellValue,
    Column,
    ColumnType,
    StoredFeature,
    Table,
    TableRow,
    check_feature_name,
)
from pps.core.ids import check_group, is_uuid, stable_id
from pps.core.sql import LIST, Connection, listed
from pps.core.values import Turn
from pps.journal.postgresql import PostgresConnection
from pps.journal.store import Readers, Store, reads, writes
from pps.journal.writer import Writer

T = TypeVar("T")
FEATURE_SOURCES = "feature_sources"
_PREFIX = "feature_"
_PAGE = 500
_MOST_SOURCES = 500
_SQL_TYPES: Mapping[ColumnType, str] = {"text": "TEXT", "integer": "INTEGER", "real": "REAL"}
_MOST_INTEGER = 2**63 - 1


@dataclass(frozen=True, slots=True)
class StoredTable:
    """A feature's table as the file has it.

    Attributes:
        sql_name: The SQL table's name. It is unique, because names of features and of their tables
            have no double underscore.
    """

    feature: str
    name: str
    columns: tuple[Column, ...]

    @property
    def sql_name(self) -> str:
        return f"{_PREFIX}{self.feature}__{self.name}"


def kept_tables(db: Connection) -> list[StoredTable]:
    """Return the tables of every feature that was ever prepared here, loaded or not."""
    tables: list[StoredTable] = []
    for feature, name, columns in db.execute(
        "SELECT feature, name, columns FROM feature_tables ORDER BY feature, name"
    ):
        check_feature_name(feature)
        typed = tuple(Column(column, type_) for column, type_ in json.loads(columns))
        tables.append(StoredTable(feature, check_feature_name(name), typed))
    return tables


def prepare(db: Connection, group: str, feature: str, tables: Sequence[Table]) -> None:
    """Create the declared tables that the file lacks, and add the declared columns that are new.

    Raises:
        StoreError: The file has a column that is not declared, or has it with another type: a later
            release of the feature wrote it.
    """
    check_feature_name(feature)
    known = {table.name: table for table in kept_tables(db) if table.feature == feature}
    for table in tables:
        stored = known.get(table.name)
        if stored is None:
            _create(db, group, StoredTable(feature, table.name, table.columns))
        elif {*stored.columns} != {*table.columns}:
            _extend(db, stored, table)


def _create(db: Connection, group: str, table: StoredTable) -> None:
    if isinstance(db, PostgresConnection):
        db.have_feature_table(
            table.sql_name, {column.name: column.type for column in table.columns}
        )
    else:
        create_in_file(db, group, table)
    db.execute(
        "INSERT INTO feature_tables (feature, name, columns) VALUES (?, ?, ?)",
        (table.feature, table.name, _dump_columns(table.columns)),
    )


def create_in_file(db: Connection, group: str, table: StoredTable) -> None:
    """Create a feature's SQL table in a SQLite file."""
    columns = ", ".join(f"{column.name} {_SQL_TYPES[column.type]}" for column in table.columns)
    db.execute(
        f"""CREATE TABLE {table.sql_name} (
            id TEXT PRIMARY KEY,
            group_id TEXT NOT NULL CHECK (group_id = '{check_group(group)}'),
            {columns}
        ) WITHOUT ROWID"""
    )


def _extend(db: Connection, stored: StoredTable, table: Table) -> None:
    declared = {column.name: column for column in table.columns}
    for column in stored.columns:
        if declared.get(column.name) != column:
            raise StoreError(
                f"the table {table.name} of the feature {stored.feature} has a column "
                f"{column.name} that its package does not declare so: upgrade the package, "
                f"or switch it off with `pps feature disable {stored.feature}`"
            )
    names = {column.name for column in stored.columns}
    added = tuple(column for column in table.columns if column.name not in names)
    if isinstance(db, PostgresConnection):
        db.have_feature_table(
            stored.sql_name, {column.name: column.type for column in table.columns}
        )
    else:
        for column in added:
            db.execute(
                f"ALTER TABLE {stored.sql_name} ADD COLUMN {column.name} {_SQL_TYPES[column.type]}"
            )
    db.execute(
        "UPDATE feature_tables SET columns = ? WHERE feature = ? AND name = ?",
        (_dump_columns((*stored.columns, *added)), stored.feature, stored.name),
    )


def _dump_columns(columns: Iterable[Column]) -> str:
    return json.dumps([[column.name, column.type] for column in columns])


class TableRows:
    """The rows of one feature's tables, read and written in one transaction.

    The methods are documented in ``FeatureRows``. ``close`` ends the use with the transaction.
    """

    def __init__(
        self,
        db: Connection,
        group: str,
        feature: str,
        tables: Iterable[Table],
        clean: Callable[[str], str],
        about: Sequence[str] = (),
    ) -> None:
        self._db: Connection | None = db
        self._group = group
        self._feature = feature
        self._tables = {table.name: table for table in tables}
        self._clean = clean
        self._about = tuple(about)
        self.erased = False
        """Whether text was deleted or replaced, so it must be overwritten on disk too."""

    def close(self) -> None:
        """Let go of the connection: a feature that still uses these rows gets an error."""
        self._db = None

    def insert(
        self,
        table: str,
        values: Mapping[str, CellValue],
        *,
        sources: Iterable[str] = (),
        key: str = "",
    ) -> str:
        stored = self._table(table)
        row = self._checked(stored, values)
        id_ = (
            stable_id(self._group, "feature", self._feature, table, key)
            if key
            else str(uuid.uuid4())
        )
        names = ", ".join(("id", "group_id", *row))
        marks = ", ".join("?" * (len(row) + 2))
        added = self._open.execute(
            f"INSERT INTO {stored.sql_name} ({names}) "  # noqa: S608 - declared names
            f"VALUES ({marks}) ON CONFLICT DO NOTHING",
            (id_, self._group, *row.values()),
        )
        if added.rowcount:
            self._add_sources(id_, sources)
        return id_

    def get(self, table: str, id: str) -> TableRow:
        stored = self._table(table)
        rows = self._read(stored, "id = ? AND group_id = ?", (id, self._group))
        if not rows:
            raise NotFound()
        return rows[0]

    def select(
        self,
        table: str,
        where: Mapping[str, CellValue] = {},
        *,
        order_by: str = "id",
        descending: bool = False,
        limit: int = 100,
    ) -> list[TableRow]:
        check_range("limit", limit, 1, MAX_SELECTED)
        stored = self._table(table)
        if order_by != "id":
            self._column(stored, order_by)
        condition, bound = self._condition(stored, where)
        direction = "DESC" if descending else "ASC"
        tail = f"{condition} ORDER BY {order_by} {direction}, id LIMIT ?"
        return self._read(stored, tail, (*bound, limit))

    def count(self, table: str, where: Mapping[str, CellValue] = {}) -> int:
        stored = self._table(table)
        condition, bound = self._condition(stored, where)
        statement = f"SELECT count(*) FROM {stored.sql_name} WHERE {condition}"  # noqa: S608
        return int(self._open.execute(statement, bound).fetchone()[0])

    def update(
        self,
        table: str,
        id: str,
        values: Mapping[str, CellValue],
        *,
        sources: Iterable[str] = (),
    ) -> None:
        stored = self._table(table)
        row = self._checked(stored, values)
        if not row:
            raise InvalidRequest("values", "names no column")
        changes = ", ".join(f"{name} = ?" for name in row)
        changed = self._open.execute(
            f"UPDATE {stored.sql_name} SET {changes} WHERE id = ? AND group_id = ?",  # noqa: S608
            (*row.values(), id, self._group),
        )
        if not changed.rowcount:
            raise NotFound()
        self.erased = True
        self._add_sources(id, sources)

    def delete(self, table: str, id: str) -> None:
        stored = self._table(table)
        deleted = self._open.execute(
            f"DELETE FROM {stored.sql_name} WHERE id = ? AND group_id = ?",  # noqa: S608
            (id, self._group),
        )
        if not deleted.rowcount:
            raise NotFound()
        self.erased = True
        self._open.execute('DELETE FROM feature_sources WHERE "row" = ?', (id,))

    @property
    def _open(self) -> Connection:
        if self._db is None:
            raise InvalidRequest(
                "rows",
                f"of the feature {self._feature} were used after their transaction had ended",
            )
        return self._db

    def _table(self, name: str) -> StoredTable:
        table = self._tables.get(name)
        if table is None:
            raise InvalidRequest("table", f"the feature {self._feature} declares no {name!r}")
        return StoredTable(self._feature, table.name, table.columns)

    def _column(self, table: StoredTable, name: str) -> Column:
        for column in table.columns:
            if column.name == name:
                return column
        raise InvalidRequest("column", f"{table.name} declares no {name!r}")

    def _condition(
        self, table: StoredTable, where: Mapping[str, CellValue]
    ) -> tuple[str, tuple[CellValue, ...]]:
        for name in where:
            if name != "id":
                self._column(table, name)
        parts = ["group_id = ?", *(f"{name} IS ?" for name in where)]
        return " AND ".join(parts), (self._group, *where.values())

    def _read(
        self, table: StoredTable, condition: str, bound: Sequence[CellValue]
    ) -> list[TableRow]:
        names = ["id", *(column.name for column in table.columns)]
        rows = self._open.execute(
            f"SELECT {', '.join(names)} FROM {table.sql_name} WHERE {condition}",  # noqa: S608
            bound,
        )
        return [dict(zip(names, row, strict=True)) for row in rows]

    def _checked(self, table: StoredTable, values: Mapping[str, CellValue]) -> TableRow:
        return {
            name: self._checked_value(self._column(table, name), value)
            for name, value in values.items()
        }

    def _checked_value(self, column: Column, value: CellValue) -> CellValue:
        if value is None:
            return None
        if column.type == "text" and isinstance(value, str):
            check_length(column.name, value, 0, MAX_CONTENT)
            return self._clean(value)
        if column.type == "integer" and isinstance(value, int) and not isinstance(value, bool):
            check_range(column.name, value, -_MOST_INTEGER, _MOST_INTEGER)
            return value
        is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
        if column.type == "real" and is_number:
            return float(value)
        raise InvalidRequest(column.name, f"must be of the type {column.type}")

    def _add_sources(self, row: str, sources: Iterable[str]) -> None:
        """Note the items that a row is about.

        Raises:
            NotFound: An item is not this entity's, or was forgotten meanwhile.
            InvalidRequest: There are too many items.
        """
        items = list(dict.fromkeys((*self._about, *sources)))
        if len(items) > _MOST_SOURCES:
            raise InvalidRequest("sources", f"must be at most {_MOST_SOURCES:,} ids")
        if set(items) - _existing_items(self._open, items):
            raise NotFound("source")
        self._open.executemany(
            'INSERT INTO feature_sources ("row", item) VALUES (?, ?) ON CONFLICT DO NOTHING',
            [(row, item) for item in items],
        )


def _existing_items(db: Connection, ids: Sequence[str]) -> set[str]:
    """Return the ids that belong to turns, facts, nodes or records of this memory."""
    id_list = listed(ids)
    rows = db.execute(
        f"""SELECT uuid FROM turns WHERE uuid IN {LIST}
            UNION SELECT uuid FROM fact WHERE uuid IN {LIST}
            UNION SELECT uuid FROM node WHERE uuid IN {LIST}
            UNION SELECT node FROM records WHERE node IN {LIST}""",  # noqa: S608 - literals
        (id_list,) * 4,
    )
    return {id_ for (id_,) in rows}


def existing_rows(db: Connection, ids: Sequence[str]) -> list[str]:
    """Return the ids that belong to rows of features' tables, in their order."""
    id_list = listed(id_ for id_ in ids if is_uuid(id_))
    existing: set[str] = set()
    for table in kept_tables(db):
        statement = f"SELECT id FROM {table.sql_name} WHERE id IN {LIST}"  # noqa: S608
        existing.update(id_ for (id_,) in db.execute(statement, (id_list,)))
    return [id_ for id_ in ids if id_ in existing]


def rows_about(db: Connection, ids: Iterable[str]) -> list[str]:
    """Return the ids of features' rows that are among the ids, or are about an item among them.

    A row about a node that was merged into another node is about that other node too.
    """
    unique_ids = list(dict.fromkeys(ids))
    id_list = listed(unique_ids)
    merged = f"SELECT gone FROM merges WHERE kept IN {LIST}"  # noqa: S608 - literals
    about_them = db.execute(
        'SELECT DISTINCT "row" FROM feature_sources '  # noqa: S608 - literals
        f"WHERE item IN {LIST} OR item IN ({merged})",
        (id_list, id_list),
    )
    return sorted({*existing_rows(db, unique_ids), *(row for (row,) in about_them)})


def forget(db: Connection, ids: Sequence[str]) -> None:
    """Erase the rows of every feature that ``rows_about`` returns for these ids."""
    row_list = listed(rows_about(db, ids))
    for table in kept_tables(db):
        db.execute(f"DELETE FROM {table.sql_name} WHERE id IN {LIST}", (row_list,))  # noqa: S608
    db.execute(f'DELETE FROM feature_sources WHERE "row" IN {LIST}', (row_list,))  # noqa: S608


def take(db: Connection, ids: Sequence[str]) -> dict[str, list[TableRow]]:
    """Return SQL table → the rows that ``forget`` would erase, for ``put_back``."""
    row_list = listed(rows_about(db, ids))
    columns_of_ids = {table.sql_name: "id" for table in kept_tables(db)}
    columns_of_ids[FEATURE_SOURCES] = '"row"'
    taken: dict[str, list[TableRow]] = {}
    for table, column in columns_of_ids.items():
        statement = f"SELECT * FROM {table} WHERE {column} IN {LIST}"  # noqa: S608 - checked names
        cursor = db.execute(statement, (row_list,))
        names = [description[0] for description in cursor.description]
        rows = [dict(zip(names, row, strict=True)) for row in cursor]
        if rows:
            taken[table] = rows
    return taken


def put_back(db: Connection, rows: Mapping[str, Sequence[Mapping[str, CellValue]]]) -> None:
    """Insert the rows that ``take`` returned; an existing row stays as it is."""
    for table in (*(stored.sql_name for stored in kept_tables(db)), FEATURE_SOURCES):
        for row in rows.get(table, ()):
            names = ", ".join(f'"{name}"' for name in row)
            marks = ", ".join("?" * len(row))
            db.execute(
                f"INSERT INTO {table} ({names}) VALUES ({marks}) "  # noqa: S608 - as they were read
                "ON CONFLICT DO NOTHING",
                tuple(row.values()),
            )


def taken_without(
    rows: Mapping[str, list[TableRow]], gone: Collection[str]
) -> dict[str, list[TableRow]]:
    """Return the rows that ``take`` returned, without those that are erased for good.

    A row is erased when its id, or the id of an item that it is about, is in ``gone``. Tables that
    are not a feature's are left out.
    """
    sources = rows.get(FEATURE_SOURCES, [])
    lost = {*gone, *(row["row"] for row in sources if row["item"] in gone)}
    remaining: dict[str, list[TableRow]] = {}
    for table, table_rows in rows.items():
        if table.startswith(_PREFIX):
            column = "row" if table == FEATURE_SOURCES else "id"
            remaining[table] = [row for row in table_rows if row[column] not in lost]
    return remaining


@dataclass(frozen=True, slots=True)
class ExportedRow:
    """An exported row of a feature's table; ``sources`` are the ids of the items it is about."""

    feature: str
    table: str
    id: str
    values: TableRow
    sources: tuple[str, ...]


def exported(db: Connection, after: tuple[str, str, str]) -> list[ExportedRow]:
    """Return the next page of all features' rows, in the order of (feature, table, id).

    ``after`` is that triple of the last row of the page before; empty texts for the first page.
    """
    feature, name, id_ = after
    page: list[ExportedRow] = []
    for table in kept_tables(db):
        place = (table.feature, table.name)
        if place < (feature, name):
            continue
        last_id = id_ if place == (feature, name) else ""
        names = ["id", *(column.name for column in table.columns)]
        rows = db.execute(
            f"SELECT {', '.join(names)} FROM {table.sql_name} "  # noqa: S608 - checked names
            "WHERE id > ? ORDER BY id LIMIT ?",
            (last_id, _PAGE - len(page)),
        ).fetchall()
        for row in rows:
            items = db.execute(
                'SELECT item FROM feature_sources WHERE "row" = ? ORDER BY item', (row[0],)
            )
            values = dict(zip(names[1:], row[1:], strict=True))
            sources = tuple(item for (item,) in items)
            page.append(ExportedRow(table.feature, table.name, row[0], values, sources))
        if len(page) >= _PAGE:
            break
    return page


def position(db: Connection, feature: str, follower: str) -> int:
    """Return the ``seq`` of the last turn that a feature's follower has applied; 0 at first."""
    row = db.execute(
        "SELECT position FROM feature_positions WHERE feature = ? AND follower = ?",
        (feature, follower),
    ).fetchone()
    return 0 if row is None else int(row[0])


def move_on(db: Connection, feature: str, follower: str, seq: int) -> None:
    """Note that a feature's follower has applied the turns up to ``seq``."""
    db.execute(
        """INSERT INTO feature_positions (feature, follower, position) VALUES (?, ?, ?)
            ON CONFLICT (feature, follower) DO UPDATE SET position = excluded.position""",
        (feature, follower, seq),
    )


class FeatureBook(Store):
    """The features' rows and positions of one memory."""

    existing_rows = reads(existing_rows)
    exported = reads(exported)
    forget = writes(forget, secure=True)
    kept_tables = reads(kept_tables)
    move_on = writes(move_on)
    position = reads(position)
    prepare = writes(prepare)
    rows_about = reads(rows_about)


class FeatureTables:
    """The tables of one feature in one memory; errors and durability as for ``Journal``."""

    def __init__(
        self,
        writer: Writer,
        readers: Readers,
        group: str,
        feature: StoredFeature,
        clean: Callable[[], Callable[[str], str]],
        about: Sequence[str] = (),
    ) -> None:
        self._writer = writer
        self._readers = readers
        self._group = group
        self._feature = feature
        self._clean = clean
        self._about = tuple(about)

    def about(self, turn: Turn) -> FeatureTables:
        """Return these tables, such that an inserted row is about the turn and goes with it."""
        return FeatureTables(
            self._writer, self._readers, self._group, self._feature, self._clean, [turn.uuid]
        )

    async def read(self, work: Callable[[TableRows], T]) -> T:
        """Run ``work``, which changes nothing, on one snapshot."""
        result, _ = await self._readers.read(lambda db: self._run(db, work))
        return result

    async def change(self, work: Callable[[TableRows], T]) -> T:
        """Run ``work`` in one transaction; an exception undoes it.

        Text that it erases is overwritten on disk.
        """
        result, erased = await self._writer.write(lambda db: self._run(db, work))
        if erased:
            await self._writer.write(lambda _: None, secure=True)
        return result

    async def insert(
        self,
        table: str,
        values: Mapping[str, CellValue],
        *,
        sources: Iterable[str] = (),
        key: str = "",
    ) -> str:
        """Add a row and return its id, see ``FeatureRows.insert``."""
        items = tuple(sources)
        return await self.change(lambda rows: rows.insert(table, values, sources=items, key=key))

    async def get(self, table: str, id: str) -> TableRow:
        """Return a row; NotFound when this entity has none of that id."""
        return await self.read(lambda rows: rows.get(table, id))

    async def select(
        self,
        table: str,
        where: Mapping[str, CellValue] = {},
        *,
        order_by: str = "id",
        descending: bool = False,
        limit: int = 100,
    ) -> list[TableRow]:
        """Return rows, see ``FeatureRows.select``."""
        return await self.read(
            lambda rows: rows.select(
                table, where, order_by=order_by, descending=descending, limit=limit
            )
        )

    async def update(
        self,
        table: str,
        id: str,
        values: Mapping[str, CellValue],
        *,
        sources: Iterable[str] = (),
    ) -> None:
        """Change columns of a row, see ``FeatureRows.update``."""
        items = tuple(sources)
        await self.change(lambda rows: rows.update(table, id, values, sources=items))

    async def delete(self, table: str, id: str) -> None:
        """Erase a row; NotFound when this entity has none of that id."""
        await self.change(lambda rows: rows.delete(table, id))

    def _run(self, db: Connection, work: Callable[[TableRows], T]) -> tuple[T, bool]:
        """Return the result of ``work``, and whether it erased text."""
        rows = TableRows(
            db, self._group, self._feature.name, self._feature.tables, self._clean(), self._about
        )
        try:
            return work(rows), rows.erased
        finally:
            rows.close()
