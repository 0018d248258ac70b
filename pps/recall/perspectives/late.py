"""Late interaction: the same phrase, word by word. It orders the best that others brought, and finds nothing."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

from pps.core.errors import ModelUnavailable
from pps.core.values import ChannelName
from pps.models.protocols import TokenEmbedder
from pps.recall.hits import fetch, text_of
from pps.recall.perspectives import weighs
from pps.recall.query import Ask, Candidate, Scored
from pps.recall.question import passage_of

BEST = 50
_READ_CHARS = 320


@weighs
async def late(ask: Ask, channel: ChannelName, items: Mapping[str, Candidate]) -> list[Scored]:
    """Late interaction: each word of the query beside its nearest word in the text; of the best 50 candidates.

    The signal is the mean over the query's tokens of the greatest cosine with a token of the text. Nothing where the
    embedder has no vectors of tokens.

    Raises:
        ModelUnavailable: The reranker's time ran out; the other lists are then joined without it.

    Source: MaxSim, Khattab and Zaharia 2020.
    """
    embedder, ids = ask.sources.embedder, tuple(items)[:BEST]
    if not isinstance(embedder, TokenEmbedder) or not ids:
        return []
    with ask.timed("fetch", channel):
        found = await fetch(ask, channel, ids)
    texts = {one: text_of(item) for one, item in found.items()}
    read = [ask.text, *(passage_of(ask.text, text, _READ_CHARS) or text for text in texts.values())]
    deadline_s = ask.sources.tuning.rerank_deadline_s
    with ask.timed("rerank", channel):
        try:
            asked, *said = await asyncio.wait_for(asyncio.to_thread(embedder.embed_tokens, read), deadline_s)
        except TimeoutError:
            late_ms = f"late interaction ran out of its {deadline_s * 1000:.0f} ms: the fused order stands"
            raise ModelUnavailable(late_ms) from None
    scores = {
        one: float((asked @ tokens.T).max(axis=1).mean()) if len(asked) and len(tokens) else 0.0
        for one, tokens in zip(texts, said, strict=True)
    }
    return [Scored(one, scores[one], max(0.0, scores[one])) for one in sorted(scores, key=lambda one: -scores[one])]
