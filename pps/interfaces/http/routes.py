"""The server's routes: operations, pages, health, metrics, the owner's, and /mcp (passed in)."""

from __future__ import annotations

import contextlib
import json
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Protocol

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.cors import CORSMiddleware
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response, StreamingResponse
from starlette.routing import BaseRoute, Route
from starlette.types import Receive, Scope, Send

from pps.app import App
from pps.core.errors import PPSError
from pps.core.values import JSON
from pps.interfaces.http.auth import HostGuard, Names, Trust
from pps.interfaces.http.health import HealthProbe
from pps.interfaces.http.metrics import MEDIA_TYPE, Metrics
from pps.interfaces.http.page.browsers import Browsers
from pps.interfaces.http.page.site import Site, Talking
from pps.interfaces.http.problems import Answered, Handler, Refused, answered, body, no_route
from pps.interfaces.http.requests import (
    REQUEST_ID,
    Activity,
    ActivityMeter,
    RequestLog,
    RequestTallies,
)
from pps.interfaces.http.v1 import LINES, V1
from pps.operations.calls import Caller, Calls
from pps.server.owner_socket import OwnHome


class McpEndpoint(Protocol):
    """The Model Context Protocol's endpoint, made by another surface."""

    def running(self) -> AbstractAsyncContextManager[None]:
        """Return the context in which it serves."""
        ...

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        ...


class ToolBridge(Protocol):
    """Answers what ``pps mcp`` forwards, made by another surface."""

    def answer(
        self, caller: Caller, message: Mapping[str, JSON]
    ) -> AsyncGenerator[dict[str, JSON]]:
        """Yield events of a call, its answer last."""
        ...


class HookDesk(Protocol):
    """Takes the events of coding agents' sessions, made by another surface."""

    async def handle(self, message: Mapping[str, JSON], *, late: bool = False) -> dict[str, JSON]:
        """Take one event; return what its agent is given."""
        ...


def _no_rooms() -> None:
    """Return that no feature provides rooms."""


@dataclass(frozen=True, slots=True)
class ServerParts:
    """What the routes stand on."""

    app: App
    calls: Calls
    trust: Trust
    browsers: Browsers
    names: Names
    activity: Activity
    condition: HealthProbe
    mcp: McpEndpoint
    hooks: HookDesk
    bridge: ToolBridge
    home: OwnHome | None = None
    talk: Callable[[], Talking | None] = _no_rooms


class HttpRoutes:
    """The handlers, each checked for who asks."""

    def __init__(self, parts: ServerParts) -> None:
        self._parts = parts
        self._site = Site(parts.app, parts.calls, parts.browsers, parts.talk)
        self._tallies = RequestTallies(())

    def starlette(self) -> Starlette:
        """Return the ASGI app; made anew for each run, since the MCP endpoint runs once."""
        parts = self._parts
        v1 = V1(parts.calls, parts.trust)

        @contextlib.asynccontextmanager
        async def lifespan(_: Starlette) -> AsyncGenerator[None]:
            async with parts.mcp.running():
                yield

        routes: list[BaseRoute] = [
            Route("/mcp", endpoint=Answered(parts.mcp)),
            Route("/health", answered(self._health), methods=["GET"]),
            Route("/ready", answered(self._ready), methods=["GET"]),
            Route("/metrics", answered(self._metrics), methods=["GET"]),
            Route("/v1/{operation}", answered(v1.call), methods=["POST"]),
            Route("/openapi.json", answered(v1.openapi), methods=["GET"]),
            *self._site.routes(),
            Route("/owner/proof/{nonce}", answered(self._proof), methods=["GET"]),
            Route("/owner/status", self._owners(self._status), methods=["GET"]),
            Route("/owner/stop", self._owners(self._stop), methods=["POST"]),
            Route("/owner/tools", answered(self._tools), methods=["POST"]),
            Route("/owner/hooks", self._owners(self._hook), methods=["POST"]),
        ]
        self._tallies = RequestTallies(routes)
        return Starlette(
            routes=routes,
            middleware=[
                Middleware(RequestLog, tallies=self._tallies),
                Middleware(HostGuard, names=parts.names, home=parts.home),
                # The guard has let only allowed origins through, so here every origin may read.
                Middleware(
                    CORSMiddleware,
                    allow_origins=["*"],
                    allow_methods=["GET", "POST", "DELETE"],
                    allow_headers=["*"],
                    expose_headers=["Mcp-Session-Id", "MCP-Protocol-Version", REQUEST_ID],
                ),
                Middleware(ActivityMeter, activity=parts.activity),
            ],
            exception_handlers={HTTPException: no_route},
            lifespan=lifespan,
        )

    async def settled(self) -> None:
        """Wait until what pages asked over their sockets is carried out."""
        await self._site.settled()

    def _owners(self, handler: Handler) -> Handler:
        async def checked(request: Request) -> Response:
            self._parts.trust.check_owner(request)
            return await handler(request)

        return answered(checked)

    async def _health(self, request: Request) -> Response:
        problems = await self._parts.condition.problems()
        failing = any(problem.outage for problem in problems)
        status, state = (503, "failing") if failing else (200, "ok")
        if not await self._is_operator_where_possible(request):
            return JSONResponse({"status": state}, status_code=status)
        details = [{"entity": problem.entity, "problem": problem.text} for problem in problems]
        state = "degraded" if problems and not failing else state
        return JSONResponse(
            {"status": state, "problems": details, **await self._parts.condition.status()},
            status_code=status,
        )

    async def _ready(self, request: Request) -> Response:
        """Tell whether requests should be sent here now.

        An operator is told what stands in the way.
        """
        unready = await self._parts.condition.unready()
        answer: dict[str, JSON] = {"status": "not ready" if unready else "ready"}
        if await self._is_operator_where_possible(request):
            answer["failing"] = {**unready}
        return JSONResponse(answer, 503 if unready else 200)

    async def _is_operator_where_possible(self, request: Request) -> bool:
        """Tell whether an operator asks.

        Where the registry cannot be read, only the owner is known.
        """
        if self._parts.trust.is_owner(request):
            return True
        try:
            return await self._parts.trust.is_operator(request)
        except PPSError:
            return False

    async def _metrics(self, request: Request) -> Response:
        if not await self._parts.trust.is_operator(request):
            raise Refused("an operator's token is needed; `pps entity token --operator` makes one")
        parts = self._parts
        metrics = Metrics(parts.app, parts.calls, parts.activity, parts.condition, self._tallies)
        return PlainTextResponse(await metrics.text(), media_type=MEDIA_TYPE)

    async def _proof(self, request: Request) -> Response:
        return PlainTextResponse(self._parts.trust.proof(request, request.path_params["nonce"]))

    async def _status(self, _: Request) -> Response:
        return JSONResponse(await self._parts.condition.owners_status())

    async def _stop(self, _: Request) -> Response:
        self._parts.activity.stopping.set()
        return JSONResponse({"stopping": True})

    async def _tools(self, request: Request) -> Response:
        caller = await self._parts.trust.bridged(request)
        events = self._parts.bridge.answer(caller, await body(request))
        return StreamingResponse(_json_lines(events), media_type=LINES)

    async def _hook(self, request: Request) -> Response:
        return JSONResponse(await self._parts.hooks.handle(await body(request)))


async def _json_lines(events: AsyncGenerator[dict[str, JSON]]) -> AsyncGenerator[bytes]:
    async with contextlib.aclosing(events):
        async for event in events:
            yield json.dumps(event).encode() + b"\n"
