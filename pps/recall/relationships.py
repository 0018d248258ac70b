"""What joins the nodes that were found: for a caller who asks for it, after all is ranked."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

from pps.core.recalled import Hit, Relationship
from pps.core.values import Fact, Node
from pps.recall.ask import Ask
from pps.recall.fetch import holds
from pps.recall.hits import names_of

MOST = 20
"""Most relationships of one node."""
_READ = 2 * MOST
"""Facts read of each node, newest first: some of them may have ended."""


async def with_relationships(ask: Ask, hits: Sequence[Hit]) -> tuple[Hit, ...]:
    """Return the hits, each node with the newest ``MOST`` facts and relations that hold and join it."""
    nodes = [hit.id for hit in hits if isinstance(hit.item, Node)]
    read = await asyncio.gather(*(ask.sources.client.facts_of_nodes([node], _READ) for node in nodes))
    moment = ask.request.as_of or ask.request.filters.as_of or ask.moment
    joined = {
        node: [fact for fact in facts if _began(fact, moment) and holds(fact, moment)][:MOST]
        for node, facts in zip(nodes, read, strict=True)
    }
    ends = [end for facts in joined.values() for fact in facts for end in (fact.subject, fact.object)]
    names = await names_of(ask, ends)

    def relationship(fact: Fact) -> Relationship:
        return Relationship(fact, (names.get(fact.subject, ""), names.get(fact.object, "")))

    return tuple(replace(hit, relationships=tuple(map(relationship, joined.get(hit.id, ())))) for hit in hits)


def _began(fact: Fact, at: datetime) -> bool:
    return fact.valid_at is None or fact.valid_at <= at
