"""Calibration: each perspective's thresholds of similarity, measured with one memory's texts."""

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
from pps.features.topics.portfolio import comparing
from pps.features.topics.topic_values import IN_COMMON, centred, to_middle
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
_UNRELATED_PERCENTILE = 99
"""Percentile of unrelated pairs: one pair in a hundred reaches it."""
_CONTINUING_PERCENTILE = 5
"""Percentile of turns that continue a session: 95 of 100 reach it."""
_LEAST_TOLD_APART = 0.6
"""Area under the ROC curve of own-session against other-session likeness, for a ``low`` threshold.

It is the share of pairs of both in which the likeness to the own session is the greater.
"""
_NOT_MEASURED_BY_SESSIONS = ("E10",)
"""Spaces that compare a turn with its neighbours, which are always of the same session."""
_MOST_WAITING = 500


@dataclass(frozen=True, slots=True)
class PerspectiveState:
    """One perspective and what its similarities mean in this memory.

    Attributes:
        finds: What the perspective finds, as a sentence.
        category_weight: Weight in a memory's relevance, 0 to 1.
        topic_weight: Weight in the agreement of two memories, 0 to 1.
        high: Similarity from which on a memory is worth injecting; None if the perspective has no
            similarity.
        low: Similarity below which a turn differs from the turns before it in its session; None
            if that is not defined or could not be measured.
        left: Similarity below which the two newest turns have left their session's subject; only
            for the perspective of meaning.
        measured: Whether the thresholds come from this memory's texts, from its embedding model
            or from neither; None without thresholds.
        waiting: Number of features that could not be computed yet, at most 500.
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
    """The thirteen perspectives, E1 to E13, for the embedding model in use.

    Attributes:
        read: Number of turns that a calibration just compared; 0 outside of one.
    """

    model: str
    perspectives: tuple[PerspectiveState, ...]
    read: int = 0


async def states(sources: Sources, read: int = 0) -> PerspectiveStates:
    """Return the thirteen perspectives with the thresholds in force in this memory."""
    own = await own_thresholds(sources)
    model = model_of(sources)
    perspective_states: list[PerspectiveState] = []
    for id_, space in spaces().items():
        limits = space.threshold(model, own.get(id_))
        if id_ in own:
            measured = "here"
        elif model in space.thresholds:
            measured = "for the model"
        else:
            measured = "for any model"
        failed = await sources.journal.perspective_data.failed(space.perspective, _MOST_WAITING)
        perspective_states.append(
            PerspectiveState(
                id=id_,
                name=space.perspective,
                finds=space.finds,
                category=space.category,
                category_weight=CATEGORY_WEIGHTS[space.category],
                topic_weight=space.topic_weight,
                high=limits.high if limits else None,
                low=limits.low if limits else None,
                left=limits.left if limits else None,
                measured=measured if limits else None,
                waiting=len(failed),
            )
        )
    return PerspectiveStates(model, tuple(perspective_states), read)


async def calibrate(sources: Sources, progress: Progress | None = None) -> PerspectiveStates:
    """Measure this memory's thresholds with its newest turns, store them, and return all.

    Raises:
        InvalidRequest: There are fewer than ``FEWEST_READ`` turns, or all are of one session;
            nothing is changed.
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
    compared = [space for space in comparing() if space[0] not in _NOT_MEASURED_BY_SESSIONS]
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
    """Remove this memory's own thresholds for the model in use; the shipped ones apply again."""
    await keep_thresholds(sources, {})
    return await states(sources)


def measured_thresholds(
    likeness: NDArray[np.float32], sessions: Sequence[str]
) -> Thresholds | None:
    """Return the thresholds of a perspective, or None if too few turns have the feature.

    ``high`` is what one in a hundred pairs of different sessions reaches; ``low`` is what 95 of 100
    turns reach with the turns before them in their session.

    Args:
        likeness: In [-1, 1], shape (n, n), the oldest turn first; NaN where either turn has no
            feature.
        sessions: The session of each turn, n in all.
    """
    names = np.array(sessions)
    apart = likeness[np.triu(names[:, None] != names[None, :], k=1)]
    apart = apart[~np.isnan(apart)]
    own, others = _greatest_likeness(likeness, sessions)
    if len(apart) < FEWEST_READ or len(own) < _FEWEST_NEAREST:
        return None
    high = float(np.percentile(apart, _UNRELATED_PERCENTILE))
    low = float(np.percentile(own, _CONTINUING_PERCENTILE))
    above = (own[:, None] > others[None, :]).mean() + (own[:, None] == others[None, :]).mean() / 2
    is_low_known = above >= _LEAST_TOLD_APART and low > 0
    return Thresholds(
        high=round(min(1.0, max(0.01, high)), 3), low=round(low, 3) if is_low_known else None
    )


def measured_left(likeness: NDArray[np.float32], sessions: Sequence[str]) -> float | None:
    """Return the cosine below which the two newest turns of a session have left its subject.

    95 of 100 consecutive pairs of turns reach it, compared with the turns before them as
    ``divergence`` compares them.

    Args:
        likeness: Cosines, shape (n, n), the oldest turn first; NaN where either turn has no vector.
        sessions: The session of each turn, n in all.

    Returns:
        None if there are too few turns in sessions long enough.
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
    if len(values) < _FEWEST_NEAREST:
        return None
    return round(float(np.percentile(values, _CONTINUING_PERCENTILE)), 3)


def _greatest_likeness(
    likeness: NDArray[np.float32], sessions: Sequence[str]
) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Return each turn's greatest likeness to its own session, and to other sessions.

    A turn is compared with the five turns before it in its session, and with the next five turns of
    other sessions.
    """
    places: dict[str, list[int]] = defaultdict(list)
    own: list[float] = []
    others: list[float] = []
    for at, session in enumerate(sessions):
        before = places[session][-_BEFORE:]
        following = (place % len(sessions) for place in range(at, at + len(sessions)))
        outside = list(
            islice((place for place in following if sessions[place] != session), _BEFORE)
        )
        for maxima, compared in ((own, before), (others, outside)):
            values = likeness[at, compared]
            values = values[~np.isnan(values)]
            if len(values) >= _FEWEST_BEFORE:
                maxima.append(float(values.max()))
        places[session].append(at)
    return np.array(own, dtype=np.float32), np.array(others or [0.0], dtype=np.float32)
