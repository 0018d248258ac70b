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
from pps.journal.filters import ItemFilter
from pps.journal.links import FactOutline, Joint
from pps.models.protocols import TokenEmbedder
from pps.recall.hits import fetch, outlined, supported, text_of
from pps.recall.named_time import named_time
from pps.recall.perspectives import Likeness, retriever
from pps.recall.perspectives.likeness import by_meaning, by_names, by_neighbours, by_words, cosines
from pps.recall.question import STOP_WORDS, beyond_names, grams, quoted_phrases
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
_TURNS_AT_ONCE = 20
_MAX_FACTS_READ = 2_000
"""Facts around a named node that are read where a filter may leave few of them."""
_SECOND_STEP_NODES = 20
"""Nodes beside the named ones from which a second step is made."""


# ---- Words ----


async def _bm25_score(search: Search, channel: ChannelName, ids: AbstractSet[str]) -> list[Scored]:
    """Return those that share a word with the query, on the scale of the channel's best match."""
    lists: list[list[Scored]] = []
    for collection in search.collections(channel):
        lists.append(await search.text_matches_among(collection, search.words, ids))
        lists.append(await search.text_matches(collection, search.words, 1))
    scored = textual(best_of(lists, len(ids) + len(search.collections(channel))))
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
    return textual(await search.window_matches(depth))


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
    """Dense: cosine of the query's vector and the item's; of a record, its text's vector."""
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
    """Intent: nearness in meaning, times what the turns around a text say: .85 to 1.15.

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
        search.window_matches(depth),
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


async def best_ids(search: Search, collections: Sequence[str], depth: int) -> list[str]:
    """Return the ids that text and vectors together rank best, at most ``depth``."""

    async def matches(collection: str) -> list[Scored]:
        if collection == "windows":
            return await search.window_matches(depth)
        return await search.text_matches(collection, search.words, depth)

    text_lists, vector_lists = await asyncio.gather(
        asyncio.gather(*(matches(name) for name in collections)),
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


@retriever(alike=by_names)
async def named(search: Search, channel: ChannelName, depth: int) -> list[Scored]:
    """Named things: nodes that the query names, and the facts and turns about them.

    Return the named nodes, longest name first; for facts, theirs when the query is only names; for
    turns, those that mention one that few turns do, best by words and meaning.

    A query that asks more than a name ("when did Ana move?") leaves facts to the other
    perspectives: all of a person's facts, newest first, would drown the one that is asked for.
    """
    if channel == "nodes":
        return in_order(await search.permitted("node", await search.meant_nodes()), depth)
    if channel in TURN_CHANNELS:
        turns_of = await search.sources.journal.mentioning(await search.meant_nodes(), depth)
        turns = [turn for turns in turns_of.values() for turn in turns]
        permitted = await search.permitted("episode", turns)
        return in_order(list(await best_among(search, "episodes", set(permitted), depth)), depth)
    if channel == "facts":
        return in_order(await _facts_of_names(search, depth), depth)
    return []


async def _facts_of_names(search: Search, depth: int) -> list[str]:
    """Return the facts of the named nodes if the query is only names; joining ones first."""
    nodes = await search.named_nodes()
    if not nodes:
        return []
    names_of = await search.sources.journal.names_of(nodes)
    names = [name for node_names in names_of.values() for name in node_names]
    if beyond_names(search.text, names):
        return []
    facts = await search.sources.client.facts_of_nodes(nodes, depth)
    wanted = set(nodes)
    ends = {
        fact.uuid: len(wanted & {fact.subject, fact.object})
        for fact in facts
        if fact.kind == "fact"
    }
    return await search.permitted("fact", sorted(ends, key=lambda id_: -ends[id_]))


async def _structural_score(
    search: Search, channel: ChannelName, ids: AbstractSet[str]
) -> list[Scored]:
    if channel != "nodes":
        return []
    reachable = await search.reachable()
    return [
        Scored(id_, -float(step.hops), 1 / step.hops)
        for id_, step in reachable.items()
        if id_ in ids
    ]


@retriever(score=_structural_score)
async def structural(search: Search, channel: ChannelName, depth: int) -> list[Scored]:
    """Structural: nodes within reach of the anchor (the entity's own by default), signal 1 / hops.

    Return the nodes around the anchor (not itself), nearest first, of equally near ones those
    nearest in meaning.

    Source: acceptance row S0-07.
    """
    if channel != "nodes":
        return []
    reachable = await search.reachable()
    rings: dict[int, set[str]] = {}
    for id_ in await search.permitted("node", list(reachable)):
        rings.setdefault(reachable[id_].hops, set()).add(id_)
    entries: list[Scored] = []
    for hops, ring in sorted(rings.items()):
        if len(entries) >= depth:
            break
        by_meaning = [entry.id for entry in await dense_score(search, channel, ring)]
        by_walk = [id_ for id_ in reachable if id_ in ring]
        ordered = dict.fromkeys([*by_meaning, *by_walk])
        entries += [Scored(id_, -float(hops), 1 / hops) for id_ in ordered]
    return entries[:depth]


@retriever(alike=by_neighbours)
async def near(search: Search, channel: ChannelName, depth: int) -> list[Scored]:
    """Near: neighbours of a node that the query names, by a relation that it names first.

    Return the neighbours, the facts that tie them or the turns behind those facts; nothing where no
    node is named. ``connections`` of the request keeps one direction: facts that go out from the
    named node, or come to it.
    """
    if channel not in ("nodes", "facts", *TURN_CHANNELS):
        return []
    meant = await search.meant_nodes()
    if not meant:
        return []
    facts = await _facts_around(search, meant, depth)
    query = search.text.casefold()
    # A stable sort: of each half the newest facts stay first.
    facts.sort(key=lambda fact: fact.relation.replace("_", " ").casefold() not in query)
    ends = [end for fact in facts for end in (fact.subject, fact.object)]
    neighbours = [end for end in dict.fromkeys(ends) if end not in meant]
    if neighbours and len(facts) < depth:
        # One step further: "who looks after what depends on it".
        known = {fact.uuid for fact in facts}
        further = await _facts_around(search, neighbours[:_SECOND_STEP_NODES], depth)
        facts += [fact for fact in further if fact.uuid not in known]
    if channel == "facts":
        return in_order(await search.permitted("fact", [fact.uuid for fact in facts]), depth)
    if channel == "nodes":
        ends = [end for fact in facts for end in (fact.subject, fact.object)]
        others = [end for end in ends if end not in meant]
        return in_order(await search.permitted("node", others), depth)
    supports = await search.sources.journal.fact_supports([fact.uuid for fact in facts])
    known_supports = [supports[fact.uuid] for fact in facts if fact.uuid in supports]
    turns = [turn for support in known_supports for turn in support.episodes]
    return in_order(await search.permitted("episode", turns), depth)


async def _facts_around(search: Search, nodes: Sequence[str], depth: int) -> list[Joint]:
    """Return the facts of nodes in the request's direction, the newest first."""
    is_filtered = any(each != ItemFilter() for each in search.filters)
    limit = _MAX_FACTS_READ if is_filtered else 4 * depth
    facts = await search.sources.journal.joints(nodes, limit)
    direction = search.request.connections
    if direction == "both":
        return list(facts)
    starts = set(nodes)
    if direction == "source":
        return [fact for fact in facts if fact.subject in starts]
    return [fact for fact in facts if fact.object in starts]


@retriever()
async def supports(search: Search, channel: ChannelName, depth: int) -> list[Scored]:
    """Supports: a fact raises the turns that support it and its ends; a turn raises its facts.

    Return what the best facts (or, for facts, the best turns) vote for, in their order. A fact that
    only repeats a turn is no second witness for it: the same words would count twice.
    """
    if channel == "facts":
        turns = await best_ids(search, ("windows",), depth)
        return in_order(await _facts_of_turns(search, turns, depth), depth)
    if channel not in ("nodes", *TURN_CHANNELS):
        return []
    outlines = await search.once(("best facts", depth), lambda: _best_facts(search, depth))
    if channel == "nodes":
        ends = [end for fact in outlines.values() for end in (fact.subject, fact.object)]
        return in_order(await search.permitted("node", ends), depth)
    supporting = (await supported(search, outlines)).values()
    turns = [
        turn for support in supporting for turn in support.episodes if turn not in support.verbatim
    ]
    return in_order(await search.permitted("episode", turns), depth)


async def _facts_of_turns(search: Search, turns: Sequence[str], depth: int) -> list[str]:
    """Return the facts that turns support, in the turns' order; stop when there are ``depth``."""
    ids: dict[str, None] = {}
    for start in range(0, len(turns), _TURNS_AT_ONCE):
        batch = turns[start : start + _TURNS_AT_ONCE]
        facts_of = await search.sources.journal.facts_supported_by(batch)
        facts = [fact for turn in batch for fact in facts_of.get(turn, ())]
        ids.update(dict.fromkeys(await search.permitted("fact", facts)))
        if len(ids) >= depth:
            break
    return list(ids)


async def _best_facts(search: Search, depth: int) -> dict[str, FactOutline]:
    """Return the outlines of the best facts, in their order; nodes and episodes both need them."""
    best = await best_ids(search, search.collections("facts"), depth)
    outlines = await outlined(search, "facts", best)
    return {id_: item for id_, item in outlines.items() if isinstance(item, FactOutline)}
