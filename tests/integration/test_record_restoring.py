"""An export put into a fresh memory: its records are there as they were, on both stores."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from pps.app import App
from pps.core.errors import InvalidRequest
from pps.core.record_values import RecordQuery
from pps.core.values import FactDraft, NodeDraft
from pps.ingest.importing.run import Wanted
from pps.memory import Memory
from pps.operations.record_import import WantedRecords, import_records
from pps.records.records import Join
from pps.records.saving import RecordGiven, RelationGiven


@pytest.fixture
async def memory(app: App) -> AsyncIterator[Memory]:
    name = "ana"
    await app.create(name, packs=["constitution"])
    async with app.memory(name) as memory:
        yield memory


async def _filled(memory: Memory) -> None:
    """Records of all sorts: moved, changed, joined, citing a text, a fact, a relation and each other."""
    talk = await memory.remember(
        "Ana runs with Bo. Run a marathon is her plan.",
        session="talk",
        facts=[FactDraft("Ana", "RUNS_WITH", "Bo"), FactDraft("Ana", "PLANS", "Run a marathon")],
    )
    await memory.remember("Boots are shoes.", nodes=[NodeDraft("Boots", summary="Heavy.")])
    assert await memory.settled()
    fact = next(
        one
        for one in await memory.parts.client.facts_of_episodes([talk.turn_id])
        if one.relation != "PLANS"
    )
    task = RecordGiven(
        "Task",
        "Buy shoes",
        "Running shoes.",
        fields={"description": "With #grip and [[Boots]]."},
        tags=("sport",),
        relations=(RelationGiven("SERVES", "Run a marathon"),),
        created_at=datetime(2026, 3, 1, 9, 30, 0, 250_000, UTC),
    )
    goal = RecordGiven(
        "Goal", "Run a marathon", "Finish.", fields={"deadline": "2027-05-01"}, status="draft"
    )
    saved_task, saved_goal, _ = (
        await memory.records.save([task, goal, RecordGiven("Goal", "Be fit", "Each day.")])
    ).records
    [joined], _ = await memory.records.join(
        [Join(saved_goal.record.id, RelationGiven("SUPPORTED_BY", "Be fit", {"weight": 0.5}))]
    )
    await memory.records.by("execute").move(saved_task.record.id, "in_progress", why="Spring.")
    await memory.records.move(saved_task.record.id, "done")
    cites = (talk.turn_id, fact.uuid, saved_goal.record.id, saved_goal.record.turn, joined)
    await memory.records.save([RecordGiven(id=saved_task.record.id, cites=cites)])
    await memory.records.save(
        [RecordGiven(id=saved_goal.record.id, summary="Finish one.", fields={"horizon": "year"})]
    )


async def _seen(memory: Memory) -> dict[str, Any]:
    """Return all that records are, each by kind and title; ids as what they stand for."""
    graph = await memory.records.graph()
    names = {one.id: f"{one.kind} {one.title}" for one in graph.records.values()}
    names |= {one.turn: f"text of {one.title}" for one in graph.records.values()}
    every = await memory.records.cites([*graph.records])
    turns = await memory.parts.journal.scan(0, 500)
    names |= {one.uuid: one.content for one in turns if one.uuid not in names}
    for fact in await memory.parts.client.scan_facts("", 500):
        names[fact.uuid] = fact.text
    shown: dict[str, Any] = {}
    for one in graph.records.values():
        versions = await memory.records.versions(one.id)
        shown[names[one.id]] = {
            "is": _bare(one, names),
            "cites": sorted(
                (cite.kind, names[cite.id], cite.gone) for cite in every.get(one.id, ())
            ),
            "moves": [
                replace(move, record="") for move in await memory.records.transitions(one.id)
            ],
            "versions": [_bare(version, names) for version in versions],
            "joins": sorted(
                (
                    names[join.source],
                    join.type,
                    names[join.target],
                    join.properties.get("weight"),
                    join.created_at,
                    join.actor,
                )
                for join in graph.relations
                if one.id in (join.source, join.target)
            ),
        }
    return shown


def _bare(record: Any, names: dict[str, str]) -> Any:
    fields = {name: names.get(str(value), value) for name, value in record.fields.items()}
    return replace(record, id="", turn="", fields=fields)


@pytest.mark.parametrize("first", ["texts", "records"])
async def test_an_export_reads_back_the_same_in_a_fresh_memory(
    app: App, memory: Memory, tmp_path: Path, first: str
) -> None:
    await _filled(memory)
    before, file = await _seen(memory), tmp_path / "out.jsonl"
    assert sum(len(one["cites"]) for one in before.values()) == 5
    await memory.documents.export(file)
    await app.create("bea", packs=["constitution"])
    async with app.memory("bea") as other:
        if first == "records":
            # What they rest on is not there yet: it is said, and nothing is kept.
            refused = await import_records(other, WantedRecords([file]))
            assert not refused.kept
            assert all(
                "import the texts of the same file first" in one.why for one in refused.mistakes
            )
            assert len(refused.mistakes) == 2
            assert (await other.records.list(RecordQuery())).total == 0
        assert (await other.documents.import_files(Wanted([file]))).unreadable == []
        tried = await import_records(other, WantedRecords([file], dry_run=True))
        assert (tried.created, tried.kept, tried.mistakes) == (3, False, ())
        done = await import_records(other, WantedRecords([file]))
        assert (done.rows, done.created, done.kept, done.mistakes) == (3, 3, True, ())
        again = await import_records(other, WantedRecords([file]))
        assert (again.created, again.unchanged) == (0, 3)
        assert await other.settled()
        assert await _seen(other) == before
        nodes = [one.name for one in await other.parts.client.scan_nodes("", 500)]
        assert sorted(nodes).count("Run a marathon") == 1, "no plain node beside the record"
        [goal] = (
            await other.records.list(RecordQuery(kinds=("Goal",), statuses=("draft",)))
        ).records
        facts = {one.text for one in await other.parts.client.facts_of_nodes([goal.id], 100)}
        assert len(facts) == 3  # what the text says of it, and two relations
        out = tmp_path / "again.jsonl"
        await other.documents.export(out)
    async with app.memory("ana") as memory:  # where all of it comes from
        home = await import_records(memory, WantedRecords([out]))
        assert (home.created, home.unchanged) == (0, 3)
        assert await _seen(memory) == before


async def test_what_is_wrong_in_an_export_is_named_and_an_actor_restores_nothing(
    app: App, memory: Memory, tmp_path: Path
) -> None:
    await memory.records.save([RecordGiven("Goal", f"Goal {number}", "A.") for number in range(4)])
    file = tmp_path / "out.jsonl"
    await memory.documents.export(file)
    lines = [json.loads(one) for one in file.read_text("utf-8").splitlines()]
    lines = [one for one in lines if "record" in one]
    lines[0]["record"]["kind"] = "Gaol"
    lines[1]["versions"] = []
    lines[2]["record"]["fields"] = {"horizon": "eon"}
    file.write_text("\n".join(map(json.dumps, lines)), encoding="utf-8")
    await app.create("bea", packs=["constitution"])
    async with app.memory("bea") as other:
        with pytest.raises(InvalidRequest, match="restored by the person alone"):
            await import_records(other.by("plan"), WantedRecords([file]))
        found = await import_records(other, WantedRecords([file]))
        told = {one.what: one.why for one in found.mistakes}
        assert [*told] == [
            f"out.jsonl record {number}: {name}"
            for number, name in enumerate(("kind", "versions", "record"), 1)
        ]
        assert (found.kept, (await other.records.list(RecordQuery())).total) == (False, 0)
        kept = await import_records(other, WantedRecords([file], skip=True))
        assert (kept.kept, kept.created, len(kept.mistakes)) == (True, 1, 3)
