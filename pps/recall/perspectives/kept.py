"""What perspectives with stored features share: which kinds a channel holds, and their hits in order."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from pps.core.values import ChannelName, ItemKind
from pps.models.protocols import Vector
from pps.recall.perspectives import Likeness
from pps.recall.query import Ask, Scored

KINDS: Mapping[ChannelName, ItemKind] = {
    "nodes": "node",
    "facts": "fact",
    "episodes": "episode",
    "turns": "episode",
}


async def hits(
    ask: Ask, kind: ItemKind, ids: Sequence[str], scores: Vector, depth: int
) -> list[Scored]:
    """Return those with a score above 0 that the filters let through, best first, at most ``depth``.

    ``scores`` has one for each of the ids; equal ones come in order of their ids.
    """
    above: list[int] = np.flatnonzero(scores > 0).tolist()
    allowed = await ask.allowed(kind)
    places = np.array(
        above if allowed is None else [at for at in above if ids[at] in allowed], dtype=np.intp
    )
    if len(places) > depth:
        places = places[scores[places] >= np.partition(scores[places], -depth)[-depth]]
    best: list[int] = places.tolist()
    found = sorted((-float(scores[at]), ids[at]) for at in best)[:depth]
    return [Scored(one, -score, min(1.0, -score)) for score, one in found]


def unlike(count: int) -> Likeness:
    """Return a likeness of which nothing is known yet, shape (count, count)."""
    return np.full((count, count), np.nan, dtype=np.float32)


def spread(ids: Sequence[str], known: Sequence[str], likeness: Likeness) -> Likeness:
    """Return the likeness of ``known`` ids as one of all ``ids``."""
    found, places = unlike(len(ids)), [ids.index(one) for one in known]
    found[np.ix_(places, places)] = likeness
    return found
