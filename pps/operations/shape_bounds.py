"""Bounds of a call's lists and objects, as its schema states them, checked before validation.

A model makes an error for each wrong item and each unknown name, and says only at the end that a
list is too long. Three million of them take seconds and gigabytes, so what is too long is refused
before the model reads it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from pps.core import json_bounds
from pps.core.errors import InvalidRequest
from pps.core.json_shapes import Shape
from pps.core.values import JSON

_MAX_UNKNOWN = 20
"""Unknown names in one object that are left to the model, which names the nearest known ones."""
_NAMED = 3
_MAX_NAME_SHOWN = 100


def check_sizes(arguments: Mapping[str, JSON], arguments_shape: Shape) -> None:
    """Raise InvalidRequest at the first list or object that is larger than the schema takes.

    The whole is bounded too: see ``json_bounds.check_values``.
    """
    json_bounds.check_values(arguments)
    pending: list[tuple[str, Any, Shape]] = [("", arguments, arguments_shape)]
    while pending:
        path, value, shape = pending.pop()
        if isinstance(value, Mapping):
            named = cast("Mapping[str, Any]", value)
            _check_names(path, named, shape)
            pending.extend(
                (
                    f"{path}.{name}" if path else name,
                    inner,
                    shape.properties.get(name, shape.any_name),
                )
                for name, inner in named.items()
                if _is_container(inner)
            )
        elif isinstance(value, list):
            items = cast("list[Any]", value)
            if len(items) > shape.max_items:
                raise InvalidRequest(
                    _shown(path), f"give at most {shape.max_items:,} items, not {len(items):,}"
                )
            pending.extend(
                (f"{path}.{number}", inner, shape.item)
                for number, inner in enumerate(items)
                if _is_container(inner)
            )


def _check_names(path: str, value: Mapping[str, Any], shape: Shape) -> None:
    place = _shown(path) if path else "arguments"
    if not shape.is_closed:
        if len(value) > json_bounds.MAX_NAMES:
            raise InvalidRequest(
                place, f"give at most {json_bounds.MAX_NAMES:,} names, not {len(value):,}"
            )
        return
    unknown = [name for name in value if name not in shape.properties]
    if len(unknown) > _MAX_UNKNOWN:
        names_text = ", ".join(repr(_shown(name)) for name in unknown[:_NAMED])
        raise InvalidRequest(place, f"{len(unknown):,} unknown arguments: {names_text}, …")


def _is_container(value: object) -> bool:
    return isinstance(value, Mapping | list)


def _shown(name: str) -> str:
    return name if len(name) <= _MAX_NAME_SHOWN else f"{name[:_MAX_NAME_SHOWN]}…"
