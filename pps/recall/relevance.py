"""How relevant a memory is to what is being talked about: what perspectives gave it beyond their thresholds."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from pps.config.spaces import CATEGORY_WEIGHTS, Space, Thresholds, spaces
from pps.core.recalled import Hit
from pps.recall.search import Sources
from pps.recall.thresholds import thresholds

_RECENT = ((1.0, 1.3), (24.0, 1.2), (7 * 24.0, 1.1), (30 * 24.0, 1.0))
_OLD = 0.8


def relevance(hit: Hit, limits: Mapping[str, tuple[Space, Thresholds]]) -> float:
    """Return ``Σ category weight · weight · max(0, signal − threshold)``, 0 where no perspective is beyond its own.

    Args:
        hit: Of a recall with ``breakdown``.
        limits: By name of the perspective, each with what it weighs and its thresholds.

    Source: acceptance row S4-11.
    """
    total = 0.0
    for name, signal in hit.signals.items():
        if name in limits:
            space, threshold = limits[name]
            total += (
                CATEGORY_WEIGHTS[space.category] * space.weight * max(0.0, signal - threshold.high)
            )
    return total


async def limits_of(sources: Sources) -> dict[str, tuple[Space, Thresholds]]:
    """Return the perspectives that have thresholds in this memory, by name, each with those."""
    return {
        spaces()[id_].perspective: (spaces()[id_], limits)
        for id_, limits in (await thresholds(sources)).items()
    }


def recency_factor(at: datetime | None, moment: datetime) -> float:
    """Return 1.3 for the last hour, 1.2 for the last day, 1.1 a week, 1 a month, .8 for what is older or undated."""
    if at is None:
        return _OLD
    hours = (moment - at).total_seconds() / 3600
    return next((factor for most, factor in _RECENT if hours < most), _OLD)
