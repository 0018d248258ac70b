"""BM25: words that the query shares with the item, rare ones counting more.

Only words that a query is about are asked for: "where" of "Where is the key?" says nothing of a key. Windows keep
them, since the turn before an answer is often the same question.
"""

from __future__ import annotations

from collections.abc import Set as AbstractSet

from pps.core.values import ChannelName
from pps.recall.merging import best_of, textual
from pps.recall.query import Ask, Scored


async def find(ask: Ask, channel: ChannelName, depth: int) -> list[Scored]:
    """Return the items of a channel whose words match best."""
    return textual(best_of([await ask.matches(one, ask.words, depth) for one in ask.collections(channel)], depth))


async def score(ask: Ask, channel: ChannelName, ids: AbstractSet[str]) -> list[Scored]:
    """Return those of the items that share a word with the query, on the scale of the channel's best match."""
    lists = [await ask.matches_among(one, ask.words, ids) for one in ask.collections(channel)]
    best = best_of([await ask.matches(one, ask.words, 1) for one in ask.collections(channel)], 1)
    found = textual(best_of([*lists, best], len(ids) + 1))
    return [one for one in found if one.id in ids]
