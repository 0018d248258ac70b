"""Latest: the turns that were said last, whatever the query says."""

from __future__ import annotations

from pps.core.values import ChannelName
from pps.recall.merging import in_order
from pps.recall.query import Ask, Scored

_MOST = 10_000


async def find(ask: Ask, channel: ChannelName, depth: int) -> list[Scored]:
    """Return the latest turns that the filters let through; nothing in channels other than turns and episodes."""
    if channel not in ("turns", "episodes"):
        return []
    size = depth
    while True:
        turns = await ask.sources.journal.recent(min(size, _MOST))
        found = await ask.permitted("episode", [turn.uuid for turn in turns])
        if len(found) >= depth or len(turns) < size or size >= _MOST:
            return in_order(found, depth)
        size *= 4
