"""A JSON schema's types, choices, names and sizes for a value, with references followed."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any, cast

from pps.core import json_bounds
from pps.core.text import snake

if TYPE_CHECKING:
    from pydantic import BaseModel

    from pps.core.values import JSON

SHORT = "x-short"
"""Mark of an object's schema: the name of the field that a plain text stands for."""
ALSO = "x-also"
"""Mark of a property's schema: other names that the argument is taken under."""
INSTANT = "x-instant"
"""Mark of a property's schema: the text is a time.

A command line reads one without a zone as local.
"""
MARKS = (SHORT, ALSO, INSTANT)
"""Keys of schemas that only PPS reads; they are left out of what clients are shown."""

_PYTHON_TYPES: Mapping[type, str] = {
    str: "string",
    bool: "boolean",
    int: "integer",
    float: "number",
    type(None): "null",
}
_LONGEST_NAME = 200
_BETWEEN_WORDS = re.compile(r"[- ]")


@dataclass(frozen=True)
class Shape:
    """What a JSON schema says about a value; alternatives (``anyOf``) are merged to the widest.

    Attributes:
        schemas: The alternatives, without references.
        definitions: What references point to.
    """

    schemas: tuple[Mapping[str, Any], ...]
    definitions: Mapping[str, Any] = field(repr=False)

    @cached_property
    def types(self) -> frozenset[str]:
        """The names of JSON types that are taken; none where anything is."""
        stated = [_types_of(schema) for schema in self.schemas]
        if not all(stated):
            return frozenset()
        return frozenset(name for names in stated for name in names)

    @cached_property
    def choices(self) -> tuple[str, ...] | None:
        """The texts that are taken; None where any text is."""
        choices: list[str] = []
        for schema in self.schemas:
            if "string" not in _types_of(schema):
                continue
            stated = _choices_of(schema)
            if stated is None:
                return None
            choices.extend(value for value in stated if isinstance(value, str))
        return tuple(choices)

    def choice(self, text: str) -> str | None:
        """Return the choice that a text names in any case; None where it names none, or several."""
        if self.choices is None or text in self.choices:
            return text
        named = self._plain_choices.get(plain_name(text))
        # Capitals after a digit read as words of their own: NEO4J.
        return named or self._plain_choices.get(plain_name(text.lower()))

    @cached_property
    def short(self) -> str:
        """The field of an object that a plain text stands for; empty where there is none."""
        return next((str(schema[SHORT]) for schema in self.schemas if SHORT in schema), "")

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

    def property_name(self, name: str) -> str | None:
        """Return the property that a name means, whichever way its words are joined.

        None for none.
        """
        if name in self.properties:
            return name
        return self._plain_names.get(plain_name(name))

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

    @cached_property
    def _plain_names(self) -> Mapping[str, str]:
        names = [(name, name) for name in self.properties]
        for schema in self.schemas:
            for name, inner in schema.get("properties", {}).items():
                names.extend((other, name) for other in inner.get(ALSO, ()))
        return _unambiguous(names)

    @cached_property
    def _plain_choices(self) -> Mapping[str, str]:
        return _unambiguous((choice, choice) for choice in self.choices or ())


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


def shape_of_schema(schema: Mapping[str, Any]) -> Shape:
    """Return the shape of a whole JSON schema with its own ``$defs``."""
    return shape_of_schemas([schema], schema.get("$defs", {}))


@lru_cache(maxsize=1_024)
def shape_of(model: type[BaseModel]) -> Shape:
    """Return the shape of a model's JSON."""
    return shape_of_schema(model.model_json_schema())


def plain_name(name: str) -> str:
    """Return a name in snake_case: ``dueDate``, ``due-date`` and ``DUE_DATE`` are ``due_date``.

    A name that is longer than any of a schema is returned as it is: on one of megabytes the work
    would hold up others.
    """
    if len(name) > _LONGEST_NAME:
        return name
    return snake(_BETWEEN_WORDS.sub("_", name))


def known_name(name: str, known: Iterable[str]) -> str:
    """Return the known name that a name spells, in any case.

    The name itself where it spells none, or several.
    """
    names = list(known)
    return (
        name
        if name in names
        else _unambiguous((name, name) for name in names).get(plain_name(name), name)
    )


def _unambiguous(names: Iterable[tuple[str, str]]) -> Mapping[str, str]:
    """Return plain name → name, without plain names that stand for several names, or for none."""
    unambiguous: dict[str, str] = {}
    doubtful = {""}
    for written, name in names:
        key = plain_name(written)
        if unambiguous.setdefault(key, name) != name:
            doubtful.add(key)
    return {key: name for key, name in unambiguous.items() if key not in doubtful}


def _types_of(schema: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the JSON types of an alternative; none where it takes any."""
    stated = schema.get("type")
    if isinstance(stated, str):
        return (stated,)
    if isinstance(stated, list):
        return tuple(cast("list[str]", stated))
    choices = _choices_of(schema)
    if choices is None:
        return ()
    return tuple(dict.fromkeys(_PYTHON_TYPES.get(type(value), "object") for value in choices))


def _choices_of(schema: Mapping[str, Any]) -> list[JSON] | None:
    if "const" in schema:
        return [schema["const"]]
    return cast("list[JSON] | None", schema.get("enum"))


def _takes(schema: Mapping[str, Any], kind: str) -> bool:
    return schema.get("type", kind) == kind
