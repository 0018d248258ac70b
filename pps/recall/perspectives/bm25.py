"""BM25: words that the query shares with the item, rare ones counting more."""

from __future__ import annotations

from pps.core.values import ChannelName
from pps.recall.ask import Ask, Scored
from pps.recall.merging import best_of, textual


async def find(ask: Ask, channel: ChannelName, depth: int) -> list[Scored]:
    """Return the items of a channel whose words match best."""
    return textual(best_of([await ask.matches(one, depth) for one in ask.collections(channel)], depth))
