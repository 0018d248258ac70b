"""Retrievers by perspective data that is stored with each item: causes, identifiers, trigrams."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pps.config.spaces import spaces
from pps.core.values import ChannelName, ItemKind
from pps.index.signs import BITS, causal_question, hashed, identifiers, letters, numbers
from pps.models.protocols import Matrix, Vector
from pps.recall.perspectives import Likeness, retriever
from pps.recall.search import Scored, Search, Sources
from pps.recall.thresholds import thresholds

_KINDS: Mapping[ChannelName, ItemKind] = {
    "nodes": "node",
    "facts": "fact",
    "episodes": "episode",
    "turns": "episode",
}
_CAUSE_SPACE = spaces()["E5"]
_MIN_TRIGRAMS = 0.35
"""Share of a query's trigrams, beyond those by chance, that an item must have."""
_MAX_FILLED = 0.99


# ---- Causes ----


async def _causes_alike(sources: Sources, ids: Sequence[str]) -> Likeness:
    """Return the cosine of one's effect and the other's cause, the greater of both ways.

    An item has 1 with itself.
    """
    blobs = await sources.journal.perspective_data.of("cause", ids)
    width = sources.embedder.fingerprint.dimension if sources.embedder else 1
    known = [id_ for id_ in ids if len(blobs.get(id_, b"")) >= 4 * width]
    if sources.embedder is None or not known:
        return _unknown_likeness(len(ids))
    pairs = [_cause_pairs(blobs[id_], width) for id_ in known]
    ends = np.concatenate(pairs)
    starts = np.cumsum([0, *map(len, pairs[:-1])])
    cosines = ends[:, 1] @ ends[:, 0].T
    led_to = np.maximum.reduceat(np.maximum.reduceat(cosines, starts, axis=0), starts, axis=1)
    likeness = np.maximum(led_to, led_to.T)
    np.fill_diagonal(likeness, 1.0)
    return _spread(ids, known, likeness)


@retriever(alike=_causes_alike)
async def cause(search: Search, channel: ChannelName, depth: int) -> list[Scored]:
    """Cause: what led to what a "why" names, or what it led to, as texts tell it.

    Return what tells of the end that is not asked for, nearest first; empty for a query that asks
    for neither.
    """
    kind = _KINDS.get(channel)
    question = causal_question(search.text)
    embedder = search.sources.embedder
    direction = _CAUSE_SPACE.direction
    if kind is None or question is None or embedder is None or direction is None:
        return []
    stored = search.sources.journal.perspective_data
    if await stored.failed("cause", 1):
        search.warnings.add(
            "cause: some causes are not embedded yet; they are, once the model answers"
        )
    ids, pairs, starts = await stored.every(
        "cause", kind, _read_causes, embedder.fingerprint.dimension
    )
    if not ids:
        return []
    wanted_end, named_end = question
    probe = await search.sources.query_vectors.of(named_end, embedder)
    # "why" names an effect and asks for its cause; "what did it lead to" names a cause. An item
    # that has the named end on its side goes along with the question; one that has it on the other
    # side goes against it.
    named_side = 1 if wanted_end == "cause" else 0
    near = pairs @ probe / max(float(np.linalg.norm(probe)), 1e-12)
    limits = (await thresholds(search.sources)).get("E5")
    near[near < ((limits.low if limits else None) or 0.0)] = -1.0
    scores = np.maximum(
        direction.along * near[:, named_side], direction.against * near[:, 1 - named_side]
    )
    return await _best(search, kind, ids, np.maximum.reduceat(scores, starts), depth)


def _read_causes(
    blobs: Mapping[str, bytes], width: int
) -> tuple[list[str], Matrix, NDArray[np.intp]]:
    """Return ids, the pairs of all, and where each id's begin.

    Those of another model are left out.
    """
    pairs_of: dict[str, Matrix] = {}
    for id_, blob in blobs.items():
        pairs = _cause_pairs(blob, width)
        if len(pairs):
            pairs_of[id_] = pairs
    starts = np.cumsum([0, *map(len, pairs_of.values())], dtype=np.intp)[:-1]
    return list(pairs_of), np.concatenate([_cause_pairs(b"", width), *pairs_of.values()]), starts


def _cause_pairs(blob: bytes, width: int) -> Matrix:
    """Return the vectors of causes and effects, shape (pairs, 2, width); none of another model."""
    numbers_ = np.frombuffer(blob, dtype=np.float16).astype(np.float32)
    if len(numbers_) % (2 * width):
        return np.zeros((0, 2, width), dtype=np.float32)
    return numbers_.reshape(-1, 2, width)


# ---- Identifiers of code ----


@dataclass(frozen=True, slots=True)
class _Terms:
    """Every term of every item, sorted: ``owners`` has the index in ``ids`` of each term's item."""

    ids: list[str]
    terms: NDArray[np.uint64]
    owners: NDArray[np.intp]


async def _code_alike(sources: Sources, ids: Sequence[str]) -> Likeness:
    """Return the Jaccard likeness of the identifiers of items that have any."""
    blobs = await sources.journal.perspective_data.of("code", ids)
    known = [id_ for id_ in ids if id_ in blobs]
    terms = [set(numbers(blobs[id_]).tolist()) for id_ in known]
    likeness = np.zeros((len(known), len(known)), dtype=np.float32)
    for row, first in enumerate(terms):
        for column, second in enumerate(terms):
            likeness[row, column] = len(first & second) / len(first | second)
    return _spread(ids, known, likeness)


@retriever(alike=_code_alike)
async def code(search: Search, channel: ChannelName, depth: int) -> list[Scored]:
    """Code: identifiers, paths and calls shared with the item, whole or in parts, rare ones more.

    Return what holds the query's identifiers; words of a query are looked up as parts of
    identifiers too.
    """
    kind = _KINDS.get(channel)
    if kind is None:
        return []
    index = await search.sources.journal.perspective_data.every("code", kind, _read_terms)
    plain = {word.strip(".,;:!?()\"'`").lower() for word in search.words.split()}
    wanted = numbers(hashed({*identifiers(search.text), *plain} - {""}))
    if not index.ids or not len(wanted):
        return []
    scores = np.zeros(len(index.ids), dtype=np.float32)
    starts = np.searchsorted(index.terms, wanted, "left")
    ends = np.searchsorted(index.terms, wanted, "right")
    rarity = np.log1p(len(index.ids) / np.maximum(ends - starts, 1))
    for start, end, share in zip(starts, ends, rarity / rarity.sum(), strict=True):
        scores[index.owners[start:end]] += share  # an item has a term once
    return await _best(search, kind, index.ids, scores, depth)


def _read_terms(blobs: Mapping[str, bytes]) -> _Terms:
    terms = numbers(b"".join(blobs.values()))
    owners = np.repeat(np.arange(len(blobs)), [len(blob) // 8 for blob in blobs.values()])
    order = np.argsort(terms, kind="stable")
    return _Terms(list(blobs), terms[order], owners[order])


# ---- Trigrams of misspelt words ----


async def _trigrams_alike(sources: Sources, ids: Sequence[str]) -> Likeness:
    """Return 1 minus the distance of bits over that of unrelated ones: their correlation."""
    blobs = await sources.journal.perspective_data.of("trigrams", ids)
    known = [id_ for id_ in ids if id_ in blobs]
    joined = b"".join(blobs[id_] for id_ in known)
    bits = np.unpackbits(np.frombuffer(joined, dtype=np.uint8)).reshape(-1, BITS)
    centred = bits - bits.mean(axis=1, keepdims=True, dtype=np.float32)
    unit = centred / np.maximum(np.linalg.norm(centred, axis=1, keepdims=True), 1e-6)
    return _spread(ids, known, (unit @ unit.T).astype(np.float32))


@retriever(alike=_trigrams_alike)
async def trigrams(search: Search, channel: ChannelName, depth: int) -> list[Scored]:
    """Trigrams: the letters that the query shares with the item, in spite of misspellings.

    Return what has most of the query's trigrams, less what an item of as many bits has of any by
    chance. If words of the query are misspelt, only their letters are looked for: the others are
    found by themselves.
    """
    kind = _KINDS.get(channel)
    if kind is None:
        return []
    texts = await search.misspelt_words() or [search.words]
    queries = [numbers(letters(text)) for text in texts]
    wanted = [bits for bits in queries if bits.any()]
    if not wanted:
        return []
    ids, bits, filled = await search.sources.journal.perspective_data.every(
        "trigrams", kind, _read_trigrams
    )
    scores = np.max([_shared_bits(bits, each, filled) for each in wanted], axis=0)
    high_scores = np.where(scores >= _MIN_TRIGRAMS, scores, 0.0)
    return await _best(search, kind, ids, high_scores, depth)


def _shared_bits(bits: NDArray[np.uint64], wanted: NDArray[np.uint64], filled: Vector) -> Vector:
    """Return how many of the wanted bits each item has, beyond chance, shape (items,)."""
    size = int(np.bitwise_count(wanted).sum())
    shared = np.bitwise_count(bits & wanted).sum(axis=1, dtype=np.int32) / size
    return np.asarray((shared - filled) / (1 - filled), dtype=np.float32)


def _read_trigrams(blobs: Mapping[str, bytes]) -> tuple[list[str], NDArray[np.uint64], Vector]:
    """Return ids, their bits, shape (n, 16), and which share of each one's bits is set."""
    bits = numbers(b"".join(blobs.values())).reshape(len(blobs), BITS // 64)
    filled = np.bitwise_count(bits).sum(axis=1, dtype=np.int32) / BITS
    return list(blobs), bits, np.minimum(filled, _MAX_FILLED).astype(np.float32)


# ---- Shared ----


async def _best(
    search: Search, kind: ItemKind, ids: Sequence[str], scores: Vector, depth: int
) -> list[Scored]:
    """Return those with a score above 0 that the filters let through, best first.

    ``scores`` has one score for each of the ids; equal ones come in order of their ids.
    """
    above: list[int] = np.flatnonzero(scores > 0).tolist()
    allowed = await search.allowed(kind)
    if allowed is not None:
        above = [place for place in above if ids[place] in allowed]
    places = np.array(above, dtype=np.intp)
    if len(places) > depth:
        least = np.partition(scores[places], -depth)[-depth]
        places = places[scores[places] >= least]
    chosen: list[int] = places.tolist()
    ordered = sorted((-float(scores[place]), ids[place]) for place in chosen)[:depth]
    return [Scored(id_, -negated, min(1.0, -negated)) for negated, id_ in ordered]


def _unknown_likeness(count: int) -> Likeness:
    """Return a likeness of which nothing is known, shape (count, count)."""
    return np.full((count, count), np.nan, dtype=np.float32)


def _spread(ids: Sequence[str], known: Sequence[str], likeness: Likeness) -> Likeness:
    """Return the likeness of ``known`` ids as one of all ``ids``."""
    spread = _unknown_likeness(len(ids))
    places = [ids.index(id_) for id_ in known]
    spread[np.ix_(places, places)] = likeness
    return spread
