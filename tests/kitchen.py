"""A small graph with vectors in all of its kinds, for tests that need one that is already there."""

from __future__ import annotations

import uuid
from datetime import UTC, datetime

from pps.core.values import Episode, Fact, Node
from pps.graph.graph_store import GraphStore
from pps.models.hash import HashEmbedder
from pps.models.protocols import Vector

T0 = datetime(2026, 2, 3, 4, 5, 6, 789_000, UTC)
EMBEDDER = HashEmbedder(64)


def new_id() -> str:
    return str(uuid.uuid4())


def vectors_of(items: list[Node] | list[Fact]) -> dict[str, Vector]:
    texts = [item.name if isinstance(item, Node) else item.text for item in items]
    return dict(zip([item.uuid for item in items], EMBEDDER.embed_passages(texts), strict=True))


async def saved_kitchen(store: GraphStore) -> tuple[list[Node], list[Fact], Episode]:
    names = ("Mira", "espresso machine", "green tea", "kitchen")
    nodes = [
        Node(new_id(), name, T0, kind="Person" if name == "Mira" else "Thing", tags=("home",))
        for name in names
    ]
    mira, machine, tea, kitchen = nodes
    facts = [
        Fact(
            new_id(),
            mira.uuid,
            tea.uuid,
            "DRINKS",
            "Mira drinks green tea at dawn",
            T0,
            valid_at=T0,
        ),
        Fact(
            new_id(),
            machine.uuid,
            kitchen.uuid,
            "STANDS_IN",
            "The espresso machine stands in the kitchen",
            T0,
        ),
        Fact(
            new_id(),
            mira.uuid,
            machine.uuid,
            "REPAIRED",
            "Mira repaired the espresso machine",
            T0,
            valid_at=T0,
        ),
    ]
    episode = Episode(new_id(), "turn", "Mira drank green tea beside the espresso machine.", T0, T0)
    await store.save_nodes(nodes, vectors_of(nodes))
    await store.save_facts(facts, vectors_of(facts))
    await store.save_episodes([episode])
    await store.save_mentions([(episode.uuid, mira.uuid), (episode.uuid, tea.uuid)])
    return nodes, facts, episode
