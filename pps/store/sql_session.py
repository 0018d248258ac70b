"""Statements on an open transaction, in a dialect for both SQLite and PostgreSQL.

Statements are plain SQL with named parameters (``:relation``). ``:grp`` is always bound, to the
group that the session was made for, and nobody can bind it to another. What differs between the
databases is written as ``IN EACH(:uuids)`` (any of a list), ``EPISODES_OF(f)`` (the episodes of a
fact, in order, as a JSON list) and ``COUNT_OF(node)`` (how many rows of a table are the group's: in
a file all of them, which SQLite counts by pages).
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any, TypeAlias

from pps.core.errors import InvalidRequest
from pps.core.sql import Connection, Cursor, insert

Row: TypeAlias = tuple[Any, ...]
Value: TypeAlias = str | int | float | bytes | None

_EACH = re.compile(r"IN EACH\(:(\w+)\)")
_EPISODES_OF = re.compile(r"EPISODES_OF\((\w+)\)")
_COUNT_OF = re.compile(r"COUNT_OF\((\w+)\)")


class SqlSession:
    """One transaction on the tables of one group. Made for each piece of work; never kept.

    Args:
        connection: Where; the transaction is begun and ended by whoever made the session.
        group: What ``:grp`` is bound to.
    """

    def __init__(self, connection: Connection, group: str) -> None:
        self._connection = connection
        self._group = group

    def rows(self, statement: str, /, **values: Value | Sequence[str]) -> list[Row]:
        """Return the rows of a statement; a list among the values is for ``IN EACH``."""
        return self._execute(statement, values).fetchall()

    def first(self, statement: str, /, **values: Value | Sequence[str]) -> Row | None:
        return self._execute(statement, values).fetchone()

    def change(self, statement: str, /, **values: Value | Sequence[str]) -> int:
        """Run a statement that changes rows and return how many it changed."""
        return self._execute(statement, values).rowcount

    def insert(
        self, table: str, columns: str, rows: Iterable[Sequence[Value]], conflict: str = ""
    ) -> None:
        """Insert rows of the group.

        Args:
            table: Where.
            columns: Their names with commas between, without ``grp``.
            rows: The values, as many in each as there are columns.
            conflict: What follows the values: ``ON CONFLICT ...``.

        Raises:
            InvalidRequest: A text is not Unicode (half of a surrogate pair).
        """
        try:
            insert(
                self._connection,
                f"INSERT INTO {table} ({columns}, grp)",
                [(*row, self._group) for row in rows],
                conflict,
            )
        except UnicodeEncodeError:
            raise InvalidRequest(table, "has a text that is not Unicode") from None

    def _execute(self, statement: str, values: Mapping[str, Value | Sequence[str]]) -> Cursor:
        bound = {
            name: value if isinstance(value, _PLAIN) else json.dumps(list(value))
            for name, value in values.items()
        }
        try:
            return self._connection.execute(_for_sqlite(statement), {**bound, "grp": self._group})
        except UnicodeEncodeError:
            raise InvalidRequest("text", "is not Unicode") from None


def assignments(columns: str, *, but: str = "") -> str:
    """Return ``a = excluded.a, ...`` for all columns but one, after ``ON CONFLICT``."""
    names = [name for name in columns.split(", ") if name != but]
    return ", ".join(f"{name} = excluded.{name}" for name in names)


def page_before(
    select: str, alias: str, cursor: str | None, limit: int | None
) -> tuple[str, dict[str, Value]]:
    """Return the statement and the values of a page with ``uuid < cursor``, last uuid first.

    Args:
        select: Columns and table, up to ``WHERE``.
        alias: The table's name in ``select``.
        cursor: None or empty is the end.
        limit: Most rows; None is all.
    """
    values: dict[str, Value] = {}
    statement = f"{select} WHERE {alias}.grp = :grp"
    if cursor:
        statement += f" AND {alias}.uuid < :cursor"
        values["cursor"] = cursor
    statement += f" ORDER BY {alias}.uuid DESC"
    if limit is not None:
        statement += " LIMIT :most"
        values["most"] = limit
    return statement, values


_PLAIN = (str, int, float, bytes, type(None))


@lru_cache(maxsize=512)
def _for_sqlite(statement: str) -> str:
    counted = _COUNT_OF.sub(r"(SELECT count(*) FROM \1)", statement)
    listed = _EACH.sub(r"IN (SELECT value FROM json_each(:\1))", counted)
    return _EPISODES_OF.sub(
        r"(SELECT json_group_array(episode) FROM (SELECT s.episode FROM support s "
        r"WHERE s.fact = \1.uuid AND s.grp = \1.grp ORDER BY s.place) AS stating)",
        listed,
    )
