"""The tables in PostgreSQL are those in a file: columns, keys, uniqueness and references, with the group in each."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from pps.core.ids import new_group
from pps.journal.db import prepare_file
from pps.journal.postgresql import MIGRATIONS, database_of
from tests.postgresql_server import PostgresqlServer

pytestmark = pytest.mark.postgresql

_TYPES = {
    "text": "text",
    "integer": "bigint",
    "bigint": "bigint",
    "real": "double precision",
    "blob": "bytea",
}
_FOR_ITSELF = {"counter"}
"""Numbers of rows, which SQLite counts itself."""

Shape = Mapping[str, Any]


def in_file(path: Path) -> dict[str, Shape]:
    prepare_file(path, new_group())
    with closing(sqlite3.connect(path)) as db:
        names = [
            name
            for (name,) in db.execute(
                "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'"
            )
        ]
        return {name: _shape_in_file(db, name) for name in names}


def _shape_in_file(db: sqlite3.Connection, table: str) -> Shape:
    rows = [row for row in db.execute(f"PRAGMA table_xinfo({table})") if row[1] != "grp"]
    columns = {
        row[1]: (
            _TYPES[row[2].lower().removesuffix(" generated always")],
            bool(row[3]) or bool(row[5]),
            row[6] in (2, 3),
        )
        for row in rows
    }
    unique = {frozenset(row[1] for row in rows if row[5])}
    for _, name, is_unique, origin, _ in db.execute(f"PRAGMA index_list({table})"):
        if is_unique and origin == "u":
            unique.add(
                frozenset(row[2] for row in db.execute(f"PRAGMA index_info({name})")) - {"grp"}
            )
    references: dict[int, tuple[str, str, set[tuple[str, str]]]] = {}
    for number, _, other, column, named, _, deleting, _ in db.execute(
        f"PRAGMA foreign_key_list({table})"
    ):
        references.setdefault(number, (other, deleting, set()))[2].add((column, named))
    return {
        "columns": columns,
        "unique": unique,
        "references": {
            (other, deleting, frozenset(pairs - {("grp", "grp")}))
            for other, deleting, pairs in references.values()
        },
    }


def on_server(server: PostgresqlServer) -> dict[str, Shape]:
    columns = server.as_superuser(
        "SELECT table_name, column_name, data_type, is_nullable = 'NO', is_generated = 'ALWAYS', collation_name "
        "FROM information_schema.columns WHERE table_schema = 'pps' ORDER BY ordinal_position"
    )
    keys = server.as_superuser(
        "SELECT c.relname, k.contype::text, pg_get_constraintdef(k.oid) FROM pg_constraint k "
        "JOIN pg_class c ON c.oid = k.conrelid JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = 'pps' "
        "AND c.relname <> 'schema_version' AND strpos(c.relname, '__') = 0"
    )
    found: dict[str, dict[str, Any]] = {}
    for table, column, type_, required, generated, collation in columns:
        shape = found.setdefault(str(table), {"columns": {}, "unique": set(), "references": set()})
        if type_ == "text":
            assert collation == "C", f"{table}.{column} is not compared by its bytes"
        shape["columns"][column] = (type_, required, generated)
    for table, kind, text in keys:
        _add_key(found[str(table)], str(kind), str(text))
    return {
        table: shape
        for table, shape in found.items()
        if table not in ("schema_version", *_FOR_ITSELF) and "__" not in table
    }


def _add_key(shape: dict[str, Any], kind: str, text: str) -> None:
    lists = [
        [name.strip(' "') for name in part.split(",")] for part in re.findall(r"\(([^()]*)\)", text)
    ]
    if kind in ("p", "u"):
        assert lists[0][0] == "grp", f"{text} does not begin with the group"
        shape["unique"].add(frozenset(lists[0][1:]))
    if kind == "f":
        other = re.search(r"REFERENCES (\w+)", text)
        assert other is not None
        assert lists[0][0] == lists[1][0] == "grp", f"{text} leaves the group out"
        deleting = "CASCADE" if "ON DELETE CASCADE" in text else "NO ACTION"
        shape["references"].add(
            (other[1], deleting, frozenset(zip(lists[0][1:], lists[1][1:], strict=True)))
        )


def test_the_tables_are_those_of_a_file(
    postgresql_server: PostgresqlServer, tmp_path: Path
) -> None:
    database_of(postgresql_server.settings).close()
    expected, found = in_file(tmp_path / "memory.db"), on_server(postgresql_server)
    assert found.keys() == expected.keys()
    for table, shape in expected.items():
        columns = found[table]["columns"]
        assert columns.pop("grp") == ("text", True, False)
        assert columns == shape["columns"], table
        assert found[table]["unique"] == shape["unique"], table
        assert found[table]["references"] == shape["references"], table


def test_the_tables_are_made_once_and_by_the_owner_alone(
    postgresql_server: PostgresqlServer,
) -> None:
    server = postgresql_server.with_database("made_once")
    without_owner = server.settings.model_copy(update={"owner_url": type(server.settings.url)("")})
    with pytest.raises(Exception, match=r"postgresql\.owner_url: is needed to make the tables"):
        database_of(without_owner)
    for _ in range(2):
        database_of(server.settings).close()
    database_of(without_owner).close()
    assert server.as_superuser("SELECT version FROM schema_version ORDER BY 1") == [
        [number] for number in range(1, len(MIGRATIONS) + 1)
    ]
    server.as_superuser("INSERT INTO schema_version VALUES (999)", "SELECT 1")
    with pytest.raises(Exception, match=r"made by a newer PPS \(schema 999"):
        database_of(server.settings)
