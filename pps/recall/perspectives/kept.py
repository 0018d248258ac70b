"""What perspectives with stored features share: which kinds a channel holds, and their hits in order."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from pps.core.values import ChannelName, ItemKind
from pps.recall.perspectives import Likeness
from pps.recall.query import Ask, Scored

KINDS: Mapping[ChannelName, ItemKind] = {"nodes": "node", "facts": "fact", "episodes": "episode", "turns": "episode"}


async def hits(ask: Ask, kind: ItemKind, scored: Mapping[str, float], depth: int) -> list[Scored]:
    """Return those of id → score that the filters let through, best first, at most ``depth``; signals in [0, 1]."""
    order = sorted(scored, key=lambda one: (-scored[one], one))
    found = (await ask.permitted(kind, order))[:depth]
    return [Scored(one, scored[one], min(1.0, max(0.0, scored[one]))) for one in found]


def unlike(count: int) -> Likeness:
    """Return a likeness of which nothing is known yet, shape (count, count)."""
    return np.full((count, count), np.nan, dtype=np.float32)


def spread(ids: Sequence[str], known: Sequence[str], likeness: Likeness) -> Likeness:
    """Return the likeness of ``known`` ids as one of all ``ids``."""
    found, places = unlike(len(ids)), [ids.index(one) for one in known]
    found[np.ix_(places, places)] = likeness
    return found
