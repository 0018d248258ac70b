"""Retrievers by words, meaning and time."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import cast

import numpy as np

from pps.core.text import fold
from pps.core.time import Span, from_micros
from pps.core.values import ChannelName
from pps.models.protocols import TokenEmbedder
from pps.recall.hits import fetch, text_of
from pps.recall.named_time import named_time
from pps.recall.perspectives import Likeness, retriever
from pps.recall.perspectives.likeness import by_meaning, by_words, cosines
from pps.recall.query_words import STOP_WORDS, grams
from pps.recall.question import quoted_phrases
from pps.recall.ranking import STRONG, WEAK, best_of, fused, in_order, textual
from pps.recall.search import Scored, Search, Sources

MAX_ITEMS_IN_TIME = 5_000
"""A time in or near which more happened says too little: the other perspectives decide."""
COMPARED_WHOLE = 1_000
"""A memory of at most so many turns with token states is compared whole by ``colbert``."""
DATED_COLLECTIONS: Mapping[str, str] = {"facts": "facts", "episodes": "windows", "turns": "windows"}
"""Channels of items that have a time, and the collection that finds them best."""
TURN_CHANNELS: tuple[ChannelName, ...] = ("episodes", "turns")
_MAX_LATEST = 10_000
_FUSION_K = 5
_EXPANSION_TEXTS = 10
"""Texts nearest to the query that are read for further words."""
_EXPANSION_WORDS = 8
"""Words that are added from the nearest texts, and from the embedder's table."""
_MIN_INTENT_LIFT = 0.8
_MAX_INTENT_LIFT = 1.2


# ---- Words ----


async def _bm25_score(search: Search, channel: ChannelName, ids: AbstractSet[str]) -> list[Scored]:
    """Return those that share a word with the query, on the scale of the channel's best match."""
    lists: list[list[Scored]] = []
    for collection in search.collections(channel):
        lists.append(await search.text_matches_among(collection, search.words, ids))
        lists.append(await search.text_matches(collection, search.words, 1))
    scored = textual(best_of(lists, len(ids) + 1))
    return [entry for entry in scored if entry.id in ids]


@retriever(score=_bm25_score, alike=by_words)
async def bm25(search: Search, channel: ChannelName, depth: int) -> list[Scored]:
    """BM25: words that the query shares with the item, rare ones counting more.

    The query's stop words are left out: "where" of "Where is the key?" says nothing of a key.
    Windows keep them, since the turn before an answer is often the same question.
    """
    return textual(await _text_list(search, channel, search.words, depth))


@retriever()
async def bm25_windows(search: Search, channel: ChannelName, depth: int) -> list[Scored]:
    """BM25 over windows: words shared with a turn, its neighbours and their facts."""
    if channel not in TURN_CHANNELS:
        return []
    return textual(await search.text_matches("windows", search.text, depth))


@retriever()
async def phrase(search: Search, channel: ChannelName, depth: int) -> list[Scored]:
    """Phrase: the query's quoted words, side by side and in their order.

    Return what has most of the quoted phrases; of equals, the better match by words first. Empty
    without a quotation.
    """
    phrases = [" ".join(fold(text).split()) for text in quoted_phrases(search.text)]
    if not phrases:
        return []
    lists = [
        await search.text_matches(collection, text, depth)
        for collection in search.collections(channel)
        for text in phrases
    ]
    candidates = best_of(lists, len(phrases) * depth)
    items = await fetch(search, channel, [candidate.id for candidate in candidates])
    counts: dict[str, int] = {}
    for id_, item in items.items():
        text = " ".join(fold(text_of(item)).split())
        counts[id_] = sum(quoted in text for quoted in phrases)
    best = [candidate for candidate in candidates if counts.get(candidate.id)]
    best.sort(key=lambda candidate: (-counts[candidate.id], -candidate.score))
    return [
        Scored(entry.id, counts[entry.id] + 1 / (2 + rank), counts[entry.id] / len(phrases))
        for rank, entry in enumerate(best[:depth])
    ]


@retriever(recall_only=True)
async def expand(search: Search, channel: ChannelName, depth: int) -> list[Scored]:
    """Expand: texts with words like the query's (fast, quick), or that stand beside them here.

    The words that the embedder's own table has nearest, and those that the nearest texts share
    beyond the query's, are searched for in its place. It brings candidates and orders none: what
    only this found comes after all else, unless a perspective that orders lifts it.

    Source: pseudo-relevance feedback, Lavrenko and Croft 2001.
    """
    words = grams(search.words)
    matched = await _text_list(search, channel, search.words, _EXPANSION_TEXTS)
    similar = await _vector_list(search, channel, _EXPANSION_TEXTS)
    near = await fetch(search, channel, [entry.id for entry in (*matched, *similar)])
    counts: Counter[str] = Counter()
    for item in near.values():
        beyond = grams(text_of(item)) - words - STOP_WORDS
        counts.update(word for word in beyond if len(word) > 2)
    added = sorted(
        (word for word, count in counts.items() if count > 1),
        key=lambda word: (-counts[word], -len(word), word),
    )
    embedder = search.sources.embedder
    if isinstance(embedder, TokenEmbedder):
        own_words = sorted(words - STOP_WORDS)
        like = await search.once(
            "like words", lambda: asyncio.to_thread(embedder.like_words, own_words)
        )
        added = [*added[:_EXPANSION_WORDS], *like[:_EXPANSION_WORDS]]
    if not added:
        return []
    expansion = " ".join(added[: 2 * _EXPANSION_WORDS])
    return textual(await _text_list(search, channel, expansion, depth))


async def _text_list(search: Search, channel: ChannelName, text: str, depth: int) -> list[Scored]:
    lists = [
        await search.text_matches(collection, text, depth)
        for collection in search.collections(channel)
    ]
    return best_of(lists, depth)


# ---- Meaning ----


async def dense_score(search: Search, channel: ChannelName, ids: AbstractSet[str]) -> list[Scored]:
    """Return the raw cosines of some ids of a channel, best first."""
    if channel == "nodes":
        records = await search.vector_matches_among("records", ids)
        names = await search.vector_matches_among("nodes", ids)
        return await _records_by_text(search, records, names, len(ids))
    lists = [
        await search.vector_matches_among(collection, ids)
        for collection in search.collections(channel)
    ]
    return best_of(lists, len(ids))


@retriever(score=dense_score, alike=by_meaning)
async def dense(search: Search, channel: ChannelName, depth: int) -> list[Scored]:
    """Dense: nearness of the query's vector to the item's own (raw cosine); for records, the text's."""
    if channel == "nodes":
        records, names = await asyncio.gather(
            search.vector_matches("records", depth), search.vector_matches("nodes", depth)
        )
        return await _records_by_text(search, records, names, depth)
    return await _vector_list(search, channel, depth)


@retriever()
async def dense_names(search: Search, channel: ChannelName, depth: int) -> list[Scored]:
    """Dense names: nearness of the query's vector to a node's name alone."""
    return await search.vector_matches("nodes", depth) if channel == "nodes" else []


@retriever()
async def dense_windows(search: Search, channel: ChannelName, depth: int) -> list[Scored]:
    """Dense over windows: nearness to a turn taken together with its neighbours and its facts."""
    return await search.vector_matches("windows", depth) if channel in TURN_CHANNELS else []


async def _windows_alike(sources: Sources, ids: Sequence[str]) -> Likeness:
    return cosines(await sources.indexes.vectors("windows", ids), ids)


@retriever(alike=_windows_alike)
async def intent(search: Search, channel: ChannelName, depth: int) -> list[Scored]:
    """Intent: nearness in meaning, times what the turns around a text say of the query: .8 to 1.2.

    A strong likeness is moved by .05 at most, a middling one by .1, a weak one by .15.
    """
    if channel not in TURN_CHANNELS:
        return []
    windows = await search.vector_matches("windows", 2 * depth)
    around = {entry.id: entry.score for entry in windows}
    turns = await search.vector_matches("episodes", 2 * depth)
    own = {entry.id: entry.score for entry in turns}
    missing = around.keys() - own.keys()
    for entry in await search.vector_matches_among("episodes", missing):
        own[entry.id] = entry.score
    most = max(around.values(), default=0.0) or 1.0
    scores: dict[str, float] = {}
    for id_, score in own.items():
        step = 0.05 if score >= STRONG else 0.1 if score >= WEAK else 0.15
        lift = 1 + step * (2 * max(0.0, around.get(id_, 0.0)) / most - 1)
        scores[id_] = score * min(_MAX_INTENT_LIFT, max(_MIN_INTENT_LIFT, lift))
    best = sorted(scores, key=lambda id_: -scores[id_])[:depth]
    return [Scored(id_, scores[id_], max(0.0, min(1.0, scores[id_]))) for id_ in best]


@retriever()
async def colbert(search: Search, channel: ChannelName, depth: int) -> list[Scored]:
    """ColBERT: each word of the query beside its nearest word in a turn, by stored token states.

    Return the turns with the greatest mean over the query's tokens of the greatest cosine with one
    of theirs. Of a memory beyond ``COMPARED_WHOLE`` turns only those that words or meaning bring
    are compared. Empty where the model's file is not there, and for turns whose states are yet to
    be made.

    Source: MaxSim, Khattab and Zaharia 2020; the model is answerai-colbert-small-v1.
    """
    encoder = search.sources.colbert
    if encoder is None or channel not in TURN_CHANNELS:
        return []
    made, _waiting = await search.sources.indexes.token_counts()
    if not made:
        return []
    encoding = asyncio.create_task(
        search.once("query states", lambda: asyncio.to_thread(encoder.query_states, search.text))
    )
    candidates = None if made <= COMPARED_WHOLE else await _token_candidates(search, depth)
    states = await search.sources.indexes.token_states(candidates)
    allowed = await search.allowed("episode")
    query_states = await encoding
    scores = await asyncio.to_thread(states.max_similarities, query_states)
    best: list[Scored] = []
    for place in cast("list[int]", np.argsort(-scores, kind="stable").tolist()):
        if len(best) == depth:
            break
        id_ = states.owners[place]
        if allowed is None or id_ in allowed:
            score = float(scores[place])
            best.append(Scored(id_, score, max(0.0, min(1.0, score))))
    return best


async def _token_candidates(search: Search, depth: int) -> list[str]:
    """Return the turns that words or meaning find, alone and in their windows.

    These are the look-ups of the other perspectives, shared with them.
    """
    lists = await asyncio.gather(
        search.vector_matches("episodes", depth),
        search.vector_matches("windows", depth),
        search.text_matches("episodes", search.words, depth),
        search.text_matches("windows", search.text, depth),
    )
    return list(dict.fromkeys(entry.id for entries in lists for entry in entries))


async def _vector_list(search: Search, channel: ChannelName, depth: int) -> list[Scored]:
    lists = [
        await search.vector_matches(collection, depth) for collection in search.collections(channel)
    ]
    return best_of(lists, depth)


async def _records_by_text(
    search: Search, records: list[Scored], names: list[Scored], depth: int
) -> list[Scored]:
    """Return records by their texts and other nodes by their names."""
    if not records or not names:
        return records or names
    texts = await search.sources.journal.records.of_nodes([entry.id for entry in names])
    return best_of([records, [entry for entry in names if entry.id not in texts]], depth)


# ---- Words and meaning together ----


async def best_ids(search: Search, collections: Sequence[str], words: str, depth: int) -> list[str]:
    """Return the ids that text and vectors together rank best, at most ``depth``.

    ``words`` is what BM25 is asked for.
    """
    text_lists, vector_lists = await asyncio.gather(
        asyncio.gather(*(search.text_matches(name, words, depth) for name in collections)),
        asyncio.gather(*(search.vector_matches(name, depth) for name in collections)),
    )
    lists = {"text": best_of(text_lists, depth), "dense": best_of(vector_lists, depth)}
    return list(fused(lists, {"text": 1, "dense": 1}, k=_FUSION_K))[:depth]


async def best_among(
    search: Search, collection: str, ids: AbstractSet[str], depth: int
) -> dict[str, float]:
    """Return id → fused score of those that text and vectors rank best among some ids."""
    lists = {
        "text": await search.text_matches_among(collection, search.text, ids, depth),
        "dense": await search.vector_matches_among(collection, ids, depth),
    }
    return fused(lists, {"text": 1, "dense": 1}, k=_FUSION_K)


# ---- Time ----


@retriever()
async def latest(search: Search, channel: ChannelName, depth: int) -> list[Scored]:
    """Latest: the turns that were said last, whatever the query says.

    Return the latest turns that the filters let through, looking farther back until there are
    enough.
    """
    if channel not in TURN_CHANNELS:
        return []
    size = depth
    while True:
        turns = await search.sources.journal.recent(min(size, _MAX_LATEST))
        ids = await search.permitted("episode", [turn.uuid for turn in turns])
        if len(ids) >= depth or len(turns) < size or size >= _MAX_LATEST:
            return in_order(ids, depth)
        size *= 4


@retriever()
async def when(search: Search, channel: ChannelName, depth: int) -> list[Scored]:
    """When: what happened in or near the time that the query names and fits its words best.

    Return facts and turns of the named time: by words and meaning, less the farther outside it.

    Nothing when the query names no time, and in channels of items without a time. Where words and
    meaning bring nothing ("what happened yesterday?" without an embedder), the time's latest come
    in their order. A question about the time alone is answered by ``named_time``: what lies in it,
    most telling first.
    """
    if channel not in DATED_COLLECTIONS:
        return []
    time = await named_time(search)
    if time is not None:
        return in_order(time.facts if channel == "facts" else time.turns, depth)
    spans = await search.named_spans()
    nearness = await _near_times(search, channel, spans) if spans else {}
    if not nearness:
        return []
    best = await best_among(search, DATED_COLLECTIONS[channel], set(nearness), depth)
    scores = {id_: score * nearness[id_] for id_, score in best.items()}
    order = sorted(scores, key=lambda id_: -scores[id_])
    return in_order(order or list(nearness), depth)


async def _near_times(
    search: Search, channel: ChannelName, spans: Sequence[Span]
) -> dict[str, float]:
    """Return id → nearness in (0, 1] of what happened in or near any of the spans, latest first."""
    kind = "fact" if channel == "facts" else "episode"
    allowed = await search.allowed(kind)
    nearest: dict[str, float] = {}
    for span in spans:
        times = await search.sources.journal.within(
            kind, *span.bounds(), limit=MAX_ITEMS_IN_TIME + 1
        )
        if len(times) > MAX_ITEMS_IN_TIME:
            return {}
        for id_, at in times.items():
            nearness = span.nearness(from_micros(at))
            if nearness > nearest.get(id_, 0.0) and (allowed is None or id_ in allowed):
                nearest[id_] = nearness
    return nearest
