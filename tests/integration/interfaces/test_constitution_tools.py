"""The constitution's own tools and its four modules: what each row is, who may write what, over real connections."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest
from mcp.shared.exceptions import MCPError

from pps.app import App
from pps.config import Settings
from pps.config.packs import shipped_pack
from pps.core.errors import InvalidRequest, PPSError
from pps.core.kinds import Kinds
from pps.interfaces.mcp.tools import tool as as_tool
from pps.operations.calls import Caller, Calls
from pps.operations.catalog import operations_for
from pps.operations.pack_tools import KindTool, PackTool, PackTools, tool_name
from tests.integration.interfaces.serving import ERAS, Served, serving

pytestmark = pytest.mark.timeout(300)
PACK = shipped_pack("constitution")
PACK_LAYERS = [one.name for one in PACK.layers]
MAY = {
    "discuss": ({"foundation", "vision"}, set[str]()),
    "plan": ({"strategy", "tactics"}, {"Task", "TimeBlock", "WorkSession", "Action"}),
    "execute": ({"tactics", "execution", "track"}, {"Value", "Principle", "Guardrail"}),
    "mind": ({"track", "mind"}, {"Value", "Principle", "Guardrail"}),
    "somebody": (set[str](), set[str]()),
}
"""Module → the layers that it writes, but for some kinds; anybody else only reads."""


@pytest.fixture
async def calls(tmp_path: Path) -> AsyncIterator[Calls]:
    async with App.open(Settings(home=tmp_path / "home")) as app:
        await app.create("ana", packs=["constitution"])
        yield Calls(app)


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with serving(tmp_path_factory.mktemp("constitution") / "home") as served:
        served.link.call("entity_create", "", {"name": "ana", "packs": ["constitution"]})
        served.create("bob")
        yield served


async def test_each_module_writes_its_layers_alone_by_any_tool_and_the_person_writes_all(
    calls: Calls,
) -> None:
    async def refused(actor: str, tool: str, arguments: dict[str, Any]) -> bool:
        with pytest.raises(
            PPSError
        ) as told:  # no kind has such a field: what is let through is refused for that
            await calls.answer(Caller.of_entity("ana", actor=actor), tool, arguments)
        assert re.search("may not write|nonesuch.*no such field", told.value.message), (
            actor,
            tool,
            told.value,
        )
        return "may not write" in told.value.message

    for actor, (layers, denied) in {**MAY, "": (set(PACK_LAYERS), set[str]())}.items():
        for kind in PACK.kinds.values():
            record = {
                "kind": kind.name,
                "title": "One",
                "summary": "One.",
                "fields": {"nonesuch": 1},
            }
            allowed = kind.layer in layers and kind.name not in denied
            assert await refused(actor, "record_save", {"records": [record]}) is not allowed, (
                actor,
                kind.name,
            )


async def test_what_an_actor_may_not_write_it_neither_moves_relates_nor_deletes_and_the_version_says_who_wrote(
    calls: Calls,
) -> None:
    async def ask(actor: str, tool: str, **arguments: Any) -> dict[str, Any]:
        return (await calls.answer(Caller.of_entity("ana", actor=actor), tool, arguments)).data

    goal = (await ask("discuss", "goal_create_v1", title="Run", summary="Far."))["records"][0]
    await ask("plan", "strategy.create.v1", title="Train", summary="Daily.")
    task = (
        await ask("execute", "task_create_v1", title="Shoes", summary="Buy.", dueDate="2027-01-01")
    )["records"][0]
    seen = (await ask("plan", "record_get", ids=[goal["id"], task["id"]]))["records"]
    assert [(one["actor"], one["kind"]) for one in seen] == [
        ("discuss", "Goal"),
        ("execute", "Task"),
    ]
    assert seen[1]["fields"]["due_date"] == "2027-01-01"
    for actor, tool, arguments in (
        ("plan", "goal_update_v1", {"id": goal["id"], "summary": "Mine."}),
        ("plan", "record_move", {"id": task["id"], "to": "in_progress"}),
        ("plan", "record_relate", {"source": "Shoes", "type": "SERVES", "target": "Run"}),
        ("plan", "record_delete", {"ids": [goal["id"]], "dry_run": False}),
        ("mind", "record_save", {"records": [{"id": goal["id"], "summary": "Mine."}]}),
    ):
        with pytest.raises(InvalidRequest, match="may not write"):
            await ask(actor, tool, **arguments)
    with pytest.raises(PPSError, match="is at version 1"):
        await ask("discuss", "goal_create_v1", title="Run", summary="Again.")
    with pytest.raises(InvalidRequest, match="id: field required"):
        await ask("discuss", "goal_update_v1", summary="Which?")
    with pytest.raises(InvalidRequest, match="kind: unknown argument"):
        await ask("discuss", "goal_create_v1", title="x", summary="x", kind="Task")
    changed = await ask(
        "discuss", "goal_update_v1", id=goal["id"], deadline="2027-04-11", expectedVersion=1
    )
    assert changed["records"][0]["version"] == 2
    await ask("execute", "record_relate", source="Shoes", type="SERVES", target="Run")


@pytest.mark.parametrize("era", ERAS)
async def test_a_token_of_a_module_opens_its_pack_and_typed_tools_over_http(
    served: Served, era: str
) -> None:
    asked = {"name": "ana", "toolsets": ["constitution-typed,records"], "actor": "plan"}
    token = str(served.link.call("token_issue", "", asked)["data"]["token"])
    async with served.client(token, era, "constitution-typed") as client:
        tools = {one.name: one for one in (await client.list_tools()).tools}
        assert len(tools) == 76
        assert tools["task_update_v1"].input_schema["required"] == ["id"]
        assert "horizon" in tools["goal_create_v1"].input_schema["properties"]
        made = await client.call_tool(
            "strategy_create_v1", {"title": f"In {era}", "summary": "By plan."}
        )
        assert not made.is_error, made.content
        refused = await client.call_tool(
            "goal_create_v1", {"title": "Mine", "summary": "By plan.", "status": "active"}
        )
        assert "'plan' may not write Goal" in str(refused.content)
        with pytest.raises(MCPError, match="is in the toolset 'records'"):
            await client.call_tool("record_list", {})
    async with served.client(token, era, "all") as client:
        assert len((await client.list_tools()).tools) > 76


async def test_a_bridge_of_a_module_writes_as_it_over_stdio(served: Served) -> None:
    more = ("--toolset", "records,constitution-typed", "--actor", "mind")
    async with served.stdio("ana", ERAS[-1], *more) as client:
        assert "note_create_v1" in {one.name for one in (await client.list_tools()).tools}
        made = await client.call_tool(
            "note_create_v1", {"title": "Seen", "summary": "x", "content": "Long."}
        )
        assert not made.is_error, made.content
        refused = await client.call_tool("task_create_v1", {"title": "Mine", "summary": "x"})
        assert "'mind' may not write Task" in str(refused.content)
    answer = served.link.call("record_list", "ana", {"kinds": ["Note"]})["data"]
    assert [one["actor"] for one in answer["items"]] == ["mind"]


async def test_every_row_is_an_operation_with_arguments_that_it_takes(calls: Calls) -> None:
    table = operations_for("entity")
    tools = PackTools(table).of(Kinds([PACK]))
    assert sum(isinstance(one, KindTool) for one in tools.values()) == 2 * len(PACK.kinds) == 76
    for row in PACK.tools:
        made = tools[tool_name(row.name)]
        assert isinstance(made, PackTool), row.name
        assert {*row.fixed, *row.defaults} <= set(table[row.operation].input.model_fields), row.name
        assert not set(made.input_schema()["properties"]) & set(row.fixed), row.name
        assert made.toolset == "constitution"
        found = await calls.find(Caller.of_entity("ana", ["constitution"]), row.name)
        given: dict[str, Any] = {
            name: _sample(name) for name in made.input_schema().get("required", ())
        }
        found.parse(given)
    for row in PACK.tools:
        if not table[row.operation].hints.read_only:
            continue
        made = tools[tool_name(row.name)]
        given = {name: _sample(name) for name in made.input_schema().get("required", ())}
        outcome = ""
        try:
            await calls.answer(Caller.of_entity("ana"), row.name, given)
        except PPSError as error:
            outcome = f"{error.code} {error.message}"
        assert re.match(r"(invalid_request|not_found) (?!.*unknown argument)|$", outcome), (
            row.name,
            outcome,
        )


def test_each_row_says_what_it_does_and_offers_only_what_it_takes() -> None:
    tools = PackTools(operations_for("entity")).of(Kinds([PACK]))
    said: dict[str, str] = {}
    for row in PACK.tools:
        one = tools[tool_name(row.name)]
        if "discuss" not in row.name:  # the module's names for some of the same
            assert said.setdefault(one.description, row.name) == row.name
    assert "layer track" in tools["track_list_v1"].description
    assert "source" not in tools["graph_pagerank_v1"].input_schema()["properties"]
    assert "source" in tools["graph_shortest_path_v1"].input_schema()["properties"]
    with pytest.raises(InvalidRequest, match="source: unknown argument"):
        tools["graph_pagerank_v1"].parse({"source": "A"})
    ladder = tools["discuss_goal_ladder"]
    assert ladder.input_schema()["required"] == ["id"]
    assert "Which goals and visions a goal serves" in ladder.description
    for given in ({"id": "Run", "maxHops": 2}, {"parameters": {"id": "Run", "max_hops": 2}}):
        parsed = ladder.parse(given)
        assert (parsed.query, dict(parsed.parameters)) == (
            "goal_ladder",
            {"id": "Run", "max_hops": 2},
        )
    with pytest.raises(InvalidRequest, match="unknown argument; there are id, max_hops"):
        ladder.parse({"goal": "Run"})


def test_tools_of_kinds_are_small_and_define_nothing_that_they_do_not_use() -> None:
    tools = PackTools(operations_for("entity")).of(Kinds([PACK]))
    sizes = {name: len(json.dumps(as_tool(one), ensure_ascii=False)) for name, one in tools.items()}
    assert max(size for name, size in sizes.items() if isinstance(tools[name], KindTool)) < 3_000
    assert sum(sizes.values()) < 200_000
    for name, one in tools.items():
        schema = one.input_schema()
        rest = str(schema["properties"]) + str(list(schema.get("$defs", {}).values()))
        assert all(f"/{defined}'" in rest for defined in schema.get("$defs", {})), name


def _sample(name: str) -> Any:
    known: dict[str, Any] = {
        "ids": ["1b4e28ba"],
        "id": "1b4e28ba",
        "records": [{"kind": "Goal", "title": "A", "summary": "B"}],
        "query": "goal_ladder",
        "algorithm": "pagerank",
    }
    return known.get(name, "word")
