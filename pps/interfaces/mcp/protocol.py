"""What both transports share: the server object, and errors that never leak what they must not."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from typing import Any, TypeAlias

import mcp_types as types
from mcp.server.caching import CacheHint
from mcp.server.context import CallNext, HandlerResult, ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.shared.exceptions import MCPError
from pydantic import ValidationError

from pps.core.errors import PPSError
from pps.core.log_context import unforeseen
from pps.core.model_text import shown_error
from pps.interfaces.mcp import skills
from pps.interfaces.mcp.offer import INSTRUCTIONS, LIST_FRESH_MS, SERVER_INFO
from pps.interfaces.mcp.results import failed_result

_log = logging.getLogger(__name__)
_MAX_ECHO = 200

Context: TypeAlias = ServerRequestContext[Any, Any]
ListTools: TypeAlias = Callable[
    [Context, types.PaginatedRequestParams | None], Awaitable[types.ListToolsResult]
]
CallTool: TypeAlias = Callable[
    [Context, types.CallToolRequestParams], Awaitable[types.CallToolResult]
]


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
        server.extensions[skills.EXTENSION] = {}
        for method in skills.METHODS:
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
        result = skills.skills_result(method, params.uri)
        if result is None:
            uri = (params.uri or "")[:_MAX_ECHO]
            raise MCPError(types.INVALID_PARAMS, skills.UNKNOWN_URI, {"uri": uri})
        fresh = {"ttlMs": skills.FRESH_MS, "cacheScope": "public"}
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
