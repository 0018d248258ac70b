"""Late interaction: the same phrase, word by word. It orders the best that others brought, and finds nothing."""

from __future__ import annotations

import asyncio
import time as clock
from collections.abc import Mapping

from pps.core.values import ChannelName
from pps.models.protocols import Matrix, TokenEmbedder
from pps.recall.hits import fetch, text_of
from pps.recall.perspectives import weighs
from pps.recall.query import Ask, Candidate, Scored
from pps.recall.query_words import passage_of

BEST = 50
_READ_CHARS = 320
_AT_ONCE = 5
"""Texts between two looks at the time."""


@weighs
async def late(ask: Ask, channel: ChannelName, items: Mapping[str, Candidate]) -> list[Scored]:
    """Late interaction: each word of the query beside its nearest word in the text; of the best 50 candidates.

    The signal is the mean over the query's tokens of the greatest cosine with a token of the text. Nothing where the
    embedder has no vectors of tokens; of fewer candidates, the best first, where the reranker's time runs out.

    Source: MaxSim, Khattab and Zaharia 2020.
    """
    embedder, ids = ask.sources.embedder, tuple(items)[:BEST]
    if not isinstance(embedder, TokenEmbedder) or not ids:
        return []
    with ask.timed("fetch", channel):
        found = await fetch(ask, channel, ids)
    texts = {one: text_of(item) for one, item in found.items()}
    passages = [passage_of(ask.text, text, _READ_CHARS) or text for text in texts.values()]
    ends, said = clock.monotonic() + ask.sources.tuning.rerank_deadline_s, list[Matrix]()
    with ask.timed("rerank", channel):
        [asked] = await asyncio.to_thread(embedder.embed_tokens, [ask.text])
        while len(said) < len(passages) and clock.monotonic() < ends:
            some = passages[len(said) : len(said) + _AT_ONCE]
            said += await asyncio.to_thread(embedder.embed_tokens, some)
    if len(said) < len(passages):
        ask.lacking.add(
            f"late: its {ask.sources.tuning.rerank_deadline_s * 1000:.0f} ms ran out after {len(said)} of "
            f"{len(passages)} candidates: the others keep the order that they had"
        )
    scores = {
        one: float((asked @ tokens.T).max(axis=1).mean()) if len(asked) and len(tokens) else 0.0
        for one, tokens in zip(texts, said, strict=False)
    }
    return [
        Scored(one, scores[one], max(0.0, scores[one]))
        for one in sorted(scores, key=lambda one: -scores[one])
    ]
