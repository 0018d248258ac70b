"""How often the graph of neighbours finds what an exact search would: its error, apart from any model's."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from pps.bench.generator import FACTS_A_TURN, World
from pps.index.vectors import VectorIndex, VectorRow
from pps.models.protocols import Embedder, Matrix

TEN = 10
_TIE = 1e-6
_AT_ONCE = 1_000
_QUESTIONS = 100
_NOISE = 0.3
_GROUP = "ent_" + "b" * 26


def agreement(
    embedder: Embedder, world: World, size: int, progress: Callable[[str, int, int], None]
) -> dict[str, float | int]:
    """Put a world's facts, embedded by the model itself, into an index; ask it and an exact search. Blocks.

    Returns the number of vectors and, for three kinds of probe, the mean share of the exact ten nearest that the
    index finds: questions that name things, questions that name nothing (random words: far from every fact), and
    vectors near a fact's. A row as near as the tenth counts as one of the ten.

    Args:
        embedder: About 250 facts a second and core pair.
        world: Whose facts and questions are taken.
        size: How many facts.
        progress: Told what is done.
    """
    texts = [fact.text for number in range(-(-size // FACTS_A_TURN)) for fact in world.facts(number)][:size]
    stage = f"embedding {size:,} facts"
    parts: list[Matrix] = []
    for at in range(0, size, _AT_ONCE):
        parts.append(embedder.embed_passages(texts[at : at + _AT_ONCE]))
        progress(stage, min(at + _AT_ONCE, size), size)
    matrix = np.vstack(parts)
    matrix /= np.linalg.norm(matrix, axis=1, keepdims=True)
    with tempfile.TemporaryDirectory() as folder:
        index = VectorIndex.open(Path(folder) / "chroma", group=_GROUP, fingerprint=embedder.fingerprint)
        try:
            for at in range(0, size, _AT_ONCE):
                rows = [VectorRow(str(at + place), 0, row) for place, row in enumerate(matrix[at : at + _AT_ONCE])]
                index.replace("facts", rows)
            while index.merge():
                pass
            turns = size // FACTS_A_TURN
            draw = np.random.default_rng(world.seed)
            near: Matrix = matrix[draw.integers(0, size, _QUESTIONS)]
            noise = draw.standard_normal(near.shape, dtype=np.float32)
            near += np.float32(_NOISE / near.shape[1] ** 0.5) * noise
            return {
                "vectors": size,
                "naming": _found(index, matrix, _embedded(embedder, world.questions(_QUESTIONS, turns))),
                "vague": _found(index, matrix, _embedded(embedder, world.vague_questions(_QUESTIONS, turns))),
                "near_a_fact": _found(index, matrix, near),
            }
        finally:
            index.close()


def _embedded(embedder: Embedder, questions: Sequence[str]) -> Matrix:
    return np.stack([embedder.embed_query(question) for question in questions])


def _found(index: VectorIndex, matrix: Matrix, probes: Matrix) -> float:
    """Return the mean share of the exact ten nearest of each probe, shape (n, dimension), that the index finds."""
    shares: list[float] = []
    for probe in probes:
        cosines = matrix @ (probe / np.linalg.norm(probe))
        size = min(TEN, len(matrix))
        least = np.partition(cosines, -size)[-size] - _TIE
        hits = index.query("facts", probe, size)
        shares.append(sum(bool(cosines[int(hit.owner)] >= least) for hit in hits) / size)
    return round(float(np.mean(shares)), 4)
