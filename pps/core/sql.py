"""Many rows in one statement of SQLite.

Python's ``sqlite3`` lets go of the interpreter at every step of a statement and then waits its turn to have it back:
up to 5 ms a row while another thread computes. ``executemany`` takes a step a row; a statement of many rows takes one.
"""

from __future__ import annotations

import itertools
import json
import sqlite3
from collections.abc import Iterable, Sequence

_SIZES = (128, 8, 1)
"""Rows of one statement. Only these, so that a connection keeps three statements at most for one insertion."""

LIST = "(SELECT value FROM json_each(?))"
"""What stands after ``IN`` where ``listed`` values are the parameter: one statement for any number of them."""

Value = str | int | float | bytes | None


def insert(
    connection: sqlite3.Connection, statement: str, rows: Iterable[Sequence[Value]], then: str = ""
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
