"""Translates the journal's statements from SQLite to PostgreSQL: parameters and a few phrases."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

from pps.core.sql import Value

_SQLITE_FUNCTIONS: Final = (
    "json_each|json_extract|json_type|json_array_length|json_group_array|instr"
)
_PHRASES: Final = (
    # Functions that the schema makes (`postgresql.sql`).
    (re.compile(rf"\b({_SQLITE_FUNCTIONS})\("), r"sqlite_\1("),
    (re.compile(r"\bgroup_concat\("), "string_agg("),
    (re.compile(r"\bIS \?"), "IS NOT DISTINCT FROM ?"),
    # Hints for SQLite's planner: the order of a join, and an index not to use.
    (re.compile(r"\bCROSS JOIN (\w+ AS \w+ ON)\b"), r"JOIN \1"),
    (re.compile(r"(?<![\w)?])\+(?=[A-Za-z_])"), ""),
)
_CONFLICT = re.compile(r"\bON CONFLICT \((?!grp\b)([^)]*)\)")
_PARAMETER = re.compile(r"'(?:[^']|'')*'|\?(\d*)|(?<![:\w]):([a-z_]\w*)")
_WITH_ROWS = re.compile(r"\s*(?:SELECT|WITH)\b|.*\bRETURNING\b", re.DOTALL)
_TOUCHED = re.compile(r"\s*(?:DELETE FROM|UPDATE|INSERT INTO) (\w+)")


@dataclass(frozen=True, slots=True)
class Statement:
    """A statement with parameters ``$1``, ``$2``, ….

    Attributes:
        text: The SQL for PostgreSQL.
        parameters: For each parameter, the index (from 0) or the name of its value.
        has_rows: Whether it returns rows.
        table: The table whose rows it changes; empty if it changes none.
    """

    text: str
    parameters: tuple[int | str, ...]
    has_rows: bool
    table: str

    def arguments(self, values: Sequence[Value] | Mapping[str, Value]) -> list[Any]:
        """Return the values in the order of the parameters."""
        if isinstance(values, Mapping):
            return [values[str(name)] for name in self.parameters]
        return [values[int(place)] for place in self.parameters]


@lru_cache(maxsize=2_048)
def translated(statement: str) -> Statement:
    """Translate a statement of the journal for PostgreSQL. Parameters in quotes stay text."""
    text = statement
    for phrase, replacement in _PHRASES:
        text = phrase.sub(replacement, text)
    text = _CONFLICT.sub(_with_group, text)
    parameters = list[int | str]()
    by_name = dict[int | str, int]()

    def number(match: re.Match[str]) -> str:
        place, name = match.groups()
        if place is None and name is None:
            return match[0]
        wanted: int | str = name or (int(place) - 1 if place else len(parameters))
        if name is None and not place:
            parameters.append(wanted)
            return f"${len(parameters)}"
        if wanted not in by_name:
            parameters.append(wanted)
            by_name[wanted] = len(parameters)
        return f"${by_name[wanted]}"

    text = _PARAMETER.sub(number, text)
    touched = _TOUCHED.match(text)
    return Statement(
        text, tuple(parameters), bool(_WITH_ROWS.match(text)), touched[1] if touched else ""
    )


def _with_group(match: re.Match[str]) -> str:
    """Add the group to the columns of ``ON CONFLICT``: it is part of every key."""
    columns = match[1]
    return match[0] if re.search(r"\bgrp\b", columns) else f"ON CONFLICT (grp, {columns})"
