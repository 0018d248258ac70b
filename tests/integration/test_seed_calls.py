"""Every call that the design documents show, by the names and with the arguments that they are written with there.

``S0`` to ``S4`` name the documents. What they list by name alone is called with the least that the tool needs.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from pps.app import App
from pps.core.errors import InvalidRequest
from pps.features.squad.agent import AgentMemory
from pps.features.squad.desk import desk_of
from pps.operations.calls import Caller, Calls
from pps.operations.catalog import OPERATIONS
from tests.squads import team_of_three

LIGHT = ["properties", "metadata", "embedding"]
"""Fields that S0 leaves out of lists."""
LAYERS = ("foundation", "vision", "strategy", "tactics", "execution", "track", "mind")
PREFIX = "odei.neo4j."


async def ask(calls: Calls, caller: Caller, tool: str, arguments: dict[str, Any]) -> dict[str, Any]:
    answer = await calls.answer(caller, tool, arguments)
    assert answer.text
    return answer.data


@pytest.fixture
async def layered(app: App) -> Calls:
    """An entity ``ana`` with a layered graph: a goal, a strategy for it, a decision and a task."""
    await app.create("ana", packs=["constitution"])
    calls = Calls(app)
    goal = {"kind": "Goal", "title": "Q1 revenue goal", "summary": "Revenue of the first quarter."}
    strategy = {
        "kind": "Strategy",
        "title": "Revenue growth",
        "summary": "Strategies for revenue growth: sell to firms.",
        "relations": [{"type": "ALIGNS_WITH", "target": "Q1 revenue goal"}],
    }
    value = {"kind": "Value", "title": "Independence", "summary": "Solo entrepreneurship values."}
    decision = {
        "kind": "Decision",
        "title": "Sell to firms",
        "summary": "The decision context: firms pay more.",
    }
    due = (datetime.now(UTC) + timedelta(days=2)).date().isoformat()
    task = {
        "kind": "Task",
        "title": "Call firms",
        "summary": "Call ten firms.",
        "fields": {"dueDate": due, "effortHours": "3"},
    }
    records = {"records": [goal, strategy, value, decision, task]}
    await ask(calls, Caller.of_entity("ana"), "record_save", records)
    async with app.memory("ana") as memory:
        await memory.settled()
    return calls


async def test_s0_the_queries_of_a_session_s_start(layered: Calls) -> None:
    ana = Caller.of_entity("ana")
    foundation = await ask(
        layered,
        ana,
        f"{PREFIX}foundation.list.v2",
        {
            "excludeFields": [*LIGHT, "provenance"],
            "includeRelationships": True,
            "status": "active",
        },
    )
    assert [one["title"] for one in foundation["items"]] == ["Independence"]
    assert foundation["stats"]["total_nodes"] == 1
    vision = await ask(
        layered,
        ana,
        f"{PREFIX}vision.list.v2",
        {"excludeFields": LIGHT, "includeHierarchy": True, "status": "active"},
    )
    assert [one["title"] for one in vision["items"]] == ["Q1 revenue goal"]
    start = datetime.now(UTC)
    workload = await ask(
        layered,
        ana,
        f"{PREFIX}workload.assess.v1",
        {
            "startDate": _as_javascript(start),
            "endDate": _as_javascript(start + timedelta(days=7)),
            "includeCalendar": True,
            "includeTaskDetails": False,
        },
    )
    assert (workload["start_date"], len(workload["days"])) == (start.date().isoformat(), 7)
    assert workload["hours_scheduled"] == 3


def _as_javascript(moment: datetime) -> str:
    """Return what ``Date.prototype.toISOString`` gives."""
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


async def test_s0_the_retrieval_in_a_conversation(layered: Calls) -> None:
    ana = Caller.of_entity("ana")
    found = await ask(
        layered,
        ana,
        f"{PREFIX}semantic.search.v1",
        {
            "query": "Q1 revenue goal",
            "layers": ["vision"],
            "types": ["goal"],
            "topK": 1,
            "minSimilarity": -1,
        },
    )
    [goal] = found["results"]
    assert goal["title"] == "Q1 revenue goal"
    strict = {"query": "Q1 revenue goal", "layers": ["vision"], "types": ["goal"], "topK": 1}
    await ask(layered, ana, f"{PREFIX}semantic.search.v1", {**strict, "minSimilarity": 0.8})
    weighted = {
        "query": "revenue growth strategies",
        "anchorNodeId": goal["id"],
        "structuralWeight": 0.6,
        "semanticWeight": 0.4,
        "maxDepth": 2,
        "topK": 10,
        "minSimilarity": 0.65,
    }
    strategies = await ask(layered, ana, f"{PREFIX}hybrid.search.v1", weighted)
    assert "Revenue growth" in [one["title"] for one in strategies["results"]]
    by_title = await ask(
        layered,
        ana,
        "hybrid.search.v1",
        {"query": "strategy query", "anchorNodeId": "Q1 revenue goal"},
    )
    assert "Revenue growth" in [one["title"] for one in by_title["results"]]
    for tool, arguments in (
        ("semantic.search.v1", {"query": "goal name", "layers": ["vision"]}),
        (
            "semantic.search.v1",
            {"query": "decision context", "layers": ["execution"], "types": ["decision"]},
        ),
        ("discuss_semantic_search", {"query": "solo entrepreneurship values", "topK": 5}),
    ):
        assert "results" in await ask(layered, ana, tool, arguments)


async def test_s0_the_tools_that_are_listed_by_name(layered: Calls) -> None:
    ana = Caller.of_entity("ana")
    goal = {"id": "Q1 revenue goal"}
    calls: list[tuple[str, dict[str, Any]]] = [
        (f"{PREFIX}foundation.list.v1", {}),
        *((f"{layer}.list.v1", {}) for layer in LAYERS),
        ("value.create.v1", {"title": "Honesty", "summary": "Say what is so."}),
        ("principle.create.v1", {"title": "Ask", "summary": "Ask first.", "statement": "Ask."}),
        ("principle.update.v1", {"id": "Ask", "summary": "Ask before you act."}),
        ("graph.getAll.v1", {}),
        ("schema.inventory.v1", {}),
        (
            "relationship.create.v1",
            {"source": "Call firms", "type": "SERVES", "target": "Q1 revenue goal"},
        ),
        ("node.update.v1", {"records": [{"id": "Honesty", "status": "archived"}]}),
        ("node.delete.v1", {"ids": ["Honesty"]}),
        ("context.usage.v1", {"session": "s1"}),
        ("workload.assess.v1", {}),
        ("graph.pagerank.v1", {}),
        ("graph.communities.v1", {}),
        ("graph.betweenness.v1", {}),
        ("graph.shortest_path.v1", {"source": "Call firms", "target": "Q1 revenue goal"}),
        ("discuss_hybrid_search", {"query": "revenue"}),
        ("discuss_goal_ladder", goal),
        ("discuss_workload_assess", {}),
        ("discuss_graph_pagerank", {}),
        ("discuss_graph_communities", {}),
        ("discuss_expand_path", goal),
        ("discuss_subgraph_nodes", goal),
        ("discuss_concept_bridge", {**goal, "target": "Revenue growth"}),
    ]
    for tool, arguments in calls:
        assert await ask(layered, ana, tool, arguments), tool
    pack = layered.find(ana, f"{PREFIX}nonesuch.v1")
    with pytest.raises(InvalidRequest, match="none of that name"):
        await pack
    with pytest.raises(InvalidRequest, match="none of that name"):
        await layered.find(ana, f"{PREFIX}forget")


async def test_names_that_a_pack_gives_are_taken_in_any_case(layered: Calls) -> None:
    ana = Caller.of_entity("ana")
    moved = await ask(layered, ana, "record_move", {"id": "call firms", "to": "In-Progress"})
    assert moved["records"][0]["state"] == "in_progress"
    listed = await ask(
        layered,
        ana,
        "record_list",
        {"kinds": "task", "layers": "Execution", "states": "IN_PROGRESS", "status": "ACTIVE"},
    )
    assert [one["title"] for one in listed["items"]] == ["Call firms"]
    serves = {"source": "Call firms", "type": "serves", "target": "Q1 revenue goal"}
    made = await ask(layered, ana, "record_relate", serves)
    assert await ask(layered, ana, "record_relate", {**serves, "type": "SERVES"}) == {
        **made,
        "created": 0,
    }


@pytest.fixture
def project(tmp_path: Path) -> str:
    folder = tmp_path / "path" / "to" / "project"
    folder.mkdir(parents=True)
    return str(folder)


async def test_s1_the_tools_of_projects(app: App, project: str) -> None:
    made_router = app.registry.routers.create([project], may_create=True)
    calls, router = Calls(app), Caller.of_router(made_router.entry.router)
    made = await ask(
        calls,
        router,
        "create_graph",
        {
            "project": project,
            "nodes": [
                {
                    "title": "Auth Flow",
                    "content": "OAuth2 with PKCE...",
                    "tags": ["auth", "security"],
                },
                {
                    "title": "Token Storage",
                    "content": "Use secure keychain...",
                    "tags": ["auth"],
                    "nodeType": "agent",
                    "parentId": "Auth Flow",
                },
            ],
            "edges": [{"from": "Auth Flow", "to": "Token Storage", "relationType": "depends_on"}],
        },
    )
    assert made["nodes_created"] == 2
    assert [one["title"] for one in made["node_ids"]] == ["Auth Flow", "Token Storage"]
    flow = made["node_ids"][0]["id"]
    found = await ask(
        calls,
        router,
        "search_nodes",
        {
            "project": project,
            "query": "authentication security",
            "limit": 5,
            "filters": {"tags": ["auth"], "since": "2026-01-01T00:00:00Z"},
        },
    )
    assert {one["title"] for one in found["results"]} == {"Auth Flow", "Token Storage"}
    await ask(
        calls,
        router,
        "search_nodes",
        {
            "project": project,
            "query": "authentication",
            "filters": {
                "nodeTypes": ["agent", "voice", "manual", "ambient"],
                "tags": ["auth"],
                "since": "2026-01-01T00:00:00Z",
                "until": "2100-01-01T00:00:00Z",
            },
            "weights": {
                "vector": 0.4,
                "fullText": 0.3,
                "graphProximity": 0.15,
                "tagOverlap": 0.1,
                "recency": 0.05,
            },
            "anchorNodeId": flow,
        },
    )
    looks: list[dict[str, Any]] = [
        {"nodeId": flow, "operation": "neighbors"},
        {"nodeId": flow, "operation": "subgraph", "maxHops": 2},
        {"nodeId": flow, "operation": "shortest_path", "targetNodeId": "Token Storage"},
    ]
    for look in looks:
        answer = await ask(calls, router, "get_graph", {"project": project, **look})
        assert "Token Storage" in [one["title"] for one in answer["nodes"]], look
    event = {
        "source": "whisper",
        "sourceRef": "call-1",
        "content": "The keychain was audited. #security",
        "title": "Audit",
        "timestamp": "2026-02-01T10:00:00Z",
        "projectPath": project,
        "parentNodeId": flow,
        "tags": ["audit"],
        "metadata": {"minutes": 12},
    }
    kept = await ask(calls, router, "add_event", event)
    assert kept["title"] == "Audit"
    assert (await ask(calls, router, "add_event", event))["state"] == "duplicate"
    vaults = await ask(calls, router, "list_vaults", {})
    assert len(vaults["vaults"]) == 1
    task = await ask(
        calls, router, "spawn_agent", {"project": project, "task": "Look into the keychain."}
    )
    waited = await ask(
        calls,
        router,
        "wait_for_agents",
        {"project": project, "ids": [task["id"]], "timeoutS": "0"},
    )
    assert waited


async def test_s2_what_is_asked_ambiently(app: App) -> None:
    await app.create("lyra")
    calls, lyra = Calls(app), Caller.of_entity("lyra")
    query = "kitchen morning Saturday Haven"
    assert await ask(calls, lyra, "ambient_recall", {"context": query})
    assert await ask(calls, lyra, "recall", {"query": query})
    assert await ask(calls, lyra, "recall", {"query": "Jeff"})


async def test_s3_the_memory_tools_of_agents(app: App) -> None:
    team = await team_of_three(app)

    async def as_kublai(tool: str, arguments: dict[str, Any]) -> dict[str, Any]:
        return await ask(team.calls, team.caller("kublai"), tool, arguments)

    kept = await as_kublai(
        "memory_store",
        {"content": "Async fails under memory pressure.", "type": "belief", "confidence": 0.65},
    )
    assert kept["type"] == "Belief"
    asked = await as_kublai("memory_query", {"topic": "async", "min_confidence": 0.5})
    assert [one["id"] for one in asked["own"]] == [kept["id"]]
    assert await as_kublai("memory_reflect", {})
    shared = await as_kublai("memory_share", {"knowledge_id": kept["id"]})
    assert shared["origin"] == kept["id"]
    async with desk_of(app, team.squad.members["kublai"].entity) as desk:
        memory = AgentMemory(desk)
        experience = await memory.add_experience(
            content="User requested competitor analysis", type="task_request"
        )
        assert experience.kind == "Experience"
        beliefs = await memory.get_beliefs(
            domain="competitive", min_confidence=0.7, include_shared=True
        )
        assert beliefs == []
        sheet = await memory.reflect()
        assert [one.id for one in sheet.experiences] == [experience.id]


async def test_s4_the_tools_of_perspectives(app: App) -> None:
    await app.create("ana")
    calls, ana = Calls(app), Caller.of_entity("ana")
    stored = await ask(
        calls,
        ana,
        "store_memory",
        {
            "content": "Diesel is an ORM that works with Rust.",
            "importance": 0.8,
            "rationale": "Asked for often.",
        },
    )
    assert stored["state"] in ("done", "accepted")
    question = "What databases work with Rust?"
    for strategy in ("E1Only", "MultiSpace", "Pipeline"):
        asked = {"query": question, "strategy": strategy, "topK": 10}
        assert await ask(calls, ana, "search_graph", asked)
    others: list[tuple[str, dict[str, Any]]] = [
        ("search_causes", {"query": "what broke production", "causalDirection": "cause"}),
        ("search_connections", {"query": "Diesel", "direction": "both"}),
        ("search_by_intent", {"query": "choose a database", "blendWithSemantic": 0.3}),
        ("inject_context", {"query": question, "max_tokens": 1200}),
        ("get_topic_portfolio", {}),
        ("get_topic_stability", {}),
        ("detect_topics", {}),
        ("get_divergence_alerts", {}),
        ("trigger_consolidation", {}),
        ("trigger_dream", {}),
        ("forget_concept", {"id": stored["turn_id"]}),
    ]
    for tool, arguments in others:
        assert await ask(calls, ana, tool, arguments) is not None, tool
    nodes = [{"name": "Postgres"}, {"name": "PostgreSQL"}]
    await ask(calls, ana, "remember", {"content": "Postgres is PostgreSQL.", "nodes": nodes})
    merge = {
        "source_ids": ["Postgres", "PostgreSQL"],
        "target_name": "PostgreSQL",
        "rationale": "One database.",
    }
    assert await ask(calls, ana, "merge_concepts", merge)


def test_the_tools_that_the_documents_name_are_called_here() -> None:
    """A tool that a design document names and that PPS has no pack for is in the table of operations."""
    named = "create_graph search_nodes get_graph list_vaults spawn_agent wait_for_agents ambient_recall "
    named += "memory_store memory_query memory_reflect memory_share search_graph search_causes search_connections "
    named += "search_by_intent store_memory inject_context get_topic_portfolio get_topic_stability detect_topics "
    named += (
        "get_divergence_alerts trigger_consolidation trigger_dream merge_concepts forget_concept"
    )
    assert set(named.split()) <= {one.name for one in OPERATIONS}
