"""Seeded vectors that cluster as embeddings do, and what tests of the indexes share."""

from __future__ import annotations

import numpy as np

from pps.index.vector_index import VectorRow
from pps.models.protocols import Fingerprint, Matrix

GROUP = "ent_" + "a" * 26
OTHER_GROUP = "ent_" + "b" * 26
DIMENSION = 64
FINGERPRINT = Fingerprint("test-model", DIMENSION, "mean")


def clustered(
    rows: int, queries: int, *, dimension: int = DIMENSION, seed: int = 7
) -> tuple[Matrix, Matrix]:
    """Return unit vectors around Zipf-sized clusters on a low-dimensional surface, and queries like them."""
    random = np.random.default_rng(seed)
    latent, clusters = 48, 200
    surface = random.standard_normal((latent, dimension)) / np.sqrt(latent)
    centres = random.standard_normal((clusters, latent))
    weights = 1 / np.arange(1, clusters + 1) ** 0.7

    def draw(count: int) -> Matrix:
        chosen = random.choice(clusters, count, p=weights / weights.sum())
        points = centres[chosen] + 0.6 * random.standard_normal((count, latent))
        vectors = points @ surface + 0.1 * random.standard_normal((count, dimension))
        return (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32)

    return draw(rows), draw(queries)


def rows_of(vectors: Matrix, *, parts: int = 1, start: int = 0) -> list[VectorRow]:
    """Return rows ``o0``, ``o1``, …, each owner with so many parts."""
    return [
        VectorRow(f"o{start + at // parts}", at % parts, vector)
        for at, vector in enumerate(vectors)
    ]


def best(
    vectors: Matrix, probe: Matrix, k: int, *, parts: int = 1, allowed: set[str] | None = None
) -> list[str]:
    """Return the ``k`` owners that are truly nearest, by scoring every row."""
    owners: dict[str, float] = {}
    for at, score in enumerate((vectors @ probe).tolist()):
        owner = f"o{at // parts}"
        if allowed is None or owner in allowed:
            owners[owner] = max(owners.get(owner, -2.0), score)
    return sorted(owners, key=lambda owner: -owners[owner])[:k]
