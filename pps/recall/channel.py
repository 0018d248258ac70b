"""Filling one channel: retrieve lists, fuse them, boost scores, reorder, cut. Channels never mix.

Both the retrievers' lists and the ranking go through these steps:

1. ``find`` asks the retrievers of the channel's profile side by side.
2. Their lists are fused; the best candidates are read, rerankers add their lists, factors multiply
   the scores.
3. Near duplicates are passed over, the latest statement of one thing goes first.
4. The best are read from the store and become hits. Where too few remain, the retrievers are asked
   once more for longer lists.
"""

from __future__ import annotations

import asyncio
import time as clock
from collections.abc import Mapping, Sequence
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
from pps.recall.channel_profile import ChannelProfile
from pps.recall.hits import OUTLINED, fetch, make_hits, names_of, outlined, times_of
from pps.recall.perspectives import PERSPECTIVES, Retrieve
from pps.recall.question import asks_now, grams
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
from pps.recall.search import Candidate, Item, Scored, Search, Trace

NO_EMBEDDER = "no embedder is set: found by text and graph only"
_DEEPER = 4
"""Factor of the second, deeper retrieval."""
_POOL_PER_RESULT = 5
"""Candidates that are ordered for each result: boosts and reordering lift nothing from farther
down."""
_MIN_POOL = 25
_SPARE = 3
"""Candidates beyond the limit that are read where nothing changes their order: some may be gone."""
_MIN_SIMILARITY_LISTS = frozenset(("dense", "dense_names", "dense_windows"))
"""Lists whose scores are raw cosines, which ``min_similarity`` bounds."""


@dataclass(slots=True)
class Lists:
    """The lists of one channel, by perspective.

    Attributes:
        telling: Perspective → its list, without turns that only ask.
        asking: Perspective → the turns of its list that only ask: they take no rank from others.
        failed: Perspective → why it has no list.
    """

    telling: dict[str, list[Scored]] = field(default_factory=dict[str, list[Scored]])
    asking: dict[str, list[Scored]] = field(default_factory=dict[str, list[Scored]])
    failed: dict[str, PPSError] = field(default_factory=dict[str, PPSError])

    def whole(self) -> dict[str, list[Scored]]:
        """Return each list with what only asks behind the rest."""
        return {name: [*list_, *self.asking.get(name, ())] for name, list_ in self.telling.items()}

    def ids(self) -> set[str]:
        return {entry.id for entries in self.whole().values() for entry in entries}

    def put_last(self, asking: AbstractSet[str]) -> None:
        """Move turns that only ask from ``telling`` to ``asking``."""
        if not asking:
            return
        for name, entries in self.telling.items():
            self.asking[name] = [entry for entry in entries if entry.id in asking]
            self.telling[name] = [entry for entry in entries if entry.id not in asking]


@dataclass(frozen=True, slots=True)
class _Ranking:
    """Candidates in order.

    Attributes:
        candidates: Id → what ranking needs of it.
        scores: Id → score after the factors.
        order: Ids, best first.
        duplicates: Ids that were passed over; they only fill a short list.
        moves: Id → why it stands before better scores.
    """

    candidates: Mapping[str, Candidate]
    scores: Mapping[str, float]
    order: list[str]
    duplicates: tuple[str, ...] = ()
    moves: Mapping[str, str] = field(default_factory=dict[str, str])


@dataclass(frozen=True, slots=True)
class _Attempt:
    """One retrieval of a channel, ranked; ``may_grow`` tells that longer lists could fill it."""

    lists: Lists
    ranking: _Ranking
    items: Mapping[str, Item]
    may_grow: bool


async def fill(
    search: Search, channel: ChannelName, profile: ChannelProfile, limit: int
) -> Channel:
    """Return a channel's best ``limit`` hits; full whenever the entity has that many matches.

    Where many candidates are passed over, all that were found are ordered, and then the retrievers
    are asked for longer lists; places that are still empty are filled with the best of those passed
    over. A perspective that fails is named in ``notes``.

    Raises:
        PPSError: No retriever could find anything, or what was found could not be read.
        IsolationError: A foreign row came back; nothing of this recall may be shown.
    """
    return await _ChannelFilling(search, channel, profile, limit).fill()


async def find(search: Search, channel: ChannelName, profile: ChannelProfile, depth: int) -> Lists:
    """Return the lists of the retrievers, at most ``depth`` long each, asked side by side.

    Raises:
        PPSError: All of them failed; the first one's error.
        IsolationError: One of them met a foreign row.
    """
    started = clock.perf_counter()
    embedding_before = search.took_s("embed")
    retrievers = _retrievers(profile)
    # The embedding begins at once.
    dense_first = sorted(retrievers, key=lambda name: not name.startswith("dense"))
    outcomes = await asyncio.gather(
        *(retrievers[name](search, channel, depth) for name in dense_first), return_exceptions=True
    )
    outcome_of = dict(zip(dense_first, outcomes, strict=True))
    lists = Lists()
    for name in retrievers:
        outcome = outcome_of[name]
        if isinstance(outcome, PPSError) and not isinstance(outcome, IsolationError):
            lists.failed[name] = outcome
        elif isinstance(outcome, BaseException):
            raise outcome
        else:
            lists.telling[name] = outcome
    if lists.failed and not any(lists.telling.values()):
        raise next(iter(lists.failed.values()))
    least = profile.min_similarity
    if least is not None:
        for name in lists.telling.keys() & _MIN_SIMILARITY_LISTS:
            lists.telling[name] = [entry for entry in lists.telling[name] if entry.score >= least]
    embedding = search.took_s("embed") - embedding_before
    search.add_time("retrieve", channel, clock.perf_counter() - started - embedding)
    return lists


def _retrievers(profile: ChannelProfile) -> dict[str, Retrieve]:
    """Return name → retriever of those with a weight above 0.

    If only rerankers have a weight, all retrievers bring candidates and count nothing.
    """
    weighted: dict[str, Retrieve] = {}
    unweighted: dict[str, Retrieve] = {}
    for name, weight in profile.perspectives.items():
        retrieve = PERSPECTIVES[name].retrieve
        if retrieve is not None:
            (weighted if weight > 0 else unweighted)[name] = retrieve
    return weighted or unweighted


class _ChannelFilling:
    """Fills one channel of a recall."""

    def __init__(
        self, search: Search, channel: ChannelName, profile: ChannelProfile, limit: int
    ) -> None:
        self._search = search
        self._channel: ChannelName = channel
        self._profile = profile
        self._limit = limit

    async def fill(self) -> Channel:
        depth = self._search.depth(self._profile.depth, self._limit)
        deeper = _DEEPER * depth
        pool = max(_POOL_PER_RESULT * self._limit, _MIN_POOL)
        attempt = await self._attempt(depth, pool, deeper)
        if attempt.may_grow:
            attempt = await self._attempt(deeper, deeper, deeper)
        lists = attempt.lists
        ranking = attempt.ranking
        if self._search.traces is not None:
            self._search.traces[self._channel] = self._trace(lists, ranking)
        with self._timed_fetch():
            hits = await make_hits(
                self._search,
                attempt.items,
                ranking.scores,
                lists.whole(),
                with_signals=self._profile.fusion == "sum",
            )
        return Channel(self._channel, hits, notes=tuple(self._notes(lists)))

    async def _attempt(self, depth: int, pool: int, max_pool: int) -> _Attempt:
        """Retrieve once and rank the best ``pool``; if places stay empty, the best ``max_pool``."""
        lists = await find(self._search, self._channel, self._profile, depth)
        is_cut_short = any(len(entries) >= depth for entries in lists.telling.values())
        lists.put_last(await self._turns_that_only_ask())
        if self._profile.fusion == "sum":
            await self._add_missing_signals(lists)
        ranking, items = await self._rank(lists, pool)
        if len(ranking.order) < self._limit and pool < min(len(lists.ids()), max_pool):
            ranking, items = await self._rank(lists, max_pool)
        may_grow = is_cut_short and len(ranking.order) < self._limit
        return _Attempt(lists, ranking, items, may_grow)

    async def _add_missing_signals(self, lists: Lists) -> None:
        """Add to each list the candidates that only others found.

        A weighted sum needs their signals.
        """
        candidates = lists.ids()
        for name, entries in lists.telling.items():
            score = PERSPECTIVES[name].score
            missing = candidates - {entry.id for entry in entries}
            if score is not None and missing:
                scored = await score(self._search, self._channel, missing)
                lists.telling[name] = [*entries, *scored]

    # ---- Ranking ----

    async def _rank(self, lists: Lists, pool: int) -> tuple[_Ranking, dict[str, Item]]:
        """Return the ranking of the best ``pool`` candidates and the items to show."""
        with self._timed_fetch():
            scored = await self._scored_ranking(lists, pool)
        ranking = await self._without_duplicates(scored)
        shown_ids = self._shown_ids(ranking)
        items = await self._read(shown_ids)
        if len(items) < len(shown_ids):
            # The indexes may differ from the graph for a moment: items that are not in the graph
            # must take no place.
            with self._timed_fetch():
                existing = await fetch(self._search, self._channel, scored.order)
            order = [id_ for id_ in scored.order if id_ in existing]
            ranking = await self._without_duplicates(replace(scored, order=order))
            items = await self._read(self._shown_ids(ranking))
        return ranking, items

    async def _scored_ranking(self, lists: Lists, pool: int) -> _Ranking:
        search = self._search
        fused_scores = self._fused(lists)
        candidates = await self._candidates(fused_scores, pool)
        if await self._rerank(candidates, lists):
            fused_scores = self._fused(lists)
        scores = {id_: score for id_, score in fused_scores.items() if id_ in candidates}
        already_shown = await novelty(search, candidates) if self._profile.novelty else {}
        fresh = await freshness(search, candidates) if self._profile.freshness else {}
        nearest = {entry.id for entry in lists.telling.get("dense", ())[:NEAREST]}
        turn_factors = of_turns(search.text, candidates, self._profile, nearest)
        for factors in (already_shown, fresh, turn_factors):
            for id_, factor in factors.items():
                scores[id_] *= factor
        asking = {entry.id for entries in lists.asking.values() for entry in entries}
        ahead = self._first_in_every_list(lists, scores) - already_shown.keys() - asking
        best_score = max(scores.values(), default=0.0)
        moves = {
            id_: "put first: it is first in every list" for id_ in ahead if scores[id_] < best_score
        }
        moves.update(dict.fromkeys(asking & scores.keys(), "put last: it only asks"))
        importances: Mapping[str, float] = {}
        if self._profile.importance:
            importances = await search.sources.journal.topics.importances(list(scores))

        def place(id_: str) -> tuple[bool, bool, float, float]:
            return id_ in asking, id_ not in ahead, -scores[id_], -importances.get(id_, 0.0)

        return _Ranking(candidates, scores, sorted(scores, key=place), moves=moves)

    async def _candidates(
        self, fused_scores: Mapping[str, float], pool: int
    ) -> dict[str, Candidate]:
        """Return what ranking needs of the best ``pool`` ids that the reader does not have."""
        search = self._search
        excluded = search.request.without
        best = [id_ for id_ in fused_scores if id_ not in excluded][:pool]
        if self._channel == "nodes" and self._profile.fusion == "rrf":
            best = await self._nodes_that_say_something(best)
        if self._channel in ("episodes", "turns"):
            search.excluded_turns.update(id_ for id_ in fused_scores if id_ in excluded)
        read_all = self._channel in OUTLINED or self._changes_order()
        read = best if read_all else best[: self._limit + _SPARE]
        candidates = await outlined(search, self._channel, read)
        if len(candidates) < min(self._limit, len(best)):
            candidates = await outlined(search, self._channel, best)
        return candidates

    async def _rerank(self, candidates: Mapping[str, Candidate], lists: Lists) -> bool:
        """Add the rerankers' lists; return whether any is not empty. One that fails is noted."""
        has_opinion = False
        for name, weight in self._profile.perspectives.items():
            rerank = PERSPECTIVES[name].rerank
            if rerank is None or weight <= 0:
                continue
            try:
                lists.telling[name] = await rerank(self._search, self._channel, candidates)
            except IsolationError:
                raise
            except PPSError as error:
                lists.failed[name] = error
                continue
            has_opinion = has_opinion or bool(lists.telling[name])
        return has_opinion

    def _first_in_every_list(self, lists: Lists, scores: Mapping[str, float]) -> set[str]:
        """Return the ids that all retrievers put first.

        None if the caller says what comes first.
        """
        request = self._search.request
        if request.center or request.weights:
            return set()
        retrieved = [
            entries
            for name, entries in lists.telling.items()
            if PERSPECTIVES[name].finds and not PERSPECTIVES[name].recall_only
        ]
        return unanimous(retrieved, scores)

    def _fused(self, lists: Lists) -> dict[str, float]:
        """Return id → score, best first.

        What only asks is behind the rest and scores less than it.
        """
        telling = self._fused_lists(lists.telling)
        if not any(lists.asking.values()):
            return telling
        asking = self._fused_lists(lists.asking)
        least = min((score for score in telling.values() if score > 0), default=1.0)
        most = max(asking.values()) or 1.0
        behind = {id_: least * score / (2 * most) for id_, score in asking.items()}
        return {**telling, **behind}

    def _fused_lists(self, lists: Mapping[str, list[Scored]]) -> dict[str, float]:
        ordering: dict[str, list[Scored]] = {}
        recalling: list[list[Scored]] = []
        for name, entries in lists.items():
            if PERSPECTIVES[name].recall_only:
                recalling.append(entries)
            else:
                ordering[name] = entries
        weights: Mapping[str, float] = self._profile.perspectives
        if self._profile.fusion == "sum":
            scores = summed(ordering, weights)
        else:
            if self._profile.led:
                weights = led(ordering, weights, len(self._search.words.split()))
            scores = fused(ordering, weights, k=self._profile.k)
        for entries in recalling:
            for entry in entries:
                scores.setdefault(entry.id, 0.0)
        return scores

    async def _nodes_that_say_something(self, nodes: list[str]) -> list[str]:
        """Return the nodes that say more than their name; the entity's own node never does.

        A record has a text, and a node found by its kind answers what is of that kind.
        """
        search = self._search
        journal = search.sources.journal
        others = [id_ for id_ in nodes if id_ != search.sources.self_node]
        telling = await journal.with_facts(others)
        telling |= set(await journal.records.of_nodes(others))
        telling |= set(await search.meant_nodes()) - set(await search.named_nodes())
        bare = [id_ for id_ in others if id_ not in telling]
        items = await fetch(search, "nodes", bare) if bare else {}
        for id_, node in items.items():
            if isinstance(node, Node) and (node.summary or node.attributes):
                telling.add(id_)
        return [id_ for id_ in others if id_ in telling]

    async def _turns_that_only_ask(self) -> frozenset[str]:
        """Return the turns that the profile puts last; none if the query is after questions."""
        if not self._profile.statements_first or asks_what_was_asked(self._search.request.query):
            return frozenset()
        stored = self._search.sources.journal.perspective_data
        return await stored.every(ASKS, "episode", ids_of)

    def _changes_order(self) -> bool:
        """Tell whether anything changes the fused order: then all that may be lifted are read."""
        profile = self._profile
        reranks = any(
            weight > 0 and PERSPECTIVES[name].rerank is not None
            for name, weight in profile.perspectives.items()
        )
        has_turn_factors = profile.substance is not None or any(
            factor != 1 for factor in (profile.assistant, profile.speaker, profile.standing)
        )
        return (
            reranks
            or has_turn_factors
            or profile.freshness
            or profile.novelty
            or profile.pairs
            or profile.distinct
            or profile.latest
            or profile.statements_first
            or profile.importance
            or profile.mmr is not None
            or profile.fusion == "sum"
        )

    # ---- Near duplicates ----

    async def _without_duplicates(self, ranking: _Ranking) -> _Ranking:
        """Put the latest first, pass near duplicates over, spread out: as the profile says."""
        search = self._search
        order = ranking.order
        duplicates: list[str] = []
        moves = dict(ranking.moves)
        if self._profile.latest and asks_now(search.text):
            order = await self._latest_first(ranking)
            remaining = set(order)
            before = [id_ for id_ in ranking.order if id_ in remaining]
            for place, id_ in enumerate(order):
                if before.index(id_) > place:
                    moves[id_] = "moved up: it is the latest that was said of one thing"
        if self._profile.pairs:
            order, duplicates = one_of_each_pair(order, ranking.candidates)
        if self._profile.distinct:
            order, repeated = one_of_each_text(order, ranking.candidates, search.text)
            duplicates += repeated
        if self._profile.mmr is not None:
            order = await self._spread(self._profile.mmr, order)
        return replace(ranking, order=order, duplicates=tuple(duplicates), moves=moves)

    async def _latest_first(self, ranking: _Ranking) -> list[str]:
        search = self._search
        asking = await self._turns_that_only_ask()
        best = [id_ for id_ in ranking.order[: self._limit] if id_ not in asking]
        rest = [id_ for id_ in ranking.order if id_ not in best]
        with self._timed_fetch():
            items = await fetch(search, self._channel, best)
            times = await times_of(search, {id_: ranking.candidates[id_] for id_ in items})
        existing = [id_ for id_ in best if id_ in items]
        relations = search.sources.relations
        ordered = latest_first(
            existing, items, times, ranking.scores, grams(search.words), relations
        )
        return [*ordered, *rest]

    async def _spread(self, balance: float, order: list[str]) -> list[str]:
        query = await self._search.query_vector()
        if query is None:
            return order
        vectors: dict[str, Vector] = {}
        for collection in self._search.collections(self._channel):
            vectors.update(await self._search.sources.indexes.vectors(collection, order))
        return diverse(order, query, vectors, balance=balance, limit=self._limit)

    # ---- Reading and telling ----

    def _shown_ids(self, ranking: _Ranking) -> list[str]:
        return [*ranking.order, *ranking.duplicates][: self._limit]

    async def _read(self, ids: Sequence[str]) -> dict[str, Item]:
        """Return the items, read side by side with the names of their ends."""
        search = self._search
        outlines = (search.outlines.get(id_) for id_ in ids)
        facts = [outline for outline in outlines if isinstance(outline, FactOutline)]
        ends = [end for fact in facts for end in (fact.subject, fact.object)]
        with self._timed_fetch():
            items, names = await asyncio.gather(
                fetch(search, self._channel, ids), names_of(search, ends), return_exceptions=True
            )
        if isinstance(names, IsolationError):
            raise names
        if isinstance(items, BaseException):
            raise items
        if isinstance(names, BaseException):
            raise names
        return items

    def _trace(self, lists: Lists, ranking: _Ranking) -> Trace:
        return Trace(
            fusion=self._profile.fusion,
            weights=self._profile.perspectives,
            min_similarity=self._profile.min_similarity,
            limit=self._limit,
            lists=lists.whole(),
            fused=self._fused(lists),
            scores=ranking.scores,
            order=tuple(ranking.order),
            duplicates=ranking.duplicates,
            moves=ranking.moves,
        )

    def _timed_fetch(self) -> AbstractContextManager[None]:
        return self._search.timed("fetch", self._channel)

    def _notes(self, lists: Lists) -> list[str]:
        notes = [f"{name} left out: {error.message}" for name, error in lists.failed.items()]
        notes += sorted(self._search.warnings)
        if self._profile.goes_by_meaning and self._search.sources.embedder is None:
            notes.insert(0, NO_EMBEDDER)
        return notes
