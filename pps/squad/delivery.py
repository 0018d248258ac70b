"""Who hears of a record of the pool: at once, in batches, or everyone. A delivery is no record, so no loop begins."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta

from pps.config.squad_files import SquadRules
from pps.core import time
from pps.core.record_values import Record
from pps.journal.pool_rows import Delivery

_EPOCH = datetime(2000, 1, 1, tzinfo=time.UTC)
BROADCAST = "broadcast"


def deliveries(
    rules: SquadRules, record: Record, author: str, confidence: float, at: datetime
) -> Iterator[Delivery]:
    """Yield who hears of a record that is written into the pool, and from when on; never its own author.

    Args:
        rules: The squad's.
        record: As it is now.
        author: Whose copy it is.
        confidence: Of its roots together.
        at: Now.
    """
    domain = record.fields.get("domain")
    domains = {domain} if isinstance(domain, str) else set[str]()
    more = record.fields.get("domains")
    domains |= {str(one) for one in more} if isinstance(more, list | tuple) else set[str]()
    for one in rules.subscriptions:
        if (
            one.to != author
            and one.source in ("", author)
            and (not one.kinds or record.kind in one.kinds)
            and (not one.domains or domains & set(one.domains))
            and confidence >= one.min_confidence
        ):
            yield Delivery(one.to, record.id, one.tier, due_at(at, one.interval))
    for rule in rules.broadcast.rules:
        if (
            (not rule.kinds or record.kind in rule.kinds)
            and rule.source in ("", author)
            and (not rule.states or record.state in rule.states)
        ):
            for member in rules.members:
                if member != author:
                    yield Delivery(
                        member, record.id, BROADCAST, due_at(at, rules.broadcast.interval)
                    )


def due_at(at: datetime, interval: timedelta) -> datetime:
    """Return when a batch of an interval ends that holds a moment; without an interval, that moment."""
    if not interval:
        return at
    return _EPOCH + ((at - _EPOCH) // interval + 1) * interval
