"""Nodes, facts, episodes and vectors that tests of the graph stores save."""

from __future__ import annotations

import uuid
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import numpy as np

from pps.core.values import Episode, Fact, Node
from pps.graph.graph_store import GraphStore

T0 = datetime(2025, 3, 1, 9, 30, 0, 123456, UTC)
DAY = timedelta(days=1)
TEXT = (
    "\x01\x7fZoë 咖啡 ☕️ مرحبا\nnew line\t'quote' \"double\" \\back $group_id {uuid} `tick` 👩‍👩‍👧"
)


def new_id() -> str:
    return str(uuid.uuid4())


def a_node(name: str = "Ana", **fields: object) -> Node:
    return replace(Node(new_id(), name, T0), **fields)  # type: ignore[arg-type]


def a_fact(
    subject: Node | str, other: Node | str, text: str = "Ana knows Ben", **fields: object
) -> Fact:
    ends = [end if isinstance(end, str) else end.uuid for end in (subject, other)]
    return replace(Fact(new_id(), ends[0], ends[1], "KNOWS", text, T0), **fields)  # type: ignore[arg-type]


def an_episode(content: str = "I met Ben.", **fields: object) -> Episode:
    return replace(Episode(new_id(), "turn", content, T0, T0), **fields)  # type: ignore[arg-type]


def vector(seed: int, dimension: int = 8) -> np.ndarray:
    values = np.random.default_rng(seed).standard_normal(dimension).astype(np.float32)
    return values / np.linalg.norm(values)


async def two_nodes(store: GraphStore) -> tuple[Node, Node]:
    ana, ben = a_node("Ana"), a_node("Ben")
    await store.save_nodes([ana, ben], {})
    return ana, ben
