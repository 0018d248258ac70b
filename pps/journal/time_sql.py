"""SQL conditions that compare stored times with a reference time: instants with it, dates with its wall clock.

A column of times stands beside one of precisions (``core.time``); a date is kept as its midnight in
UTC. The reference time is aware, in the person's zone: what the clock on the wall shows there is
what dates are compared with.
"""

from __future__ import annotations

from datetime import datetime
from typing import Literal, TypeAlias

from pps.core.time import micros, wall, wall_day

Comparison: TypeAlias = Literal["<", "<=", ">", ">="]
Condition: TypeAlias = tuple[str, tuple[int, ...]]
"""A literal of SQL, and the values of its parameters."""


def begins(column: str, precision: str, comparison: Comparison, at: datetime) -> Condition:
    """Return the condition that a time begins before or after a reference time.

    Args:
        column: Of microseconds since 1970; an index on it is used for the first part of the
            condition.
        precision: Column of its precision.
        comparison: Between the column and the reference time.
        at: Aware, in the person's zone.
    """
    instant, clock = micros(at), micros(wall(at))
    if instant == clock:
        return f"{column} {comparison} ?", (instant,)
    widest = max(instant, clock) if comparison[0] == "<" else min(instant, clock)
    exact = (
        f"{column} {comparison} CASE {precision} WHEN 'instant' THEN CAST(? AS BIGINT) ELSE ? END"
    )
    return f"({column} {comparison} ? AND {exact})", (widest, instant, clock)


def ends_after(column: str, precision: str, at: datetime) -> Condition:
    """Return the condition that a time is not over: a day, month or year lasts to its end."""
    instant, day = micros(at), wall_day(at)
    month, year = micros(day.replace(day=1)), micros(day.replace(month=1, day=1))
    exact, values = f"{column} >= ?", (instant,)
    if instant != micros(day):
        exact = f"{exact} AND {column} >= CASE {precision} WHEN 'instant' THEN CAST(? AS BIGINT) ELSE ? END"
        values = (min(instant, micros(day)), instant, micros(day))
    # Months and years have an index of their own, so that a search for the last hour does not walk
    # through the year.
    longer = (
        f"{precision} IN ('month', 'year') AND {column} >= ? "
        f"AND {column} >= CASE {precision} WHEN 'month' THEN CAST(? AS BIGINT) ELSE ? END"
    )
    return f"({exact} OR {longer})", (*values, year, month, year)


def holds(start: str, end: str, at: datetime) -> Condition:
    """Return the condition that a row of ``fact`` holds at a time.

    Args:
        start: The column ``holds_from``, with its table's alias; ``+f.holds_from`` keeps SQLite off
            an index of ends.
        end: The column ``holds_until``, written likewise.
        at: Aware, in the person's zone.
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
