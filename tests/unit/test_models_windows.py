"""Cutting text to a window: nothing is lost, nothing is too long."""

from __future__ import annotations

import itertools
import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pps.models.embedding import embed_whole, readable, split_to_window, unit
from pps.models.onnx import wordpiece


def words(text: str) -> int:
    return len(text.split())


def pieces(text: str) -> int:
    return len(wordpiece().encode(text, add_special_tokens=False).ids)


def test_a_text_that_fits_is_one_passage_without_the_space_around_it() -> None:
    assert split_to_window("  Ana drinks tea.\n", words, 10) == ["Ana drinks tea."]


@pytest.mark.parametrize("text", ["", " ", "\n\t\n"])
def test_a_blank_text_has_no_passages(text: str) -> None:
    assert split_to_window(text, words, 10) == []


def test_passages_end_where_sentences_end() -> None:
    text = "One two three four. Five six seven! Eight nine? Ten eleven twelve thirteen fourteen."
    assert split_to_window(text, words, 8) == [
        "One two three four. Five six seven!",
        "Eight nine? Ten eleven twelve thirteen fourteen.",
    ]


def test_a_long_sentence_is_cut_between_words() -> None:
    text = " ".join(f"w{number}" for number in range(25))
    assert [words(part) for part in split_to_window(text, words, 10)] == [10, 10, 5]


def test_the_last_sentences_of_a_passage_open_the_next_one() -> None:
    text = "One two three. Four five six. Seven eight nine. Ten eleven twelve."
    assert split_to_window(text, words, 9, overlap=3) == [
        "One two three. Four five six. Seven eight nine.",
        "Seven eight nine. Ten eleven twelve.",
    ]


def test_a_script_without_spaces_is_cut_at_its_sentences_and_between_its_letters() -> None:
    text = "我每天早上喝咖啡。" * 3 + "茶" * 100
    parts = split_to_window(text, len, 40)
    assert "".join(parts) == text
    assert parts[0] == "我每天早上喝咖啡。" * 3
    assert max(map(len, parts)) <= 40


def test_an_accent_stays_with_its_letter() -> None:
    text = "e\u0301" * 50
    assert all(not part.startswith("\u0301") for part in split_to_window(text, len, 15))


_TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=1500)


@settings(max_examples=60, deadline=None)
@given(st.text())
def test_a_word_piece_has_a_byte_or_more(text: str) -> None:
    """``BertEmbedder.split`` counts on it."""
    text = readable(text)
    assert pieces(text) <= len(text.encode())


@given(text=_TEXT, limit=st.integers(8, 60), overlap=st.integers(0, 20))
def test_every_word_is_in_a_passage_and_no_passage_is_too_long(
    text: str, limit: int, overlap: int
) -> None:
    parts = split_to_window(text, pieces, limit, overlap=overlap)
    assert all(part in text and pieces(part) <= limit for part in parts)
    if overlap == 0:
        assert re.sub(r"\s+", "", "".join(parts)) == re.sub(r"\s+", "", text)


@settings(max_examples=40, deadline=None)
@given(
    st.lists(st.sampled_from(["ab", "cd.", "ef gh", "ij!\n", "kl"]), min_size=1, max_size=200),
    st.integers(0, 6),
)
def test_an_overlap_repeats_and_never_skips(parts: list[str], overlap: int) -> None:
    number = itertools.count()
    text = re.sub(r"[a-z]+", lambda word: f"{word[0]}{next(number)}", " ".join(parts))
    seen = [
        word
        for passage in split_to_window(text, words, 12, overlap=overlap)
        for word in passage.split()
    ]
    assert list(dict.fromkeys(seen)) == text.split()


def test_what_tokenizers_choke_on_is_made_readable() -> None:
    assert readable("a\0b\ud800c") == "a b?c"
    assert readable("naïve 咖啡 😀") == "naïve 咖啡 😀"


def test_rows_get_length_one_and_zeros_stay() -> None:
    rows = unit(np.array([[3.0, 4.0], [0.0, 0.0]], dtype=np.float32))
    assert np.allclose(rows, [[0.6, 0.8], [0.0, 0.0]])
    assert rows.dtype == np.float32


def test_a_long_text_is_the_weighted_mean_of_its_passages() -> None:
    def embed(texts: list[str]) -> np.ndarray:
        return np.array(
            [[1.0, 0.0] if text.startswith("a") else [0.0, 1.0] for text in texts], dtype=np.float32
        )

    rows = embed_whole(["aaa", "a|bbb", ""], lambda text: text.split("|") if text else [], embed)
    assert np.allclose(rows[0], [1, 0])
    assert np.allclose(rows[1], np.array([1, 3]) / np.sqrt(10))
    assert np.allclose(rows[2], [0, 1])
