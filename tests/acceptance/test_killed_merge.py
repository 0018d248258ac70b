"""A process is killed while vectors go into the graph of neighbours: each row is there once, and found."""

from __future__ import annotations

import multiprocessing
import random
import sqlite3
import time
from importlib import import_module
from pathlib import Path

import pytest

from pps.index.vectors import VectorIndex
from pps.models.protocols import Matrix
from tests.index_data import FINGERPRINT, GROUP, clustered, rows_of

ROUNDS = 10
ROWS = 700


def merging(path: str, number: int) -> None:
    """Add rows of a round, give some older ones another vector, and merge until killed."""
    index = VectorIndex.open(Path(path), group=GROUP, fingerprint=FINGERPRINT)
    index.replace("facts", rows_of(vectors(number), start=number * ROWS))
    if number:
        index.replace("facts", rows_of(vectors(number)[:40], start=(number - 1) * ROWS))
    (Path(path).parent / f"ready{number}").touch()
    while True:
        index.merge()


def vectors(number: int) -> Matrix:
    """Return the vectors of a round."""
    return clustered(ROWS, 1, seed=number)[0]


@pytest.mark.timeout(300)
def test_a_kill_while_merging_loses_nothing(tmp_path: Path) -> None:
    import_module("chromadb")
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["chromadb", "tests.acceptance.test_killed_merge"])
    draw = random.Random(5)  # noqa: S311 - moments to kill at
    folder = tmp_path / "chroma"
    for number in range(ROUNDS):
        child = context.Process(target=merging, args=(str(folder), number))
        child.start()
        while not (tmp_path / f"ready{number}").exists():
            assert child.is_alive()
            time.sleep(0.005)
        time.sleep(draw.uniform(0, 0.4))
        child.kill()
        child.join(30)
        index = VectorIndex.open(folder, group=GROUP, fingerprint=FINGERPRINT)
        try:
            assert index.owners("facts") == {f"o{at}" for at in range((number + 1) * ROWS)}
            for at in range(0, ROWS, 50):
                assert index.query("facts", vectors(number)[at], 1)[0].similarity == pytest.approx(1, abs=1e-3)
            if number:
                moved = index.query("facts", vectors(number - 1)[5], 5)
                assert f"o{(number - 1) * ROWS + 5}" not in {hit.owner for hit in moved if hit.similarity > 0.999}
            while draw.random() < 0.7 and index.merge():
                pass
        finally:
            index.close()
    index = VectorIndex.open(folder, group=GROUP, fingerprint=FINGERPRINT)
    while index.merge():
        pass
    index.close()
    with sqlite3.connect(folder / "chroma.sqlite3") as db:
        assert db.execute("SELECT count(*) FROM embeddings").fetchone() == (ROUNDS * ROWS,)
