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
    What it returns has the fields of the operation's output, in ``docs/reference.md``; errors are
    those of ``Memory``.
    """

    def __init__(self, link: Link, name: str) -> None:
        self._link = link
        self._name = name

    def _operations(self) -> Mapping[str, AnyOperation]:
        return operations_for("entity")

    def __getattr__(self, name: str) -> Callable[..., Awaitable[Any]]:
        """Return the operation of a name as a method."""
        operations = self._operations()
        operation = operations.get(name)
        if operation is None:
            raise AttributeError(f"a memory has no {name!r}; it has {', '.join(operations)}")

        async def ask(*positional: Any, **named: Any) -> Any:
            arguments = _arguments(operation, positional, named)
            operation.parse(arguments)  # what is wrong is said without asking
            answer = await asyncio.to_thread(self._link.call, name, self._name, arguments)
            data = answer["data"][operation.items] if operation.items else answer["data"]
            return TypeAdapter[Any](operation.output).validate_json(json.dumps(data))

        return ask


class RemoteMember(RemoteMemory):
    """A squad member's memory on the server, with the pool beside it.

    Beside the operations of an entity it has those of a member (``memory_store``,
    ``memory_query``, ``squad_inbox``, …) and the methods of ``AgentMemory``.
    """

    def _operations(self) -> Mapping[str, AnyOperation]:
        return {**operations_for("entity"), **operations_for("member")}

    async def add_experience(self, content: str, type: str = "", *, domain: str = "") -> Any:
        """Keep what happened, 1 to 2,000 characters, in the member's own memory.

        Return what was kept.
        """
        named = (("type", type), ("domain", domain))
        fields = {name: value for name, value in named if value}
        return await self.memory_store(content=content, type="Experience", fields=fields)

    async def get_beliefs(
        self, domain: str = "", *, min_confidence: float = 0.0, include_shared: bool = True
    ) -> list[Any]:
        """Return active beliefs by falling confidence: its own, then others' of the pool."""
        page = await self.record_list(kinds=["Belief"], limit=200)
        own = [(belief, belief.fields) for belief in page.items if belief.state == "active"]
        beliefs = [
            belief
            for belief, fields in own
            if float(fields.get("confidence") or 0.5) >= min_confidence
            and domain.casefold() in ("", str(fields.get("domain") or "").casefold())
        ]
        beliefs.sort(key=lambda belief: float(belief.fields.get("confidence") or 0.5), reverse=True)
        if not include_shared:
            return beliefs
        pool = await self.squad_pool(kinds=["Belief"], limit=200)
        others = [
            belief
            for belief in pool.shared
            if belief.shared_by != pool.me
            and belief.state == "active"
            and belief.confidence >= min_confidence
            and domain.casefold() in ("", belief.domain.casefold())
        ]
        return beliefs + sorted(others, key=lambda belief: belief.confidence, reverse=True)

    async def store(self, content: str, **knowledge: Any) -> Any:
        """Store a record as ``memory_store`` does: shared unless it is private or too uncertain."""
        return await self.memory_store(content=content, **knowledge)

    async def share(self, id: str) -> Any:
        """Copy a record of its own into the pool."""
        return await self.memory_share(id=id)

    async def reflect(self) -> Any:
        """Return what there is to reflect on."""
        return await self.memory_reflect()


def _arguments(
    operation: AnyOperation, positional: tuple[Any, ...], named: Mapping[str, Any]
) -> dict[str, JSON]:
    """Return the arguments of a method of ``Memory`` as the operation's fields."""
    if positional:
        method = getattr(Memory, operation.name, None)
        is_alike = inspect.isfunction(method)
        order = (
            list(inspect.signature(method).parameters)[1:]
            if is_alike
            else list(operation.input.model_fields)
        )
        if len(positional) > len(order):
            raise TypeError(
                f"{operation.name}() takes {len(order)} positional arguments, not {len(positional)}"
            )
        named = {**dict(zip(order, positional, strict=False)), **named}
    return to_jsonable_python({name: value for name, value in named.items() if value is not None})
