"""Vectors in memory are as private, and as surely gone, as those in a graph of neighbours."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from pps.app import App
from pps.config import EmbedderSettings, Settings, VectorSettings
from pps.index.vectors import VectorIndex
from tests.index_data import FINGERPRINT, GROUP, OTHER_GROUP, clustered, rows_of


@pytest.fixture
def pair(tmp_path: Path) -> Iterator[tuple[VectorIndex, VectorIndex]]:
    ana = VectorIndex.open(tmp_path / "ana", group=GROUP, fingerprint=FINGERPRINT)
    ben = VectorIndex.open(tmp_path / "ben", group=OTHER_GROUP, fingerprint=FINGERPRINT)
    yield ana, ben
    ana.close()
    ben.close()


def test_merging_one_entitys_vectors_moves_no_others(pair: tuple[VectorIndex, VectorIndex], tmp_path: Path) -> None:
    ana, ben = pair
    vectors, _ = clustered(600, 1)
    ana.replace("facts", rows_of(vectors[:300]))
    ben.replace("facts", rows_of(vectors[300:], start=300))
    while ana.merge():
        pass
    assert (ana.in_memory, ben.in_memory) == (0, 300)
    for at in (0, 299, 300, 599):  # each is nearest to itself; the other entity's vectors are not there at all
        mine, theirs = (ana, ben) if at < 300 else (ben, ana)
        assert mine.query("facts", vectors[at], 1)[0].owner == f"o{at}"
        assert f"o{at}" not in {hit.owner for hit in theirs.query("facts", vectors[at], 300)}
    with sqlite3.connect(tmp_path / "ben" / "chroma.sqlite3") as db:
        assert db.execute("SELECT count(*) FROM embeddings").fetchone() == (0,)


@pytest.mark.parametrize("merged", [0, 1, 2])
def test_a_deleted_vector_is_in_no_file_wherever_it_was(tmp_path: Path, merged: int) -> None:
    vectors, _ = clustered(400, 1)
    index = VectorIndex.open(tmp_path, group=GROUP, fingerprint=FINGERPRINT)
    index.replace("facts", rows_of(vectors))
    for _ in range(merged):
        index.merge()
    gone = {0, 399}  # with one slice merged, the first is in the graph and the last in memory
    index.delete("facts", [f"o{at}" for at in gone])
    for at in gone:
        assert index.query("facts", vectors[at], 1)[0].owner != f"o{at}"
    index.close()
    again = VectorIndex.open(tmp_path, group=GROUP, fingerprint=FINGERPRINT)
    assert again.owners("facts") == {f"o{at}" for at in range(400)} - {f"o{at}" for at in gone}
    while again.merge():
        pass
    assert {hit.owner for hit in again.query("facts", vectors[0], 400)} == again.owners("facts")
    again.close()
    raw = b"".join(file.read_bytes() for file in tmp_path.glob("rows.db*"))
    assert not any(vectors[at].tobytes() in raw for at in gone)
    assert vectors[1].tobytes() in raw


def test_a_replaced_vector_is_never_found_again_by_its_older_one(pair: tuple[VectorIndex, VectorIndex]) -> None:
    index, _ = pair
    vectors, _ = clustered(40, 1)
    index.replace("facts", rows_of(vectors))
    index.merge()
    for _ in range(2):
        index.replace("facts", rows_of(np.roll(vectors, 1, axis=0)[:20]))
        found = index.query("facts", vectors[3], 1)[0]
        assert (found.owner, found.similarity) == ("o4", pytest.approx(1, abs=1e-4))
        assert len(index.query("facts", vectors[3], 40)) == 40
        index.merge()


async def test_a_memory_that_outgrows_its_bound_moves_only_its_own_vectors(tmp_path: Path) -> None:
    settings = Settings(home=tmp_path, embedder=EmbedderSettings(name="hash"), vectors=VectorSettings(in_memory=200))
    async with App.open(settings) as app:
        for name in ("ana", "ben"):
            await app.create(name)
        async with app.memory("ana") as ana, app.memory("ben") as ben:
            await ben.remember("Ben has a cello.")
            await ana.remember_many([(f"Ana saw heron {at}.", {}) for at in range(300)])
            assert await ana.settled()
            assert inside(tmp_path, "ana") >= 300 + 300 - 200  # each turn has a vector of its own and one of its window
            assert inside(tmp_path, "ben") == 0
            assert "heron 17." in (await ana.recall("heron 17"))["episodes"][0].text
            assert not any("heron" in hit.text for hit in (await ben.recall("heron 17"))["episodes"])


def inside(home: Path, entity: str) -> int:
    """Return how many vectors of an entity are in Chroma's graphs."""
    with sqlite3.connect(home / "entities" / entity / "data" / "chroma" / "chroma.sqlite3") as db:
        (count,) = db.execute("SELECT count(*) FROM embeddings").fetchone()
    return int(count)
