"""Breadth-first walks over facts in both directions, for every store: one statement a hop."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from pps.core.errors import InvalidRequest

MAX_HOPS = 8
"""Most hops that a traversal may ask for."""


@dataclass(frozen=True, slots=True)
class GraphLink:
    """One fact as an edge: its uuid and the uuids of its ends."""

    fact: str
    subject: str
    object: str


Expand: TypeAlias = Callable[[Sequence[str]], Awaitable[Iterable[GraphLink]]]
"""Return every fact of the group that touches one of the nodes."""


def check_hops(max_hops: int) -> int:
    """Return a number of hops unchanged, or raise InvalidRequest unless it is 0 to ``MAX_HOPS``."""
    if not 0 <= max_hops <= MAX_HOPS:
        raise InvalidRequest("max_hops", f"must be 0 to {MAX_HOPS}")
    return max_hops


async def distances(
    expand: Expand, center: str, max_hops: int, limit: int | None = None
) -> dict[str, int]:
    """Return hops from ``center`` (0) by node, nearest first, in uuid order within a hop.

    With a ``limit``, the walk stops once that many nodes beside the centre are known.
    """
    hops = {center: 0}
    frontier = [center]
    for hop in range(1, check_hops(max_hops) + 1):
        links = await expand(frontier)
        ends = {end for link in links for end in (link.subject, link.object)}
        room = None if limit is None else max(0, limit + 1 - len(hops))
        frontier = sorted(ends - hops.keys())[:room]
        if not frontier:
            break
        hops.update(dict.fromkeys(frontier, hop))
    return hops


async def shortest_path(
    expand: Expand, start: str, end: str, max_hops: int
) -> tuple[list[str], list[str]] | None:
    """Return (nodes, facts between them) of a shortest walk from ``start`` to ``end``, or None.

    Of several, the one whose ids come first is taken at each hop, so the answer is always the same.
    """
    check_hops(max_hops)
    came: dict[str, tuple[str, str]] = {start: ("", "")}
    frontier = [start]
    while frontier and end not in came and max_hops > 0:
        max_hops -= 1
        found: dict[str, tuple[str, str]] = {}
        for link in sorted(await expand(frontier), key=lambda link: link.fact):
            for here, there in ((link.subject, link.object), (link.object, link.subject)):
                if here in came and there not in came and there not in found:
                    found[there] = (here, link.fact)
        came.update(found)
        frontier = sorted(found)
    return _walk(came, end) if end in came else None


def _walk(came: dict[str, tuple[str, str]], end: str) -> tuple[list[str], list[str]]:
    nodes = [end]
    facts = list[str]()
    while came[nodes[-1]][0]:
        previous, fact = came[nodes[-1]]
        nodes.append(previous)
        facts.append(fact)
    return nodes[::-1], facts[::-1]
