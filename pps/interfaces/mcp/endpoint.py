"""The tools over streamable HTTP, each call for the entity or router of its token.

The server object of the protocol's library answers with errors that never leak what they must not.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
from collections import OrderedDict
from collections.abc import AsyncGenerator, Awaitable, Callable, MutableMapping, Sequence
from typing import Any, TypeAlias, cast

import mcp_types as types
from mcp.server.auth.middleware.bearer_auth import (
    AuthenticatedUser,
    BearerAuthBackend,
    RequireAuthMiddleware,
)
from mcp.server.auth.provider import AccessToken
from mcp.server.caching import CacheHint
from mcp.server.context import CallNext, HandlerResult, ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.server.streamable_http_manager import StreamableHTTPASGIApp, StreamableHTTPSessionManager
from mcp.server.transport_security import TransportSecuritySettings
from mcp.shared.exceptions import MCPError
from pydantic import ValidationError
from starlette.datastructures import Headers
from starlette.middleware.authentication import AuthenticationMiddleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from pps.core import json_bounds
from pps.core.errors import IsolationError, PPSError
from pps.core.ids import EntityId
from pps.core.json_bounds import TooLarge
from pps.core.log_context import NO_REQUEST, SCOPE_KEY, serving, unforeseen
from pps.core.model_text import escape, shown_error
from pps.core.values import JSON
from pps.interfaces.mcp import messages
from pps.interfaces.mcp.messages import INVALID_REQUEST, Undecodable, error_response
from pps.interfaces.mcp.offer import (
    INSTRUCTIONS,
    LIST_FRESH_MS,
    PROJECT_INSTRUCTIONS,
    SERVER_INFO,
    SKILL_METHODS,
    SKILLS_EXTENSION,
    SKILLS_FRESH_MS,
    UNKNOWN_SKILL_URI,
    skills_result,
)
from pps.interfaces.mcp.tools import NoTool, ToolDesk, failed_result
from pps.operations.calls import Caller, Calls, ProgressReport
from pps.operations.table import Audience

_log = logging.getLogger(__name__)
_MAX_ECHO = 200

Context: TypeAlias = ServerRequestContext[Any, Any]
ListTools: TypeAlias = Callable[
    [Context, types.PaginatedRequestParams | None], Awaitable[types.ListToolsResult]
]
CallTool: TypeAlias = Callable[
    [Context, types.CallToolRequestParams], Awaitable[types.CallToolResult]
]

_ID = "mcp-session-id"
_SCOPE = "memory"
_CALLER = "pps_caller"
FindCaller: TypeAlias = Callable[[str], Awaitable[Caller | None]]


def make_server(
    list_tools: ListTools,
    call_tool: CallTool,
    instructions: str = INSTRUCTIONS,
    *,
    has_skills: bool = False,
) -> Server[Any]:
    """Return the low-level server of a transport.

    Whatever goes wrong in ``call_tool`` becomes a result that says so: PPS's own errors in their
    words, anything else in none of its own, since those may quote memory or a path.
    """

    async def call(context: Context, params: types.CallToolRequestParams) -> types.CallToolResult:
        try:
            return await call_tool(context, params)
        except MCPError:
            raise
        except Exception as error:  # noqa: BLE001 - the surface's outermost call
            result = failed_result(error, params.name)
            return types.CallToolResult.model_validate(result)

    server: Server[Any] = Server(
        SERVER_INFO["name"],
        version=SERVER_INFO["version"],
        title=SERVER_INFO["title"],
        instructions=instructions,
        cache_hints={"tools/list": CacheHint(ttl_ms=LIST_FRESH_MS, scope="private")},
        on_list_tools=list_tools,
        on_call_tool=call,
        # No tool declares headers. Otherwise the library lists all tools at each call, to look for
        # some.
        get_tool_input_schema=lambda _: None,
    )
    server.middleware = [_guard]
    if has_skills:
        server.extensions[SKILLS_EXTENSION] = {}
        for method in SKILL_METHODS:
            server.add_request_handler(method, _AnyParams, _skills_handler(method))
    return server


class _AnyParams(types.RequestParams):
    """Parameters of a method on skills or resources; PPS's lists never have a cursor."""

    uri: str | None = None
    cursor: str | None = None


def _skills_handler(
    method: str,
) -> Callable[[Context, _AnyParams], Awaitable[dict[str, Any]]]:
    async def answer(_: Context, params: _AnyParams) -> dict[str, Any]:
        result = skills_result(method, params.uri)
        if result is None:
            uri = (params.uri or "")[:_MAX_ECHO]
            raise MCPError(types.INVALID_PARAMS, UNKNOWN_SKILL_URI, {"uri": uri})
        fresh = {"ttlMs": SKILLS_FRESH_MS, "cacheScope": "public"}
        return {**result, **fresh, "resultType": "complete"}

    return answer


async def _guard(ctx: Context, call_next: CallNext) -> HandlerResult:
    """Turn each exception into an MCPError.

    The older protocol would send its text to the client.
    """
    try:
        return await call_next(ctx)
    except MCPError:
        raise
    except PPSError as error:
        raise MCPError(types.INTERNAL_ERROR, shown_error(error.message)) from None
    except ValidationError:
        raise MCPError(types.INVALID_PARAMS, f"malformed parameters of {ctx.method}") from None
    except Exception as error:  # noqa: BLE001 - the surface's outermost call
        unforeseen(_log, f"method {ctx.method!r} failed", error)
        raise MCPError(
            types.INTERNAL_ERROR, "something went wrong inside PPS; its log has the details"
        ) from None


class BoundedBodies:
    """An ASGI app around another that refuses a POST with a too large or malformed body.

    The answer is a JSON-RPC error, with the request's id if exactly one can be read. A malformed
    notification is refused too, since HTTP asks for an answer, but with the id null.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] != "http" or scope["method"] != "POST":
            await self._app(scope, receive, send)
            return
        try:
            stated = int(Headers(scope=scope).get("content-length", "0"))
            if stated > json_bounds.MAX_BYTES:
                raise TooLarge
            raw = await _read(receive)
            if raw is None:
                return  # the client went away
            await _check(raw)
        except TooLarge as error:
            refusal = error_response(None, INVALID_REQUEST, error.message)
            await _refuse(413, refusal)(scope, receive, send)
            return
        except Undecodable as error:
            request_id = error.ids[0] if len(error.ids) == 1 else None
            refusal = error_response(request_id, error.code, error.message)
            await _refuse(400, refusal)(scope, receive, send)
            return
        await self._app(scope, _replaying(bytes(raw), receive), send)


async def _read(receive: Receive) -> bytearray | None:
    raw = bytearray()
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            return None
        raw.extend(message.get("body", b""))
        if len(raw) > json_bounds.MAX_BYTES:
            raise TooLarge
        if not message.get("more_body", False):
            return raw


async def _check(raw: bytearray) -> None:
    if len(raw) < json_bounds.LARGE_BYTES:
        messages.decode(bytes(raw))
    else:
        await asyncio.to_thread(messages.decode, bytes(raw))


def _refuse(status: int, refusal: dict[str, Any]) -> Response:
    return Response(json.dumps(refusal), status, media_type="application/json")


def _replaying(body: bytes, receive: Receive) -> Receive:
    """Return a ``receive`` that gives a body that was read before, and then what comes after it."""
    is_given = False

    async def replay() -> Message:
        nonlocal is_given
        if is_given:
            return await receive()
        is_given = True
        message: MutableMapping[str, object] = {"type": "http.request", "body": body}
        return {**message, "more_body": False}

    return replay


class BoundedSessions:
    """An ASGI app around the protocol's own.

    A client whose session is ended is answered 404 and begins another.
    """

    def __init__(self, app: ASGIApp, most: int) -> None:
        self._app = app
        self._most = most
        self._of: dict[str, OrderedDict[str, int]] = {}
        """Caller → session, the least recently used first → number of requests in progress.

        A caller without sessions stays: another of its requests may be about to begin one.
        """

    async def serve(self, caller: str, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request of a caller."""
        held = self._of.setdefault(caller, OrderedDict())
        session = Headers(scope=scope).get(_ID)

        async def watched(message: Message) -> None:
            starts = (
                session is None
                and message["type"] == "http.response.start"
                and message["status"] < 400
            )
            begun = Headers(raw=message["headers"]).get(_ID) if starts else None
            if begun:
                held[begun] = 0
                await self._make_room(held, scope)
            await send(message)

        if session in held:
            held[session] += 1
            held.move_to_end(session)
        try:
            await self._app(scope, receive, watched)
        finally:
            if session in held:
                held[session] -= 1
                if scope["method"] == "DELETE":
                    del held[session]

    async def _make_room(self, held: OrderedDict[str, int], scope: Scope) -> None:
        while len(held) > self._most:
            ended = next(
                (session for session, in_hand in held.items() if not in_hand), next(iter(held))
            )
            del held[ended]
            headers = [
                (name, value) for name, value in scope["headers"] if name in (b"host", b"origin")
            ]
            request_scope = {
                **scope,
                "method": "DELETE",
                "headers": [*headers, (_ID.encode(), ended.encode())],
            }
            await self._app(request_scope, _nothing, _unheard)


async def _nothing() -> Message:
    return {"type": "http.request", "body": b"", "more_body": False}


async def _unheard(message: Message) -> None:
    del message


class Endpoint:
    """An ASGI app for ``/mcp``, for clients of both eras of the protocol.

    ``async with endpoint.running(): ...`` for as long as it serves, once.
    """

    def __init__(
        self,
        calls: Calls,
        find_caller: FindCaller,
        *,
        hosts: Sequence[str],
        origins: Sequence[str],
    ) -> None:
        """Make an endpoint.

        Args:
            calls: Carries the operations out.
            find_caller: Returns the caller of a bearer token; called at each request.
            hosts: Allowed values of a request's Host (``name:*`` for any port).
            origins: Allowed values of its Origin.
        """
        security = TransportSecuritySettings(
            allowed_hosts=list(hosts), allowed_origins=list(origins)
        )
        self._entities = _Desk(calls, "entity", INSTRUCTIONS, security)
        self._routers = _Desk(calls, "router", PROJECT_INSTRUCTIONS, security)
        guarded = RequireAuthMiddleware(BoundedBodies(self._served), [_SCOPE])
        backend = BearerAuthBackend(_Verifier(find_caller))
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
    """The tools of one audience, with sessions that no token of the other audience finds."""

    def __init__(
        self,
        calls: Calls,
        audience: Audience,
        instructions: str,
        security: TransportSecuritySettings,
    ) -> None:
        self._tools = ToolDesk(calls, audience)
        server = make_server(
            self._list_tools, self._call_tool, instructions, has_skills=audience == "entity"
        )
        # Stateful with event streams: the only mode in which progress and cancelling work in both
        # eras.
        self.sessions = StreamableHTTPSessionManager(server, security_settings=security)
        self.bounded = BoundedSessions(StreamableHTTPASGIApp(self.sessions), calls.most_sessions)

    async def _list_tools(
        self, context: Context, _: types.PaginatedRequestParams | None
    ) -> types.ListToolsResult:
        tools = await self._tools.offered(_caller(context.request), _toolset(context.request))
        return types.ListToolsResult.model_validate({"tools": tools})

    async def _call_tool(
        self, context: Context, params: types.CallToolRequestParams
    ) -> types.CallToolResult:
        steps = self._tools.call(
            _caller(context.request),
            _toolset(context.request),
            params.name,
            cast("dict[str, JSON]", params.arguments or {}),
            wants_progress="progress_token" in (context.meta or {}),
        )
        # A session of the older era serves its calls in one task, which its first request began.
        request = context.request
        request_id = request.scope.get(SCOPE_KEY, NO_REQUEST) if request else NO_REQUEST
        try:
            with serving(request_id):
                async with contextlib.aclosing(steps):
                    async for step in steps:
                        if not isinstance(step, ProgressReport):
                            return types.CallToolResult.model_validate(step)
                        await context.session.report_progress(
                            step.done, step.total or None, escape(step.what)
                        )
        except NoTool as error:
            raise MCPError(types.INVALID_PARAMS, error.message) from None
        raise AssertionError("an operation ended without an answer")


class _Verifier:
    """Finds the caller of a token for the protocol's library."""

    def __init__(self, find_caller: FindCaller) -> None:
        self._find_caller = find_caller

    async def verify_token(self, token: str) -> AccessToken | None:
        """Return the rights of a token; None if it is invalid.

        The caller owns the session, so that no other caller can use it.
        """
        caller = await self._find_caller(token)
        if caller is None:
            return None
        return AccessToken(
            token=token, client_id=_owner(caller), scopes=[_SCOPE], claims={_CALLER: caller}
        )


def _owner(caller: Caller) -> str:
    if isinstance(caller.entity, EntityId):
        return caller.entity.group
    if caller.router is None:
        raise IsolationError("a tool was called by nobody")
    return caller.router.id


def _toolset(request: Request | None) -> str:
    return request.query_params.get("toolset", "") if request else ""


def _caller(request: Request | None) -> Caller:
    user = request.scope.get("user") if request else None
    claims = user.access_token.claims if isinstance(user, AuthenticatedUser) else None
    caller: object = (claims or {}).get(_CALLER)
    if not isinstance(caller, Caller):
        raise IsolationError("a tool was called by nobody")
    return caller
