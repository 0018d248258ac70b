"""What only proposes: memories that may say the same, and links where something is hardly explained.

A proposal must be worth a thought: both memories say something, neither is the other's echo in one conversation, each
memory is proposed once, and each pair says why it is proposed.
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
_NEAR = timedelta(days=1)
_SHOWN = 50
_TEXT = 120
DREAMT = 200
"""Most memories of a dream, the most important."""
_STARTS = 20
"""Walks at most."""
_LOOKS = 5
"""Memories compared with each start of a walk: a hundred comparisons in all."""
_REPLAYED = 10
_PROPOSED = 10
_LIKE = 0.5
"""Likeness in some space from which on a walk looks at a memory."""
_FEWEST_WORDS = 2
"""Telling words and numbers of a memory that says something."""
_OVERLAP = 0.5
"""Share of the telling words of the shorter one that two memories which say the same have in common.

Of 30 statements and how somebody would say them again, 28 have it ("I'm allergic to sesame", "no sesame, please").
"""
_GOES_ON = 2
"""Telling words in common of a memory and one that goes on with it."""
_NAMED = 3
_RARE = 3
"""Memories of a dream at most that have a word which links two of them."""


@dataclass(frozen=True, slots=True)
class Pair:
    """Two memories, the earlier first.

    Attributes:
        space: In which of the perspectives they are compared.
        similarity: How alike they are in it, in [-1, 1].
        texts: How each begins.
        reason: Why it is proposed.
        shared: What both name, the rarest first.
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
    """Pairs of which one may go, the most alike first, among so many memories.

    Nothing was changed.
    """

    pairs: tuple[Pair, ...]
    memories: int
    more: bool = False


@dataclass(frozen=True, slots=True)
class Dream:
    """What a dream went over: nothing was changed.

    Attributes:
        replayed: Of the most important memories those of different conversations that go on with
            each other.
        proposed: Memories that little explains, and what they share with another that means
            something else.
        ended: Whether it was cut short by its time.
    """

    memories: int
    replayed: tuple[Pair, ...] = ()
    proposed: tuple[Pair, ...] = ()
    walks: int = 0
    ended: Literal["done", "time", "dry_run"] = "done"


class _Memories:
    """Turns with what is compared of them."""

    def __init__(
        self,
        turns: Sequence[Turn],
        meaning: NDArray[np.float32],
        vectors: Mapping[str, Vector],
        rules: Rules,
    ) -> None:
        self.turns = turns
        self.meaning = np.nan_to_num(meaning, nan=-1.0)
        self.words = [telling_words(_said(turn)) for turn in turns]
        self.having = Counter(word for words in self.words for word in words)
        self._figures = [figures(turn.content) for turn in turns]
        self._statements = [statement_of(turn, vectors) for turn in turns]
        self._rules = rules

    def says_something(self, at: int) -> bool:
        """Tell whether a memory is more than a reply or a question."""
        names = len(self.words[at]) + len(self._figures[at])
        return names >= _FEWEST_WORDS and not is_question(self.turns[at].content)

    def may_pair(self, left: int, other: int) -> bool:
        """Tell whether a proposal of two memories would not restate one: an echo within a conversation does."""
        first = self.turns[left]
        second = self.turns[other]
        return (
            self.says_something(left)
            and self.says_something(other)
            and (first.session != second.session or first.role == second.role)
        )

    def shared(self, first: int, other: int) -> frozenset[str]:
        return frozenset(self.words[first].keys() & self.words[other].keys())

    def says_the_same(self, first: int, other: int) -> bool:
        """Tell whether two memories name the same things, and neither a number or day in place of the other's."""
        shorter = min(len(self.words[first]), len(self.words[other]))
        own = self._figures[first]
        others = self._figures[other]
        return len(self.shared(first, other)) >= _OVERLAP * shorter and (
            own <= others or others <= own
        )

    def amends(self, first: int, other: int) -> bool:
        """Tell whether the later of two memories surely amends the earlier."""
        early, late = sorted((first, other), key=lambda at: self.turns[at].occurred_at)
        if not self.shared(first, other):
            return False
        amendments = self._rules.amendments([self._statements[early]], [self._statements[late]])
        return any(amendment.sure for amendment in amendments.values())

    def pair(self, left: int, other: int, space: str, similarity: float, reason: Reason) -> Pair:
        first, second = sorted(
            (left, other), key=lambda at: (self.turns[at].occurred_at, self.turns[at].seq)
        )
        texts = [" ".join(self.turns[at].content.split())[:_TEXT] for at in (first, second)]
        shared = sorted(self.shared(left, other), key=lambda word: (self.having[word], word))
        return Pair(
            first=self.turns[first].uuid,
            second=self.turns[second].uuid,
            space=space,
            similarity=round(similarity, 3),
            texts=(texts[0], texts[1]),
            reason=reason,
            shared=tuple(self.words[left][word] for word in shared[:_NAMED]),
        )


async def consolidation(
    sources: Sources,
    topics: Portfolio,
    strategy: Strategy,
    min_similarity: float | None,
    max_memories: int,
) -> Proposals:
    """Return pairs of the most important memories of which one may go: both say the same, or one amends the other.

    ``temporal`` keeps those said within a day of each other, ``semantic`` those of one topic. Two say the same from
    ``min_similarity`` on, a cosine; from the model's measured one if None.
    """
    memories = await _memories(sources, max_memories)
    limits = (await thresholds(sources)).get("E1")
    topic = {turn: topic.id for topic in topics.topics for turn in topic.members}
    same = min_similarity
    if same is None:
        same = limits.same if limits and limits.same is not None else _SAME
    near = min(same, limits.high if limits else same)

    def fits(left: int, other: int) -> bool:
        first = memories.turns[left]
        second = memories.turns[other]
        if strategy == "temporal":
            return abs(first.occurred_at - second.occurred_at) <= _NEAR
        return strategy == "similarity" or (
            first.uuid in topic and topic[first.uuid] == topic.get(second.uuid)
        )

    pairs = await asyncio.to_thread(_repeated, memories, same, near, fits)
    return Proposals(tuple(pairs[:_SHOWN]), len(memories.turns), len(pairs) > _SHOWN)


_SAME = 0.925
"""The cosine from which on two memories may say the same for a model of which nothing was measured: the seed's."""


@dataclass(frozen=True, slots=True)
class DreamRequest:
    """Which halves of a dream, and how long at most, 10 to 600 seconds."""

    dry_run: bool = False
    skip_nrem: bool = False
    skip_rem: bool = False
    max_duration_s: float = 300.0


async def dream(sources: Sources, request: DreamRequest, progress: Progress | None = None) -> Dream:
    """Replay the links of what is important, then walk from what is least explained and propose links.

    It can be cancelled at any moment: it writes nothing.
    """
    until = clock.monotonic() + request.max_duration_s
    memories = await _memories(sources, DREAMT)
    count = len(memories.turns)
    if request.dry_run or count < 2:
        return Dream(count, ended="dry_run" if request.dry_run else "done")
    limits = (await thresholds(sources)).get("E1")
    high = limits.high if limits else _SAME
    replayed: list[Pair] = []
    if not request.skip_nrem:
        replayed = await asyncio.to_thread(_replayed, memories, high)
    if progress:
        progress("replay", 1, 2)
    if request.skip_rem:
        return Dream(count, tuple(replayed))
    likes: dict[str, NDArray[np.float32]] = {}
    for id_, _, alike in comparing():
        if clock.monotonic() > until:
            return Dream(count, tuple(replayed), ended="time")
        likes[id_] = await alike(sources, [turn.uuid for turn in memories.turns])
    proposed, walks = await asyncio.to_thread(_walked, memories, likes, high, until)
    ended = "time" if clock.monotonic() > until else "done"
    return Dream(count, tuple(replayed), tuple(proposed), walks, ended)


def _repeated(
    memories: _Memories, same: float, near: float, fits: Callable[[int, int], bool]
) -> list[Pair]:
    """Return pairs that are at least so alike and say the same, or so near and one amends the other."""
    pairs: list[tuple[int, int, Pair]] = []
    for first, other, similarity in _alike(memories, near):
        if not memories.may_pair(first, other) or not fits(first, other):
            continue
        if memories.amends(first, other):
            reason: Reason = "amends it"
        elif similarity >= same and memories.says_the_same(first, other):
            reason = "says the same"
        else:
            continue
        pairs.append((first, other, memories.pair(first, other, "E1", similarity, reason)))
    return _once_each(pairs)


def _replayed(memories: _Memories, high: float) -> list[Pair]:
    """Return memories of different conversations that go on with each other."""
    pairs = [
        (first, other, memories.pair(first, other, "E1", similarity, "goes on with it"))
        for first, other, similarity in _alike(memories, high)
        if memories.may_pair(first, other)
        and memories.turns[first].session != memories.turns[other].session
        and len(memories.shared(first, other)) >= _GOES_ON
        and not memories.says_the_same(first, other)
        and not memories.amends(first, other)
    ]
    return _once_each(pairs)[:_REPLAYED]


def _walked(
    memories: _Memories, likes: dict[str, NDArray[np.float32]], high: float, until: float
) -> tuple[list[Pair], int]:
    """Walk from the memories whose nearest is farthest to what is most like them in any space.

    Shapes (n, n).

    A link is one to a memory of another meaning, of another conversation, that shares a rare word
    with the first.
    """
    alone = np.clip(memories.meaning, 0.0, None)
    np.fill_diagonal(alone, 0.0)
    surprise = 1.0 - alone.max(axis=1)
    order: list[int] = np.argsort(-surprise, kind="stable").tolist()
    starts = [at for at in order if memories.says_something(at)]
    pairs: list[tuple[int, int, Pair]] = []
    walks = 0
    for start in starts[:_STARTS]:
        if clock.monotonic() > until:
            break
        walks += 1
        for similarity, space, at in _nearest(likes, start):
            shared = memories.shared(start, at)
            rare = [word for word in shared if memories.having[word] <= _RARE]
            if (
                rare
                and memories.may_pair(start, at)
                and memories.turns[start].session != memories.turns[at].session
                and memories.meaning[start, at] < high
            ):
                pairs.append((start, at, memories.pair(start, at, space, similarity, "shares")))
    return _once_each(pairs)[:_PROPOSED], walks


def _nearest(likes: dict[str, NDArray[np.float32]], start: int) -> list[tuple[float, str, int]]:
    """Return likeness, space and place of the memories most like one, each once, the most alike first."""
    best: dict[int, tuple[float, str]] = {}
    for space, likeness in likes.items():
        row = np.nan_to_num(likeness[start], nan=0.0).copy()
        row[start] = 0.0
        for at in np.argsort(-row, kind="stable")[:_LOOKS].tolist():
            if row[at] >= _LIKE and row[at] > best.get(at, (0.0, ""))[0]:
                best[at] = float(row[at]), space
    candidates = [(similarity, space, at) for at, (similarity, space) in best.items()]
    return sorted(candidates, key=lambda candidate: (-candidate[0], candidate[2]))[:_LOOKS]


def _alike(memories: _Memories, least: float) -> Iterator[tuple[int, int, float]]:
    """Yield the pairs that are at least so alike in meaning, the most alike first."""
    upper = np.triu(memories.meaning, k=1)
    rows, columns = np.nonzero(upper >= max(least, 1e-6))
    order = np.argsort(-upper[rows, columns], kind="stable")
    for first, other in zip(rows[order].tolist(), columns[order].tolist(), strict=True):
        yield first, other, float(upper[first, other])


def _once_each(candidates: Sequence[tuple[int, int, Pair]]) -> list[Pair]:
    """Return the first pair of each memory and of each text: what is like many is proposed once."""
    pairs: list[Pair] = []
    taken: set[int | str] = set()
    for first, other, pair in candidates:
        names = {first, other, *map(fold, pair.texts)}
        if taken.isdisjoint(names):
            taken |= names
            pairs.append(pair)
    return pairs


def _said(turn: Turn) -> str:
    return turn.content.removeprefix(f"{turn.actor or turn.role}:").strip()


async def _memories(sources: Sources, most: int) -> _Memories:
    """Return the most important memories with what is compared of them."""
    moment = now()
    every = await sources.journal.topics.uses()
    uses = sorted(every, key=lambda use: -importance(use.shown, use.at, moment, use.importance))
    turns = await sources.journal.turns([use.turn for use in uses[:most]])
    meaning = await _meaning(sources, turns)
    vectors = await sources.indexes.vectors("episodes", [turn.uuid for turn in turns])
    rules = rules_for(model_of(sources))
    return await asyncio.to_thread(_Memories, turns, meaning, vectors, rules)


async def _meaning(sources: Sources, turns: Sequence[Turn]) -> NDArray[np.float32]:
    """Return how alike turns are in meaning, shape (n, n); NaN where nothing tells."""
    perspective = PERSPECTIVES[spaces()["E1"].perspective]
    if perspective.alike is None or not turns:
        return np.full((len(turns), len(turns)), np.nan, dtype=np.float32)
    return await perspective.alike(sources, [turn.uuid for turn in turns])
