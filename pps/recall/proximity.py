"""How far candidates lie from nodes of the graph."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pps.journal.links import FactOutline, NodeOutline
from pps.recall.query import Ask, Candidate, Scored

MAX_HOPS = 4
"""Farthest hops that still count."""


async def by_hops(ask: Ask, items: Mapping[str, Candidate], starts: Sequence[str], most: int) -> list[Scored]:
    """Return the candidates within ``most`` hops of any start, nearest first; the signal is ``1 / (1 + hops)``.

    A fact is as far as its nearer end; a turn as its nearest mentioned node.
    """
    reach = await _nodes_of(ask, items)
    targets = list(dict.fromkeys(node for nodes in reach.values() for node in nodes))
    hops = await ask.sources.journal.hops(starts, targets, most, ask.moment)
    far = {one: min((hops[node] for node in nodes if node in hops), default=-1) for one, nodes in reach.items()}
    near = sorted((one for one, distance in far.items() if distance >= 0), key=far.__getitem__)
    return [Scored(one, -float(far[one]), 1 / (1 + far[one])) for one in near]


async def _nodes_of(ask: Ask, items: Mapping[str, Candidate]) -> dict[str, Sequence[str]]:
    reach: dict[str, Sequence[str]] = {}
    others: list[str] = []
    for one, item in items.items():
        if isinstance(item, NodeOutline):
            reach[one] = (item.uuid,)
        elif isinstance(item, FactOutline):
            reach[one] = (item.subject, item.object)
        else:
            others.append(one)
    if others:
        reach.update(await ask.sources.client.mentioned_nodes(others))
    return reach
