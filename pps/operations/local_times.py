"""An answer's times on the person's clock, for the text that they read.

Its data keeps them in UTC.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass, replace
from datetime import UTC, datetime, tzinfo
from typing import Any, TypeVar, cast

from pps.core.time import CoarseTime

Value = TypeVar("Value")


def on_clock(value: Value, zone: tzinfo) -> Value:
    """Return a value whose instants in UTC, at any depth, are those of a zone.

    Dates and other zones stay.
    """
    return value if zone is UTC else cast("Value", _moved(value, zone))


def _moved(value: Any, zone: tzinfo) -> Any:
    if isinstance(value, datetime):
        if isinstance(value, CoarseTime) or value.tzinfo is not UTC:
            return value
        try:
            return value.astimezone(zone)
        except OverflowError:  # at the ends of the calendar
            return value
    if isinstance(value, (str, int, float, bool)) or value is None:
        return value
    if isinstance(value, tuple | list):
        items = cast("tuple[Any, ...] | list[Any]", value)
        moved = [_moved(item, zone) for item in items]
        if all(new is old for new, old in zip(moved, items, strict=True)):
            return items
        return moved if isinstance(items, list) else tuple(moved)
    if isinstance(value, Mapping):
        pairs = cast("Mapping[Any, Any]", value)
        return {key: _moved(item, zone) for key, item in pairs.items()}
    if is_dataclass(value) and not isinstance(value, type):
        changed: dict[str, Any] = {}
        for field in fields(value):
            old = getattr(value, field.name)
            moved = _moved(old, zone) if field.init else old
            if moved is not old:
                changed[field.name] = moved
        return replace(value, **changed) if changed else value
    return value
