"""Likeness of memories in meaning, in rare words, in what they name and in what that is tied to."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet

import numpy as np

from pps.models.protocols import Vector
from pps.recall.perspectives import Likeness
from pps.recall.question import STOP_WORDS, grams
from pps.recall.search import Sources

_RAREST_WORDS = 10
"""Rarest words of a text that it is compared by."""
_MAX_FACTS_AROUND = 2_000
"""Most facts around what memories name that are read to compare them."""


async def by_meaning(sources: Sources, ids: Sequence[str]) -> Likeness:
    """Return the cosines of the memories' own vectors."""
    turns = await sources.indexes.vectors("episodes", ids)
    others = [id_ for id_ in ids if id_ not in turns]
    records = await sources.indexes.vectors("records", others) if others else {}
    return cosines({**records, **turns}, ids)


async def by_words(sources: Sources, ids: Sequence[str]) -> Likeness:
    """Return the Jaccard likeness of the rarest words of turns.

    A word that only one turn has is ignored.
    """
    turns = await sources.journal.turns(ids)
    words_of = {turn.uuid: grams(turn.content) - STOP_WORDS for turn in turns}
    counts = _counted(words_of.values())
    rarest: dict[str, frozenset[str]] = {}
    for id_, words in words_of.items():
        shared = [word for word in words if counts[word] > 1]
        shared.sort(key=lambda word: (counts[word], word))
        rarest[id_] = frozenset(shared[:_RAREST_WORDS])
    return jaccard(rarest, ids)


async def by_names(sources: Sources, ids: Sequence[str]) -> Likeness:
    """Return the Jaccard likeness of the nodes that turns mention, rare ones counting more."""
    mentioned = await sources.client.mentioned_nodes(ids)
    nodes_of = {id_: frozenset(nodes) for id_, nodes in mentioned.items()}
    counts = _counted(nodes_of.values())
    weights = {node: math.log1p(len(ids) / count) for node, count in counts.items()}
    return jaccard(nodes_of, ids, weights)


async def by_neighbours(sources: Sources, ids: Sequence[str]) -> Likeness:
    """Return the Jaccard likeness of the nodes that turns mention and their neighbours."""
    mentioned = await sources.client.mentioned_nodes(ids)
    nodes = list(dict.fromkeys(node for some in mentioned.values() for node in some))
    beside: dict[str, set[str]] = {node: {node} for node in nodes}
    facts = await sources.client.facts_of_nodes(nodes, _MAX_FACTS_AROUND) if nodes else ()
    for fact in facts:
        if fact.subject in beside:
            beside[fact.subject].add(fact.object)
        if fact.object in beside:
            beside[fact.object].add(fact.subject)
    neighbours: dict[str, set[str]] = {}
    for id_, own in mentioned.items():
        neighbours[id_] = set[str]().union(*map(beside.__getitem__, own))
    return jaccard(neighbours, ids)


def cosines(vectors: Mapping[str, Vector], ids: Sequence[str]) -> Likeness:
    """Return the cosines of unit vectors by id, shape (n, n); NaN where one has none."""
    known = [place for place, id_ in enumerate(ids) if id_ in vectors]
    likeness = np.full((len(ids), len(ids)), np.nan, dtype=np.float32)
    if known:
        rows = np.stack([vectors[ids[place]] for place in known])
        likeness[np.ix_(known, known)] = rows @ rows.T
    return likeness


def jaccard(
    sets: Mapping[str, AbstractSet[str]],
    ids: Sequence[str],
    weights: Mapping[str, float] | None = None,
) -> Likeness:
    """Return the (weighted) Jaccard likeness of sets by id, shape (n, n).

    NaN for a missing or empty set.
    """
    likeness = np.full((len(ids), len(ids)), np.nan, dtype=np.float32)
    known = [place for place, id_ in enumerate(ids) if sets.get(id_)]
    if not known:
        return likeness
    terms = sorted(set[str]().union(*(sets[ids[place]] for place in known)))
    columns = {term: column for column, term in enumerate(terms)}
    rows = np.zeros((len(known), len(terms)), dtype=np.float32)
    for row, place in enumerate(known):
        rows[row, [columns[term] for term in sets[ids[place]]]] = 1.0
    term_weights = [1.0 if weights is None else weights[term] for term in terms]
    weighted = rows * np.array(term_weights, dtype=np.float32)
    shared = weighted @ rows.T
    own = weighted.sum(axis=1)
    union = own[:, None] + own[None, :] - shared
    likeness[np.ix_(known, known)] = shared / np.maximum(union, 1e-12)
    return likeness


def _counted(sets: Iterable[AbstractSet[str]]) -> Counter[str]:
    """Return how many of the sets have each term."""
    counts: Counter[str] = Counter()
    for terms in sets:
        counts.update(terms)
    return counts
