"""Small operations on lists of scored ids, shared by perspectives."""

from __future__ import annotations

from collections.abc import Sequence

from pps.recall.query import Scored

WEAK_BM25 = 8.0
"""A best match below this BM25 score does not get the full signal of 1: one weak hit is not a good one."""


def best_of(lists: Sequence[Sequence[Scored]], depth: int) -> list[Scored]:
    """Return the best ``depth`` of lists that share a unit; an id keeps its best score."""
    best: dict[str, Scored] = {}
    for one in (scored for entries in lists for scored in entries):
        if one.id not in best or one.score > best[one.id].score:
            best[one.id] = one
    return sorted(best.values(), key=lambda one: -one.score)[:depth]


def textual(entries: Sequence[Scored]) -> list[Scored]:
    """Return BM25 entries with their signal: the score over the best one, or over ``WEAK_BM25`` if that is more."""
    most = max((one.score for one in entries), default=0.0)
    return [Scored(one.id, one.score, one.score / max(most, WEAK_BM25)) for one in entries]


def in_order(ids: Sequence[str], depth: int) -> list[Scored]:
    """Return the first ``depth`` distinct ids as a list whose order is all that is known of it."""
    unique = list(dict.fromkeys(ids))[:depth]
    return [Scored(one, -float(rank), 1 / (1 + rank)) for rank, one in enumerate(unique)]
