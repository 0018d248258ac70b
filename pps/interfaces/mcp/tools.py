"""Operations as tools of the protocol: as few words as a model needs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from pps.operations.references import for_tools
from pps.operations.table import AnyOperation

_UNREAD = (
    "minLength",
    "maxLength",
    "minItems",
    "maxItems",
    "pattern",
    "additionalProperties",
    "propertyNames",
)
_SET_UP = ("command", "model")
"""Ways to read a text that need a setting.

A schema leaves them out, since the setting applies by itself.
"""


def tool(operation: AnyOperation) -> dict[str, Any]:
    """Return an operation as the protocol's ``Tool``, as JSON.

    Bounds of lengths are left to the refusal, and outputs to the answer itself.

    Its schema has no ``$ref``, ``$defs``, ``anyOf`` or ``const``: some clients refuse a tool that
    has one.
    """
    schema = operation.input_schema()
    definitions = schema.pop("$defs", {})
    schema.pop("description", None)
    schema = _lean(_without_references(schema, definitions, ()))
    return {
        "name": operation.name,
        "title": operation.title,
        "description": for_tools(operation.description),
        "inputSchema": {**schema, "additionalProperties": False},
        "annotations": {
            "readOnlyHint": operation.hints.read_only,
            "destructiveHint": operation.hints.destructive,
            "idempotentHint": operation.hints.idempotent,
            "openWorldHint": False,
        },
    }


def _without_references(
    schema: Any, definitions: Mapping[str, Any], within: tuple[str, ...]
) -> Any:
    """Return a schema with each reference replaced by what it points to.

    One to what it lies in says nothing.
    """
    if isinstance(schema, list):
        return [
            _without_references(item, definitions, within) for item in cast("list[Any]", schema)
        ]
    if not isinstance(schema, dict):
        return schema
    resolved: dict[str, Any] = {}
    for key, value in cast("dict[str, Any]", schema).items():
        if key == "properties":
            resolved[key] = {
                name: _without_references(item, definitions, within) for name, item in value.items()
            }
        elif key in ("default", "enum", "required"):
            resolved[key] = value
        elif key != "$ref":
            resolved[key] = _without_references(value, definitions, within)
    if "$ref" in schema:
        name = str(cast("dict[str, Any]", schema)["$ref"]).rpartition("/")[2]
        if name not in within:
            target = _without_references(definitions.get(name, {}), definitions, (*within, name))
            target.pop("description", None)  # of the model, for whoever reads the code
            resolved = {**target, **resolved}
    return _without_alternatives(resolved)


def _without_alternatives(schema: dict[str, Any]) -> dict[str, Any]:
    """Return a schema whose alternatives are the widest of them.

    What is read by its schema takes the others too.
    """
    if "const" in schema:
        schema = {"enum": [schema["const"]], **schema}
        del schema["const"]
    alternatives: list[dict[str, Any]] = schema.pop("anyOf", [])
    known = [
        alternative for alternative in alternatives if alternative.get("type") not in (None, "null")
    ]
    if not known or len(known) < len(
        [alternative for alternative in alternatives if alternative != {"type": "null"}]
    ):
        return schema
    of_one_type = len({alternative["type"] for alternative in known}) == 1
    if of_one_type and all("enum" in alternative for alternative in known):
        choices = list(
            dict.fromkeys(value for alternative in known for value in alternative["enum"])
        )
        return {"type": known[0]["type"], "enum": choices, **schema}
    lists = [alternative for alternative in known if alternative["type"] == "array"]
    return {**(known[0] if of_one_type else lists[0]), **schema} if of_one_type or lists else schema


def _lean(schema: Any) -> Any:
    if isinstance(schema, list):
        return [_lean(item) for item in cast("list[Any]", schema)]
    if not isinstance(schema, dict):
        return schema
    members = cast("dict[str, Any]", schema)
    lean: dict[str, Any] = {}
    for key, value in members.items():
        if key == "properties":
            lean[key] = {name: _lean(item) for name, item in value.items()}
        elif key == "enum":
            lean[key] = [item for item in value if item not in _SET_UP]
        elif key not in _UNREAD:
            lean[key] = value if key == "default" else _lean(value)
    return lean
