"""JSON of other programs, read a line or a list's element at a time.

Memory grows with the piece, not the file. A field that is missing or of another type reads as
empty.
"""

from __future__ import annotations

import codecs
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, tzinfo
from typing import cast

from pps.core.errors import InvalidRequest
from pps.core.time import parse
from pps.core.values import JSON
from pps.ingest.importing.items import Unreadable
from pps.ingest.importing.source_files import Bytes, Source

MAX_LINE = 64 * 1024**2
"""Most bytes of one line, and most characters of one element of a list."""
MAX_DOCUMENT = 256 * 1024**2
"""Most bytes of a JSON file that must be read whole: one that is not a list."""
LINES = (".jsonl", ".ndjson")
_CHUNK = 1024**2
_SPACE = " \t\r\n\ufeff"
_SPACES = re.compile(f"[{_SPACE}]*")
_DEEP = "is not JSON: nested too deeply, or a number that is too long"


@dataclass(frozen=True, slots=True)
class JSONEntry:
    """A JSON object."""

    fields: Mapping[str, JSON]

    @staticmethod
    def of(value: object) -> JSONEntry:
        return JSONEntry(cast("Mapping[str, JSON]", value) if isinstance(value, dict) else {})

    @staticmethod
    def loaded(text: str | bytes) -> JSONEntry:
        try:
            return JSONEntry.of(json.loads(text))
        except (ValueError, RecursionError):
            return JSONEntry({})

    def __bool__(self) -> bool:
        return bool(self.fields)

    def get(self, name: str) -> JSON:
        return self.fields.get(name)

    def has(self, *names: str) -> bool:
        return self.fields.keys() >= set(names)

    def text(self, *names: str) -> str:
        """Return the first of the named fields that is a text and not empty."""
        texts = (string(self.fields.get(name)) for name in names)
        return next(filter(None, texts), "")

    def entry(self, name: str) -> JSONEntry:
        return JSONEntry.of(self.fields.get(name))

    def values(self, *names: str) -> Sequence[JSON]:
        """Return the first of the named fields that is a list and not empty."""
        sequences = (sequence(self.fields.get(name)) for name in names)
        return next(filter(None, sequences), ())

    def entries(self, *names: str) -> list[JSONEntry]:
        return [JSONEntry.of(value) for value in self.values(*names)]

    def texts(self) -> dict[str, str]:
        return {name: value for name, value in self.fields.items() if isinstance(value, str)}

    def moment(self, *names: str) -> datetime | None:
        moments = (moment(self.fields.get(name)) for name in names)
        return next(filter(None, moments), None)


def moment(value: JSON, zone: tzinfo | None = UTC) -> datetime | None:
    """Return the time of a number of seconds or of a text; None for other values.

    A text without an offset is in ``zone``; with None it stays naive. Programs mostly write UTC,
    people their own zone.
    """
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        try:
            return datetime.fromtimestamp(value, UTC)
        except (ValueError, OverflowError, OSError):
            return None
    if not isinstance(value, str) or not value.strip():
        return None
    try:
        return parse(value)
    except InvalidRequest:
        pass
    try:
        return datetime.fromisoformat(value.strip()).replace(tzinfo=zone)
    except ValueError:
        return None


def string(value: object) -> str:
    """Return a text, or "" for another value; a lone surrogate becomes U+FFFD."""
    return (
        value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
        if isinstance(value, str)
        else ""
    )


def sequence(value: object) -> Sequence[JSON]:
    """Return a list, or an empty one for another value."""
    return cast("Sequence[JSON]", value) if isinstance(value, list) else ()


@dataclass(frozen=True, slots=True)
class StreamObject:
    """A JSON object and where it stands."""

    entry: JSONEntry
    where: str


def objects(source: Source) -> Iterator[StreamObject | Unreadable]:
    """Yield the objects of a file: one a line, the elements of one list, or a single object.

    Other values are reported as ``Unreadable``.
    """
    if source.suffix in LINES or _has_lines(source):
        for line in raw_lines(source):
            yield line if isinstance(line, Unreadable) else _loaded(*line)
    elif first_sign(source) == "[":
        yield from _elements(source)
    else:
        yield _document(source)


def raw_lines(source: Source) -> Iterator[tuple[bytes, str] | Unreadable]:
    """Yield each line that is not blank, with file and number."""
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
                yield raw, where


def first_sign(source: Source) -> str:
    with source.opened() as file:
        return file.read(_CHUNK).decode("utf-8", "replace").lstrip(_SPACE)[:1]


def _has_lines(source: Source) -> bool:
    """Tell whether a file has an object on its first line and another below, under any name."""
    with source.opened() as file:
        first = file.readline(MAX_LINE)
        second = file.readline(_CHUNK)
        while second and not second.strip():
            second = file.readline(_CHUNK)
    if not (first.lstrip(b"\xef\xbb\xbf \t").startswith(b"{") and second.lstrip().startswith(b"{")):
        return False
    return bool(JSONEntry.loaded(first.removeprefix(b"\xef\xbb\xbf")))


def _elements(source: Source) -> Iterator[StreamObject | Unreadable]:
    """Yield the elements of a file that is one JSON list; a broken one ends the reading."""
    with source.opened() as file:
        elements = _Elements(file)
        number = 0
        try:
            elements.begin()
            while elements.more():
                number += 1
                yield _object(elements.value(), f"{source.name}[{number - 1}]")
        except _BrokenError as error:
            yield Unreadable(
                f"{source.name}[{max(0, number - 1)}]", f"{error}; what follows it was not read"
            )


def _document(source: Source) -> StreamObject | Unreadable:
    with source.opened() as file:
        raw = b"" if source.size > MAX_DOCUMENT else file.read(MAX_DOCUMENT + 1)
    if max(source.size, len(raw)) > MAX_DOCUMENT:
        return Unreadable(
            source.name,
            f"is over {MAX_DOCUMENT // 1024**2} MiB and no list; convert it to JSON lines",
        )
    return _loaded(raw, source.name)


def _loaded(raw: bytes, where: str) -> StreamObject | Unreadable:
    try:
        return _object(json.loads(raw.decode("utf-8-sig")), where)
    except UnicodeDecodeError:
        return Unreadable(where, "is not UTF-8")
    except json.JSONDecodeError as error:
        return Unreadable(where, f"is not JSON (line {error.lineno}, column {error.colno})")
    except (RecursionError, ValueError):
        return Unreadable(where, _DEEP)


def _object(value: object, where: str) -> StreamObject | Unreadable:
    entry = JSONEntry.of(value)
    return (
        StreamObject(entry, where)
        if entry or value == {}
        else Unreadable(where, "is no JSON object")
    )


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

    def value(self) -> object:
        wanted = _CHUNK
        while True:
            try:
                value, self._at = self._decoder.raw_decode(self._text, self._at)
            except json.JSONDecodeError as error:
                if self._is_whole or len(self._text) - self._at > MAX_LINE:
                    raise _BrokenError(f"is not JSON or over 64 MiB ({error.msg})") from None
            except (RecursionError, ValueError):
                raise _BrokenError(_DEEP) from None
            else:
                return value
            self._grow(wanted)
            wanted *= 2  # so that the text parsed again stays in proportion to the element

    def _next(self) -> str:
        """Return the next sign that is no white space; an empty string at the end."""
        while True:
            spaces = _SPACES.match(self._text, self._at)
            self._at = spaces.end() if spaces else self._at
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
