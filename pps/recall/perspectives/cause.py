"""What led to what: the causes and effects that texts tell of, by nearness to the end that a question names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from pps.config.spaces import spaces
from pps.core.values import ChannelName
from pps.index.signs import asked
from pps.models.protocols import Matrix
from pps.recall.perspectives import Likeness, finds
from pps.recall.perspectives.kept import KINDS, hits, spread, unlike
from pps.recall.query import Ask, Scored, Sources
from pps.recall.thresholds import thresholds

_SPACE = spaces()["E5"]


async def _alike(sources: Sources, ids: Sequence[str]) -> Likeness:
    """Return the cosine of one's effect and the other's cause, the greater of both ways; 1 with itself."""
    kept = await sources.journal.perspective_data.of("cause", ids)
    width = sources.embedder.fingerprint.dimension if sources.embedder else 1
    known = [one for one in ids if len(kept.get(one, b"")) >= 4 * width]
    if sources.embedder is None or not known:
        return unlike(len(ids))
    pairs = [_pairs(kept[one], width) for one in known]
    ends = np.concatenate(pairs)
    begins = np.cumsum([0, *map(len, pairs[:-1])])
    cosines = ends[:, 1] @ ends[:, 0].T
    led = np.maximum.reduceat(np.maximum.reduceat(cosines, begins, axis=0), begins, axis=1)
    found = np.maximum(led, led.T)
    np.fill_diagonal(found, 1.0)
    return spread(ids, known, found)


@finds(alike=_alike)
async def cause(ask: Ask, channel: ChannelName, depth: int) -> list[Scored]:
    """Cause: what led to what a "why" names, or what it led to, as texts say with words like "because".

    Return what tells of the end that is not asked for, nearest first; empty for a query that asks for neither.
    """
    kind, question, embedder = KINDS.get(channel), asked(ask.text), ask.sources.embedder
    direction = _SPACE.direction
    if kind is None or question is None or embedder is None or direction is None:
        return []
    if await ask.sources.journal.perspective_data.failed("cause", 1):
        ask.lacking.add("cause: some causes are not embedded yet; they are, once the model answers")
    ids, pairs, begins = await ask.sources.journal.perspective_data.every(
        "cause", kind, _owned, embedder.fingerprint.dimension
    )
    if not ids:
        return []
    wanted, said = question
    probe = await ask.sources.query_vectors.of(said, embedder)
    # "why" names an effect and asks for its cause; "what did it lead to" names a cause. What says so of the named end
    # is the way that is asked for; what has it at its other end goes against it.
    named = 1 if wanted == "cause" else 0
    near = pairs @ probe / max(float(np.linalg.norm(probe)), 1e-12)
    limits = (await thresholds(ask.sources)).get("E5")
    near[near < ((limits.low if limits else None) or 0.0)] = -1.0
    led = np.maximum(direction.along * near[:, named], direction.against * near[:, 1 - named])
    return await hits(ask, kind, ids, np.maximum.reduceat(led, begins), depth)


def _owned(kept: Mapping[str, bytes], width: int) -> tuple[list[str], Matrix, NDArray[np.intp]]:
    """Return ids, the pairs of all, and at which each one's begin; those of another model are left out."""
    known = {one: pairs for one, blob in kept.items() if len(pairs := _pairs(blob, width))}
    begins = np.cumsum([0, *map(len, known.values())], dtype=np.intp)[:-1]
    return list(known), np.concatenate([_pairs(b"", width), *known.values()]), begins


def _pairs(blob: bytes, width: int) -> Matrix:
    """Return the vectors of causes and effects, shape (pairs, 2, width); none where they are another model's."""
    ends = np.frombuffer(blob, dtype=np.float16).astype(np.float32)
    return (
        ends.reshape(-1, 2, width)
        if len(ends) % (2 * width) == 0
        else np.zeros((0, 2, width), dtype=np.float32)
    )
