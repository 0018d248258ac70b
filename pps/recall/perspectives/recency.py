"""Recency: what happened later comes first."""

from __future__ import annotations

from collections.abc import Mapping

from pps.core.values import ChannelName
from pps.recall.ages import age_d, times_of
from pps.recall.query import Ask, Candidate, Scored

WINDOW_D = 28.0
"""Days over which the signal falls from 1 to 0 in a straight line."""


async def weigh(ask: Ask, channel: ChannelName, items: Mapping[str, Candidate]) -> list[Scored]:
    """Return the dated candidates, latest first."""
    times = await times_of(ask, items)
    ages = {one: age_d(ask, at) for one, at in times.items()}
    return [Scored(one, -ages[one], max(0.0, 1 - ages[one] / WINDOW_D)) for one in sorted(ages, key=ages.__getitem__)]
