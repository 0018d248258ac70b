"""How often the graph of neighbours finds what an exact search would: its error, apart from any model's."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from pps.index.vectors import VectorIndex
from pps.models.protocols import Embedder

TEN = 10
COLLECTIONS = ("facts", "nodes", "windows")
_TIE = 1e-6


def agreement(folder: Path, group: str, embedder: Embedder, questions: Sequence[str]) -> dict[str, float]:
    """Return collection → mean share of a question's ten nearest that the index finds. Blocks.

    A row as near as the tenth counts as one of the ten.

    Args:
        folder: Of the vector index; no memory may hold it open.
        group: Whose index it is.
        embedder: Whose vectors it holds.
        questions: Each is embedded as a query.
    """
    probes = [embedder.embed_query(question) for question in questions]
    index = VectorIndex.open(folder, group=group, fingerprint=embedder.fingerprint)
    try:
        found: dict[str, float] = {}
        for collection in COLLECTIONS:
            owners = sorted(index.owners(collection))
            held = index.vectors(collection, owners)
            matrix = np.stack([held[owner] for owner in owners])
            matrix /= np.linalg.norm(matrix, axis=1, keepdims=True)
            place = {owner: number for number, owner in enumerate(owners)}
            shares: list[float] = []
            for probe in probes:
                cosines = matrix @ (probe / np.linalg.norm(probe))
                size = min(TEN, len(owners))
                least = np.partition(cosines, -size)[-size] - _TIE
                hits = index.query(collection, probe, size)
                shares.append(sum(bool(cosines[place[hit.owner]] >= least) for hit in hits) / size)
            found[collection] = round(float(np.mean(shares)), 4)
        return found
    finally:
        index.close()
