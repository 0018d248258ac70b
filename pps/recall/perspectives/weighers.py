"""What only orders the candidates that others brought: a reranker, support, age, tags, distance in the graph."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping, Sequence

from pps.core.errors import ModelUnavailable
from pps.core.text import fold
from pps.core.values import ChannelName, Turn
from pps.journal.links import FactOutline, NodeOutline
from pps.models.protocols import Reranker
from pps.recall.hits import age_d, fetch, supported, text_of, times_of
from pps.recall.perspectives import weighs
from pps.recall.query import Ask, Candidate, Scored
from pps.recall.query_words import passage_of
from pps.recall.request import MAX_HOPS

BEST = 30
"""Candidates that the cross-encoder reads, from the top of what the finding perspectives say together."""
WINDOW_D = 28.0
"""Days over which the signal of recency falls from 1 to 0 in a straight line."""
_READ_CHARS = 320
"""Of a longer text the cross-encoder reads the passage that shares most with the query: time grows with every word."""
_TAG = re.compile(r"(?<![\w#])#([^\W\d_][\w-]*)")


@weighs
async def cross_encoder(
    ask: Ask, channel: ChannelName, items: Mapping[str, Candidate]
) -> list[Scored]:
    """Cross-encoder: a model that reads the query together with each of the best candidates, and orders those.

    Return the best candidates in the model's order; none where no reranker is set.

    Raises:
        ModelUnavailable: Its time (S2-05) ran out; the other lists are then joined without it.
        ModelError: It failed.
    """
    reranker, ids = ask.sources.reranker, tuple(items)[:BEST]
    if reranker is None or not ids:
        return []
    return await ask.once(
        ("cross_encoder", channel, ids), lambda: _reranked(ask, reranker, channel, ids)
    )


async def _reranked(
    ask: Ask, reranker: Reranker, channel: ChannelName, ids: Sequence[str]
) -> list[Scored]:
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
    return [
        Scored(one, score, (score - least) / spread)
        for one, score in sorted(scored, key=lambda entry: -entry[1])
    ]


@weighs
async def mentions(ask: Ask, channel: ChannelName, items: Mapping[str, Candidate]) -> list[Scored]:
    """Mentions: facts that more episodes support come first."""
    facts = await supported(
        ask, [one for one, item in items.items() if isinstance(item, FactOutline)]
    )
    counts = {one: len(support.episodes) for one, support in facts.items()}
    most = max(counts.values(), default=0) or 1
    return [
        Scored(one, counts[one], counts[one] / most)
        for one in sorted(counts, key=lambda one: -counts[one])
    ]


@weighs
async def recency(ask: Ask, channel: ChannelName, items: Mapping[str, Candidate]) -> list[Scored]:
    """Recency: what happened later comes first."""
    ages = {one: age_d(ask, at) for one, at in (await times_of(ask, items)).items()}
    return [
        Scored(one, -ages[one], max(0.0, 1 - ages[one] / WINDOW_D))
        for one in sorted(ages, key=ages.__getitem__)
    ]


@weighs
async def tags(ask: Ask, channel: ChannelName, items: Mapping[str, Candidate]) -> list[Scored]:
    """Tags: candidates that carry the tags of the query (``#word``) or of the filters.

    Return the candidates that carry any tag of the query or the filters; the signal is the share that it carries.
    """
    filtered = (tag for one in ask.filters for tag in one.tags)
    wanted = {fold(tag) for tag in (*_TAG.findall(ask.request.query), *filtered)}
    shares = {
        one: len(wanted & {fold(tag) for tag in item.tags}) / len(wanted)
        for one, item in items.items()
        if wanted and isinstance(item, (NodeOutline, Turn))
    }
    found = sorted((one for one, share in shares.items() if share), key=lambda one: -shares[one])
    return [Scored(one, shares[one], shares[one]) for one in found]


@weighs
async def near_center(
    ask: Ask, channel: ChannelName, items: Mapping[str, Candidate]
) -> list[Scored]:
    """Near the centre: fewer hops from the centre node (the entity's own unless one is given) count more.

    Return the candidates within reach of the centre, nearest first; nothing when there is no centre.

    The entity's own node is near itself whatever is asked, and says nothing: it is not among them unless it is given.
    """
    center = ask.center()
    others = (
        items if ask.request.center else {one: item for one, item in items.items() if one != center}
    )
    return await _by_hops(ask, others, [center], MAX_HOPS) if center else []


@weighs
async def near_named(
    ask: Ask, channel: ChannelName, items: Mapping[str, Candidate]
) -> list[Scored]:
    """Near the named: candidates that are, touch or stand next to a node that the query names come first."""
    named = await ask.named()
    return await _by_hops(ask, items, named, 1) if named else []


async def _by_hops(
    ask: Ask, items: Mapping[str, Candidate], starts: Sequence[str], most: int
) -> list[Scored]:
    """Return the candidates within ``most`` hops of any start, nearest first; the signal is ``1 / (1 + hops)``.

    A fact is as far as its nearer end; a turn as its nearest mentioned node.
    """
    reach: dict[str, Sequence[str]] = {}
    for one, item in items.items():
        if isinstance(item, FactOutline):
            reach[one] = (item.subject, item.object)
        elif isinstance(item, NodeOutline):
            reach[one] = (item.uuid,)
    if others := [one for one in items if one not in reach]:
        reach.update(await ask.sources.client.mentioned_nodes(others))
    targets = list(dict.fromkeys(node for nodes in reach.values() for node in nodes))
    hops = await ask.sources.journal.hops(starts, targets, most, ask.moment)
    far = {
        one: min((hops[node] for node in nodes if node in hops), default=-1)
        for one, nodes in reach.items()
    }
    near = sorted((one for one, distance in far.items() if distance >= 0), key=far.__getitem__)
    return [Scored(one, -float(far[one]), 1 / (1 + far[one])) for one in near]
