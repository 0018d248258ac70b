"""What a model must do to be used by PPS, and which language model extracts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal, Protocol, TypeAlias, runtime_checkable

from pps.core.errors import ConfigError
from pps.core.values import Matrix, Vector

__all__ = [
    "Embedder",
    "ExtractorModel",
    "Fingerprint",
    "Matrix",
    "Provider",
    "Reranked",
    "Reranker",
    "TokenEmbedder",
    "Vector",
]

Provider: TypeAlias = Literal["openai", "anthropic", "gemini", "groq", "ollama", "compatible"]
OLLAMA_URL = "http://127.0.0.1:11434/v1"


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
        """Return one row a text in the order given, shape (len(texts), dimension).

        Empty is (0, d).
        """
        ...

    def split(self, text: str) -> list[str]:
        """Return the text cut into passages that each fit the model's window; one when it fits."""
        ...

    def close(self) -> None:
        """Give back what it holds; a second call does nothing."""
        ...


@runtime_checkable
class TokenEmbedder(Protocol):
    """An embedder that also has vectors of tokens and words; the calls block."""

    def embed_tokens(self, texts: Sequence[str]) -> list[Matrix]:
        """Return unit vectors of each text's first 128 tokens, shape (tokens, dimension)."""
        ...

    def like_words(self, words: Sequence[str]) -> list[str]:
        """Return words that the model takes to mean nearly the same as some, in lower case.

        Unknown ones have none.
        """
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


@dataclass(frozen=True, slots=True)
class ExtractorModel:
    """A language model and how to reach it.

    Attributes:
        model, small_model: Names at the provider; empty is the default of Graphiti's client.
        base_url: Empty is the provider's own address.
        api_key: Empty where none is needed.
        timeout_s: Seconds for one request.
    """

    provider: Provider
    model: str = ""
    small_model: str = ""
    base_url: str = ""
    api_key: str = field(default="", repr=False)
    timeout_s: float = 60.0

    def __post_init__(self) -> None:
        if self.provider == "compatible" and not self.base_url:
            raise ConfigError(
                "extractor.base_url: provider 'compatible' needs the server's address"
            )
        if self.provider in ("compatible", "ollama") and not self.model:
            raise ConfigError(f"extractor.model: provider '{self.provider}' needs a model's name")
        if self.provider not in ("compatible", "ollama") and not (self.api_key or self.base_url):
            raise ConfigError(f"extractor.api_key: provider '{self.provider}' needs one")
