"""Many rows in one statement."""

from __future__ import annotations

import sqlite3

import pytest

from pps.core.sql import insert, listed


@pytest.mark.parametrize("count", [0, 1, 7, 8, 9, 127, 128, 129, 1_000])
def test_every_row_is_inserted_once_and_in_order(count: int) -> None:
    db = sqlite3.connect(":memory:")
    db.execute("CREATE TABLE t (n INTEGER PRIMARY KEY AUTOINCREMENT, word TEXT, blob BLOB)")
    rows = [(f"w{number}", bytes([number % 256])) for number in range(count)]
    insert(db, "INSERT INTO t (word, blob)", iter(rows))
    assert db.execute("SELECT word, blob FROM t ORDER BY n").fetchall() == rows


def test_rows_share_few_statements() -> None:
    db = sqlite3.connect(":memory:")
    db.execute("CREATE TABLE t (n INTEGER)")
    statements = list[str]()
    db.set_trace_callback(statements.append)
    insert(db, "INSERT INTO t", [(number,) for number in range(1_000)])
    assert sum(one.startswith("INSERT") for one in statements) == 7 + 13


def test_what_follows_the_values_settles_conflicts() -> None:
    db = sqlite3.connect(":memory:")
    db.execute("CREATE TABLE t (id INTEGER PRIMARY KEY, word TEXT)")
    for word in ("old", "new"):
        insert(
            db,
            "INSERT INTO t",
            [(number, word) for number in range(20)],
            "ON CONFLICT (id) DO UPDATE SET word = excluded.word",
        )
    assert db.execute("SELECT DISTINCT word FROM t").fetchall() == [("new",)]
    assert db.execute(
        "SELECT count(*) FROM t WHERE id IN (SELECT value FROM json_each(?))", (listed([3, 4]),)
    ).fetchone() == (2,)


def test_a_row_that_breaks_a_rule_is_an_error() -> None:
    db = sqlite3.connect(":memory:")
    db.execute("CREATE TABLE t (id INTEGER PRIMARY KEY)")
    with pytest.raises(sqlite3.IntegrityError):
        insert(db, "INSERT INTO t", [(1,), (1,)])
