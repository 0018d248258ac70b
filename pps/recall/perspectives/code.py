"""The same identifiers, paths, signatures and imports, whole and in their parts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pps.core.values import ChannelName
from pps.index.signs import hashed, identifiers, numbers
from pps.recall.perspectives import Likeness, finds
from pps.recall.perspectives.kept import KINDS, hits, spread
from pps.recall.query import Ask, Scored, Sources


@dataclass(frozen=True, slots=True)
class _Terms:
    """Every term of every item, sorted: ``owners`` has the place in ``ids`` of the item that each is of."""

    ids: list[str]
    terms: NDArray[np.uint64]
    owners: NDArray[np.intp]


async def _alike(sources: Sources, ids: Sequence[str]) -> Likeness:
    """Return the Jaccard likeness of the identifiers of items that have any."""
    kept = await sources.journal.perspective_data.of("code", ids)
    known = [one for one in ids if one in kept]
    terms = [set(numbers(kept[one]).tolist()) for one in known]
    found = [[len(one & other) / len(one | other) for other in terms] for one in terms]
    return spread(ids, known, np.array(found, dtype=np.float32).reshape(len(known), len(known)))


@finds(alike=_alike)
async def code(ask: Ask, channel: ChannelName, depth: int) -> list[Scored]:
    """Code: identifiers, paths and calls that the query shares with the item, whole or in parts, rare ones more.

    Return what holds the query's identifiers; words of a query are looked up as parts of identifiers too.
    """
    kind = KINDS.get(channel)
    if kind is None:
        return []
    held = await ask.sources.journal.perspective_data.every("code", kind, _terms)
    plain = {word.strip(".,;:!?()\"'`").lower() for word in ask.words.split()}
    asked = numbers(hashed({*identifiers(ask.text), *plain} - {""}))
    if not held.ids or not len(asked):
        return []
    scores = np.zeros(len(held.ids), dtype=np.float32)
    first, last = (
        np.searchsorted(held.terms, asked, "left"),
        np.searchsorted(held.terms, asked, "right"),
    )
    rarity = np.log1p(len(held.ids) / np.maximum(last - first, 1))
    for begin, end, rare in zip(first, last, rarity / rarity.sum(), strict=True):
        scores[held.owners[begin:end]] += rare  # an item has a term once
    return await hits(ask, kind, held.ids, scores, depth)


def _terms(kept: Mapping[str, bytes]) -> _Terms:
    terms = numbers(b"".join(kept.values()))
    owners = np.repeat(np.arange(len(kept)), [len(blob) // 8 for blob in kept.values()])
    order = np.argsort(terms, kind="stable")
    return _Terms(list(kept), terms[order], owners[order])
