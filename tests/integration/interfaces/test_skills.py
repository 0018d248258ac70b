"""The skill that teaches an agent the memory: served over MCP as the extension says, and true of the tools there are."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path
from typing import Any

import httpx2
import pytest
import yaml
from mcp.client.client import Client
from mcp.shared.exceptions import MCPError
from mcp_types import Request, RequestParams, Result
from pydantic import ConfigDict

from pps.interfaces.mcp.offer import SKILLS_EXTENSION, shipped_skills
from pps.operations.catalog import operations_for
from tests.integration.interfaces.serving import ERAS, Served
from tests.waiting import PATIENCE_S

ROOT = Path(__file__).parents[3]
URI = "skill://pps-memory/SKILL.md"
TEXT = (ROOT / "skills" / "pps-memory" / "SKILL.md").read_text(encoding="utf-8")


class _Open(Result):
    model_config = ConfigDict(extra="allow")


class _Params(RequestParams):
    uri: str | None = None


async def asked(client: Client, method: str, uri: str | None = None) -> dict[str, Any]:
    request = Request[_Params, str](method=method, params=_Params(uri=uri))
    answer = await client.session.send_request(request, _Open)  # pyright: ignore[reportArgumentType]
    return answer.model_dump(mode="json", by_alias=True)


async def check(client: Client, era: str) -> None:
    if era == "legacy":  # there a server has no field for extensions; their methods answer
        capabilities = client.server_capabilities.model_dump(by_alias=True, exclude_none=True)
    else:
        capabilities = (await asked(client, "server/discover"))["capabilities"]
        assert capabilities["extensions"] == {SKILLS_EXTENSION: {}}
    assert "resources" in capabilities
    [entry] = (await asked(client, "skills/list"))["skills"]
    assert entry["uri"] == URI
    assert entry["frontmatter"] == yaml.safe_load(TEXT.split("---\n")[1])
    assert (await asked(client, "skills/get", URI))["skill"] == entry
    [listed] = (await client.list_resources()).resources
    assert (str(listed.uri), listed.mime_type) == (URI, "text/markdown")
    [contents] = (await client.read_resource(URI)).contents
    text = contents.model_dump()["text"]
    assert text == TEXT
    digest = hashlib.sha256(text.encode()).hexdigest()
    assert entry["resources"] == [
        {"uri": URI, "digest": f"sha256:{digest}", "size": len(text.encode())}
    ]
    for method in ("skills/get", "resources/read"):
        for uri in ("skill://other/SKILL.md", "skill://pps-memory/../SKILL.md", "file:///etc", ""):
            with pytest.raises(MCPError) as refused:
                await asked(client, method, uri)
            assert refused.value.error.code == -32602


@pytest.mark.parametrize("era", ERAS)
async def test_a_client_over_http_finds_the_skill_and_reads_it(served: Served, era: str) -> None:
    token = served.create("ana")
    async with served.client(token, era) as client:
        await check(client, era)


@pytest.mark.parametrize("era", ERAS)
async def test_a_client_over_stdio_finds_the_skill_and_reads_it(served: Served, era: str) -> None:
    served.create("ana")
    async with served.stdio("ana", era) as client:
        await check(client, era)


@pytest.mark.parametrize("era", ERAS)
async def test_the_project_tools_have_no_skill_and_nobody_reads_one_without_a_token(
    served: Served, era: str
) -> None:
    async with served.projects(era) as client:
        with pytest.raises(MCPError):
            await asked(client, "skills/list")
    async with httpx2.AsyncClient(trust_env=False, timeout=PATIENCE_S) as http:
        body: dict[str, object] = {"jsonrpc": "2.0", "id": 1, "method": "skills/list", "params": {}}
        answer = await http.post(f"{served.run.url}/mcp", json=body)
        assert answer.status_code == 401


def test_the_skill_keeps_the_rules_of_agent_skills() -> None:
    head = yaml.safe_load(TEXT.split("---\n")[1])
    assert head["name"] == "pps-memory"
    assert re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", head["name"])
    assert 1 <= len(head["description"]) <= 1024
    assert head.keys() <= {"name", "description", "license", "compatibility", "metadata"}
    assert len(TEXT.splitlines()) < 500
    assert list(shipped_skills()) == [URI]


def test_every_tool_and_toolset_that_the_skill_names_is_there() -> None:
    tools = operations_for("entity")
    named = set(re.findall(r"`([a-z_]+)`", TEXT))
    toolsets = set(re.findall(r"toolset `([a-z]+)`", TEXT))
    fields = {
        *("nodes", "facts", "subject", "relation", "object", "text", "valid_at"),
        *("as_of", "dry_run"),
    }
    assert named - toolsets - fields <= tools.keys()
    for tool, toolset in re.findall(r"`([a-z_]+)` \(toolset `([a-z]+)`\)", TEXT):
        assert tools[tool].toolset == toolset
    core = {"ambient_recall", "recall", "remember", "get", "timeline", "forget"}
    assert core <= named
    arguments = set(tools["remember"].input_schema()["properties"]) | {"dry_run", "as_of"}
    assert {"nodes", "facts"} <= arguments
