"""The same letters in spite of misspellings: trigrams of characters as bits, compared bit by bit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from pps.core.values import ChannelName
from pps.index.signs import BITS, letters, numbers
from pps.models.protocols import Vector
from pps.recall.perspectives import Likeness, finds
from pps.recall.perspectives.kept import KINDS, hits, spread
from pps.recall.query import Ask, Scored, Sources

_LEAST = 0.35
"""Of a query's trigrams, beyond those that chance gives, an item must have."""


async def _alike(sources: Sources, ids: Sequence[str]) -> Likeness:
    """Return 1 minus the distance of bits over that of unrelated ones: their correlation."""
    kept = await sources.journal.perspective_data.of("trigrams", ids)
    known = [one for one in ids if one in kept]
    bits = np.unpackbits(
        np.frombuffer(b"".join(kept[one] for one in known), dtype=np.uint8)
    ).reshape(-1, BITS)
    apart = bits - bits.mean(axis=1, keepdims=True, dtype=np.float32)
    length = np.maximum(np.linalg.norm(apart, axis=1, keepdims=True), 1e-6)
    return spread(ids, known, ((apart / length) @ (apart / length).T).astype(np.float32))


@finds(alike=_alike)
async def trigrams(ask: Ask, channel: ChannelName, depth: int) -> list[Scored]:
    """Trigrams: the letters that the query shares with the item, in spite of misspellings.

    Return what has most of the query's trigrams, less what an item of as many bits has of any by chance. Where
    words of the query are misspelt, only their letters are looked for: the others are found by themselves.
    """
    kind = KINDS.get(channel)
    if kind is None:
        return []
    asked = [numbers(letters(text)) for text in await ask.misspelt_words() or [ask.words]]
    asked = [bits for bits in asked if bits.any()]
    if not asked:
        return []
    ids, bits, filled = await ask.sources.journal.perspective_data.every("trigrams", kind, _matrix)
    scores = np.max([_shared(bits, each, filled) for each in asked], axis=0)
    return await hits(ask, kind, ids, np.where(scores >= _LEAST, scores, 0.0), depth)


def _shared(bits: NDArray[np.uint64], asked: NDArray[np.uint64], filled: Vector) -> Vector:
    """Return how many of the asked bits each item has, less what it has of any by chance, shape (items,)."""
    size = int(np.bitwise_count(asked).sum())
    shared = np.bitwise_count(bits & asked).sum(axis=1, dtype=np.int32) / size
    return np.asarray((shared - filled) / (1 - filled), dtype=np.float32)


def _matrix(kept: Mapping[str, bytes]) -> tuple[list[str], NDArray[np.uint64], Vector]:
    """Return ids, their bits, shape (n, 16), and which share of each one's bits is set."""
    bits = numbers(b"".join(kept.values())).reshape(len(kept), BITS // 64)
    filled = np.minimum(np.bitwise_count(bits).sum(axis=1, dtype=np.int32) / BITS, 0.99)
    return list(kept), bits, filled.astype(np.float32)
