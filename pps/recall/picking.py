"""Choosing among what is ranked: one of each pair, one of each text, or those that differ from each other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from pps.core.text import fold
from pps.core.values import Episode, Turn
from pps.journal.links import FactOutline
from pps.models.protocols import Vector
from pps.recall.ask import Candidate
from pps.recall.query import is_question


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
