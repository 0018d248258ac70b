"""Filling one channel: lists joined, damped, reordered, cut. Channels never mix."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from pps.core.errors import IsolationError
from pps.core.recalled import Channel
from pps.core.values import ChannelName
from pps.journal.links import FactOutline
from pps.models.protocols import Vector
from pps.recall import boosts
from pps.recall.ages import times_of
from pps.recall.candidates import Lists, complete, find, weigh
from pps.recall.diversify import diverse, latest_first, one_of_each_pair, one_of_each_text
from pps.recall.fetch import OUTLINED, fetch, outlined
from pps.recall.fusion import fused, summed, unanimous
from pps.recall.hits import make_hits, names_of
from pps.recall.passages import grams
from pps.recall.perspectives import PERSPECTIVES
from pps.recall.profiles import ChannelProfile
from pps.recall.query import Ask, Candidate, Item
from pps.recall.question import asks_now
from pps.recall.why import Trace

NO_EMBEDDER = "no embedder is set: found by text and graph only"
_DEEPER = 4
_POOL, _LEAST_POOL = 5, 25
"""Candidates that are ordered for each result: damping and reordering lift nothing from farther down."""
_SPARE = 3
"""Candidates beyond the limit that are read where nothing changes their order: some may be gone."""


@dataclass(frozen=True, slots=True)
class _Ranking:
    """Candidates in order, with their outlines and scores.

    ``passed`` are those that only fill a short list, ``moved`` says of some why they stand before better scores.
    """

    items: Mapping[str, Candidate]
    scores: Mapping[str, float]
    order: list[str]
    passed: tuple[str, ...] = ()
    moved: Mapping[str, str] = field(default_factory=dict[str, str])

    def best(self, limit: int) -> list[str]:
        """Return the ids that are shown."""
        return [*self.order, *self.passed][:limit]


@dataclass(frozen=True, slots=True)
class _Effort:
    """How long each list may be, how many candidates are ordered, and how many where those do not fill the channel."""

    depth: int
    pool: int
    most: int


@dataclass(frozen=True, slots=True)
class _Filled:
    """What the perspectives said, its order, and what is shown; ``deeper`` when asking for more could fill it."""

    lists: Lists
    ranking: _Ranking
    picked: Mapping[str, Item]
    deeper: bool


async def fill(ask: Ask, channel: ChannelName, profile: ChannelProfile, limit: int) -> Channel:
    """Return a channel's best ``limit`` hits; full whenever the entity has that many matches.

    Where many are passed over, all that was found is ordered, and then the perspectives are asked again, deeper;
    what is then still empty is filled with the best of those passed over. A perspective that fails is named in
    ``notes``.

    Raises:
        PPSError: No perspective could find anything, or what was found could not be read.
        IsolationError: A foreign row came back; nothing of this recall may be shown.
    """
    depth = max(profile.depth, 2 * limit)
    wide = _DEEPER * depth
    filled = await _filled(ask, channel, profile, limit, _Effort(depth, max(_POOL * limit, _LEAST_POOL), wide))
    if filled.deeper:
        filled = await _filled(ask, channel, profile, limit, _Effort(wide, wide, wide))
    if ask.traces is not None:
        ranking, lists = filled.ranking, filled.lists
        ask.traces[channel] = Trace(
            profile,
            limit,
            lists.said,
            _joined(profile, lists),
            ranking.scores,
            tuple(ranking.order),
            ranking.passed,
            ranking.moved,
        )
    with ask.timed("fetch", channel):
        hits = await make_hits(ask, filled.picked, filled.ranking.scores, filled.lists)
    return Channel(channel, hits, notes=tuple(_notes(ask, profile, filled.lists)))


async def _filled(ask: Ask, channel: ChannelName, profile: ChannelProfile, limit: int, effort: _Effort) -> _Filled:
    """Ask the perspectives once and order the best; where places stay empty, all that was found."""
    lists = await find(ask, channel, profile, effort.depth)
    cut_short = lists.cut_short(effort.depth)
    if profile.fusion == "sum":
        await complete(ask, channel, lists)
    ranking, picked = await _ordered(ask, channel, profile, lists, limit, effort.pool)
    if len(ranking.order) < limit and effort.pool < min(lists.size(), effort.most):
        ranking, picked = await _ordered(ask, channel, profile, lists, limit, effort.most)
    return _Filled(lists, ranking, picked, deeper=cut_short and len(ranking.order) < limit)


async def _ordered(
    ask: Ask, channel: ChannelName, profile: ChannelProfile, lists: Lists, limit: int, pool: int
) -> tuple[_Ranking, dict[str, Item]]:
    """Order the best ``pool`` candidates and read those that are shown."""
    with ask.timed("fetch", channel):
        ranked = await _ranked(ask, channel, profile, lists, limit, pool)
    ranking = await _reordered(ask, channel, profile, ranked, limit)
    picked = await _read(ask, channel, ranking.best(limit))
    if len(picked) < len(ranking.best(limit)):  # mirror and indexes may be a moment ahead of the graph
        ranking = await _reordered(ask, channel, profile, await _there(ask, channel, ranked), limit)
        picked = await _read(ask, channel, ranking.best(limit))
    return ranking, picked


async def _ranked(
    ask: Ask, channel: ChannelName, profile: ChannelProfile, lists: Lists, limit: int, pool: int
) -> _Ranking:
    """Let the weighing perspectives speak on the best candidates, join and damp."""
    joined = _joined(profile, lists)
    best = list(joined)[:pool]
    near = best if channel in OUTLINED or _moves(ask, profile) else best[: limit + _SPARE]
    items = await outlined(ask, channel, near)
    if len(items) < min(limit, len(best)):
        items = await outlined(ask, channel, best)
    if await weigh(ask, channel, profile, items, lists):
        joined = _joined(profile, lists)
    scores = {one: score for one, score in joined.items() if one in items}
    shown = await boosts.novelty(ask, items) if profile.novelty else {}
    fresh = await boosts.freshness(ask, items) if profile.freshness else {}
    for factors in (shown, fresh, boosts.of_turns(ask.text, items, profile)):
        for one, factor in factors.items():
            scores[one] *= factor
    steered = ask.request.center or ask.request.weights  # then the caller says what comes first
    found = [entries for name, entries in lists.said.items() if PERSPECTIVES[name].finds and not steered]
    ahead = unanimous(found, scores) - shown.keys()
    most = max(scores.values(), default=0.0)
    moved = {one: "put first: it is first in every list" for one in ahead if scores[one] < most}
    return _Ranking(items, scores, sorted(scores, key=lambda one: (one not in ahead, -scores[one])), moved=moved)


def _moves(ask: Ask, profile: ChannelProfile) -> bool:
    """Tell whether anything changes the order that ranks give: then all that may be lifted are looked at."""
    weighs = any(PERSPECTIVES[name].weigh for name, weight in profile.perspectives.items() if weight > 0)
    turns = profile.substance is not None or (profile.assistant, profile.speaker, profile.standing) != (1, 1, 1)
    picks = profile.pairs or profile.distinct or profile.latest or profile.mmr is not None
    return weighs or turns or profile.freshness or profile.novelty or picks or profile.fusion == "sum"


async def _read(ask: Ask, channel: ChannelName, ids: Sequence[str]) -> dict[str, Item]:
    """Read what is shown, and beside it the names of facts' ends."""
    outlines = (ask.outlines.get(one) for one in ids)
    ends = [end for one in outlines if isinstance(one, FactOutline) for end in (one.subject, one.object)]
    with ask.timed("fetch", channel):
        items, names = await asyncio.gather(fetch(ask, channel, ids), names_of(ask, ends), return_exceptions=True)
    if isinstance(names, IsolationError) or (isinstance(names, BaseException) and not isinstance(items, BaseException)):
        raise names
    if isinstance(items, BaseException):
        raise items
    return items


async def _there(ask: Ask, channel: ChannelName, ranked: _Ranking) -> _Ranking:
    """Return the ranking without what the graph lacks, so that it takes no other's place."""
    with ask.timed("fetch", channel):
        there = await fetch(ask, channel, ranked.order)
    return replace(ranked, order=[one for one in ranked.order if one in there])


def _joined(profile: ChannelProfile, lists: Lists) -> dict[str, float]:
    if profile.fusion == "sum":
        return summed(lists.said, profile.perspectives)
    return fused(lists.said, profile.perspectives, k=profile.k)


async def _reordered(
    ask: Ask, channel: ChannelName, profile: ChannelProfile, ranking: _Ranking, limit: int
) -> _Ranking:
    """Put the latest first, keep one fact of each pair and one turn of each text, spread out; as the profile says."""
    order, passed, moved = ranking.order, list[str](), dict(ranking.moved)
    if profile.latest and asks_now(ask.text):
        order = await _latest(ask, channel, ranking, limit)
        there = set(order)
        before = [one for one in ranking.order if one in there]
        up = (one for at, one in enumerate(order) if before.index(one) > at)
        moved.update((one, "moved up: it is the latest that was said of one thing") for one in up)
    if profile.pairs:
        order, passed = one_of_each_pair(order, ranking.items)
    if profile.distinct:
        order, again = one_of_each_text(order, ranking.items, ask.text)
        passed += again
    if profile.mmr is not None:
        order = await _spread(ask, channel, profile.mmr, order, limit)
    return _Ranking(ranking.items, ranking.scores, order, tuple(passed), moved)


async def _latest(ask: Ask, channel: ChannelName, ranking: _Ranking, limit: int) -> list[str]:
    """Put the latest of several statements of one thing where the best of them is, among those that would be shown."""
    best, rest = ranking.order[:limit], ranking.order[limit:]
    with ask.timed("fetch", channel):
        items = await fetch(ask, channel, best)
        times = await times_of(ask, {one: ranking.items[one] for one in items})
    return [*latest_first([one for one in best if one in items], items, times, grams(ask.words)), *rest]


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
