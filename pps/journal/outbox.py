"""The outbox: one row for each id whose index entries lag behind the truth."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Sequence
from typing import cast

from pps.core.sql import insert, listed
from pps.core.values import ItemKind
from pps.journal.values import Change, DirtyChange


def mark(connection: sqlite3.Connection, changes: Iterable[Change]) -> range:
    """Note changed ids; one noted before moves to the end. Return the numbers (``seq``) that they got.

    A change that is noted again gets a new ``seq``, so clearing the older one cannot lose it.
    """
    first = _next(connection)
    rows = [(change.kind, change.id) for change in changes]
    insert(connection, "INSERT OR REPLACE INTO outbox (kind, id)", rows)
    return range(first, _next(connection))


def dirty(connection: sqlite3.Connection, limit: int, after: int = 0) -> list[DirtyChange]:
    """Return waiting changes whose number is above ``after``, oldest first."""
    rows = connection.execute("SELECT seq, kind, id FROM outbox WHERE seq > ? ORDER BY seq LIMIT ?", (after, limit))
    return [DirtyChange(seq, Change(cast("ItemKind", kind), id_)) for seq, kind, id_ in rows]


def clear(connection: sqlite3.Connection, seqs: Sequence[int]) -> None:
    """Drop changes whose index entries are on disk."""
    connection.execute("DELETE FROM outbox WHERE seq IN (SELECT value FROM json_each(?))", (listed(seqs),))


def count(connection: sqlite3.Connection) -> int:
    """Return how many changes wait."""
    (number,) = connection.execute("SELECT count(*) FROM outbox").fetchone()
    return number


def _next(connection: sqlite3.Connection) -> int:
    """Return the number that the next row gets: AUTOINCREMENT never gives one twice."""
    row = connection.execute("SELECT seq FROM sqlite_sequence WHERE name = 'outbox'").fetchone()
    return 1 if row is None else int(row[0]) + 1
