"""Who hears of a record of the pool: at once, in batches, or everyone.

A delivery is no record, so no loop begins.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from pps.config.squad_files import SquadRules
from pps.core import time
from pps.core.record_values import Record
from pps.journal.pool_rows import Delivery

_EPOCH = datetime(2000, 1, 1, tzinfo=time.UTC)
BROADCAST = "broadcast"


def deliveries(
    rules: SquadRules, record: Record, author: str, confidence: float, at: datetime
) -> list[Delivery]:
    """Return who hears of a record that is written into the pool, and from when on.

    Never its own author.

    A member that several subscriptions and broadcasts reach hears of it once, at the earliest of
    their times. Domains compare without regard to case.

    Args:
        rules: The squad's.
        record: As it is now.
        author: Whose copy it is.
        confidence: The record's.
        at: Now.
    """
    domains = _domains(record)
    due = [
        Delivery(subscription.to, record.id, subscription.tier, due_at(at, subscription.interval))
        for subscription in rules.subscriptions
        if subscription.to != author
        and subscription.source in ("", author)
        and (not subscription.kinds or record.kind in subscription.kinds)
        and (
            not subscription.domains
            or domains & {domain.strip().casefold() for domain in subscription.domains}
        )
        and confidence >= subscription.min_confidence
    ]
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
    """Return a record's domains as they are compared: in lower case, without space around."""
    single = record.fields.get("domain")
    several = record.fields.get("domains")
    domains = [single] if isinstance(single, str) else []
    domains += [str(domain) for domain in several] if isinstance(several, list | tuple) else []
    return {domain.strip().casefold() for domain in domains}


def due_at(at: datetime, interval: timedelta) -> datetime:
    """Return when a batch of an interval ends that holds a moment.

    Without an interval, that moment.
    """
    if not interval:
        return at
    return _EPOCH + ((at - _EPOCH) // interval + 1) * interval
