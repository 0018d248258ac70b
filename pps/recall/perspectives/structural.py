"""Structural: nodes within reach of the anchor (the entity's own node unless one is given), signal 1 / hops."""

from __future__ import annotations

from collections.abc import Set as AbstractSet

from pps.core.values import ChannelName
from pps.recall.perspectives.dense import own_of_nodes
from pps.recall.query import Ask, Scored


async def find(ask: Ask, channel: ChannelName, depth: int) -> list[Scored]:
    """Return the nodes around the anchor, nearest first, of equally near ones those nearest in meaning.

    The anchor is not among them. Source: acceptance row S0-07.
    """
    if channel != "nodes":
        return []
    reached = await ask.reach()
    allowed = set(await ask.permitted("node", list(reached)))
    rings: dict[int, set[str]] = {}
    for one in allowed:
        rings.setdefault(reached[one].hops, set()).add(one)
    found: list[Scored] = []
    for hops, ring in sorted(rings.items()):
        if len(found) >= depth:
            break
        like = [one.id for one in await own_of_nodes(ask, ring)]
        ordered = dict.fromkeys([*like, *(one for one in reached if one in ring)])
        found += [Scored(one, -float(hops), 1 / hops) for one in ordered]
    return found[:depth]


async def score(ask: Ask, channel: ChannelName, ids: AbstractSet[str]) -> list[Scored]:
    """Return those of the nodes that are within reach."""
    if channel != "nodes":
        return []
    reached = await ask.reach()
    return [Scored(one, -float(step.hops), 1 / step.hops) for one, step in reached.items() if one in ids]
