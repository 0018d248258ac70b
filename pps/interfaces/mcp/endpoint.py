"""The tools over streamable HTTP, each call for the entity or the router that its token stands for."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence, Set
from dataclasses import replace
from typing import TypeAlias, cast

import mcp_types as types
from mcp.server.auth.middleware.bearer_auth import (
    AuthenticatedUser,
    BearerAuthBackend,
    RequireAuthMiddleware,
)
from mcp.server.auth.provider import AccessToken
from mcp.server.streamable_http_manager import StreamableHTTPASGIApp, StreamableHTTPSessionManager
from mcp.server.transport_security import TransportSecuritySettings
from mcp.shared.exceptions import MCPError
from starlette.middleware.authentication import AuthenticationMiddleware
from starlette.requests import Request
from starlette.types import Receive, Scope, Send

from pps.core.errors import InvalidRequest, IsolationError
from pps.core.ids import EntityId
from pps.core.json_bounds import LARGE_BYTES, is_large
from pps.core.log_context import NO_REQUEST, SCOPE_KEY, serving
from pps.core.model_text import escape
from pps.core.values import JSON
from pps.interfaces.mcp.bounded_bodies import BoundedBodies
from pps.interfaces.mcp.offer import DEFAULT, INSTRUCTIONS, PROJECT_INSTRUCTIONS
from pps.interfaces.mcp.protocol import Context, make_server
from pps.interfaces.mcp.results import tool_arguments, tool_result
from pps.interfaces.mcp.sessions import BoundedSessions
from pps.interfaces.mcp.tools import tool
from pps.operations.calls import Caller, Calls
from pps.operations.table import Answer, Audience

_SCOPE = "memory"
_CALLER = "pps_caller"
Whose: TypeAlias = Callable[[str], Awaitable[Caller | None]]


class Endpoint:
    """An ASGI app for ``/mcp``, for clients of both eras of the protocol.

    ``async with endpoint.running(): ...`` for as long as it serves, once.
    """

    def __init__(
        self,
        calls: Calls,
        whose: Whose,
        *,
        hosts: Sequence[str],
        origins: Sequence[str],
    ) -> None:
        """Make an endpoint.

        Args:
            calls: Carries the operations out.
            whose: Returns who a bearer token stands for; asked at each request.
            hosts: What a request's Host may be (``name:*`` for any port).
            origins: The same for its Origin.
        """
        security = TransportSecuritySettings(
            allowed_hosts=list(hosts), allowed_origins=list(origins)
        )
        self._entities = _Desk(calls, "entity", INSTRUCTIONS, security)
        self._routers = _Desk(calls, "router", PROJECT_INSTRUCTIONS, security)
        guarded = RequireAuthMiddleware(BoundedBodies(self._served), [_SCOPE])
        backend = BearerAuthBackend(_Verifier(whose))
        self._app = AuthenticationMiddleware(guarded, backend=backend)

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncGenerator[None]:
        """Return the context in which the endpoint's sessions live."""
        async with self._entities.sessions.run(), self._routers.sessions.run():
            yield

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        await self._app(scope, receive, send)

    async def _served(self, scope: Scope, receive: Receive, send: Send) -> None:
        caller = _caller(Request(scope))
        desk = self._routers if caller.router else self._entities
        await desk.bounded.serve(_owner(caller), scope, receive, send)


class _Desk:
    """The tools of one audience, with sessions of their own: no token of the other finds one of them."""

    def __init__(
        self,
        calls: Calls,
        audience: Audience,
        instructions: str,
        security: TransportSecuritySettings,
    ) -> None:
        self._calls = calls
        self._audience: Audience = audience
        server = make_server(
            self._list_tools, self._call_tool, instructions, has_skills=audience == "entity"
        )
        # Stateful with event streams: the only mode in which progress and cancelling work in both eras.
        self.sessions = StreamableHTTPSessionManager(server, security_settings=security)
        self.bounded = BoundedSessions(StreamableHTTPASGIApp(self.sessions), calls.most_sessions)

    async def _list_tools(
        self, context: Context, _: types.PaginatedRequestParams | None
    ) -> types.ListToolsResult:
        offered = await self._calls.operations(await self._asking(context))
        return types.ListToolsResult(tools=[tool(one) for one in offered.values()])

    async def _call_tool(
        self, context: Context, params: types.CallToolRequestParams
    ) -> types.CallToolResult:
        caller = await self._asking(context)
        try:
            found = await self._calls.find(caller, params.name)
        except InvalidRequest:
            raise MCPError(
                types.INVALID_PARAMS, await self._none(context, caller, params.name)
            ) from None
        given = cast("dict[str, JSON]", params.arguments or {})
        if is_large(given):
            arguments = await asyncio.to_thread(tool_arguments, given)
        else:
            arguments = tool_arguments(given)
        # A session of the older era serves its calls in one task, which its first request began.
        with serving(_request_id(context.request)):
            if found.long and context.meta and "progress_token" in context.meta:
                answer = await self._reported(context, caller, params.name, arguments)
            else:
                answer = await self._calls.answer(caller, params.name, arguments, for_model=True)
        owner = caller.entity_name or "this project"
        if len(answer.text) > LARGE_BYTES:
            return await asyncio.to_thread(tool_result, answer, owner)
        return tool_result(answer, owner)

    async def _none(self, context: Context, asking: Caller, name: str) -> str:
        """Say that there is no such tool; of one in a toolset that the token opens and nobody asked for, how to ask."""
        token = replace(_caller(context.request), audiences=(self._audience,))
        with contextlib.suppress(InvalidRequest):
            other = await self._calls.find(token, name)
            more = f"{name} is in the toolset {other.toolset!r}: add it to toolset="
            return f"there is no tool of that name among those asked for; {more} (or pps mcp --toolset)"
        return f"there is no tool of that name; there are {', '.join(await self._calls.operations(asking))}"

    async def _reported(
        self, context: Context, caller: Caller, name: str, arguments: dict[str, JSON]
    ) -> Answer:
        async with contextlib.aclosing(
            self._calls.reported(caller, name, arguments, for_model=True)
        ) as steps:
            async for step in steps:
                if isinstance(step, Answer):
                    return step
                await context.session.report_progress(
                    step.done, step.total or None, escape(step.what)
                )
        raise AssertionError("an operation ended without an answer")

    async def _asking(self, context: Context) -> Caller:
        """Return who sent this very request, with the toolsets that it chose: never more than its token opens."""
        caller = replace(_caller(context.request), audiences=(self._audience,))
        chosen = context.request.query_params.get("toolset", "") if context.request else ""
        usual = DEFAULT[self._audience]
        there = (
            await self._calls.toolsets(replace(caller, toolsets=None))
            if chosen
            else frozenset([usual])
        )
        toolsets = chosen_of(chosen or usual, there, caller.toolsets, is_said=bool(chosen))
        return replace(caller, toolsets=toolsets)


class _Verifier:
    """Tells the protocol's library whose a token is."""

    def __init__(self, whose: Whose) -> None:
        self._whose = whose

    async def verify_token(self, token: str) -> AccessToken | None:
        """Return what a token may do. Whose it is owns the session, so no other can use it."""
        caller = await self._whose(token)
        if caller is None:
            return None
        return AccessToken(
            token=token, client_id=_owner(caller), scopes=[_SCOPE], claims={_CALLER: caller}
        )


def chosen_of(
    asked: str, there: Set[str], allowed: Set[str] | None, *, is_said: bool
) -> frozenset[str] | None:
    """Return the toolsets that a client gets; None for all.

    Args:
        asked: Names with commas between, or ``all``.
        there: The toolsets that there are.
        allowed: The most that its token opens; None for all.
        is_said: The client asked; where it did not, a token that does not open what is usual opens all of its own.

    Raises:
        InvalidRequest: There is none of a name.
    """
    wanted = frozenset(name.strip() for name in asked.split(","))
    if strange := wanted - there - {"all"}:
        raise InvalidRequest(
            "toolset", f"{min(strange)!r} is none of {', '.join(sorted(there))}, all"
        )
    if "all" in wanted:
        return None if allowed is None else frozenset(allowed)
    if allowed is None:
        return wanted
    return wanted & allowed if is_said or wanted & allowed else frozenset(allowed)


def _request_id(request: Request | None) -> str:
    return request.scope.get(SCOPE_KEY, NO_REQUEST) if request else NO_REQUEST


def _owner(caller: Caller) -> str:
    if isinstance(caller.entity, EntityId):
        return caller.entity.group
    if caller.router is None:
        raise IsolationError("a tool was called by nobody")
    return caller.router.id


def _caller(request: Request | None) -> Caller:
    user = request.scope.get("user") if request else None
    claims = user.access_token.claims if isinstance(user, AuthenticatedUser) else None
    caller: object = (claims or {}).get(_CALLER)
    if not isinstance(caller, Caller):
        raise IsolationError("a tool was called by nobody")
    return caller
