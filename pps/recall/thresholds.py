"""Thresholds of similarity in one memory, and the relevance that goes by them.

A memory has thresholds of its own once it was calibrated, else those of its embedding model.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from pydantic import TypeAdapter

from pps.config.spaces import CATEGORY_WEIGHTS, Space, Thresholds, spaces
from pps.core.recalled import Hit
from pps.recall.search import Sources

_STORED = TypeAdapter(dict[str, Thresholds])
_RECENCY_FACTORS = ((1.0, 1.3), (24.0, 1.2), (7 * 24.0, 1.1), (30 * 24.0, 1.0))
"""Hours up to which a factor holds, and the factor."""
_OLD_FACTOR = 0.8
_SECONDS_AN_HOUR = 3600


def model_of(sources: Sources) -> str:
    """Return the name of the embedding model; empty without one."""
    return sources.embedder.fingerprint.model if sources.embedder else ""


async def thresholds(sources: Sources) -> dict[str, Thresholds]:
    """Return space, E1 to E13 → thresholds; a space without any is left out."""
    own = await own_thresholds(sources)
    model = model_of(sources)
    known: dict[str, Thresholds] = {}
    for id_, space in spaces().items():
        limits = space.threshold(model, own.get(id_))
        if limits:
            known[id_] = limits
    return known


async def own_thresholds(sources: Sources) -> dict[str, Thresholds]:
    """Return the thresholds measured with this memory's texts and the model in use, if any."""
    stored = await sources.journal.get_meta(_key(sources))
    return _STORED.validate_json(stored) if stored else {}


async def keep_thresholds(sources: Sources, measured: Mapping[str, Thresholds]) -> None:
    """Replace a memory's own thresholds for the model in use."""
    await sources.journal.set_meta(_key(sources), _STORED.dump_json(dict(measured)).decode())


def _key(sources: Sources) -> str:
    return f"thresholds:{model_of(sources)}"


async def limits_of(sources: Sources) -> dict[str, tuple[Space, Thresholds]]:
    """Return perspective → its space and thresholds, of those that have any in this memory."""
    limits: dict[str, tuple[Space, Thresholds]] = {}
    for id_, threshold in (await thresholds(sources)).items():
        space = spaces()[id_]
        limits[space.perspective] = (space, threshold)
    return limits


def relevance(hit: Hit, limits: Mapping[str, tuple[Space, Thresholds]]) -> float:
    """Return ``Σ category weight · weight · max(0, signal − threshold)``.

    Args:
        hit: Of a recall with ``breakdown``.
        limits: As ``limits_of``.

    Source: acceptance row S4-11.
    """
    total = 0.0
    for name, signal in hit.signals.items():
        if name in limits:
            space, threshold = limits[name]
            weight = CATEGORY_WEIGHTS[space.category] * space.weight
            total += weight * max(0.0, signal - threshold.high)
    return total


def recency_factor(at: datetime | None, moment: datetime) -> float:
    """Return a factor by age: 1.3 to an hour, 1.2 a day, 1.1 a week, 1 thirty days, else .8.

    An undated item has .8.
    """
    if at is None:
        return _OLD_FACTOR
    hours = (moment - at).total_seconds() / _SECONDS_AN_HOUR
    for most, factor in _RECENCY_FACTORS:
        if hours < most:
            return factor
    return _OLD_FACTOR
