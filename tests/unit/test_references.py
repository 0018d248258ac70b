"""What an operation's texts refer to exists, and each interface spells it in its own terms."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any, cast

import pytest

from pps.interfaces.cli.command_table import describe_operations
from pps.interfaces.mcp.tools import tool
from pps.operations.catalog import OPERATIONS
from pps.operations.openapi import _path
from pps.operations.references import for_tools, names_in, spelled
from pps.operations.table import AnyOperation

_WORD = re.compile(r"(?<![\w{./'-])([a-z]+(?:_[a-z]+)+)(?![\w}=])")
NAMES = frozenset(operation.name for operation in OPERATIONS)


def descriptions(value: Any) -> Iterator[str]:
    """Yield the descriptions of a JSON schema."""
    if isinstance(value, dict):
        for key, inner in cast("dict[str, Any]", value).items():
            if key == "description" and isinstance(inner, str):
                yield inner
            else:
                yield from descriptions(inner)
    elif isinstance(value, list):
        for inner in cast("list[Any]", value):
            yield from descriptions(inner)


def texts(operation: AnyOperation) -> list[str]:
    schema = operation.input.model_json_schema()
    schema.pop("description", None)  # the class's own docstring: no client gets it
    return [operation.description, *descriptions(schema)]


@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda operation: operation.name)
def test_a_reference_names_a_field_of_the_input_or_an_operation(operation: AnyOperation) -> None:
    known = NAMES | set(operation.input.model_fields)
    assert [name for text in texts(operation) for name in names_in(text) if name not in known] == []


@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda operation: operation.name)
def test_an_operation_is_named_by_a_reference_so_that_help_can_name_the_command(
    operation: AnyOperation,
) -> None:
    plain = [word for text in texts(operation) for word in _WORD.findall(text)]
    assert [word for word in plain if word in NAMES] == []


def test_no_interface_shows_a_brace() -> None:
    shown = [text for operation in OPERATIONS for text in descriptions(tool(operation))]
    shown += [text for operation in OPERATIONS for text in descriptions(_path(operation, {}))]
    for command in describe_operations(OPERATIONS):
        shown += [command.help, *(parameter.help for parameter in command.parameters)]
    assert len(shown) > len(OPERATIONS)
    assert [text for text in shown if names_in(text)] == []


def test_each_interface_spells_a_reference_in_its_own_terms() -> None:
    text = 'Pass {cursor}; {dry_run=false} does it; see {anchor_get}. As JSON: {"nodes": []}.'
    assert for_tools(text) == (
        "Pass 'cursor'; dry_run=false does it; see 'anchor_get'. As JSON: {\"nodes\": []}."
    )
    assert spelled(text, lambda name, value: f"<{name}{value}>").startswith(
        "Pass <cursor>; <dry_run=false>"
    )
    rows = {command.operation: command for command in describe_operations(OPERATIONS)}
    assert "call again with --yes. `pps merges undo` separates" in rows["merge_nodes"].help
    assert json.dumps(
        tool(next(o for o in OPERATIONS if o.name == "merge_nodes"))["description"]
    ).count("'undo_merge' separates")
