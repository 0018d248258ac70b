"""How often the vector index finds what an exact search would: its error, apart from any model's."""

from __future__ import annotations

import contextlib
import tempfile
import time as clock
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TypeVar

import numpy as np

from benchmarks.generator import FACTS_A_TURN, World
from pps.index.vector_index import VectorIndex, VectorRow
from pps.models.protocols import Embedder, Matrix

T = TypeVar("T")

TEN = 10
_DEPTH = 50
_TIE = 1e-6
_AT_ONCE = 1_000
_QUESTIONS = 100
_NOISE = 0.3
_GROUP = "ent_" + "b" * 26


def agreement(
    embedder: Embedder, world: World, size: int, progress: Callable[[str, int, int], None]
) -> dict[str, int | dict[str, float]]:
    """Put a world's facts, embedded by the model itself, into an index; ask it and an exact search. Blocks.

    It is done with all vectors in memory, as is usual (``scan``), and with none (``graph``: all in Chroma's graph of
    neighbours). Returns the number of vectors and, for each of the two, the median milliseconds of a query and, for
    three kinds of probe, the mean share of the exact ten nearest that the index finds: questions that name things,
    questions that name nothing (random words: far from every fact), and vectors near a fact's. A row as near as the
    tenth counts as one of the ten.

    Args:
        embedder: About 250 facts a second and core pair.
        world: Whose facts and questions are taken.
        size: How many facts.
        progress: Told what is done.
    """
    texts = [
        fact.text for number in range(-(-size // FACTS_A_TURN)) for fact in world.facts(number)
    ][:size]
    matrix = np.vstack(
        list(
            _batches(
                f"embedding {size:,} facts",
                size,
                progress,
                lambda at: embedder.embed_passages(texts[at]),
            )
        )
    )
    matrix /= np.linalg.norm(matrix, axis=1, keepdims=True)
    turns = size // FACTS_A_TURN
    probes = {
        "naming": _embedded(embedder, world.questions(_QUESTIONS, turns)),
        "vague": _embedded(embedder, world.vague_questions(_QUESTIONS, turns)),
        "near_a_fact": _near(matrix, world.seed),
    }
    found: dict[str, int | dict[str, float]] = {"vectors": size}
    for name, in_memory in (("scan", size), ("graph", 0)):
        with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as stack:
            index = VectorIndex.open(
                Path(folder), group=_GROUP, fingerprint=embedder.fingerprint, in_memory=in_memory
            )
            stack.callback(index.close)

            def put(at: slice, index: VectorIndex = index) -> None:
                rows = [
                    VectorRow(str(at.start + place), 0, row) for place, row in enumerate(matrix[at])
                ]
                index.replace("facts", rows)

            for _ in _batches(f"indexing {size:,} facts ({name})", size, progress, put):
                pass
            while not in_memory and not index.is_built("facts"):
                clock.sleep(0.1)
            shares = {kind: _found(index, matrix, some) for kind, some in probes.items()}
            found[name] = {**shares, "query_ms": _query_ms(index, probes["naming"])}
    return found


def _batches(
    stage: str, size: int, progress: Callable[[str, int, int], None], work: Callable[[slice], T]
) -> Iterator[T]:
    for at in range(0, size, _AT_ONCE):
        yield work(slice(at, at + _AT_ONCE))
        progress(stage, min(at + _AT_ONCE, size), size)


def _near(matrix: Matrix, seed: int) -> Matrix:
    draw = np.random.default_rng(seed)
    near: Matrix = matrix[draw.integers(0, len(matrix), _QUESTIONS)]
    noise = draw.standard_normal(near.shape, dtype=np.float32)
    near += np.float32(_NOISE / near.shape[1] ** 0.5) * noise
    return near


def _query_ms(index: VectorIndex, probes: Matrix) -> float:
    spent: list[float] = []
    for probe in probes:
        started = clock.perf_counter()
        index.query("facts", probe, _DEPTH)
        spent.append(1000 * (clock.perf_counter() - started))
    return round(float(np.median(spent)), 2)


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
