"""On which line of a TOML text something stands, which no parser of the standard library tells."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Sequence
from typing import cast

_HEADER = re.compile(r"\s*(\[\[?)\s*(.+?)\s*\]\]?\s*(?:#.*)?$")
_KEY = re.compile(
    r"""\s*((?:[\w-]+|"(?:\\.|[^"\\])*"|'[^']*')(?:\s*\.\s*(?:[\w-]+|"(?:\\.|[^"\\])*"|'[^']*'))*)\s*="""
)
_TOKEN = re.compile(r"""\"{3}|'{3}|"(?:\\.|[^"\\])*"|'[^']*'|\#.*|[\[\]{}]""")


_AT_LINE = re.compile(r"\(at line (\d+)")


def syntax_mistake(text: str, error: tomllib.TOMLDecodeError) -> tuple[int, str]:
    """Return the line of a mistake in TOML, the last one where the text ends too early, and what is wrong there."""
    at = _AT_LINE.search(str(error))
    line = int(at[1]) if at else len(text.splitlines()) or 1
    return line, str(error).partition(" (at ")[0]


class TomlLines:
    """The lines of a TOML text's tables and keys; the text is valid."""

    def __init__(self, text: str) -> None:
        self._text = text.splitlines()
        self._lines: dict[tuple[str, ...], int] = {(): 1}
        self._count: dict[tuple[str, ...], int] = {}
        table: tuple[str, ...] = ()
        depth = 0
        quote = ""
        for number, line in enumerate(self._text, 1):
            value = line
            if not depth and not quote:
                if header := _HEADER.match(line):
                    table = self._table(_path(header[2]), header[1] == "[[")
                    self._lines.setdefault(table, number)
                    continue
                if key := _KEY.match(line):
                    self._lines[(*table, *_path(key[1]))] = number
                    value = line[key.end() :]
            depth, quote = _open(value, depth, quote)

    def line(self, path: Sequence[str], hint: str = "") -> int:
        """Return the line of what is nearest to a path.

        Of a value over many lines, the first that has ``hint``.
        """
        known = next(
            tuple(path[:n]) for n in range(len(path), -1, -1) if tuple(path[:n]) in self._lines
        )
        first = self._lines[known]
        if hint:
            end = min(
                (line for line in self._lines.values() if line > first), default=len(self._text) + 1
            )
            return next((n for n in range(first, end) if hint in self._text[n - 1]), first)
        return first

    def _table(self, path: tuple[str, ...], is_item: bool) -> tuple[str, ...]:
        """Return a table's path with the number of each list's item that it lies in."""
        table: tuple[str, ...] = ()
        for part in path[:-1] if is_item else path:
            table = (*table, part)
            if table in self._count:
                table = (*table, str(self._count[table] - 1))
        if not is_item:
            return table
        table = (*table, path[-1])
        self._count[table] = self._count.get(table, 0) + 1
        return (*table, str(self._count[table] - 1))


def _path(key: str) -> tuple[str, ...]:
    tree: object = tomllib.loads(f"{key} = 0")
    path: list[str] = []
    while isinstance(tree, dict):
        ((part, tree),) = cast("dict[str, object]", tree).items()
        path.append(part)
    return tuple(path)


def _open(value: str, depth: int, quote: str) -> tuple[int, str]:
    """Return how many brackets, and which triple quote, are open after a line of a value."""
    at = 0
    if quote:
        end = value.find(quote)
        if end < 0:
            return depth, quote
        at = end + 3
    for token in _TOKEN.finditer(value, at):
        if token[0] in ('"""', "'''"):
            return _open(value[token.end() :], depth, token[0])
        depth += (token[0] in "[{") - (token[0] in "]}")
    return depth, ""
