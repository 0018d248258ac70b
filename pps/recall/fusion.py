"""Joining the lists of one channel: weighted reciprocal ranks, or a weighted sum of signals."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby

from pps.recall.ask import Scored


def fused(lists: Mapping[str, Sequence[Scored]], weights: Mapping[str, float], *, k: float) -> dict[str, float]:
    """Return id → score, best first: the sum over lists of ``weight / (k + rank)``, ranks from 1.

    Equal values of a list share the mean of their ranks, so that equal memories give equal orders whatever
    their ids are; what is equal in the end keeps the order of the lists.

    Source: reciprocal rank fusion, Cormack, Clarke and Büttcher 2009.
    """
    scores: dict[str, float] = {}
    for name, entries in lists.items():
        for one, rank in _shared_ranks(entries):
            scores[one.id] = scores.get(one.id, 0.0) + weights[name] / (k + rank)
    return _best_first(scores)


def summed(lists: Mapping[str, Sequence[Scored]], weights: Mapping[str, float]) -> dict[str, float]:
    """Return id → weighted mean of its signals in [0, 1], best first.

    Weights are renormalised over the lists that say anything at all; an id that a list leaves out has
    signal 0 there.
    """
    applying = {name: entries for name, entries in lists.items() if entries and weights[name] > 0}
    total = sum(weights[name] for name in applying) or 1.0
    scores: dict[str, float] = {}
    for name, entries in applying.items():
        for one in entries:
            scores[one.id] = scores.get(one.id, 0.0) + weights[name] / total * one.signal
    return _best_first(scores)


def ranks_of(lists: Mapping[str, Sequence[Scored]]) -> dict[str, dict[str, int]]:
    """Return id → perspective → rank (1 is best): why a result is where it is."""
    ranks: dict[str, dict[str, int]] = {}
    for name, entries in lists.items():
        for rank, one in enumerate(entries, start=1):
            ranks.setdefault(one.id, {})[name] = rank
    return ranks


def signals_of(lists: Mapping[str, Sequence[Scored]]) -> dict[str, dict[str, float]]:
    """Return id → perspective → signal: the breakdown of a weighted sum."""
    signals: dict[str, dict[str, float]] = {}
    for name, entries in lists.items():
        for one in entries:
            signals.setdefault(one.id, {})[name] = one.signal
    return signals


def _shared_ranks(entries: Sequence[Scored]) -> Iterator[tuple[Scored, float]]:
    """Yield each entry with its rank from 1; neighbours of equal score share the mean of theirs."""
    start = 1
    for _, tied in groupby(entries, key=lambda one: one.score):
        group = list(tied)
        yield from ((one, start + (len(group) - 1) / 2) for one in group)
        start += len(group)


def _best_first(scores: Mapping[str, float]) -> dict[str, float]:
    return {one: scores[one] for one in sorted(scores, key=lambda one: -scores[one])}
