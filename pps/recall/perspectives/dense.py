"""Dense: nearness of the query's vector to the item's own vector (raw cosine)."""

from __future__ import annotations

from collections.abc import Set as AbstractSet

from pps.core.values import ChannelName
from pps.recall.ask import Ask, Scored
from pps.recall.merging import best_of


async def find(ask: Ask, channel: ChannelName, depth: int) -> list[Scored]:
    """Return the nearest items of a channel; nothing when there is no embedder."""
    return best_of([await ask.similar(one, depth) for one in ask.collections(channel)], depth)


async def score(ask: Ask, channel: ChannelName, ids: AbstractSet[str]) -> list[Scored]:
    """Return the cosine of each of the items that has a vector."""
    return best_of([await ask.similar_among(one, ids) for one in ask.collections(channel)], len(ids))
