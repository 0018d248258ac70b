"""Retrievers by the graph.

What the query names, what lies around it, and what facts and turns support.
"""

from __future__ import annotations

from collections.abc import Sequence
from collections.abc import Set as AbstractSet

from pps.core.values import ChannelName
from pps.journal.filters import ItemFilter
from pps.journal.links import FactOutline, Joint
from pps.recall.hits import outlined, supported
from pps.recall.perspectives import retriever
from pps.recall.perspectives.likeness import by_names, by_neighbours
from pps.recall.perspectives.retrievers import TURN_CHANNELS, best_among, best_ids, dense_score
from pps.recall.question import beyond_names
from pps.recall.ranking import in_order
from pps.recall.search import Scored, Search

_TURNS_AT_ONCE = 20
_MAX_FACTS_READ = 2_000
"""Facts around a named node that are read where a filter may leave few of them."""
_SECOND_STEP_NODES = 20
"""Nodes beside the named ones from which a second step is made."""


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

    Return what the best facts (or, for facts, the best turns) vote for, in their order.
    """
    if channel == "facts":
        turns = await best_ids(search, ("windows",), search.text, depth)
        return in_order(await _facts_of_turns(search, turns, depth), depth)
    if channel not in ("nodes", *TURN_CHANNELS):
        return []
    outlines = await search.once(("best facts", depth), lambda: _best_facts(search, depth))
    if channel == "nodes":
        ends = [end for fact in outlines.values() for end in (fact.subject, fact.object)]
        return in_order(await search.permitted("node", ends), depth)
    supporting = (await supported(search, outlines)).values()
    turns = [turn for support in supporting for turn in support.episodes]
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
    best = await best_ids(search, search.collections("facts"), search.words, depth)
    outlines = await outlined(search, "facts", best)
    return {id_: item for id_, item in outlines.items() if isinstance(item, FactOutline)}
