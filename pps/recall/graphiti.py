"""Graphiti's own recipes as profiles: the client's search, each of its channels as it is."""

from __future__ import annotations

from collections.abc import Sequence

from pps.core.errors import InvalidRequest
from pps.core.recalled import Channel
from pps.core.values import ChannelName, Episode, Fact, Node
from pps.isolation.recipes import GraphFilters
from pps.journal.values import ItemFilter
from pps.recall.candidates import Lists
from pps.recall.hits import make_hits
from pps.recall.query import Ask


async def recipe_channels(ask: Ask, recipe: str) -> dict[ChannelName, Channel]:
    """Return what a recipe finds, channel by channel; the centre is the entity's own node unless one is given.

    Raises:
        InvalidRequest: A filter is set that Graphiti's search has no word for.
        NotFound: The centre is not this entity's.
    """
    found = await ask.sources.client.search(
        ask.text,
        recipe=recipe,
        limit=ask.request.limit,
        center=ask.center(),
        filters=_filters(ask.request.filters),
        as_of=ask.request.as_of,
    )
    lists: dict[ChannelName, Sequence[tuple[Node | Fact | Episode, float]]] = {
        "nodes": found.nodes,
        "facts": found.facts,
        "episodes": found.episodes,
    }
    channels: dict[ChannelName, Channel] = {}
    for name, entries in lists.items():
        if entries or _fills(recipe, name):
            channels[name] = await _channel(ask, name, entries, found.notes)
    return channels


def _fills(recipe: str, channel: ChannelName) -> bool:
    scope = {"EDGE": ("facts",), "NODE": ("nodes",)}
    return channel in scope.get(recipe.split("_")[0], ("nodes", "facts", "episodes"))


async def _channel(
    ask: Ask,
    name: ChannelName,
    entries: Sequence[tuple[Node | Fact | Episode, float]],
    notes: tuple[str, ...],
) -> Channel:
    items = {value.uuid: value for value, _ in entries}
    scores = {value.uuid: score for value, score in entries}
    return Channel(name, await make_hits(ask, dict(items), scores, Lists()), notes=notes)


def _filters(wanted: ItemFilter) -> GraphFilters | None:
    if any((wanted.tags, wanted.sources, wanted.sessions, wanted.roles, wanted.layers, wanted.statuses)):
        raise InvalidRequest("filters", "Graphiti's recipes know kinds, relations, since and until only")
    if wanted == ItemFilter():
        return None
    return GraphFilters(kinds=wanted.kinds, relations=wanted.relations, valid=(wanted.since, wanted.until))
