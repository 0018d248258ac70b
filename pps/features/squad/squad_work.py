"""What a squad does together: tasks, proposals that another approves, and what to look at now."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Annotated, Literal

from pydantic import Field, StringConstraints

from pps.core.record_values import Record, RecordGraph, RecordQuery
from pps.core.values import JSON
from pps.features.squad import knowing, working
from pps.features.squad.desk import Desk, identify, identify_task
from pps.features.squad.openclaw_files import CHECKLIST
from pps.features.squad.pool_queries import (
    HEALTH,
    POOL_QUERIES,
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
from pps.features.squad.squad_members import beat
from pps.features.squad.squad_tools import KnownRecordView, Share, known
from pps.features.squad.working import lapsed, pending
from pps.ingest.given_input import Name
from pps.operations.inputs import Input, Label, Labels, Nothing
from pps.operations.record_asks import (
    RecordAnswer,
    RecordAskInput,
    answer_words,
    listed,
    ranking_words,
)
from pps.operations.table import ADDS, READS, SETS, SQUAD
from pps.records.ranks import Ranking, RankRequest
from pps.records.saving import RecordGiven

_LATE = timedelta(hours=1)
_STALE = timedelta(hours=48)
_PRIORITIES = {"critical": 1.0, "high": 0.8, "normal": 0.6, "low": 0.4}

Note = Annotated[str, StringConstraints(max_length=2_000)]


class TaskInput(Input):
    """A task to give."""

    to: Label = Field(description="Id or alias of the member.")
    title: Annotated[str, StringConstraints(min_length=1, max_length=160)] = Field(
        description="What to do, in one line."
    )
    description: Annotated[str, StringConstraints(min_length=1, max_length=2_000)] = Field(
        description="Full description."
    )
    type: Literal["research", "writing", "application", "orchestration", "analysis", "ops"] = Field(
        description="Kind of work."
    )
    priority: Literal["critical", "high", "normal", "low"] = Field(
        default="normal", description="Priority."
    )


class TaskIdInput(Input):
    """A task."""

    id: Name = Field(description="Id or title of a task that was given to you.")


class TaskDoneInput(TaskIdInput):
    """How a task ended."""

    outcome: Literal["success", "partial", "failed", "blocked"] = Field(
        description="Outcome. 'blocked': the task cannot go on now and is taken again later."
    )
    quality: Share | None = Field(default=None, description="Quality of the result, 0 to 1.")
    notes: Note = Field(default="", description="Result.")


class TaskCancelInput(TaskIdInput):
    """A task that is not wanted any more."""

    id: Name = Field(description="Id or title of a task that you gave.")
    notes: Note = Field(default="", description="Reason.")


class SubmitInput(Input):
    """A proposal, and where it goes."""

    id: Name = Field(
        description="Id or title of a WorkflowImprovement of yours, or of its copy in the pool."
    )
    to: working.Step = Field(
        default="pending_approval",
        description="'pending_approval'. After approval: implementing, measuring, complete.",
    )
    notes: Note = Field(default="", description="Reason, or what was measured.")


class SquadRankInput(Input):
    """What to rank the pool by."""

    algorithm: Literal["pagerank", "communities", "betweenness"] = Field(
        description=(
            "'pagerank' for what much leads to, 'betweenness' for what joins the rest, "
            "'communities'."
        )
    )
    kinds: Labels = Field(default=(), description="Only these types, such as Concept.")
    limit: int = Field(
        default=20,
        ge=1,
        le=200,
        description="Maximum records; maximum communities, and members of each.",
    )


class ReviewInput(Input):
    """A decision."""

    id: Name = Field(description="Id or title, from {proposal_pending}.")
    decision: working.Decision = Field(
        description="Decision. 'needs_revision' returns the proposal to its author."
    )
    notes: Note = Field(default="", description="Reason.")
    conditions: tuple[Annotated[str, StringConstraints(max_length=500)], ...] = Field(
        default=(), max_length=20, description="Conditions of the approval."
    )


@dataclass(frozen=True, slots=True)
class SquadTaskView:
    """A task of the squad."""

    id: str
    title: str
    description: str
    type: str
    state: str
    assigned_to: str
    requested_by: str
    outcome: str = ""
    lease_until: str = ""


@dataclass(frozen=True, slots=True)
class ProposalView:
    """A proposal, or a copy that waits; ``state`` is empty for what is none."""

    id: str
    title: str
    state: str
    author: str


@dataclass(frozen=True, slots=True)
class PendingView:
    """What waits for a reviewer, since when, what it rests on.

    ``stands`` is what ``proposed`` would replace.
    """

    record: KnownRecordView
    proposer: str
    since: datetime
    backing: tuple[KnownRecordView, ...]
    proposed: str = ""
    stands: str = ""
    fields: Mapping[str, JSON] = field(default_factory=dict[str, JSON])


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


@dataclass(frozen=True, slots=True)
class HeartbeatView:
    """What to look at now, what matters most first; how the squad's tasks of the last week went."""

    items: tuple[HeartbeatItem, ...]
    health: tuple[Stage, ...]
    minimum: str = ""


def _task_view(record: Record) -> SquadTaskView:
    names = ("assigned_to", "requested_by", "outcome", "lease_until")
    lines = [str(record.fields.get(name) or "") for name in names]
    return SquadTaskView(
        record.id, record.title, record.summary, str(record.fields["type"]), record.state, *lines
    )


def _task_text(task: SquadTaskView) -> str:
    ended = f", {task.outcome}" if task.outcome else ""
    return f"{task.id} {task.type} task of {task.assigned_to} ({task.state}{ended}): {task.title}"


def _proposal_view(record: Record) -> ProposalView:
    return ProposalView(record.id, record.title, record.state, record.author)


def _proposal_text(proposal: ProposalView) -> str:
    return f"{proposal.id} of {proposal.author} is {proposal.state or 'decided'}: {proposal.title}"


def _pending_text(pending: Sequence[PendingView]) -> str:
    lines: list[str] = []
    for review in pending:
        head = (
            f"{review.record.id} {review.record.type} of {review.proposer}, since "
            f"{review.since:%Y-%m-%d %H:%M}"
        )
        lines.append(f"{head}: {review.record.title}: {review.record.content}")
        lines += (
            [f"  in place of: {review.stands}", f"  proposed: {review.proposed}"]
            if review.stands
            else []
        )
        lines += [f"  rests on {back.type} {back.title}: {back.content}" for back in review.backing]
    return "\n".join(lines) or "Nothing waits."


def _heartbeat_text(value: HeartbeatView) -> str:
    lines = [
        f"{item.priority:.1f} {item.what}: {item.text}{f' (id {item.id})' if item.id else ''}"
        for item in value.items
    ]
    for stage in value.health:
        rate = "none ended" if stage.success_rate is None else f"{stage.success_rate:.0%} succeeded"
        lines.append(f"{stage.type}: {stage.total} tasks this week, {rate}")
    return (
        "\n".join([*lines, *([f"Your minimum: {value.minimum}"] if value.minimum else [])])
        or "Nothing to look at."
    )


@SQUAD.operation("Give a task", _task_text, ADDS)
async def squad_task_give(desk: Desk, request: TaskInput) -> SquadTaskView:
    """Use it to give a member of your squad a task.

    It appears in the member's inbox at once.
    """
    fields = {"type": request.type, "priority": request.priority}
    return _task_view(
        await working.give(
            desk, request.to, RecordGiven("Task", request.title, request.description, fields=fields)
        )
    )


@SQUAD.operation("Take a task", _task_text, SETS)
async def squad_task_take(desk: Desk, request: TaskIdInput) -> SquadTaskView:
    """Use it when you begin a task that was given to you.

    You hold it for an hour; after that it may be taken again.
    """
    return _task_view(await working.take(desk, await identify_task(desk, request.id)))


@SQUAD.operation("End a task", _task_text, SETS)
async def squad_task_done(desk: Desk, request: TaskDoneInput) -> SquadTaskView:
    """Use it when a task that you hold is done: give its outcome and the quality of the result.

    The member who gave it is notified. With outcome 'blocked' the task does not end: it waits until
    you take it again or its giver cancels it.
    """
    id_ = await identify_task(desk, request.id)
    if request.outcome == "blocked":
        return _task_view(await working.block(desk, id_, request.notes))
    return _task_view(
        await working.finish(desk, id_, request.outcome, request.quality, request.notes)
    )


@SQUAD.operation("Cancel a task", _task_text, SETS)
async def squad_task_cancel(desk: Desk, request: TaskCancelInput) -> SquadTaskView:
    """Use it to cancel a task that you gave and that has not ended.

    The member who has it is notified. Returns the task.
    """
    return _task_view(
        await working.cancel(desk, await identify_task(desk, request.id), request.notes)
    )


@SQUAD.operation("Submit a proposal", _proposal_text, SETS)
async def proposal_submit(desk: Desk, request: SubmitInput) -> ProposalView:
    """Use it to submit a WorkflowImprovement of yours to the reviewers.

    After approval the same call moves it on: to implementing, measuring, complete. To revise a
    proposal, change it with {record_save} and submit it again.
    """
    [id_] = await identify(desk, [request.id], "own", "pool", path="id")
    return _proposal_view(await working.submit(desk, id_, request.to, request.notes))


@SQUAD.operation("List pending proposals", _pending_text, READS, items="pending")
async def proposal_pending(desk: Desk, _: Nothing) -> tuple[PendingView, ...]:
    """Use it to list the proposals that wait for a reviewer, oldest first, with their analyses."""
    pendings = [
        PendingView(
            known(review.record),
            review.proposer,
            review.since,
            tuple(map(known, review.backing)),
            str(review.record.fields.get("proposed_state") or review.record.summary),
            review.stands,
            review.record.fields,
        )
        for review in await working.pending(desk)
    ]
    return tuple(pendings)


@SQUAD.operation("Review a proposal", _proposal_text, SETS)
async def proposal_review(desk: Desk, request: ReviewInput) -> ProposalView:
    """Use it as a reviewer to approve, reject or return another member's proposal.

    Only the first of several reviews counts. The author is notified; an approval is also sent to
    the members it concerns. Who decided, when and why is kept.
    """
    [id_] = await identify(desk, [request.id], "pool", path="id")
    return _proposal_view(
        await working.review(desk, id_, request.decision, request.notes, request.conditions)
    )


@SQUAD.operation("Show what needs attention", _heartbeat_text, SETS)
async def heartbeat(desk: Desk, _: Nothing) -> HeartbeatView:
    """Use it from time to time.

    Returns what needs attention: late approvals, tasks, records of others that you have not seen,
    concepts that were challenged in use, beliefs that are unsure or lost their support, and the
    state of the squad's tasks.
    """
    items, health = await needs_attention(desk)
    return HeartbeatView(tuple(items), tuple(health), desk.my_rules.minimum)


@SQUAD.operation("Ask the pool a named query", answer_words, READS)
async def squad_ask(desk: Desk, request: RecordAskInput) -> RecordAnswer:
    """Use it for a named query over the pool.

    There are queries for unseen knowledge, concepts to synthesise and the state of tasks. Without
    {query} it lists the queries and their parameters. Returns records, each with a sentence and
    figures.
    """
    if not request.query:
        return listed(POOL_QUERIES)
    async with desk.pool() as pool:
        answer = await ask_pool(desk, pool, request.query, request.parameters)
    return RecordAnswer(answer.query, answer.said, answer.total, answer.found)


@SQUAD.operation("Rank what is shared", ranking_words, READS)
async def squad_rank(desk: Desk, request: SquadRankInput) -> Ranking:
    """Use it to rank records of the pool by their relations.

    It finds central records, connecting ones, or communities.
    """
    return await knowing.ranked(
        desk, RankRequest(request.algorithm, kinds=request.kinds, limit=request.limit)
    )


async def needs_attention(desk: Desk) -> tuple[list[HeartbeatItem], list[Stage]]:
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
