"""The heartbeat of a squad's member: the list of what needs its attention now.

Late approvals, its inbox and tasks, unseen records, concepts to synthesise, and weakened beliefs.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta

from pps.core.record_values import RecordGraph, RecordQuery
from pps.features.squad.agents import beat
from pps.features.squad.desk import Desk
from pps.features.squad.openclaw_files import CHECKLIST
from pps.features.squad.pool_queries import (
    HEALTH,
    SURE,
    SYNTHESES,
    UNSEEN,
    Stage,
    ask_pool,
    shown,
    stages,
)
from pps.features.squad.roots import confidence_of
from pps.features.squad.sharing import withdraw_orphans
from pps.features.squad.working import lapsed, pending

_LATE = timedelta(hours=1)
_STALE = timedelta(hours=48)
_PRIORITIES = {"critical": 1.0, "high": 0.8, "normal": 0.6, "low": 0.4}


@dataclass(frozen=True, slots=True)
class HeartbeatItem:
    """Something that needs attention.

    Attributes:
        what: The sort of item, such as ``inbox``.
        text: A sentence about it.
        id: Id of the record, or empty.
        priority: 0 to 1.
    """

    what: str
    text: str
    id: str
    priority: float


async def heartbeat(desk: Desk) -> tuple[list[HeartbeatItem], list[Stage]]:
    """Return what needs a member's attention, by priority, and statistics of the squad's tasks.

    The member's presence is noted.
    """
    now = desk.now()
    # A program may have been killed between forgetting a record and withdrawing its copy.
    await withdraw_orphans(desk)
    items: list[HeartbeatItem] = []
    if desk.is_reviewer:
        for review in await pending(desk):
            if now - review.since > _LATE and review.proposer != desk.me.id:
                text = f"Pending approval: {review.record.title}"
                items.append(HeartbeatItem("late approval", text, review.record.id, 1.0))
    async with desk.pool() as pool:
        graph = await shown(pool)
        due = await pool.records.pool.due(desk.me.id, now, 200)
        unseen, syntheses, health = [
            await ask_pool(desk, pool, name, {}) for name in (UNSEEN, SYNTHESES, HEALTH)
        ]
        mine = [
            record
            for record in graph.records.values()
            if record.fields.get("assigned_to") == desk.me.id
        ]
        await beat(
            desk,
            pool,
            busy=any(task.state == "in_progress" and not lapsed(task, now) for task in mine),
        )
    if due:
        items.append(HeartbeatItem("inbox", f"{len(due)} deliveries wait: squad_inbox", "", 0.7))
    items += _task_items(graph, desk.me.id, now)
    items += [HeartbeatItem("unseen", match.said, match.id, 0.5) for match in unseen.found]
    items += [HeartbeatItem("synthesis", match.said, match.id, 0.6) for match in syntheses.found]
    items += await _belief_items(desk, now)
    items += await _checklist_items(desk)
    return sorted(items, key=lambda item: -item.priority), stages(health)


def _task_items(graph: RecordGraph, member: str, now: datetime) -> Iterator[HeartbeatItem]:
    for record in graph.records.values():
        if record.kind == "Task" and record.fields.get("assigned_to") == member:
            weight = _PRIORITIES[str(record.fields.get("priority") or "normal")]
            if record.state == "pending":
                yield HeartbeatItem("task", f"Waits for you: {record.title}", record.id, weight)
            elif record.state == "in_progress" and lapsed(record, now):
                yield HeartbeatItem(
                    "task", f"Its lease has run out: {record.title}", record.id, weight
                )


async def _belief_items(desk: Desk, now: datetime) -> list[HeartbeatItem]:
    """Return the member's active beliefs that cite withdrawn records, then stale unsure ones.

    A belief is stale if it was not changed for 48 hours.
    """
    records = desk.memory.records
    gone: set[str] = set()
    for id_, cites in (await records.pool.cites()).items():
        if any(cite.gone for cite in cites):
            gone.add(id_)
    beliefs = [
        record
        for record in (await records.graph()).records.values()
        if record.kind == "Belief" and record.state == "active"
    ]
    weakened = [
        HeartbeatItem("withdrawn", f"Rests on what was withdrawn: {belief.title}", belief.id, 0.9)
        for belief in beliefs
        if belief.id in gone
    ]
    stale = [
        belief
        for belief in beliefs
        if now - belief.updated_at > _STALE and confidence_of(belief) < SURE
    ]
    return weakened + [
        HeartbeatItem("stale belief", f"Unsure for two days: {belief.title}", belief.id, 0.3)
        for belief in stale
    ]


async def _checklist_items(desk: Desk) -> list[HeartbeatItem]:
    """Return the open entries of the member's own HEARTBEAT.md."""
    wanted = RecordQuery(
        kinds=("Documentation",), tags=(CHECKLIST,), statuses=("active",), limit=100
    )
    page = await desk.memory.records.list(wanted)
    return [HeartbeatItem("checklist", record.title, record.id, 0.4) for record in page.records]
