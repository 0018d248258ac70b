"""Groups of memories that are alike in several perspectives at once, and how two sets of groups compare."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from importlib import import_module

import numpy as np
from numpy.typing import NDArray

from pps.config.spaces import Space

FEWEST = 3
"""Memories of the smallest cluster, and of the smallest topic."""
LEAST_AGREEMENT = 2.5
"""Sum of the weights of the spaces in which two memories are of one cluster, from which on a topic joins them."""
WHOLE_AGREEMENT = 8.5
"""The same where all thirteen agree: confidence is a share of it."""
_NO_LOW = 0.5
_TERMS = 5


@dataclass(frozen=True, slots=True)
class Group:
    """Places of memories that belong together, ascending, and the mean agreement of each with the others joined."""

    members: tuple[int, ...]
    agreements: tuple[float, ...]


def shared_clusters(likeness: NDArray[np.float32], least: float) -> NDArray[np.bool_]:
    """Return which pairs are of one cluster of a space, shape (n, n).

    Args:
        likeness: In [-1, 1], shape (n, n); NaN where one of two has no feature.
        least: Two that are less alike share nothing, however empty the room around them is.

    Source: HDBSCAN, Campello et al. 2013.
    """
    shared = np.zeros(likeness.shape, dtype=bool)
    having = np.flatnonzero(~np.isnan(np.diagonal(likeness)))
    if len(having) < FEWEST:
        return shared
    among = np.nan_to_num(likeness[np.ix_(having, having)], nan=-1.0)
    both = (among.astype(np.float64) + among.T) / 2  # a product of matrices rounds its two halves apart
    distances = np.clip(1.0 - both, 0.0, None)
    np.fill_diagonal(distances, 0.0)
    labels = _labels(distances, one=False)
    if (labels < 0).all():  # a memory of one subject alone is one cluster
        labels = _labels(distances, one=True)
    together = (labels[:, None] == labels[None, :]) & (labels >= 0)[:, None] & (both >= least)
    shared[np.ix_(having, having)] = together
    return shared


def _labels(distances: NDArray[np.float64], *, one: bool) -> NDArray[np.int64]:
    cluster = import_module("sklearn.cluster")  # a second, that few processes need
    model = cluster.HDBSCAN(
        min_cluster_size=FEWEST, min_samples=2, metric="precomputed", allow_single_cluster=one, copy=True
    )
    return model.fit_predict(distances)


def floor_of(space: Space, model: str) -> float:
    """Return the similarity from which on two memories can share a cluster of a space."""
    limits = space.threshold(model)
    if limits is None:
        return _NO_LOW
    return limits.low if limits.low is not None else limits.high


def groups(agreement: NDArray[np.float32]) -> list[Group]:
    """Return the connected groups of at least ``FEWEST`` among pairs that agree enough, the largest first."""
    joined = agreement >= LEAST_AGREEMENT
    np.fill_diagonal(joined, val=False)
    count, labels = import_module("scipy.sparse.csgraph").connected_components(joined, directed=False)
    sizes = np.bincount(labels, minlength=count)
    sums, degrees = np.where(joined, agreement, 0.0).sum(axis=1), joined.sum(axis=1)
    found: list[Group] = []
    for label in np.flatnonzero(sizes >= FEWEST):
        members = np.flatnonzero(labels == label)
        found.append(Group(tuple(members.tolist()), tuple((sums[members] / degrees[members]).tolist())))
    return sorted(found, key=lambda one: (-len(one.members), one.members))


def kept_ids(new: Sequence[AbstractSet[str]], old: Mapping[str, AbstractSet[str]]) -> dict[int, str]:
    """Return by place the id that each new topic keeps: that of the old one with which it shares most, once each."""
    pairs = [
        (len(some & members) / len(some | members), at, id_)
        for at, some in enumerate(new)
        for id_, members in old.items()
        if some & members
    ]
    kept: dict[int, str] = {}
    for _, at, id_ in sorted(pairs, key=lambda one: (-one[0], one[1], one[2])):
        if at not in kept and id_ not in kept.values():
            kept[at] = id_
    return kept


def churn(now: AbstractSet[object], before: AbstractSet[object]) -> float:
    """Return the share of two sets that is in one of them only, 0 to 1."""
    return len(now ^ before) / len(now | before) if now or before else 0.0


def entropy(sizes: Sequence[int]) -> float | None:
    """Return Shannon's entropy of topics' sizes by its greatest, 0 to 1; None for fewer than two topics."""
    if len(sizes) < 2:
        return None
    whole = sum(sizes)
    return -sum(one / whole * math.log2(one / whole) for one in sizes) / math.log2(len(sizes))


def telling_terms(texts: Sequence[Iterable[str]]) -> list[tuple[str, ...]]:
    """Return each topic's most telling terms, at most five.

    Args:
        texts: The words of each topic, all of its members'.

    Source: class-based TF-IDF, Grootendorst 2022.
    """
    counts = [Counter(words) for words in texts]
    everywhere: Counter[str] = sum(counts, Counter[str]())
    average = sum(everywhere.values()) / max(1, len(counts))
    weigh = {word: math.log1p(average / count) for word, count in everywhere.items()}
    ranked = [sorted(some, key=lambda word, some=some: (-some[word] * weigh[word], word)) for some in counts]
    return [tuple(some[:_TERMS]) for some in ranked]
