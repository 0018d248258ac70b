"""Dense names: nearness of the query's vector to the name of a node alone, whatever a record says."""

from __future__ import annotations

from pps.core.values import ChannelName
from pps.recall.query import Ask, Scored


async def find(ask: Ask, channel: ChannelName, depth: int) -> list[Scored]:
    """Return the nodes whose names are nearest; nothing in other channels."""
    return await ask.similar("nodes", depth) if channel == "nodes" else []
