"""The change log: which things have changed, in order, for the indexes that follow the truth.

An entry holds a kind and an id, never a text. It says only that this thing is to be read again
where it is true, so that applying an entry twice ends in the same index. Each follower keeps the
position of the last entry that it has applied. Entries that every follower has passed are dropped;
a follower that is behind what was dropped is made anew.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import cast

from pps.core.sql import Connection
from pps.core.sql import insert as insert_rows
from pps.core.values import ItemKind
from pps.journal import meta
from pps.journal.entries import Change, GraphKind

_DROPPED = "log_dropped"
"""Set to the position up to which entries were dropped."""


@dataclass(frozen=True, slots=True)
class LogEntry:
    """A change and its position, 1 or more; a later change has a higher one."""

    position: int
    change: Change


@dataclass(frozen=True, slots=True)
class LogSpan:
    """What the log covers.

    Attributes:
        dropped: The position up to which entries were dropped; 0 when none was.
        last: The position of the latest entry that there ever was; 0 when there was none.
    """

    dropped: int
    last: int


def log_changes(connection: Connection, changes: Iterable[Change]) -> range:
    """Append changes; return the positions that they got.

    A thing stands in the log once: its earlier entry goes, which every follower that has not passed
    it meets later.
    """
    latest = reversed(dict.fromkeys(reversed(list(changes))))
    rows = [[change.kind, change.id] for change in latest]
    if not rows:
        return range(0)
    connection.execute(
        """DELETE FROM change_log WHERE position IN (SELECT l.position FROM json_each(?) AS w
            JOIN change_log AS l ON l.kind = json_extract(w.value, '$[0]')
            AND l.id = json_extract(w.value, '$[1]'))""",
        (json.dumps(rows),),
    )
    insert_rows(connection, "INSERT INTO change_log (kind, id)", rows)
    last = _highest(connection)
    return range(last - len(rows) + 1, last + 1)


def log_entries(connection: Connection, after: int, limit: int) -> list[LogEntry]:
    """Return at most ``limit`` entries behind a position, in order."""
    rows = connection.execute(
        "SELECT position, kind, id FROM change_log WHERE position > ? ORDER BY position LIMIT ?",
        (after, limit),
    )
    return [
        LogEntry(position, Change(cast("ItemKind | GraphKind", kind), id_))
        for position, kind, id_ in rows
    ]


def count_entries(connection: Connection, after: int) -> int:
    """Return how many entries are behind a position."""
    (number,) = connection.execute(
        "SELECT count(*) FROM change_log WHERE position > ?", (after,)
    ).fetchone()
    return number


def log_span(connection: Connection) -> LogSpan:
    """Return what the log covers."""
    dropped = int(meta.get(connection, _DROPPED) or 0)
    return LogSpan(dropped, max(dropped, _highest(connection)))


def drop_entries(connection: Connection, until: int) -> None:
    """Drop the entries up to a position that every follower has on disk."""
    if until > log_span(connection).dropped:
        connection.execute("DELETE FROM change_log WHERE position <= ?", (until,))
        meta.put(connection, _DROPPED, str(until))


def _highest(connection: Connection) -> int:
    """Return the highest position in the log; 0 when it is empty. None is ever given twice."""
    (position,) = connection.execute("SELECT max(position) FROM change_log").fetchone()
    return position or 0
