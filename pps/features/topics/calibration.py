"""What the similarities of each perspective mean in one memory: thresholds from its own texts, kept with it."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from pps.config.spaces import CATEGORY_WEIGHTS, Category, Thresholds, spaces
from pps.core.errors import InvalidRequest
from pps.features.topics.grouping import IN_COMMON, centred, to_middle
from pps.features.topics.portfolio import comparing
from pps.ingest.indexer import Progress
from pps.recall.search import Sources
from pps.recall.thresholds import keep_thresholds, model_of, own_thresholds

MOST_READ = 1_000
"""The newest turns that are compared."""
FEWEST_READ = 40
"""Fewer turns than these give no threshold."""
_BEFORE = 5
_FEWEST_BEFORE = 3
_FEWEST_NEAREST = 20
_RARE = 99
"""Percentile of unrelated pairs: one pair in a hundred reaches it."""
_USUAL = 5
"""Percentile of turns that continue a session: 95 of 100 reach it."""
_TELLS = 0.6
"""Share of pairs (a turn among its own session's, one among another's) that must be told apart for a low threshold."""
_NOT_BY_SESSIONS = ("E10",)
"""What sessions tell nothing of: a turn is compared with those around it, which are its session's in any case."""
_WAITING = 500


@dataclass(frozen=True, slots=True)
class PerspectiveState:
    """One perspective and what its similarities mean in this memory.

    Attributes:
        category_weight, topic_weight: What it counts in a memory's relevance, and where two
            memories agree; 0 to 1.
        high: Similarity from which on a memory is worth injecting; None where similarity is no
            question.
        low: Below it a turn is like none of its session's before it; None where that is no
            question, or nothing tells.
        left: Below it the two newest turns have left their session's subject; of meaning alone.
        measured: With this memory's texts, for its embedding model, or neither; None where there
            are no thresholds.
        waiting: Features that could not be made yet, at most 500; 0 where all are there, and where
            it keeps none.
    """

    id: str
    name: str
    finds: str
    category: Category
    category_weight: float
    topic_weight: float
    high: float | None = None
    low: float | None = None
    left: float | None = None
    measured: Literal["here", "for the model", "for any model"] | None = None
    waiting: int = 0


@dataclass(frozen=True, slots=True)
class PerspectiveStates:
    """All thirteen, E1 to E13, for the embedding model in use.

    ``read`` is how many turns were compared just now.
    """

    model: str
    perspectives: tuple[PerspectiveState, ...]
    read: int = 0


async def states(sources: Sources, read: int = 0) -> PerspectiveStates:
    """Return the thirteen with the thresholds that hold in this memory."""
    own = await own_thresholds(sources)
    model = model_of(sources)
    perspective_states: list[PerspectiveState] = []
    for id_, space in spaces().items():
        limits = space.threshold(model, own.get(id_))
        measured = (
            "here"
            if id_ in own
            else "for the model"
            if model in space.thresholds
            else "for any model"
        )
        perspective_states.append(
            PerspectiveState(
                id_,
                space.perspective,
                space.finds,
                space.category,
                CATEGORY_WEIGHTS[space.category],
                space.topic_weight,
                limits.high if limits else None,
                limits.low if limits else None,
                limits.left if limits else None,
                measured if limits else None,
                len(await sources.journal.perspective_data.failed(space.perspective, _WAITING)),
            )
        )
    return PerspectiveStates(model, tuple(perspective_states), read)


async def calibrate(sources: Sources, progress: Progress | None = None) -> PerspectiveStates:
    """Measure the thresholds with the newest of this memory's own turns, keep them with it, and return all.

    Raises:
        InvalidRequest: There are fewer than ``FEWEST_READ`` turns, or all are of one session; nothing is changed.
    """
    turns = (await sources.journal.recent(MOST_READ))[::-1]  # the oldest first
    sessions = [turn.session for turn in turns]
    if len(turns) < FEWEST_READ or len(set(sessions)) < 2:
        raise InvalidRequest(
            "entity",
            f"has too little to measure with: at least {FEWEST_READ} turns in two sessions are "
            "needed",
        )
    thresholds_by_space: dict[str, Thresholds] = {}
    compared = [space for space in comparing() if space[0] not in _NOT_BY_SESSIONS]
    for done, (id_, _, alike) in enumerate(compared):
        if progress:
            progress(id_, done, len(compared))
        likeness = await alike(sources, [turn.uuid for turn in turns])
        limits = await asyncio.to_thread(measured_thresholds, likeness, sessions)
        if limits and id_ == "E1":
            left = await asyncio.to_thread(measured_left, likeness, sessions)
            limits = limits.model_copy(update={"left": left})
        if limits:
            thresholds_by_space[id_] = limits
    await keep_thresholds(sources, thresholds_by_space)
    return await states(sources, len(turns))


async def uncalibrate(sources: Sources) -> PerspectiveStates:
    """Forget a memory's own thresholds for the model in use, so that those that are shipped hold again."""
    await keep_thresholds(sources, {})
    return await states(sources)


def measured_thresholds(
    likeness: NDArray[np.float32], sessions: Sequence[str]
) -> Thresholds | None:
    """Return what similarities mean, told by sessions.

    None where too few memories have the feature.

    Args:
        likeness: In [-1, 1], shape (n, n), the oldest first; NaN where one of two has no feature.
        sessions: Of each.
    """
    names = np.array(sessions)
    apart = likeness[np.triu(names[:, None] != names[None, :], k=1)]
    apart = apart[~np.isnan(apart)]
    own, others = _nearest(likeness, sessions)
    if len(apart) < FEWEST_READ or len(own) < _FEWEST_NEAREST:
        return None
    high = float(np.percentile(apart, _RARE))
    low = float(np.percentile(own, _USUAL))
    above = (own[:, None] > others[None, :]).mean() + (own[:, None] == others[None, :]).mean() / 2
    low_threshold = low if above >= _TELLS and low > 0 else None
    return Thresholds(
        high=round(min(1.0, max(0.01, high)), 3),
        low=None if low_threshold is None else round(low_threshold, 3),
    )


def measured_left(likeness: NDArray[np.float32], sessions: Sequence[str]) -> float | None:
    """Return below which the two newest turns of a session have left its subject: what 95 of 100 pairs do not.

    Args:
        likeness: Cosines, shape (n, n), the oldest first; NaN where one of two has no vector.
        sessions: Of each.

    Returns:
        A cosine as ``divergence`` compares it; None where there are too few turns in sessions of some length.
    """
    known = ~np.isnan(np.diagonal(likeness))
    if known.sum() < IN_COMMON:
        return None
    products = centred(np.nan_to_num(likeness, nan=0.0), known)
    places: dict[str, list[int]] = defaultdict(list)
    values: list[float] = []
    for at in np.flatnonzero(known).tolist():
        before = places[sessions[at]]
        if len(before) > _FEWEST_BEFORE:
            values.append(to_middle(products, [at, before[-1]], before[-1 - 2 * _BEFORE : -1]))
        before.append(at)
    return (
        round(float(np.percentile(values, _USUAL)), 3) if len(values) >= _FEWEST_NEAREST else None
    )


def _nearest(
    likeness: NDArray[np.float32], sessions: Sequence[str]
) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Return of each turn the greatest likeness to the five before it in its session, and to five of another one."""
    places: dict[str, list[int]] = defaultdict(list)
    own: list[float] = []
    others: list[float] = []
    for at, session in enumerate(sessions):
        before = places[session][-_BEFORE:]
        around = (place % len(sessions) for place in range(at, at + len(sessions)))
        other = list(islice((place for place in around if sessions[place] != session), _BEFORE))
        for nearest, among in ((own, before), (others, other)):
            near = likeness[at, among]
            near = near[~np.isnan(near)]
            if len(near) >= _FEWEST_BEFORE:
                nearest.append(float(near.max()))
        places[session].append(at)
    return np.array(own, dtype=np.float32), np.array(others or [0.0], dtype=np.float32)
