"""``/mcp``, which imports its protocol library for the first client, for a faster start."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from typing import TYPE_CHECKING

from starlette.types import Receive, Scope, Send

from pps.operations.calls import Caller, Calls

if TYPE_CHECKING:
    from pps.interfaces.mcp.endpoint import Endpoint


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
