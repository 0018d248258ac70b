"""What brings candidates: words, meaning, names, the graph, and time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet

from pps.core.time import Span, from_micros
from pps.core.values import ChannelName
from pps.journal.links import FactOutline
from pps.recall.hits import outlined, supported
from pps.recall.named_time import named_time
from pps.recall.perspectives import finds
from pps.recall.perspectives.likeness import by_meaning, by_names, by_words
from pps.recall.query import Ask, Scored
from pps.recall.question import beyond_names
from pps.recall.ranking import best_of, fused, in_order, textual

MOST_IN_TIME = 5_000
"""A time in or near which more than this happened says too little: the other perspectives decide."""
_MOST_LATEST = 10_000
_K = 5
_TURNS_AT_ONCE = 20
DATED: Mapping[str, str] = {"facts": "facts", "episodes": "windows", "turns": "windows"}
"""Channels of things that have a time, and the collection that finds them best."""


async def _bm25_score(ask: Ask, channel: ChannelName, ids: AbstractSet[str]) -> list[Scored]:
    """Return those that share a word with the query, on the scale of the channel's best match."""
    lists = [await ask.matches_among(one, ask.words, ids) for one in ask.collections(channel)]
    best = best_of([await ask.matches(one, ask.words, 1) for one in ask.collections(channel)], 1)
    return [one for one in textual(best_of([*lists, best], len(ids) + 1)) if one.id in ids]


@finds(score=_bm25_score, alike=by_words)
async def bm25(ask: Ask, channel: ChannelName, depth: int) -> list[Scored]:
    """BM25: words that the query shares with the item, rare ones counting more.

    Only words that a query is about are asked for: "where" of "Where is the key?" says nothing of a key. Windows keep
    them, since the turn before an answer is often the same question.
    """
    return textual(
        best_of(
            [await ask.matches(one, ask.words, depth) for one in ask.collections(channel)], depth
        )
    )


@finds()
async def bm25_windows(ask: Ask, channel: ChannelName, depth: int) -> list[Scored]:
    """BM25 over windows: words that the query shares with a turn, its neighbours and their facts."""
    return (
        textual(await ask.matches("windows", ask.text, depth))
        if channel in ("episodes", "turns")
        else []
    )


async def _dense_score(ask: Ask, channel: ChannelName, ids: AbstractSet[str]) -> list[Scored]:
    if channel == "nodes":
        found = await ask.similar_among("records", ids), await ask.similar_among("nodes", ids)
        return await _nodes(ask, *found, len(ids))
    return best_of(
        [await ask.similar_among(one, ids) for one in ask.collections(channel)], len(ids)
    )


@finds(score=_dense_score, alike=by_meaning)
async def dense(ask: Ask, channel: ChannelName, depth: int) -> list[Scored]:
    """Dense: nearness of the query's vector to the item's own vector (raw cosine); a record's is of what it says."""
    if channel == "nodes":
        return await _nodes(
            ask, await ask.similar("records", depth), await ask.similar("nodes", depth), depth
        )
    return best_of([await ask.similar(one, depth) for one in ask.collections(channel)], depth)


@finds()
async def dense_names(ask: Ask, channel: ChannelName, depth: int) -> list[Scored]:
    """Dense names: nearness of the query's vector to the name of a node alone, whatever a record says."""
    return await ask.similar("nodes", depth) if channel == "nodes" else []


@finds()
async def dense_windows(ask: Ask, channel: ChannelName, depth: int) -> list[Scored]:
    """Dense over windows: nearness of the query to a turn taken together with its neighbours and its facts."""
    return await ask.similar("windows", depth) if channel in ("episodes", "turns") else []


async def _nodes(ask: Ask, records: list[Scored], names: list[Scored], depth: int) -> list[Scored]:
    """Return records by their texts and other nodes by their names, which are all that those say."""
    if not (records and names):
        return records or names
    texts = await ask.sources.journal.records.of_nodes([one.id for one in names])
    return best_of([records, [one for one in names if one.id not in texts]], depth)


@finds()
async def latest(ask: Ask, channel: ChannelName, depth: int) -> list[Scored]:
    """Latest: the turns that were said last, whatever the query says.

    Return the latest turns that the filters let through, looking farther back until there are enough.
    """
    if channel not in ("turns", "episodes"):
        return []
    size = depth
    while True:
        turns = await ask.sources.journal.recent(min(size, _MOST_LATEST))
        found = await ask.permitted("episode", [turn.uuid for turn in turns])
        if len(found) >= depth or len(turns) < size or size >= _MOST_LATEST:
            return in_order(found, depth)
        size *= 4


@finds(alike=by_names)
async def named(ask: Ask, channel: ChannelName, depth: int) -> list[Scored]:
    """Named things: nodes that the query calls by name or by what they are, the facts and the turns about them.

    Return the named nodes, longest name first; for facts, theirs when the query is only names; for turns, those that
    mention one that few turns do, best by words and meaning.

    A query that asks more than a name ("when did Ana move?") leaves facts to the other perspectives: all of
    a person's facts, newest first, would drown the one that is asked for.
    """
    if channel == "nodes":
        return in_order(await ask.permitted("node", await ask.meant()), depth)
    if channel in ("episodes", "turns"):
        turns = await ask.sources.journal.mentioning(await ask.meant(), depth)
        there = await ask.permitted("episode", [one for some in turns.values() for one in some])
        return in_order(list(await _best_among(ask, "episodes", set(there), depth)), depth)
    named = await ask.named() if channel == "facts" else []
    names = await ask.sources.journal.names_of(named) if named else {}
    if not named or beyond_names(ask.text, [name for each in names.values() for name in each]):
        return []
    facts = await ask.sources.client.facts_of_nodes(named, depth)
    wanted = set(named)
    ends = {
        fact.uuid: len(wanted & {fact.subject, fact.object})
        for fact in facts
        if fact.kind == "fact"
    }
    return in_order(await ask.permitted("fact", sorted(ends, key=lambda one: -ends[one])), depth)


async def _structural_score(ask: Ask, channel: ChannelName, ids: AbstractSet[str]) -> list[Scored]:
    if channel != "nodes":
        return []
    reached = await ask.reach()
    return [
        Scored(one, -float(step.hops), 1 / step.hops) for one, step in reached.items() if one in ids
    ]


@finds(score=_structural_score)
async def structural(ask: Ask, channel: ChannelName, depth: int) -> list[Scored]:
    """Structural: nodes within reach of the anchor (the entity's own node unless one is given), signal 1 / hops.

    Return the nodes around the anchor (not itself), nearest first, of equally near ones those nearest in meaning.

    Source: acceptance row S0-07.
    """
    if channel != "nodes":
        return []
    reached = await ask.reach()
    rings: dict[int, set[str]] = {}
    for one in await ask.permitted("node", list(reached)):
        rings.setdefault(reached[one].hops, set()).add(one)
    found: list[Scored] = []
    for hops, ring in sorted(rings.items()):
        if len(found) >= depth:
            break
        like = [one.id for one in await _dense_score(ask, channel, ring)]
        ordered = dict.fromkeys([*like, *(one for one in reached if one in ring)])
        found += [Scored(one, -float(hops), 1 / hops) for one in ordered]
    return found[:depth]


@finds()
async def supports(ask: Ask, channel: ChannelName, depth: int) -> list[Scored]:
    """Supports: a fact raises the turns that support it and the nodes it joins; a turn raises its facts.

    Return what the best facts (or, for facts, the best turns) vote for, in their order.
    """
    if channel == "facts":
        return in_order(
            await _facts_of(ask, await _best(ask, ("windows",), ask.text, depth), depth), depth
        )
    if channel not in ("episodes", "turns", "nodes"):
        return []
    links = await ask.once(("best facts' links", depth), lambda: _links(ask, depth))
    if channel == "nodes":
        ends = [end for one in links.values() for end in (one.subject, one.object)]
        return in_order(await ask.permitted("node", ends), depth)
    turns = [turn for one in (await supported(ask, links)).values() for turn in one.episodes]
    return in_order(await ask.permitted("episode", turns), depth)


async def _facts_of(ask: Ask, turns: Sequence[str], depth: int) -> list[str]:
    """Return the facts that turns support, in the turns' order; no more turns are looked up than give ``depth``."""
    found: dict[str, None] = {}
    for at in range(0, len(turns), _TURNS_AT_ONCE):
        some = turns[at : at + _TURNS_AT_ONCE]
        facts = await ask.sources.journal.facts_supported_by(some)
        found.update(
            dict.fromkeys(
                await ask.permitted("fact", [one for turn in some for one in facts.get(turn, ())])
            )
        )
        if len(found) >= depth:
            break
    return list(found)


async def _links(ask: Ask, depth: int) -> dict[str, FactOutline]:
    """Return what the best facts join, in their order; nodes and episodes both ask."""
    best = await _best(ask, ask.collections("facts"), ask.words, depth)
    return {
        one: item
        for one, item in (await outlined(ask, "facts", best)).items()
        if isinstance(item, FactOutline)
    }


async def _best(ask: Ask, collections: Sequence[str], words: str, depth: int) -> list[str]:
    """Return the ids that text and vectors together rank best, at most ``depth``; ``words`` as BM25 asks for them."""
    text = best_of([await ask.matches(one, words, depth) for one in collections], depth)
    dense = best_of([await ask.similar(one, depth) for one in collections], depth)
    return list(fused({"text": text, "dense": dense}, {"text": 1, "dense": 1}, k=_K))[:depth]


@finds()
async def when(ask: Ask, channel: ChannelName, depth: int) -> list[Scored]:
    """When: what happened in or near the time that the query names ("last spring") and fits its words best.

    Return facts and turns of the named time: by words and meaning, less the farther outside it.

    Nothing when the query names no time, and in channels of things without a time. Where words and meaning
    bring nothing ("what happened yesterday?" without an embedder), the time's latest come in their order.
    A question about the time alone is answered by ``named_time``: what lies in it, most telling first.
    """
    if channel not in DATED:
        return []
    alone = await named_time(ask)
    if alone is not None:
        return in_order(alone.facts if channel == "facts" else alone.turns, depth)
    spans = await ask.times()
    near = await _near_times(ask, channel, spans) if spans else {}
    if not near:
        return []
    collection, wanted = DATED[channel], set(near)
    scores = {
        one: score * near[one]
        for one, score in (await _best_among(ask, collection, wanted, depth)).items()
    }
    return in_order(sorted(scores, key=lambda one: -scores[one]) or list(near), depth)


async def _best_among(
    ask: Ask, collection: str, ids: AbstractSet[str], depth: int
) -> dict[str, float]:
    """Return the ids that text and vectors together rank best among some, with their fused scores, best first."""
    lists = {
        "text": await ask.matches_among(collection, ask.text, ids, depth),
        "dense": await ask.similar_among(collection, ids, depth),
    }
    return fused(lists, {"text": 1, "dense": 1}, k=_K)


async def _near_times(ask: Ask, channel: ChannelName, spans: Sequence[Span]) -> dict[str, float]:
    """Return id → nearness in (0, 1] of what happened in or near any of the spans, latest first."""
    kind = "fact" if channel == "facts" else "episode"
    allowed = await ask.allowed(kind)
    near: dict[str, float] = {}
    for span in spans:
        times = await ask.sources.journal.within(kind, *span.bounds(), limit=MOST_IN_TIME + 1)
        if len(times) > MOST_IN_TIME:
            return {}
        for one, at in times.items():
            nearness = span.nearness(from_micros(at))
            if nearness > near.get(one, 0.0) and (allowed is None or one in allowed):
                near[one] = nearness
    return near
