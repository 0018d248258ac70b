"""Filling one channel: lists joined, damped, reordered, cut. Channels never mix."""

from __future__ import annotations

import time as clock
from collections.abc import Mapping
from dataclasses import dataclass

from pps.core.values import Channel, ChannelName
from pps.models.protocols import Vector
from pps.recall import damping
from pps.recall.ask import Ask, Item
from pps.recall.fetch import fetch
from pps.recall.finding import Lists, complete, find, weigh
from pps.recall.fusion import fused, summed
from pps.recall.hits import make_hits, text_of
from pps.recall.perspectives import PERSPECTIVES
from pps.recall.picking import diverse, one_of_each_pair, one_of_each_text
from pps.recall.profiles import ChannelProfile
from pps.recall.reranking import rerank

NO_EMBEDDER = "no embedder is set: found by text and graph only"
_DEEPER = 4
_POOL, _LEAST_POOL = 5, 25
"""Candidates that are read for each result: damping and reordering lift nothing from farther down."""
_SPARE = 3
"""Candidates beyond the limit that are read where only weighing moves them: some may have ended, or be gone."""


@dataclass(frozen=True, slots=True)
class _Ranking:
    """Candidates in order, with their values and scores; ``passed`` are those that only fill a short list."""

    items: Mapping[str, Item]
    scores: Mapping[str, float]
    order: list[str]
    passed: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


async def fill(ask: Ask, channel: ChannelName, profile: ChannelProfile, limit: int) -> Channel:
    """Return a channel's best ``limit`` hits; full whenever the entity has that many matches.

    Where many are passed over, the perspectives are asked again, deeper; what is then still empty is
    filled with the best of those passed over. A perspective that fails is named in ``notes``.

    Raises:
        PPSError: No perspective could find anything, or what was found could not be read.
        IsolationError: A foreign row came back; nothing of this recall may be shown.
    """
    depth = max(profile.depth, 2 * limit)
    pool = max(_POOL * limit, _LEAST_POOL)
    for deep, most in ((depth, pool), (_DEEPER * depth, _DEEPER * depth)):
        lists = await find(ask, channel, profile, deep)
        short = lists.cut_short(deep)
        if profile.fusion == "sum":
            await complete(ask, channel, lists)
        ranking = await _ranked(ask, channel, profile, lists, limit, most)
        ranking = await _reordered(ask, channel, profile, ranking, limit)
        if len(ranking.order) >= limit or not short:
            break
    picked = [*ranking.order, *ranking.passed][:limit]
    hits = await make_hits(ask, {one: ranking.items[one] for one in picked}, ranking.scores, lists)
    return Channel(channel, hits, notes=(*_notes(ask, profile, lists), *ranking.notes))


async def _ranked(
    ask: Ask, channel: ChannelName, profile: ChannelProfile, lists: Lists, limit: int, pool: int
) -> _Ranking:
    """Read the best candidates, let the weighing perspectives speak, join and damp."""
    started = clock.perf_counter()
    joined = _joined(profile, lists)
    best = list(joined)[:pool]
    near = best if _moves(ask, profile) else _within_reach(profile, joined, best, limit)
    items = await fetch(ask, channel, near)
    if len(near) - len(items) > _SPARE:
        items = await fetch(ask, channel, best)
    if await weigh(ask, channel, profile, items, lists):
        joined = _joined(profile, lists)
    scores = {one: score for one, score in joined.items() if one in items}
    for one, factor in await _factors(ask, profile, items):
        scores[one] *= factor
    order = sorted(scores, key=scores.__getitem__, reverse=True)
    ask.spent("fetch", clock.perf_counter() - started)
    return _Ranking(items, scores, order)


def _within_reach(profile: ChannelProfile, joined: Mapping[str, float], best: list[str], limit: int) -> list[str]:
    """Return those of the best that weighing can still lift into the limit: a first rank in each of its lists."""
    weights = sum(weight for name, weight in profile.perspectives.items() if PERSPECTIVES[name].weigh)
    last = best[min(len(best), limit + _SPARE) - 1] if best else None
    least = joined[last] - weights / (profile.k + 1) if last is not None else 0.0
    return [one for one in best if joined[one] >= least]


def _moves(ask: Ask, profile: ChannelProfile) -> bool:
    """Tell whether more than weighing changes the order that ranks give: then all that may be lifted are read."""
    damps = profile.freshness or profile.novelty or profile.substance is not None or profile.answers > 1
    picks = profile.pairs or profile.distinct or profile.mmr is not None
    sums = profile.fusion == "sum"
    return damps or picks or sums or (profile.rerank > 0 and ask.sources.reranker is not None)


def _joined(profile: ChannelProfile, lists: Lists) -> dict[str, float]:
    if profile.fusion == "sum":
        return summed(lists.said, profile.perspectives)
    return fused(lists.said, profile.perspectives, k=profile.k)


async def _factors(ask: Ask, profile: ChannelProfile, items: Mapping[str, Item]) -> list[tuple[str, float]]:
    factors: list[tuple[str, float]] = []
    if profile.freshness:
        factors += (await damping.freshness(ask, items)).items()
    if profile.novelty:
        factors += (await damping.novelty(ask, items)).items()
    if profile.substance:
        factors += damping.substance(items, profile.substance).items()
    if profile.answers > 1:
        factors += (await damping.answers(ask, items, profile.answers)).items()
    return factors


async def _reordered(
    ask: Ask, channel: ChannelName, profile: ChannelProfile, ranking: _Ranking, limit: int
) -> _Ranking:
    """Rerank the top, keep one fact of each pair and one turn of each text, spread out; as the profile says."""
    order, note, passed = ranking.order, "", list[str]()
    if profile.rerank and ask.sources.reranker and order:
        started = clock.perf_counter()
        top = {one: text_of(ranking.items[one]) for one in order[: max(profile.rerank, limit)]}
        order, note = await rerank(ask, top, order)
        ask.spent("rerank", clock.perf_counter() - started)
    if profile.pairs:
        order, passed = one_of_each_pair(order, ranking.items)
    if profile.distinct:
        order, again = one_of_each_text(order, ranking.items, ask.text)
        passed += again
    if profile.mmr is not None:
        order = await _spread(ask, channel, profile.mmr, order, limit)
    return _Ranking(ranking.items, ranking.scores, order, tuple(passed), (note,) if note else ())


async def _spread(ask: Ask, channel: ChannelName, balance: float, order: list[str], limit: int) -> list[str]:
    query = await ask.vector()
    if query is None:
        return order
    vectors: dict[str, Vector] = {}
    for collection in ask.collections(channel):
        vectors.update(await ask.sources.indexes.vectors(collection, order))
    return diverse(order, query, vectors, balance=balance, limit=limit)


def _notes(ask: Ask, profile: ChannelProfile, lists: Lists) -> list[str]:
    blind = ask.sources.embedder is None and any(name.startswith("dense") for name in profile.perspectives)
    failed = [f"{name} left out: {error.message}" for name, error in lists.failed.items()]
    return [NO_EMBEDDER, *failed] if blind else failed
