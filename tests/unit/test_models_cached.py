"""The query cache."""

from __future__ import annotations

import threading

import numpy as np
import pytest

from pps.models.embedding import CachedEmbedder
from pps.models.hash import HashEmbedder
from pps.models.protocols import Fingerprint, Vector


class Counting(HashEmbedder):
    """Counts the queries that reach the model, and can become another model."""

    def __init__(self) -> None:
        super().__init__(16)
        self.asked: list[str] = []
        self.now = self.fingerprint

    @property
    def fingerprint(self) -> Fingerprint:
        return getattr(self, "now", None) or super().fingerprint

    def embed_query(self, text: str) -> Vector:
        self.asked.append(text)
        return super().embed_query(text)


def test_a_query_is_computed_once_within_fifteen_minutes() -> None:
    moment = [0.0]
    model = Counting()
    embedder = CachedEmbedder(model, clock=lambda: moment[0])
    first = embedder.embed_query("tea")
    moment[0] = 899.9
    assert embedder.embed_query("tea") is first
    moment[0] = 900.0
    assert np.array_equal(embedder.embed_query("tea"), first)
    assert model.asked == ["tea", "tea"]


def test_another_model_never_answers_from_the_cache() -> None:
    model = Counting()
    embedder = CachedEmbedder(model)
    embedder.embed_query("tea")
    model.now = Fingerprint(model="other", dimension=16, pooling="hash")
    embedder.embed_query("tea")
    assert len(model.asked) == 2


def test_the_least_recently_used_goes_first() -> None:
    model = Counting()
    embedder = CachedEmbedder(model, size=2)
    for text in ("a", "b", "a", "c", "a", "b"):
        embedder.embed_query(text)
    assert model.asked == ["a", "b", "c", "b"]


def test_a_kept_vector_cannot_be_changed() -> None:
    vector = CachedEmbedder(HashEmbedder(16)).embed_query("tea")
    with pytest.raises(ValueError, match="read-only"):
        vector[0] = 5


def test_passages_pass_through() -> None:
    embedder = CachedEmbedder(HashEmbedder(16))
    assert np.array_equal(
        embedder.embed_passages(["a", "b"]), HashEmbedder(16).embed_passages(["a", "b"])
    )
    assert embedder.split("a b") == ["a b"]
    assert embedder.fingerprint == HashEmbedder(16).fingerprint


def test_threads_share_it() -> None:
    embedder = CachedEmbedder(HashEmbedder(16), size=8)
    wrong: list[str] = []

    def ask(seed: int) -> None:
        for at in range(300):
            text = f"text {(seed * 7 + at) % 20}"
            if not np.array_equal(embedder.embed_query(text), HashEmbedder(16).embed_query(text)):
                wrong.append(text)

    threads = [threading.Thread(target=ask, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []
