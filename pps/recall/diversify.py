"""Choosing among what is ranked: one of each pair, one of each text, or those that differ from each other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from datetime import datetime

import numpy as np

from pps.core.spoken import speaker_of
from pps.core.text import fold, is_question
from pps.core.values import Episode, Fact, Turn
from pps.journal.links import FactOutline
from pps.models.protocols import Vector
from pps.recall.passages import grams
from pps.recall.query import Candidate, Item

_SHARED, _LEAST_SHARED = 0.4, 3
"""Share of their words that two turns have in common, and words at least, that state one thing."""
_READ = 1_000


def one_of_each_pair(order: Sequence[str], items: Mapping[str, Candidate]) -> tuple[list[str], list[str]]:
    """Return the best fact of each unordered (subject, object) pair, and those that were passed over."""
    seen: set[frozenset[str]] = set()
    kept: list[str] = []
    passed: list[str] = []
    for one in order:
        item = items[one]
        pair = frozenset((item.subject, item.object)) if isinstance(item, FactOutline) else frozenset((one,))
        (passed if pair in seen else kept).append(one)
        seen.add(pair)
    return kept, passed


def one_of_each_text(order: Sequence[str], items: Mapping[str, Candidate], query: str) -> tuple[list[str], list[str]]:
    """Return the best turn of those with the same words, and those that were passed over.

    A turn that only asks the query's question once more tells nothing: it is passed over too.
    """
    seen = {fold(query)} if is_question(query) else set[str]()
    kept: list[str] = []
    passed: list[str] = []
    for one in order:
        item = items[one]
        text = fold(item.content) if isinstance(item, (Episode, Turn)) else one
        (passed if text in seen else kept).append(one)
        seen.add(text)
    return kept, passed


def latest_first(
    order: Sequence[str], items: Mapping[str, Item], times: Mapping[str, datetime], wanted: Set[str]
) -> list[str]:
    """Return the order with the latest of several statements of one thing where the first of them was.

    One thing: facts of one subject and relation, or turns of one speaker that share most of their words. What has a
    word of the query that the later one lacks was asked for itself and keeps its place.

    ``times`` are when each was said; what has none moves nothing and is not moved. ``wanted`` are the folded words
    that the query is about.
    """
    left, found = list(order), list[str]()
    said = {one: _beginnings(grams(_words_of(items[one]))) for one in order}
    asked = _beginnings(wanted)
    while left:
        first = left[0]
        later = [
            one
            for one in left[1:]
            if first in times and times.get(one, times[first]) > times[first]
            if _one_thing(items[first], items[one]) and said[first] & asked <= said[one]
        ]
        left.remove(best := max(later, key=times.__getitem__, default=first))
        found.append(best)
    return found


def _one_thing(one: Item, other: Item) -> bool:
    if isinstance(one, Fact) and isinstance(other, Fact):
        return (one.subject, one.relation) == (other.subject, other.relation)
    if not (isinstance(one, Turn) and isinstance(other, Turn)) or speaker_of(one) != speaker_of(other):
        return False
    mine, theirs = grams(_words_of(one)), grams(_words_of(other))
    both = len(mine & theirs)
    return both >= _LEAST_SHARED and both >= _SHARED * len(mine | theirs)


def _words_of(item: Item) -> str:
    if isinstance(item, Turn):
        return item.content[:_READ].removeprefix(f"{item.actor}:")
    return item.text if isinstance(item, Fact) else ""


def _beginnings(words: Set[str]) -> set[str]:
    """Return the first five letters of words: "lives" and "living" are one."""
    return {word[:5] for word in words}


def diverse(
    order: Sequence[str], query: Vector, vectors: Mapping[str, Vector], *, balance: float, limit: int
) -> list[str]:
    """Return at most ``limit`` ids by maximal marginal relevance; those without a vector follow in order.

    Each step takes the id with the greatest ``balance * sim(query) - (1 - balance) * max sim(taken)``.

    Source: Carbonell and Goldstein 1998.
    """
    ids = [one for one in order if one in vectors]
    if not ids:
        return list(order[:limit])
    matrix = np.stack([vectors[one] for one in ids])
    relevance = matrix @ query
    nearest = np.full(len(ids), -1.0, dtype=np.float32)
    taken: list[int] = []
    while len(taken) < min(limit, len(ids)):
        worth = balance * relevance - (1 - balance) * (nearest if taken else np.zeros_like(nearest))
        worth[taken] = -np.inf
        taken.append(int(np.argmax(worth)))
        nearest = np.maximum(nearest, matrix @ matrix[taken[-1]])
    rest = [one for one in order if one not in vectors]
    return [*(ids[at] for at in taken), *rest][:limit]
