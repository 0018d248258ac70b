"""Time beyond age: the hour of the week, and what stands before and after in a session. They only put in order."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta

from pps.core.values import ChannelName, Turn
from pps.recall.hits import times_of
from pps.recall.perspectives import weighs
from pps.recall.query import Ask, Candidate, Scored

_WEEK = timedelta(days=7)


@weighs
async def period(ask: Ask, channel: ChannelName, items: Mapping[str, Candidate]) -> list[Scored]:
    """Period: what happened at the same hour of the week (UTC) as the question comes first.

    The signal falls in a straight line from 1 at the same hour to 0 half a week away.
    """
    signals: dict[str, float] = {}
    for one, at in (await times_of(ask, items)).items():
        apart = (ask.moment - at) % _WEEK
        signals[one] = 1 - min(apart, _WEEK - apart) / (_WEEK / 2)
    return [
        Scored(one, signals[one], signals[one])
        for one in sorted(signals, key=lambda one: -signals[one])
    ]


@weighs
async def sequence(ask: Ask, channel: ChannelName, items: Mapping[str, Candidate]) -> list[Scored]:
    """Sequence: turns that stand before and after the best hit in its session, the nearest first.

    The signal is 1 / (1 + how many places of the journal lie between); nothing where the best hit is no turn.
    """
    best = next(iter(items.values()), None)
    if not isinstance(best, Turn):
        return []
    apart = {
        one: abs(item.seq - best.seq)
        for one, item in items.items()
        if isinstance(item, Turn) and item.session == best.session
    }
    return [
        Scored(one, -float(apart[one]), 1 / (1 + apart[one]))
        for one in sorted(apart, key=apart.__getitem__)
    ]
