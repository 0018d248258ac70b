"""Supports: a fact raises the turns that support it and the nodes it joins; a turn raises its facts."""

from __future__ import annotations

from collections.abc import Sequence

from pps.core.values import ChannelName
from pps.journal.links import FactOutline
from pps.recall.ask import Ask, Scored
from pps.recall.fetch import outlined
from pps.recall.fusion import fused
from pps.recall.merging import best_of, in_order

_K = 5


async def find(ask: Ask, channel: ChannelName, depth: int) -> list[Scored]:
    """Return what the best facts (or, for facts, the best turns) vote for, in their order."""
    if channel == "facts":
        turns = await _best(ask, ("windows",), ask.text, depth)
        supported = await ask.sources.journal.facts_supported_by(turns)
        ids = [fact for turn in turns for fact in supported.get(turn, ())]
        return in_order(await ask.permitted("fact", ids), depth)
    if channel not in ("episodes", "turns", "nodes"):
        return []
    links = await ask.once(("best facts' links", depth), lambda: _links(ask, depth))
    if channel == "nodes":
        return in_order(await ask.permitted("node", [end for one in links for end in (one.subject, one.object)]), depth)
    return in_order(await ask.permitted("episode", [turn for one in links for turn in one.episodes]), depth)


async def _links(ask: Ask, depth: int) -> list[FactOutline]:
    """Return what the best facts join, in their order; nodes and episodes both ask."""
    best = await _best(ask, ask.collections("facts"), ask.words, depth)
    outlines = await outlined(ask, "facts", best)
    return [one for one in outlines.values() if isinstance(one, FactOutline)]


async def _best(ask: Ask, collections: Sequence[str], words: str, depth: int) -> list[str]:
    """Return the ids that text and vectors together rank best, at most ``depth``; ``words`` as BM25 asks for them."""
    text = best_of([await ask.matches(one, words, depth) for one in collections], depth)
    dense = best_of([await ask.similar(one, depth) for one in collections], depth)
    return list(fused({"text": text, "dense": dense}, {"text": 1, "dense": 1}, k=_K))[:depth]
