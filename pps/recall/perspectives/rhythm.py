"""What time says of candidates beyond their age: the hour of the week, and what came before and after in a session."""

from __future__ import annotations

import math
from collections.abc import Mapping

from pps.core.values import ChannelName, Turn
from pps.recall.hits import times_of
from pps.recall.perspectives import weighs
from pps.recall.query import Ask, Candidate, Scored

_HOURS = 24.0
_OTHER_DAY = 0.5
"""What the same hour counts on another day of the week."""


@weighs
async def period(ask: Ask, channel: ChannelName, items: Mapping[str, Candidate]) -> list[Scored]:
    """Period: what happened at this hour of the week comes first.

    The signal is ``(1 + cos) / 2`` of the angle between the hours of the day, halved on another day of the week.
    """
    found: dict[str, float] = {}
    for one, at in (await times_of(ask, items)).items():
        hours = (at.hour + at.minute / 60) - (ask.moment.hour + ask.moment.minute / 60)
        same = (1 + math.cos(2 * math.pi * hours / _HOURS)) / 2
        found[one] = same if at.weekday() == ask.moment.weekday() else same * _OTHER_DAY
    return [Scored(one, found[one], found[one]) for one in sorted(found, key=lambda one: -found[one])]


@weighs
async def sequence(ask: Ask, channel: ChannelName, items: Mapping[str, Candidate]) -> list[Scored]:
    """Sequence: turns just before and after the best candidate, in its session, come first; signal 1 / (1 + steps)."""
    turns = [item for item in items.values() if isinstance(item, Turn)]
    if not turns or not turns[0].session:
        return []
    best = turns[0]
    steps = {one.uuid: abs(one.seq - best.seq) for one in turns if one.session == best.session}
    return [Scored(one, -float(steps[one]), 1 / (1 + steps[one])) for one in sorted(steps, key=steps.__getitem__)]
