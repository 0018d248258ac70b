"""The server's ends of the protocol: ``/mcp``, and the requests that the owner's bridge forwards.

The protocol's library takes half a second to import, so neither waits for it at a start. ``/mcp``
imports it for the first client. A bridge checks the protocol by itself: the server needs nothing
of the library for it, and the first call of an agent does not wait for that import.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

from starlette.types import Receive, Scope, Send

from pps.core.errors import InvalidRequest, PPSError
from pps.core.model_text import escape, shown_error
from pps.core.values import JSON
from pps.interfaces.mcp.messages import INTERNAL_ERROR, INVALID_PARAMS
from pps.interfaces.mcp.tools import NoTool, ToolDesk, failed_result
from pps.operations.calls import Caller, Calls, ProgressReport

if TYPE_CHECKING:
    from pps.interfaces.mcp.endpoint import Endpoint

_BEAT_S = 15.0
"""How often a bridge is told that a call still goes on."""


class LateEndpoint:
    """An ASGI app with the arguments of ``Endpoint``, which it makes at the first request."""

    def __init__(
        self,
        calls: Calls,
        find_caller: Callable[[str], Awaitable[Caller | None]],
        *,
        hosts: Sequence[str],
        origins: Sequence[str],
    ) -> None:
        self._calls = calls
        self._find_caller = find_caller
        self._hosts = hosts
        self._origins = origins
        self._lock = asyncio.Lock()
        self._endpoint: Endpoint | None = None
        self._serving: asyncio.Task[None] | None = None
        self._ended = asyncio.Event()

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncGenerator[None]:
        """Return the context in which the endpoint's sessions live."""
        try:
            yield
        finally:
            self._ended.set()
            if self._serving is not None:
                await asyncio.wait([self._serving])

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        endpoint = await self._made()
        await endpoint(scope, receive, send)

    async def _made(self) -> Endpoint:
        async with self._lock:
            if self._endpoint is None:
                endpoint = await asyncio.to_thread(self._make)
                ready = asyncio.Event()
                self._serving = asyncio.create_task(self._serve(endpoint, ready))
                await ready.wait()
                self._endpoint = endpoint
            return self._endpoint

    def _make(self) -> Endpoint:
        from pps.interfaces.mcp.endpoint import Endpoint

        return Endpoint(self._calls, self._find_caller, hosts=self._hosts, origins=self._origins)

    async def _serve(self, endpoint: Endpoint, ready: asyncio.Event) -> None:
        """Keep the endpoint's sessions open; their context must end in the task where it began."""
        async with endpoint.running():
            ready.set()
            await self._ended.wait()


class BridgeDesk:
    """Answers ``tools/list`` and ``tools/call`` for whoever a bridge was started for."""

    def __init__(self, calls: Calls) -> None:
        self._entities = ToolDesk(calls, "entity")
        self._routers = ToolDesk(calls, "router")

    async def answer(
        self, caller: Caller, message: Mapping[str, JSON]
    ) -> AsyncGenerator[dict[str, JSON]]:
        """Yield ``{"progress": {...}}`` for reports, ``{}`` as a sign of life, and last the answer.

        When the reader goes away, a call that only reads or that can be asked for again is given
        up.

        Args:
            caller: The entity or the router.
            message: ``method``, ``params`` and ``toolset`` (empty for the usual one).

        Returns:
            The answer has ``result``, or ``error`` with a JSON-RPC ``code`` and a ``message``.
        """
        events: asyncio.Queue[dict[str, JSON]] = asyncio.Queue()
        work = asyncio.create_task(self._work(caller, message, events.put_nowait))
        work.add_done_callback(lambda _: events.put_nowait({}))
        try:
            while not (work.done() and events.empty()):
                event: dict[str, JSON] = {}
                with contextlib.suppress(TimeoutError):
                    event = await asyncio.wait_for(events.get(), _BEAT_S)
                yield event
            work.result()
        finally:
            work.cancel()
            await asyncio.wait([work])

    async def _work(
        self,
        caller: Caller,
        message: Mapping[str, JSON],
        tell: Callable[[dict[str, JSON]], None],
    ) -> None:
        desk = self._routers if caller.router else self._entities
        toolset = str(message.get("toolset", ""))
        params = message.get("params")
        params = cast("dict[str, Any]", params) if isinstance(params, dict) else {}
        method = message.get("method")
        if method == "tools/list":
            tell(await _list(desk, caller, toolset))
        elif method == "tools/call":
            await _call(desk, caller, toolset, params, tell)
        else:
            raise InvalidRequest("method", "must be tools/list or tools/call")


async def _list(desk: ToolDesk, caller: Caller, toolset: str) -> dict[str, JSON]:
    try:
        return {"result": {"tools": await desk.offered(caller, toolset)}}
    except PPSError as error:
        return _error(INTERNAL_ERROR, shown_error(error.message))


async def _call(
    desk: ToolDesk,
    caller: Caller,
    toolset: str,
    params: Mapping[str, Any],
    tell: Callable[[dict[str, JSON]], None],
) -> None:
    name = str(params.get("name", ""))
    wants_progress = "progressToken" in (params.get("_meta") or {})
    steps = desk.call(
        caller, toolset, name, params.get("arguments") or {}, wants_progress=wants_progress
    )
    try:
        async with contextlib.aclosing(steps):
            async for step in steps:
                if isinstance(step, ProgressReport):
                    total = {"total": step.total} if step.total else {}
                    report = {"progress": step.done, **total, "message": escape(step.what)}
                    tell({"progress": report})
                else:
                    tell({"result": step})
    except NoTool as error:
        tell(_error(INVALID_PARAMS, error.message))
    except Exception as error:  # noqa: BLE001 - the interface's outermost call
        tell({"result": failed_result(error, name)})


def _error(code: int, message: str) -> dict[str, JSON]:
    return {"error": {"code": code, "message": message}}
