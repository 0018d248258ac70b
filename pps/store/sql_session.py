"""Statements on an open transaction, in a dialect for both SQLite and PostgreSQL.

Statements are plain SQL with named parameters (``:relation``). ``:grp`` is always bound to the
session's group; no caller can bind it. Three phrases hide differences between the databases:

- ``IN EACH(:uuids)``: in a list of values.
- ``EPISODES_OF(f)``: the episodes of a fact, in order, as a JSON list.
- ``COUNT_OF(node)``: the number of the group's rows in a table. In a file that is all rows, which
    SQLite counts quickly.
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
    """One transaction on the tables of one group, valid until the transaction ends.

    Args:
        connection: The connection; the creator of the session begins and ends the transaction.
        group: The value of ``:grp``.
    """

    def __init__(self, connection: Connection, group: str) -> None:
        self._connection = connection
        self._group = group

    def rows(self, statement: str, /, **values: Value | Sequence[str]) -> list[Row]:
        """Return the rows of a statement; lists in ``values`` are for ``IN EACH``."""
        return self._execute(statement, values).fetchall()

    def first(self, statement: str, /, **values: Value | Sequence[str]) -> Row | None:
        return self._execute(statement, values).fetchone()

    def change(self, statement: str, /, **values: Value | Sequence[str]) -> int:
        """Run a statement that changes rows; return their number."""
        return self._execute(statement, values).rowcount

    def insert(
        self, table: str, columns: str, rows: Iterable[Sequence[Value]], conflict: str = ""
    ) -> None:
        """Insert rows of the group.

        Args:
            table: Name of the table.
            columns: Names of the columns, separated by ``", "``, without ``grp``.
            rows: One value for each column in each row.
            conflict: The clause ``ON CONFLICT ...``, if any.

        Raises:
            InvalidRequest: A text is not valid Unicode (it has a lone surrogate).
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
    """Return ``a = excluded.a, ...`` for ``ON CONFLICT``, for all columns except ``but``."""
    names = [name for name in columns.split(", ") if name != but]
    return ", ".join(f"{name} = excluded.{name}" for name in names)


def page_before(
    select: str, alias: str, cursor: str | None, limit: int | None
) -> tuple[str, dict[str, Value]]:
    """Return the statement and values of a page of rows with ``uuid < cursor``, last uuid first.

    Args:
        select: The statement up to ``WHERE``.
        alias: The table's alias in ``select``.
        cursor: None or empty for the first page.
        limit: Maximum number of rows; None for all.
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
