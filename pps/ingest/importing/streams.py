"""Reading JSON a piece at a time: one line, or one element of a list; memory grows with the piece, not the file."""

from __future__ import annotations

import codecs
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import cast

from pps.core.values import JSON
from pps.ingest.importing.items import Unreadable
from pps.ingest.importing.sources import Bytes, Source

MAX_LINE = 64 * 1024**2
"""Most bytes of one line, and most characters of one element of a list."""
MAX_DOCUMENT = 256 * 1024**2
"""Most bytes of a JSON file that must be read whole: one that is not a list."""

_CHUNK = 1024**2
_SPACE = " \t\r\n\ufeff"
_SPACES = re.compile(f"[{_SPACE}]*")


@dataclass(frozen=True, slots=True)
class Value:
    """A piece and where it stands."""

    value: JSON
    where: str


def lines(source: Source) -> Iterator[Value | Unreadable]:
    """Yield the JSON value of each line that is not blank; what is none is reported with file and line."""
    with source.opened() as file:
        number = 0
        while raw := file.readline(MAX_LINE + 1):
            number += 1
            where = f"{source.name}:{number}"
            if len(raw) > MAX_LINE:
                yield Unreadable(where, f"is longer than {MAX_LINE // 1024**2} MiB")
                while raw and not raw.endswith(b"\n"):
                    raw = file.readline(_CHUNK)
            elif raw.strip():
                yield _line(raw, where)


def elements(source: Source) -> Iterator[Value | Unreadable]:
    """Yield the elements of a file that is one JSON list; after a broken one nothing can be read of it."""
    with source.opened() as file:
        found = _Elements(file)
        number = 0
        try:
            found.begin()
            while found.more():
                number += 1
                yield Value(found.value(), f"{source.name}[{number - 1}]")
        except _BrokenError as error:
            yield Unreadable(f"{source.name}[{max(0, number - 1)}]", f"{error}; what follows it was not read")


def conversations(source: Source) -> Iterator[Value | Unreadable]:
    """Yield the elements of a file that is a JSON list, or the one object that it is."""
    with source.opened() as file:
        head = file.read(_CHUNK).decode("utf-8", "replace").lstrip(_SPACE)
    if head.startswith("["):
        yield from elements(source)
    else:
        yield document(source)


def document(source: Source) -> Value | Unreadable:
    """Return the JSON value of a whole file."""
    if source.size > MAX_DOCUMENT:
        return Unreadable(source.name, f"is over {MAX_DOCUMENT // 1024**2} MiB and no list; convert it to JSON lines")
    with source.opened() as file:
        raw = file.read(MAX_DOCUMENT + 1)
    if len(raw) > MAX_DOCUMENT:
        return Unreadable(source.name, f"is over {MAX_DOCUMENT // 1024**2} MiB and no list; convert it to JSON lines")
    return _line(raw, source.name)


def _line(raw: bytes, where: str) -> Value | Unreadable:
    try:
        return Value(cast("JSON", json.loads(raw.decode("utf-8-sig"))), where)
    except UnicodeDecodeError:
        return Unreadable(where, "is not UTF-8")
    except json.JSONDecodeError as error:
        return Unreadable(where, f"is not JSON (line {error.lineno}, column {error.colno})")
    except (RecursionError, ValueError):
        return Unreadable(where, "is not JSON: nested too deeply, or a number that is too long")


class _BrokenError(Exception):
    """The list ends or breaks before its end."""


class _Elements:
    """A window on the text of a list that grows until it holds one whole element."""

    def __init__(self, file: Bytes) -> None:
        self._file = file
        self._decoder = json.JSONDecoder()
        self._utf8 = codecs.getincrementaldecoder("utf-8")()
        self._text = ""
        self._at = 0
        self._is_whole = False

    def begin(self) -> None:
        if self._next() != "[":
            raise _BrokenError("is no JSON list")
        self._at += 1

    def more(self) -> bool:
        sign = self._next()
        if sign == ",":
            self._at += 1
            sign = self._next()
        if not sign:
            raise _BrokenError("ends in the middle of the list")
        return sign != "]"

    def value(self) -> JSON:
        wanted = _CHUNK
        while True:
            try:
                value, end = self._decoder.raw_decode(self._text, self._at)
            except json.JSONDecodeError as error:
                if self._is_whole or len(self._text) - self._at > MAX_LINE:
                    raise _BrokenError(f"is not JSON or over 64 MiB ({error.msg})") from None
            except (RecursionError, ValueError):
                raise _BrokenError("is nested too deeply, or has a number that is too long") from None
            else:
                self._at = end
                return cast("JSON", value)
            self._grow(wanted)
            wanted *= 2  # so that what is read again stays in proportion to the element

    def _next(self) -> str:
        """Return the next sign that is no white space; an empty string at the end."""
        while True:
            self._at = _SPACES.match(self._text, self._at).end()  # pyright: ignore[reportOptionalMemberAccess] - always
            if self._at < len(self._text):
                return self._text[self._at]
            if self._is_whole:
                return ""
            self._grow(_CHUNK)

    def _grow(self, size: int) -> None:
        raw = self._file.read(size)
        self._is_whole = not raw
        try:
            self._text = self._text[self._at :] + self._utf8.decode(raw, final=not raw)
        except UnicodeDecodeError:
            raise _BrokenError("is not UTF-8") from None
        self._at = 0
