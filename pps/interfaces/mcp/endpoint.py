"""The tools over streamable HTTP, each call for the entity or the router that its token stands for."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence, Set
from typing import Any, TypeAlias, cast

import mcp_types as types
from mcp.server.auth.middleware.auth_context import AuthContextMiddleware, get_access_token
from mcp.server.auth.middleware.bearer_auth import BearerAuthBackend, RequireAuthMiddleware
from mcp.server.auth.provider import AccessToken
from mcp.server.streamable_http_manager import StreamableHTTPASGIApp, StreamableHTTPSessionManager
from mcp.server.transport_security import TransportSecuritySettings
from mcp.shared.exceptions import MCPError
from starlette.middleware.authentication import AuthenticationMiddleware
from starlette.types import Receive, Scope, Send

from pps.core.errors import IsolationError
from pps.core.ids import EntityId
from pps.core.values import JSON
from pps.entities import Router
from pps.interfaces.mcp.protocol import INSTRUCTIONS, PROJECT_INSTRUCTIONS, Context, make_server
from pps.interfaces.mcp.sessions import BoundedSessions
from pps.operations.calls import Caller, Calls
from pps.operations.catalog import operations_for
from pps.operations.table import AnyOperation, Audience

_SCOPE = "memory"
_CALLER = "pps_caller"
Whose: TypeAlias = Callable[[str], Awaitable[EntityId | Router | None]]


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
            calls: Carries the verbs out.
            whose: Returns the entity or router that a bearer token stands for; asked at each request.
            hosts: What a request's Host may be (``name:*`` for any port).
            origins: The same for its Origin.
        """
        security = TransportSecuritySettings(allowed_hosts=list(hosts), allowed_origins=list(origins))
        self._entities = _Desk(calls, "entity", INSTRUCTIONS, security)
        self._routers = _Desk(calls, "router", PROJECT_INSTRUCTIONS, security)
        guarded = RequireAuthMiddleware(self._served, [_SCOPE])
        backend = BearerAuthBackend(_Verifier(whose))
        self._app = AuthenticationMiddleware(AuthContextMiddleware(guarded), backend=backend)

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncGenerator[None]:
        """Return the context in which the endpoint's sessions live."""
        async with self._entities.sessions.run(), self._routers.sessions.run():
            yield

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        await self._app(scope, receive, send)

    async def _served(self, scope: Scope, receive: Receive, send: Send) -> None:
        caller = _caller()
        desk, name = (self._routers, caller.id) if isinstance(caller, Router) else (self._entities, caller.group)
        await desk.bounded.serve(name, scope, receive, send)


class _Desk:
    """The tools of one audience, with sessions of their own: no token of the other finds one of them."""

    def __init__(
        self, calls: Calls, audience: Audience, instructions: str, security: TransportSecuritySettings
    ) -> None:
        self._calls = calls
        self._verbs = operations_for(audience)
        self._tools = [tool(verb, calls.unset) for verb in self._verbs.values()]
        server = make_server(self._list_tools, self._call_tool, instructions)
        # Stateful with event streams: the only mode in which progress and cancelling work in both eras.
        self.sessions = StreamableHTTPSessionManager(server, security_settings=security)
        self.bounded = BoundedSessions(StreamableHTTPASGIApp(self.sessions), calls.most_sessions)

    async def _list_tools(self, _: Context, __: types.PaginatedRequestParams | None) -> types.ListToolsResult:
        return types.ListToolsResult(tools=self._tools)

    async def _call_tool(self, _: Context, params: types.CallToolRequestParams) -> types.CallToolResult:
        if params.name not in self._verbs:
            raise MCPError(types.INVALID_PARAMS, f"there is no tool of that name; there are {', '.join(self._verbs)}")
        arguments = cast("dict[str, JSON]", params.arguments or {})
        answer = await self._calls.answer(_asking(_caller()), params.name, arguments)
        return types.CallToolResult(content=[types.TextContent(text=answer.text)], structured_content=answer.data)


class _Verifier:
    """Tells the protocol's library whose a token is."""

    def __init__(self, whose: Whose) -> None:
        self._whose = whose

    async def verify_token(self, token: str) -> AccessToken | None:
        """Return what a token may do. The caller is the owner of the session, so no other can use it."""
        caller = await self._whose(token)
        if caller is None:
            return None
        whose, name = ("router", caller.id) if isinstance(caller, Router) else (caller.group, caller.name)
        return AccessToken(token=token, client_id=whose, subject=name, scopes=[_SCOPE], claims={_CALLER: caller})


def tool(verb: AnyOperation, unset: Set[str] = frozenset()) -> types.Tool:
    """Return a verb as a tool, without the ways to read that are not set up here."""
    return types.Tool(
        name=verb.name,
        title=verb.title,
        description=verb.description,
        input_schema=_offered(verb.input_schema(), unset),
        output_schema=verb.output_schema(),
        annotations=types.ToolAnnotations(
            title=verb.title,
            read_only_hint=verb.hints.read_only,
            destructive_hint=verb.hints.destructive,
            idempotent_hint=verb.hints.idempotent,
            open_world_hint=False,
        ),
    )


def _offered(schema: dict[str, JSON], unset: Set[str]) -> dict[str, JSON]:
    extraction: Any = cast("Any", schema["properties"]).get("extraction") or {}
    for one in extraction.get("anyOf", ()):
        if "enum" in one:
            one["enum"] = [way for way in one["enum"] if way not in unset]
    return schema


def _asking(caller: EntityId | Router) -> Caller:
    return Caller(("router",), router=caller) if isinstance(caller, Router) else Caller.of_entity(caller)


def _caller() -> EntityId | Router:
    token = get_access_token()
    caller: object = (token.claims or {}).get(_CALLER) if token else None
    if not isinstance(caller, EntityId | Router):
        raise IsolationError("a tool was called by nobody")
    return caller
