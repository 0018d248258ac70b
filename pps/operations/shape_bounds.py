"""Bounds of a call's lists and objects, as its schema states them, checked before validation.

A model makes an error for each wrong item and each unknown name, and says only at the end that a list is too long.
Three million of them take seconds and gigabytes, so what is too long is refused before the model reads it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import Any, cast

from pydantic import BaseModel

from pps.core import json_bounds
from pps.core.errors import InvalidRequest
from pps.core.values import JSON

_MAX_UNKNOWN = 20
"""Unknown names in one object that are left to the model, which names the nearest known ones."""
_NAMED = 3
_MAX_NAME_SHOWN = 100


@dataclass(frozen=True)
class Shape:
    """What a JSON schema says about the sizes of a value; alternatives (``anyOf``) are merged to the widest.

    Attributes:
        schemas: The alternatives, without references.
        definitions: What references point to.
    """

    schemas: tuple[Mapping[str, Any], ...]
    definitions: Mapping[str, Any] = field(repr=False)

    @cached_property
    def max_items(self) -> int:
        stated = [schema.get("maxItems") for schema in self.schemas if _takes(schema, "array")]
        if not stated or None in stated:
            return json_bounds.MAX_ITEMS
        return max(cast("list[int]", stated))

    @cached_property
    def item(self) -> Shape:
        items = [schema["items"] for schema in self.schemas if "items" in schema]
        prefixes = [item for schema in self.schemas for item in schema.get("prefixItems", ())]
        return shape_of_schemas([*items, *prefixes], self.definitions)

    @cached_property
    def properties(self) -> Mapping[str, Shape]:
        alternatives: dict[str, list[Any]] = {}
        for schema in self.schemas:
            for name, inner in schema.get("properties", {}).items():
                alternatives.setdefault(name, []).append(inner)
        return {
            name: shape_of_schemas(inner, self.definitions) for name, inner in alternatives.items()
        }

    @cached_property
    def is_closed(self) -> bool:
        """Whether only the names in ``properties`` are known."""
        objects = [schema for schema in self.schemas if _takes(schema, "object")]
        return bool(objects) and all(
            schema.get("additionalProperties") is False for schema in objects
        )

    @cached_property
    def any_name(self) -> Shape:
        """The values of names that are not in ``properties``."""
        inner = [schema.get("additionalProperties") for schema in self.schemas]
        return shape_of_schemas(
            [schema for schema in inner if isinstance(schema, dict)], self.definitions
        )


def shape_of_schemas(schemas: Iterable[Any], definitions: Mapping[str, Any]) -> Shape:
    """Return the shape of some alternatives, with references and ``anyOf`` followed."""
    plain: list[Mapping[str, Any]] = []
    pending: list[Any] = list(schemas)
    followed: set[str] = set()
    while pending:
        value = pending.pop(0)
        if not isinstance(value, Mapping):
            continue
        schema = cast("Mapping[str, Any]", value)
        reference = schema.get("$ref")
        if isinstance(reference, str):
            name = reference.rpartition("/")[2]
            if name not in followed:
                followed.add(name)
                pending.append(definitions.get(name))
        alternatives = [
            *schema.get("anyOf", ()),
            *schema.get("oneOf", ()),
            *schema.get("allOf", ()),
        ]
        pending.extend(alternatives)
        if reference is None and not alternatives:
            plain.append(schema)
    return Shape(tuple(plain), definitions)


@lru_cache(maxsize=1_024)
def shape_of(model: type[BaseModel]) -> Shape:
    """Return the shape of a model's JSON."""
    schema = model.model_json_schema()
    return shape_of_schemas([schema], schema.get("$defs", {}))


def check_sizes(arguments: Mapping[str, JSON], model: type[BaseModel]) -> None:
    """Raise InvalidRequest at the first list or object that is larger than the model takes.

    The whole is bounded too: see ``json_bounds.check_values``.
    """
    json_bounds.check_values(arguments)
    pending: list[tuple[str, Any, Shape]] = [("", arguments, shape_of(model))]
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
        shown = ", ".join(repr(_shown(name)) for name in unknown[:_NAMED])
        raise InvalidRequest(place, f"{len(unknown):,} unknown arguments: {shown}, …")


def _is_container(value: object) -> bool:
    return isinstance(value, Mapping | list)


def _takes(schema: Mapping[str, Any], kind: str) -> bool:
    return schema.get("type", kind) == kind


def _shown(name: str) -> str:
    return name if len(name) <= _MAX_NAME_SHOWN else f"{name[:_MAX_NAME_SHOWN]}…"
