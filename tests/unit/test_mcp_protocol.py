from __future__ import annotations

import logging
from typing import Any

import mcp_types as types
import pytest
from mcp.client.client import Client
from mcp.shared.exceptions import MCPError

from pps.core import log_context
from pps.core.errors import NotFound, StoreUnavailable
from pps.interfaces.mcp.endpoint import Context, make_server

SECRET = "what was remembered"
pytestmark = pytest.mark.parametrize("era", ["legacy", "2026-07-28"])


class _Failing:
    """A transport's handlers that fail in the way that is asked for."""

    def __init__(self, error: Exception) -> None:
        self.error = error

    async def list_tools(self, _: Context, __: Any) -> types.ListToolsResult:
        raise self.error

    async def call_tool(self, _: Context, __: types.CallToolRequestParams) -> types.CallToolResult:
        raise self.error


def _client(error: Exception, era: str) -> Client:
    failing = _Failing(error)
    return Client(make_server(failing.list_tools, failing.call_tool), mode=era)


def _said(result: types.CallToolResult) -> str:
    assert result.is_error
    block = result.content[0]
    assert isinstance(block, types.TextContent)
    return block.text


async def test_an_unforeseen_error_tells_nothing_to_the_client_nor_to_the_log(
    era: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    async with _client(RuntimeError(SECRET), era) as client:
        assert SECRET not in _said(await client.call_tool("stats", {}))
        with pytest.raises(MCPError) as caught:
            await client.list_tools()
    assert SECRET not in str(caught.value)
    assert "RuntimeError" in caplog.text
    assert "call_tool" in caplog.text
    assert SECRET not in caplog.text


async def test_our_own_errors_are_told_in_their_words(era: str) -> None:
    async with _client(StoreUnavailable("the graph is away"), era) as client:
        assert (
            _said(await client.call_tool("stats", {}))
            == "the graph is away (store_unavailable, try again later)"
        )
        with pytest.raises(MCPError, match="the graph is away"):
            await client.list_tools()
    async with _client(NotFound(), era) as client:
        assert _said(await client.call_tool("get", {})) == "id not found (not_found)"


async def test_a_protocol_error_stays_one(era: str) -> None:
    async with _client(MCPError(types.INVALID_PARAMS, "no such tool"), era) as client:
        with pytest.raises(MCPError) as caught:
            await client.call_tool("nonesuch", {})
    assert caught.value.code == types.INVALID_PARAMS


def test_all_of_an_error_is_logged_at_debug_only(
    era: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    try:
        raise RuntimeError(SECRET)
    except RuntimeError as error:
        log_context.unforeseen(logging.getLogger("pps"), f"{era} failed", error)
    told = [record for record in caplog.records if record.levelno >= logging.INFO]
    assert all(SECRET not in record.getMessage() for record in told)
    assert SECRET in caplog.text
