"""Which part of a long text a query is about, by the words that they share."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import TypeVar

from pps.core.text import chunks, fold
from pps.core.values import AnchorPassage

LONG = 900
"""Characters above which a text is shown by its matching passage."""
_WORD = re.compile(r"\w+")
T = TypeVar("T")


def passage_of(query: str, text: str, size: int = LONG) -> str:
    """Return the passage of a long text that shares most with the query; empty up to ``size`` characters."""
    if len(text) <= size:
        return ""
    return _most(query, list(chunks(text, size=size)), lambda piece: piece)


def most_like(query: str, passages: Sequence[AnchorPassage]) -> AnchorPassage:
    """Return the passage that shares most with the query, the first of equals; there must be one."""
    return _most(query, passages, lambda passage: f"{passage.title} {passage.text}")


def _most(query: str, pieces: Sequence[T], text_of: Callable[[T], str]) -> T:
    wanted = grams(query)
    return max(pieces, key=lambda piece: len(wanted & grams(text_of(piece))))


def grams(text: str) -> frozenset[str]:
    """Return the folded words of a text; in scripts without spaces, its pairs of characters too."""
    words = _WORD.findall(fold(text))
    pairs = (word[at : at + 2] for word in words if not word.isascii() for at in range(len(word) - 1))
    return frozenset(words) | frozenset(pairs)
