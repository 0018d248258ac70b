"""How seldom English has a word, by the vocabulary of the embedding model that is shipped: it is in order of frequency."""

from __future__ import annotations

from functools import lru_cache

from pps.models.onnx import wordpiece

_COMMON_PIECES = 7_000
"""A word that is one of the vocabulary's first pieces is a common one."""


@lru_cache(maxsize=4096)
def is_rare(word: str) -> bool:
    """Tell whether English seldom has a word, or it is an identifier."""
    if word.isdigit():
        return len(word) > 3
    if not word.isalpha():
        return True
    pieces = wordpiece().encode(word, add_special_tokens=False).ids
    return len(pieces) > 1 or pieces[0] >= _COMMON_PIECES


@lru_cache(maxsize=4096)
def pieces_of(word: str) -> int:
    """Return of how many pieces of the vocabulary a word is made: common words are whole."""
    return len(wordpiece().encode(word, add_special_tokens=False).ids)
