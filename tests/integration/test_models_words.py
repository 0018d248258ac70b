"""The words that a model takes to be alike: whole words of its own table, other forms left out, unknown ones silent."""

from __future__ import annotations

from pps.models.bert import BertEmbedder


def test_words_that_mean_nearly_the_same_are_near_in_the_models_own_table() -> None:
    embedder = BertEmbedder()
    for word, other in (("fast", "quick"), ("car", "vehicle"), ("doctor", "physician")):
        found = embedder.like_words([word])
        assert other in found, (word, found)
        assert len(found) <= 4
        assert not [one for one in found if one.startswith(word)]


def test_what_is_no_word_of_the_table_has_none() -> None:
    embedder = BertEmbedder()
    assert embedder.like_words(["qzxv", "", "##ing"]) == []
    assert embedder.like_words([]) == []
