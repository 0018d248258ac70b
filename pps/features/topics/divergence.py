"""Divergence: whether the newest turn of a session left what the session was about."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Literal

import numpy as np

from pps.config.spaces import Thresholds, spaces
from pps.core.time import now
from pps.core.values import Turn
from pps.features.topics.topic_values import IN_COMMON, centred, to_middle
from pps.recall.perspectives import PERSPECTIVES
from pps.recall.question import content_words
from pps.recall.search import Sources
from pps.recall.thresholds import thresholds

_SPACES = ("E1", "E6", "E7", "E10", "E12", "E13")
"""Spaces that are compared.

Cause is not: its likeness ignores direction here, so each turn is far from all others.
"""
_FEWEST_WORDS = 5
_FEWEST_TURNS = 3
_LOOKED_AT = 50
_HIGH_BELOW = 0.1
_MEDIUM_BELOW = 0.2
_SUMMARY_LENGTH = 100
_MIDDLE_TURNS = 10
"""Number of earlier turns of the session whose mean vector is compared."""
_LATEST_TURNS = 200
"""Number of the memory's latest turns whose mean is subtracted, as common to all turns."""
_ALONE_MARGIN = 0.1


@dataclass(frozen=True, slots=True)
class Alert:
    """A space in which the newest turn is unlike all earlier turns of its session.

    Attributes:
        similarity: To the nearest earlier turn, in [-1, 1]; below ``threshold``.
        turn: Id of the newest turn.
        summary: The beginning of its text, at most 100 characters.
    """

    space: str
    severity: Literal["high", "medium", "low"]
    similarity: float
    threshold: float
    turn: str
    summary: str


@dataclass(frozen=True, slots=True)
class Divergence:
    """Whether the newest turn left the session's subject.

    Attributes:
        alerts: The gravest first.
        turns: Number of earlier turns that the newest was compared with.
        spaces: Number of spaces in which it was compared.
    """

    alerts: tuple[Alert, ...] = ()
    turns: int = 0
    spaces: int = 0


async def divergence(sources: Sources, hours: int, session: str = "") -> Divergence:
    """Compare the newest user turn of a session with its earlier user turns of the last hours.

    Short turns, and sessions of fewer than three earlier turns, raise no alert. If the embedding
    model has the threshold ``left``, meaning alone decides, by the two newest turns. Otherwise a
    turn that is near in meaning, or in half of the spaces, raises none: other words for the same
    subject are no new subject.

    Args:
        sources: The entity's own.
        hours: How far back, 1 to 48.
        session: Id of the session; the newest turn's if empty.
    """
    latest = await sources.journal.recent(1, session=session or None)
    if not latest:
        return Divergence()
    turns = [
        turn
        for turn in await sources.journal.recent(_LOOKED_AT, session=latest[0].session)
        if _is_comparable(turn)
    ]
    since = now() - timedelta(hours=hours)
    before = [turn for turn in turns[1:] if turn.occurred_at >= since]
    if not turns or turns[0].occurred_at < since or len(before) < _FEWEST_TURNS:
        return Divergence(turns=len(before))
    limits = await thresholds(sources)
    alerts, compared = await _alerts(sources, turns[0], [turn.uuid for turn in before], limits)
    left = limits["E1"].left
    middle = (
        None if left is None else await _nearness_to_session(sources, [turns[0], *before], left)
    )
    if left is None or middle is None:
        if not compared.get("E1", True) or 2 * len(alerts) < len(compared):
            alerts = []
    elif middle >= left:
        alerts = []
    else:
        others = [alert for alert in alerts if alert.space != "E1"]
        alerts = [_alert("E1", middle, left, turns[0]), *others]
    return Divergence(
        tuple(sorted(alerts, key=lambda alert: alert.similarity)), len(before), len(compared)
    )


async def _alerts(
    sources: Sources, new: Turn, before: list[str], limits: Mapping[str, Thresholds]
) -> tuple[list[Alert], dict[str, bool]]:
    """Return an alert for each space in which the turn is far from all earlier ones.

    Also return, for each space that was compared, whether the turn is far in it.
    """
    alerts: list[Alert] = []
    compared: dict[str, bool] = {}
    for id_ in _SPACES:
        low = limits[id_].low if id_ in limits else None
        perspective = PERSPECTIVES.get(spaces()[id_].perspective)
        if low is None or perspective is None or perspective.alike is None:
            continue
        near = (await perspective.alike(sources, [new.uuid, *before]))[0, 1:]
        near = near[~np.isnan(near)]
        if len(near):
            best = float(near.max())
            compared[id_] = best < low
            if compared[id_]:
                alerts.append(_alert(id_, best, low, new))
    return alerts, compared


def _alert(space: str, similarity: float, threshold: float, turn: Turn) -> Alert:
    severity = (
        "high" if similarity < _HIGH_BELOW else "medium" if similarity < _MEDIUM_BELOW else "low"
    )
    summary = " ".join(turn.content.split())[:_SUMMARY_LENGTH]
    return Alert(space, severity, round(similarity, 3), threshold, turn.uuid, summary)


async def _nearness_to_session(
    sources: Sources, turns: Sequence[Turn], left: float
) -> float | None:
    """Return the cosine between the newest turns of a session and the mean of those before them.

    The two newest turns count together. The newest counts alone if it is ``_ALONE_MARGIN`` below
    ``left``.

    Args:
        sources: The entity's own.
        turns: Of one session, the newest first.
        left: The threshold below which the turns have left the subject.

    Returns:
        A cosine of vectors without the mean of this memory's latest turns; None if there are too
        few of those.
    """
    alike = PERSPECTIVES[spaces()["E1"].perspective].alike
    own = [turn.uuid for turn in turns[: _MIDDLE_TURNS + 2]]
    among = [
        turn.uuid for turn in await sources.journal.recent(_LATEST_TURNS) if turn.uuid not in own
    ]
    if alike is None or len(own) + len(among) < IN_COMMON:
        return None
    likeness = await alike(sources, [*own, *among])
    known = ~np.isnan(np.diagonal(likeness))
    if known.sum() < IN_COMMON or not known[: len(own)].all():
        return None
    products = centred(np.nan_to_num(likeness, nan=0.0), known)
    alone = to_middle(products, [0], range(1, len(own)))
    return (
        alone if alone < left - _ALONE_MARGIN else to_middle(products, [0, 1], range(2, len(own)))
    )


def _is_comparable(turn: Turn) -> bool:
    return turn.role == "user" and len(content_words(turn.content).split()) >= _FEWEST_WORDS
