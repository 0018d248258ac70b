"""Errors carry data: what is wrong where, rendered once by each interface; no code takes a message apart."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import pps
from pps.core.errors import Changed, InvalidRequest, NotFound, PPSError, Problem, UnknownEntity
from pps.interfaces.cli.command_table import CommandParameter
from pps.interfaces.cli.output import render_error
from pps.interfaces.http.problems import problem
from pps.server.link import error_from

ID = "1b4e28ba-2fa1-5d2b-883f-0016d3cca427"
ERRORS: dict[str, PPSError] = {
    "one problem": InvalidRequest(
        "occurred_at", "is no time", value="soon", remedy="write 2026-01-05"
    ),
    "several problems": InvalidRequest(
        "tags", "too many", more=[Problem("nodes.0.name", "is empty")]
    ),
    "not found": NotFound("anchor", values=("rye", "bread"), remedy="anchors_list shows them"),
    "no entity": UnknownEntity("no entity 'ana'", name="ana"),
    "changed": Changed("the record is at version 3", path="records[0].expected_version"),
}


@pytest.mark.parametrize("name", ERRORS)
def test_an_error_is_the_same_on_the_other_side_of_the_wire(name: str) -> None:
    error = ERRORS[name]
    again = error_from(problem(error, "test"))
    assert type(again) is type(error)
    assert again.message == error.message
    for attribute in ("problems", "noun", "values", "remedy", "name", "path", "problem"):
        assert getattr(again, attribute, None) == getattr(error, attribute, None)


def test_a_message_is_rendered_from_all_problems() -> None:
    error = InvalidRequest("tags", "too many", remedy="give 20", more=[Problem("", "is empty")])
    assert error.message == str(error) == "tags: too many; give 20; is empty"
    assert (error.field, error.problem) == ("tags", "too many")


def test_an_error_about_a_part_names_the_whole() -> None:
    error = InvalidRequest("due", "is no day", more=[Problem("title", "is missing")])
    within = error.within("records[2]")
    assert [item.path for item in within.problems] == ["records[2].due", "records[2].title"]


def test_every_text_of_an_error_can_be_changed_at_once() -> None:
    error = NotFound("id", values=("/home/ana/x",), remedy="look in /home/ana")
    error.map_texts(lambda text: text.replace("/home/ana", "the folder"))
    assert error.message == "id not found: 'the folder/x'; look in the folder"


def test_a_command_names_what_was_typed_in_place_of_fields() -> None:
    parameters = [
        CommandParameter("occurred_at", "option", "--at", flag="--at"),
        CommandParameter("ids", "argument", "ID", many=True),
    ]
    at = render_error(
        InvalidRequest("occurred_at", "is no time"), parameters, {"occurred_at": "soon"}
    )
    assert at == "--at 'soon': is no time"
    second = render_error(InvalidRequest("ids[1]", "is no id"), parameters, {"ids": [ID, "rye"]})
    assert second == "ID 'rye': is no id"
    unknown = render_error(InvalidRequest("Task.due", "is no day"), parameters, {})
    assert unknown == "Task.due: is no day"
    missing = render_error(NotFound("id", values=(ID,)), parameters, {"ids": [ID]})
    assert (
        missing
        == f"ID '{ID}': not found; `pps recall`, `pps timeline` and others show ids in brackets"
    )


def test_no_code_takes_a_message_apart() -> None:
    """A message may be shown, quoted in another or folded to one line, but never searched, cut or compared."""
    taking = {
        "partition",
        "rpartition",
        "removeprefix",
        "removesuffix",
        "startswith",
        "endswith",
        "replace",
    }
    searching = {"match", "fullmatch", "search", "sub", "findall"}
    places: list[str] = []
    root = Path(pps.__file__).parent
    for path in root.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
                continue
            cuts = node.func.attr in taking and _is_message(node.func.value)
            searches = node.func.attr in searching and any(map(_is_message, node.args))
            if cuts or searches:
                places.append(f"{path.relative_to(root)}:{node.lineno}")
    assert not places


def _is_message(node: ast.expr) -> bool:
    """Tell whether an expression is the message of an error: ``error.message``."""
    return (
        isinstance(node, ast.Attribute)
        and node.attr == "message"
        and isinstance(node.value, ast.Name)
        and "error" in node.value.id
    )
