"""Records of packs' kinds: saved, moved, related, listed and deleted, on both stores."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any
from uuid import uuid4

import pytest

from pps.app import App
from pps.core.errors import InvalidRequest, NotFound, StoreConflict
from pps.core.record_values import Condition, RecordQuery
from pps.core.values import Fact, Node, NodeDraft, RelationDraft
from pps.ingest.batch import Batch
from pps.ingest.statements import plan_given
from pps.journal.entries import Reading
from pps.memory import Memory
from pps.operations.calls import Caller, Calls
from pps.records.records import Join
from pps.records.saving import RecordGiven, RelationGiven
from tests.sampling import LONG


@pytest.fixture
async def memory(app: App) -> AsyncIterator[Memory]:
    name = "ana"
    await app.create(name, packs=["constitution"])
    async with app.memory(name) as memory:
        yield memory


async def node(memory: Memory, uuid: str) -> Node:
    (found,) = await memory.get([uuid])
    assert isinstance(found, Node)
    return found


GOAL = RecordGiven(
    "Goal", "Run a marathon", "Finish one before forty.", fields={"deadline": "2027-05-01"}
)
TASK = RecordGiven(
    "Task",
    "Buy shoes",
    "Running shoes that fit.",
    relations=(RelationGiven("SERVES", "Run a marathon"),),
)


async def test_records_are_saved_with_their_relations_in_one_call(memory: Memory) -> None:
    task, goal = (await memory.records.save([TASK, GOAL])).records
    assert (goal.change, goal.record.version, goal.record.status, goal.record.state) == (
        "created",
        1,
        "active",
        "",
    )
    assert task.record.state == "todo"
    kept = await node(memory, goal.record.id)
    assert (kept.name, kept.kind, kept.summary) == (
        "Run a marathon",
        "Goal",
        "Finish one before forty.",
    )
    assert kept.attributes == {"deadline": "2027-05-01", "status": "active", "source": "record"}
    (fact,) = await memory.get([task.relations[0]])
    assert isinstance(fact, Fact)
    assert (fact.subject, fact.relation, fact.object, fact.kind) == (
        task.record.id, "SERVES", goal.record.id, "relation",
    )  # fmt: skip
    graph = await memory.records.graph()
    assert set(graph.records) == {task.record.id, goal.record.id}
    assert [one.id for one in graph.relations] == list(task.relations)
    assert await memory.records.graph() is graph


async def test_a_record_is_changed_by_its_title_or_id_and_the_version_decides(
    memory: Memory,
) -> None:
    first = (await memory.records.save([GOAL])).records[0].record
    again = (
        await memory.records.save(
            [RecordGiven("Goal", "run a  marathon", fields={"horizon": "year"})]
        )
    ).records[0]
    assert (again.change, again.record.id, again.record.version) == ("changed", first.id, 2)
    assert again.record.fields == {"deadline": "2027-05-01", "horizon": "year"}
    with pytest.raises(
        StoreConflict, match=r"records\[0\].expected_version: the record is at version 2, not 1"
    ):
        await memory.records.save([RecordGiven(id=first.id, summary="Later.", expected_version=1)])
    gone = await memory.records.save(
        [RecordGiven(id=first.id, fields={"horizon": None}, expected_version=2)]
    )
    assert gone.records[0].record.fields == {"deadline": "2027-05-01"}
    same = await memory.records.save([GOAL])
    assert (same.records[0].change, same.records[0].record.version) == ("unchanged", 3)
    assert (await node(memory, first.id)).attributes.keys() == {"deadline", "status", "source"}
    versions = await memory.records.versions(first.id)
    assert [(one.version, one.fields.get("horizon")) for one in versions] == [
        (1, None),
        (2, "year"),
        (3, None),
    ]
    entry = (await memory.records.history(first.id))[1]
    assert '+horizon: "year"' in entry.diff


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (RecordGiven("Goal", "A"), r"records\[1\].Goal.summary: is required"),
        (RecordGiven("Gaol", "A", "B"), r"records\[1\].kind: 'Gaol' is no kind"),
        (
            RecordGiven("Goal", "A", "B", fields={"deadline": "soon"}),
            r"records\[1\].Goal.deadline: an ISO 8601 date",
        ),
        (
            RecordGiven("Goal", "A", "B", fields={"dead_line": "soon"}),
            r"records\[1\].Goal.dead_line: no such field",
        ),
        (RecordGiven("Goal", "A", "B", status="open"), r"records\[1\].Goal.status: one of"),
        (
            RecordGiven("Task", "A", "B", fields={"state": "done"}),
            r"records\[1\].Task.state: begins as todo; record_m",
        ),
        (
            RecordGiven("Goal", "A", "B", cites=(str(uuid4()),)),
            r"records\[1\].cites\[0\]: is no other",
        ),
        (
            RecordGiven("Task", "A", "B", relations=(RelationGiven("SERVES", "Nil"),)),
            r"records\[1\].relations\[0\].tar",
        ),
        (
            RecordGiven("Goal", "A", "B", relations=(RelationGiven("SERVES", "Run a marathon"),)),
            r"does not join Goal",
        ),
        (RecordGiven(id=str(uuid4()), summary="C"), r"records\[1\].id not found"),
    ],
)
async def test_a_wrong_record_is_named_and_nothing_of_the_call_is_kept(
    memory: Memory, wrong: RecordGiven, said: str
) -> None:
    with pytest.raises((InvalidRequest, NotFound), match=said):
        await memory.records.save([GOAL, wrong])
    assert (await memory.records.list(RecordQuery())).total == 0
    assert (await memory.stats()).turns == 0


async def test_a_move_goes_by_the_life_cycle_and_is_kept(memory: Memory) -> None:
    task = (await memory.records.save([GOAL, TASK])).records[1].record
    with pytest.raises(
        InvalidRequest, match="Task is todo: in_progress, blocked may follow, not 'done'"
    ):
        await memory.records.move(task.id, "done")
    with pytest.raises(
        InvalidRequest, match="'plan' may not write Task; it may write strategy, tactics"
    ):
        await memory.records.by("plan").move(task.id, "in_progress")
    moved = await memory.records.by("execute").move(
        task.id, "in_progress", expected="todo", why="Spring is here."
    )
    assert (moved.records[0].record.state, moved.records[0].record.version) == ("in_progress", 2)
    with pytest.raises(StoreConflict, match="expected: the record is in_progress, not todo"):
        await memory.records.move(task.id, "blocked", expected="todo")
    (move,) = await memory.records.transitions(task.id)
    assert (move.before, move.after, move.actor, move.why) == (
        "todo",
        "in_progress",
        "execute",
        "Spring is here.",
    )
    assert (await node(memory, task.id)).attributes["state"] == "in_progress"
    with pytest.raises(
        InvalidRequest, match=r"Task\.state: is in_progress; record_move alone changes it"
    ):
        await memory.records.save([RecordGiven(id=task.id, fields={"state": "done"})])


async def test_relations_are_made_checked_and_ended(memory: Memory) -> None:
    goal, other = (
        await memory.records.save([GOAL, RecordGiven("Goal", "Be fit", "Every day.")])
    ).records
    join = Join("run a marathon", RelationGiven("SUPPORTED_BY", other.record.id, {"weight": 0.5}))
    assert (await memory.records.join([join]))[1] == 1
    ids, new = await memory.records.join([join])
    assert new == 0
    (fact,) = await memory.get(ids)
    assert isinstance(fact, Fact)
    assert (fact.attributes["weight"], fact.attributes["created_by"]) == (0.5, "person")
    for wrong in ({"weight": 2}, {}, {"weight": 1, "sure": True}):
        with pytest.raises(InvalidRequest, match=r"relations\[0\]"):
            await memory.records.join(
                [Join(goal.record.id, RelationGiven("SUPPORTED_BY", "Be fit", wrong))]
            )
    await memory.records.part(ids)
    assert (await memory.records.graph()).relations == ()
    (fact,) = await memory.get(ids)
    assert isinstance(fact, Fact)
    assert fact.invalid_at is not None
    with pytest.raises(NotFound):
        await memory.records.part(ids)


async def test_records_are_listed_by_attributes_fields_and_order(memory: Memory) -> None:
    given = [
        RecordGiven("Goal", f"Goal {at}", "A goal.", tags=("even",) if at % 2 == 0 else (),
                    fields={"deadline": f"2027-01-{at + 1:02}", "target": f"Target {at}", "deliverables": [f"d{at}"]})
        for at in range(6)
    ]  # fmt: skip
    await memory.records.save([*given, RecordGiven("Value", "Honesty", "Say what is."), TASK, GOAL])

    async def titles(**query: object) -> list[str]:
        page = await memory.records.list(RecordQuery(**query))  # pyright: ignore[reportArgumentType]
        return [one.title for one in page.records]

    assert await titles(kinds=("Goal",), tags=("even",), order=("-deadline",)) == [
        "Goal 4",
        "Goal 2",
        "Goal 0",
    ]
    assert await titles(where=(Condition("deadline", ">", "2027-01-05"),), order=("title",)) == [
        "Goal 5", "Run a marathon",
    ]  # fmt: skip
    assert await titles(where=(Condition("target", "contains", "target 3"),)) == ["Goal 3"]
    assert await titles(where=(Condition("deliverables", "contains", "d2"),)) == ["Goal 2"]
    assert await titles(where=(Condition("deadline", "in", ["2027-01-01", "2027-01-02"]),)) == [
        "Goal 0",
        "Goal 1",
    ]
    assert await titles(kinds=("Goal",), where=(Condition("target", "is_null"),)) == [
        "Run a marathon"
    ]
    assert await titles(where=(Condition("state", "=", "todo"),)) == ["Buy shoes"]
    assert await titles(states=("todo",), statuses=("active",)) == ["Buy shoes"]
    first = await memory.records.list(RecordQuery(kinds=("Goal",), order=("-title",), limit=4))
    rest = await memory.records.list(
        RecordQuery(kinds=("Goal",), order=("-title",), limit=4, cursor=first.next_cursor)
    )
    assert [one.title for one in (*first.records, *rest.records)] == [
        "Run a marathon",
        *(f"Goal {at}" for at in range(5, -1, -1)),
    ]
    assert (first.total, rest.next_cursor, first.by_kind) == (7, "", {"Goal": 7})
    for wrong in (
        Condition("colour", "=", "red"),
        Condition("deadline", "=", 3),
        Condition("deliverables", "=", "d1"),
    ):
        with pytest.raises(InvalidRequest, match=r"where\[0\]"):
            await titles(where=(wrong,))


async def test_a_deleted_record_is_gone_and_who_cites_it_is_marked(memory: Memory) -> None:
    told = await memory.remember("The marathon is in May.")
    goal = (await memory.records.save([GOAL])).records[0].record
    note = RecordGiven(
        "Task", "Sign up", "In time.", cites=(goal.id, told.turn_id), relations=TASK.relations
    )
    task = (await memory.records.save([note])).records[0]
    dry = await memory.records.delete([goal.id])
    assert dry.dry_run
    assert (await memory.records.list(RecordQuery())).total == 2
    await memory.records.delete([goal.id], dry_run=False)
    assert [one.title for one in (await memory.records.list(RecordQuery())).records] == ["Sign up"]
    assert (await memory.records.graph()).relations == ()
    cites = await memory.records.cites([task.record.id])
    assert {(one.kind, one.gone) for one in cites[task.record.id]} == {
        ("record", True),
        ("turn", False),
    }
    for absent in (goal.id, task.relations[0]):
        with pytest.raises(NotFound):
            await memory.get([absent])


async def test_every_other_door_refuses_the_kinds_of_a_pack(memory: Memory) -> None:
    """Each door against a kind with a life cycle and one without: refused with record_save named, or unchanged."""
    task, goal = (await memory.records.save([TASK, GOAL])).records
    before = await memory.records.graph()
    for kind in ("Task", "Goal"):
        for refused in (
            memory.records.add_event("A text.", title="New", kind=kind),
            memory.remember("A text.", nodes=[NodeDraft("New", kind=kind)]),
            memory.records.update(
                (await memory.records.add_event("Plain.", title="Plain")).node_id, kind=kind
            ),
        ):
            with pytest.raises(
                InvalidRequest, match=f"{kind} is a kind of the pack constitution: use record_save"
            ):
                await refused
    for one in (task.record, goal.record):
        for refused in (
            memory.records.update(one.id, content="Other."),
            memory.records.update(one.turn, metadata={"state": "done"}),
            memory.records.append(one.id, "More."),
        ):
            with pytest.raises(InvalidRequest, match="of the pack constitution: use record_save"):
                await refused
        told = await memory.remember(
            f"{one.kind} is done.",
            nodes=[
                NodeDraft(one.title, summary="Done.", tags=("x",), attributes={"state": "done"})
            ],
        )
        assert [left.what for left in told.skipped] == [one.title]
        other = await memory.remember(
            f"About {one.kind}.", nodes=[NodeDraft(f"the {one.title}", summary="Other.")]
        )
        thing = (await memory.parts.client.mentioned_nodes([other.turn_id]))[other.turn_id][0]
        with pytest.raises(InvalidRequest, match="a record of its own"):
            await memory.records.merging.merge(thing, one.id, dry_run=False)
        merge = await memory.records.merging.merge(one.id, thing, dry_run=False)
        kept = await node(memory, one.id)
        assert (kept.name, kept.summary, kept.aliases) == (
            one.title,
            one.summary,
            (f"the {one.title}",),
        )
        await memory.records.merging.undo(merge.id)
        related = await memory.records.relate([RelationDraft(one.id, thing, "near")])
        assert "record_relate" in related.skipped[0].why
    assert await memory.records.graph() == replace(
        before, stamp=(await memory.records.graph()).stamp
    )
    reading = await memory.remember("Ana reads.", extraction="none")
    job = await memory.parts.journal.queue.of_turn(reading.turn_id)
    assert job
    found = Reading(nodes=(NodeDraft("Learn Greek", kind="Goal"),))
    assert job.id
    outcome = plan_given(
        Batch(memory.entity, job.turn.occurred_at, kinds=memory.kinds), job.turn, found.nodes, ()
    )
    assert [(left.what, "record_save" in left.why) for left in outcome.skipped] == [
        ("Learn Greek", True)
    ]


async def test_what_an_actor_may_not_write_it_may_not_forget(memory: Memory) -> None:
    task = (await memory.records.save([GOAL, TASK])).records[1]
    plan = memory.by("plan")
    for refused in (
        plan.forget([task.record.id], dry_run=False),
        plan.forget([task.record.turn], dry_run=False),
        plan.records.delete([task.record.id], dry_run=False),
        plan.records.save([RecordGiven(id=task.record.id, summary="Other.")]),
        plan.records.part(task.relations),
        plan.records.join([Join(task.record.id, RelationGiven("SERVES", "Run a marathon"))]),
    ):
        with pytest.raises(InvalidRequest, match="'plan' may not write Task"):
            await refused
    assert (await memory.records.get([task.record.id]))[0].version == 1


async def test_a_rebuild_and_a_reindex_bring_all_back(app: App, memory: Memory) -> None:
    task, goal = (await memory.records.save([TASK, GOAL])).records
    await memory.records.move(task.record.id, "in_progress")
    await memory.records.relate([RelationDraft("Run a marathon", "Ana", "of")])
    before = await memory.records.graph()
    listed = RecordQuery(where=(Condition("deadline", "=", "2027-05-01"),))
    await memory.parts.journal.records.write(lambda rows: rows.put_fields(goal.record.id, {}))
    assert (await memory.records.list(listed)).total == 0
    await memory.reindex()
    assert (await memory.records.list(listed)).total == 1
    client = memory.parts.client
    facts = {
        fact.uuid: fact.attributes for fact in await client.facts_of_nodes([goal.record.id], 100)
    }
    await memory.parts.journal.queue.replay()
    await client.clear()
    memory.parts.worker.notify()
    await memory.settled()
    after = await memory.records.graph()
    assert (after.records, after.relations) == (before.records, before.relations)
    assert (await node(memory, task.record.id)).attributes["state"] == "in_progress"
    again = {
        fact.uuid: fact.attributes for fact in await client.facts_of_nodes([goal.record.id], 100)
    }
    assert again == {uuid: one for uuid, one in facts.items() if uuid in again}
    assert task.relations[0] in again


async def test_two_actors_change_one_record_at_once_and_no_change_is_lost(memory: Memory) -> None:
    record = (
        (
            await memory.records.save(
                [RecordGiven("Note", "Tally", "Who counted.", fields={"content": "0"})]
            )
        )
        .records[0]
        .record
    )
    lost = 0

    async def count(times: int) -> None:
        nonlocal lost
        for _ in range(times):
            while True:
                [now] = await memory.records.get([record.id])
                given = RecordGiven(
                    id=record.id, fields={"content": str(int(str(now.fields["content"])) + 1)}
                )
                try:
                    await memory.records.save(
                        [replace(given, expected_version=now.version)], wait="journal"
                    )
                    break
                except StoreConflict:
                    lost += 1

    times = 50 if not LONG else 500
    await asyncio.gather(count(times), count(times))
    [now] = await memory.records.get([record.id])
    assert (now.fields["content"], now.version) == (str(2 * times), 2 * times + 1)
    assert lost, "the two met"
    assert len(await memory.records.versions(record.id)) == 2 * times + 1


async def test_titles_are_taken_wherever_ids_of_records_are(app: App) -> None:
    await app.create("ana", packs=("constitution",))
    calls, ana = Calls(app), Caller.of_entity("ana")

    async def ask(name: str, **arguments: Any) -> Any:
        return (await calls.answer(ana, name, arguments)).data

    await ask(
        "record_save",
        records=[
            {"kind": "Task", "title": "Buy shoes", "summary": "For the run."},
            {"kind": "Goal", "title": "Run far", "summary": "A marathon."},
            {"kind": "Goal", "title": "Twice", "summary": "First.", "tags": ["one"]},
        ],
    )
    moved = await ask("record_move", id="buy shoes", to="in_progress")
    assert moved["records"][0]["state"] == "in_progress"
    assert (await ask("record_get", ids=["Run far"]))["records"][0]["title"] == "Run far"
    await ask("record_relate", source="Buy shoes", type="SERVES", target="Run far")
    found = await ask(
        "record_search", query="a long race", anchor_node_id="Run far", min_similarity=-1
    )
    assert "Run far" not in [result["title"] for result in found["results"]]
    assert found["results"][0]["title"] == "Buy shoes"
    shown = await ask("record_delete", ids=["Twice"])
    assert shown["dry_run"] is True
    with pytest.raises(NotFound):
        await ask("record_move", id="No such task", to="done")
    await ask(
        "record_save",
        records=[{"kind": "Note", "title": "Twice", "summary": "B.", "fields": {"content": "x"}}],
    )
    with pytest.raises(InvalidRequest, match="2 records are called so"):
        await ask("record_get", ids=["Twice"])
