"""The tools of one audience: which ones a client is offered, and its calls of them.

Both ways to the tools end here: ``/mcp``, which speaks the protocol through its library, and the
owner's bridge, which must not wait until that library is imported.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Mapping, Set
from dataclasses import replace
from typing import Any

from pps.core.errors import InvalidRequest
from pps.core.json_bounds import LARGE_BYTES, is_large
from pps.core.values import JSON
from pps.interfaces.mcp.offer import DEFAULT
from pps.interfaces.mcp.results import ToolResult, tool_arguments, tool_result
from pps.interfaces.mcp.tools import tool
from pps.operations.calls import Caller, Calls, ProgressReport
from pps.operations.table import Answer, Audience


class NoTool(Exception):
    """A client called a tool that it is not offered; ``message`` says which ones there are."""

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message


class ToolDesk:
    """Offers and calls the operations of one audience as tools."""

    def __init__(self, calls: Calls, audience: Audience) -> None:
        self._calls = calls
        self._audience: Audience = audience

    async def offered(self, caller: Caller, toolset: str) -> list[dict[str, Any]]:
        """Return the tools of toolsets: names with commas between, ``all``, or "" (the default).

        Raises:
            InvalidRequest: A toolset is unknown.
        """
        asking = await self._with_toolsets(caller, toolset)
        return [tool(operation) for operation in (await self._calls.operations(asking)).values()]

    async def call(
        self,
        caller: Caller,
        toolset: str,
        name: str,
        arguments: Mapping[str, JSON],
        *,
        wants_progress: bool,
    ) -> AsyncGenerator[ProgressReport | ToolResult]:
        """Yield reports of a long call's progress, if wanted, and its result last.

        Raises:
            NoTool: The client is not offered a tool of that name.
            PPSError: A toolset is unknown, or the operation raised it.
        """
        asking = await self._with_toolsets(caller, toolset)
        try:
            operation = await self._calls.find(asking, name)
        except InvalidRequest:
            raise NoTool(await self._no_such_tool(caller, asking, name)) from None
        if is_large(arguments):
            read = await asyncio.to_thread(tool_arguments, arguments)
        else:
            read = tool_arguments(arguments)
        if not (operation.long and wants_progress):
            yield await _result(
                await self._calls.answer(asking, name, read, for_model=True), asking
            )
            return
        async with contextlib.aclosing(
            self._calls.reported(asking, name, read, for_model=True)
        ) as steps:
            async for step in steps:
                yield await _result(step, asking) if isinstance(step, Answer) else step

    async def _no_such_tool(self, caller: Caller, asking: Caller, name: str) -> str:
        """Return the refusal of an unknown tool.

        If another toolset has the tool, how to add that.
        """
        whole = replace(caller, audiences=(self._audience,))
        with contextlib.suppress(InvalidRequest):
            other = await self._calls.find(whole, name)
            more = f"{name} is in the toolset {other.toolset!r}: add it to toolset="
            return (
                f"there is no tool of that name among those asked for; {more} (or pps mcp "
                "--toolset)"
            )
        return (
            "there is no tool of that name; there are "
            f"{', '.join(await self._calls.operations(asking))}"
        )

    async def _with_toolsets(self, caller: Caller, chosen: str) -> Caller:
        """Return the caller with the toolsets that it chose: never more than its token opens."""
        caller = replace(caller, audiences=(self._audience,))
        usual = DEFAULT[self._audience]
        present = (
            await self._calls.toolsets(replace(caller, toolsets=None))
            if chosen
            else frozenset([usual])
        )
        toolsets = chosen_of(chosen or usual, present, caller.toolsets, is_said=bool(chosen))
        return replace(caller, toolsets=toolsets)


async def _result(answer: Answer, caller: Caller) -> ToolResult:
    owner = caller.entity_name or "this project"
    if len(answer.text) > LARGE_BYTES:
        return await asyncio.to_thread(tool_result, answer, owner)
    return tool_result(answer, owner)


def chosen_of(
    header: str, known: Set[str], allowed: Set[str] | None, *, is_said: bool
) -> frozenset[str] | None:
    """Return the toolsets that a client gets; None for all.

    Args:
        header: Names with commas between, or ``all``.
        known: The toolsets that there are.
        allowed: The most that its token opens; None for all.
        is_said: The client asked; where it did not, a token that does not open what is usual opens
            all of its own.

    Raises:
        InvalidRequest: There is none of a name.
    """
    wanted = frozenset(name.strip() for name in header.split(","))
    if strange := wanted - known - {"all"}:
        raise InvalidRequest(
            "toolset", f"{min(strange)!r} is none of {', '.join(sorted(known))}, all"
        )
    if "all" in wanted:
        return None if allowed is None else frozenset(allowed)
    if allowed is None:
        return wanted
    return wanted & allowed if is_said or wanted & allowed else frozenset(allowed)
