"""Short codes of vectors whose differing bits tell an angle: what is near is found by counting bits.

Random hyperplanes (M. Charikar, "Similarity estimation techniques from rounding algorithms", 2002), orthogonal in
groups as large as the dimension, which keeps the estimate's variance down (J. Ji et al., "Super-bit
locality-sensitive hashing", 2012). The vectors' mean is taken off first: without that, vectors of a model that keeps
all of them in a narrow cone would nearly all have the same code.
"""

from __future__ import annotations

from functools import cache
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from pps.models.protocols import Matrix, Vector

BITS = 768
_WORD_BITS = 64
WORDS = BITS // _WORD_BITS
_SEED = 2002

Codes: TypeAlias = NDArray[np.uint64]
"""Shape (WORDS, n): one column a vector, so that one word of all of them lies together."""


class SimHash:
    """Makes codes around the mean of a sample, shape (n, dimension)."""

    def __init__(self, sample: Matrix) -> None:
        self._planes = _planes(sample.shape[1])
        self._offsets: Vector = sample.mean(axis=0) @ self._planes

    def codes(self, matrix: Matrix) -> Codes:
        """Return the codes of vectors, shape (n, dimension)."""
        bits = np.packbits(matrix @ self._planes > self._offsets, axis=1)
        return np.ascontiguousarray(bits.view(np.uint64).T)

    def distances(self, codes: Codes, probe: Vector) -> NDArray[np.uint16]:
        """Return how many bits of each code, 0 to BITS, differ from a vector's."""
        found = np.zeros(codes.shape[1], dtype=np.uint16)
        for row, word in zip(codes, self.codes(probe[np.newaxis])[:, 0], strict=True):
            found += np.bitwise_count(row ^ word)
        return found


@cache
def _planes(dimension: int) -> Matrix:
    """Return the normals, shape (dimension, BITS); the same for every index of a dimension."""
    draw = np.random.default_rng(_SEED)
    groups = [
        np.linalg.qr(draw.standard_normal((dimension, min(dimension, BITS))))[0] for _ in range(-(-BITS // dimension))
    ]
    return np.ascontiguousarray(np.hstack(groups)[:, :BITS], dtype=np.float32)
