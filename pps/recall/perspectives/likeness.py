"""How much alike memories are in meaning, in rare words, in what they name and in what that is tied to."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from itertools import chain

import numpy as np

from pps.models.protocols import Vector
from pps.recall.perspectives import Likeness
from pps.recall.query import Sources
from pps.recall.query_words import STOP_WORDS, grams

_TERMS = 10
"""Rarest words of a text that it is compared by."""
_NEAREST_FACTS = 2_000
"""Most facts around what memories name that are read to compare them."""


async def by_meaning(sources: Sources, ids: Sequence[str]) -> Likeness:
    """Return the cosines of the memories' own vectors."""
    turns = await sources.indexes.vectors("episodes", ids)
    rest = [one for one in ids if one not in turns]
    records = await sources.indexes.vectors("records", rest) if rest else {}
    return cosines({**records, **turns}, ids)


async def by_words(sources: Sources, ids: Sequence[str]) -> Likeness:
    """Return the Jaccard likeness of the rarest words of turns; a word of one turn alone joins nothing."""
    words = {
        turn.uuid: grams(turn.content) - STOP_WORDS for turn in await sources.journal.turns(ids)
    }
    counts = Counter(chain.from_iterable(words.values()))
    rarest = {
        one: frozenset(
            sorted(
                (word for word in some if counts[word] > 1), key=lambda word: (counts[word], word)
            )[:_TERMS]
        )
        for one, some in words.items()
    }
    return jaccard(rarest, ids)


async def by_names(sources: Sources, ids: Sequence[str]) -> Likeness:
    """Return the Jaccard likeness of the nodes that turns mention, rare ones counting more."""
    named = await sources.client.mentioned_nodes(ids)
    sets = {one: frozenset(nodes) for one, nodes in named.items()}
    counts = Counter(chain.from_iterable(sets.values()))
    return jaccard(sets, ids, {one: math.log1p(len(ids) / count) for one, count in counts.items()})


async def by_neighbours(sources: Sources, ids: Sequence[str]) -> Likeness:
    """Return the Jaccard likeness of what stands beside the nodes that turns mention, with those themselves."""
    named = await sources.client.mentioned_nodes(ids)
    every = list(dict.fromkeys(chain.from_iterable(named.values())))
    beside: dict[str, set[str]] = {one: {one} for one in every}
    for fact in await sources.client.facts_of_nodes(every, _NEAREST_FACTS) if every else ():
        for one, other in ((fact.subject, fact.object), (fact.object, fact.subject)):
            if one in beside:
                beside[one].add(other)
    return jaccard(
        {one: {other for node in nodes for other in beside[node]} for one, nodes in named.items()},
        ids,
    )


def cosines(vectors: Mapping[str, Vector], ids: Sequence[str]) -> Likeness:
    """Return the cosines of unit vectors by id, shape (n, n); NaN where one has none."""
    known = [at for at, one in enumerate(ids) if one in vectors]
    found = np.full((len(ids), len(ids)), np.nan, dtype=np.float32)
    if known:
        rows = np.stack([vectors[ids[at]] for at in known])
        found[np.ix_(known, known)] = rows @ rows.T
    return found


def jaccard(
    sets: Mapping[str, AbstractSet[str]],
    ids: Sequence[str],
    weights: Mapping[str, float] | None = None,
) -> Likeness:
    """Return the (weighted) Jaccard likeness of sets by id, shape (n, n); NaN where one has none or an empty one."""
    known = [at for at, one in enumerate(ids) if sets.get(one)]
    terms = {
        term: column
        for column, term in enumerate(sorted({term for at in known for term in sets[ids[at]]}))
    }
    rows = np.zeros((len(known), len(terms)), dtype=np.float32)
    for row, at in enumerate(known):
        rows[row, [terms[term] for term in sets[ids[at]]]] = 1.0
    weighed = rows * np.array(
        [1.0 if weights is None else weights[term] for term in terms], dtype=np.float32
    )
    both, own = weighed @ rows.T, weighed.sum(axis=1)
    found = np.full((len(ids), len(ids)), np.nan, dtype=np.float32)
    if known:
        found[np.ix_(known, known)] = both / np.maximum(own[:, None] + own[None, :] - both, 1e-12)
    return found
