"""Shared by the inputs of operations: types of values, marks for the command line, no arguments.

Inputs are strict: an unknown argument, a value of another type or a bound that is broken is
refused. What clients spell otherwise (a list as JSON text, a number as text, camelCase) is read
before: ``core.argument_reading``. No input can name an entity: it comes from the connection.
"""

from __future__ import annotations

from dataclasses import fields
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import Field, StringConstraints

from pps.core import bounds
from pps.core.ids import ID_PATTERN
from pps.ingest.given_input import Input, Name, Tag
from pps.operations.command_line import argument, option

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
