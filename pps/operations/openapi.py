"""The OpenAPI document (3.1) of operations: input and output of ``POST /v1/{operation}``."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, cast

from pps.core.version import __version__
from pps.operations.references import for_tools
from pps.operations.table import AnyOperation

PROBLEMS = {
    400: "An argument is unknown or breaks a bound.",
    401: "The token is missing or wrong.",
    403: "The token may not do this.",
    404: "There is no such operation for this token, or nothing of that id or name.",
    409: "Somebody else changed it first; try again.",
    413: "The body is larger than 16 MiB.",
    415: "The body is not application/json.",
    500: "Something went wrong inside PPS; its log has the details.",
    503: "A store or model is away, or too much waits; try again later.",
}
"""What each status of an error means."""

_PROBLEM: dict[str, Any] = {
    "type": "object",
    "description": "Problem details (RFC 9457).",
    "properties": {
        "type": {"type": "string"},
        "title": {"type": "string"},
        "status": {"type": "integer"},
        "detail": {"type": "string", "description": "What happened and what to do next."},
        "code": {"type": "string", "description": "A stable word for programs, such as not_found."},
        "field": {"type": "string", "description": "The argument that is wrong."},
        "problems": {
            "type": "array",
            "description": "All that is wrong with the arguments, one entry each.",
            "items": {
                "type": "object",
                "properties": {
                    "path": {"type": "string", "description": "Dotted path of the argument."},
                    "problem": {"type": "string", "description": "What is wrong with it."},
                    "value": {"type": "string", "description": "The value, where it may be told."},
                    "remedy": {"type": "string", "description": "What to do."},
                },
                "required": ["path", "problem"],
            },
        },
        "noun": {"type": "string", "description": "Of not_found: what was looked for."},
        "values": {
            "type": "array",
            "items": {"type": "string"},
            "description": "Of not_found: what was asked for.",
        },
        "remedy": {"type": "string", "description": "Of not_found: where to look."},
        "name": {"type": "string", "description": "Of unknown_entity: the name."},
        "path": {
            "type": "string",
            "description": "Of a changed thing: the argument that is outdated.",
        },
        "problem": {"type": "string", "description": "Of a changed thing: how it is now."},
        "retryable": {
            "type": "boolean",
            "description": "The same call may succeed later without any change.",
        },
    },
    "required": ["type", "title", "status", "detail", "code", "retryable"],
}

_NULL = {"type": "null"}


def document(operations: Iterable[AnyOperation]) -> dict[str, Any]:
    """Return the document of operations; of a long one the progress too, as lines of JSON."""
    schemas: dict[str, Any] = {"Problem": _PROBLEM}
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "PPS",
            "version": __version__,
            "description": "A private, lasting memory for AI agents. A token says whose memory it "
            "is, and what of this may be asked: the document asked for with it lists exactly that.",
        },
        "security": [{"token": []}],
        "paths": {
            f"/v1/{operation.name}": {"post": _path(operation, schemas)} for operation in operations
        },
        "components": {
            "schemas": schemas,
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
            "responses": {
                str(status): {
                    "description": description,
                    "content": {
                        "application/problem+json": {
                            "schema": {"$ref": "#/components/schemas/Problem"}
                        }
                    },
                }
                for status, description in PROBLEMS.items()
            },
        },
    }


def _with_nulls(schema: Any) -> Any:
    """Return a schema of arguments in which null is allowed, since ``Operation.parse`` skips it."""
    if isinstance(schema, list):
        return [_with_nulls(item) for item in cast("list[Any]", schema)]
    if not isinstance(schema, dict):
        return schema
    nullable: dict[str, Any] = {}
    for key, value in cast("dict[str, Any]", schema).items():
        if key in ("properties", "$defs"):
            nullable[key] = {name: _with_nulls(item) for name, item in value.items()}
        else:
            is_literal = key in ("default", "enum", "const", "required")
            nullable[key] = value if is_literal else _with_nulls(value)
    for name, property_schema in nullable.get("properties", {}).items():
        if name not in nullable.get("required", ()):
            nullable["properties"][name] = {"anyOf": [property_schema, _NULL]}
    additional = nullable.get("additionalProperties")
    if isinstance(additional, dict):
        nullable["additionalProperties"] = {"anyOf": [additional, _NULL]}
    return nullable


def _path(operation: AnyOperation, schemas: dict[str, Any]) -> dict[str, Any]:
    refs = f"#/components/schemas/{operation.name}.{{model}}"
    bodies = {
        "input": _with_nulls(operation.input_schema(refs)),
        "output": operation.output_schema(refs),
    }
    for name, schema in bodies.items():
        schemas.update(
            (f"{operation.name}.{model}", definition)
            for model, definition in schema.pop("$defs", {}).items()
        )
        schemas[f"{operation.name}.{name}"] = schema
    answer, taken = (
        {"schema": {"$ref": f"#/components/schemas/{operation.name}.{name}"}}
        for name in ("output", "input")
    )
    text: dict[str, Any] = {"schema": {"type": "string"}}
    kinds = {"application/json": answer, "text/plain": text, "application/x-ndjson": text}
    return {
        "operationId": operation.name,
        "summary": operation.title,
        "description": for_tools(operation.description),
        "tags": [operation.toolset],
        "requestBody": {"required": True, "content": {"application/json": taken}},
        "responses": {
            "200": {"description": "Result.", "content": kinds},
            **{str(status): {"$ref": f"#/components/responses/{status}"} for status in PROBLEMS},
        },
    }
