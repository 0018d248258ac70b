"""Divergence: whether the newest turn of a session left what the session was about."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import Literal

import numpy as np

from pps.config.spaces import spaces
from pps.core.time import now
from pps.core.values import Turn
from pps.recall.perspectives import PERSPECTIVES
from pps.recall.query import Sources
from pps.recall.question import content_words

_SPACES = ("E1", "E6", "E7", "E10", "E12", "E13")
"""Never cause: without a direction it is far from everything, and each turn would be an alert."""
_FEWEST_WORDS, _FEWEST_TURNS, _LOOKED_AT = 5, 3, 50
_HIGH, _MEDIUM = 0.1, 0.2
_SUMMARY = 100


@dataclass(frozen=True, slots=True)
class Alert:
    """A space in which the newest turn is like none of the session's turns before it.

    Attributes:
        similarity: To the nearest of them, in [-1, 1]; below ``threshold``.
        summary: What the turn says, at most 100 characters.
    """

    space: str
    severity: Literal["high", "medium", "low"]
    similarity: float
    threshold: float
    turn: str
    summary: str


@dataclass(frozen=True, slots=True)
class Divergence:
    """Alerts, the gravest first, and with how many turns the newest was compared in how many spaces."""

    alerts: tuple[Alert, ...] = ()
    turns: int = 0
    spaces: int = 0


async def divergence(sources: Sources, hours: int, session: str = "") -> Divergence:
    """Compare a session's newest turn of its person with those of the last hours.

    Short turns, and sessions that have hardly begun, raise none; nor does a turn that is near in half of the spaces,
    or in meaning: other words for the same are no other subject.

    Args:
        sources: The entity's own.
        hours: How far back, 1 to 48.
        session: Its id; that of the newest turn when empty.
    """
    latest = await sources.journal.recent(1, session=session or None)
    if not latest:
        return Divergence()
    turns = [one for one in await sources.journal.recent(_LOOKED_AT, session=latest[0].session) if _tells(one)]
    since = now() - timedelta(hours=hours)
    before = [one for one in turns[1:] if one.occurred_at >= since]
    if not turns or turns[0].occurred_at < since or len(before) < _FEWEST_TURNS:
        return Divergence(turns=len(before))
    alerts, compared = await _alerts(sources, turns[0], [one.uuid for one in before])
    by_meaning = compared.get("E1", True)
    if not by_meaning or 2 * len(alerts) < len(compared):
        alerts = []
    return Divergence(tuple(sorted(alerts, key=lambda one: one.similarity)), len(before), len(compared))


async def _alerts(sources: Sources, new: Turn, before: list[str]) -> tuple[list[Alert], dict[str, bool]]:
    """Return an alert for each space that the turn is far in, and of each space compared whether it is."""
    model = sources.embedder.fingerprint.model if sources.embedder else ""
    alerts: list[Alert] = []
    compared: dict[str, bool] = {}
    for id_ in _SPACES:
        space = spaces()[id_]
        limits, perspective = space.threshold(model), PERSPECTIVES.get(space.perspective)
        if limits is None or limits.low is None or perspective is None or perspective.alike is None:
            continue
        near = (await perspective.alike(sources, [new.uuid, *before]))[0, 1:]
        near = near[~np.isnan(near)]
        if len(near):
            best = float(near.max())
            compared[id_] = best < limits.low
            if compared[id_]:
                severity = "high" if best < _HIGH else "medium" if best < _MEDIUM else "low"
                summary = " ".join(new.content.split())[:_SUMMARY]
                alerts.append(Alert(id_, severity, round(best, 3), limits.low, new.uuid, summary))
    return alerts, compared


def _tells(turn: Turn) -> bool:
    return turn.role == "user" and len(content_words(turn.content).split()) >= _FEWEST_WORDS
