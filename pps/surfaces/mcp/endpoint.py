"""The tools over streamable HTTP, each call on the entity that its token stands for."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager
from typing import cast

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
from pps.surfaces.mcp.protocol import Context, make_server
from pps.verbs.all import VERBS
from pps.verbs.calls import Calls
from pps.verbs.table import AnyVerb

_SCOPE = "memory"


class Endpoint:
    """An ASGI app for ``/mcp``, for clients of both eras of the protocol.

    ``async with endpoint.running(): ...`` for as long as it serves, once.
    """

    def __init__(
        self,
        calls: Calls,
        whose: Callable[[str], Awaitable[EntityId | None]],
        *,
        hosts: Sequence[str],
        origins: Sequence[str],
    ) -> None:
        """Make an endpoint.

        Args:
            calls: Carries the verbs out.
            whose: Returns the entity that a bearer token stands for; asked at each request.
            hosts: What a request's Host may be (``name:*`` for any port).
            origins: The same for its Origin.
        """
        self._calls = calls
        security = TransportSecuritySettings(allowed_hosts=list(hosts), allowed_origins=list(origins))
        # Stateful with event streams: the only mode in which progress and cancelling work in both eras.
        self._manager = StreamableHTTPSessionManager(
            make_server(self._list_tools, self._call_tool), security_settings=security
        )
        self._tools = [tool(verb) for verb in VERBS.values()]
        guarded = RequireAuthMiddleware(StreamableHTTPASGIApp(self._manager), [_SCOPE])
        backend = BearerAuthBackend(_Verifier(whose))
        self._app = AuthenticationMiddleware(AuthContextMiddleware(guarded), backend=backend)

    def running(self) -> AbstractAsyncContextManager[None]:
        """Return the context in which the endpoint's sessions live."""
        return self._manager.run()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        await self._app(scope, receive, send)

    async def _list_tools(self, _: Context, __: types.PaginatedRequestParams | None) -> types.ListToolsResult:
        return types.ListToolsResult(tools=self._tools)

    async def _call_tool(self, _: Context, params: types.CallToolRequestParams) -> types.CallToolResult:
        if params.name not in VERBS:
            raise MCPError(types.INVALID_PARAMS, f"there is no tool of that name; there are {', '.join(VERBS)}")
        arguments = cast("dict[str, JSON]", params.arguments or {})
        answer = await self._calls.answer(_caller(), params.name, arguments)
        return types.CallToolResult(content=[types.TextContent(text=answer.text)], structured_content=answer.data)


class _Verifier:
    """Tells the protocol's library whose a token is."""

    def __init__(self, whose: Callable[[str], Awaitable[EntityId | None]]) -> None:
        self._whose = whose

    async def verify_token(self, token: str) -> AccessToken | None:
        """Return what a token may do. The entity is the owner of the session, so no other can use it."""
        entity = await self._whose(token)
        if entity is None:
            return None
        return AccessToken(token=token, client_id=entity.group, subject=entity.name, scopes=[_SCOPE])


def tool(verb: AnyVerb) -> types.Tool:
    """Return a verb as a tool."""
    return types.Tool(
        name=verb.name,
        title=verb.title,
        description=verb.description,
        input_schema=verb.input_schema(),
        output_schema=verb.output_schema(),
        annotations=types.ToolAnnotations(
            title=verb.title,
            read_only_hint=verb.hints.read_only,
            destructive_hint=verb.hints.destructive,
            idempotent_hint=verb.hints.idempotent,
            open_world_hint=False,
        ),
    )


def _caller() -> EntityId:
    token = get_access_token()
    if token is None or token.subject is None:
        raise IsolationError("a tool was called without an entity")
    return EntityId(token.subject, token.client_id)
