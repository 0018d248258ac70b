"""Supports: a fact raises the turns that support it and the nodes it joins; a turn raises its facts."""

from __future__ import annotations

from collections.abc import Sequence

from pps.core.values import ChannelName
from pps.journal.links import FactOutline
from pps.recall.fetch import outlined, supported
from pps.recall.fusion import fused
from pps.recall.merging import best_of, in_order
from pps.recall.query import Ask, Scored

_K = 5
_TURNS_AT_ONCE = 20


async def find(ask: Ask, channel: ChannelName, depth: int) -> list[Scored]:
    """Return what the best facts (or, for facts, the best turns) vote for, in their order."""
    if channel == "facts":
        return in_order(await _facts_of(ask, await _best(ask, ("windows",), ask.text, depth), depth), depth)
    if channel not in ("episodes", "turns", "nodes"):
        return []
    links = await ask.once(("best facts' links", depth), lambda: _links(ask, depth))
    if channel == "nodes":
        ends = [end for one in links.values() for end in (one.subject, one.object)]
        return in_order(await ask.permitted("node", ends), depth)
    turns = [turn for one in (await supported(ask, links)).values() for turn in one.episodes]
    return in_order(await ask.permitted("episode", turns), depth)


async def _facts_of(ask: Ask, turns: Sequence[str], depth: int) -> list[str]:
    """Return the facts that turns support, in the turns' order; no more turns are looked up than give ``depth``."""
    found: dict[str, None] = {}
    for at in range(0, len(turns), _TURNS_AT_ONCE):
        some = turns[at : at + _TURNS_AT_ONCE]
        facts = await ask.sources.journal.facts_supported_by(some)
        found.update(dict.fromkeys(await ask.permitted("fact", [one for turn in some for one in facts.get(turn, ())])))
        if len(found) >= depth:
            break
    return list(found)


async def _links(ask: Ask, depth: int) -> dict[str, FactOutline]:
    """Return what the best facts join, in their order; nodes and episodes both ask."""
    best = await _best(ask, ask.collections("facts"), ask.words, depth)
    return {one: item for one, item in (await outlined(ask, "facts", best)).items() if isinstance(item, FactOutline)}


async def _best(ask: Ask, collections: Sequence[str], words: str, depth: int) -> list[str]:
    """Return the ids that text and vectors together rank best, at most ``depth``; ``words`` as BM25 asks for them."""
    text = best_of([await ask.matches(one, words, depth) for one in collections], depth)
    dense = best_of([await ask.similar(one, depth) for one in collections], depth)
    return list(fused({"text": text, "dense": dense}, {"text": 1, "dense": 1}, k=_K))[:depth]
