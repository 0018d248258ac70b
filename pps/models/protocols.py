"""What a model must do to be used by PPS."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from pps.core.vectors import Matrix, Vector

__all__ = ["Embedder", "Fingerprint", "Matrix", "Reranked", "Reranker", "Vector"]


@dataclass(frozen=True, slots=True)
class Fingerprint:
    """What makes two vectors comparable. Pinned to an entity at its first write.

    Attributes:
        model: The model's id, such as ``all-MiniLM-L6-v2``; not a path and not a file's hash, so
            two engines of one model agree.
        dimension: Length of a vector.
        pooling: ``mean``, ``cls``, ``server`` or ``hash``.
        normalised: True when vectors have unit length (always, in PPS).
    """

    model: str
    dimension: int
    pooling: str
    normalised: bool = True


class Embedder(Protocol):
    """Turns texts into unit-length float32 vectors. Calls block; run them in a thread."""

    @property
    def fingerprint(self) -> Fingerprint:
        """What the vectors of this embedder are; known without loading the model."""
        ...

    def embed_query(self, text: str) -> Vector:
        """Return the vector of a query, shape (dimension,)."""
        ...

    def embed_passages(self, texts: Sequence[str]) -> Matrix:
        """Return one row a text in the order given, shape (len(texts), dimension); empty is (0, d)."""
        ...

    def split(self, text: str) -> list[str]:
        """Return the text cut into passages that each fit the model's window; one when it fits."""
        ...

    def close(self) -> None:
        """Give back what it holds; a second call does nothing."""
        ...


@dataclass(frozen=True, slots=True)
class Reranked:
    """Scores beside the candidates' order; ``complete`` is False when the deadline stopped it."""

    scores: tuple[float, ...]
    complete: bool


class Reranker(Protocol):
    """Scores passages against a query jointly. Calls block; run them in a thread."""

    @property
    def name(self) -> str:
        """The model's name."""
        ...

    def rerank(self, query: str, passages: Sequence[str], *, deadline_s: float) -> Reranked:
        """Score each passage, higher is better; checks the deadline between batches."""
        ...

    def close(self) -> None:
        """Give back what it holds; a second call does nothing."""
        ...
