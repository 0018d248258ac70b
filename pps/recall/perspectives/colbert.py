"""Late interaction by token states that were made at writing: each word of the query beside its nearest in a turn."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import numpy as np

from pps.core.values import ChannelName
from pps.models.protocols import Matrix
from pps.models.token_encoder import WIDTH, max_similarities
from pps.recall.perspectives import finds
from pps.recall.query import Ask, Scored

COMPARED_WHOLE = 1_000
"""A memory of at most so many turns with token states is compared whole; of a larger one the candidates of others."""


@finds()
async def colbert(ask: Ask, channel: ChannelName, depth: int) -> list[Scored]:
    """ColBERT: each word of the query beside its nearest word in a turn, by states made when the turn was written.

    Return the turns with the greatest mean over the query's tokens of the greatest cosine with one of theirs. Of a
    memory beyond ``COMPARED_WHOLE`` turns only those that words or meaning bring are compared. Empty where the model's
    file is not there, and for turns whose states are yet to be made.

    Source: MaxSim, Khattab and Zaharia 2020; the model is answerai-colbert-small-v1.
    """
    encoder = ask.sources.colbert
    if encoder is None or channel not in ("episodes", "turns"):
        return []
    made, _waiting = await ask.sources.indexes.token_counts()
    if not made:
        return []
    query = asyncio.create_task(
        ask.once("query states", lambda: asyncio.to_thread(encoder.query_states, ask.text))
    )
    candidates = None if made <= COMPARED_WHOLE else await _candidates(ask, depth)
    states = await ask.sources.indexes.tokens(candidates)
    allowed = await ask.permitted("episode", list(states))
    scores = await asyncio.to_thread(_scored, await query, [states[id_] for id_ in allowed])
    best: list[int] = np.argsort(-scores, kind="stable")[:depth].tolist()
    return [
        Scored(allowed[at], float(scores[at]), float(max(0.0, min(1.0, scores[at])))) for at in best
    ]


async def _candidates(ask: Ask, depth: int) -> list[str]:
    """Return the turns that words or meaning find, alone and in their windows; the same look-ups as those lists'."""
    lists = await asyncio.gather(
        ask.similar("episodes", depth),
        ask.similar("windows", depth),
        ask.matches("episodes", ask.words, depth),
        ask.matches("windows", ask.text, depth),
    )
    return list(dict.fromkeys(found.id for entries in lists for found in entries))


def _scored(query: Matrix, blobs: Sequence[bytes]) -> Matrix:
    texts = [np.frombuffer(blob, dtype=np.int8).reshape(-1, WIDTH) for blob in blobs]
    return max_similarities(query, texts)
