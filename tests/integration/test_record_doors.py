"""Every way into a memory but the operations of records, against every life cycle; and what may not be merged."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from pps.app import App
from pps.core.errors import InvalidRequest
from pps.core.kinds import FieldSpec, KindSpec
from pps.core.record_values import Condition, Record, RecordQuery
from pps.core.sql import Connection, Cursor
from pps.core.values import JSON, Node, NodeDraft
from pps.entities.routing import owner as router
from pps.ingest.importing.run import Wanted
from pps.isolation.client import GraphitiChanges
from pps.journal import record_queries
from pps.journal.record_queries import RecordRowPage, read_record, select_page
from pps.journal.record_rows import RecordRows
from pps.memory import Memory
from pps.operations.calls import Caller, Calls, owner
from pps.records.listing import wanted_of
from pps.records.saving import RecordGiven


def _value(spec: FieldSpec) -> JSON:
    match spec.type:
        case "number" | "integer":
            return int(spec.min or 0)
        case "bool":
            return True
        case "enum":
            return spec.enum[0]
        case "date":
            return "2026-03-01"
        case "datetime":
            return "2026-03-01T00:00:00Z"
        case "duration":
            return "PT1H"
        case "list":
            return [_value(spec.of)] if spec.of else []
        case "json":
            return {}
        case _:
            return "a text"


def _given(kind: KindSpec, title: str) -> RecordGiven:
    fields = {name: _value(one) for name, one in kind.fields.items() if one.required}
    return RecordGiven(kind.name, title, "As it is.", fields=fields)


async def _read_by_a_model(memory: Memory, node: Node) -> Node:
    """Remember a text in which a model finds a node; return what is kept of that."""
    parts = memory.parts

    async def found(turn: str) -> GraphitiChanges:
        await parts.client.save_nodes([node], {})
        return GraphitiChanges((node.uuid,), (), (turn,))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(parts.client, "extract_episode", found)
        patch.setattr(memory, "parts", replace(parts, extraction="model"))
        read = await memory.remember(f"{node.name}, a {node.kind}.", extraction="model")
    assert read.state == "done"
    [kept] = await parts.client.nodes([node.uuid])
    return kept


@pytest.mark.parametrize("pack", ["constitution", "squad"])
async def test_no_other_door_moves_a_life_cycle(app: App, tmp_path: Path, pack: str) -> None:
    """Text with nodes from a file, a graph of titled texts, and a graph that a model has written: nothing moves."""
    await app.create("ana", packs=[pack])
    async with app.memory("ana") as memory:
        cycles = [kind for kind in memory.kinds if kind.lifecycle]
        assert cycles
        for kind in cycles:
            assert kind.lifecycle
            saved = (
                (await memory.records.save([_given(kind, f"One {kind.name}")])).records[0].record
            )
            assert saved.state == kind.lifecycle.start
            other = next(one for one in kind.lifecycle.states if one != saved.state)
            before = await memory.records.graph()
            file = tmp_path / f"{kind.name}.jsonl"
            for title in ("New", saved.title):
                drafted = {"name": title, "kind": kind.name, "attributes": {"state": other}}
                file.write_text(
                    json.dumps({"content": f"{title} is {other}.", "nodes": [drafted]}),
                    encoding="utf-8",
                )
                done = await memory.documents.import_files(Wanted([file]))
                told = " ".join(one.why for one in done.unreadable)
                assert "use record_save" in told, kind.name
                with pytest.raises(InvalidRequest, match="use record_save"):
                    await memory.records.add_events(
                        [("A text.", {"title": title, "kind": kind.name})]
                    )
            [node] = await memory.parts.client.nodes([saved.id])
            forged = Node(
                node.uuid,
                "Forged",
                node.created_at,
                kind.name,
                "Other.",
                attributes={"state": other},
            )
            kept = await _read_by_a_model(memory, forged)
            assert (kept.name, kept.summary, kept.attributes) == (
                node.name,
                node.summary,
                node.attributes,
            )
            thing = Node(
                f"{saved.id[:-4]}0000",
                "Made up",
                node.created_at,
                kind.name,
                attributes={"state": other},
            )
            assert (await _read_by_a_model(memory, thing)).kind == "Thing"
            assert (await memory.records.graph()).records == before.records
            assert await memory.records.transitions(saved.id) == []


async def test_a_graph_of_a_project_has_no_node_of_a_packs_kind(app: App) -> None:
    """``create_graph`` is for texts with titles: what it calls by a pack's kind is refused, and nothing is kept."""
    calls, caller = Calls(app), owner(router())
    nodes = [{"title": "Shoes", "content": "Running shoes."}]
    await calls.answer(caller, "create_graph", {"project": "/work/proj", "nodes": nodes})
    [entity] = [
        one["name"] for one in (await calls.answer(caller, "entity_list", {})).data["entities"]
    ]
    await app.enable_pack(entity, "constitution")
    async with app.memory(entity) as memory:
        before = (await memory.stats()).turns
        for kind in (one for one in memory.kinds if one.lifecycle or one.name == "Goal"):
            nodes = [
                {"title": "Other", "content": "Shoes."},
                {"title": "Buy", "content": "A.", "node_type": kind.name},
            ]
            with pytest.raises(
                InvalidRequest,
                match=f"{kind.name} is a kind of the pack constitution: use record_save",
            ):
                await calls.answer(
                    caller, "create_graph", {"project": "/work/proj", "nodes": nodes}
                )
        assert (await memory.stats()).turns == before


async def test_a_merge_into_a_record_is_for_who_may_write_it(app: App) -> None:
    await app.create("ana", packs=["constitution"])
    async with app.memory("ana") as memory:
        task = (
            (await memory.records.save([RecordGiven("Task", "Buy shoes", "Shoes.")]))
            .records[0]
            .record
        )
        said = await memory.remember("Shoes, again.", nodes=[NodeDraft("the shoes")])
        [thing] = (await memory.parts.client.mentioned_nodes([said.turn_id]))[said.turn_id]
        plan = memory.by("plan").records.merging
        for dry_run in (True, False):
            with pytest.raises(InvalidRequest, match="'plan' may not write Task"):
                await plan.merge(task.id, thing, dry_run=dry_run)
        done = await memory.by("execute").records.merging.merge(task.id, thing, dry_run=False)
        with pytest.raises(InvalidRequest, match="'plan' may not write Task"):
            await plan.undo(done.id)
        assert (await memory.records.merging.undo(done.id)).state == "undone"


async def test_a_layer_without_kinds_is_said_and_a_lone_persons_review_too(app: App) -> None:
    await app.create("ana", packs=["constitution"])
    calls = Calls(app)
    async with app.memory("ana") as memory:
        caller = Caller.of_entity(memory.entity)
        with pytest.raises(InvalidRequest, match="none of these kinds lies in vision"):
            await calls.answer(caller, "record_list", {"layers": ["vision"], "kinds": ["Task"]})
    await app.create("bo", packs=["squad"])
    async with app.memory("bo") as memory:
        kind = next(one for one in memory.kinds if one.lifecycle and one.lifecycle.others)
        cycle = kind.lifecycle
        assert cycle
        before, after = sorted(cycle.others)[0]
        record = (await memory.records.save([_given(kind, "Mine")])).records[0].record
        for step in (before,) if record.state != before else ():
            await memory.records.move(record.id, step)
        with pytest.raises(InvalidRequest, match="reviewed under the name of an actor"):
            await memory.records.move(record.id, after)


class NotingConnection:
    """A connection to either database that notes each statement it runs."""

    def __init__(self, connection: Connection, statements: list[str]) -> None:
        self._connection = connection
        self._statements = statements

    def execute(self, statement: str, values: Any = (), /) -> Cursor:
        self._statements.append(statement)
        return self._connection.execute(statement, values)

    def executemany(self, statement: str, rows: Iterable[Any], /) -> Cursor:
        self._statements.append(statement)
        return self._connection.executemany(statement, rows)


async def test_a_page_of_5000_records_reads_its_own_records_alone(
    app: App, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where, order and cursor: two statements a page, and no more records are read than it shows."""
    await app.create("ana", packs=["constitution"])
    async with app.memory("ana") as memory:
        for at in range(0, 5_000, 200):
            some = [
                RecordGiven(
                    "Task", f"T{number}", "A.", fields={"effort_hours": number % 10}, another=True
                )
                for number in range(at, at + 200)
            ]
            saving = memory.records.saving(*some)
            await memory.parts.journal.records.write(lambda rows, saving=saving: saving(rows, []))
        read, statements = list[str](), list[str]()

        def counted(row: Any) -> Record:
            read.append(row[0])
            return read_record(row)

        monkeypatch.setattr(record_queries, "read_record", counted)
        query = RecordQuery(
            where=(Condition("effort_hours", ">=", 5),), order=("-effort_hours", "title")
        )
        wanted = wanted_of(memory.kinds, query)
        seen, cursor, pages = list[str](), "", 0
        while pages == 0 or cursor:

            def asked(db: Connection, after: str = cursor) -> RecordRowPage:
                return select_page(NotingConnection(db, statements), wanted, 100, after)

            found = await memory.parts.journal.records.read(partial(RecordRows.beside, work=asked))
            seen += [one.title for one in found.records]
            cursor, pages = found.cursor, pages + 1
        assert (pages, len(seen), len(set(seen)), len(read)) == (25, 2_500, 2_500, 2_500)
        assert len([one for one in statements if one.lstrip().startswith("SELECT")]) == 2 * pages
