"""Near the named: candidates that are, touch or stand next to a node that the query names come first."""

from __future__ import annotations

from collections.abc import Mapping

from pps.core.values import ChannelName
from pps.recall.proximity import by_hops
from pps.recall.query import Ask, Candidate, Scored

_HOPS = 1


async def weigh(ask: Ask, channel: ChannelName, items: Mapping[str, Candidate]) -> list[Scored]:
    """Return the candidates within one hop of a named node, nearest first."""
    named = await ask.named()
    return await by_hops(ask, items, named, _HOPS) if named else []
