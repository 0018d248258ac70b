"""Cross-encoder: a model that reads the query together with each of the best candidates, and orders those."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence

from pps.core.errors import ModelUnavailable
from pps.core.values import ChannelName
from pps.models.protocols import Reranker
from pps.recall.fetch import fetch
from pps.recall.hits import text_of
from pps.recall.passages import passage_of
from pps.recall.query import Ask, Candidate, Scored

BEST = 30
"""Candidates that are read, from the top of what the finding perspectives say together."""
_READ_CHARS = 320
"""Of a longer text the passage that shares most with the query is read: time grows with every word."""


async def weigh(ask: Ask, channel: ChannelName, items: Mapping[str, Candidate]) -> list[Scored]:
    """Return the best candidates in the model's order; none where no reranker is set.

    Raises:
        ModelUnavailable: Its time (S2-05) ran out; the other lists are then joined without it.
        ModelError: It failed.
    """
    reranker, ids = ask.sources.reranker, tuple(items)[:BEST]
    if reranker is None or not ids:
        return []
    return await ask.once(("cross_encoder", channel, ids), lambda: _scored(ask, reranker, channel, ids))


async def _scored(ask: Ask, reranker: Reranker, channel: ChannelName, ids: Sequence[str]) -> list[Scored]:
    with ask.timed("fetch", channel):
        items = await fetch(ask, channel, ids)
    texts = {one: text_of(item) for one, item in items.items()}
    passages = [passage_of(ask.text, text, _READ_CHARS) or text for text in texts.values()]
    deadline_s = ask.sources.tuning.rerank_deadline_s
    late = f"the reranker ran out of its {deadline_s * 1000:.0f} ms: the fused order stands"
    work = asyncio.to_thread(reranker.rerank, ask.text, passages, deadline_s=deadline_s)
    with ask.timed("rerank", channel):
        try:
            # The model looks at the time between batches only, and one batch may take longer than all of it.
            result = await asyncio.wait_for(work, deadline_s)
        except TimeoutError:
            raise ModelUnavailable(late) from None
    if not result.complete:
        raise ModelUnavailable(late)
    least, most = min(result.scores, default=0.0), max(result.scores, default=0.0)
    spread = (most - least) or 1.0
    scored = zip(texts, result.scores, strict=True)
    return [Scored(one, score, (score - least) / spread) for one, score in sorted(scored, key=lambda entry: -entry[1])]
