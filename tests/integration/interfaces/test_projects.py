"""The project tools as an agent and a runner use them, over every transport; routers and tasks from the shell."""

from __future__ import annotations

import asyncio
import json
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpx2
import pytest
from mcp.client.client import Client

from pps.core.errors import NotFound
from tests.held_files import files_below
from tests.integration.interfaces.every_tool import done, refused
from tests.integration.interfaces.serving import ERAS, Served
from tests.sampling import sample
from tests.waiting import PATIENCE_S

FLOW = [
    {
        "title": "Auth Flow",
        "content": "OAuth2 with PKCE signs people in. See [[Later]]. #auth",
        "tags": ["security"],
    },
    {
        "title": "Token Storage",
        "content": "Tokens are kept in the keychain.",
        "node_type": "decision",
    },
    {
        "title": "Refresh",
        "content": "A token is refreshed before it ends.",
        "parent_id": "auth flow",
    },
]
EDGES = [
    {"from": "Auth Flow", "to": "Token Storage", "relation_type": "depends_on"},
    {"from": "Auth Flow", "to": "Nowhere", "relation_type": "depends_on"},
]


async def use_every_project_tool(client: Client, served: Served, project: str) -> None:
    """Make, find, look, hand out and wait; the client checks each answer against the tool's own schema."""
    made = await done(client, "create_graph", project=project, nodes=FLOW, edges=EDGES)
    assert made["nodes_created"] == 3
    ids = {one["title"]: one["id"] for one in made["node_ids"]}
    assert list(ids) == ["Auth Flow", "Token Storage", "Refresh"]
    assert made["edges_created"] == 2
    assert sorted(one["what"] for one in made["skipped"]) == ["[[Later]]", "edges[1]"]
    await _the_same_call_again(client, project, made)
    await _an_edge_by_id(client, project, ids)

    found = await done(
        client, "search_nodes", project=project, query="how do people sign in", limit=2
    )
    assert len(found["results"]) == 2
    tagged = {
        "tags": ["auth"],
        "node_types": ["agent"],
        "source_types": ["mcp"],
        "since": "2026-01-01",
    }
    [hit] = (await done(client, "search_nodes", project=project, query="auth", filters=tagged))[
        "results"
    ]
    assert (hit["title"], hit["kind"], hit["tags"]) == ("Auth Flow", "agent", ["security", "auth"])
    assert {"vector", "text", "tags", "recency"} <= set(hit["breakdown"])
    assert all(0 <= signal <= 1 for signal in hit["breakdown"].values())
    near = await done(
        client, "search_nodes", project=project, query="token", anchor_node_id=ids["Auth Flow"]
    )
    assert all("graph" in one["breakdown"] for one in near["results"])

    await _look_around(client, project, ids)
    [vault] = [
        one for one in (await done(client, "list_vaults"))["vaults"] if one["project"] == project
    ]
    assert (vault["nodes"], vault["edges"], vault["tags"]) == (4, 4, 2)
    await _read_back_and_change(client, project, ids["Refresh"])
    await _hand_out(client, served, project, ids["Auth Flow"])


async def _read_back_and_change(client: Client, project: str, node: str) -> None:
    """What an agent wrote it reads, changes and adds to; an event goes to the project that holds its path."""
    await done(client, "append", project=project, id=node, content="By the keychain.")
    await done(client, "update", project=project, id=node, title="Renewal")
    event = {"content": "A token was refreshed.", "title": "Refreshed", "source": "monitor"}
    told = await done(client, "add_event", project_path=f"{project}/src", **event)
    items = (await done(client, "get", project=project, ids=[node, told["node_id"]]))["items"]
    assert [(one["name"], one["content"]) for one in items] == [
        ("Renewal", "A token is refreshed before it ends.\n\nBy the keychain."),
        ("Refreshed", "A token was refreshed."),
    ]


async def _the_same_call_again(client: Client, project: str, made: dict[str, Any]) -> None:
    again = await done(client, "create_graph", project=project, nodes=FLOW, edges=EDGES)
    assert (again["nodes_created"], again["edges_created"]) == (0, 0)
    assert again["node_ids"] == made["node_ids"]


async def _an_edge_by_id(client: Client, project: str, ids: dict[str, str]) -> None:
    """A later call joins what is there, by id and by title, and a link finds its title."""
    nodes = [{"title": "Later", "content": "It came later."}]
    edges = [{"from": ids["Token Storage"], "to": "later", "relation_type": "leads_to"}]
    made = await done(client, "create_graph", project=project, nodes=nodes, edges=edges)
    assert (made["nodes_created"], made["edges_created"], made["skipped"]) == (1, 1, [])


async def _look_around(client: Client, project: str, ids: dict[str, str]) -> None:
    start = {"project": project, "node_id": ids["Refresh"]}
    beside = await done(client, "get_graph", **start, operation="neighbors")
    assert [one["title"] for one in beside["nodes"]] == ["Refresh", "Auth Flow"]
    [edge] = beside["edges"]
    assert (edge["source"], edge["target"], edge["relation_type"]) == (
        ids["Refresh"],
        ids["Auth Flow"],
        "child_of",
    )
    path = await done(
        client, "get_graph", **start, operation="shortest_path", target_node_id=ids["Token Storage"]
    )
    assert [one["title"] for one in path["nodes"]] == ["Refresh", "Auth Flow", "Token Storage"]
    assert [one["relation_type"] for one in path["edges"]] == ["child_of", "depends_on"]
    far = {
        **start,
        "operation": "shortest_path",
        "target_node_id": ids["Token Storage"],
        "max_hops": 1,
    }
    assert (await done(client, "get_graph", **far))["found"] is False
    whole = await done(client, "get_graph", **start, operation="subgraph", max_hops=3)
    assert {one["title"]: one["hops"] for one in whole["nodes"]} == {
        "Refresh": 0,
        "Auth Flow": 1,
        "Token Storage": 2,
        "Later": 2,
    }
    assert len(whole["edges"]) == 4
    assert "target_node_id" in await refused(
        client, "get_graph", **start, operation="shortest_path"
    )
    assert "target_node_id" in await refused(
        client, "get_graph", **start, operation="subgraph", target_node_id=ids["Auth Flow"]
    )


async def _hand_out(client: Client, served: Served, project: str, node: str) -> None:
    """A task goes out, a runner claims it, holds it and ends it, and whoever waits gets the result."""
    secret = "ghp_" + "a1B2" * 9
    first = await done(
        client,
        "spawn_agent",
        project=project,
        task=f"Read it. {secret}",
        title="Read",
        node_id=node,
    )
    second = await done(client, "spawn_agent", project=project, task="Write it.")
    label = await refused(client, "spawn_agent", project=project, task="A label.", agent=secret)
    assert "agent: holds what looks like a secret" in label
    ids = [first["id"], second["id"]]
    soon = await done(client, "wait_for_agents", project=project, ids=ids, timeout_s=0.1)
    assert (soon["all_done"], soon["running"]) == (False, ids)

    def run() -> None:
        asked: dict[str, Any] = {"runner": f"r {secret}", "project": project}
        claimed: Any = served.link.call("task_claim", "", asked)["data"]["claimed"]
        assert (claimed["task"]["id"], claimed["project"], claimed["node_id"]) == (
            ids[0],
            project,
            node,
        )
        assert claimed["prompt"].startswith("Read it.")
        assert secret not in claimed["prompt"]
        held = {"project": project, "id": ids[0], "lease": claimed["lease"]}
        served.link.call("task_extend", "", {**held, "note": "half"})
        time.sleep(0.3)
        served.link.call("task_complete", "", {**held, "result": "It is read."})
        with pytest.raises(NotFound):
            served.link.call("task_complete", "", {**held, "result": "twice"})
        other: Any = served.link.call("task_claim", "", {"runner": "r", "project": project})[
            "data"
        ]["claimed"]
        served.link.call(
            "task_fail",
            "",
            {
                **held,
                "id": ids[1],
                "lease": other["lease"],
                "error": "no paper",
                "retry": False,
            },
        )

    waiting = done(client, "wait_for_agents", project=project, ids=ids, timeout_s=60)
    ended, _ = await asyncio.gather(waiting, asyncio.to_thread(run))
    assert ended["all_done"] is True
    assert not any(secret.encode() in content for _, content in files_below(served.home))
    assert [(one["state"], one.get("result"), one.get("error")) for one in ended["tasks"]] == [
        ("done", "It is read.", None),
        ("failed", None, "no paper"),
    ]


@pytest.mark.parametrize("era", ERAS)
async def test_every_project_tool_does_its_work_over_http(either: Served, era: str) -> None:
    work = f"/work/http{ERAS.index(era)}"
    async with either.client(either.router(work), era) as client:
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
        assert list(tools) == [
            "create_graph",
            "search_nodes",
            "get_graph",
            "get",
            "update",
            "append",
            "add_event",
            "list_vaults",
            "spawn_agent",
            "wait_for_agents",
        ]
        required = tools["get_graph"].input_schema["required"]
        assert sorted(required) == ["node_id", "operation", "project"]
        edge = tools["create_graph"].input_schema["properties"]["edges"]["items"]
        assert sorted(edge["required"]) == ["from", "relation_type", "to"]
        await use_every_project_tool(client, either, f"{work}/shop")


@pytest.mark.parametrize("era", sample(ERAS, 1, "stdio"))  # over HTTP in each
async def test_every_project_tool_does_its_work_over_stdio(either: Served, era: str) -> None:
    work = f"/work/stdio{ERAS.index(era)}"
    async with either.projects(era, work) as client:
        await use_every_project_tool(client, either, f"{work}/shop")


@pytest.mark.parametrize(
    ("tool", "arguments", "word"),
    [
        ("create_graph", {"nodes": []}, "nodes"),
        ("create_graph", {"nodes": [{"title": "secretvalue"}]}, "content"),
        (
            "create_graph",
            {"nodes": [{"title": "a", "content": "b", "node_type": "not a kind"}]},
            "node_type",
        ),
        ("create_graph", {"nodes": [{"title": "a", "content": "b", "tags": ["1"]}]}, "tags"),
        ("create_graph", {"nodes": [{"title": "a", "content": " "}]}, "content"),
        ("create_graph", {"nodes": [{"title": "a\0", "content": "b"}]}, "title"),
        ("search_nodes", {"query": "x", "weights": {"vector": -1}}, "weights.vector"),
        ("search_nodes", {"query": "x", "weights": {"vectr": 1}}, "did you mean 'weights.vector'"),
        ("search_nodes", {"query": "x", "limit": 101}, "limit"),
        ("get_graph", {"node_id": "", "operation": "neighbors"}, "node_id"),
        ("wait_for_agents", {"ids": [], "timeout_s": 1}, "ids"),
        (
            "wait_for_agents",
            {"ids": ["1b4e28ba-2fa1-5d2b-883f-0016d3cca427"], "timeout_s": 61},
            "timeout_s",
        ),
        ("spawn_agent", {"task": ""}, "task"),
        ("spawn_agent", {"task": " "}, "task"),
        ("list_vaults", {}, "unknown argument"),
    ],
)
async def test_a_broken_bound_is_named_and_makes_nothing(
    served: Served, tool: str, arguments: dict[str, Any], word: str
) -> None:
    async with served.client(served.router("/work/bounds"), ERAS[-1]) as client:
        said = await refused(client, tool, project="/work/bounds/shop", **arguments)
        assert word in said
        assert "secretvalue" not in said
        assert (await done(client, "list_vaults"))["vaults"] == []


async def test_each_filter_of_search_nodes_gives_a_full_list_of_what_it_lets_through(
    served: Served,
) -> None:
    project = "/work/filters/shop"
    async with served.client(served.router("/work/filters"), ERAS[-1]) as client:
        lamps = [
            {"title": f"brass lamp {at}", "content": "A brass lamp.", "node_type": "lamp"}
            for at in range(40)
        ]
        await done(client, "create_graph", project=project, nodes=lamps)
        [entity] = [
            one["entity"]
            for one in served.link.call("route_list", "", {})["data"]["routes"]
            if one["path"] == project
        ]
        cut = datetime.now(UTC).isoformat()
        for at in range(6):
            jar = {
                "content": "A jar.",
                "title": f"jar {at}",
                "kind": "jar",
                "tags": ["rare"],
                "source": "whisper",
            }
            served.link.call("add_event", str(entity), {**jar, "source_ref": str(at)})
        edges = [
            {"from": f"jar {at}", "to": f"jar {(at + 1) % 6}", "relation_type": "beside"}
            for at in range(6)
        ]
        shelf = [{"title": "jar shelf", "content": "For jars."}]
        await done(client, "create_graph", project=project, nodes=shelf, edges=edges)

        async def found(**filters: Any) -> set[tuple[str, int]]:
            query = {
                "project": project,
                "query": "a brass lamp, not a jar",
                "limit": 5,
                "filters": filters,
            }
            results = (await done(client, "search_nodes", **query))["results"]
            return {(one["title"].split()[0], len(results)) for one in results}

        assert await found() == {("brass", 5)}
        for filters in (
            {"node_types": ["jar"]},
            {"tags": ["rare"]},
            {"relation_types": ["beside"]},
            {"source_types": ["whisper"]},
            {"since": cut},
            {
                "since": cut,
                "node_types": ["jar"],
                "tags": ["rare"],
                "relation_types": ["beside", "above"],
            },
        ):
            assert await found(**filters) == {("jar", 5)}, filters
        assert await found(until=cut) == {("brass", 5)}
        for filters in (
            {"until": cut, "tags": ["rare"]},
            {"relation_types": ["above"]},
            {"source_types": ["editor"]},
        ):
            assert await found(**filters) == set(), filters


async def test_a_router_that_may_not_create_uses_what_is_there(served: Served) -> None:
    served.link.call("entity_create", "", {"name": "library"})
    served.link.call("route_add", "", {"path": "/work/library", "entity": "library"})
    async with served.client(served.router("/work", may_create=False), ERAS[-1]) as client:
        nodes = [{"title": "Shelf", "content": "Books."}]
        assert (await done(client, "create_graph", project="/work/library", nodes=nodes))[
            "nodes_created"
        ] == 1
        said = await refused(client, "create_graph", project="/work/library/annex", nodes=nodes)
        assert said == "project not found (not_found)"


async def test_a_runner_over_the_network_claims_what_has_waited_longest(served: Served) -> None:
    token = served.router("/work/queue")
    async with served.client(token, ERAS[-1]) as client:
        for project in ("b", "a"):
            await done(
                client, "spawn_agent", project=f"/work/queue/{project}", task=f"Task of {project}."
            )
    async with httpx2.AsyncClient(
        trust_env=False, timeout=PATIENCE_S, base_url=served.run.url
    ) as http:
        prompts = []
        for _ in range(3):
            answer = await http.post(
                "/v1/task_claim",
                json={"runner": "net"},
                headers={"Authorization": f"Bearer {token}"},
            )
            claimed = answer.json().get("claimed")
            prompts.append(claimed["prompt"] if claimed else None)
    assert prompts == ["Task of b.", "Task of a.", None]


def test_routes_routers_and_tasks_from_the_shell(served: Served, tmp_path: Path) -> None:
    (tmp_path / "shop").mkdir()
    (tmp_path / "link").symlink_to("shop")
    served.create("keeper")
    shop = str(tmp_path / "shop")
    assert (
        served.pps("route", "add", str(tmp_path / "link"), "keeper").stdout
        == f"{shop} belongs to keeper.\n"
    )
    assert f"{shop}  keeper\n" in served.pps("route", "list").stdout
    assert served.link.call("route_find", "", {"path": f"{shop}/src/deep"})["data"] == {
        "entity": "keeper"
    }
    assert served.link.call("route_find", "", {"path": str(tmp_path)})["data"] == {}

    made = json.loads(
        served.pps("router", "create", str(tmp_path / "link"), "--label", "shell", "--json").stdout
    )
    assert (made["roots"], made["may_create"]) == ([shop], True)
    assert made["token"].startswith("pps_r_")
    assert made["clients"]["json"]["mcpServers"]["pps-projects"]["args"][-4:-1] == [
        "mcp",
        "--router",
        "--root",
    ]
    assert f"{made['id']}  {shop}  shell" in served.pps("router", "list").stdout
    assert served.pps("router", "revoke", made["id"]).returncode == 0

    asyncio.run(_spawn(served, shop))
    claimed = json.loads(served.pps("task", "claim", "--project", shop, "--json").stdout)["claimed"]
    held = [shop, claimed["task"]["id"], claimed["lease"]]
    assert served.pps("task", "extend", *held, "--note", "half").returncode == 0
    assert "All of it." in served.pps("task", "complete", *held, "-", given="All of it.").stdout
    assert served.pps("task", "fail", *held, "why").returncode == 3
    assert served.pps("route", "remove", shop).returncode == 0
    assert served.pps("task", "list", shop).returncode == 3


async def _spawn(served: Served, project: str) -> None:
    async with served.projects(ERAS[-1]) as client:
        await done(client, "spawn_agent", project=project, task="Do it all.")
