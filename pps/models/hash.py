"""A deterministic embedder of hashed words, for tests and trials: no file, no download, no quality."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Sequence

import numpy as np

from pps.core.text import fold
from pps.models.protocols import Fingerprint, Matrix, Vector
from pps.models.windows import embed_whole, readable, split_to_window

_WORD = re.compile(r"\w+")
_WINDOW_WORDS = 200
_PART_WEIGHT = 0.35
_SMALL, _SMALL_WEIGHT = 3, 0.25  # "the", "in", "of": most short words say little


class HashEmbedder:
    """Texts that share words, or word stems, are similar; nothing else is.

    Each folded word and each of its character trigrams votes, with a sign, for two components of
    the vector (feature hashing, Weinberger et al. 2009). The same text gives the same vector on
    every machine and in every version of Python.
    """

    def __init__(self, dimension: int = 256) -> None:
        self._fingerprint = Fingerprint(model="hash", dimension=dimension, pooling="hash")

    @property
    def fingerprint(self) -> Fingerprint:
        """Model ``hash`` of the dimension given."""
        return self._fingerprint

    def embed_query(self, text: str) -> Vector:
        """Return the vector of a query, shape (dimension,); the same as that of the passage."""
        return self.embed_passages([text])[0]

    def embed_passages(self, texts: Sequence[str]) -> Matrix:
        """Return one row a text, shape (len(texts), dimension)."""
        if not texts:
            return np.zeros((0, self._fingerprint.dimension), dtype=np.float32)
        return embed_whole(texts, self.split, self._rows)

    def split(self, text: str) -> list[str]:
        """Return passages of at most 200 words."""
        return split_to_window(readable(text), lambda piece: len(_WORD.findall(piece)), _WINDOW_WORDS)

    def close(self) -> None:
        """Give back what it holds: nothing beside memory."""

    def _rows(self, texts: list[str]) -> Matrix:
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
