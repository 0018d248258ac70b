"""Mentions: facts that more episodes support come first."""

from __future__ import annotations

from collections.abc import Mapping

from pps.core.values import ChannelName
from pps.journal.links import FactOutline
from pps.recall.fetch import supported
from pps.recall.query import Ask, Candidate, Scored


async def weigh(ask: Ask, channel: ChannelName, items: Mapping[str, Candidate]) -> list[Scored]:
    """Return the facts among the candidates by how many episodes support them."""
    facts = await supported(ask, [one for one, item in items.items() if isinstance(item, FactOutline)])
    counts = {one: len(support.episodes) for one, support in facts.items()}
    most = max(counts.values(), default=0) or 1
    return [Scored(one, counts[one], counts[one] / most) for one in sorted(counts, key=lambda one: -counts[one])]
