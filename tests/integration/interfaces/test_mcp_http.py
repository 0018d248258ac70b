from __future__ import annotations

import httpx2
import pytest
from mcp.shared.exceptions import MCPError
from mcp_types import INVALID_PARAMS

from pps.server.runfile import new_secret
from tests.integration.interfaces.every_tool import TOOLS, done, refused, use_every_tool
from tests.integration.interfaces.serving import ERAS, Served
from tests.waiting import PATIENCE_S

HEADERS = {"Accept": "application/json, text/event-stream", "Content-Type": "application/json"}
INITIALIZE = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-06-18",
        "capabilities": {},
        "clientInfo": {"name": "t", "version": "1"},
    },
}
PING = {"jsonrpc": "2.0", "id": 2, "method": "ping"}

pytestmark = pytest.mark.parametrize("era", ERAS)


async def test_every_tool_is_listed_with_bounds_and_hints_and_none_takes_an_entity(
    served: Served, era: str
) -> None:
    async with served.client(served.create("lister"), era) as client:
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
    assert set(tools) == TOOLS, "TOOLS in every_tool.py lists every tool"
    for tool in tools.values():
        assert tool.description
        assert tool.input_schema["additionalProperties"] is False
        assert not {"entity", "group", "group_id", "name_of_entity"} & set(
            tool.input_schema.get("properties", {})
        )
    read_only = {
        name for name, tool in tools.items() if tool.annotations and tool.annotations.read_only_hint
    }
    writing = {
        "remember",
        "forget",
        "add_event",
        "update",
        "append",
        "merge_nodes",
        "undo_merge",
        "extract",
    }
    writing |= {
        "restore_forgotten",
        "forget_concept",
        "detect_topics",
        "merge_concepts",
        "store_memory",
        "jobs_retry",
    }
    writing |= {"calibrate_perspectives", "fact_correct", "undo", "anchor_revert"}
    writing |= {f"record_{one}" for one in ("save", "move", "delete", "relate", "unrelate")}
    assert read_only == TOOLS - writing - {"anchor_save", "anchor_delete", "anchor_resync"}
    destructive = {
        name
        for name, tool in tools.items()
        if tool.annotations and tool.annotations.destructive_hint
    }
    erasing = {"forget", "forget_concept", "anchor_delete", "record_delete"}
    assert destructive == {
        *erasing,
        "merge_nodes",
        "merge_concepts",
        "anchor_save",
        "record_unrelate",
    }
    assert tools["recall"].input_schema["properties"]["limit"]["maximum"] == 100


async def test_every_tool_does_its_work(served: Served, era: str) -> None:
    async with served.client(served.create(f"all_{ERAS.index(era)}"), era) as client:
        await use_every_tool(client)


async def test_the_same_source_reference_is_a_duplicate_and_not_an_error(
    served: Served, era: str
) -> None:
    async with served.client(served.create(f"dup_{ERAS.index(era)}"), era) as client:
        first = await done(client, "remember", content="yes", source_ref="m1", session="s")
        second = await done(client, "remember", content="yes", source_ref="m1", session="s")
        third = await done(client, "remember", content="yes", source_ref="m2", session="s")
    assert second["state"] == "duplicate"
    assert second["turn_id"] == first["turn_id"]
    assert third["turn_id"] != first["turn_id"]


@pytest.mark.parametrize(
    ("tool", "arguments", "word"),
    [
        ("recall", {}, "query"),
        ("recall", {"query": ""}, "query"),
        ("recall", {"query": "x", "limit": 0}, "limit"),
        ("recall", {"query": "x", "limit": 101}, "limit"),
        ("recall", {"query": "x", "limit": "four"}, "limit"),
        ("recall", {"query": "x", "lmit": 4}, "did you mean 'limit'"),
        ("recall", {"query": "x", "entity": "other"}, "unknown argument"),
        ("recall", {"query": "x", "group_id": "ent_" + "a" * 26}, "unknown argument"),
        ("recall", {"query": "x", "as_of": "secretvalue"}, "as_of"),
        ("recall", {"query": "x", "center": "secretvalue" * 60}, "center"),
        ("recall", {"query": "x", "profile": "nonesuch"}, "profile"),
        ("recall", {"query": "x", "filters": {"group": "y"}}, "filters.group"),
        ("remember", {"content": "x" * 65_537}, "content"),
        ("remember", {"content": "x", "role": "secretvalue"}, "role"),
        ("remember", {"content": "x", "occurred_at": "2026-13-01T00:00:00"}, "occurred_at"),
        ("remember", {"content": "x", "facts": [{"subject": "secretvalue"}]}, "facts"),
        ("get", {"ids": []}, "ids"),
        ("get", {"ids": ["secretvalue" * 60]}, "ids"),
        ("forget", {"ids": ["x"], "dry_run": "no"}, "dry_run"),
        ("anchor_delete", {"slug": "../secretvalue"}, "slug"),
        ("timeline", {"limit": 1.5}, "limit"),
        ("stats", {"name": "other"}, "unknown argument"),
    ],
)
async def test_a_broken_bound_is_named_and_the_value_is_not_repeated(
    served: Served, era: str, tool: str, arguments: dict, word: str
) -> None:
    async with served.client(served.create("bounds"), era) as client:
        said = await refused(client, tool, **arguments)
    assert word in said
    assert "secretvalue" not in said
    assert "invalid_request" in said or "not_found" in said
    assert "\n" not in said


async def test_an_unknown_tool_is_a_protocol_error(served: Served, era: str) -> None:
    async with served.client(served.create("bounds"), era) as client:
        with pytest.raises(MCPError) as caught:
            await client.call_tool("nonesuch", {})
    assert caught.value.code == INVALID_PARAMS


async def test_a_missing_or_wrong_token_is_401_and_a_revoked_one_at_once(
    served: Served, era: str
) -> None:
    token = served.create(f"revoked_{ERAS.index(era)}")
    operator = str(served.link.call("operator_issue", "", {})["data"]["token"])
    async with httpx2.AsyncClient(trust_env=False, timeout=PATIENCE_S) as http:
        for wrong in (
            None,
            "nonsense",
            token[:-1],
            new_secret(),
            operator,
            f"{new_secret()}.nobody",
        ):
            headers = {**HEADERS, "MCP-Protocol-Version": era} if era != "legacy" else dict(HEADERS)
            if wrong is not None:
                headers["Authorization"] = f"Bearer {wrong}"
            answer = await http.post(f"{served.run.url}/mcp", json=INITIALIZE, headers=headers)
            assert answer.status_code == 401
            assert "WWW-Authenticate" in answer.headers
    async with served.client(token, era) as client:
        await done(client, "stats")
        served.link.call("token_revoke", "", {"name": f"revoked_{ERAS.index(era)}"})
        with pytest.raises(MCPError, match="error response"):
            await client.call_tool("stats", {})


async def test_another_host_or_origin_isrefused(served: Served, era: str) -> None:
    headers = {**HEADERS, "Authorization": f"Bearer {served.create('hosts')}"}
    if era != "legacy":
        headers["MCP-Protocol-Version"] = era
    async with httpx2.AsyncClient(trust_env=False, timeout=PATIENCE_S) as http:
        for path in ("/mcp", "/health", "/metrics", "/owner/status", "/nothing"):
            wrong_host = await http.post(
                f"{served.run.url}{path}", headers={**headers, "Host": "evil.example"}
            )
            assert wrong_host.status_code == 421
            origin = {**headers, "Origin": "https://evil.example"}
            assert (await http.post(f"{served.run.url}{path}", headers=origin)).status_code == 403
