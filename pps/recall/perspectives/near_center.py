"""Near the centre: fewer hops from the centre node (the entity's own unless one is given) count more."""

from __future__ import annotations

from collections.abc import Mapping

from pps.core.values import ChannelName
from pps.recall.proximity import MAX_HOPS, by_hops
from pps.recall.query import Ask, Candidate, Scored


async def weigh(ask: Ask, channel: ChannelName, items: Mapping[str, Candidate]) -> list[Scored]:
    """Return the candidates within reach of the centre, nearest first; nothing when there is no centre.

    The entity's own node is near itself whatever is asked, and says nothing: it is not among them unless it is given.
    """
    center = ask.center()
    others = items if ask.request.center else {one: item for one, item in items.items() if one != center}
    return await by_hops(ask, others, [center], MAX_HOPS) if center else []
