"""When: what happened in or near the time that the query names ("last spring") and fits its words best."""

from __future__ import annotations

from collections.abc import Sequence

from pps.core.spans import Span
from pps.core.time import from_micros
from pps.core.values import ChannelName
from pps.recall.fusion import fused
from pps.recall.merging import best_of, in_order
from pps.recall.query import Ask, Scored

MOST = 5_000
"""A time in or near which more than this happened says too little: the other perspectives decide."""
_K = 5
_WHERE = {"facts": ("facts",), "episodes": ("windows",), "turns": ("windows",)}


async def find(ask: Ask, channel: ChannelName, depth: int) -> list[Scored]:
    """Return facts and turns of the named time: by words and meaning, less the farther outside it.

    Nothing when the query names no time, and in channels of things without a time. Where words and meaning
    bring nothing ("what happened yesterday?" without an embedder), the time's latest come in their order.
    """
    spans = await ask.times() if channel in _WHERE else []
    if not spans:
        return []
    near = await _near(ask, channel, spans)
    if not near:
        return []
    wanted = set(near)
    text = [await ask.sources.indexes.text_search(one, ask.text, depth, wanted) for one in _WHERE[channel]]
    dense = [await _dense(ask, one, depth, wanted) for one in _WHERE[channel]]
    lists = {
        "text": best_of([[Scored(hit.owner, hit.score, 0.0) for hit in hits] for hits in text], depth),
        "dense": best_of(dense, depth),
    }
    scores = {one: score * near[one] for one, score in fused(lists, {"text": 1, "dense": 1}, k=_K).items()}
    best = sorted(scores, key=lambda one: -scores[one])
    return in_order(best or list(near), depth)


async def _near(ask: Ask, channel: ChannelName, spans: Sequence[Span]) -> dict[str, float]:
    """Return id → nearness in (0, 1] of what happened in or near any of the spans, latest first."""
    kind = "fact" if channel == "facts" else "episode"
    allowed = await ask.allowed(kind)
    near: dict[str, float] = {}
    for span in spans:
        times = await ask.sources.journal.within(kind, *span.bounds(), limit=MOST + 1)
        if len(times) > MOST:
            return {}
        for one, at in times.items():
            nearness = span.nearness(from_micros(at))
            if nearness > near.get(one, 0.0) and (allowed is None or one in allowed):
                near[one] = nearness
    return near


async def _dense(ask: Ask, collection: str, depth: int, wanted: set[str]) -> list[Scored]:
    vector = await ask.vector()
    if vector is None:
        return []
    hits = await ask.sources.indexes.vector_search(collection, vector, depth, wanted)
    return [Scored(hit.owner, hit.similarity, 0.0) for hit in hits]
