"""Tasks of a squad, and the review of proposals and copies."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Literal, TypeAlias

from pps.core import time
from pps.core.errors import InvalidRequest, NotFound, StoreConflict
from pps.core.record_values import Record
from pps.core.values import JSON
from pps.features.squad.desk import Desk
from pps.features.squad.gate import advance, deliveries
from pps.features.squad.roots import word_of
from pps.features.squad.sharing import PROPOSAL, share
from pps.features.squad.squad_members import agent_id, created
from pps.journal.pool_rows import Delivery, PoolRecord, Root, put_due, put_shared
from pps.journal.record_rows import RecordRows
from pps.memory import Memory
from pps.records.records import Also
from pps.records.saving import RecordGiven, RelationGiven, Saved

LEASE = timedelta(hours=1)
Decision: TypeAlias = Literal["approved", "rejected", "needs_revision"]
Step: TypeAlias = Literal["pending_approval", "implementing", "measuring", "complete"]


@dataclass(frozen=True, slots=True)
class PendingReview:
    """A record that waits for a reviewer.

    Attributes:
        since: When it was submitted.
        backing: The records that it cites.
        stands: The text that it would replace.
    """

    record: Record
    proposer: str
    since: datetime
    backing: tuple[Record, ...]
    stands: str = ""


def _notify(
    desk: Desk, recipients: Iterable[str], why: str, *, anew: bool = False, all_: bool = True
) -> Also:
    """Return a hook that queues notifications in the transaction that writes a record.

    Args:
        desk: The writer's.
        recipients: Members to notify.
        why: The reason that they see.
        anew: The record is new: also relate it to its creator and add its row to the pool.
        all_: Also notify the subscribers.
    """
    named = [recipient for recipient in recipients if recipient and recipient != desk.me.id]

    def also(rows: RecordRows, saved: Sequence[Saved]) -> None:
        record = saved[0].record
        at = desk.now()
        due = [Delivery(member, record.id, why, at) for member in named]
        due += deliveries(desk.rules, record, desk.me.id, 1.0, at) if all_ else ()
        if anew:
            created(desk, rows, record.id)
        shared = PoolRecord(record.id, desk.me.id, "", at, 1.0, "agent", own_confidence=1.0)
        root = Root("", word_of(desk.squad.key, desk.me.id))
        rows.beside(lambda db: put_shared(db, shared, [root], due) if anew else put_due(db, due))

    return also


async def give(desk: Desk, to: str, record: RecordGiven) -> Record:
    """Give a member a task and notify it.

    Raises:
        InvalidRequest: The member is unknown or has left, or a field is wrong.
    """
    member = desk.rules.member(to, "to")
    if member not in desk.squad.members:
        raise InvalidRequest(
            "to", f"{member} is not in the squad now; there are {', '.join(desk.squad.members)}"
        )
    fields: dict[str, JSON] = {
        "requested_by": desk.me.id,
        "delegated_by": desk.me.id,
        "assigned_to": member,
    }
    draft = RecordGiven(
        "Task",
        record.title,
        record.summary,
        fields={**record.fields, **fields},
        relations=(RelationGiven("ASSIGNED_TO", agent_id(desk.squad, member)),),
        another=True,
    )
    async with desk.pool() as pool:
        telling = _notify(desk, [member], "task", anew=True)
        saved = await pool.records.by(desk.me.id, telling, is_system=True).save([draft])
    return saved.records[0].record


async def take(desk: Desk, id_: str) -> Record:
    """Start one of this member's tasks that waits, or whose lease has run out.

    Of several simultaneous calls one succeeds.

    Raises:
        NotFound: There is no such task.
        InvalidRequest: It is another member's.
        StoreConflict: It is in progress with a running lease, or has ended.
    """
    async with desk.pool() as pool:
        task = await _task(pool, id_, desk.me.id)
        if task.state == "in_progress" and not lapsed(task, desk.now()):
            raise StoreConflict("is taken, and its lease runs")
        by = pool.records.by(desk.me.id)
        now = desk.now()
        fields: dict[str, JSON] = {
            "lease_until": time.iso(now + LEASE),
            "started_at": time.iso(now),
        }
        if task.state == "in_progress":
            draft = RecordGiven(id=task.id, fields=fields, expected_version=task.version)
            return (await by.save([draft])).records[0].record
        held = by.saving(RecordGiven(id=task.id, fields=fields))
        expected = "blocked" if task.state == "blocked" else "pending"
        await pool.records.by(desk.me.id, held).move(
            task.id, "in_progress", expected=expected, why="taken"
        )
        return await _task(pool, id_, desk.me.id)


async def finish(desk: Desk, id_: str, outcome: str, quality: float | None, why: str) -> Record:
    """End a task that this member holds and notify its giver. Raises as ``take``."""
    async with desk.pool() as pool:
        task = await _task(pool, id_, desk.me.id)
        if task.state != "in_progress":
            raise StoreConflict(f"is {task.state}, not in_progress")
        fields: dict[str, JSON] = {
            "outcome": outcome,
            "completed_at": time.iso(desk.now()),
            "lease_until": None,
        }
        fields |= {"quality_score": quality} if quality is not None else {}
        result = pool.records.by(desk.me.id).saving(RecordGiven(id=task.id, fields=fields))
        requester = str(task.fields.get("requested_by") or "")
        ended = pool.records.by(desk.me.id, result, _notify(desk, [requester], "task done"))
        await ended.move(task.id, "completed", expected="in_progress", why=why)
        return await _task(pool, id_, desk.me.id)


async def block(desk: Desk, id_: str, why: str) -> Record:
    """Mark a held task as blocked and notify its giver. Raises as ``finish``."""
    async with desk.pool() as pool:
        task = await _task(pool, id_, desk.me.id)
        if task.state != "in_progress":
            raise StoreConflict(f"is {task.state}, not in_progress")
        released = pool.records.by(desk.me.id).saving(
            RecordGiven(id=task.id, fields={"lease_until": None})
        )
        giver = str(task.fields.get("requested_by") or "")
        telling = _notify(desk, [giver], "task blocked")
        await pool.records.by(desk.me.id, released, telling).move(
            task.id, "blocked", expected="in_progress", why=why
        )
        return await _task(pool, id_, desk.me.id)


async def cancel(desk: Desk, id_: str, why: str) -> Record:
    """Cancel a task that this member gave and that has not ended; notify its holder.

    Raises:
        NotFound: There is no such task.
        InvalidRequest: Another member gave it.
        StoreConflict: It has ended.
    """
    async with desk.pool() as pool:
        [task] = await pool.records.get([id_])
        if task.kind != "Task":
            raise NotFound("task")
        if task.fields.get("requested_by") != desk.me.id:
            raise InvalidRequest("id", "was given by another member, who can cancel it")
        if task.state not in ("pending", "in_progress", "blocked"):
            raise StoreConflict(f"is {task.state}: it has ended")
        released = pool.records.by(desk.me.id).saving(
            RecordGiven(id=task.id, fields={"lease_until": None})
        )
        telling = _notify(desk, [str(task.fields.get("assigned_to") or "")], "task cancelled")
        await pool.records.by(desk.me.id, released, telling).move(
            task.id, "cancelled", expected=task.state, why=why
        )
        return (await pool.records.get([task.id]))[0]


async def submit(desk: Desk, id_: str, to: Step, why: str) -> Record:
    """Submit a proposal to the reviewers, or move an approved one a step on.

    A first submission shares the member's own record. If a revision was requested, the copy is
    updated from that record and submitted again.

    Raises:
        NotFound: There is no such record.
        InvalidRequest: It is no proposal, or its state does not allow this step.
    """
    async with desk.pool() as pool:
        mine = await pool.records.pool.copies(desk.me.id, [id_])
        theirs = (await pool.records.pool.shared([id_])).get(id_)
        if to == "pending_approval" and not (theirs and theirs.member == desk.me.id):
            [own_record] = await desk.memory.records.get([id_])
            _check_is_proposal(own_record)  # before it is shared: a refusal must show nothing
            mine[id_] = (await share(desk, id_)).record.id
        [record] = await pool.records.get([mine.get(id_, id_)])
        _check_is_proposal(record)
        by = pool.records.by(desk.me.id)
        at = list[Also]()
        _check_step(desk, record, to)
        if to == "pending_approval":
            if record.state == "needs_revision":
                await by.move(record.id, "proposed", expected="needs_revision", why=why)
            at.append(
                by.saving(RecordGiven(id=record.id, fields={"submitted_at": time.iso(desk.now())}))
            )
        reviewers = [desk.rules.aliases[reviewer] for reviewer in desk.rules.pool.reviewers]
        recipients = reviewers if to == "pending_approval" else [record.author, *reviewers]
        telling = _notify(desk, recipients, f"proposal {to}", all_=to != "pending_approval")
        return (
            (await pool.records.by(desk.me.id, *at, telling).move(record.id, to, why=why))
            .records[0]
            .record
        )


def _check_is_proposal(record: Record) -> None:
    if record.kind != PROPOSAL:
        raise InvalidRequest("id", "is no WorkflowImprovement; memory_share shares the rest")


def _check_step(desk: Desk, record: Record, to: Step) -> None:
    """Raise InvalidRequest unless this member may move a proposal to this step."""
    if to == "pending_approval":
        if record.author != desk.me.id:
            raise InvalidRequest("id", "is another's proposal")
        if not desk.reviewers - {desk.me.id}:
            raise InvalidRequest(
                "id",
                "nobody else may review it here: add a reviewer to the squad's file ([pool] "
                "reviewers)",
            )
        return
    partner = str(record.fields.get("co_created_with") or "")
    allowed = {record.author, desk.rules.aliases.get(partner, partner), *desk.reviewers}
    roles = desk.rules.pool.steps.get(to, [])
    if desk.me.id not in allowed and desk.my_rules.role not in roles:
        named = f", or a member with the role {' or '.join(roles)}" if roles else ""
        raise InvalidRequest(
            "id",
            f"is another's improvement: its author, whom it was made with, a reviewer{named} takes "
            f"it to {to}",
        )


async def pending(desk: Desk) -> list[PendingReview]:
    """Return what waits for a reviewer, the oldest first.

    A member who is no reviewer gets only its own proposals and copies.
    """
    async with desk.pool() as pool:
        graph = await pool.records.graph()
        shared = await pool.records.pool.shared()
        cites = await pool.records.cites([*shared])
        waiting: list[PendingReview] = []
        for id_, copy in shared.items():
            record = graph.records.get(id_)
            if record is None or not (desk.is_reviewer or copy.member == desk.me.id):
                continue
            if record.state == "pending_approval" or (
                copy.state == "waiting" and record.kind != PROPOSAL
            ):
                since = record.fields.get("submitted_at")
                sources = {cite.id for cite in cites.get(id_, ())}
                for edge in graph.relations:
                    if edge.source == id_ and edge.type == "BASED_ON":
                        sources.add(edge.target)
                waiting.append(
                    PendingReview(
                        record,
                        proposer=copy.member,
                        since=time.parse(str(since)) if since else copy.at,
                        backing=tuple(
                            graph.records[source]
                            for source in sorted(sources)
                            if source in graph.records
                        ),
                        stands=await _text_before(pool, record),
                    )
                )
    return sorted(waiting, key=lambda review: review.since)


async def _text_before(pool: Memory, record: Record) -> str:
    """Return the text that an approval would replace, or an empty text.

    For a proposal it is the described current state, for an updated copy its earlier text.
    """
    if record.kind == PROPOSAL:
        return str(record.fields.get("current_state") or "")
    versions = await pool.records.history(record.turn) if record.version > 1 else []
    for version in versions:
        if version.version.content != record.summary:
            return version.version.content
    return ""


async def review(
    desk: Desk, id_: str, decision: Decision, notes: str, conditions: Sequence[str]
) -> Record:
    """Decide on a copy or proposal that waits; only the first of several decisions counts.

    Raises:
        NotFound: The pool has no such record.
        InvalidRequest: This member is no reviewer, or is the proposer.
        StoreConflict: Another reviewer decided already.
    """
    desk.check_reviewer()
    async with desk.pool() as pool:
        shared = (await pool.records.pool.shared([id_])).get(id_)
        if shared is None or shared.state == "revoked":
            raise NotFound()
        if shared.member == desk.me.id:
            raise InvalidRequest("id", "is your own; another reviewer decides on it")
        [record] = await pool.records.get([id_])
        if record.kind == PROPOSAL:
            return await _review_proposal(desk, pool, record, shared, decision, notes, conditions)
        also = _apply_decision(desk, shared, decision, notes)
        status = "active" if decision == "approved" else None
        draft = RecordGiven(id=id_, status=status, fields={})
        return (await pool.records.by(desk.me.id, also).save([draft])).records[0].record


async def _review_proposal(
    desk: Desk,
    pool: Memory,
    record: Record,
    pool_record: PoolRecord,
    decision: Decision,
    notes: str,
    conditions: Sequence[str],
) -> Record:
    """Write a proposal's state, review, reviewer and notifications in one transaction."""
    done: dict[str, JSON] = {
        "review_decision": decision,
        "review_notes": notes,
        "reviewed_at": time.iso(desk.now()),
    }
    fields = {name.removeprefix("review_"): value for name, value in done.items()} | {
        "conditions": list(conditions)
    }
    draft = RecordGiven(
        id=record.id,
        fields={**done, "reviewed_by": desk.me.id},
        status="active" if decision == "approved" else None,
        relations=(RelationGiven("APPROVED_BY", agent_id(desk.squad, desk.me.id), fields),),
    )
    reviewed = pool.records.by(desk.me.id, is_system=True).saving(draft)
    by = pool.records.by(desk.me.id, reviewed, _apply_decision(desk, pool_record, decision, notes))
    await by.move(record.id, decision, expected="pending_approval", why=notes)
    return (await pool.records.get([record.id]))[0]


def _apply_decision(desk: Desk, shared: PoolRecord, decision: Decision, notes: str) -> Also:
    """Return a hook that moves a copy through the gate and queues notifications.

    It runs in the decision's transaction. Of several simultaneous decisions one is written; the
    others raise StoreConflict.
    """

    def also(rows: RecordRows, saved: Sequence[Saved]) -> None:
        record = saved[0].record
        at = desk.now()
        is_noted = record.kind == PROPOSAL
        advance(rows, record.id, decision, desk.me.id, at, notes, is_noted=is_noted)
        due = [Delivery(shared.member, record.id, decision, at)]
        if decision == "approved":
            due += deliveries(desk.rules, record, shared.member, shared.confidence, at)
        rows.beside(lambda db: put_due(db, due))

    return also


async def _task(pool: Memory, id_: str, member: str) -> Record:
    [task] = await pool.records.get([id_])
    if task.kind != "Task":
        raise NotFound("task")
    if task.fields.get("assigned_to") != member:
        raise InvalidRequest("id", "is another member's task")
    return task


def lapsed(task: Record, now: datetime) -> bool:
    until = task.fields.get("lease_until")
    return not until or time.parse(str(until)) <= now
