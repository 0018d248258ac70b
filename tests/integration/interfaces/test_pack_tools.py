"""Tools of a pack: other names of operations, over every interface, for the entities that have the pack alone."""

from __future__ import annotations

from collections.abc import Iterator

import httpx
import pytest
from mcp.shared.exceptions import MCPError

from pps.core.errors import InvalidRequest
from tests.integration.interfaces.serving import ERAS, Served, serving

pytestmark = pytest.mark.timeout(300)
GARDEN = """
name = "garden"
version = 1
[kinds.Bed]
about = "Where something grows"
fields.width = { type = "number" }
[tools."garden.find.v2"]
operation = "recall"
about = "Finds what grows"
fixed = { channels = ["episodes"] }
defaults = { limit = 3 }
[tools."garden.count.v1"]
operation = "stats"
"""


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    home = tmp_path_factory.mktemp("tools") / "home"
    (home / "packs").mkdir(parents=True, mode=0o700)
    (home / "packs" / "garden.toml").write_text(GARDEN)
    with serving(home, PPS_LOG_LEVEL="info") as served:
        served.link.call("entity_create", "", {"name": "ana", "packs": ["garden"]})
        served.create("bob")
        for name in ("ana", "bob"):
            served.link.call("remember", name, {"content": f"The roses of {name} are red."})
        yield served


def token_of(served: Served, name: str, **more: object) -> str:
    return str(served.link.call("token_issue", "", {"name": name, **more})["data"]["token"])


@pytest.mark.parametrize("era", ERAS)
async def test_a_client_lists_and_calls_them_by_either_name(served: Served, era: str) -> None:
    token = token_of(served, "ana", toolsets=["core,garden"], actor="plan")
    async with served.client(token, era, "garden") as client:
        tools = {one.name: one for one in (await client.list_tools()).tools}
        assert set(tools) == {"garden_find_v2", "garden_count_v1"}
        schema = tools["garden_find_v2"].input_schema
        assert "channels" not in schema["properties"]
        assert schema["properties"]["limit"]["default"] == 3
        assert schema["required"] == ["query"]
        assert (tools["garden_find_v2"].description or "").startswith("Finds what grows. ")
        for name in ("garden_find_v2", "garden.find.v2"):
            answer = await client.call_tool(name, {"query": "roses", "minSimilarity": -1})
            assert answer.structured_content is not None
            assert "roses of ana" in str(answer.structured_content["channels"])
            assert set(answer.structured_content["channels"]) == {"episodes"}
        for wrong in (
            {"query": "x", "channels": ["facts"]},
            {"query": "x", "minSimilarity": 0, "min_similarity": 0},
        ):
            refused = await client.call_tool("garden_find_v2", wrong)
            assert refused.is_error, wrong
    assert (
        "entity=ana actor=plan operation=garden_find_v2 outcome=ok"
        in (served.home / "test-server.log").read_text()
    )


@pytest.mark.parametrize("era", ERAS)
async def test_who_has_not_the_pack_does_not_know_them(served: Served, era: str) -> None:
    token = token_of(served, "bob")
    async with served.client(token, era, "all") as client:
        assert not [
            one.name for one in (await client.list_tools()).tools if one.name.startswith("garden")
        ]
        for name in ("garden_find_v2", "garden.find.v2", "bed_create_v1"):
            with pytest.raises(MCPError, match="no tool of that name"):
                await client.call_tool(name, {"query": "roses"})
    async with served.client(token, era, "garden") as client:
        with pytest.raises(MCPError, match="'garden' is none of"):
            await client.list_tools()
    with pytest.raises(InvalidRequest, match="'garden' is none of"):
        token_of(served, "bob", toolsets=["garden"])
    narrow = token_of(served, "ana", toolsets=["core"])
    async with served.client(narrow, era, "all") as client:
        with pytest.raises(MCPError, match="no tool of that name"):
            await client.call_tool("garden_find_v2", {"query": "roses"})


def test_over_http_they_are_an_operation_and_in_the_document_of_their_entity(
    served: Served,
) -> None:
    with httpx.Client(base_url=served.run.url, trust_env=False, timeout=60) as http:
        ana, bob = (
            {"Authorization": f"Bearer {token_of(served, name)}"} for name in ("ana", "bob")
        )
        for name in ("garden.count.v1", "garden_count_v1"):
            assert http.post(f"/v1/{name}", headers=ana, json={}).json()["entity"] == "ana"
            assert (
                http.post(f"/v1/{name}", headers=bob, json={}).json()["code"] == "unknown_operation"
            )
        paths = {
            name: http.get("/openapi.json", headers=one).json()["paths"]
            for name, one in (("a", ana), ("b", bob))
        }
        assert {"/v1/garden_find_v2", "/v1/garden_count_v1"} == set(paths["a"]) - set(paths["b"])
        found = http.post(
            "/v1/garden.find.v2", headers=ana, json={"query": "roses", "channels": ["facts"]}
        ).json()
        assert (found["status"], found["field"]) == (400, "channels")
    assert served.link.call("garden.count.v1", "ana", {})["data"]["entity"] == "ana"


async def test_a_bridge_offers_them_where_they_are_asked_for(served: Served) -> None:
    async with served.stdio("ana", ERAS[-1], "--toolset", "garden") as client:
        assert {one.name for one in (await client.list_tools()).tools} == {
            "garden_find_v2",
            "garden_count_v1",
        }
        answer = await client.call_tool("garden_count_v1", {})
        assert (answer.structured_content or {})["entity"] == "ana"
    refused = served.pps("mcp", "--entity", "bob", "--toolset", "garden")
    assert "'garden' is none of" in refused.stderr
