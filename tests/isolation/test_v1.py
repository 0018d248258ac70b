"""S2-11 on ``/v1``: tokens, the owner's header, toolsets, and every operation of the owner and of operators."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from mcp.shared.exceptions import MCPError

from pps.core.errors import PPSError
from pps.entities.registry import Registry
from pps.operations.catalog import OPERATIONS, operations_for
from pps.server.runfile import new_secret
from tests.integration.interfaces.serving import ERAS, serving, without_socket
from tests.isolation.attacks import owners, unattacked
from tests.isolation.test_server import MARKS, A, B, Pair, tell
from tests.squads import write_squad
from tests.waiting import PATIENCE_S, wait_until

pytestmark = pytest.mark.timeout(300)


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    with serving(tmp_path_factory.mktemp("v1") / "home") as served:
        tokens = {name: served.create(name) for name in (A, B)}
        yield Pair(served, tokens, {name: tell(served, name) for name in (A, B)})


@pytest.fixture
def http(pair: Pair) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=pair.served.run.url, trust_env=False, timeout=60) as client:
        yield client


def bearer(token: str, entity: str = "") -> dict[str, str]:
    return {"Authorization": f"Bearer {token}", **({"PPS-Entity": entity} if entity else {})}


def test_no_operation_is_without_an_attack(tmp_path: Path) -> None:
    assert unattacked(OPERATIONS, tmp_path) == set(), "write an isolation test for these"


def test_a_token_asks_for_its_own_entity_and_its_own_operations_alone(
    pair: Pair, http: httpx.Client
) -> None:
    before = pair.dump(B)
    operator = str(pair.served.link.call("operator_issue", "", {})["data"]["token"])
    router = pair.served.router("/work/nowhere")
    others = {one.name for one in OPERATIONS if one.audience != "entity"} - set(
        operations_for("entity")
    )
    for name in (B, "nobody", "ana_", "%61na_2"):
        answer = http.post("/v1/timeline", headers=bearer(pair.tokens[A], name), json={})
        assert (answer.status_code, MARKS[B] in answer.text) == (403, False), name
    assert MARKS[A] in http.post("/v1/timeline", headers=bearer(pair.tokens[A], A), json={}).text
    for name in sorted(others):
        assert (
            http.post(f"/v1/{name}", headers=bearer(pair.tokens[A]), json={"entity": B}).status_code
            == 404
        ), name
    for token in (operator, router):
        for name in sorted(set(operations_for("entity")) - set(operations_for("router"))):
            assert http.post(f"/v1/{name}", headers=bearer(token), json={}).status_code == 404, name
        assert http.post("/v1/timeline", headers=bearer(token, B), json={}).status_code == 403
    for name in sorted(operations_for("owner")):
        assert (
            http.post(f"/v1/{name}", headers=bearer(operator), json={"entity": B}).status_code
            == 404
        ), name
    for token in ("x", "nonsense", "pps_w_", f"{new_secret()}.{B}"):
        for path in ("/v1/timeline", "/v1/entity_list", "/v1/nonesuch"):
            assert http.post(path, headers=bearer(token, B), json={}).status_code == 401, path
    for token in (pair.tokens[A], router, operator):
        assert MARKS[B] not in http.get("/openapi.json", headers=bearer(token)).text
    assert pair.dump(B) == before


def test_an_argument_that_names_another_is_no_argument(pair: Pair, http: httpx.Client) -> None:
    for named in ({"entity": B}, {"name": B}, {"group_id": B}, {"PPS-Entity": B}, {"project": B}):
        answer = http.post("/v1/timeline", headers=bearer(pair.tokens[A]), json=named)
        assert (answer.status_code, answer.json()["field"]) == (400, next(iter(named)))
    assert (
        MARKS[B]
        not in http.post(f"/v1/timeline?entity={B}", headers=bearer(pair.tokens[A]), json={}).text
    )


async def test_a_token_opens_no_toolset_beyond_its_list_over_either_protocol(pair: Pair) -> None:
    given = {"name": A, "toolsets": ["core", "anchors"]}
    token = str(pair.served.link.call("token_issue", "", given)["data"]["token"])
    kept = Registry(pair.served.home)
    assert kept.bounds_of_token(token).toolsets == {"core", "anchors"}
    assert kept.bounds_of_token(token[:-1] + "?").toolsets == set()
    entity = operations_for("entity")
    opened = {name for name, one in entity.items() if one.toolset in given["toolsets"]}
    async with httpx.AsyncClient(
        base_url=pair.served.run.url, trust_env=False, timeout=PATIENCE_S, headers=bearer(token)
    ) as http:
        for name in set(entity) - opened:
            assert (await http.post(f"/v1/{name}", json={})).json()[
                "code"
            ] == "unknown_operation", name
        assert (await http.post("/v1/anchor_list", json={})).status_code == 200
    for era in ERAS:
        for asked, offered in (
            ("all", opened),
            ("records,upkeep", set()),
            ("anchors,records", {"anchor_list"}),
        ):
            async with pair.served.client(token, era, asked) as client:
                tools = {one.name for one in (await client.list_tools()).tools}
                assert (
                    tools == offered if asked != "anchors,records" else offered <= tools <= opened
                )
                for name in set(entity) - opened:
                    with pytest.raises(MCPError, match="no tool of that name"):
                        await client.call_tool(name, {})


async def test_a_session_of_one_token_gives_another_of_the_entity_no_more_than_its_own_list(
    pair: Pair,
) -> None:
    begin = {
        "protocolVersion": "2025-06-18",
        "capabilities": {},
        "clientInfo": {"name": "t", "version": "1"},
    }
    narrow = str(
        pair.served.link.call("token_issue", "", {"name": A, "toolsets": ["core"]})["data"]["token"]
    )
    kinds = {"Accept": "application/json, text/event-stream"}
    url = f"{pair.served.run.url}/mcp?toolset=all"
    async with httpx.AsyncClient(trust_env=False, timeout=PATIENCE_S) as http:

        async def asked(
            token: str, method: str, params: dict[str, Any], **more: str
        ) -> httpx.Response:
            said = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
            return await http.post(url, json=said, headers={**kinds, **bearer(token), **more})

        session = (await asked(pair.tokens[A], "initialize", begin)).headers["Mcp-Session-Id"]
        noted = {"jsonrpc": "2.0", "method": "notifications/initialized"}
        held = {**kinds, **bearer(pair.tokens[A]), "Mcp-Session-Id": session}
        assert (await http.post(url, json=noted, headers=held)).status_code == 202
        wide = await asked(pair.tokens[A], "tools/list", {}, **{"Mcp-Session-Id": session})
        less = await asked(narrow, "tools/list", {}, **{"Mcp-Session-Id": session})
        assert '"job_status"' in wide.text
        assert '"recall"' in less.text
        assert '"job_status"' not in less.text


def test_whatever_the_owner_asks_about_one_leaves_the_other_as_it_was(
    pair: Pair, tmp_path: Path
) -> None:
    before = pair.dump(B)
    write_squad(pair.served.home, "duo")
    for name, attacks in owners(tmp_path, A).items():
        for arguments in attacks:
            try:
                said = json.dumps(pair.served.link.call(name, "", arguments, timeout_s=120))
            except PPSError as error:
                said = str(error)
                assert name in (
                    *("router_revoke", "entity_extract", "squad_add"),
                    *("feature_enable", "feature_disable"),  # of a name that is none
                ), (name, said)
            assert MARKS[B] not in said, name
            assert pair.dump(B) == before, name


def test_the_owners_secret_is_nothing_to_whoever_comes_through_a_proxy(tmp_path: Path) -> None:
    with (
        serving(tmp_path / "home", **without_socket(tmp_path)) as served,
        httpx.Client(base_url=served.run.url, trust_env=False, timeout=PATIENCE_S) as http,
    ):
        owner = bearer(served.run.secret)
        assert http.post("/v1/entity_list", headers=owner, json={}).status_code == 200
        for name in ("X-Forwarded-For", "Forwarded"):
            headers = {**owner, name: "for=8.8.8.8"}
            assert http.post("/v1/entity_list", headers=headers, json={}).status_code == 401


def test_a_router_learns_no_path_of_the_data_folder_and_nothing_of_what_lies_outside_its_roots(
    pair: Pair, http: httpx.Client, tmp_path: Path
) -> None:
    work, circle = tmp_path / "work", tmp_path / "circle"
    (work / A).mkdir(parents=True)
    circle.symlink_to(circle)
    headers = bearer(pair.served.router(str(work)))
    project = str(work / A)  # the entity behind it cannot have its name: that one is taken
    made = {"project": project, "nodes": [{"title": "t", "content": "c"}]}
    assert http.post("/v1/create_graph", headers=headers, json=made).status_code == 200
    spawned = http.post("/v1/spawn_agent", headers=headers, json={"project": project, "task": "x"})
    assert spawned.status_code == 200
    routed = Registry(pair.served.home).route(project)
    assert routed is not None
    behind = pair.served.home / "entities" / routed.name
    damaged = behind / "data" / "tasks.db"
    damaged.write_bytes(b"no database" * 100)
    for name in ("task_list", "task_claim"):
        answer = http.post(f"/v1/{name}", headers=headers, json={"project": project, "runner": "r"})
        assert answer.status_code >= 400
        assert str(pair.served.home) not in answer.text, name
        assert routed.name not in answer.text, name
    for path in (circle, tmp_path / "none", tmp_path / ("a" * 300), work / ("a" * 300)):
        answer = http.post(
            "/v1/search_nodes", headers=headers, json={"project": str(path), "query": "x"}
        )
        assert (answer.status_code, answer.json()["detail"]) == (404, "project not found"), path


async def test_a_toolset_that_there_is_not_is_said_and_one_that_nobody_asked_for_is_named(
    pair: Pair,
) -> None:
    whole = str(pair.served.link.call("token_issue", "", {"name": A})["data"]["token"])
    for era in ERAS:
        async with pair.served.client(whole, era, "core, anchors") as client:
            assert "anchor_list" in {one.name for one in (await client.list_tools()).tools}
            with pytest.raises(MCPError, match="stats is in the toolset 'upkeep'"):
                await client.call_tool("stats", {})
        async with pair.served.client(whole, era, "anchor") as client:
            with pytest.raises(MCPError, match="'anchor' is none of anchors, core"):
                await client.list_tools()
    narrow = str(
        pair.served.link.call("token_issue", "", {"name": A, "toolsets": ["core"]})["data"]["token"]
    )
    async with pair.served.client(narrow, ERAS[-1]) as client:
        with pytest.raises(
            MCPError, match="there is no tool of that name; there are ambient_recall"
        ):
            await client.call_tool("stats", {})


def test_a_folder_is_followed_no_longer_also_when_the_owner_hangs_up(
    pair: Pair, tmp_path: Path
) -> None:
    for number in range(30):
        (tmp_path / f"{number}.md").write_text(f"# Note {number}\n\nThe lamp {number} is blue.\n")
    pair.served.create("follower")  # of its own: another test deletes what it asks about
    given = {"entity": "follower", "path": str(tmp_path)}
    assert pair.served.link.call("watch_add", "", given, timeout_s=120)["data"]["added"] == 30
    request = ("POST", "/v1/watch_remove")
    with (
        pair.served.owner(Accept="application/x-ndjson") as http,
        http.stream(*request, json={**given, "forget": True}),
    ):
        """Gone at once."""
    wait_until(
        lambda: not pair.served.link.call("watch_list", "", {"name": "follower"})["data"]["folders"]
    )
    assert pair.served.link.call("stats", "follower", {})["data"]["turns"] == 0
