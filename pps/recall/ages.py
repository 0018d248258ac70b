"""When things happened. World time only: when PPS learned of a thing says nothing about its age."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from pps.core.values import AnchorPassage, Episode, Fact, Turn
from pps.recall.ask import Ask, Item
from pps.recall.fetch import fetch


async def times_of(ask: Ask, items: Mapping[str, Item]) -> dict[str, datetime]:
    """Return id → event time of those that have one.

    A fact is as old as its latest supporting episode, else as its ``valid_at``; nodes and communities
    have no time of their own.
    """
    supports = {one: item.episodes[-1] for one, item in items.items() if isinstance(item, Fact) and item.episodes}
    episodes = await fetch(ask, "episodes", list(supports.values())) if supports else {}
    times = {one: _own_time(episodes.get(supports[one]) if one in supports else item) for one, item in items.items()}
    for one, item in items.items():
        if times[one] is None and isinstance(item, Fact):
            times[one] = item.valid_at
    return {one: at for one, at in times.items() if at is not None}


def age_d(ask: Ask, at: datetime) -> float:
    """Return how many days before the moment of the question something happened; 0 for the future."""
    return max(0.0, (ask.moment - at).total_seconds() / 86_400)


def _own_time(item: Item | None) -> datetime | None:
    if isinstance(item, Turn):
        return item.occurred_at
    if isinstance(item, (Episode, Fact)):
        return item.valid_at
    return item.modified_at if isinstance(item, AnchorPassage) else None
