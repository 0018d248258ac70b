"""Filling one channel: its perspectives asked, their lists joined, boosted, reordered, cut. Channels never mix."""

from __future__ import annotations

import asyncio
import time as clock
from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace

from pps.core.errors import IsolationError, PPSError
from pps.core.recalled import Channel
from pps.core.values import ChannelName, Node
from pps.index.prompts import ASKS, asks_what_was_asked
from pps.journal.links import FactOutline
from pps.journal.perspective_rows import ids_of
from pps.models.protocols import Vector
from pps.recall.hits import OUTLINED, fetch, make_hits, names_of, outlined, times_of
from pps.recall.perspectives import PERSPECTIVES
from pps.recall.profiles import ChannelProfile
from pps.recall.query import Ask, Candidate, Item, Scored
from pps.recall.query_words import grams
from pps.recall.question import asks_now
from pps.recall.ranking import (
    NEAREST,
    diverse,
    freshness,
    fused,
    latest_first,
    led,
    novelty,
    of_turns,
    one_of_each_pair,
    one_of_each_text,
    summed,
    unanimous,
)
from pps.recall.why import Trace

NO_EMBEDDER = "no embedder is set: found by text and graph only"
_DEEPER = 4
_POOL, _LEAST_POOL = 5, 25
"""Candidates that are ordered for each result: boosts and reordering lift nothing from farther down."""
_SPARE = 3
"""Candidates beyond the limit that are read where nothing changes their order: some may be gone."""


@dataclass(slots=True)
class Lists:
    """What the perspectives said, by name, and what kept one from saying it; ``sums`` when signals are added.

    ``asked`` are the parts of their lists that only ask: they take no rank from what tells something.
    """

    sums: bool = False
    said: dict[str, list[Scored]] = field(default_factory=dict[str, list[Scored]])
    asked: dict[str, list[Scored]] = field(default_factory=dict[str, list[Scored]])
    failed: dict[str, PPSError] = field(default_factory=dict[str, PPSError])

    def ids(self) -> set[str]:
        return {one.id for entries in self.whole().values() for one in entries}

    def whole(self) -> dict[str, list[Scored]]:
        """Return each list with what only asks behind the rest."""
        return {name: [*entries, *self.asked.get(name, ())] for name, entries in self.said.items()}

    def put_last(self, asking: AbstractSet[str]) -> None:
        """Take turns that only ask out of the lists, to stand behind all others."""
        for name, entries in self.said.items():
            self.asked[name] = [one for one in entries if one.id in asking]
            self.said[name] = [one for one in entries if one.id not in asking]


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
    return await _Filling(ask, channel, profile, limit).fill()


async def find(ask: Ask, channel: ChannelName, profile: ChannelProfile, depth: int) -> Lists:
    """Return the lists of the finding perspectives, at most ``depth`` long each, asked side by side.

    Raises:
        PPSError: All of them failed; the first one's error.
        IsolationError: One of them met a foreign row.
    """
    started, embedding = clock.perf_counter(), ask.took_s("embed")
    finders = {name: find for name in profile.perspectives if (find := PERSPECTIVES[name].find)}
    # Where only what orders has a weight, the others bring the candidates and count nothing.
    names = [name for name in finders if profile.perspectives[name] > 0] or list(finders)
    slowest_first = sorted(
        names, key=lambda name: not name.startswith("dense")
    )  # the embedding begins at once
    asked = (finders[name](ask, channel, depth) for name in slowest_first)
    results = dict(
        zip(slowest_first, await asyncio.gather(*asked, return_exceptions=True), strict=True)
    )
    lists = Lists()
    for name in names:
        result = results[name]
        if isinstance(result, PPSError) and not isinstance(result, IsolationError):
            lists.failed[name] = result
        elif isinstance(result, BaseException):
            raise result
        else:
            lists.said[name] = result
    if lists.failed and not any(lists.said.values()):
        raise next(iter(lists.failed.values()))
    if (least := profile.min_similarity) is not None:
        for name in lists.said.keys() & {"dense", "dense_names", "dense_windows"}:
            lists.said[name] = [one for one in lists.said[name] if one.score >= least]
    waited = ask.took_s("embed") - embedding
    ask.spent("retrieve", channel, clock.perf_counter() - started - waited)
    return lists


class _Filling:
    """The filling of one channel of a recall."""

    def __init__(self, ask: Ask, channel: ChannelName, profile: ChannelProfile, limit: int) -> None:
        self._ask = ask
        self._channel: ChannelName = channel
        self._profile = profile
        self._limit = limit

    async def fill(self) -> Channel:
        depth = self._ask.depth(self._profile.depth, self._limit)
        wide = _DEEPER * depth
        filled = await self._filled(depth, max(_POOL * self._limit, _LEAST_POOL), wide)
        if filled.deeper:
            filled = await self._filled(wide, wide, wide)
        ranking, lists = filled.ranking, filled.lists
        if self._ask.traces is not None:
            order, joined = tuple(ranking.order), self._joined(lists)
            self._ask.traces[self._channel] = Trace(
                self._profile,
                self._limit,
                lists.whole(),
                joined,
                ranking.scores,
                order,
                ranking.passed,
                ranking.moved,
            )
        with self._timed():
            hits = await make_hits(self._ask, filled.picked, ranking.scores, lists)
        return Channel(self._channel, hits, notes=tuple(self._notes(lists)))

    async def _filled(self, depth: int, pool: int, most: int) -> _Filled:
        """Ask the perspectives once and order the best ``pool``; where places stay empty, the best ``most`` found."""
        lists = await find(self._ask, self._channel, self._profile, depth)
        cut_short = any(len(entries) >= depth for entries in lists.said.values())
        lists.put_last(await self._asking())
        if self._profile.fusion == "sum":
            await self._complete(lists)
        ranking, picked = await self._ordered(lists, pool)
        if len(ranking.order) < self._limit and pool < min(len(lists.ids()), most):
            ranking, picked = await self._ordered(lists, most)
        return _Filled(
            lists, ranking, picked, deeper=cut_short and len(ranking.order) < self._limit
        )

    async def _complete(self, lists: Lists) -> None:
        """Add to each list, with its own signals, the candidates that only others found: a weighted sum needs them."""
        lists.sums = True
        candidates = lists.ids()
        for name, entries in lists.said.items():
            score = PERSPECTIVES[name].score
            missing = candidates - {one.id for one in entries}
            if score is not None and missing:
                lists.said[name] = [*entries, *await score(self._ask, self._channel, missing)]

    async def _weigh(self, items: Mapping[str, Candidate], lists: Lists) -> bool:
        """Add the lists of the weighing perspectives, and tell whether one says anything; one that fails is noted."""
        spoke = False
        for name, weight in self._profile.perspectives.items():
            opinion = PERSPECTIVES[name].weigh
            if opinion is None or weight <= 0:
                continue
            try:
                lists.said[name] = await opinion(self._ask, self._channel, items)
                spoke = spoke or bool(lists.said[name])
            except IsolationError:
                raise
            except PPSError as error:
                lists.failed[name] = error
        return spoke

    async def _ordered(self, lists: Lists, pool: int) -> tuple[_Ranking, dict[str, Item]]:
        with self._timed():
            ranked = await self._ranked(lists, pool)
        ranking, best, picked = await self._shown(ranked)
        if len(picked) < len(
            best
        ):  # projection and indexes may be a moment ahead of the graph: nothing takes a place
            with self._timed():
                there = await fetch(self._ask, self._channel, ranked.order)
            ranking, best, picked = await self._shown(
                replace(ranked, order=[one for one in ranked.order if one in there])
            )
        return ranking, picked

    async def _ranked(self, lists: Lists, pool: int) -> _Ranking:
        ask, profile = self._ask, self._profile
        joined = self._joined(lists)
        best = [one for one in joined if one not in ask.request.without][:pool]
        if self._channel == "nodes" and profile.fusion == "rrf":
            best = await self._telling(best)
        if self._channel in ("episodes", "turns"):
            ask.left_out.update(one for one in joined if one in ask.request.without)
        near = best if self._channel in OUTLINED or self._moves() else best[: self._limit + _SPARE]
        items = await outlined(ask, self._channel, near)
        if len(items) < min(self._limit, len(best)):
            items = await outlined(ask, self._channel, best)
        if await self._weigh(items, lists):
            joined = self._joined(lists)
        scores = {one: score for one, score in joined.items() if one in items}
        shown = await novelty(ask, items) if profile.novelty else {}
        fresh = await freshness(ask, items) if profile.freshness else {}
        nearest = {scored.id for scored in lists.said.get("dense", ())[:NEAREST]}
        for factors in (shown, fresh, of_turns(ask.text, items, profile, nearest)):
            for one, factor in factors.items():
                scores[one] *= factor
        steered = ask.request.center or ask.request.weights  # then the caller says what comes first
        finds = {name for name, one in PERSPECTIVES.items() if one.find and not one.recall_only}
        found = [entries for name, entries in lists.said.items() if name in finds and not steered]
        asking = {one.id for entries in lists.asked.values() for one in entries}
        ahead = unanimous(found, scores) - shown.keys() - asking
        most = max(scores.values(), default=0.0)
        moved = {one: "put first: it is first in every list" for one in ahead if scores[one] < most}
        moved |= dict.fromkeys(asking & scores.keys(), "put last: it only asks")
        important: Mapping[str, float] = {}
        if profile.importance:
            important = await ask.sources.journal.topics.importances([*scores])

        def place(one: str) -> tuple[bool, bool, float, float]:
            return one in asking, one not in ahead, -scores[one], -important.get(one, 0.0)

        return _Ranking(items, scores, sorted(scores, key=place), moved=moved)

    async def _asking(self) -> frozenset[str]:
        """Return the turns that only ask, where the profile puts them last and the query is not after questions."""
        if not self._profile.statements_first or asks_what_was_asked(self._ask.request.query):
            return frozenset()
        return await self._ask.sources.journal.perspective_data.every(ASKS, "episode", ids_of)

    async def _telling(self, nodes: list[str]) -> list[str]:
        """Return the nodes that say more than that there is something of a name; the entity's own never does.

        A record has a text, and a node found by its kind answers what is of that kind.
        """
        ask, journal = self._ask, self._ask.sources.journal
        others = [one for one in nodes if one != ask.sources.self_node]
        telling = await journal.with_facts(others)
        telling |= set(await journal.records.of_nodes(others))
        telling |= set(await ask.meant()) - set(await ask.named())
        bare = [one for one in others if one not in telling]
        summed_up = await fetch(ask, "nodes", bare) if bare else {}
        telling |= {
            one
            for one, node in summed_up.items()
            if isinstance(node, Node) and (node.summary or node.attributes)
        }
        return [one for one in others if one in telling]

    def _moves(self) -> bool:
        """Tell whether anything changes the order that ranks give: then all that may be lifted are looked at."""
        profile = self._profile
        weighs = any(
            PERSPECTIVES[name].weigh for name, weight in profile.perspectives.items() if weight > 0
        )
        turns = profile.substance is not None or (
            profile.assistant,
            profile.speaker,
            profile.standing,
        ) != (1, 1, 1)
        picks = (
            profile.pairs
            or profile.distinct
            or profile.latest
            or profile.statements_first
            or profile.importance
            or profile.mmr is not None
        )
        return (
            weighs
            or turns
            or profile.freshness
            or profile.novelty
            or picks
            or profile.fusion == "sum"
        )

    async def _shown(self, ranked: _Ranking) -> tuple[_Ranking, list[str], dict[str, Item]]:
        ask, ranking = self._ask, await self._reordered(ranked)
        best = [*ranking.order, *ranking.passed][: self._limit]
        outlines = (ask.outlines.get(one) for one in best)
        ends = [
            end
            for one in outlines
            if isinstance(one, FactOutline)
            for end in (one.subject, one.object)
        ]
        with self._timed():
            reads = fetch(ask, self._channel, best), names_of(ask, ends)
            items, names = await asyncio.gather(*reads, return_exceptions=True)
        if isinstance(names, IsolationError) or (
            isinstance(names, BaseException) and isinstance(items, dict)
        ):
            raise names
        if isinstance(items, BaseException):
            raise items
        return ranking, best, items

    def _joined(self, lists: Lists) -> dict[str, float]:
        """Return id → score, best first; what only asks is behind the rest and scores less than all of it."""
        told = self._fused(lists.said)
        asked = self._fused(lists.asked)
        if not asked:
            return told
        least = min((score for score in told.values() if score > 0), default=1.0)
        most = max(asked.values()) or 1.0
        behind = {one: least * score / (2 * most) for one, score in asked.items()}
        return {**told, **behind}

    def _fused(self, lists: Mapping[str, list[Scored]]) -> dict[str, float]:
        said = {
            name: entries for name, entries in lists.items() if not PERSPECTIVES[name].recall_only
        }
        if self._profile.fusion == "sum":
            joined = summed(said, self._profile.perspectives)
        else:
            weights: Mapping[str, float] = self._profile.perspectives
            if self._profile.led:
                weights = led(said, weights, len(self._ask.words.split()))
            joined = fused(said, weights, k=self._profile.k)
        only = [entries for name, entries in lists.items() if PERSPECTIVES[name].recall_only]
        return {
            **joined,
            **{one.id: 0.0 for entries in only for one in entries if one.id not in joined},
        }

    async def _reordered(self, ranking: _Ranking) -> _Ranking:
        """Put the latest first, keep one fact of each pair and one turn of each text, spread out: as it is set."""
        order, passed, moved = ranking.order, list[str](), dict(ranking.moved)
        if self._profile.latest and asks_now(self._ask.text):
            order = await self._latest(ranking)
            there = set(order)
            before = [one for one in ranking.order if one in there]
            up = (one for at, one in enumerate(order) if before.index(one) > at)
            moved.update(
                (one, "moved up: it is the latest that was said of one thing") for one in up
            )
        if self._profile.pairs:
            order, passed = one_of_each_pair(order, ranking.items)
        if self._profile.distinct:
            order, again = one_of_each_text(order, ranking.items, self._ask.text)
            passed += again
        if self._profile.mmr is not None:
            order = await self._spread(self._profile.mmr, order)
        return _Ranking(ranking.items, ranking.scores, order, tuple(passed), moved)

    async def _latest(self, ranking: _Ranking) -> list[str]:
        asking = await self._asking()
        best = [one for one in ranking.order[: self._limit] if one not in asking]
        rest = [one for one in ranking.order if one not in best]
        with self._timed():
            items = await fetch(self._ask, self._channel, best)
            times = await times_of(self._ask, {one: ranking.items[one] for one in items})
        return [
            *latest_first(
                [one for one in best if one in items], items, times, grams(self._ask.words)
            ),
            *rest,
        ]

    async def _spread(self, balance: float, order: list[str]) -> list[str]:
        query = await self._ask.vector()
        if query is None:
            return order
        vectors: dict[str, Vector] = {}
        for collection in self._ask.collections(self._channel):
            vectors.update(await self._ask.sources.indexes.vectors(collection, order))
        return diverse(order, query, vectors, balance=balance, limit=self._limit)

    def _timed(self) -> AbstractContextManager[None]:
        return self._ask.timed("fetch", self._channel)

    def _notes(self, lists: Lists) -> list[str]:
        dense = any(name.startswith("dense") for name in self._profile.perspectives)
        failed = [f"{name} left out: {error.message}" for name, error in lists.failed.items()]
        failed += sorted(self._ask.lacking)
        return [NO_EMBEDDER, *failed] if dense and self._ask.sources.embedder is None else failed
