"""One table of all that can be asked of a memory or a project. Every surface translates it; none adds to it."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Generic, Literal, TypeAlias, TypeVar, cast

from pydantic import TypeAdapter, ValidationError

from pps.config import problems
from pps.core.errors import InvalidRequest
from pps.core.values import JSON
from pps.operations.inputs import Input

Audience: TypeAlias = Literal["entity", "router", "runner"]
"""Whose tool it is: an entity's (it acts on its memory), a router's or a runner's (on projects)."""

Subject = TypeVar("Subject")
In = TypeVar("In", bound=Input)
Out = TypeVar("Out")


@dataclass(frozen=True, slots=True)
class Hints:
    """What a careful client wants to know before it calls.

    Attributes:
        read_only: Nothing changes (what a session was shown is noted).
        destructive: Something may be erased or replaced.
        idempotent: The same call again changes nothing more.
    """

    read_only: bool = False
    destructive: bool = False
    idempotent: bool = False


@dataclass(frozen=True, slots=True)
class Answer:
    """A verb's result: JSON data of its output's schema, and the same as text to read."""

    data: dict[str, JSON]
    text: str


@dataclass(frozen=True, slots=True)
class Verb(Generic[Subject, In, Out]):
    """One thing that can be asked: of a memory, or of the projects that a router reaches."""

    name: str
    title: str
    description: str
    input: type[In]
    output: type[Out]
    act: Callable[[Subject, In], Awaitable[Out]]
    text: Callable[[Out], str]
    hints: Hints
    audience: Audience = "entity"

    def parse(self, arguments: Mapping[str, JSON]) -> In:
        """Return the checked input; InvalidRequest names each field that is wrong, never its value.

        A null for an argument that may be left out counts as left out: calling models send it.
        """
        known = self.input.model_fields
        named = {name: value for name, value in arguments.items() if value is not None or name not in known}
        try:
            return self.input.model_validate_json(json.dumps({k: _without_nulls(v) for k, v in named.items()}))
        except RecursionError:
            raise InvalidRequest("arguments", "are nested too deeply") from None
        except ValidationError as error:
            raise _refusal(error, self.input) from None

    async def answer(self, subject: Subject, given: In) -> Answer:
        """Let it be done; raises whatever the memory raises."""
        value = await self.act(subject, given)
        data = _adapter(self.output).dump_python(value, mode="json", exclude_none=True)
        return Answer(cast("dict[str, JSON]", data), self.text(value))

    def input_schema(self) -> dict[str, JSON]:
        """Return the JSON schema of the arguments."""
        return self.input.model_json_schema()

    def output_schema(self) -> dict[str, JSON]:
        """Return the JSON schema of the answer's data."""
        return _adapter(self.output).json_schema()


AnyVerb: TypeAlias = Verb[Any, Any, Any]


@lru_cache
def _adapter(output: type[Out]) -> TypeAdapter[Out]:
    return TypeAdapter(output)


def _without_nulls(value: JSON) -> JSON:
    """Return nested arguments without the names that are null; a user's own attributes stay as they are."""
    if isinstance(value, list):
        return [_without_nulls(one) for one in value]
    if not isinstance(value, dict):
        return value
    kept = {name: one for name, one in value.items() if one is not None}
    return {name: one if name == "attributes" else _without_nulls(one) for name, one in kept.items()}


def _refusal(error: ValidationError, model: type[Input]) -> InvalidRequest:
    found = problems(error, model)
    said = [
        "unknown argument" + (f", did you mean '{one.near}'?" if one.near else "") if one.unknown else one.text
        for one in found
    ]
    rest = "; ".join(f"{one.path}: {text}" for one, text in zip(found[1:4], said[1:4], strict=True))
    return InvalidRequest(found[0].path or "arguments", said[0] + (f"; {rest}" if rest else ""))
