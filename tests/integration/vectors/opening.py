"""Vector indexes of the test entity: opened, left closed with rows in the graph, counted in their files."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import numpy as np

from pps.index.vectors import IN_MEMORY, VectorIndex
from pps.models.protocols import Fingerprint
from tests.index_data import FINGERPRINT, GROUP, rows_of


def opened(
    path: Path, *, group: str = GROUP, fingerprint: Fingerprint = FINGERPRINT, in_memory: int = IN_MEMORY
) -> VectorIndex:
    return VectorIndex.open(path, group=group, fingerprint=fingerprint, in_memory=in_memory)


def closed_with(path: Path, vectors: np.ndarray) -> None:
    """Leave an index of these rows, all in the graph, closed well."""
    made = opened(path)
    made.replace("facts", rows_of(vectors))
    while made.merge():
        pass
    made.close()


def merged(folder: Path) -> int:
    """Return how many rows are in Chroma's graphs; the rows' own file must say the same."""
    with sqlite3.connect(folder / "rows.db") as db:
        (said,) = db.execute("SELECT count(*) FROM merged").fetchone()
    with sqlite3.connect(folder / "chroma.sqlite3") as db:
        (inside,) = db.execute("SELECT count(*) FROM embeddings").fetchone()
    assert said == inside
    return int(inside)
