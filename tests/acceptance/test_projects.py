"""S1-14 to S1-20: projects and their tools, end to end, on both stores and over HTTP."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import json
import re
import sqlite3
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

import pytest

from pps.app import App
from pps.config import Settings
from pps.core.values import JSON
from pps.entities.routing import Router
from pps.ingest.recorder import EventOptions
from pps.operations.calls import Caller, Calls
from tests.integration.interfaces.every_tool import done
from tests.integration.interfaces.serving import ERAS, Served, serving
from tests.sampling import sized

SOURCES = {
    "whisper": "voice",
    "screenpipe": "ambient",
    "mcp": "agent",
    "editor": "manual",
    "mail": "manual",
}
ROUTER = Router("test", ("/work",), may_create=True)
CALLS_EACH = sized(2, 60)
"""Calls of each of the sixteen clients."""
MOST_RECALLED = 100
MARK = re.compile(r"\b(?:red|blue) \d+ \d+\b")

CORPUS = {
    "Sourdough": (
        "Flour, water and salt ferment overnight before the loaf is baked. #kitchen",
        "bread for breakfast",
    ),
    "Keychain": (
        "Passwords and tokens are stored encrypted by the operating system. #security",
        "where are secrets kept",
    ),
    "Lighthouse": (
        "A lamp on the cliff warns ships at night. #harbour",
        "guiding vessels in the dark",
    ),
    "Migration": (
        "Every autumn the geese fly south across the valley. #nature",
        "birds travelling in fall",
    ),
    "Invoice": (
        "The customer pays within thirty days by bank transfer. #finance",
        "when must the client pay",
    ),
    "Vaccine": (
        "The immune system learns to recognise a virus beforehand. #health",
        "protection from disease",
    ),
    "Glacier": (
        "Ice moves slowly down the mountain and carves the rock. #nature",
        "frozen rivers shaping land",
    ),
    "Violin": (
        "Four strings are tuned in fifths and played with a bow. #music",
        "bowed string instrument",
    ),
}


class Agent:
    """A router that uses the tools in this process."""

    def __init__(self, app: App) -> None:
        self._calls = Calls(app)

    async def do(self, tool: str, project: str, **arguments: JSON) -> dict[str, Any]:
        given: Mapping[str, JSON] = {"project": project, **arguments}
        return (await self._calls.answer(Caller.of_router(ROUTER), tool, given)).data

    async def vaults(self) -> dict[str, dict[str, Any]]:
        listed: Any = (await self._calls.answer(Caller.of_router(ROUTER), "list_vaults", {})).data[
            "vaults"
        ]
        return {one["project"]: one for one in listed}


async def test_a_hundred_events_from_every_source_end_to_end(app: App) -> None:
    """S1-02 to S1-10, S1-20: each becomes a record of its kind with tags and links, in its own project alone."""
    agent = Agent(app)
    await agent.do(
        "create_graph",
        "/work/other",
        nodes=[{"title": "Harbour", "content": "Of the other project."}],
    )
    await agent.do(
        "create_graph", "/work/house", nodes=[{"title": "Start", "content": "The first."}]
    )
    events: list[tuple[str, EventOptions]] = []
    for number, source in zip(range(100), itertools.cycle(SOURCES)):
        link = f"It follows [[Event {number - 5}]]." if number >= 5 else "It is the first."
        told: EventOptions = {
            "source": source,
            "source_ref": f"e{number}",
            "title": f"Event {number}",
        }
        events.append((f"Event {number} by {source}. {link} #even", told))
    house = app.registry.route("/work/house/src")
    assert house is not None
    async with app.memory(house) as memory:
        receipts = await memory.records.add_events(events)
        again = await memory.records.add_events(events[:10])
    assert Counter(one.state for one in receipts) == {"done": 100}
    assert [one.node_id for one in again] == [one.node_id for one in receipts[:10]]
    assert Counter(one.state for one in again) == {"duplicate": 10}
    assert sum(one.edges_created for one in receipts) == 95
    assert all(one.tags_applied == ("even",) and not one.skipped for one in receipts)

    found = await agent.do(
        "search_nodes", "/work/house", query="event", limit=100, filters={"tags": ["even"]}
    )
    kinds = Counter(one["kind"] for one in found["results"])
    assert kinds == {"voice": 20, "ambient": 20, "agent": 20, "manual": 40}
    for source, kind in SOURCES.items():
        only = await agent.do(
            "search_nodes",
            "/work/house",
            query="event",
            filters={"source_types": [source]},
            limit=99,
        )
        assert {one["kind"] for one in only["results"]} == {kind}
        assert sum(one["title"] != "Start" for one in only["results"]) == 20
    path = await agent.do(
        "get_graph",
        "/work/house",
        node_id=receipts[40].node_id,
        operation="shortest_path",
        target_node_id=receipts[0].node_id,
        max_hops=8,
    )
    assert [one["title"] for one in path["nodes"]] == [
        f"Event {number}" for number in range(40, -1, -5)
    ]
    vaults = await agent.vaults()
    assert [vaults["/work/house"][name] for name in ("nodes", "edges", "tags")] == [101, 95, 1]
    assert [vaults["/work/other"][name] for name in ("nodes", "edges", "tags")] == [1, 0, 0]


async def test_an_agent_reads_back_and_changes_what_it_wrote(app: App) -> None:
    agent, project = Agent(app), "/work/notes"
    text = "The gate is green, see [[Hinge]] and [[Nowhere]]. Its bolt is iron."
    nodes = [
        {"title": "Gate", "content": text},
        {"title": "Hinge", "content": "Oil it.", "parent_id": "Gate"},
    ]
    edges = [{"from": "Hinge", "to": "Gate", "relation_type": "holds"}]
    made = await agent.do("create_graph", project, nodes=nodes, edges=edges)
    assert made["edges_created"] == 3  # the link to a node that the same call makes later counts
    assert [one["what"] for one in made["skipped"]] == ["[[Nowhere]]"]
    gate = made["node_ids"][0]["id"]

    [hit] = (await agent.do("search_nodes", project, query="bolt", limit=1))["results"]
    around = await agent.do("get_graph", project, node_id=gate, operation="neighbors")
    [whole] = (await agent.do("get", project, ids=[gate]))["items"]
    assert hit["content"] == around["nodes"][0]["content"] == whole["content"] == text
    again = await agent.do("append", project, id=gate, content="It creaks.")
    assert again["node_id"] == gate
    await agent.do("update", project, id=gate, title="Door")
    [whole] = (await agent.do("get", project, ids=[gate]))["items"]
    assert (whole["name"], whole["content"]) == ("Door", f"{text}\n\nIt creaks.")


async def test_events_are_dated_by_when_they_happened_and_only_what_is_weighed_counts(
    app: App,
) -> None:
    agent, project = Agent(app), "/work/days"
    await agent.do("create_graph", "/work/older", nodes=[{"title": "x", "content": "x"}])
    await agent.do(
        "create_graph", project, nodes=[{"title": "Start", "content": "Day of the start."}]
    )
    for day in ("2024-03-01", "2025-03-01", "2023-03-01"):
        event = {
            "project_path": f"{project}/src",
            "content": f"Day {day}.",
            "title": day,
            "source_ref": day,
        }
        await Calls(app).answer(
            Caller.of_router(ROUTER), "add_event", {**event, "timestamp": f"{day}T08:00:00Z"}
        )
    found = (
        await agent.do(
            "search_nodes", project, query="day", filters={"until": "2026-01-01T00:00:00Z"}
        )
    )["results"]
    dated = {one["title"]: one["created_at"][:10] for one in found}
    assert dated == {one: one for one in ("2023-03-01", "2024-03-01", "2025-03-01")}
    alone: dict[str, JSON] = {"vector": 0, "full_text": 0, "graph": 0, "tags": 0, "recency": 1}
    results = (await agent.do("search_nodes", project, query="day", weights=alone))["results"]
    assert results[0]["title"] == "Start"
    for score in (results[0]["score"], results[0]["breakdown"]["recency"]):
        assert score == pytest.approx(1.0, abs=1e-3), "it was made just now"
    house = app.registry.route(project)
    assert house is not None
    async with app.memory(house) as memory:
        weighed = await memory.recall(
            "day", channels=("nodes",), weights={"recency": 1, "vector": 0, "full_text": 0}
        )
        assert weighed["nodes"][0].ranks["recency"] == 1
    listed: Any = (await Calls(app).answer(Caller.of_router(ROUTER), "list_vaults", {})).data[
        "vaults"
    ]
    assert [one["project"] for one in listed] == [project, "/work/older"]
    assert listed[0]["id"] == house.group


async def test_a_graph_of_more_than_a_hundred_nodes_comes_back_whole(app: App) -> None:
    agent, project = Agent(app), "/work/ring"
    nodes = [
        {"title": f"Stone {n}", "content": f"Stone {n} of the ring. #ring", "tags": [f"n{n}"]}
        for n in range(120)
    ]
    edges = [
        {"from": f"Stone {n}", "to": f"stone {(n + 1) % 120}", "relation_type": "next_to"}
        for n in range(120)
    ]
    made = await agent.do("create_graph", project, nodes=nodes, edges=edges)
    assert (made["nodes_created"], made["edges_created"], made["skipped"]) == (120, 120, [])
    again = await agent.do("create_graph", project, nodes=nodes, edges=edges)
    assert (again["nodes_created"], again["edges_created"], again["node_ids"]) == (
        0,
        0,
        made["node_ids"],
    )
    ids = {one["title"]: one["id"] for one in made["node_ids"]}
    whole = await agent.do(
        "get_graph", project, node_id=ids["Stone 0"], operation="subgraph", max_hops=8
    )
    assert {one["title"] for one in whole["nodes"]} == {f"Stone {n % 120}" for n in range(-8, 9)}
    assert len(whole["edges"]) == 16
    for number in (0, 59, 119):
        [hit] = (
            await agent.do("search_nodes", project, query="stone", filters={"tags": [f"n{number}"]})
        )["results"]
        assert (hit["id"], hit["summary"]) == (
            ids[f"Stone {number}"],
            f"Stone {number} of the ring.",
        )
    vault = (await agent.vaults())[project]
    assert [vault[name] for name in ("name", "nodes", "edges", "tags")] == ["ring", 120, 120, 121]


async def test_a_known_corpus_ranks_as_it_should(tmp_path: Path) -> None:
    """By meaning and words with the shipped model; by each signal alone when the others weigh nothing."""
    async with App.open(Settings(home=tmp_path / "home")) as app:
        agent, project = Agent(app), "/work/corpus"
        nodes = [{"title": title, "content": text} for title, (text, _) in CORPUS.items()]
        edges = [{"from": "Glacier", "to": "Violin", "relation_type": "inspires"}]
        made = await agent.do("create_graph", project, nodes=nodes, edges=edges)
        ids = {one["title"]: one["id"] for one in made["node_ids"]}

        async def order(query: str, **more: JSON) -> list[str]:
            return [
                one["title"]
                for one in (await agent.do("search_nodes", project, query=query, **more))["results"]
            ]

        ranks = {title: (await order(query)).index(title) for title, (_, query) in CORPUS.items()}
        assert sum(rank == 0 for rank in ranks.values()) >= 5, ranks
        assert max(ranks.values()) <= 2, ranks
        off: dict[str, JSON] = {"vector": 0, "text": 0, "graph": 0, "tags": 0, "recency": 0}
        assert (await order("bank transfer", weights={**off, "text": 1}))[0] == "Invoice"
        near = await order(
            "music", weights={**off, "vector": 0.01, "graph": 1}, anchor_node_id=ids["Glacier"]
        )
        assert near[:2] == ["Glacier", "Violin"]
        assert set(await order("anything", filters={"tags": ["nature"]})) == {
            "Migration",
            "Glacier",
        }
        [best, *_] = (await agent.do("search_nodes", project, query="violin strings"))["results"]
        assert best["title"] == "Violin"
        assert {"vector", "text", "recency"} <= set(best["breakdown"])
        assert all(0 <= value <= 1 for value in best["breakdown"].values())


async def test_sixteen_clients_on_two_projects_at_once_and_no_turn_in_the_wrong_one(
    tmp_path: Path,
) -> None:
    """Two projects of one name, routed at once over HTTP; each client goes to and fro between them."""
    projects = {"red": "/work/a/shop", "blue": "/work/b/shop"}
    with serving(tmp_path / "home") as served:
        token = served.router("/work")

        async def client(number: int) -> list[str]:
            said: list[str] = []
            async with served.client(token, ERAS[number % 2]) as session:
                for turn in range(CALLS_EACH):
                    mark = ("red", "blue")[(number + turn) % 2]
                    nodes = [
                        {
                            "title": f"{mark} {number} {turn}",
                            "content": f"A word, {mark} {number} {turn}. #{mark}",
                        }
                    ]
                    await done(session, "create_graph", project=projects[mark], nodes=nodes)
                    found = await done(
                        session, "search_nodes", project=projects[mark], query="word", limit=100
                    )
                    said += [f"{mark}: {one['title']} {one['tags']}" for one in found["results"]]
            return said

        said = [
            one
            for part in await asyncio.gather(*(client(number) for number in range(16)))
            for one in part
        ]
        vaults = await asyncio.to_thread(_routes, served.link.call("route_list", "", {})["data"])
        kept = {
            mark: await asyncio.to_thread(
                _kept, served, vaults[project], tmp_path / f"{mark}.jsonl"
            )
            for mark, project in projects.items()
        }
    assert said
    assert all(one.startswith(("red: red", "blue: blue")) for one in said)
    told = [
        (("red", "blue")[(number + turn) % 2], number, turn)
        for number in range(16)
        for turn in range(CALLS_EACH)
    ]
    for mark, places in kept.items():
        expected = sorted(f"{mark} {number} {turn}" for one, number, turn in told if one == mark)
        assert len(expected) == 8 * CALLS_EACH
        assert sorted(places["journal"]) == sorted(places["export"]) == expected
        for recalled in (places["nodes"], places["episodes"]):
            assert set(recalled) <= set(expected)
            assert len(set(recalled)) == len(recalled) >= min(len(expected), MOST_RECALLED - 1)


def _kept(served: Served, entity: str, exported: Path) -> dict[str, list[str]]:
    """Return the mark of everything that an entity keeps, place by place; what is from both projects has two."""
    for _ in served.link.follow("export", "", {"entity": entity, "path": str(exported)}):
        pass
    recalled: Any = {}
    for channel in ("nodes", "episodes"):
        asked: dict[str, JSON] = {"query": "word", "channels": [channel], "limit": MOST_RECALLED}
        recalled[channel] = cast("Any", served.link.call("recall", entity, asked))["data"][
            "channels"
        ][channel]["hits"]
    lines = {
        "journal": _turns(served.home / "entities" / entity),
        "export": exported.read_text().splitlines(),
        **{channel: [hit["text"] for hit in hits] for channel, hits in recalled.items()},
    }
    return {
        place: [mark for line in some for mark in sorted(set(MARK.findall(line)))]
        for place, some in lines.items()
    }


def _routes(listed: dict[str, JSON]) -> dict[str, str]:
    found: Any = listed["routes"]
    return {one["path"]: one["entity"] for one in found}


def _turns(folder: Path) -> list[str]:
    with contextlib.closing(
        sqlite3.connect(f"file:{folder}/data/memory.db?mode=ro", uri=True)
    ) as db:
        return [json.dumps(row) for row in db.execute("SELECT content, tags FROM turns")]
