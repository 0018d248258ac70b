"""Filling one channel: lists joined, damped, reordered, cut. Channels never mix."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass

from pps.core.values import Channel, ChannelName
from pps.journal.links import FactOutline
from pps.models.protocols import Vector
from pps.recall import damping
from pps.recall.ask import Ask, Candidate, Item
from pps.recall.fetch import fetch, outlined
from pps.recall.finding import Lists, complete, find, weigh
from pps.recall.fusion import fused, summed
from pps.recall.hits import make_hits, names_of, text_of
from pps.recall.picking import diverse, one_of_each_pair, one_of_each_text
from pps.recall.profiles import ChannelProfile
from pps.recall.reranking import rerank

NO_EMBEDDER = "no embedder is set: found by text and graph only"
_DEEPER = 4
_POOL, _LEAST_POOL = 5, 25
"""Candidates that are ordered for each result: damping and reordering lift nothing from farther down."""


@dataclass(frozen=True, slots=True)
class _Ranking:
    """Candidates in order, with their outlines and scores; ``passed`` are those that only fill a short list."""

    items: Mapping[str, Candidate]
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
        with ask.timed("fetch", channel):
            ranking = await _ranked(ask, channel, profile, lists, most)
        ranking = await _reordered(ask, channel, profile, ranking, limit)
        if len(ranking.order) >= limit or not short:
            break
    with ask.timed("fetch", channel):
        best = [*ranking.order, *ranking.passed]
        ends = [end for one in best[:limit] for end in _ends(ranking.items[one])]
        picked, _ = await asyncio.gather(_picked(ask, channel, best, limit), names_of(ask, ends))
        hits = await make_hits(ask, picked, ranking.scores, lists)
    return Channel(channel, hits, notes=(*_notes(ask, profile, lists), *ranking.notes))


async def _ranked(ask: Ask, channel: ChannelName, profile: ChannelProfile, lists: Lists, pool: int) -> _Ranking:
    """Let the weighing perspectives speak on the best candidates, join and damp."""
    items = await outlined(ask, channel, list(_joined(profile, lists))[:pool])
    await weigh(ask, channel, profile, items, lists)
    scores = {one: score for one, score in _joined(profile, lists).items() if one in items}
    for one, factor in await _factors(ask, profile, items):
        scores[one] *= factor
    return _Ranking(items, scores, sorted(scores, key=scores.__getitem__, reverse=True))


def _ends(item: Candidate) -> tuple[str, ...]:
    return (item.subject, item.object) if isinstance(item, FactOutline) else ()


async def _picked(ask: Ask, channel: ChannelName, order: list[str], limit: int) -> dict[str, Item]:
    """Read the best until there are ``limit``; what is gone by now gives its place to the next."""
    picked: dict[str, Item] = {}
    while order and len(picked) < limit:
        best, order = order[: limit - len(picked)], order[limit - len(picked) :]
        picked.update(await fetch(ask, channel, best))
    return picked


def _joined(profile: ChannelProfile, lists: Lists) -> dict[str, float]:
    if profile.fusion == "sum":
        return summed(lists.said, profile.perspectives)
    return fused(lists.said, profile.perspectives, k=profile.k)


async def _factors(ask: Ask, profile: ChannelProfile, items: Mapping[str, Candidate]) -> list[tuple[str, float]]:
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
        with ask.timed("rerank", channel):
            top = await fetch(ask, channel, order[: max(profile.rerank, limit)])
            order, note = await rerank(ask, {one: text_of(item) for one, item in top.items()}, order)
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
