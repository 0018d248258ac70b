"""What joins the nodes that were found: for a caller who asks for it, after all is ranked."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

from pps.core.recalled import Hit, Relationship
from pps.core.values import Fact, Node
from pps.recall.fetch import holds
from pps.recall.hits import names_of
from pps.recall.query import Ask

MOST = 20
"""Most relationships of one node."""
_READ = (2 * MOST, 1_000)
"""Facts read of each node, newest first, and how many where most of those have ended."""


async def with_relationships(ask: Ask, hits: Sequence[Hit]) -> tuple[Hit, ...]:
    """Return the hits, each node with the newest ``MOST`` that hold, among its newest 1,000 facts and relations."""
    nodes = [hit.id for hit in hits if isinstance(hit.item, Node)]
    joined = dict(zip(nodes, await asyncio.gather(*(_joining(ask, node) for node in nodes)), strict=True))
    ends = [end for facts in joined.values() for fact in facts for end in (fact.subject, fact.object)]
    names = await names_of(ask, ends)

    def relationship(fact: Fact) -> Relationship:
        return Relationship(fact, (names.get(fact.subject, ""), names.get(fact.object, "")))

    return tuple(replace(hit, relationships=tuple(map(relationship, joined.get(hit.id, ())))) for hit in hits)


async def _joining(ask: Ask, node: str) -> list[Fact]:
    moment = ask.request.as_of or ask.request.filters.as_of or ask.moment
    held: list[Fact] = []
    for most in _READ:
        facts = await ask.sources.client.facts_of_nodes([node], most)
        held = [fact for fact in facts if _began(fact, moment) and holds(fact, moment)]
        if len(held) >= MOST or len(facts) < most:
            break
    return held[:MOST]


def _began(fact: Fact, at: datetime) -> bool:
    return fact.valid_at is None or fact.valid_at <= at
