"""The gate of a pool: transitions of its copies, and which members are notified of one.

A copy waits, is shared, rejected or withdrawn. Shares and improvements go through the same
transitions, decided by compare-and-set in the transaction that writes their effect, and noted in
the same history (``Records.transitions``). Members are notified at once or in batches. A delivery
is not a record, so it causes no further deliveries.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Literal, TypeAlias

from pps.config.squad_files import SquadRules
from pps.core import time
from pps.core.errors import StoreConflict
from pps.core.record_values import Record, Transition
from pps.journal.pool_rows import Delivery, SharedState, set_state
from pps.journal.record_rows import RecordRows

Action: TypeAlias = Literal[
    "approved", "rejected", "needs_revision", "revised", "withdrawn", "reinstated"
]

TRANSITIONS: Mapping[Action, tuple[SharedState, SharedState]] = {
    "approved": ("waiting", "shared"),
    "rejected": ("waiting", "rejected"),
    "needs_revision": ("waiting", "needs_revision"),
    "revised": ("needs_revision", "waiting"),
    "withdrawn": ("shared", "withdrawn"),
    "reinstated": ("withdrawn", "shared"),
}
"""Action → the state that a copy must be in, and the state that it gets."""

CLOSED: frozenset[SharedState] = frozenset(("rejected", "withdrawn"))
"""States of a copy that its author cannot change by sharing it again."""

_EPOCH = datetime(2000, 1, 1, tzinfo=time.UTC)
BROADCAST = "broadcast"


def advance(
    rows: RecordRows,
    record: str,
    action: Action,
    actor: str,
    at: datetime,
    why: str,
    *,
    is_noted: bool = False,
) -> None:
    """Move a copy through one transition and note it, in the transaction of ``rows``.

    Args:
        rows: The open transaction.
        record: Id of the copy.
        action: The transition.
        actor: The member who decides.
        at: Time of the decision.
        why: The reason.
        is_noted: The history has the move already, because the record has its own life cycle.

    Raises:
        StoreConflict: The copy is not in the state that the action starts from. Of several
            simultaneous decisions, all but one get this.
    """
    before, after = TRANSITIONS[action]
    if not rows.beside(lambda db: set_state(db, record, before, after)):
        raise StoreConflict(f"is not {before} any more: another decided meanwhile")
    if not is_noted:
        rows.note_move(Transition(record, before, action, actor, at, why))


def deliveries(
    rules: SquadRules, record: Record, author: str, confidence: float, at: datetime
) -> list[Delivery]:
    """Return the deliveries of a record that is written into the pool, never to its author.

    If several subscriptions and broadcasts reach a member, it gets one delivery at the earliest of
    their times. Domains are compared regardless of case.

    Args:
        rules: The squad's rules.
        record: The record as it is now.
        author: The member whose copy it is.
        confidence: The record's confidence, 0 to 1.
        at: The current time.
    """
    domains = _domains(record)
    due: list[Delivery] = []
    for subscription in rules.subscriptions:
        wanted_domains = {domain.strip().casefold() for domain in subscription.domains}
        if (
            subscription.to != author
            and subscription.source in ("", author)
            and (not subscription.kinds or record.kind in subscription.kinds)
            and (not wanted_domains or domains & wanted_domains)
            and confidence >= subscription.min_confidence
        ):
            send_at = due_at(at, subscription.interval)
            due.append(Delivery(subscription.to, record.id, subscription.tier, send_at))
    for rule in rules.broadcast.rules:
        if (
            (not rule.kinds or record.kind in rule.kinds)
            and rule.source in ("", author)
            and (not rule.states or record.state in rule.states)
        ):
            due += [
                Delivery(member, record.id, BROADCAST, due_at(at, rules.broadcast.interval))
                for member in rules.members
                if member != author
            ]
    earliest: dict[str, Delivery] = {}
    for delivery in due:
        known = earliest.get(delivery.member)
        if known is None or delivery.due_at < known.due_at:
            earliest[delivery.member] = delivery
    return list(earliest.values())


def _domains(record: Record) -> set[str]:
    """Return a record's domains in the form that is compared: folded and stripped."""
    single = record.fields.get("domain")
    several = record.fields.get("domains")
    domains = [single] if isinstance(single, str) else []
    domains += [str(domain) for domain in several] if isinstance(several, list | tuple) else []
    return {domain.strip().casefold() for domain in domains}


def due_at(at: datetime, interval: timedelta) -> datetime:
    """Return the end of the batch interval that contains ``at``, or ``at`` without an interval."""
    if not interval:
        return at
    return _EPOCH + ((at - _EPOCH) // interval + 1) * interval
