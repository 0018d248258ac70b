"""What only proposes: memories that may say the same, and links where something is hardly explained."""

from __future__ import annotations

import asyncio
import random
import time as clock
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from pps.config.spaces import spaces
from pps.core.time import now
from pps.core.values import Turn
from pps.ingest.indexer import Progress
from pps.recall.perspectives import PERSPECTIVES
from pps.recall.query import Sources
from pps.recall.thresholds import thresholds
from pps.topics.importance import importance
from pps.topics.portfolio import Portfolio, comparing

Strategy: TypeAlias = Literal["similarity", "temporal", "semantic"]
_NEAR = timedelta(days=1)
_SHOWN, _TEXT = 50, 120
DREAMT = 200
"""Most memories of a dream, the most important."""
_STEPS, _WALKS = 5, 20
"""At most so many steps a walk, and so many walks: a hundred looks."""
_LIKE = 0.5


@dataclass(frozen=True, slots=True)
class Pair:
    """Two memories, how alike they are in a space, in [-1, 1], and how each begins."""

    first: str
    second: str
    space: str
    similarity: float
    texts: tuple[str, str]


@dataclass(frozen=True, slots=True)
class Proposals:
    """Pairs that may say the same, the most alike first, among so many memories; nothing was changed."""

    pairs: tuple[Pair, ...]
    memories: int
    more: bool = False


@dataclass(frozen=True, slots=True)
class Dream:
    """What a dream went over: nothing was changed.

    Attributes:
        replayed: The strongest likenesses among the most important memories.
        proposed: Memories that little explains, and what they share with another in some other way than meaning.
        ended: Whether it was cut short by its time.
    """

    memories: int
    replayed: tuple[Pair, ...] = ()
    proposed: tuple[Pair, ...] = ()
    walks: int = 0
    ended: Literal["done", "time", "dry_run"] = "done"


async def consolidation(
    sources: Sources,
    topics: Portfolio,
    strategy: Strategy,
    min_similarity: float,
    max_memories: int,
) -> Proposals:
    """Return pairs of the most important memories that are at least so alike in meaning.

    ``temporal`` keeps those said within a day of each other, ``semantic`` those of one topic.
    """
    turns = await _important(sources, max_memories)
    likeness = await _meaning(sources, turns)
    topic = {turn: one.id for one in topics.topics for turn in one.members}

    def fits(one: Turn, other: Turn) -> bool:
        if strategy == "temporal":
            return abs(one.occurred_at - other.occurred_at) <= _NEAR
        return strategy == "similarity" or (
            one.uuid in topic and topic[one.uuid] == topic.get(other.uuid)
        )

    pairs = _pairs(turns, likeness, min_similarity, fits)
    return Proposals(tuple(pairs[:_SHOWN]), len(turns), len(pairs) > _SHOWN)


@dataclass(frozen=True, slots=True)
class DreamRequest:
    """Which halves of a dream, and how long at most, 10 to 600 seconds."""

    dry_run: bool = False
    skip_nrem: bool = False
    skip_rem: bool = False
    max_duration_s: float = 300.0


async def dream(sources: Sources, request: DreamRequest, progress: Progress | None = None) -> Dream:
    """Replay the strongest links of what is important, then walk from what is least explained and propose links.

    It can be cancelled at any moment: it writes nothing.
    """
    until = clock.monotonic() + request.max_duration_s
    turns = await _important(sources, DREAMT)
    if request.dry_run or len(turns) < 2:
        return Dream(len(turns), ended="dry_run" if request.dry_run else "done")
    meaning = await _meaning(sources, turns)
    limits = (await thresholds(sources)).get("E1")
    replayed = (
        [] if request.skip_nrem or limits is None else _pairs(turns, meaning, limits.high)[:_SHOWN]
    )
    if progress:
        progress("replay", 1, 2)
    if request.skip_rem:
        return Dream(len(turns), tuple(replayed))
    likes: dict[str, NDArray[np.float32]] = {}
    for id_, _, alike in comparing():
        if clock.monotonic() > until:
            return Dream(len(turns), tuple(replayed), ended="time")
        likes[id_] = await alike(sources, [one.uuid for one in turns])
    proposed, walks = await asyncio.to_thread(_walked, turns, meaning, likes, until)
    return Dream(
        len(turns),
        tuple(replayed),
        tuple(proposed),
        walks,
        "time" if clock.monotonic() > until else "done",
    )


def _walked(
    turns: Sequence[Turn],
    meaning: NDArray[np.float32],
    likes: dict[str, NDArray[np.float32]],
    until: float,
) -> tuple[list[Pair], int]:
    """Walk from the memories whose nearest is farthest, along likeness of any kind; shapes (n, n)."""
    alone = np.nan_to_num(meaning.copy(), nan=0.0)
    np.fill_diagonal(alone, 0.0)
    surprise = 1.0 - alone.max(axis=1)
    chance = random.Random(len(turns))  # noqa: S311 - the same memory is walked the same way
    proposed: dict[tuple[int, int], Pair] = {}
    starts = np.argsort(-surprise, kind="stable")[:_WALKS]
    walks = 0
    for start in map(int, starts):
        at = start
        for _ in range(_STEPS):
            if clock.monotonic() > until or not likes:
                return list(proposed.values()), walks
            space = chance.choice(list(likes))
            row = np.nan_to_num(likes[space][at], nan=0.0).clip(0.0)
            row[[at, start]] = 0.0
            if not row.any():
                continue
            at = chance.choices(range(len(turns)), [float(one) for one in row])[0]
            similarity, low = float(np.nan_to_num(likes[space][start, at])), float(alone[start, at])
            key = min(start, at), max(start, at)
            if similarity >= _LIKE > low and key not in proposed:
                proposed[key] = _pair(turns[start], turns[at], space, similarity)
        walks += 1
    return list(proposed.values()), walks


def _pairs(
    turns: Sequence[Turn],
    likeness: NDArray[np.float32],
    least: float,
    fits: Callable[[Turn, Turn], bool] | None = None,
) -> list[Pair]:
    """Return the pairs that are at least so alike in meaning, the most alike first."""
    upper = np.triu(np.nan_to_num(likeness, nan=-1.0), k=1)
    rows, columns = np.nonzero(upper >= max(least, 1e-6))
    found = [
        _pair(turns[one], turns[other], "E1", float(upper[one, other]))
        for one, other in zip(rows.tolist(), columns.tolist(), strict=True)
        if fits is None or fits(turns[one], turns[other])
    ]
    return sorted(found, key=lambda one: (-one.similarity, one.first, one.second))


def _pair(one: Turn, other: Turn, space: str, similarity: float) -> Pair:
    first, second = (" ".join(turn.content.split())[:_TEXT] for turn in (one, other))
    return Pair(one.uuid, other.uuid, space, round(similarity, 3), (first, second))


async def _important(sources: Sources, most: int) -> list[Turn]:
    moment = now()
    every = await sources.journal.topics.uses()
    uses = sorted(every, key=lambda use: -importance(use.shown, use.at, moment, use.importance))
    return await sources.journal.turns([one.turn for one in uses[:most]])


async def _meaning(sources: Sources, turns: Sequence[Turn]) -> NDArray[np.float32]:
    """Return how alike turns are in meaning, shape (n, n); NaN where nothing tells."""
    perspective = PERSPECTIVES[spaces()["E1"].perspective]
    if perspective.alike is None or not turns:
        return np.full((len(turns), len(turns)), np.nan, dtype=np.float32)
    return await perspective.alike(sources, [one.uuid for one in turns])
