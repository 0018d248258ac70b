"""Dense: nearness of the query's vector to the item's own vector (raw cosine); a record's is of what it says."""

from __future__ import annotations

from collections.abc import Set as AbstractSet

from pps.core.values import ChannelName
from pps.recall.merging import best_of
from pps.recall.query import Ask, Scored


async def find(ask: Ask, channel: ChannelName, depth: int) -> list[Scored]:
    """Return the nearest items of a channel; nothing when there is no embedder."""
    if channel == "nodes":
        return await _nodes(ask, await ask.similar("records", depth), await ask.similar("nodes", depth), depth)
    return best_of([await ask.similar(one, depth) for one in ask.collections(channel)], depth)


async def score(ask: Ask, channel: ChannelName, ids: AbstractSet[str]) -> list[Scored]:
    """Return the cosine of each of the items that has a vector."""
    if channel == "nodes":
        return await own_of_nodes(ask, ids)
    return best_of([await ask.similar_among(one, ids) for one in ask.collections(channel)], len(ids))


async def own_of_nodes(ask: Ask, ids: AbstractSet[str]) -> list[Scored]:
    """Return the cosine of each of the nodes, nearest first."""
    return await _nodes(ask, await ask.similar_among("records", ids), await ask.similar_among("nodes", ids), len(ids))


async def _nodes(ask: Ask, records: list[Scored], names: list[Scored], depth: int) -> list[Scored]:
    """Return records by their texts and other nodes by their names, which are all that those say."""
    if not (records and names):
        return records or names
    texts = await ask.sources.journal.records.of_nodes([one.id for one in names])
    return best_of([records, [one for one in names if one.id not in texts]], depth)
