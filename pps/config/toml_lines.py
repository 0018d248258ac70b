"""Line numbers of tables and keys in TOML texts, which the standard parser does not report."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Sequence
from typing import cast

_HEADER = re.compile(r"\s*(\[\[?)\s*(.+?)\s*\]\]?\s*(?:#.*)?$")
_PART = r"""(?:[\w-]+|"(?:\\.|[^"\\])*"|'[^']*')"""
_KEY = re.compile(rf"\s*({_PART}(?:\s*\.\s*{_PART})*)\s*=")
_TOKEN = re.compile(r"""\"{3}|'{3}|"(?:\\.|[^"\\])*"|'[^']*'|\#.*|[\[\]{}]""")


_AT_LINE = re.compile(r"\(at line (\d+)")


def syntax_mistake(text: str, error: tomllib.TOMLDecodeError) -> tuple[int, str]:
    """Return line and message of a TOML syntax error; the last line if the text ends too early."""
    at = _AT_LINE.search(str(error))
    line = int(at[1]) if at else len(text.splitlines()) or 1
    return line, str(error).partition(" (at ")[0]


class TomlLines:
    """Line numbers of the tables and keys of a valid TOML text."""

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
                header = _HEADER.match(line)
                if header:
                    table = self._table(_path(header[2]), header[1] == "[[")
                    self._lines.setdefault(table, number)
                    continue
                key = _KEY.match(line)
                if key:
                    self._lines[(*table, *_path(key[1]))] = number
                    value = line[key.end() :]
            depth, quote = _open(value, depth, quote)

    def line(self, path: Sequence[str], hint: str = "") -> int:
        """Return the line of a path, or of its nearest ancestor that has one.

        For a value over several lines, return the first line that contains ``hint``.
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
        """Return a table's path with the index of each array's item that it is part of."""
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
    """Return the number of open brackets and the open triple quote after a line of a value."""
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
