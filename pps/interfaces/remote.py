"""An entity's memory, asked of the running server: what ``pps.connect`` lends."""

from __future__ import annotations

import asyncio
import inspect
import json
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from pydantic import TypeAdapter
from pydantic_core import to_jsonable_python

from pps.core.values import JSON
from pps.memory import Memory
from pps.operations.catalog import operations_for
from pps.operations.table import AnyOperation
from pps.server import Link


class RemoteMemory:
    """One entity's memory on the server: every operation of an entity is a method.

    It takes ``Memory``'s arguments, without those that say how long to wait.
    What it returns has the fields of the operation's output, in ``docs/reference.md``; errors are those of ``Memory``.
    """

    def __init__(self, link: Link, name: str) -> None:
        self._link = link
        self._name = name

    def __getattr__(self, name: str) -> Callable[..., Awaitable[Any]]:
        """Return the operation of a name as a method."""
        operation = operations_for("entity").get(name)
        if operation is None:
            raise AttributeError(
                f"a memory has no {name!r}; it has {', '.join(operations_for('entity'))}"
            )

        async def ask(*given: Any, **named: Any) -> Any:
            arguments = _arguments(operation, given, named)
            operation.parse(arguments)  # what is wrong is said without asking
            answer = await asyncio.to_thread(self._link.call, name, self._name, arguments)
            data = answer["data"][operation.items] if operation.items else answer["data"]
            return TypeAdapter[Any](operation.output).validate_json(json.dumps(data))

        return ask


def _arguments(
    operation: AnyOperation, given: tuple[Any, ...], named: Mapping[str, Any]
) -> dict[str, JSON]:
    """Return what a method of ``Memory`` is called with, as the operation takes it."""
    if given:
        method = getattr(Memory, operation.name, None)
        is_alike = inspect.isfunction(method)
        order = (
            list(inspect.signature(method).parameters)[1:]
            if is_alike
            else list(operation.input.model_fields)
        )
        if len(given) > len(order):
            raise TypeError(
                f"{operation.name}() takes {len(order)} positional arguments, not {len(given)}"
            )
        named = {**dict(zip(order, given, strict=False)), **named}
    return to_jsonable_python({name: value for name, value in named.items() if value is not None})
