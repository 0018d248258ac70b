"""Groups of memories that are alike in several perspectives at once, and how two sets of groups compare."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from importlib import import_module

import numpy as np
from numpy.typing import NDArray

from pps.config.spaces import Thresholds

FEWEST = 3
"""Memories of the smallest cluster, and of the smallest topic."""
WHOLE_AGREEMENT = 8.5
"""The same where all thirteen agree: confidence is a share of it."""
_NO_LOW = 0.5
_NEIGHBOURS = (1.0, 0.7, 0.4)
"""What a memory, the next to it in its session, and the next but one count in what it is about."""
IN_COMMON = 50
"""Memories from which on what all of them share can be told from what one is about."""


@dataclass(frozen=True, slots=True)
class Group:
    """Places of memories that belong together, ascending, and the mean agreement of each with the others joined."""

    members: tuple[int, ...]
    agreements: tuple[float, ...]


def centred(products: NDArray[np.float32], known: NDArray[np.bool_]) -> NDArray[np.float32]:
    """Return the products of vectors as they are less their mean, shape (n, n).

    ``known`` says which have one.
    """
    means = products[:, known].mean(axis=1)
    return products - means[:, None] - means[None, :] + means[known].mean()


def to_middle(products: NDArray[np.float32], new: Sequence[int], before: Sequence[int]) -> float:
    """Return the cosine of the mean of some vectors and that of others, by the products of all of them."""
    lengths = products[np.ix_(new, new)].sum() * products[np.ix_(before, before)].sum()
    return float(products[np.ix_(new, before)].sum() / math.sqrt(max(float(lengths), 1e-12)))


def in_context(
    likeness: NDArray[np.float32], places: Sequence[tuple[str, int]], least: float
) -> NDArray[np.float32]:
    """Return cosines of memories read with their neighbours, less the direction that all of them share.

    A line says little about its subject; those around it that are near it say more.

    Args:
        likeness: Cosines of vectors, shape (n, n); NaN where one of two has none.
        places: Session and place in it of each memory.
        least: A neighbour that is less alike is left out.
    """
    known = ~np.isnan(np.diagonal(likeness))
    whole = np.nan_to_num(likeness, nan=0.0)
    if known.sum() >= IN_COMMON:
        whole = centred(whole, known)
    at = {place: number for number, place in enumerate(places)}
    rows = list[int]()
    columns = list[int]()
    weights = list[float]()
    for number, (session, place) in enumerate(places):
        for step in range(1 - len(_NEIGHBOURS), len(_NEIGHBOURS)):
            other = at.get((session, place + step))
            if other is not None and (other == number or likeness[number, other] >= least):
                rows.append(number)
                columns.append(other)
                weights.append(_NEIGHBOURS[abs(step)])
    near = import_module("scipy.sparse").csr_array(
        (weights, (rows, columns)), shape=likeness.shape, dtype=np.float32
    )
    neighbours = near @ (near @ whole).T
    length = np.sqrt(np.clip(np.diagonal(neighbours), 1e-9, None))
    neighbours = neighbours / length[:, None] / length[None, :]
    neighbours[~known, :] = neighbours[:, ~known] = np.nan
    return neighbours.astype(np.float32)


def shared_clusters(
    likeness: NDArray[np.float32], least: float, clustered: NDArray[np.float32] | None = None
) -> NDArray[np.bool_]:
    """Return which pairs are of one cluster of a space, shape (n, n).

    Args:
        likeness: In [-1, 1], shape (n, n); NaN where one of two has no feature.
        least: Two that are less alike share nothing, however empty the room around them is.
        clustered: What the clusters are made of, as ``in_context`` returns it; ``likeness`` when
            not given.

    Source: HDBSCAN, Campello et al. 2013.
    """
    shared = np.zeros(likeness.shape, dtype=bool)
    having = np.flatnonzero(~np.isnan(np.diagonal(likeness)))
    if len(having) < FEWEST:
        return shared
    least_alike, among = (
        _even(np.nan_to_num(matrix[np.ix_(having, having)], nan=-1.0))
        for matrix in (likeness, _or(clustered, likeness))
    )
    distances = np.clip(1.0 - among, 0.0, None)
    np.fill_diagonal(distances, 0.0)
    labels = _labels(distances, is_single=False)
    if (labels < 0).all():  # a memory of one subject alone is one cluster
        labels = _labels(distances, is_single=True)
    together = (
        (labels[:, None] == labels[None, :]) & (labels >= 0)[:, None] & (least_alike >= least)
    )
    shared[np.ix_(having, having)] = together
    return shared


def _or(matrix: NDArray[np.float32] | None, otherwise: NDArray[np.float32]) -> NDArray[np.float32]:
    return otherwise if matrix is None else matrix


def _even(likeness: NDArray[np.float32]) -> NDArray[np.float64]:
    """Return it symmetric: a product of matrices rounds its two halves apart."""
    return (likeness.astype(np.float64) + likeness.T) / 2


def _labels(distances: NDArray[np.float64], *, is_single: bool) -> NDArray[np.int64]:
    """Return clusters; the more memories, the larger is the smallest: 3 up to 90, 5 of 300, 8 of 2,000."""
    cluster = import_module("sklearn.cluster")  # a second, that few processes need
    fewest = max(FEWEST, round(math.log2(len(distances))) - 3)
    model = cluster.HDBSCAN(
        min_cluster_size=fewest,
        min_samples=min(3, fewest - 1),
        metric="precomputed",
        allow_single_cluster=is_single,
        copy=True,
    )
    return model.fit_predict(distances)


def floor_of(limits: Thresholds | None) -> float:
    """Return the similarity from which on two memories can share a cluster of a space with these thresholds."""
    if limits is None:
        return _NO_LOW
    return limits.low if limits.low is not None else limits.high


def groups(agreement: NDArray[np.float32], least: float) -> list[Group]:
    """Return the connected groups of at least ``FEWEST`` among pairs that agree enough, the largest first.

    Args:
        agreement: Sum of the weights of the spaces in which two memories are of one cluster, shape (n, n).
        least: Of it, from which on a topic joins two.
    """
    joined = agreement >= least
    np.fill_diagonal(joined, val=False)
    count, labels = import_module("scipy.sparse.csgraph").connected_components(
        joined, directed=False
    )
    sizes = np.bincount(labels, minlength=count)
    sums = np.where(joined, agreement, 0.0).sum(axis=1)
    degrees = joined.sum(axis=1)
    groups: list[Group] = []
    for label in np.flatnonzero(sizes >= FEWEST):
        members = np.flatnonzero(labels == label)
        groups.append(
            Group(tuple(members.tolist()), tuple((sums[members] / degrees[members]).tolist()))
        )
    return sorted(groups, key=lambda group: (-len(group.members), group.members))


def kept_ids(
    new: Sequence[AbstractSet[str]], old: Mapping[str, AbstractSet[str]]
) -> dict[int, str]:
    """Return by place the id that each new topic keeps: that of the old one with which it shares most, once each."""
    pairs = [
        (len(some & members) / len(some | members), at, id_)
        for at, some in enumerate(new)
        for id_, members in old.items()
        if some & members
    ]
    ids: dict[int, str] = {}
    for _, at, id_ in sorted(pairs, key=lambda pair: (-pair[0], pair[1], pair[2])):
        if at not in ids and id_ not in ids.values():
            ids[at] = id_
    return ids


def churn(now: AbstractSet[object], before: AbstractSet[object]) -> float:
    """Return the share of two sets that is in one of them only, 0 to 1."""
    return len(now ^ before) / len(now | before) if now or before else 0.0


def entropy(sizes: Sequence[int]) -> float | None:
    """Return Shannon's entropy of topics' sizes by its greatest, 0 to 1.

    None for fewer than two topics.
    """
    if len(sizes) < 2:
        return None
    whole = sum(sizes)
    return -sum(size / whole * math.log2(size / whole) for size in sizes) / math.log2(len(sizes))
