"""Vectors in memory, in Chroma and on the way there are equally private, and equally gone when forgotten."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from pps.app import App
from pps.config import EmbedderSettings, Settings, VectorSettings
from pps.index.vector_index import VectorIndex
from tests.index_data import OTHER_GROUP, clustered, rows_of
from tests.integration.vectors.opening import in_chroma, opened, wait_built


@pytest.fixture
def pair(tmp_path: Path) -> Iterator[tuple[VectorIndex, VectorIndex]]:
    """Two entities' indexes; the first's larger collections are built in Chroma."""
    ana = opened(tmp_path / "ana", in_memory=100)
    ben = opened(tmp_path / "ben", group=OTHER_GROUP)
    yield ana, ben
    ana.close()
    ben.close()


def test_building_one_entitys_vectors_moves_no_others(
    pair: tuple[VectorIndex, VectorIndex], tmp_path: Path
) -> None:
    ana, ben = pair
    vectors, _ = clustered(600, 1)
    ana.replace("facts", rows_of(vectors[:300]))
    ben.replace("facts", rows_of(vectors[300:], start=300))
    wait_built(ana)
    assert (ana.is_built("facts"), ben.is_built("facts")) == (True, False)
    for at in (
        0,
        299,
        300,
        599,
    ):  # each is nearest to itself; the other entity's vectors are not there at all
        mine, theirs = (ana, ben) if at < 300 else (ben, ana)
        assert mine.query("facts", vectors[at], 1)[0].owner == f"o{at}"
        assert f"o{at}" not in {hit.owner for hit in theirs.query("facts", vectors[at], 300)}
    assert (in_chroma(tmp_path / "ana"), in_chroma(tmp_path / "ben")) == (300, 0)


@pytest.mark.parametrize("when", ["in memory", "while it is built", "in Chroma"])
def test_a_deleted_vector_is_in_no_file_wherever_it_was(tmp_path: Path, when: str) -> None:
    vectors, _ = clustered(2000, 1)
    index = opened(tmp_path, in_memory=10_000 if when == "in memory" else 0)
    index.replace("facts", rows_of(vectors))
    if when == "in Chroma":
        wait_built(index)
    gone = {0, 1999}
    index.delete("facts", [f"o{at}" for at in gone])
    for at in gone:
        assert index.query("facts", vectors[at], 1)[0].owner != f"o{at}"
    if when != "in memory":
        wait_built(index)
    for at in gone:
        assert index.query("facts", vectors[at], 1)[0].owner != f"o{at}"
    index.close()
    assert in_chroma(tmp_path) == (0 if when == "in memory" else 1998)
    again = opened(tmp_path, in_memory=0)
    assert again.owners("facts") == {f"o{at}" for at in range(2000)} - {f"o{at}" for at in gone}
    wait_built(again)
    assert not {f"o{at}" for at in gone} & {
        hit.owner for hit in again.query("facts", vectors[0], 2000)
    }
    again.close()
    raw = b"".join(file.read_bytes() for file in tmp_path.glob("vectors.db*"))
    assert not any(vectors[at].tobytes() in raw for at in gone)
    assert vectors[1].tobytes() in raw


def test_a_replaced_vector_is_never_found_again_by_its_older_one(
    pair: tuple[VectorIndex, VectorIndex],
) -> None:
    index, _ = pair
    vectors, _ = clustered(140, 1)
    index.replace("facts", rows_of(vectors))
    for _ in range(2):
        index.replace("facts", rows_of(np.roll(vectors, 1, axis=0)[:20]))
        found = index.query("facts", vectors[3], 1)[0]
        assert (found.owner, found.similarity) == ("o4", pytest.approx(1, abs=1e-4))
        assert len(index.query("facts", vectors[3], 140)) == 140
        wait_built(index)


async def test_a_memory_that_outgrows_its_bound_moves_only_its_own_vectors(tmp_path: Path) -> None:
    settings = Settings(
        home=tmp_path, embedder=EmbedderSettings(name="hash"), vectors=VectorSettings(in_memory=200)
    )
    async with App.open(settings) as app:
        for name in ("ana", "ben"):
            await app.create(name)
        async with app.memory("ana") as ana, app.memory("ben") as ben:
            await ben.remember("Ben has a cello.")
            await ana.remember_many([(f"Ana saw heron {at}.", {}) for at in range(300)])
            assert await ana.settled()
            async with asyncio.timeout(60):
                while inside(tmp_path, "ana") < 300:  # noqa: ASYNC110 - a file tells
                    await asyncio.sleep(0.05)
            assert inside(tmp_path, "ben") == 0
            assert "heron 17." in (await ana.recall("heron 17"))["episodes"][0].text
            assert not any(
                "heron" in hit.text for hit in (await ben.recall("heron 17"))["episodes"]
            )


def inside(home: Path, entity: str) -> int:
    """Return how many vectors of turns of an entity are in Chroma."""
    return in_chroma(home / "entities" / entity / "data", "episodes")
