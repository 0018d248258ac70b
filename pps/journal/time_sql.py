"""SQL conditions that compare stored times with a reference time.

Each column of times has a column of precisions (``core.time``); a date is stored as its midnight in
UTC. The reference time is aware, in the person's zone. Instants are compared with it, and dates
with the wall clock of that zone.
"""

from __future__ import annotations

from datetime import datetime
from typing import Literal, TypeAlias

from pps.core.time import micros, wall, wall_day

Comparison: TypeAlias = Literal["<", "<=", ">", ">="]
Condition: TypeAlias = tuple[str, tuple[int, ...]]
"""SQL text, and the values of its parameters."""


def begins(column: str, precision: str, comparison: Comparison, at: datetime) -> Condition:
    """Return the condition that a time begins before or after a reference time.

    Args:
        column: Column of microseconds since 1970; the first part of the condition can use an index
            on it.
        precision: Column of its precision.
        comparison: Operator between the column and the reference time.
        at: Reference time, aware, in the person's zone.
    """
    instant = micros(at)
    clock = micros(wall(at))
    if instant == clock:
        return f"{column} {comparison} ?", (instant,)
    widest = max(instant, clock) if comparison[0] == "<" else min(instant, clock)
    exact = (
        f"{column} {comparison} CASE {precision} WHEN 'instant' THEN CAST(? AS BIGINT) ELSE ? END"
    )
    return f"({column} {comparison} ? AND {exact})", (widest, instant, clock)


def ends_after(column: str, precision: str, at: datetime) -> Condition:
    """Return the condition that a time is not over; a day, month or year lasts to its end."""
    instant = micros(at)
    midnight = wall_day(at)
    day = micros(midnight)
    month = micros(midnight.replace(day=1))
    year = micros(midnight.replace(month=1, day=1))
    exact = f"{column} >= ?"
    values = (instant,)
    if instant != day:
        exact = (
            f"{exact} AND {column} >= "
            f"CASE {precision} WHEN 'instant' THEN CAST(? AS BIGINT) ELSE ? END"
        )
        values = (min(instant, day), instant, day)
    # Months and years have an index of their own, so that a search for the last hour does not scan
    # the year.
    longer = (
        f"{precision} IN ('month', 'year') AND {column} >= ? "
        f"AND {column} >= CASE {precision} WHEN 'month' THEN CAST(? AS BIGINT) ELSE ? END"
    )
    return f"({exact} OR {longer})", (*values, year, month, year)


def holds(start: str, end: str, at: datetime) -> Condition:
    """Return the condition that a row of ``fact`` holds at a time.

    Args:
        start: The column ``holds_from`` with its table's alias, such as ``f.holds_from``. A plus
            sign, ``+f.holds_from``, keeps SQLite from using an index on it.
        end: The column ``holds_until`` in the same form.
        at: Reference time, aware, in the person's zone.
    """
    valid_precision = start.lstrip("+").replace("holds_from", "valid_precision")
    invalid_precision = end.lstrip("+").replace("holds_until", "invalid_precision")
    begun, begun_values = begins(start, valid_precision, "<=", at)
    open_, open_values = begins(end, invalid_precision, ">", at)
    believed_until = end.replace("holds_until", "believed_until")
    return f"{begun} AND {open_} AND {believed_until} > ?", (
        *begun_values,
        *open_values,
        micros(at),
    )
