"""Proposals that change nothing: memories that may repeat each other, and links between memories.

A proposed pair must be worth reading: both memories have content, neither echoes the other within
one conversation, each memory is in one pair at most, and each pair carries the reason for it.
"""

from __future__ import annotations

import asyncio
import time as clock
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from pps.config.spaces import spaces
from pps.core.text import fold, is_question
from pps.core.time import now
from pps.core.values import Turn, Vector
from pps.features.topics.portfolio import comparing
from pps.features.topics.topic_names import figures, telling_words
from pps.features.topics.topic_values import Portfolio, importance
from pps.ingest.indexer import Progress
from pps.recall.amending import Rules, rules_for
from pps.recall.perspectives import PERSPECTIVES
from pps.recall.search import Sources
from pps.recall.superseding import statement_of
from pps.recall.thresholds import model_of, thresholds

Strategy: TypeAlias = Literal["similarity", "temporal", "semantic"]
Reason: TypeAlias = Literal["says the same", "amends it", "goes on with it", "shares"]
_CLOSE_IN_TIME = timedelta(days=1)
_MOST_PAIRS = 50
_TEXT_LENGTH = 120
DREAMT = 200
"""Number of memories that a dream reads: the most important ones."""
_MOST_WALKS = 20
"""Most walks of a dream."""
_MEMORIES_PER_WALK = 5
"""Memories compared with the start of each walk: at most a hundred comparisons in all."""
_MOST_REPLAYED = 10
_MOST_PROPOSED = 10
_LEAST_LIKENESS = 0.5
"""Least likeness in any space of a memory that a walk compares."""
_FEWEST_WORDS = 2
"""Fewest content words and numbers of a memory that is worth proposing."""
_LEAST_OVERLAP = 0.5
"""Share of the shorter memory's content words that the other has if both say the same.

28 of 30 statements and their rewordings reach it ("I'm allergic to sesame", "no sesame, please").
"""
_SHARED_WORDS = 2
"""Content words that a memory and its continuation have in common at least."""
_MOST_SHARED = 3
_RARE_COUNT = 3
"""A word links two memories of a dream if no more than this many of them contain it."""


@dataclass(frozen=True, slots=True)
class Pair:
    """Two memories, the earlier first.

    Attributes:
        space: The perspective in which they are compared.
        similarity: Their similarity in that perspective, in [-1, 1].
        texts: The beginning of each text.
        reason: Why the pair is proposed.
        shared: Words that both contain, the rarest first.
    """

    first: str
    second: str
    space: str
    similarity: float
    texts: tuple[str, str]
    reason: Reason
    shared: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Proposals:
    """Pairs of memories of which one may be redundant, the most alike first.

    Attributes:
        memories: How many memories were compared.
        more: There are more pairs than these.
    """

    pairs: tuple[Pair, ...]
    memories: int
    more: bool = False


@dataclass(frozen=True, slots=True)
class Dream:
    """The result of a dream, which changes nothing.

    Attributes:
        memories: How many memories it read.
        replayed: Important memories of different conversations that continue each other.
        proposed: Memories unlike all others, each with a memory of another meaning that shares a
            rare word with it.
        walks: How many walks were made.
        ended: ``time`` if the time limit cut it short.
    """

    memories: int
    replayed: tuple[Pair, ...] = ()
    proposed: tuple[Pair, ...] = ()
    walks: int = 0
    ended: Literal["done", "time", "dry_run"] = "done"


class _Memories:
    """Turns with their words, numbers, statements and similarities.

    Memories are addressed by their position in ``turns``; ``meaning`` has shape (n, n).
    """

    def __init__(
        self,
        turns: Sequence[Turn],
        meaning: NDArray[np.float32],
        vectors: Mapping[str, Vector],
        rules: Rules,
    ) -> None:
        self.turns = turns
        self.meaning = np.nan_to_num(meaning, nan=-1.0)
        self.words = [telling_words(_text_of(turn)) for turn in turns]
        self.having = Counter(word for words in self.words for word in words)
        self._figures = [figures(turn.content) for turn in turns]
        self._statements = [statement_of(turn, vectors) for turn in turns]
        self._rules = rules

    def says_something(self, at: int) -> bool:
        """Return whether a memory is more than a reply or a question."""
        count = len(self.words[at]) + len(self._figures[at])
        return count >= _FEWEST_WORDS and not is_question(self.turns[at].content)

    def may_pair(self, left: int, right: int) -> bool:
        """Return whether both memories have content and neither echoes the other.

        Within one conversation the answer of the other role echoes a statement.
        """
        first = self.turns[left]
        second = self.turns[right]
        return (
            self.says_something(left)
            and self.says_something(right)
            and (first.session != second.session or first.role == second.role)
        )

    def shared(self, first: int, other: int) -> frozenset[str]:
        return frozenset(self.words[first].keys() & self.words[other].keys())

    def says_the_same(self, first: int, other: int) -> bool:
        """Return whether two memories share most words and have no contradicting numbers or days.

        Numbers contradict when each memory has one that the other lacks.
        """
        shorter = min(len(self.words[first]), len(self.words[other]))
        if len(self.shared(first, other)) < _LEAST_OVERLAP * shorter:
            return False
        first_figures = self._figures[first]
        other_figures = self._figures[other]
        return first_figures <= other_figures or other_figures <= first_figures

    def amends(self, first: int, other: int) -> bool:
        """Return whether the later of two memories certainly amends the earlier."""
        early, late = sorted((first, other), key=lambda at: self.turns[at].occurred_at)
        if not self.shared(first, other):
            return False
        amendments = self._rules.amendments([self._statements[early]], [self._statements[late]])
        return any(amendment.sure for amendment in amendments.values())

    def pair(self, left: int, other: int, space: str, similarity: float, reason: Reason) -> Pair:
        first, second = sorted(
            (left, other), key=lambda at: (self.turns[at].occurred_at, self.turns[at].seq)
        )
        texts = [" ".join(self.turns[at].content.split())[:_TEXT_LENGTH] for at in (first, second)]
        shared = sorted(self.shared(left, other), key=lambda word: (self.having[word], word))
        return Pair(
            first=self.turns[first].uuid,
            second=self.turns[second].uuid,
            space=space,
            similarity=round(similarity, 3),
            texts=(texts[0], texts[1]),
            reason=reason,
            shared=tuple(self.words[left][word] for word in shared[:_MOST_SHARED]),
        )


async def consolidation(
    sources: Sources,
    topics: Portfolio,
    strategy: Strategy,
    min_similarity: float | None,
    max_memories: int,
) -> Proposals:
    """Return pairs of important memories that say the same, or of which one amends the other.

    Args:
        sources: The entity's own.
        topics: The entity's topics.
        strategy: ``temporal`` keeps pairs within a day of each other, ``semantic`` pairs of one
            topic, ``similarity`` all.
        min_similarity: Cosine from which on two memories may say the same; the embedding model's
            measured threshold if None.
        max_memories: How many memories are compared, the most important first.
    """
    memories = await _load_memories(sources, max_memories)
    limits = (await thresholds(sources)).get("E1")
    topic_of = {turn: topic.id for topic in topics.topics for turn in topic.members}
    same = min_similarity
    if same is None:
        same = limits.same if limits and limits.same is not None else _DEFAULT_SAME
    near = min(same, limits.high if limits else same)

    def fits(left: int, right: int) -> bool:
        first = memories.turns[left]
        second = memories.turns[right]
        if strategy == "temporal":
            return abs(first.occurred_at - second.occurred_at) <= _CLOSE_IN_TIME
        if strategy == "semantic":
            topic = topic_of.get(first.uuid)
            return topic is not None and topic == topic_of.get(second.uuid)
        return True

    pairs = await asyncio.to_thread(_restating_pairs, memories, same, near, fits)
    return Proposals(tuple(pairs[:_MOST_PAIRS]), len(memories.turns), len(pairs) > _MOST_PAIRS)


_DEFAULT_SAME = 0.925
"""Cosine from which on two memories may say the same, for a model without measured thresholds.

The value of the design document.
"""


@dataclass(frozen=True, slots=True)
class DreamRequest:
    """Which halves of a dream to run, and for how long (``max_duration_s``, 10 to 600 seconds)."""

    dry_run: bool = False
    skip_nrem: bool = False
    skip_rem: bool = False
    max_duration_s: float = 300.0


async def dream(sources: Sources, request: DreamRequest, progress: Progress | None = None) -> Dream:
    """Pair important memories that continue each other, then propose links for isolated ones.

    It writes nothing, so it can be cancelled at any moment.
    """
    until = clock.monotonic() + request.max_duration_s
    memories = await _load_memories(sources, DREAMT)
    count = len(memories.turns)
    if request.dry_run or count < 2:
        return Dream(count, ended="dry_run" if request.dry_run else "done")
    limits = (await thresholds(sources)).get("E1")
    high = limits.high if limits else _DEFAULT_SAME
    replayed: list[Pair] = []
    if not request.skip_nrem:
        replayed = await asyncio.to_thread(_continuing_pairs, memories, high)
    if progress:
        progress("replay", 1, 2)
    if request.skip_rem:
        return Dream(count, tuple(replayed))
    likeness_by_space: dict[str, NDArray[np.float32]] = {}
    for id_, _, alike in comparing():
        if clock.monotonic() > until:
            return Dream(count, tuple(replayed), ended="time")
        likeness_by_space[id_] = await alike(sources, [turn.uuid for turn in memories.turns])
    proposed, walks = await asyncio.to_thread(_walk, memories, likeness_by_space, high, until)
    ended = "time" if clock.monotonic() > until else "done"
    return Dream(count, tuple(replayed), tuple(proposed), walks, ended)


def _restating_pairs(
    memories: _Memories, same: float, near: float, fits: Callable[[int, int], bool]
) -> list[Pair]:
    """Return pairs that say the same, or of which one amends the other.

    Args:
        memories: All that are compared.
        same: Least cosine of two memories that say the same.
        near: Least cosine of two memories of which one amends the other.
        fits: Whether the strategy allows a pair.
    """
    pairs: list[tuple[int, int, Pair]] = []
    for first, other, similarity in _pairs_from(memories, near):
        if not memories.may_pair(first, other) or not fits(first, other):
            continue
        if memories.amends(first, other):
            reason: Reason = "amends it"
        elif similarity >= same and memories.says_the_same(first, other):
            reason = "says the same"
        else:
            continue
        pairs.append((first, other, memories.pair(first, other, "E1", similarity, reason)))
    return _first_of_each(pairs)


def _continuing_pairs(memories: _Memories, high: float) -> list[Pair]:
    """Return pairs of memories of different conversations that continue each other."""
    pairs = [
        (first, other, memories.pair(first, other, "E1", similarity, "goes on with it"))
        for first, other, similarity in _pairs_from(memories, high)
        if memories.may_pair(first, other)
        and memories.turns[first].session != memories.turns[other].session
        and len(memories.shared(first, other)) >= _SHARED_WORDS
        and not memories.says_the_same(first, other)
        and not memories.amends(first, other)
    ]
    return _first_of_each(pairs)[:_MOST_REPLAYED]


def _walk(
    memories: _Memories,
    likeness_by_space: dict[str, NDArray[np.float32]],
    high: float,
    until: float,
) -> tuple[list[Pair], int]:
    """Walk from isolated memories to those most like them in any space, and propose links.

    A walk starts at a memory whose nearest neighbour in meaning is far away. A link leads to a
    memory of another conversation and another meaning that shares a rare word with the start.

    Args:
        memories: All of the dream.
        likeness_by_space: Space → likeness of the memories in it, shape (n, n).
        high: Cosine from which on two memories have the same meaning.
        until: Monotonic time at which walking ends.

    Returns:
        The proposed pairs, and the number of walks.
    """
    others = np.clip(memories.meaning, 0.0, None)
    np.fill_diagonal(others, 0.0)
    isolation = 1.0 - others.max(axis=1)
    order: list[int] = np.argsort(-isolation, kind="stable").tolist()
    starts = [at for at in order if memories.says_something(at)]
    pairs: list[tuple[int, int, Pair]] = []
    walks = 0
    for start in starts[:_MOST_WALKS]:
        if clock.monotonic() > until:
            break
        walks += 1
        for similarity, space, at in _nearest(likeness_by_space, start):
            shared = memories.shared(start, at)
            rare = [word for word in shared if memories.having[word] <= _RARE_COUNT]
            if (
                rare
                and memories.may_pair(start, at)
                and memories.turns[start].session != memories.turns[at].session
                and memories.meaning[start, at] < high
            ):
                pairs.append((start, at, memories.pair(start, at, space, similarity, "shares")))
    return _first_of_each(pairs)[:_MOST_PROPOSED], walks


def _nearest(
    likeness_by_space: dict[str, NDArray[np.float32]], start: int
) -> list[tuple[float, str, int]]:
    """Return the memories most like the start, each with its best space, the most alike first.

    Returns:
        Likeness, space and position of each memory.
    """
    best: dict[int, tuple[float, str]] = {}
    for space, likeness in likeness_by_space.items():
        row = np.nan_to_num(likeness[start], nan=0.0).copy()
        row[start] = 0.0
        for at in np.argsort(-row, kind="stable")[:_MEMORIES_PER_WALK].tolist():
            if row[at] >= _LEAST_LIKENESS and row[at] > best.get(at, (0.0, ""))[0]:
                best[at] = float(row[at]), space
    candidates = [(similarity, space, at) for at, (similarity, space) in best.items()]
    return sorted(candidates, key=lambda candidate: (-candidate[0], candidate[2]))[
        :_MEMORIES_PER_WALK
    ]


def _pairs_from(memories: _Memories, least: float) -> Iterator[tuple[int, int, float]]:
    """Yield the pairs whose similarity in meaning is at least ``least``, the most alike first."""
    upper = np.triu(memories.meaning, k=1)
    rows, columns = np.nonzero(upper >= max(least, 1e-6))
    order = np.argsort(-upper[rows, columns], kind="stable")
    for first, other in zip(rows[order].tolist(), columns[order].tolist(), strict=True):
        yield first, other, float(upper[first, other])


def _first_of_each(candidates: Sequence[tuple[int, int, Pair]]) -> list[Pair]:
    """Return candidates in order, without those that repeat a memory or a text."""
    pairs: list[Pair] = []
    taken: set[int | str] = set()
    for first, other, pair in candidates:
        keys = {first, other, *map(fold, pair.texts)}
        if taken.isdisjoint(keys):
            taken |= keys
            pairs.append(pair)
    return pairs


def _text_of(turn: Turn) -> str:
    """Return a turn's text without the name of its speaker in front."""
    return turn.content.removeprefix(f"{turn.actor or turn.role}:").strip()


async def _load_memories(sources: Sources, most: int) -> _Memories:
    """Return the most important memories, at most ``most``, with their similarities."""
    moment = now()
    every = await sources.journal.topics.uses()
    uses = sorted(every, key=lambda use: -importance(use.shown, use.at, moment, use.importance))
    turns = await sources.journal.turns([use.turn for use in uses[:most]])
    meaning = await _meaning_matrix(sources, turns)
    vectors = await sources.indexes.vectors("episodes", [turn.uuid for turn in turns])
    rules = rules_for(model_of(sources))
    return await asyncio.to_thread(_Memories, turns, meaning, vectors, rules)


async def _meaning_matrix(sources: Sources, turns: Sequence[Turn]) -> NDArray[np.float32]:
    """Return the similarity of turns in meaning, shape (n, n); NaN where it is unknown."""
    perspective = PERSPECTIVES[spaces()["E1"].perspective]
    if perspective.alike is None or not turns:
        return np.full((len(turns), len(turns)), np.nan, dtype=np.float32)
    return await perspective.alike(sources, [turn.uuid for turn in turns])
