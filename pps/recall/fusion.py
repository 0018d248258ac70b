"""Joining the lists of one channel: weighted reciprocal ranks, or a weighted sum of signals."""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence
from operator import itemgetter

from pps.recall.query import Scored


def fused(lists: Mapping[str, Sequence[Scored]], weights: Mapping[str, float], *, k: float) -> dict[str, float]:
    """Return id → score, best first: the sum over lists of ``weight / (k + rank)``, ranks from 1.

    Equal values of a list share the mean of their ranks, so that equal memories give equal orders whatever
    their ids are; what is equal in the end keeps the order of the lists.

    Source: reciprocal rank fusion, Cormack, Clarke and Büttcher 2009.
    """
    scores: dict[str, float] = {}
    for name, entries in lists.items():
        start, size, weight = 0, len(entries), weights[name]
        while start < size:
            end, value = start + 1, entries[start].score
            while end < size and entries[end].score == value:
                end += 1
            share = weight / (k + (start + 1 + end) / 2)  # the mean of the ranks start + 1 to end
            for one in entries[start:end]:
                scores[one.id] = scores.get(one.id, 0.0) + share
            start = end
    return _best_first(scores)


def unanimous(lists: Iterable[Sequence[Scored]], among: Container[str]) -> set[str]:
    """Return the ids that come first in every list that has any of ``among``; equals of a list share its first rank."""
    found: set[str] | None = None
    for entries in lists:
        if known := [one for one in entries if one.id in among]:
            firsts = {one.id for one in known if one.score == known[0].score}
            found = firsts if found is None else found & firsts
    return found or set()


def summed(lists: Mapping[str, Sequence[Scored]], weights: Mapping[str, float]) -> dict[str, float]:
    """Return id → weighted mean of its signals in [0, 1], best first.

    Weights are renormalised over the lists that say anything at all; an id that a list leaves out has
    signal 0 there.
    """
    applying = {name: entries for name, entries in lists.items() if entries and weights[name] > 0}
    total = sum(weights[name] for name in applying) or 1.0
    scores = dict.fromkeys((one.id for entries in lists.values() for one in entries), 0.0)
    for name, entries in applying.items():
        for one in entries:
            scores[one.id] = scores.get(one.id, 0.0) + weights[name] / total * one.signal
    return _best_first(scores)


def ranks_of(lists: Mapping[str, Sequence[Scored]], ids: Container[str]) -> dict[str, dict[str, int]]:
    """Return id → perspective → rank (1 is best) of some ids: why a result is where it is."""
    ranks: dict[str, dict[str, int]] = {}
    for name, entries in lists.items():
        for rank, one in enumerate(entries, start=1):
            if one.id in ids:
                ranks.setdefault(one.id, {})[name] = rank
    return ranks


def signals_of(lists: Mapping[str, Sequence[Scored]], ids: Container[str]) -> dict[str, dict[str, float]]:
    """Return id → perspective → signal of some ids: the breakdown of a weighted sum."""
    signals: dict[str, dict[str, float]] = {}
    for name, entries in lists.items():
        for one in entries:
            if one.id in ids:
                signals.setdefault(one.id, {})[name] = one.signal
    return signals


def _best_first(scores: Mapping[str, float]) -> dict[str, float]:
    return dict(sorted(scores.items(), key=itemgetter(1), reverse=True))
