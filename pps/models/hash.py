"""A deterministic embedder of hashed words, for tests and trials: no file, no quality."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator

import numpy as np

from pps.core.text import fold
from pps.models.embedding import WindowedEmbedder, readable
from pps.models.protocols import Fingerprint, Matrix, Vector

_WORD = re.compile(r"\w+")
_WINDOW_WORDS = 200
_PART_WEIGHT = 0.35
_SMALL = 3
_SMALL_WEIGHT = 0.25  # "the", "in", "of": most short words say little


class HashEmbedder(WindowedEmbedder):
    """Texts that share words, or word stems, are similar; nothing else is.

    Each folded word and each of its character trigrams votes, with a sign, for two components of
    the vector (feature hashing, Weinberger et al. 2009). The same text gives the same vector on
    every machine and in every version of Python.
    """

    def __init__(self, dimension: int = 256) -> None:
        super().__init__(
            Fingerprint(model="hash", dimension=dimension, pooling="hash"), _WINDOW_WORDS
        )

    def _count(self, text: str) -> int:
        return len(_WORD.findall(text))

    def _passages(self, texts: list[str]) -> Matrix:
        rows = np.zeros((len(texts), self._fingerprint.dimension), dtype=np.float32)
        for row, text in zip(rows, texts, strict=True):
            for feature, weight in _features(text):
                self._vote(row, feature, weight)
            if not row.any():
                row[0] = 1.0  # blank, or only punctuation: a vector all the same
        return rows

    def _vote(self, row: Vector, feature: str, weight: float) -> None:
        digest = int.from_bytes(hashlib.blake2b(feature.encode(), digest_size=16).digest(), "big")
        for _ in range(2):
            digest, sign = divmod(digest, 2)
            digest, at = divmod(digest, self._fingerprint.dimension)
            row[at] += weight if sign else -weight


def _features(text: str) -> Iterator[tuple[str, float]]:
    for word in _WORD.findall(fold(readable(text))):
        weight = _SMALL_WEIGHT if len(word) <= _SMALL and word.isascii() else 1.0
        yield word, weight
        padded = f"<{word}>"
        for at in range(len(padded) - 2):
            yield padded[at : at + 3], weight * _PART_WEIGHT
