"""The deterministic embedder of the tests."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from pps.models.hash import HashEmbedder


def test_the_same_text_has_the_same_vector_in_every_process() -> None:
    code = "from pps.models.hash import HashEmbedder; print(HashEmbedder(16).embed_query('Ana 咖啡').tolist())"
    runs = {
        subprocess.run(
            [sys.executable, "-c", code],
            env={"PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("0", "1")
    }
    assert runs == {f"{HashEmbedder(16).embed_query('Ana 咖啡').tolist()}\n"}


def test_texts_that_share_words_are_more_similar_than_texts_that_do_not() -> None:
    embedder = HashEmbedder()
    query = embedder.embed_query("coffee in the kitchen")
    related, inflected, other = embedder.embed_passages(
        ["Ana drinks coffee in her kitchen", "kitchens and coffees", "the quarterly report is late"]
    )
    assert query @ related > 0.4
    assert query @ inflected > 0.2
    assert query @ other < query @ inflected


@given(st.lists(st.text(max_size=50), max_size=5))
def test_every_text_has_a_vector_of_length_one(texts: list[str]) -> None:
    rows = HashEmbedder(32).embed_passages(texts)
    assert rows.shape == (len(texts), 32)
    assert rows.dtype == np.float32
    assert np.allclose(np.linalg.norm(rows, axis=1), 1)


def test_case_and_width_do_not_matter() -> None:
    embedder = HashEmbedder()
    assert np.array_equal(embedder.embed_query("COFFEE ＡＮＡ"), embedder.embed_query("coffee ana"))


def test_the_fingerprint_says_the_dimension() -> None:
    assert HashEmbedder(64).fingerprint.dimension == 64
    assert HashEmbedder(64).fingerprint != HashEmbedder(32).fingerprint


def test_a_long_text_is_split() -> None:
    assert len(HashEmbedder().split("word " * 450)) == 3
