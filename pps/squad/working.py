"""Tasks of a squad, its approval gate, and what a member should look at now."""

from __future__ import annotations

import sqlite3
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Literal, TypeAlias

from pps.core import time
from pps.core.errors import InvalidRequest, NotFound, StoreConflict
from pps.core.record_values import Record, RecordGraph
from pps.core.values import JSON
from pps.journal.pool_rows import Delivery, Root, Shared, put_due, put_shared
from pps.journal.record_rows import RecordRows
from pps.memory import Memory
from pps.records.records import Join
from pps.records.saving import RecordGiven, RelationGiven, Saved
from pps.squad.delivery import deliveries
from pps.squad.desk import Desk
from pps.squad.roots import confidence_of, word_of
from pps.squad.sharing import share, take_out

LEASE, LATE = timedelta(hours=1), timedelta(hours=1)
_STALE, _WEEK = timedelta(hours=48), timedelta(days=7)
_UNSEEN, _SURE = 20, 0.7
_PRIORITIES = {"critical": 1.0, "high": 0.8, "normal": 0.6, "low": 0.4}
Decision: TypeAlias = Literal["approved", "rejected", "needs_revision"]
Step: TypeAlias = Literal["pending_approval", "implementing", "measuring", "complete"]
_Also: TypeAlias = Callable[[RecordRows, Sequence[Saved]], None]


@dataclass(frozen=True, slots=True)
class Item:
    """Something to look at: why, in words, which record, and how much it matters, 0 to 1."""

    what: str
    text: str
    id: str
    priority: float


@dataclass(frozen=True, slots=True)
class Pending:
    """What waits for a reviewer, and the analyses that it rests on."""

    record: Record
    proposer: str
    since: datetime
    backing: tuple[Record, ...]


@dataclass(frozen=True, slots=True)
class Stage:
    """How the tasks of a type went in the last week; None where nothing ended."""

    type: str
    total: int
    success_rate: float | None
    avg_quality: float | None


def _telling(desk: Desk, told: Iterable[str], why: str, *, anew: bool = False) -> _Also:
    """Return what tells members of a record as it is written: those named, and who subscribes to it."""
    named = [one for one in told if one and one != desk.me.id]

    def also(rows: RecordRows, saved: Sequence[Saved]) -> None:
        one, at = saved[0].record, desk.now()
        due = [Delivery(member, one.id, why, at) for member in named]
        due += deliveries(desk.rules, one, desk.me.id, 1.0, at)
        shared = Shared(one.id, desk.me.id, "", at, 1.0, "agent")
        root = Root("", word_of(desk.squad.key, desk.me.id), 1.0)
        rows.beside(lambda db: put_shared(db, shared, [root], due) if anew else put_due(db, due))

    return also


async def give(desk: Desk, to: str, record: RecordGiven) -> Record:
    """Give a member a task; it hears of it at once. InvalidRequest for a member or field that is none."""
    member = desk.rules.member(to, "to")
    fields: dict[str, JSON] = {"requested_by": desk.me.id, "delegated_by": desk.me.id, "assigned_to": member}
    given = RecordGiven("Task", record.title, record.summary, fields={**record.fields, **fields}, another=True)
    async with desk.pool() as pool:
        saved = await pool.records.by(desk.me.id, _telling(desk, [member], "task", anew=True)).save([given])
    return saved.records[0].record


async def take(desk: Desk, id_: str) -> Record:
    """Take a task that waits, or whose lease has run out; one of many who ask at once gets it.

    Raises:
        NotFound: There is no such task.
        InvalidRequest: It is another's.
        StoreConflict: Somebody holds it.
    """
    async with desk.pool() as pool:
        task = await _task(pool, id_, desk.me.id)
        by = pool.records.by(desk.me.id)
        if task.state == "in_progress" and not _lapsed(task, desk.now()):
            raise StoreConflict("is taken, and its lease runs")
        if task.state != "in_progress":
            task = (await by.move(task.id, "in_progress", expected="pending", why="taken")).records[0].record
        fields: dict[str, JSON] = {"lease_until": time.iso(desk.now() + LEASE), "started_at": time.iso(desk.now())}
        given = RecordGiven(id=task.id, fields=fields, expected_version=task.version)
        return (await by.save([given])).records[0].record


async def finish(desk: Desk, id_: str, outcome: str, quality: float | None, why: str) -> Record:
    """End a task that one holds; who asked for it hears of it. Raises as ``take``."""
    async with desk.pool() as pool:
        task = await _task(pool, id_, desk.me.id)
        if task.state != "in_progress":
            raise StoreConflict(f"is {task.state}, not in_progress")
        fields: dict[str, JSON] = {"outcome": outcome, "completed_at": time.iso(desk.now()), "lease_until": None}
        fields |= {"quality_score": quality} if quality is not None else {}
        by = pool.records.by(desk.me.id)
        await by.save([RecordGiven(id=task.id, fields=fields, expected_version=task.version)])
        asked = str(task.fields.get("requested_by") or "")
        ended = pool.records.by(desk.me.id, _telling(desk, [asked], "task done"))
        return (await ended.move(task.id, "completed", expected="in_progress", why=why)).records[0].record


async def submit(desk: Desk, id_: str, to: Step, why: str) -> Record:
    """Bring a proposal before the reviewers, or an approved one a step further.

    A first submission shares the member's own record; one that needs a revision is brought up to it and proposed anew.

    Raises:
        NotFound: There is none of that id.
        InvalidRequest: It is no proposal, or may not go there from where it is.
    """
    async with desk.pool() as pool:
        mine = await pool.records.pool.copies(desk.me.id, [id_])
        theirs = (await pool.records.pool.shared([id_])).get(id_)
        if to == "pending_approval" and not (theirs and theirs.member == desk.me.id):
            mine[id_] = (await share(desk, id_)).record.id
        [record] = await pool.records.get([mine.get(id_, id_)])
        if record.kind != "WorkflowImprovement":
            raise InvalidRequest("id", "is no WorkflowImprovement; memory_share shares the rest")
        by = pool.records.by(desk.me.id)
        if to == "pending_approval":
            if record.author != desk.me.id:
                raise InvalidRequest("id", "is another's proposal")
            if record.state == "needs_revision":
                await by.move(record.id, "proposed", expected="needs_revision", why=why)
            await by.save([RecordGiven(id=record.id, fields={"submitted_at": time.iso(desk.now())})])
        reviewers = [desk.rules.aliases[one] for one in desk.rules.pool.reviewers]
        told = reviewers if to == "pending_approval" else [record.author, *reviewers]
        moving = pool.records.by(desk.me.id, _telling(desk, told, f"proposal {to}"))
        return (await moving.move(record.id, to, why=why)).records[0].record


async def pending(desk: Desk) -> list[Pending]:
    """Return what waits for a reviewer, the oldest first; who is none sees what it proposed itself."""
    async with desk.pool() as pool:
        graph, shared = await pool.records.graph(), await pool.records.pool.shared()
        cites = await pool.records.cites([*shared])
    waiting: list[Pending] = []
    for id_, one in shared.items():
        record = graph.records.get(id_)
        if record is None or not (desk.is_reviewer or one.member == desk.me.id):
            continue
        if record.state == "pending_approval" or (one.state == "waiting" and record.kind != "WorkflowImprovement"):
            since = record.fields.get("submitted_at")
            below = {edge.target for edge in graph.relations if edge.source == id_ and edge.type == "BASED_ON"}
            below |= {cite.id for cite in cites.get(id_, ())}
            backing = tuple(graph.records[found] for found in sorted(below) if found in graph.records)
            waiting.append(Pending(record, one.member, time.parse(str(since)) if since else one.at, backing))
    return sorted(waiting, key=lambda found: found.since)


async def review(desk: Desk, id_: str, decision: Decision, notes: str, conditions: Sequence[str]) -> Record:
    """Decide on what waits; of many who decide at once one does, and never who proposed it.

    Raises:
        NotFound: Nothing waits under that id.
        InvalidRequest: This member is no reviewer, or proposed it.
        StoreConflict: It was decided meanwhile.
    """
    desk.check_reviewer()
    async with desk.pool() as pool:
        whose = (await pool.records.pool.shared([id_])).get(id_)
        if whose is None or whose.state == "revoked":
            raise NotFound()
        if whose.member == desk.me.id:
            raise InvalidRequest("id", "is your own; another reviewer decides on it")
        [record] = await pool.records.get([id_])
        if record.kind == "WorkflowImprovement":
            return await _reviewed(desk, pool, record, whose, decision, notes, conditions)
        if whose.state != "waiting":
            raise StoreConflict("was decided already")
        if decision == "rejected":
            await take_out(desk, pool, [id_])
            return record
        also = _released(desk, whose, decision)
        given = RecordGiven(id=id_, status="active" if decision == "approved" else None, fields={})
        return (await pool.records.by(desk.me.id, also).save([given])).records[0].record


async def _reviewed(  # noqa: PLR0913 - a decision has so many parts
    desk: Desk,
    pool: Memory,
    record: Record,
    whose: Shared,
    decision: Decision,
    notes: str,
    conditions: Sequence[str],
) -> Record:
    also = _released(desk, whose, decision)
    decided = await pool.records.by(desk.me.id, also).move(record.id, decision, expected="pending_approval", why=notes)
    at = time.iso(desk.now())
    fields: dict[str, JSON] = {
        "reviewed_by": desk.me.id,
        "review_decision": decision,
        "review_notes": notes,
        "reviewed_at": at,
    }
    agent = RecordGiven("Agent", desk.my_rules.title or desk.me.id, desk.my_rules.role, fields={"role": desk.me.role})
    done: dict[str, JSON] = {"decision": decision, "notes": notes, "conditions": list(conditions), "reviewed_at": at}
    status = "active" if decision == "approved" else None
    by = pool.records.by(desk.me.id)
    saved = await by.save([RecordGiven(id=record.id, fields=fields, status=status), agent])
    await by.join([Join(record.id, RelationGiven("APPROVED_BY", saved.records[1].record.id, done))])
    return decided.records[0].record if not saved.records else saved.records[0].record


def _released(desk: Desk, whose: Shared, decision: Decision) -> _Also:
    """Return what lets a decided copy out, and tells of it, in the decision's own transaction."""

    def also(rows: RecordRows, saved: Sequence[Saved]) -> None:
        one, at = saved[0].record, desk.now()
        due = [Delivery(whose.member, one.id, decision, at)]
        if decision == "approved":
            due += deliveries(desk.rules, one, whose.member, whose.confidence, at)

        def work(db: sqlite3.Connection) -> None:
            if whose.state == "waiting" and decision == "approved":
                let = "UPDATE shared SET state = 'shared' WHERE record = ? AND state = 'waiting'"
                if not db.execute(let, (one.id,)).rowcount:
                    raise StoreConflict("was decided already")
            put_due(db, due)

        rows.beside(work)

    return also


async def heartbeat(desk: Desk) -> tuple[list[Item], list[Stage]]:
    """Return what a member should look at now, what matters most first, and how the squad's tasks go."""
    now = desk.now()
    items: list[Item] = []
    if desk.is_reviewer:
        late = [one for one in await pending(desk) if now - one.since > LATE and one.proposer != desk.me.id]
        items += [Item("late approval", f"Pending approval: {one.record.title}", one.record.id, 1.0) for one in late]
    async with desk.pool() as pool:
        graph = await pool.records.graph()
        unseen, shared = await pool.records.pool.unseen(desk.me.id), await pool.records.pool.shared()
        due = await pool.records.pool.due(desk.me.id, now, 200)
    # What waits for a reviewer, or is on its way out, is shown to nobody here.
    held = {id_: one for id_, one in graph.records.items() if id_ in shared and shared[id_].state == "shared"}
    graph = replace(graph, records=held)
    if due:
        items.append(Item("inbox", f"{len(due)} deliveries wait: squad_inbox", "", 0.7))
    items += _tasks(graph, desk.me.id, now)
    fresh = [shared[one] for one in unseen if one in graph.records and shared[one].confidence > _SURE]
    for one in sorted(fresh, key=lambda found: found.at, reverse=True)[:_UNSEEN]:
        if graph.records[one.record].kind != "Task":
            items.append(Item("unseen", f"From {one.member}: {graph.records[one.record].title}", one.record, 0.5))
    items += _syntheses(graph)
    items += await _beliefs(desk, now)
    return sorted(items, key=lambda found: -found.priority), _health(graph, now)


def _tasks(graph: RecordGraph, member: str, now: datetime) -> Iterator[Item]:
    for one in graph.records.values():
        if one.kind == "Task" and one.fields.get("assigned_to") == member:
            weight = _PRIORITIES[str(one.fields.get("priority") or "normal")]
            if one.state == "pending":
                yield Item("task", f"Waits for you: {one.title}", one.id, weight)
            elif one.state == "in_progress" and _lapsed(one, now):
                yield Item("task", f"Its lease has run out: {one.title}", one.id, weight)


def _syntheses(graph: RecordGraph) -> Iterator[Item]:
    """Yield concepts that research found and an application challenged, and that no synthesis took up since."""
    by_target: defaultdict[str, dict[str, list[Record]]] = defaultdict(lambda: defaultdict(list))
    for edge in graph.relations:
        by_target[edge.target][edge.type].append(graph.records[edge.source]) if edge.source in graph.records else None
    for target, ends in by_target.items():
        if not ends["DISCOVERED"] or target not in graph.records:
            continue
        for one in ends["CHALLENGED"]:
            if all(later.created_at <= one.created_at for later in ends["UPDATED"] if later.kind == "Synthesis"):
                text = f"{graph.records[target].title}: {ends['DISCOVERED'][0].title}, but {one.title}"
                yield Item("synthesis", text, target, 0.6)


async def _beliefs(desk: Desk, now: datetime) -> list[Item]:
    """Return own open beliefs that rest on what was withdrawn, or that are unsure and were not looked at for long."""
    records = desk.memory.records
    gone = {one for one, cites in (await records.pool.cites()).items() if any(cite.gone for cite in cites)}
    beliefs = [
        one for one in (await records.graph()).records.values() if one.kind == "Belief" and one.state == "active"
    ]
    found = [
        Item("withdrawn", f"Rests on what was withdrawn: {one.title}", one.id, 0.9) for one in beliefs if one.id in gone
    ]
    stale = [one for one in beliefs if now - one.updated_at > _STALE and confidence_of(one) < _SURE]
    return found + [Item("stale belief", f"Unsure for two days: {one.title}", one.id, 0.3) for one in stale]


def _health(graph: RecordGraph, now: datetime) -> list[Stage]:
    stages: defaultdict[str, list[Record]] = defaultdict(list)
    for one in graph.records.values():
        if one.kind == "Task" and now - one.created_at < _WEEK:
            stages[str(one.fields["type"])].append(one)
    found: list[Stage] = []
    for name, tasks in sorted(stages.items()):
        ended = [one.fields["outcome"] for one in tasks if one.fields.get("outcome")]
        scores = [float(str(one.fields["quality_score"])) for one in tasks if "quality_score" in one.fields]
        rate = ended.count("success") / len(ended) if ended else None
        found.append(Stage(name, len(tasks), rate, sum(scores) / len(scores) if scores else None))
    return found


async def _task(pool: Memory, id_: str, member: str) -> Record:
    [task] = await pool.records.get([id_])
    if task.kind != "Task":
        raise NotFound("task")
    if task.fields.get("assigned_to") != member:
        raise InvalidRequest("id", "is another member's task")
    return task


def _lapsed(task: Record, now: datetime) -> bool:
    until = task.fields.get("lease_until")
    return not until or time.parse(str(until)) <= now
