"""Rerankers, which only order the candidates of others: models, support, time, tags, the graph."""

from __future__ import annotations

import asyncio
import re
import time as clock
from collections.abc import Mapping, Sequence
from datetime import timedelta

from pps.core.errors import ModelUnavailable
from pps.core.text import fold
from pps.core.values import ChannelName, Turn
from pps.journal.links import FactOutline, NodeOutline
from pps.models.protocols import Matrix, Reranker, TokenEmbedder
from pps.recall.hits import age_d, fetch, supported, text_of, times_of
from pps.recall.perspectives import reranker
from pps.recall.question import passage_of
from pps.recall.request import MAX_HOPS
from pps.recall.search import Candidate, Scored, Search

MAX_RERANKED = 30
"""Candidates that the cross-encoder reads, from the top of the fused lists."""
RECENCY_WINDOW_D = 28.0
"""Days over which the signal of recency falls from 1 to 0 in a straight line."""
_MAX_LATE = 50
"""Candidates that late interaction reads."""
_LATE_BATCH = 5
"""Texts that late interaction reads between two looks at the time."""
_PASSAGE_CHARS = 320
"""Of a longer text a model reads the passage that shares most with the query."""
_WEEK = timedelta(days=7)
_TAG = re.compile(r"(?<![\w#])#([^\W\d_][\w-]*)")


# ---- Models ----


@reranker
async def cross_encoder(
    search: Search, channel: ChannelName, candidates: Mapping[str, Candidate]
) -> list[Scored]:
    """Cross-encoder: a model reads the query together with each of the best candidates.

    Return the best candidates in the model's order; none where no reranker is set.

    Raises:
        ModelUnavailable: Its time (S2-05) ran out; the other lists are then joined without it.
        ModelError: It failed.
    """
    model = search.sources.reranker
    ids = tuple(candidates)[:MAX_RERANKED]
    if model is None or not ids:
        return []
    return await search.once(
        ("cross_encoder", channel, ids), lambda: _reranked(search, model, channel, ids)
    )


async def _reranked(
    search: Search, model: Reranker, channel: ChannelName, ids: Sequence[str]
) -> list[Scored]:
    passages_of = await _passages_of(search, channel, ids)
    deadline_s = search.sources.tuning.rerank_deadline_s
    late = f"the reranker ran out of its {deadline_s * 1000:.0f} ms: the fused order stands"
    passages = list(passages_of.values())
    work = asyncio.to_thread(model.rerank, search.text, passages, deadline_s=deadline_s)
    with search.timed("rerank", channel):
        try:
            # The model checks the deadline between batches only, and a batch may take longer.
            result = await asyncio.wait_for(work, deadline_s)
        except TimeoutError:
            raise ModelUnavailable(late) from None
    if not result.complete:
        raise ModelUnavailable(late)
    least = min(result.scores, default=0.0)
    span = (max(result.scores, default=0.0) - least) or 1.0
    scored = sorted(zip(passages_of, result.scores, strict=True), key=lambda pair: -pair[1])
    return [Scored(id_, score, (score - least) / span) for id_, score in scored]


@reranker
async def late(
    search: Search, channel: ChannelName, candidates: Mapping[str, Candidate]
) -> list[Scored]:
    """Late interaction: each word of the query beside its nearest in a text; of the best 50.

    The signal is the mean over the query's tokens of the greatest cosine with a token of the text.
    Nothing where the embedder has no vectors of tokens; of fewer candidates, the best first, where
    the reranker's time runs out.

    Source: MaxSim, Khattab and Zaharia 2020.
    """
    embedder = search.sources.embedder
    ids = tuple(candidates)[:_MAX_LATE]
    if not isinstance(embedder, TokenEmbedder) or not ids:
        return []
    passages_of = await _passages_of(search, channel, ids)
    passages = list(passages_of.values())
    deadline_s = search.sources.tuning.rerank_deadline_s
    ends_at = clock.monotonic() + deadline_s
    token_vectors: list[Matrix] = []
    with search.timed("rerank", channel):
        [query_vectors] = await asyncio.to_thread(embedder.embed_tokens, [search.text])
        while len(token_vectors) < len(passages) and clock.monotonic() < ends_at:
            batch = passages[len(token_vectors) : len(token_vectors) + _LATE_BATCH]
            token_vectors += await asyncio.to_thread(embedder.embed_tokens, batch)
    if len(token_vectors) < len(passages):
        search.warnings.add(
            f"late: its {deadline_s * 1000:.0f} ms ran out after {len(token_vectors)} of "
            f"{len(passages)} candidates: the others keep the order that they had"
        )
    scores: dict[str, float] = {}
    for id_, vectors in zip(passages_of, token_vectors, strict=False):
        has_tokens = len(query_vectors) > 0 and len(vectors) > 0
        scores[id_] = float((query_vectors @ vectors.T).max(axis=1).mean()) if has_tokens else 0.0
    return _by_signal({id_: max(0.0, score) for id_, score in scores.items()}, scores)


async def _passages_of(search: Search, channel: ChannelName, ids: Sequence[str]) -> dict[str, str]:
    """Return id → the text, or of a long text the passage, that a model reads."""
    with search.timed("fetch", channel):
        items = await fetch(search, channel, ids)
    texts = {id_: text_of(item) for id_, item in items.items()}
    return {
        id_: passage_of(search.text, text, _PASSAGE_CHARS) or text for id_, text in texts.items()
    }


# ---- Support and tags ----


@reranker
async def mentions(
    search: Search, channel: ChannelName, candidates: Mapping[str, Candidate]
) -> list[Scored]:
    """Mentions: facts that more episodes support come first."""
    facts = [id_ for id_, item in candidates.items() if isinstance(item, FactOutline)]
    supports = await supported(search, facts)
    counts = {id_: len(support.episodes) for id_, support in supports.items()}
    most = max(counts.values(), default=0) or 1
    return _by_signal({id_: count / most for id_, count in counts.items()}, counts)


@reranker
async def tags(
    search: Search, channel: ChannelName, candidates: Mapping[str, Candidate]
) -> list[Scored]:
    """Tags: candidates that carry the tags of the query (``#word``) or of the filters.

    Return the candidates that carry any of these tags; the signal is the share that it carries.
    """
    wanted = {fold(tag) for tag in _TAG.findall(search.request.query)}
    for filters in search.filters:
        wanted.update(fold(tag) for tag in filters.tags)
    if not wanted:
        return []
    shares: dict[str, float] = {}
    for id_, item in candidates.items():
        if isinstance(item, (NodeOutline, Turn)):
            share = len(wanted & {fold(tag) for tag in item.tags}) / len(wanted)
            if share:
                shares[id_] = share
    return _by_signal(shares, shares)


# ---- Time ----


@reranker
async def recency(
    search: Search, channel: ChannelName, candidates: Mapping[str, Candidate]
) -> list[Scored]:
    """Recency: what happened later comes first."""
    times = await times_of(search, candidates)
    ages = {id_: age_d(search, at) for id_, at in times.items()}
    return [
        Scored(id_, -ages[id_], max(0.0, 1 - ages[id_] / RECENCY_WINDOW_D))
        for id_ in sorted(ages, key=ages.__getitem__)
    ]


@reranker
async def period(
    search: Search, channel: ChannelName, candidates: Mapping[str, Candidate]
) -> list[Scored]:
    """Period: what happened at the same hour of the week (UTC) as the question comes first.

    The signal falls in a straight line from 1 at the same hour to 0 half a week away.
    """
    signals: dict[str, float] = {}
    for id_, at in (await times_of(search, candidates)).items():
        apart = (search.moment - at) % _WEEK
        signals[id_] = 1 - min(apart, _WEEK - apart) / (_WEEK / 2)
    return _by_signal(signals, signals)


@reranker
async def sequence(
    search: Search, channel: ChannelName, candidates: Mapping[str, Candidate]
) -> list[Scored]:
    """Sequence: turns that stand before and after the best hit in its session, the nearest first.

    The signal is 1 / (1 + how many places of the journal lie between); nothing where the best hit
    is no turn.
    """
    best = next(iter(candidates.values()), None)
    if not isinstance(best, Turn):
        return []
    apart = {
        id_: abs(item.seq - best.seq)
        for id_, item in candidates.items()
        if isinstance(item, Turn) and item.session == best.session
    }
    return _by_distance(apart)


# ---- The graph ----


@reranker
async def near_center(
    search: Search, channel: ChannelName, candidates: Mapping[str, Candidate]
) -> list[Scored]:
    """Near the centre: fewer hops from the centre node (the entity's own by default) count more.

    Return the candidates within reach of the centre, nearest first; nothing when there is no
    centre. The entity's own node is near itself whatever is asked, and says nothing: it is left out
    unless the caller gave it as the centre.
    """
    center = search.center()
    if not center:
        return []
    others = candidates
    if not search.request.center:
        others = {id_: item for id_, item in candidates.items() if id_ != center}
    return await _by_hops(search, others, [center], MAX_HOPS)


@reranker
async def near_named(
    search: Search, channel: ChannelName, candidates: Mapping[str, Candidate]
) -> list[Scored]:
    """Near the named: candidates that are, touch or stand next to a node that the query names."""
    nodes = await search.named_nodes()
    return await _by_hops(search, candidates, nodes, 1) if nodes else []


async def _by_hops(
    search: Search, candidates: Mapping[str, Candidate], starts: Sequence[str], max_hops: int
) -> list[Scored]:
    """Return the candidates within ``max_hops`` of any start, nearest first.

    A fact is as far as its nearer end; a turn as its nearest mentioned node.
    """
    nodes_of: dict[str, Sequence[str]] = {}
    for id_, item in candidates.items():
        if isinstance(item, FactOutline):
            nodes_of[id_] = (item.subject, item.object)
        elif isinstance(item, NodeOutline):
            nodes_of[id_] = (item.uuid,)
    others = [id_ for id_ in candidates if id_ not in nodes_of]
    if others:
        nodes_of.update(await search.sources.client.mentioned_nodes(others))
    targets = list(dict.fromkeys(node for nodes in nodes_of.values() for node in nodes))
    hops = await search.sources.journal.hops(starts, targets, max_hops, search.moment)
    distances: dict[str, int] = {}
    for id_, nodes in nodes_of.items():
        reached = [hops[node] for node in nodes if node in hops]
        if reached:
            distances[id_] = min(reached)
    return _by_distance(distances)


# ---- Lists ----


def _by_signal(signals: Mapping[str, float], scores: Mapping[str, float]) -> list[Scored]:
    """Return ids by falling score, each with its signal."""
    return [
        Scored(id_, scores[id_], signals[id_])
        for id_ in sorted(scores, key=lambda id_: -scores[id_])
    ]


def _by_distance(distances: Mapping[str, int]) -> list[Scored]:
    """Return ids by rising distance; the signal is ``1 / (1 + distance)``."""
    return [
        Scored(id_, -float(distances[id_]), 1 / (1 + distances[id_]))
        for id_ in sorted(distances, key=distances.__getitem__)
    ]
