"""Other words for the same: what the model takes to be like the query's words, and what stands beside them here."""

from __future__ import annotations

import asyncio
from collections import Counter

from pps.core.values import ChannelName
from pps.models.protocols import TokenEmbedder
from pps.recall.hits import fetch, text_of
from pps.recall.perspectives import finds
from pps.recall.query import Ask, Scored
from pps.recall.query_words import STOP_WORDS, grams
from pps.recall.ranking import best_of, textual

_READ, _ADDED = 10, 8
"""Texts nearest to the query that are read for further words, and how many words each way adds."""


@finds(recall_only=True)
async def expand(ask: Ask, channel: ChannelName, depth: int) -> list[Scored]:
    """Expand: texts with words like the query's own (fast, quick), or that stand beside what it says in this memory.

    The words that the embedder's own table has nearest, and those that the nearest texts share beyond the query's, are
    searched for in its place. It brings candidates and orders none: what only this found comes after all else, unless
    something that orders lifts it.

    Source: pseudo-relevance feedback, Lavrenko and Croft 2001.
    """
    words, collections = grams(ask.words), ask.collections(channel)
    matched = best_of([await ask.matches(one, ask.words, _READ) for one in collections], _READ)
    similar = best_of([await ask.similar(one, _READ) for one in collections], _READ)
    near = await fetch(ask, channel, [one.id for one in (*matched, *similar)])
    counts = Counter(
        word
        for item in near.values()
        for word in grams(text_of(item)) - words - STOP_WORDS
        if len(word) > 2
    )
    added = sorted(
        (word for word in counts if counts[word] > 1),
        key=lambda word: (-counts[word], -len(word), word),
    )
    if isinstance(embedder := ask.sources.embedder, TokenEmbedder):
        like = await ask.once(
            "like words", lambda: asyncio.to_thread(embedder.like_words, sorted(words - STOP_WORDS))
        )
        added = [*added[:_ADDED], *like[:_ADDED]]
    if not added:
        return []
    found = [await ask.matches(one, " ".join(added[: 2 * _ADDED]), depth) for one in collections]
    return textual(best_of(found, depth))
