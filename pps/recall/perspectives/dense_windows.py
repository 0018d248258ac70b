"""Dense over windows: nearness of the query to a turn taken together with its neighbours and its facts."""

from __future__ import annotations

from pps.core.values import ChannelName
from pps.recall.query import Ask, Scored


async def find(ask: Ask, channel: ChannelName, depth: int) -> list[Scored]:
    """Return the turns whose surroundings are nearest; nothing in channels other than episodes."""
    return await ask.similar("windows", depth) if channel in ("episodes", "turns") else []
