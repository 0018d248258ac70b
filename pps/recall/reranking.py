"""Reordering the top of a list by a cross-encoder, within its time or not at all."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

from pps.core.errors import ModelError
from pps.recall.ask import Ask


async def rerank(ask: Ask, top: Mapping[str, str], order: list[str]) -> tuple[list[str], str]:
    """Return the order with its top rearranged, and a note when that could not be done in time.

    ``top`` is id → text of the best, which the model scores; the rest of ``order`` follows as it was. The fused
    order stands when the model fails or its time (S2-05) runs out.
    """
    reranker = ask.sources.reranker
    if reranker is None or not top:
        return order, ""
    deadline_s = ask.sources.tuning.rerank_deadline_s
    ids = list(top)
    work = asyncio.to_thread(reranker.rerank, ask.text, [top[one] for one in ids], deadline_s=deadline_s)
    try:
        # The model looks at the time between batches only, and one batch may take longer than all of it.
        result = await asyncio.wait_for(work, deadline_s)
    except TimeoutError:
        return order, _late(deadline_s)
    except ModelError as error:
        return order, f"the reranker failed, the fused order stands: {error.message}"
    if not result.complete:
        return order, _late(deadline_s)
    scores = dict(zip(ids, result.scores, strict=True))
    best = sorted(ids, key=lambda one: -scores[one])
    return [*best, *(one for one in order if one not in scores)], ""


def _late(deadline_s: float) -> str:
    return f"the reranker ran out of its {deadline_s * 1000:.0f} ms: the fused order stands"
