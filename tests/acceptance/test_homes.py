"""Homes that earlier versions wrote open with everything in them, and their exports stay the same, byte for byte.

``tests/fixtures/home_COMMIT.tar.xz`` is a home as the code of that commit left it; beside it lie what it held and what
its memories exported (``tests/old_homes/making.py``). A version may tell more of a home than was written down, never
less. One thing differs: nodes and facts of turns that were still queued are learned when the home is first opened.
In an export nothing may differ: a new format must read the old lines too, and is a change of the contract
(docs/contributing.md).
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, cast

import pytest

from pps.app import App
from pps.config import Settings, load
from pps.core import time
from pps.entities.tokens import Bounds
from pps.interfaces.hooks.hook_desk import HookEventDesk
from pps.operations.calls import Caller, Calls
from pps.server import spool
from pps.server.spool import SpoolDrain
from tests.neo4j_server import Neo4jServer
from tests.old_homes.contents import export_lines, lost, memory_contents
from tests.old_homes.making import FIXTURES, ON_NEO4J, environment, record, unpack
from tests.old_homes.neo4j_groups import delete_group, load_group
from tests.waiting import PATIENCE_S

HOMES = ("home_00d652a", "home_60bedfb")
NEWEST = HOMES[-1]


def stored(name: str) -> dict[str, Any]:
    return json.loads((FIXTURES / name / "contents.json").read_text("utf-8"))


def times_of_queued_turns(memory: dict[str, Any]) -> set[str]:
    """Return the paths of times at which nodes and facts were learned from turns that the home has still queued."""
    queued = [id_ for id_, turn in memory["turns"].items() if turn["session"] == "killed"]
    queued += [job["turn"] for job in memory["jobs"].values() if job["state"] == "queued"]
    facts = [
        fact for fact in memory["facts"].values() if fact["episodes"] in ([id_] for id_ in queued)
    ]
    ends = {end for fact in facts for end in (fact["subject"], fact["object"])}
    return {f"facts.{fact['uuid']}.created_at" for fact in facts} | {
        f"nodes.{end}.created_at" for end in ends
    }


def check(name: str, found: dict[str, Any], exports: Path) -> None:
    """Fail for each thing that a home held and is not found in it, and for each line of an export that differs."""
    before = stored(name)
    assert lost(before["registry"], found["registry"]) == []
    for entity in found["memories"]:
        learned_now = times_of_queued_turns(before["memories"][entity])
        gone = [
            text
            for text in lost(before["memories"][entity], found["memories"][entity])
            if text.partition(":")[0] not in learned_now
            # What waits for a program that is away is tried now and then.
            and not text.endswith('state: "queued" -> "running"')
        ]
        assert gone == [], f"{entity}: {gone[:10]}"
        old_lines = (FIXTURES / name / f"{entity}.jsonl").read_text("utf-8").splitlines()
        new_lines = (exports / f"{entity}.jsonl").read_text("utf-8").splitlines()
        assert new_lines == old_lines, entity
    for squad in found["pools"]:
        assert lost(before["pools"][squad], found["pools"][squad]) == []


@pytest.mark.parametrize("name", HOMES)
async def test_a_home_has_all_that_it_held_and_exports_the_same(name: str, tmp_path: Path) -> None:
    found = await record(unpack(name, tmp_path / "home"), tmp_path, "embedded")
    embedded = [
        entity
        for entity, entry in stored(name)["registry"]["entities"].items()
        if entry["store"] == "embedded"
    ]
    assert [*found["memories"]] == embedded
    check(name, found, tmp_path)


@pytest.mark.neo4j
async def test_a_memory_on_neo4j_has_all_that_it_held_and_exports_the_same(
    tmp_path: Path, neo4j_server: Neo4jServer
) -> None:
    home = unpack(NEWEST, tmp_path / "home")
    group = stored(NEWEST)["registry"]["entities"][ON_NEO4J]["group"]
    await load_group(neo4j_server, (FIXTURES / NEWEST / "neo4j.jsonl").read_text().splitlines())
    try:
        found = await record(home, tmp_path, "neo4j", server=neo4j_server)
        assert [*found["memories"]] == [ON_NEO4J]
        check(NEWEST, found, tmp_path)
    finally:
        await delete_group(neo4j_server, group)


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return unpack(NEWEST, tmp_path / "home")


@pytest.fixture
def old_settings(home: Path) -> Settings:
    return load(env=environment(home))


async def test_tokens_that_were_given_out_still_open(
    old_settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    tokens = stored(NEWEST)["tokens"]
    async with App.open(old_settings) as app:
        registry = app.registry
        for token, entity in (("ana", "ana"), ("harbour", "harbour"), ("jochi", "team_jochi")):
            owner = registry.entity_of_token(tokens[token])
            assert owner is not None
            assert owner.name == entity
        assert registry.bounds_of_token(tokens["ana"]) == Bounds(None, "")
        assert registry.bounds_of_token(tokens["limited"]) == Bounds(frozenset(["core"]), "plan")
        assert registry.is_operator(tokens["operator"])
        router = registry.routers.of_token(tokens["router"])
        assert router is not None
        assert router.reaches("/tmp/pps-home-fixture/shop")  # noqa: S108 - where it was made
        opened_at = time.parse(tokens["page_opened_at"])
        monkeypatch.setattr(time, "now", lambda: opened_at)
        session = registry.pages.entity_of(tokens["page"])
        assert session is not None
        assert session.name == "ana"


async def test_vectors_that_lie_in_chroma_are_found(old_settings: Settings, home: Path) -> None:
    folder = home / "entities" / "ana" / "data" / "chroma"
    assert {"anchors", "episodes", "nodes", "windows"} <= {file.name for file in folder.iterdir()}
    async with App.open(old_settings) as app, app.memory("ana") as memory:
        found = await memory.recall("what goes on water?", channels=("episodes",))
        assert any("boat" in hit.text for hit in found["episodes"][:3])
        (anchor,) = await memory.anchor_search("how is sourdough baked?", limit=1)
        assert anchor.id.startswith("rye-loaf#")


async def test_what_was_softly_forgotten_is_hidden_and_comes_back(old_settings: Settings) -> None:
    async with App.open(old_settings) as app, app.memory("ana") as memory:
        for query, secret in (("locker code of Wren", "4711"), ("alarm code", "eraseable")):
            found = await memory.recall(query, channels=("episodes", "facts"))
            assert secret not in repr(found)
        for item in await memory.forgetting.list():
            await memory.forgetting.restore(item.id)
        found = await memory.recall("locker code of Wren", channels=("episodes", "facts"))
        assert "forgettable-4711" in found["episodes"][0].text
        assert "Wren rents locker." in [hit.text for hit in found["facts"]]
        assert (await memory.anchor_read("old-map")).text.startswith("Pier three was torn down")
        assert await memory.forgetting.list() == []


async def test_a_merge_can_still_be_undone(old_settings: Settings) -> None:
    async with App.open(old_settings) as app, app.memory("ana") as memory:
        merging = memory.records.merging
        (applied,) = [merge for merge in await merging.merges() if merge.state == "applied"]
        assert await memory.settled(PATIENCE_S)  # the home has a turn queued
        await merging.undo(applied.id)
        names = [node.name for node in await memory.parts.client.scan_nodes("", 100)]
        assert {"Priya Nair", "P. Nair"} <= set(names)


async def test_events_in_the_spool_are_taken_in(old_settings: Settings, home: Path) -> None:
    assert len(spool.waiting(home)) == 2
    async with App.open(old_settings) as app:
        desk = HookEventDesk(app)
        assert await SpoolDrain(home, desk.handle).once() == 2
        await desk.settled()
        async with app.memory("ana") as memory:
            page = await memory.graph.said("spooled")
    assert sorted(said.turn.content for said in page.turns) == [
        "The whisk hangs by the window.",
        "Where did I leave the whisk?",
    ]
    assert spool.look(home).bad == 1


async def test_a_squad_goes_on_reviewing_and_delivering(old_settings: Settings) -> None:
    async with App.open(old_settings) as app:
        calls = Calls(app)

        async def ask(member: str, operation: str, **arguments: Any) -> dict[str, Any]:
            caller = Caller.of_entity(f"team_{member}")
            answer = await calls.answer(caller, operation, arguments)
            return cast("dict[str, Any]", answer.data)

        (pending,) = (await ask("kublai", "proposal_pending"))["pending"]
        assert pending["record"]["content"] == "Sign nothing, a page says."
        await ask("kublai", "proposal_review", id=pending["record"]["id"], decision="approved")
        heard = (await ask("mongke", "squad_inbox"))["deliveries"]
        assert [one["why"] for one in heard] == ["direct", "task"]
        await ask("mongke", "squad_ack", seqs=[one["seq"] for one in heard])
        assert (await ask("mongke", "squad_inbox"))["deliveries"] == []
        (task,) = [one["record"]["id"] for one in heard if one["why"] == "task"]
        taken = await ask("mongke", "squad_task_take", id=task)
        assert taken["state"] == "in_progress"


async def test_files_of_the_users_own_are_read(old_settings: Settings) -> None:
    async with App.open(old_settings) as app, app.memory("ana") as memory:
        assert str(memory.zone) == "Europe/Lisbon"
        assert "sailed_on" in memory.kinds.kind("Trip").fields
        found = await memory.recall("where does Priya live?", profile="brief")
        assert [*found.channels] == ["facts"]
        assert 1 <= len(found["facts"]) <= 3


async def test_what_is_forgotten_is_missed(old_settings: Settings, tmp_path: Path) -> None:
    """The comparison is able to fail, by what a memory holds and by its export."""
    before = stored(NEWEST)["memories"]["garbled"]
    (turn,) = before["turns"]
    async with App.open(old_settings) as app, app.memory("garbled") as memory:
        assert await memory.parts.worker.saved(PATIENCE_S)
        assert lost(before["turns"], (await memory_contents(memory))["turns"]) == []
        await memory.forget([turn], dry_run=False)
        assert lost(before["turns"], (await memory_contents(memory))["turns"]) == [
            f"{turn} is gone"
        ]
        assert await export_lines(memory, tmp_path) == []


def test_lost_names_what_is_gone_and_what_changed() -> None:
    before = {"facts": {"1": {"text": "a", "ends": [1, 2]}, "2": {"text": "b"}}}
    after = {"facts": {"1": {"text": "c", "ends": [1, 3], "new": True}}, "more": {}}
    assert lost(before, after) == [
        'facts.1.text: "a" -> "c"',
        "facts.1.ends[1]: 2 -> 3",
        "facts.2 is gone",
    ]
