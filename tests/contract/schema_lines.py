"""A JSON schema as lines that a diff can compare: the path of each value, and its type and bounds in one text."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, TypeAlias

Schema: TypeAlias = Mapping[str, Any]
_INNER = ("[]", ".*")
"""Ends of the paths of lists' items and mappings' values, whose types stand in the line of the list or mapping."""
_BOUNDS = (
    ("minimum", "maximum"),
    ("minLength", "maxLength"),
    ("minItems", "maxItems"),
)


def schema_lines(schema: Schema, root: str = "") -> dict[str, str]:
    """Return path → type of every value in a schema of an object.

    ``nodes[].name`` is a field of the objects of a list, ``channels.*.hits`` a field of the values of a mapping,
    ``items[](fact).text`` a field of the variant whose ``type`` is ``fact``. Names of models in ``$defs`` are not
    part of it. A model that holds itself is followed once.
    """
    lines: dict[str, str] = {}
    for path, text in _walk(schema, root, schema.get("$defs", {}), ()):
        known = lines.get(path)
        lines[path] = text if known in (None, text) else f"{known} or {text}"
    return {
        path: text for path, text in lines.items() if path != root and not path.endswith(_INNER)
    }


def _walk(
    schema: Schema, path: str, definitions: Mapping[str, Schema], followed: tuple[str, ...]
) -> Iterator[tuple[str, str]]:
    variants, names = _variants(schema, definitions, followed)
    yield path, _type(variants, definitions, names)
    for variant in variants:
        label = _variant_label(variant) if len(variants) > 1 else ""
        yield from _fields(variant, path + label, definitions, names)


def _fields(
    schema: Schema, path: str, definitions: Mapping[str, Schema], followed: tuple[str, ...]
) -> Iterator[tuple[str, str]]:
    required = schema.get("required", ())
    for name, field in schema.get("properties", {}).items():
        below = f"{path}.{name}" if path else name
        for inner_path, text in _walk(field, below, definitions, followed):
            is_field = inner_path == below
            yield inner_path, text + _usage(field, name in required) if is_field else text
    values = schema.get("additionalProperties")
    if isinstance(values, Mapping) and values:
        yield from _walk(values, f"{path}.*" if path else "*", definitions, followed)
    items = schema.get("items")
    if isinstance(items, Mapping) and items:
        yield from _walk(items, f"{path}[]", definitions, followed)
    for number, item in enumerate(schema.get("prefixItems", ())):
        yield from _walk(item, f"{path}[{number}]", definitions, followed)


def _variants(
    schema: Schema, definitions: Mapping[str, Schema], followed: tuple[str, ...]
) -> tuple[list[Schema], tuple[str, ...]]:
    """Return what a value may be, with references resolved, and the names of the models on the way here."""
    if "$ref" in schema:
        name = str(schema["$ref"]).rpartition("/")[2]
        if name in followed:
            return [{"type": "as above"}], followed
        return _variants(definitions[name], definitions, (*followed, name))
    choices = schema.get("anyOf") or schema.get("oneOf")
    if not choices:
        return [schema], followed
    found: list[Schema] = []
    names = followed
    for choice in choices:
        inner, inner_names = _variants(choice, definitions, followed)
        found += inner
        names = (*names, *inner_names[len(followed) :])
    return found, names


def _variant_label(schema: Schema) -> str:
    kind = schema.get("properties", {}).get("type", {}).get("const")
    return f"({kind})" if kind else ""


def _type(
    variants: list[Schema], definitions: Mapping[str, Schema], followed: tuple[str, ...]
) -> str:
    texts = (_type_of_one(variant, definitions, followed) for variant in variants)
    return " | ".join(dict.fromkeys(texts))


def _type_of_one(
    schema: Schema, definitions: Mapping[str, Schema], followed: tuple[str, ...]
) -> str:
    if "const" in schema:
        return json.dumps(schema["const"])
    if "enum" in schema:
        return " | ".join(json.dumps(value, ensure_ascii=False) for value in schema["enum"])
    kind = schema.get("type", "any")
    text = str(schema.get("format", kind)) if kind == "string" else str(kind)
    for least, most in _BOUNDS:
        if least in schema or most in schema:
            text += f"({schema.get(least, '')}..{schema.get(most, '')})"
    for key, sign in (("exclusiveMinimum", ">"), ("exclusiveMaximum", "<")):
        if key in schema:
            text += f"({sign} {schema[key]})"
    inner = schema.get("items") if kind == "array" else schema.get("additionalProperties")
    if isinstance(inner, Mapping) and inner:
        variants, names = _variants(inner, definitions, followed)
        text += f" of {_type(variants, definitions, names)}"
    return text + (f" ~ {schema['pattern']}" if "pattern" in schema else "")


def _usage(field: Schema, is_required: bool) -> str:
    if is_required:
        return ", required"
    if field.get("default") is None:
        return ""
    return f", default {json.dumps(field['default'], ensure_ascii=False, sort_keys=True)}"
