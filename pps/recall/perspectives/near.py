"""Connections: what stands beside the things that a query names."""

from __future__ import annotations

from collections.abc import Sequence

from pps.core.values import ChannelName
from pps.journal.filters import ItemFilter
from pps.journal.links import Joint
from pps.recall.perspectives import finds
from pps.recall.perspectives.likeness import by_neighbours
from pps.recall.query import Ask, Scored
from pps.recall.ranking import in_order

_MOST = 2_000
"""Facts around a named thing that are read where a filter may leave few of them."""
_BESIDE = 20
"""Nodes beside the named ones from which a second step is made."""


@finds(alike=by_neighbours)
async def near(ask: Ask, channel: ChannelName, depth: int) -> list[Scored]:
    """Near: what the graph ties to a thing that the query names, by a relation that the query names first.

    Return the neighbours, the facts that tie them or the turns behind those facts; nothing where no thing is named.
    ``connections`` of the request keeps one way: facts that go out from the named thing, or come to it.
    """
    named = await ask.meant() if channel in ("nodes", "facts", "episodes", "turns") else []
    if not named:
        return []
    there, words = set(named), ask.text.casefold()
    facts = await _facts(ask, named, depth)
    facts.sort(
        key=lambda one: one.relation.replace("_", " ").casefold() not in words
    )  # stable: the newest first
    beyond = [
        end
        for end in dict.fromkeys(end for one in facts for end in (one.subject, one.object))
        if end not in there
    ]
    if beyond and len(facts) < depth:  # then one step further: "who looks after what depends on it"
        known = {one.uuid for one in facts}
        facts += [
            one for one in await _facts(ask, beyond[:_BESIDE], depth) if one.uuid not in known
        ]
    if channel == "facts":
        return in_order(await ask.permitted("fact", [one.uuid for one in facts]), depth)
    if channel == "nodes":
        ends = [end for one in facts for end in (one.subject, one.object) if end not in there]
        return in_order(await ask.permitted("node", ends), depth)
    supports = await ask.sources.journal.fact_supports([one.uuid for one in facts])
    turns = [turn for one in facts if one.uuid in supports for turn in supports[one.uuid].episodes]
    return in_order(await ask.permitted("episode", turns), depth)


async def _facts(ask: Ask, nodes: Sequence[str], depth: int) -> list[Joint]:
    """Return the facts of nodes, the newest first, by the way that the request goes."""
    there, way = set(nodes), ask.request.connections
    restricted = any(one != ItemFilter() for one in ask.filters)
    found = await ask.sources.journal.joints(nodes, _MOST if restricted else 4 * depth)
    return [
        one
        for one in found
        if way == "both" or (one.subject if way == "source" else one.object) in there
    ]
