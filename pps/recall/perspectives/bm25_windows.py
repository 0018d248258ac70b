"""BM25 over windows: words that the query shares with a turn, its neighbours and their facts."""

from __future__ import annotations

from pps.core.values import ChannelName
from pps.recall.merging import textual
from pps.recall.query import Ask, Scored


async def find(ask: Ask, channel: ChannelName, depth: int) -> list[Scored]:
    """Return the turns whose surroundings match best; nothing in channels other than episodes."""
    return textual(await ask.matches("windows", ask.text, depth)) if channel in ("episodes", "turns") else []
