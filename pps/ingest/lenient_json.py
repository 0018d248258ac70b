"""JSON of other programs: a field that is missing or of another type reads as empty."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, tzinfo
from typing import cast

from pps.core.errors import InvalidRequest
from pps.core.time import parse
from pps.core.values import JSON


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
        sequences = (_sequence(self.fields.get(name)) for name in names)
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


def _sequence(value: object) -> Sequence[JSON]:
    return cast("Sequence[JSON]", value) if isinstance(value, list) else ()
