"""Vector indexes of the test entity: opened, built in Chroma, left closed, counted in their files."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import numpy as np

from pps.index.vector_index import IN_MEMORY, VectorIndex
from pps.models.protocols import Fingerprint
from tests.index_data import FINGERPRINT, GROUP, rows_of
from tests.waiting import wait_until


def opened(
    path: Path,
    *,
    group: str = GROUP,
    fingerprint: Fingerprint = FINGERPRINT,
    in_memory: int = IN_MEMORY,
) -> VectorIndex:
    return VectorIndex.open(path, group=group, fingerprint=fingerprint, in_memory=in_memory)


def wait_built(index: VectorIndex, collection: str = "facts") -> None:
    """Wait until a collection that is too large for memory is searched in Chroma."""
    wait_until(lambda: index.is_built(collection), pause_s=0.01)


def closed_with(path: Path, vectors: np.ndarray) -> None:
    """Leave an index of these rows, all in Chroma, closed well."""
    made = opened(path, in_memory=0)
    made.replace("facts", rows_of(vectors))
    wait_built(made)
    made.close()


def in_chroma(folder: Path, collection: str = "facts") -> int:
    """Return how many rows of a collection are in Chroma's file; 0 when there is none."""
    file = folder / "chroma" / collection / "chroma.sqlite3"
    if not file.exists():
        return 0
    with closing(sqlite3.connect(file)) as db:
        return int(db.execute("SELECT count(*) FROM embeddings").fetchone()[0])
