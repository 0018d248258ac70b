"""The cache of query vectors: 15 minutes, bounded, by model and dimension, one an entity."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from pps.app import App
from pps.config import EmbedderSettings, Settings
from pps.models.hash import HashEmbedder
from pps.models.protocols import Vector
from pps.recall import search
from pps.recall.search import QueryVectors


class Counting(HashEmbedder):
    """Notes which queries it is given."""

    def __init__(self, dimension: int = 64) -> None:
        super().__init__(dimension=dimension)
        self.queries: list[str] = []

    def embed_query(self, text: str) -> Vector:
        self.queries.append(text)
        return super().embed_query(text)


async def test_a_query_is_embedded_once_in_15_minutes() -> None:
    moment = 1_000.0
    vectors, model = QueryVectors(lambda: moment), Counting()
    first = await vectors.of("tea", model)
    moment += search.QUERY_KEPT_S - 1
    assert np.array_equal(await vectors.of("tea", model), first)
    assert model.queries == ["tea"]
    moment += 2
    await vectors.of("tea", model)
    assert model.queries == ["tea", "tea"]


async def test_another_model_or_dimension_is_another_vector() -> None:
    vectors, small, large = QueryVectors(), Counting(), Counting(128)
    assert (await vectors.of("tea", small)).shape == (64,)
    assert (await vectors.of("tea", large)).shape == (128,)
    assert small.queries == large.queries == ["tea"]


async def test_the_queries_asked_longest_ago_are_let_go() -> None:
    vectors, model = QueryVectors(), Counting()
    for number in range(search.QUERIES_KEPT + 1):
        await vectors.of(f"q{number}", model)
        await vectors.of("q1", model)
    before = len(model.queries)
    await vectors.of("q1", model)
    assert len(model.queries) == before
    await vectors.of("q0", model)
    assert len(model.queries) == before + 1


async def test_what_one_entity_asked_tells_another_nothing(tmp_path: Path) -> None:
    model = Counting()
    settings = Settings(home=tmp_path, embedder=EmbedderSettings(name="hash", dimension=64))
    async with App.open(settings, embedder=model) as app:
        for name in ("ana", "ben"):
            await app.create(name)
            async with app.memory(name) as memory:
                await memory.remember("Tea is in the tin.")
                await memory.recall("tea")
                await memory.recall("tea")
    assert (
        model.queries.count("tea") == 2
    )  # once an entity: none learns from its speed what the other was asked
