"""Intent: what was meant to reach the same, seen in what stands around a text."""

from __future__ import annotations

from collections.abc import Sequence

from pps.core.values import ChannelName
from pps.recall.perspectives import Likeness, finds
from pps.recall.perspectives.likeness import cosines
from pps.recall.query import Ask, Scored, Sources
from pps.recall.ranking import STRONG, WEAK

_LEAST, _MOST = 0.8, 1.2


async def _alike(sources: Sources, ids: Sequence[str]) -> Likeness:
    return cosines(await sources.indexes.vectors("windows", ids), ids)


@finds(alike=_alike)
async def intent(ask: Ask, channel: ChannelName, depth: int) -> list[Scored]:
    """Intent: nearness in meaning, times what the turns around a text say of the query: .8 to 1.2.

    A strong likeness is moved by .05 at most, a middling one by .1, a weak one by .15.
    """
    if channel not in ("episodes", "turns"):
        return []
    around = {one.id: one.score for one in await ask.similar("windows", 2 * depth)}
    own = {one.id: one.score for one in await ask.similar("episodes", 2 * depth)}
    missing = around.keys() - own.keys()
    own.update((one.id, one.score) for one in await ask.similar_among("episodes", missing))
    most = max(around.values(), default=0.0) or 1.0
    found: dict[str, float] = {}
    for one, score in own.items():
        step = 0.05 if score >= STRONG else 0.1 if score >= WEAK else 0.15
        lift = 1 + step * (2 * max(0.0, around.get(one, 0.0)) / most - 1)
        found[one] = score * min(_MOST, max(_LEAST, lift))
    order = sorted(found, key=lambda one: -found[one])[:depth]
    return [Scored(one, found[one], max(0.0, min(1.0, found[one]))) for one in order]
