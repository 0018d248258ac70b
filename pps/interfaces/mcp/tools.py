"""Operations as tools of the protocol: as few words as a model needs."""

from __future__ import annotations

from typing import Any, cast

import mcp_types as types

from pps.operations.table import AnyOperation

_UNREAD = ("minLength", "maxLength", "minItems", "maxItems", "pattern", "additionalProperties")
_SET_UP = ("command", "model")
"""Ways to read a text that need a setting: they are taken where it is set, and the setting is what holds by itself."""


def tool(operation: AnyOperation) -> types.Tool:
    """Return an operation as a tool. Bounds of lengths are left to the refusal, and outputs to the answer itself."""
    schema = _lean(operation.input_schema())
    return types.Tool(
        name=operation.name,
        title=operation.title,
        description=operation.description,
        input_schema={**schema, "additionalProperties": False},
        annotations=types.ToolAnnotations(
            read_only_hint=operation.hints.read_only,
            destructive_hint=operation.hints.destructive,
            idempotent_hint=operation.hints.idempotent,
            open_world_hint=False,
        ),
    )


def _lean(schema: Any) -> Any:
    if isinstance(schema, list):
        return [_lean(one) for one in cast("list[Any]", schema)]
    if not isinstance(schema, dict):
        return schema
    said = cast("dict[str, Any]", schema)
    found: dict[str, Any] = {}
    for key, value in said.items():
        if key in ("properties", "$defs"):
            found[key] = {name: _lean(one) for name, one in value.items()}
        elif key == "enum":
            found[key] = [one for one in value if one not in _SET_UP]
        elif key not in _UNREAD and not (key == "description" and "properties" in said):
            found[key] = value if key == "default" else _lean(value)
    return found
