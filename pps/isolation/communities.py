"""Communities by label propagation, with a bound on the rounds.

Graphiti's own changes all labels at once and may oscillate for ever.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence

_ROUNDS = 100


def clusters(
    nodes: Sequence[str], neighbours: Iterable[tuple[str, str, int]], rounds: int = _ROUNDS
) -> list[list[str]]:
    """Return groups of nodes with more facts inside than to others; each node is in one group.

    Each round gives every node, in turn, the label that most of its facts lead to (Raghavan, Albert
    and Kumara 2007, the asynchronous form). As in Graphiti, a label that one fact alone leads to
    counts only where it is the greater.

    Args:
        nodes: All nodes; their order decides ties.
        neighbours: (node, neighbour, how many facts join them), both ways.
        rounds: Most rounds; label propagation need not come to rest.
    """
    joined: dict[str, list[tuple[str, int]]] = {node: [] for node in nodes}
    for node, neighbour, facts in neighbours:
        if node in joined and neighbour in joined:
            joined[node].append((neighbour, facts))
    label = {node: place for place, node in enumerate(nodes)}
    for _ in range(rounds):
        has_changed = False
        for node in nodes:
            new = _label(label, node, joined[node])
            has_changed = has_changed or new != label[node]
            label[node] = new
        if not has_changed:
            break
    by_label: dict[int, list[str]] = defaultdict(list)
    for node in nodes:
        by_label[label[node]].append(node)
    return list(by_label.values())


def _label(label: dict[str, int], node: str, neighbours: Sequence[tuple[str, int]]) -> int:
    votes: dict[int, int] = defaultdict(int)
    for neighbour, facts in neighbours:
        votes[label[neighbour]] += facts
    if not votes:
        return label[node]
    count, candidate = max((facts, place) for place, facts in votes.items())
    return candidate if count > 1 else max(candidate, label[node])
