"""What statements run on: a connection to SQLite or PostgreSQL.

Lists as parameters, and many rows in one statement.

Statements are written so that both databases run them: ``ON CONFLICT`` rather than ``INSERT OR``,
``CASE`` rather than ``iif`` or a scalar ``max``, a type (``CAST(? AS BIGINT)``) where nothing else
says one. What only SQLite has and PostgreSQL is given by PPS is listed in
``journal/postgresql_statements.py``.

Python's ``sqlite3`` lets go of the interpreter at every step of a statement and then waits its turn
to have it back: up to 5 ms a row while another thread computes. ``executemany`` takes a step a row;
a statement of many rows takes one.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Protocol

_SIZES = (128, 8, 1)
"""Rows of one statement.

Only these, so that a connection keeps three statements at most for one insertion.
"""

LIST = "(SELECT value FROM json_each(?))"
"""The operand of ``IN`` for a parameter of ``listed`` texts: one statement for any number."""
NUMBERS = "(SELECT CAST(value AS BIGINT) FROM json_each(?))"
"""The same for integers."""

Value = str | int | float | bytes | None


class Cursor(Protocol):
    """The rows of a statement, or how many it changed."""

    @property
    def rowcount(self) -> int: ...

    @property
    def description(self) -> Any:
        """For each column a tuple that begins with its name."""

    def fetchone(self) -> Any: ...

    def fetchall(self) -> list[Any]: ...

    def __iter__(self) -> Iterator[Any]: ...


class Connection(Protocol):
    """A connection of SQLite or PostgreSQL inside a transaction that the caller begins and ends."""

    def execute(self, statement: str, values: Any = ..., /) -> Cursor: ...

    def executemany(self, statement: str, rows: Iterable[Any], /) -> Cursor: ...


def insert(
    connection: Connection, statement: str, rows: Iterable[Sequence[Value]], then: str = ""
) -> None:
    """Insert rows.

    Args:
        connection: Where.
        statement: Up to the values: ``INSERT INTO turns (uuid, role)``.
        rows: The values, as many in each, 250 at most.
        then: What follows the values: ``ON CONFLICT ...``.
    """
    every = rows if isinstance(rows, Sequence) else list(rows)
    at = 0
    for size in _SIZES:
        while len(every) - at >= size:
            values = ",".join(["(" + ",".join("?" * len(every[at])) + ")"] * size)
            part = itertools.chain.from_iterable(every[at : at + size])
            connection.execute(f"{statement} VALUES {values} {then}", list(part))
            at += size


def listed(values: Iterable[str | int]) -> str:
    """Return values as the one parameter of ``LIST``."""
    return json.dumps(list(values))
