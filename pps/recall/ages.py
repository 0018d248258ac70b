"""When things happened. World time only: when PPS learned of a thing says nothing about its age."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from pps.core.values import AnchorPassage, Episode, Turn
from pps.journal.links import FactOutline, NodeOutline
from pps.recall.fetch import fetch, supported
from pps.recall.query import Ask, Candidate, Item


async def times_of(ask: Ask, items: Mapping[str, Candidate]) -> dict[str, datetime]:
    """Return id → event time of those that have one.

    A fact is as old as its latest supporting episode, else as its ``valid_at``; a record as its text, another node as
    the latest turn that speaks of it.
    """
    facts = {one: item for one, item in items.items() if isinstance(item, FactOutline)}
    supports = await supported(ask, facts) if facts else {}
    times = {one: supports[one].said_at if one in supports else _own_time(item) for one, item in items.items()}
    if nodes := [one for one, item in items.items() if isinstance(item, NodeOutline)]:
        times.update(await ask.sources.journal.records.times(nodes))
    # Some are supported by what only the graph knows, such as an episode that was added through Graphiti itself.
    untold = {one: supports[one].episodes for one in facts if times[one] is None}
    episodes = await fetch(ask, "episodes", [one for some in untold.values() for one in some]) if untold else {}
    for one, some in untold.items():
        ages = [at for episode in some if (at := _own_time(episodes.get(episode)))]
        times[one] = max(ages, default=facts[one].valid_at)
    return {one: at for one, at in times.items() if at is not None}


def age_d(ask: Ask, at: datetime) -> float:
    """Return how many days before the moment of the question something happened; 0 for the future."""
    return max(0.0, (ask.moment - at).total_seconds() / 86_400)


def _own_time(item: Item | Candidate | None) -> datetime | None:
    if isinstance(item, Turn):
        return item.occurred_at
    if isinstance(item, Episode):
        return item.valid_at
    return item.modified_at if isinstance(item, AnchorPassage) else None
