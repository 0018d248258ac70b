"""Topics as values, and the groups of memories that they come from.

A group is of memories that are alike in several perspectives; sets of groups are compared for churn
and entropy.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from datetime import datetime
from importlib import import_module
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from pps.config.spaces import Thresholds

PRIOR = 0.5
"""The importance of a memory without a stated one."""
_K1 = 1.2
_HALF_LIFE_D = 45.0
_DAY_S = 86_400.0

Phase: TypeAlias = Literal["emerging", "stable", "declining", "merging"]

FEWEST = 3
"""Memories of the smallest cluster, and of the smallest topic."""
WHOLE_AGREEMENT = 8.5
"""Agreement of two memories when all thirteen perspectives agree; confidence is relative to it."""
_DEFAULT_FLOOR = 0.5
_NEIGHBOUR_WEIGHTS = (1.0, 0.7, 0.4)
"""Weights of a memory, of the next in its session and of the next but one for its subject."""
IN_COMMON = 50
"""Fewest memories whose mean vector is common to all rather than the subject of a few."""


@dataclass(frozen=True, slots=True)
class Topic:
    """A subject that several memories have in common.

    Attributes:
        id: Stays while most members stay.
        confidence: Mean agreement of its members, relative to agreement in all spaces, 0 to 1.
        churn: Share of members that came or went since an hour ago, 0 to 1; None without an earlier
            snapshot.
    """

    id: str
    name: str
    terms: tuple[str, ...]
    named: tuple[str, ...]
    size: int
    confidence: float
    phase: Phase
    age_h: float
    members: tuple[str, ...]
    churn: float | None = None


@dataclass(frozen=True, slots=True)
class Portfolio:
    """All topics of a memory, the largest first.

    Attributes:
        at: When they were looked for; None if never.
        churn: Share of all memberships that changed since an hour ago; None without an earlier
            snapshot.
        entropy: How evenly sizes are spread, 0 to 1; None for fewer than two topics.
        consolidate: Topics are many and unsteady, so merging repeated memories is worth a look.
    """

    topics: tuple[Topic, ...]
    at: datetime | None = None
    churn: float | None = None
    entropy: float | None = None
    consolidate: bool = False


@dataclass(frozen=True, slots=True)
class Stability:
    """How steady the topics were over some hours.

    Attributes:
        churn: Share of memberships that differ between the first and the last snapshot of these
            hours, 0 to 1; None with a single snapshot.
    """

    hours: int
    snapshots: int
    topics: int
    phases: Mapping[str, int]
    consolidate: bool
    at: datetime | None = None
    churn: float | None = None
    entropy: float | None = None


def importance(showings: int, at: datetime, moment: datetime, stored: float = PRIOR) -> float:
    """Return the importance of a memory, above 0 and at most ``stored * 3.2``.

    It is ``stored * (1 + log-saturated showings) * 2 ** (-age / 45 d)``.

    Args:
        showings: How often it was really shown in sessions; 0 takes nothing away.
        at: When it was said.
        moment: The time of the request; a time before ``at`` counts as ``at``.
        stored: The stated importance, 0 to 1.

    Source: the saturation of BM25's term frequency, Robertson et al. 1994.
    """
    times = math.log1p(showings)
    age_d = max(0.0, (moment - at).total_seconds() / _DAY_S)
    return stored * (1 + times * (_K1 + 1) / (times + _K1)) * 2 ** (-age_d / _HALF_LIFE_D)


@dataclass(frozen=True, slots=True)
class Group:
    """Memories that form one topic.

    Attributes:
        members: Positions of the memories, ascending.
        agreements: Of each member, the mean agreement with the members that it is joined to.
    """

    members: tuple[int, ...]
    agreements: tuple[float, ...]


def centred(products: NDArray[np.float32], known: NDArray[np.bool_]) -> NDArray[np.float32]:
    """Return the dot products of vectors after their mean is subtracted, shape (n, n).

    Args:
        products: Dot products before that, shape (n, n).
        known: Which of the n have a vector, shape (n,).
    """
    means = products[:, known].mean(axis=1)
    return products - means[:, None] - means[None, :] + means[known].mean()


def to_middle(products: NDArray[np.float32], new: Sequence[int], before: Sequence[int]) -> float:
    """Return the cosine between the means of two sets of vectors.

    Args:
        products: Dot products of all vectors, shape (n, n).
        new: Positions of the first set.
        before: Positions of the second set.
    """
    lengths = products[np.ix_(new, new)].sum() * products[np.ix_(before, before)].sum()
    return float(products[np.ix_(new, before)].sum() / math.sqrt(max(float(lengths), 1e-12)))


def in_context(
    likeness: NDArray[np.float32], places: Sequence[tuple[str, int]], least: float
) -> NDArray[np.float32]:
    """Return cosines of memories whose vectors include those of their neighbours in the session.

    A single turn says little about its subject; similar turns around it say more. The mean
    direction of all memories is removed first, if there are enough of them.

    Args:
        likeness: Cosines of vectors, shape (n, n); NaN where either memory has no vector.
        places: Of each memory, its session and its position in that session.
        least: Cosine below which a neighbour is left out.
    """
    known = ~np.isnan(np.diagonal(likeness))
    whole = np.nan_to_num(likeness, nan=0.0)
    if known.sum() >= IN_COMMON:
        whole = centred(whole, known)
    index_at = {place: index for index, place in enumerate(places)}
    rows: list[int] = []
    columns: list[int] = []
    weights: list[float] = []
    for index, (session, position) in enumerate(places):
        for step in range(1 - len(_NEIGHBOUR_WEIGHTS), len(_NEIGHBOUR_WEIGHTS)):
            other = index_at.get((session, position + step))
            if other is not None and (other == index or likeness[index, other] >= least):
                rows.append(index)
                columns.append(other)
                weights.append(_NEIGHBOUR_WEIGHTS[abs(step)])
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
    """Return which pairs of memories share a cluster of a space, shape (n, n).

    Args:
        likeness: In [-1, 1], shape (n, n); NaN where either memory has no feature.
        least: A pair that is less alike shares no cluster, however sparse its surroundings are.
        clustered: The similarities to cluster by, from ``in_context``; ``likeness`` by default.

    Source: HDBSCAN, Campello et al. 2013.
    """
    shared = np.zeros(likeness.shape, dtype=bool)
    having = np.flatnonzero(~np.isnan(np.diagonal(likeness)))
    if len(having) < FEWEST:
        return shared
    similarity = _symmetric(likeness, having)
    clustering = similarity if clustered is None else _symmetric(clustered, having)
    distances = np.clip(1.0 - clustering, 0.0, None)
    np.fill_diagonal(distances, 0.0)
    labels = _cluster_labels(distances, is_single=False)
    if (labels < 0).all():  # turns about a single subject are one cluster
        labels = _cluster_labels(distances, is_single=True)
    together = (labels[:, None] == labels[None, :]) & (labels >= 0)[:, None] & (similarity >= least)
    shared[np.ix_(having, having)] = together
    return shared


def _symmetric(likeness: NDArray[np.float32], having: NDArray[np.intp]) -> NDArray[np.float64]:
    """Return the rows and columns ``having`` as a symmetric matrix, with -1 for NaN.

    The two halves of a matrix product differ by rounding, and HDBSCAN needs them equal.
    """
    known = np.nan_to_num(likeness[np.ix_(having, having)], nan=-1.0)
    return (known.astype(np.float64) + known.T) / 2


def _cluster_labels(distances: NDArray[np.float64], *, is_single: bool) -> NDArray[np.int64]:
    """Return the cluster of each memory, -1 for none, shape (n,).

    The smallest cluster allowed grows with n: 3 memories up to n = 90, 5 at 300, 8 at 2,000.
    """
    cluster = import_module("sklearn.cluster")  # a slow import that few processes need
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
    """Return the least similarity of two memories that share a cluster of a space.

    Args:
        limits: The thresholds of the space, or None if it has none.
    """
    if limits is None:
        return _DEFAULT_FLOOR
    return limits.low if limits.low is not None else limits.high


def groups(agreement: NDArray[np.float32], least: float) -> list[Group]:
    """Return the connected groups of at least ``FEWEST`` memories, the largest first.

    Args:
        agreement: Sum of the weights of the spaces in which two memories share a cluster,
            shape (n, n).
        least: The agreement from which on two memories are joined.
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
    """Return the ids that new topics take over from old ones, by the new topic's index.

    A topic takes the id of the old topic with the greatest Jaccard similarity to it. No id is used
    twice, and a new topic that shares no member with an old one has no entry.
    """
    pairs = [
        (len(topic & members) / len(topic | members), index, id_)
        for index, topic in enumerate(new)
        for id_, members in old.items()
        if topic & members
    ]
    ids: dict[int, str] = {}
    for _, index, id_ in sorted(pairs, key=lambda pair: (-pair[0], pair[1], pair[2])):
        if index not in ids and id_ not in ids.values():
            ids[index] = id_
    return ids


def churn(now: AbstractSet[object], before: AbstractSet[object]) -> float:
    """Return the Jaccard distance of two sets, 0 to 1; 0 if both are empty."""
    return len(now ^ before) / len(now | before) if now or before else 0.0


def entropy(sizes: Sequence[int]) -> float | None:
    """Return the Shannon entropy of topics' sizes divided by its maximum, 0 to 1.

    None for fewer than two topics.
    """
    if len(sizes) < 2:
        return None
    total = sum(sizes)
    return -sum(size / total * math.log2(size / total) for size in sizes) / math.log2(len(sizes))
