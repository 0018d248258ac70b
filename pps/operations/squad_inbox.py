"""A member's inbox: what subscriptions, tasks and broadcasts brought, until it is acknowledged."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Annotated

from pydantic import Field

from pps.operations.inputs import Input
from pps.operations.squad_tools import Known, of_pool, said
from pps.operations.table import READS, SETS, operation
from pps.squad.agents import saw
from pps.squad.desk import Desk


class InboxInput(Input):
    """How much of the inbox."""

    limit: int = Field(default=50, ge=1, le=200, description="Most deliveries.")


class AckInput(Input):
    """What was looked at."""

    seqs: Annotated[tuple[int, ...], Field(min_length=1, max_length=500)] = Field(
        description="The numbers of deliveries, as squad_inbox gives them."
    )


@dataclass(frozen=True, slots=True)
class DeliveryView:
    """Something to look at; acknowledge its ``seq``."""

    seq: int
    why: str
    due_at: datetime
    record: Known


@dataclass(frozen=True, slots=True)
class Inbox:
    """What subscriptions, tasks and broadcasts brought and was not acknowledged."""

    deliveries: tuple[DeliveryView, ...]


@dataclass(frozen=True, slots=True)
class Acknowledged:
    """How many deliveries are not shown again."""

    acknowledged: int


def _inbox(value: Inbox) -> str:
    return "\n".join(f"{one.seq} ({one.why}) {said(one.record)}" for one in value.deliveries) or "Nothing new."


@operation("Look into the inbox", _inbox, READS, audience="member", toolset="squad")
async def squad_inbox(desk: Desk, given: InboxInput) -> Inbox:
    """Use it when you begin and now and then: what subscriptions, tasks and broadcasts brought you, the oldest first.

    Each comes again until squad_ack says that you have seen it.
    """
    async with desk.pool() as pool:
        rows = pool.records.pool
        due = await rows.due(desk.me.id, desk.now(), given.limit)
        ids = [one.record for one in due]
        records, shared = await pool.records.find(ids), await rows.shared(ids)
    found = [
        DeliveryView(one.seq, one.why, one.due_at, of_pool(records[one.record], shared))
        for one in due
        if one.record in records
    ]
    return Inbox(tuple(found))


@operation("Acknowledge", lambda one: f"{one.acknowledged} acknowledged.", SETS, audience="member", toolset="squad")
async def squad_ack(desk: Desk, given: AckInput) -> Acknowledged:
    """Use it when you have looked at deliveries of squad_inbox: they are not shown again, and count as seen by you."""
    async with desk.pool() as pool:
        seen = await pool.records.pool.acknowledge(desk.me.id, given.seqs)
        await saw(desk, pool, seen)
    return Acknowledged(len(seen))


SQUAD_INBOX = (squad_inbox, squad_ack)
