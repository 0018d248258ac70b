"""A member's inbox, records in full, and the list of the pool's records."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated

from pydantic import Field

from pps.core.record_values import Transition
from pps.core.text import counted
from pps.core.values import JSON
from pps.features.squad import knowing
from pps.features.squad.desk import Desk, identify
from pps.features.squad.knowing import ReadableRelation
from pps.features.squad.pool_queries import shown
from pps.features.squad.squad_members import agent_id, saw
from pps.features.squad.squad_tools import KnownRecordView, line_view, of_pool, said
from pps.operations.inputs import Input, Labels, Names
from pps.operations.item_views import value_text
from pps.operations.table import READS, SETS, SQUAD


class InboxInput(Input):
    """How much of the inbox."""

    limit: int = Field(default=50, ge=1, le=200, description="Maximum deliveries.")


class InboxRecordsInput(Input):
    """Which records."""

    ids: Names = Field(description="Ids or titles of your own records or of the pool's.")


class AckInput(Input):
    """What was looked at."""

    seqs: Annotated[tuple[int, ...], Field(min_length=1, max_length=500)] = Field(
        description="The numbers of deliveries, as {squad_inbox} gives them."
    )


class PoolInput(Input):
    """Which part of the pool."""

    kinds: Labels = Field(default=(), description="Only these types, such as Belief.")
    limit: int = Field(default=50, ge=1, le=200, description="Maximum records.")
    offset: int = Field(
        default=0, ge=0, le=1_000_000, description="Number of latest records to skip."
    )


@dataclass(frozen=True, slots=True)
class MemberStatusView:
    """A member; ``activity`` and ``last_active`` are as its last heartbeat said."""

    id: str
    title: str
    role: str
    reviews: bool
    activity: str = ""
    last_active: str = ""


@dataclass(frozen=True, slots=True)
class PoolView:
    """What is shared, the latest first, how many there are of each type, and the members.

    You are ``me``.
    """

    squad: str
    me: str
    members: tuple[MemberStatusView, ...]
    shared: tuple[KnownRecordView, ...]
    total: int
    by_type: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class DeliveryView:
    """Something to look at; acknowledge its ``seq``.

    ``notes`` is the reason of a decision or move.
    """

    seq: int
    why: str
    due_at: datetime
    record: KnownRecordView
    notes: str = ""


@dataclass(frozen=True, slots=True)
class Acknowledged:
    """How many deliveries are not shown again."""

    acknowledged: int


def _inbox_text(deliveries: Sequence[DeliveryView]) -> str:
    return (
        "\n".join(
            f"{delivery.seq} ({delivery.why}{f': {delivery.notes}' if delivery.notes else ''}) "
            f"{said(delivery.record)}"
            for delivery in deliveries
        )
        or "Nothing new."
    )


@dataclass(frozen=True, slots=True)
class WholeRecord:
    """A record with the fields of its type, and the sources and relations that you may read."""

    record: KnownRecordView
    fields: Mapping[str, JSON]
    cites: tuple[str, ...]
    relations: tuple[ReadableRelation, ...]


def _records_text(records: Sequence[WholeRecord]) -> str:
    texts: list[str] = []
    for record in records:
        lines = [said(record.record)]
        lines += [f"  {name}: {value_text(field)}" for name, field in record.fields.items()]
        lines += [f"  rests on {id_}" for id_ in record.cites]
        lines += [f"  {edge.source} {edge.type} {edge.target}" for edge in record.relations]
        texts.append("\n".join(lines))
    return "\n\n".join(texts)


@SQUAD.operation("Read records whole", _records_text, SETS, items="records")
async def squad_get(desk: Desk, request: InboxRecordsInput) -> tuple[WholeRecord, ...]:
    """Use it to read records that {memory_query}, {squad_inbox} or {heartbeat} named.

    Returns each with the fields of its type (findings, steps, lessons, …), what it rests on and its
    relations. The squad notes which records of the pool you saw.
    """
    lines = await knowing.whole(desk, await identify(desk, request.ids, "own", "pool"))
    return tuple(
        WholeRecord(line_view(line.line), line.line.record.fields, line.cites, line.joined)
        for line in lines
    )


@SQUAD.operation("Read the inbox", _inbox_text, READS, items="deliveries")
async def squad_inbox(desk: Desk, request: InboxInput) -> tuple[DeliveryView, ...]:
    """Use it when you begin and from time to time.

    Returns deliveries of subscriptions, tasks and broadcasts, oldest first. Each is returned again
    until you acknowledge it with {squad_ack}.
    """
    async with desk.pool() as pool:
        rows = pool.records.pool
        due = await rows.due(desk.me.id, desk.now(), request.limit)
        ids = [delivery.record for delivery in due]
        records = await pool.records.find(ids)
        shared = await rows.shared(ids)
        moves = await pool.records.moves(ids)
    return tuple(
        DeliveryView(
            delivery.seq,
            delivery.why,
            delivery.due_at,
            of_pool(records[delivery.record], shared),
            _reason(delivery.why, moves.get(delivery.record, ())),
        )
        for delivery in due
        if delivery.record in records
    )


def _reason(why: str, moves: Sequence[Transition]) -> str:
    """Return the reason of the move that a delivery tells of; empty when it tells of none."""
    word = why.rsplit(maxsplit=1)[-1]
    return next((move.why for move in reversed(moves) if move.after == word), "")


@SQUAD.operation(
    "Acknowledge deliveries",
    lambda acknowledged: f"{acknowledged.acknowledged} acknowledged.",
    SETS,
)
async def squad_ack(desk: Desk, request: AckInput) -> Acknowledged:
    """Use it after you have read deliveries of {squad_inbox}.

    They are not returned again, and count as seen by you.
    """
    async with desk.pool() as pool:
        seen = await pool.records.pool.acknowledge(desk.me.id, request.seqs)
        await saw(desk, pool, seen)
    return Acknowledged(len(seen))


def _pool_text(value: PoolView) -> str:
    lines = [
        f"{value.squad}: {', '.join(member.id for member in value.members)}; you are {value.me}",
        *map(said, value.shared),
    ]
    return "\n".join([*lines, f"{len(value.shared)} of {counted(value.total, 'record')}."])


@SQUAD.operation("List what is shared", _pool_text, READS)
async def squad_pool(desk: Desk, request: PoolInput) -> PoolView:
    """Use it to list the pool without a question, latest first.

    The records do not count as seen by you. Returns a page of shared records, the number of each
    type, and the squad's members.
    """
    async with desk.pool() as pool:
        graph = await shown(pool)
        shared = await pool.records.pool.shared()
        kinds = {pool.kinds.kind(name).name for name in request.kinds}
    records = [record for record in graph.records.values() if record.id in shared]
    wanted = [record for record in records if not kinds or record.kind in kinds]
    wanted.sort(key=lambda record: (shared[record.id].at, record.id), reverse=True)
    page = tuple(
        of_pool(record, shared)
        for record in wanted[request.offset : request.offset + request.limit]
    )
    reviewers = {desk.rules.aliases[name] for name in desk.rules.pool.reviewers}
    members: list[MemberStatusView] = []
    for id_, rules in desk.rules.members.items():
        agent = graph.records.get(agent_id(desk.squad, id_))
        beat = (
            [str(agent.fields.get(name) or "") for name in ("activity", "last_active")]
            if agent
            else []
        )
        if id_ in desk.squad.members:
            members.append(
                MemberStatusView(id_, rules.title or id_, rules.role, id_ in reviewers, *beat)
            )
    counts = dict(Counter(record.kind for record in records))
    return PoolView(desk.squad.name, desk.me.id, tuple(members), page, len(wanted), counts)
