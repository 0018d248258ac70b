"""Shared by the inputs of operations: types of values, and marks for the command line.

Inputs are strict: an unknown argument, a value of another type or a bound that is broken is
refused. What clients spell otherwise (a list as JSON text, a number as text, camelCase) is read
before: ``core.argument_reading``. No input can name an entity: it comes from the connection.

A mark is the form of an input's field on a command line, in the field's JSON schema under ``cli``.
A field that says nothing is an option of its name (``limit`` → ``--limit N``); a list may be given
more than once.
"""

from __future__ import annotations

from dataclasses import fields
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import Field, StringConstraints

from pps.core import bounds
from pps.core.ids import ID_PATTERN
from pps.core.json_shapes import ALSO
from pps.ingest.given_input import Input, Name, Tag


def argument(
    *,
    path: bool = False,
    stdin: bool = False,
    rest: bool = False,
    default: Any = None,
    help: str = "",
) -> dict[str, Any]:
    """Return the mark of an argument by position.

    Args:
        path: It names a file or folder of this machine, and is sent as an absolute path.
        stdin: ``-`` reads it from stdin.
        rest: It is all the words that follow, joined by spaces: a text that need not be quoted.
        default: What is sent when it is left out, where that differs from the input's own.
        help: Its help, where that differs from the field's description.
    """
    return _mark("argument", path=path, stdin=stdin, rest=rest, default=default, help=help)


def option(flag: str, *, inverts: bool = False, value: Any = None, **more: Any) -> dict[str, Any]:
    """Return the mark of an option that is called otherwise than its field, or that says more.

    Args:
        flag: Such as ``--at``; with ``/--no-…`` behind it a switch both ways.
        inverts: A switch that sets the field to false: ``--yes`` for ``dry_run``.
        value: A switch that sets the field to this.
        more: ``path``, ``stdin``, ``default`` and ``help``, as ``argument`` takes them; ``rest``,
            where the words that follow the arguments may be given in its place.
    """
    return _mark("option", flag=flag, inverts=inverts, value=value, **more)


def json_file(flag: str, about: str = "") -> dict[str, Any]:
    """Return the mark of a field that a JSON file has, with the other fields of the flag."""
    return _mark("file", flag=flag, about=about)


def json_text(flag: str) -> dict[str, Any]:
    """Return the mark of an option that is written as JSON."""
    return _mark("json", flag=flag)


def unoffered(default: Any = None) -> dict[str, Any]:
    """Return the mark of a field that no command line offers; ``default`` is what it sends."""
    return _mark("none", default=default)


def also(*names: str) -> dict[str, Any]:
    """Return the mark of a field with other accepted names, such as those of a design document."""
    return {ALSO: list(names)}


def _mark(kind: str, **setting: Any) -> dict[str, Any]:
    mark = {
        name: value
        for name, value in setting.items()
        if value or (name == "default" and value is not None)
    }
    return {"cli": {"kind": kind, **mark}}


Id = Annotated[str, Field(pattern=ID_PATTERN)]
"""Of a turn, node or fact, whole or its first characters, 8 at least, as a pack shows them."""
Label = Annotated[str, StringConstraints(max_length=200)]
Labels = Annotated[tuple[Label, ...], Field(max_length=50)]
Ids = Annotated[tuple[Id, ...], Field(min_length=1, max_length=100)]
Names = Annotated[tuple[Name, ...], Field(min_length=1, max_length=100)]
"""Ids, their first characters, or titles."""
Tags = Annotated[tuple[Tag, ...], Field(max_length=bounds.MAX_TAGS)]
Question = Annotated[str, StringConstraints(min_length=1, max_length=8_000)]
Title = Annotated[str, StringConstraints(min_length=1, max_length=bounds.MAX_NAME)]
Content = Annotated[str, StringConstraints(min_length=1, max_length=bounds.MAX_CONTENT)]
TAG_OPTION = option("--tag")
AT_OPTION = option("--at")
YES_OPTION = option("--yes/--dry-run", inverts=True)
TEXT_ARGUMENT = argument(stdin=True, rest=True)


def options(request: Input, *without: str) -> Any:
    """Return an input's fields as the keyword arguments of what carries it out, but for some."""
    return {
        name: getattr(request, name) for name in type(request).model_fields if name not in without
    }


def fields_of(value: Any) -> dict[str, Any]:
    """Return a dataclass's fields as they are."""
    return {field.name: getattr(value, field.name) for field in fields(value)}


class SourcedText(Input):
    """Input with a text to store; its field ``source`` says where the text came from."""

    if TYPE_CHECKING:
        source: str


class Nothing(Input):
    """No arguments."""
