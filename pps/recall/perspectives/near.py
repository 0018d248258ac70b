"""Connections: what stands beside the things that a query names."""

from __future__ import annotations

from pps.core.values import ChannelName
from pps.journal.filters import ItemFilter
from pps.recall.perspectives import finds
from pps.recall.perspectives.likeness import by_neighbours
from pps.recall.query import Ask, Scored
from pps.recall.ranking import in_order

_MOST = 2_000
"""Facts around a named thing that are read where a filter may leave few of them."""


@finds(alike=by_neighbours)
async def near(ask: Ask, channel: ChannelName, depth: int) -> list[Scored]:
    """Near: what the graph ties to a thing that the query names, by a relation that the query names first.

    Return the neighbours, the facts that tie them or the turns behind those facts; nothing where no thing is named.
    ``connections`` of the request keeps one way: facts that go out from the named thing, or come to it.
    """
    named = await ask.named() if channel in ("nodes", "facts", "episodes", "turns") else []
    if not named:
        return []
    there, way = set(named), ask.request.connections
    restricted = any(one != ItemFilter() for one in ask.filters)
    facts = [
        one
        for one in await ask.sources.client.facts_of_nodes(named, _MOST if restricted else 4 * depth)
        if way == "both" or (one.subject if way == "source" else one.object) in there
    ]
    words = ask.text.casefold()
    facts.sort(key=lambda one: one.relation.replace("_", " ").casefold() not in words)  # stable: the newest first
    if channel == "facts":
        return in_order(await ask.permitted("fact", [one.uuid for one in facts]), depth)
    if channel == "nodes":
        ends = [end for one in facts for end in (one.subject, one.object) if end not in there]
        return in_order(await ask.permitted("node", ends), depth)
    supports = await ask.sources.journal.fact_supports([one.uuid for one in facts])
    turns = [turn for one in facts if one.uuid in supports for turn in supports[one.uuid].episodes]
    return in_order(await ask.permitted("episode", turns), depth)
