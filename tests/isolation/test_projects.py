"""Project routes and routers: no path, link, name or id leads from one project into another's memory."""

from __future__ import annotations

import asyncio
import json
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import uuid4

import httpx2
import pytest
from filelock import FileLock
from mcp.shared.exceptions import MCPError

from pps.core.errors import InvalidRequest, IsolationError, NotFound
from pps.entities.registry import Registry
from pps.entities.tasks import TaskDraft, Tasks
from pps.journal.db import Tally, prepare_file, tally
from pps.operations.catalog import operations_for
from tests.erasing import deleted
from tests.integration.interfaces.every_tool import done, refused
from tests.integration.interfaces.every_tool import text as text_of
from tests.integration.interfaces.serving import ERAS, Served, serving
from tests.isolation.test_surfaces import HEADERS, INITIALIZE, PING
from tests.waiting import PATIENCE_S


@pytest.fixture
def registry(tmp_path: Path) -> Registry:
    return Registry(tmp_path / "home")


def lay_out(work: Path) -> Path:
    """Make two projects beside each other, one with the other's name as its beginning, and links between them."""
    for name in ("proj", "project2", "outside"):
        (work / name / "src").mkdir(parents=True)
    (work / "proj" / "out").symlink_to(work / "project2")
    (work / "proj" / "up").symlink_to("..")
    (work / "alias").symlink_to("proj")
    return work


@pytest.fixture
def work(tmp_path: Path) -> Path:
    return lay_out(tmp_path / "work")


SAME = ["", "/", "//", "/.", "/src/..", "/src/../", "/up/proj", "/../alias", "/../alias/src/.."]
OTHERS = [
    "2",
    "/../project2",
    "/out",
    "/out/src/..",
    "/up/project2",
    "/src/../../project2",
    "/../outside",
]


@pytest.mark.parametrize("tail", SAME)
def test_every_spelling_of_a_folder_is_the_same_project(
    registry: Registry, work: Path, tail: str
) -> None:
    made = registry.create_for(f"{work}/proj")
    assert registry.create_for(f"{work}/proj{tail}").entity == made.entity
    assert registry.routes.exactly(f"{work}/proj{tail}") == made.entity
    assert registry.route(f"{work}/proj{tail}") == made.entity


@pytest.mark.parametrize("tail", OTHERS)
def test_no_spelling_leads_into_the_project_next_door(
    registry: Registry, work: Path, tail: str
) -> None:
    made = registry.create_for(f"{work}/proj")
    assert registry.routes.nearest(f"{work}/proj{tail}") is None
    assert registry.routes.exactly(f"{work}/proj{tail}") is None
    with pytest.raises(NotFound):
        registry.routes.remove(f"{work}/proj{tail}")
    assert registry.create_for(f"{work}/proj{tail}").entity != made.entity


def test_letters_of_another_case_are_another_folder(registry: Registry) -> None:
    assert registry.create_for("/w/proj").entity != registry.create_for("/w/PROJ").entity


def test_a_link_that_is_turned_elsewhere_takes_no_memory_with_it(
    registry: Registry, work: Path
) -> None:
    here = registry.create_for(f"{work}/alias").entity
    (work / "alias").unlink()
    (work / "alias").symlink_to("project2")
    assert registry.route(f"{work}/alias") is None
    assert registry.route(f"{work}/proj") == here


def test_a_folder_that_becomes_a_link_loses_its_memory_rather_than_share_it(
    registry: Registry, work: Path
) -> None:
    theirs = registry.create_for(f"{work}/project2").entity
    (work / "fresh").mkdir()
    registry.create_for(f"{work}/fresh")
    (work / "fresh").rmdir()
    (work / "fresh").symlink_to("project2")
    assert registry.route(f"{work}/fresh") == theirs, (
        "the link is the folder it leads to, as for every program"
    )


def test_a_mapped_folder_is_nobody_elses_and_is_never_taken_over(
    registry: Registry, work: Path
) -> None:
    registry.create("ana")
    registry.create("ana_2")
    registry.routes.add(f"{work}/proj", "ana")
    with pytest.raises(InvalidRequest):
        registry.routes.add(f"{work}/alias", "ana_2")
    assert [one.entity.name for one in registry.routes.list([f"{work}/proj"])] == ["ana"]
    assert registry.routes.list([f"{work}/pro", f"{work}/project", str(work).upper()]) == []
    (work / "ana").mkdir()
    assert registry.create_for(f"{work}/ana").entity.name == "ana_3"


def test_deleting_an_entity_takes_its_routes_and_only_its(registry: Registry, work: Path) -> None:
    one, two = (
        registry.create_for(f"{work}/proj").entity,
        registry.create_for(f"{work}/project2").entity,
    )
    deleted(registry, one.name)
    assert registry.route(f"{work}/proj") is None
    assert registry.route(f"{work}/project2") == two
    assert registry.create_for(f"{work}/proj").entity.group != one.group


CANARY = "kanarienvogel 4711"
TOOLS = (
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
)
RUNNER = ("task_claim", "task_extend", "task_complete", "task_fail", "task_list")


@dataclass(frozen=True)
class City:
    """A server with two projects next door to each other, and tokens that reach one, both or nothing new."""

    served: Served
    work: Path
    mine: str
    reader: str
    entity: str
    node: str
    task: str
    lease: str

    def path(self, tail: str) -> str:
        return f"{self.work}{tail}"

    def theirs(self) -> str:
        """Return everything that the project next door holds, as its owner sees it."""
        link = self.served.link
        page = link.call("timeline", "project2", {"limit": 100})["data"]
        stats = link.call("stats", "project2", {})["data"]
        tasks = link.call("task_list", "", {"project": self.path("/project2")})["data"]
        return json.dumps(
            [page, stats["nodes"], stats["facts"], stats["turns"], tasks], sort_keys=True
        )


@pytest.fixture(scope="module")
def city(tmp_path_factory: pytest.TempPathFactory) -> Iterator[City]:
    base = tmp_path_factory.mktemp("city")
    work = lay_out(base / "work")
    with serving(base / "home") as served:
        mine, theirs = served.router(f"{work}/proj"), served.router(f"{work}/project2")
        node, task, lease = asyncio.run(_fill(served, work, mine, theirs))
        reader = served.router(str(work), may_create=False)
        yield City(served, work, mine, reader, served.create("ana"), node, task, lease)


async def _fill(served: Served, work: Path, mine: str, theirs: str) -> tuple[str, str, str]:
    """Make both projects; the one next door has a word, a node and two tasks, one of them claimed."""
    async with served.client(mine, ERAS[-1]) as client:
        await done(
            client,
            "create_graph",
            project=f"{work}/proj",
            nodes=[{"title": "Mine", "content": "Own."}],
        )
    async with served.client(theirs, ERAS[-1]) as client:
        nodes = [
            {"title": "Vault", "content": f"The word is {CANARY}.", "tags": ["vault"]},
            {"title": "B", "content": "b"},
        ]
        edges = [{"from": "Vault", "to": "B", "relation_type": "leads_to"}]
        made = await done(
            client, "create_graph", project=f"{work}/project2", nodes=nodes, edges=edges
        )
        for _ in range(2):
            await done(client, "spawn_agent", project=f"{work}/project2", task=f"Say {CANARY}.")
    claimed = served.link.call("task_claim", "", {"runner": "theirs", "lease_s": 3600})["data"][
        "claimed"
    ]
    return made["node_ids"][0]["id"], claimed["task"]["id"], claimed["lease"]


def calls(project: str) -> list[tuple[str, dict[str, Any]]]:
    """Return every project tool that takes a project, used on one."""
    uuid = str(uuid4())
    return [
        (
            "create_graph",
            {"project": project, "nodes": [{"title": "Vault", "content": "mine now"}]},
        ),
        ("search_nodes", {"project": project, "query": "vault word"}),
        ("get_graph", {"project": project, "node_id": uuid, "operation": "subgraph"}),
        ("get", {"project": project, "ids": [uuid]}),
        ("update", {"project": project, "id": uuid, "content": "mine now"}),
        ("append", {"project": project, "id": uuid, "content": "mine now"}),
        ("add_event", {"project_path": project, "content": "mine now"}),
        ("spawn_agent", {"project": project, "task": "x"}),
        ("wait_for_agents", {"project": project, "ids": [uuid], "timeout_s": 0}),
    ]


async def test_no_tool_reaches_a_project_outside_the_roots_and_says_so_as_of_one_that_is_not_there(
    city: City,
) -> None:
    before = await asyncio.to_thread(city.theirs)
    tails = [*OTHERS, "/../../..", "/../../../etc", "/../../home/entities/ana"]
    async with city.served.client(city.mine, ERAS[-1]) as client:
        for tail in tails:
            for tool, arguments in calls(city.path(f"/proj{tail}")):
                assert await refused(client, tool, **arguments) == "project not found (not_found)"
    async with city.served.client(city.reader, ERAS[-1]) as client:
        for tool, arguments in calls(city.path("/absent")):
            assert await refused(client, tool, **arguments) == "project not found (not_found)"
    assert await asyncio.to_thread(city.theirs) == before
    listed = city.served.link.call("entity_list", "", {})["data"]["entities"]
    assert {one["name"] for one in listed} == {"ana", "proj", "project2"}


async def test_a_path_that_is_none_is_refused_without_a_word_about_projects(city: City) -> None:
    async with city.served.client(city.mine, ERAS[-1]) as client:
        for path in ("proj", "../proj", "~/proj", "", " ", "/a\0b", "/" + "x" * 4096):
            for tool, arguments in calls(path):
                assert (await refused(client, tool, **arguments)).startswith(
                    ("project: ", "project_path: ")
                )


async def test_ids_of_the_project_next_door_are_nobodys(city: City) -> None:
    project, absent = city.path("/proj"), str(uuid4())
    node = {"title": "N", "content": "n"}
    attacks: list[tuple[str, dict[str, Any]]] = [
        ("get_graph", {"node_id": "<id>", "operation": "neighbors"}),
        ("get", {"ids": ["<id>"]}),
        ("update", {"id": "<id>", "content": "mine now"}),
        ("append", {"id": "<id>", "content": "mine now"}),
        ("get_graph", {"node_id": "<id>", "operation": "shortest_path", "target_node_id": "<id>"}),
        ("search_nodes", {"query": "vault", "anchor_node_id": "<id>"}),
        ("spawn_agent", {"task": "x", "node_id": "<id>"}),
        ("wait_for_agents", {"ids": ["<task>"], "timeout_s": 0}),
        ("create_graph", {"nodes": [{**node, "parent_id": "<id>"}]}),
        (
            "create_graph",
            {"nodes": [node], "edges": [{"from": "N", "to": "<id>", "relation_type": "r"}]},
        ),
    ]
    before = await asyncio.to_thread(city.theirs)
    async with city.served.client(city.mine, ERAS[-1]) as client:
        for tool, arguments in attacks:
            said: list[Any] = []
            for node_id, task_id in ((city.node, city.task), (absent, absent)):
                text = json.dumps(arguments).replace("<id>", node_id).replace("<task>", task_id)
                result = await client.call_tool(tool, {"project": project, **json.loads(text)})
                skipped = (result.structured_content or {}).get("skipped")
                told = text_of(result).replace(node_id, "<id>") if result.is_error else skipped
                said.append((result.is_error, told))
            assert said[0] == said[1], tool
            assert CANARY not in json.dumps(said)
            assert said[0][0] or "nothing of this memory has that id" in json.dumps(said), tool
    assert await asyncio.to_thread(city.theirs) == before


async def test_a_project_path_leads_an_event_of_a_router_to_the_project_that_holds_it_and_to_no_other(
    city: City,
) -> None:
    before = await asyncio.to_thread(city.theirs)
    event = {"content": "The lamp is lit.", "title": "Lamp"}
    async with city.served.client(city.mine, ERAS[-1]) as client:
        made = await done(client, "add_event", project_path=city.path("/proj/src/deep"), **event)
        read = await done(client, "get", project=city.path("/proj"), ids=[made["node_id"]])
        assert read["items"][0]["content"] == event["content"]
    async with city.served.client(
        city.entity, ERAS[-1]
    ) as client:  # its own token stays in its own entity
        own = await done(client, "add_event", project_path=city.path("/project2"), **event)
        assert [
            one["id"] for one in (await done(client, "get", ids=[own["node_id"]]))["items"]
        ] == [own["node_id"]]
    assert await asyncio.to_thread(city.theirs) == before


async def test_a_search_and_a_list_show_only_what_is_inside(city: City) -> None:
    async with city.served.client(city.mine, ERAS[-1]) as client:
        found = await done(
            client, "search_nodes", project=city.path("/proj"), query=f"vault {CANARY}", limit=100
        )
        assert CANARY not in json.dumps(found)
        vaults = (await done(client, "list_vaults"))["vaults"]
        assert [one["project"] for one in vaults] == [city.path("/proj")]
    async with city.served.client(city.reader, ERAS[-1]) as client:
        assert len((await done(client, "list_vaults"))["vaults"]) == 2


async def test_a_runner_gets_no_task_and_ends_none_outside_its_roots(city: City) -> None:
    before = await asyncio.to_thread(city.theirs)
    theirs, mine = city.path("/project2"), city.path("/proj")
    held = {"id": city.task, "lease": city.lease}
    attacks: list[tuple[str, dict[str, Any], int]] = [
        ("task_claim", {"runner": "x", "project": theirs}, 404),
        ("task_list", {"project": theirs}, 404),
        *(
            (verb, {"project": project, **held, **more}, 404)
            for verb, more in (
                ("task_extend", {}),
                ("task_complete", {"result": "x"}),
                ("task_fail", {"error": "x"}),
            )
            for project in (theirs, mine, f"{mine}/out")
        ),
        ("recall", {"query": "x"}, 404),
        ("create_graph", {"project": theirs, "nodes": [{"title": "x", "content": "x"}]}, 404),
    ]
    async with httpx2.AsyncClient(
        trust_env=False, timeout=PATIENCE_S, base_url=city.served.run.url
    ) as http:
        headers = {"Authorization": f"Bearer {city.mine}"}
        for verb, arguments, status in attacks:
            answer = await http.post(f"/v1/{verb}", json=arguments, headers=headers)
            assert (answer.status_code, CANARY in answer.text) == (status, False), verb
        nothing = await http.post("/v1/task_claim", json={"runner": "x"}, headers=headers)
        assert nothing.json() == {}
    assert await asyncio.to_thread(city.theirs) == before


async def test_a_router_opens_the_project_tools_alone_and_an_entity_none_of_them(
    city: City,
) -> None:
    async with city.served.client(city.mine, ERAS[-1]) as client:
        assert [tool.name for tool in (await client.list_tools()).tools] == list(TOOLS)
        for verb in (*(set(operations_for("entity")) - {*TOOLS}), *RUNNER):
            with pytest.raises(MCPError, match="no tool of that name"):
                await client.call_tool(verb, {})
    async with city.served.client(city.entity, ERAS[-1]) as client:
        theirs = {*TOOLS, *RUNNER} - {*operations_for("entity")}
        assert not {tool.name for tool in (await client.list_tools()).tools} & theirs
        for tool, arguments in [*calls(city.path("/project2")), *((name, {}) for name in theirs)]:
            if (
                tool not in theirs
            ):  # an entity has tools of these names that act on itself: they take no project
                assert tool == "add_event" or "unknown argument" in await refused(
                    client, tool, **arguments
                )
                continue
            with pytest.raises(MCPError, match="no tool of that name"):
                await client.call_tool(tool, arguments)
    async with httpx2.AsyncClient(
        trust_env=False, timeout=PATIENCE_S, base_url=city.served.run.url
    ) as http:
        for token, paths, status in (
            (city.mine, ("/owner/stop", "/owner/hooks"), 401),
            (city.mine, ("/v1/stats", "/v1/entity_list", "/v1/route_find"), 404),
            (city.entity, ("/v1/task_claim", "/v1/task_list"), 404),
        ):
            for path in paths:
                answer = await http.post(
                    path, json={"entity": "ana"}, headers={"Authorization": f"Bearer {token}"}
                )
                assert answer.status_code == status, path


async def test_an_operator_makes_no_routers_and_learns_no_paths(city: City) -> None:
    operator = str(city.served.link.call("operator_issue", "", {})["data"]["token"])
    headers = {"Authorization": f"Bearer {operator}"}
    async with httpx2.AsyncClient(
        trust_env=False, timeout=PATIENCE_S, base_url=city.served.run.url
    ) as http:
        for action in (
            "router_create",
            "router_list",
            "router_revoke",
            "route_add",
            "route_list",
            "route_find",
        ):
            answer = await http.post(
                f"/v1/{action}", json={"roots": ["/"], "path": "/"}, headers=headers
            )
            assert answer.status_code == 404, action
        assert (
            await http.post("/v1/task_claim", json={"runner": "x"}, headers=headers)
        ).status_code == 404


async def test_a_session_of_an_entity_is_none_of_a_routers(city: City) -> None:
    url = f"{city.served.run.url}/mcp"
    async with httpx2.AsyncClient(trust_env=False, timeout=PATIENCE_S) as http:
        for owner, other in (
            (city.entity, city.mine),
            (city.mine, city.entity),
            (city.mine, city.reader),
        ):
            begun = await http.post(
                url, json=INITIALIZE, headers={**HEADERS, "Authorization": f"Bearer {owner}"}
            )
            assert begun.status_code == 200
            stolen = {
                "Authorization": f"Bearer {other}",
                "Mcp-Session-Id": begun.headers["Mcp-Session-Id"],
            }
            assert (
                await http.post(url, json=PING, headers={**HEADERS, **stolen})
            ).status_code == 404


async def test_a_revoked_router_is_refused_at_once(city: City) -> None:
    token = city.served.router(str(city.work))
    router_id = city.served.link.call("router_list", "", {})["data"]["routers"][-1]["id"]
    async with city.served.client(token, ERAS[-1]) as client:
        await done(client, "list_vaults")
        city.served.link.call("router_revoke", "", {"id": router_id})
        with pytest.raises(MCPError):
            await client.call_tool("list_vaults", {})


async def test_a_bridge_stays_below_the_roots_that_it_was_started_for(city: City) -> None:
    async with city.served.projects(ERAS[-1], city.path("/proj"), city.path("/alias")) as client:
        assert [one["name"] for one in (await done(client, "list_vaults"))["vaults"]] == ["proj"]
        for tool, arguments in calls(city.path("/project2")):
            assert await refused(client, tool, **arguments) == "project not found (not_found)"
    for arguments in (["--router", "--entity", "ana"], ["--root", "/"], []):
        assert city.served.pps("mcp", *arguments).returncode == 2


def test_routers_are_kept_as_digests_and_reach_by_whole_parts(
    registry: Registry, work: Path
) -> None:
    made = registry.routers.create(
        [f"{work}/alias", f"{work}/proj/"], label="mine", may_create=False
    )
    assert made.entry.router.roots == (f"{work}/proj",)
    assert registry.routers.of_token(made.token) == made.entry.router
    assert registry.entity_of_token(made.token) is None
    assert not registry.is_operator(made.token)
    raw = b"".join(
        path.read_bytes() for path in registry.entities_folder.parent.glob("registry.db*")
    )
    assert made.token.encode() not in raw
    assert made.token[-40:].encode() not in raw
    for path in (
        f"{work}/project2",
        f"{work}/pro",
        str(work),
        "/",
        f"{work}/PROJ",
        f"{work}/proj2",
    ):
        assert not made.entry.router.reaches(path)
    for wrong in (
        "",
        made.token[:-1],
        made.token + "a",
        made.token.replace("pps_r_", "pps_e_"),
        made.entry.router.id,
    ):
        assert registry.routers.of_token(wrong) is None
    assert [one.label for one in registry.routers.list()] == ["mine"]
    for wrong in ("", "nonesuch", "%", made.token, "\ud800"):
        with pytest.raises(NotFound):
            registry.routers.revoke(wrong)
    registry.routers.revoke(made.entry.router.id)
    assert registry.routers.of_token(made.token) is None


def test_counting_tells_nothing_of_a_file_of_another(registry: Registry, work: Path) -> None:
    one, two = registry.create_for(f"{work}/proj"), registry.create_for(f"{work}/project2")
    files = [made.folder / "data" / "memory.db" for made in (one, two)]
    assert tally(files[0], one.entity.group, "") == Tally(), "there is no file yet"
    for made, file in zip((one, two), files, strict=True):
        prepare_file(file, made.entity.group)
        assert tally(file, made.entity.group, "") == Tally()
    shutil.copy(files[1], files[0])
    with pytest.raises(IsolationError):
        tally(files[0], one.entity.group, "")


def test_tasks_are_the_folders_own_and_go_with_it(registry: Registry, work: Path) -> None:
    one, two = registry.create_for(f"{work}/proj"), registry.create_for(f"{work}/project2")
    mine, theirs = Tasks(one.folder), Tasks(two.folder)
    made = theirs.add(TaskDraft("Theirs."))
    claimed = theirs.claim("r", 60)
    assert claimed is not None
    assert (mine.list(), mine.claim("r", 60), mine.waits_since()) == ([], None, None)
    mine.add(TaskDraft("Mine."))
    for attack in (
        lambda: mine.get([made.id]),
        lambda: mine.extend(made.id, claimed.lease, 60),
        lambda: mine.complete(made.id, claimed.lease, "x"),
        lambda: mine.fail(made.id, claimed.lease, "x", again=False),
    ):
        with pytest.raises(NotFound):
            attack()
    assert theirs.get([made.id])[0].state == "claimed"
    deleted(registry, two.entity.name)
    assert not two.folder.exists()


async def test_the_names_that_a_router_sees_tell_of_no_entity_elsewhere(city: City) -> None:
    city.served.link.call("entity_create", "", {"name": "secret"})
    (city.work / "proj" / "secret").mkdir()
    project, nodes = city.path("/proj/secret"), [{"title": "N", "content": "x"}]
    token = city.served.router(city.path("/proj"))
    async with city.served.client(token, ERAS[-1]) as client:
        await done(client, "create_graph", project=project, nodes=nodes)
        (seen,) = [
            v for v in (await done(client, "list_vaults"))["vaults"] if v["project"] == project
        ]
        assert seen["name"] == "secret"
        city.served.link.call("entity_archive", "", {"name": "secret_2"})
        city.served.link.call("entity_archive", "", {"name": "secret_2", "undo": True})[
            "data"
        ]  # closed now
        with FileLock(city.served.home / "entities" / "secret_2" / "data" / "lock"):
            said = await refused(client, "search_nodes", project=project, query="x")
        assert said.startswith("secret's memory is held"), said
