"""Where a question goes when the caller leaves that open (S2-06)."""

from __future__ import annotations

from pps.core.values import Node
from pps.recall.fetch import fetch
from pps.recall.query import Ask
from pps.recall.question import Kind, kind_of

ROUTES: dict[Kind, str] = {"factual": "facts", "navigational": "nodes", "contextual": "contextual"}
"""Kind of query → the profile that answers it: facts; nodes; facts by how many episodes mention them."""


async def routed(ask: Ask) -> str:
    """Return the name of the profile that answers this kind of query."""
    nodes = (await fetch(ask, "nodes", await ask.named())).values()
    names = [name for node in nodes if isinstance(node, Node) for name in (node.name, *node.aliases)]
    return ROUTES[kind_of(ask.request.query, names)]
