"""What a squad does together: tasks, proposals that another approves, and what to look at now."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Annotated, Literal

from pydantic import Field, StringConstraints

from pps.core.record_values import Record
from pps.core.values import JSON
from pps.features.squad import knowing, working
from pps.features.squad.desk import Desk
from pps.features.squad.heartbeat import HeartbeatItem
from pps.features.squad.heartbeat import heartbeat as look
from pps.features.squad.naming import identify, identify_task
from pps.features.squad.pool_queries import POOL_QUERIES, Stage, ask_pool
from pps.features.squad.squad_tools import KnownRecordView, Share, known
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
class HeartbeatView:
    """What to look at now, what matters most first; how the squad's tasks of the last week went."""

    items: tuple[HeartbeatItem, ...]
    health: tuple[Stage, ...]
    minimum: str = ""


def _task(record: Record) -> SquadTaskView:
    names = ("assigned_to", "requested_by", "outcome", "lease_until")
    lines = [str(record.fields.get(name) or "") for name in names]
    return SquadTaskView(
        record.id, record.title, record.summary, str(record.fields["type"]), record.state, *lines
    )


def _told(task: SquadTaskView) -> str:
    ended = f", {task.outcome}" if task.outcome else ""
    return f"{task.id} {task.type} task of {task.assigned_to} ({task.state}{ended}): {task.title}"


def _proposal(record: Record) -> ProposalView:
    return ProposalView(record.id, record.title, record.state, record.author)


def _state(proposal: ProposalView) -> str:
    return f"{proposal.id} of {proposal.author} is {proposal.state or 'decided'}: {proposal.title}"


def _pending(pending: Sequence[PendingView]) -> str:
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


def _beat(value: HeartbeatView) -> str:
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


@SQUAD.operation("Give a task", _told, ADDS)
async def squad_task_give(desk: Desk, request: TaskInput) -> SquadTaskView:
    """Use it to give a member of your squad a task.

    It appears in the member's inbox at once.
    """
    fields = {"type": request.type, "priority": request.priority}
    return _task(
        await working.give(
            desk, request.to, RecordGiven("Task", request.title, request.description, fields=fields)
        )
    )


@SQUAD.operation("Take a task", _told, SETS)
async def squad_task_take(desk: Desk, request: TaskIdInput) -> SquadTaskView:
    """Use it when you begin a task that was given to you.

    You hold it for an hour; after that it may be taken again.
    """
    return _task(await working.take(desk, await identify_task(desk, request.id)))


@SQUAD.operation("End a task", _told, SETS)
async def squad_task_done(desk: Desk, request: TaskDoneInput) -> SquadTaskView:
    """Use it when a task that you hold is done: give its outcome and the quality of the result.

    The member who gave it is notified. With outcome 'blocked' the task does not end: it waits until
    you take it again or its giver cancels it.
    """
    id_ = await identify_task(desk, request.id)
    if request.outcome == "blocked":
        return _task(await working.block(desk, id_, request.notes))
    return _task(await working.finish(desk, id_, request.outcome, request.quality, request.notes))


@SQUAD.operation("Cancel a task", _told, SETS)
async def squad_task_cancel(desk: Desk, request: TaskCancelInput) -> SquadTaskView:
    """Use it to cancel a task that you gave and that has not ended.

    The member who has it is notified. Returns the task.
    """
    return _task(await working.cancel(desk, await identify_task(desk, request.id), request.notes))


@SQUAD.operation("Submit a proposal", _state, SETS)
async def proposal_submit(desk: Desk, request: SubmitInput) -> ProposalView:
    """Use it to submit a WorkflowImprovement of yours to the reviewers.

    After approval the same call moves it on: to implementing, measuring, complete. To revise a
    proposal, change it with {record_save} and submit it again.
    """
    [id_] = await identify(desk, [request.id], "own", "pool", path="id")
    return _proposal(await working.submit(desk, id_, request.to, request.notes))


@SQUAD.operation("List pending proposals", _pending, READS, items="pending")
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


@SQUAD.operation("Review a proposal", _state, SETS)
async def proposal_review(desk: Desk, request: ReviewInput) -> ProposalView:
    """Use it as a reviewer to approve, reject or return another member's proposal.

    Only the first of several reviews counts. The author is notified; an approval is also sent to
    the members it concerns. Who decided, when and why is kept.
    """
    [id_] = await identify(desk, [request.id], "pool", path="id")
    return _proposal(
        await working.review(desk, id_, request.decision, request.notes, request.conditions)
    )


@SQUAD.operation("Show what needs attention", _beat, SETS)
async def heartbeat(desk: Desk, _: Nothing) -> HeartbeatView:
    """Use it from time to time.

    Returns what needs attention: late approvals, tasks, records of others that you have not seen,
    concepts that were challenged in use, beliefs that are unsure or lost their support, and the
    state of the squad's tasks.
    """
    items, health = await look(desk)
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
