"""Which part of a long text a query is about, by the words that they share."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Sequence
from typing import TypeVar

from pps.core.text import chunks, fold
from pps.core.values import AnchorPassage
from pps.recall.question import content_words

LONG = 600
"""Characters above which a text is shown by its matching passage."""
_PASSAGE, _OVERLAP = 500, 120
_WORD = re.compile(r"\w+")
T = TypeVar("T")


def passage_of(query: str, text: str, size: int = LONG) -> str:
    """Return the passage of a long text that shares most with the query; empty up to ``size`` characters."""
    if len(text) <= size:
        return ""
    return _most(query, list(chunks(text, size=min(size, _PASSAGE), overlap=_OVERLAP)), lambda piece: piece)


def most_like(query: str, passages: Sequence[AnchorPassage]) -> AnchorPassage:
    """Return the passage that shares most with the query, the first of equals; there must be one."""
    return _most(query, passages, lambda passage: f"{passage.title} {passage.text}")


def _most(query: str, pieces: Sequence[T], text_of: Callable[[T], str]) -> T:
    wanted = grams(content_words(query))
    having = [wanted & grams(text_of(piece)) for piece in pieces]
    times = Counter(word for words in having for word in words)
    # A word of every piece tells none of them apart; one of a single piece does.
    worth = [sum(1 / times[word] for word in words) for words in having]
    return pieces[worth.index(max(worth))]


def grams(text: str) -> frozenset[str]:
    """Return the folded words of a text; in scripts without spaces, its pairs of characters too."""
    words = _WORD.findall(fold(text))
    pairs = (word[at : at + 2] for word in words if not word.isascii() for at in range(len(word) - 1))
    return frozenset(words) | frozenset(pairs)
