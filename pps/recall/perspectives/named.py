"""Named things: nodes that the query calls by name, and the facts about them."""

from __future__ import annotations

from pps.core.values import ChannelName
from pps.recall.merging import in_order
from pps.recall.query import Ask, Scored
from pps.recall.question import beyond_names


async def find(ask: Ask, channel: ChannelName, depth: int) -> list[Scored]:
    """Return the named nodes, longest name first; for facts, theirs when the query is only names.

    A query that asks more than a name ("when did Ana move?") leaves facts to the other perspectives: all of
    a person's facts, newest first, would drown the one that is asked for.
    """
    named = await ask.named() if channel in ("nodes", "facts") else []
    if channel == "nodes":
        return in_order(await ask.permitted("node", named), depth)
    if not named or await _asks_more(ask, named):
        return []
    facts = await ask.sources.client.facts_of_nodes(named, depth)
    wanted = set(named)
    ends = {fact.uuid: len(wanted & {fact.subject, fact.object}) for fact in facts if fact.kind == "fact"}
    return in_order(await ask.permitted("fact", sorted(ends, key=lambda one: -ends[one])), depth)


async def _asks_more(ask: Ask, named: list[str]) -> bool:
    names = await ask.sources.journal.names_of(named)
    return bool(beyond_names(ask.text, [name for each in names.values() for name in each]))
