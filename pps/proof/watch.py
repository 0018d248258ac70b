"""Sees a leak: marks that were planted in each entity, and every id that each owns."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import fields, is_dataclass
from typing import Any, cast

from pps.isolation.guarded_values import as_mapping

_UUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_MAX_DEPTH = 16


class Watch:
    """Who owns which mark, id and group. ``leaks`` tells what of others a value holds."""

    def __init__(self) -> None:
        self._marks: dict[str, str] = {}
        self._owners: dict[str, str] = {}

    def mark(self, owner: str, *texts: str) -> None:
        """Remember texts that only this owner may ever see: planted words, and its group."""
        self._marks.update(dict.fromkeys(texts, owner))

    def own(self, owner: str, *ids: str) -> None:
        """Remember ids that are this owner's."""
        self._owners.update(dict.fromkeys(ids, owner))

    def leaks(self, viewer: str, value: object, known: AbstractSet[str] = frozenset()) -> list[str]:
        """Return what of others' the value holds, without quoting it.

        Ids that the caller passed in are no news.
        """
        leaks: list[str] = []
        for text in _texts(value, 0):
            leaks += [
                f"a mark planted in {owner}"
                for mark, owner in self._marks.items()
                if owner != viewer and mark in text
            ]
            for uuid in _UUID.findall(text):
                owner = self._owners.get(uuid, viewer)
                if owner != viewer and uuid not in known:
                    leaks.append(f"an id that {owner} owns")
        return leaks


def _texts(value: object, depth: int) -> Iterator[str]:
    """Yield every text in a value: fields, keys, items, attributes of a library's objects."""
    if isinstance(value, str):
        yield value
    elif value is None or isinstance(value, (bool, int, float, bytes)) or depth > _MAX_DEPTH:
        return
    elif isinstance(value, BaseException):
        yield str(value)
    elif is_dataclass(value):
        for field in fields(value):
            yield from _texts(getattr(value, field.name), depth + 1)
    else:
        yield from _of_compound(value, depth)


def _of_compound(value: object, depth: int) -> Iterator[str]:
    mapping = _mapping(value)
    if mapping is not None:
        for key, item in mapping.items():
            yield str(key)
            yield from _texts(item, depth + 1)
    elif isinstance(value, (list, tuple, AbstractSet)):
        for item in cast("list[object]", value):
            yield from _texts(item, depth + 1)


def _mapping(value: object) -> Mapping[str, Any] | None:
    dump = getattr(value, "model_dump", None)  # Graphiti's objects
    return cast("Mapping[str, Any]", dump()) if callable(dump) else as_mapping(value)
