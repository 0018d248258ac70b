"""``search_nodes``: the nodes of a project by five blended signals, with what each of them said."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from pps.core.errors import StoreError
from pps.core.values import Node
from pps.operations.project.desk import Projects
from pps.operations.project.inputs import SearchNodesInput, Weights
from pps.operations.project.outputs import NodeHits, node_hit
from pps.recall.tuned import SIGNALS

PROFILE = "blended"
MOST = 100
"""Most results of one recall."""

_NAMES = {SIGNALS[name]: name for name in reversed([*SIGNALS])}


async def search_nodes(projects: Projects, given: SearchNodesInput) -> NodeHits:
    """Search the nodes channel alone, the entity's own node left out.

    A search that failed is an error, not an empty list.
    """
    async with projects.memory(given.project) as memory:
        own = memory.graph.own
        found = await memory.recall(
            given.query,
            profile=PROFILE,
            channels=("nodes",),
            limit=min(given.limit + 1, MOST),
            center=given.anchor_node_id,
            filters=given.filters.filters(),
            weights=_weights(given.weights),
        )
        texts = await memory.records.texts([hit.id for hit in found.channels["nodes"].hits])
    channel = found.channels["nodes"]
    if channel.error:
        raise StoreError(f"the nodes could not be searched: {channel.error}")
    hits = [(hit, hit.item) for hit in channel.hits if hit.id != own]
    named = [(replace(hit, signals=_named(hit.signals)), item) for hit, item in hits if isinstance(item, Node)]
    return NodeHits(
        tuple(node_hit(hit, item, texts.get(item.uuid)) for hit, item in named[: given.limit]), channel.notes
    )


def _weights(weights: Weights) -> dict[str, float]:
    return {name: value for name, value in weights.model_dump().items() if value is not None}


def _named(signals: Mapping[str, float]) -> dict[str, float]:
    return {_NAMES.get(name, name): value for name, value in signals.items()}
