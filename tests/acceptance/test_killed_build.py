"""A process is killed while vectors go into Chroma or an old home's are moved: each row is there once, and found."""

from __future__ import annotations

import multiprocessing
import os
import random
import shutil
import signal
import sqlite3
import time
from importlib import import_module
from pathlib import Path

import pytest

from pps.index.vector_index import VectorIndex
from pps.models.protocols import Matrix
from tests.index_data import FINGERPRINT, GROUP, clustered, rows_of
from tests.integration.vectors.opening import in_chroma, opened, wait_built
from tests.sampling import sized
from tests.waiting import PATIENCE_S

ROUNDS = sized(4, 10)
ROWS = 700


def building(path: str, number: int) -> None:
    """Add rows of a round, give some older ones another vector, drop one, and build until killed."""
    index = VectorIndex.open(Path(path), group=GROUP, fingerprint=FINGERPRINT, in_memory=0)
    index.replace("facts", rows_of(vectors(number), start=number * ROWS))
    if number:
        index.replace("facts", rows_of(vectors(number)[:40], start=(number - 1) * ROWS))
        index.delete("facts", [f"o{(number - 1) * ROWS + 41}"])
    (Path(path).parent / f"ready{number}").touch()
    time.sleep(600)


def vectors(number: int) -> Matrix:
    """Return the vectors of a round."""
    return clustered(ROWS, 1, seed=number)[0]


def there(number: int) -> set[str]:
    return {f"o{at}" for at in range((number + 1) * ROWS)} - {
        f"o{one * ROWS + 41}" for one in range(number)
    }


@pytest.mark.timeout(300)
def test_a_kill_while_chroma_is_built_loses_nothing(tmp_path: Path) -> None:
    import_module("chromadb")
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["chromadb", "tests.acceptance.test_killed_build"])
    draw = random.Random(5)  # noqa: S311 - moments to kill at
    folder = tmp_path / "data"
    for number in range(ROUNDS):
        child = context.Process(target=building, args=(str(folder), number))
        child.start()
        while not (tmp_path / f"ready{number}").exists():
            assert child.is_alive()
            time.sleep(0.005)
        time.sleep(draw.uniform(0, 0.8))
        child.kill()
        child.join(PATIENCE_S)
        index = opened(folder, in_memory=0)
        try:
            assert index.owners("facts") == there(number)
            for at in range(0, ROWS, 50):
                assert index.query("facts", vectors(number)[at], 1)[0].similarity == pytest.approx(
                    1, abs=1e-3
                )
            if number:
                moved = index.query("facts", vectors(number - 1)[5], 5)
                assert f"o{(number - 1) * ROWS + 5}" not in {
                    hit.owner for hit in moved if hit.similarity > 0.999
                }
                assert index.query("facts", vectors(number - 1)[41], 1)[0].similarity < 0.999
            if draw.random() < 0.5:
                wait_built(index)
        finally:
            index.close()
    index = opened(folder, in_memory=0)
    wait_built(index)
    index.close()
    assert in_chroma(folder) == len(there(ROUNDS - 1))


def left_by_the_version_before(folder: Path, rows: Matrix) -> None:
    """Make the files of the layout until 2026-11: rows and graphs in one folder, with notes of what is in which."""
    made = opened(folder)
    made.replace("facts", rows_of(rows))
    made.close()
    older = folder / "chroma"
    (older / "5e9b").mkdir(parents=True)
    (older / "5e9b" / "header.bin").write_bytes(bytes(36))
    (older / "chroma.sqlite3").write_bytes(b"an old graph")
    (folder / "vectors.db").rename(older / "rows.db")
    with sqlite3.connect(older / "rows.db", isolation_level=None) as db:
        db.execute("CREATE TABLE merged (collection TEXT, owner TEXT, part INTEGER, stale INTEGER)")
        db.execute("INSERT INTO merged VALUES ('facts', 'o1', 0, 0)")
        db.execute("INSERT INTO marks VALUES ('state', 'open'), ('layout', '2'), ('files', '{}')")
    db.close()


@pytest.mark.parametrize("step", ["rename", "unlink", "rmtree"])
def test_a_kill_while_an_old_homes_vectors_are_moved_loses_none(tmp_path: Path, step: str) -> None:
    rows = vectors(0)
    left_by_the_version_before(tmp_path / "data", rows)
    context = multiprocessing.get_context("forkserver")
    child = context.Process(target=killed_at, args=(str(tmp_path / "data"), step))
    child.start()
    child.join(60)
    assert child.exitcode == -signal.SIGKILL
    index = opened(tmp_path / "data")
    assert index.owners("facts") == {f"o{at}" for at in range(ROWS)}
    assert index.query("facts", rows[7], 1)[0].owner == "o7"
    index.close()
    assert sorted(found.name for found in (tmp_path / "data").iterdir()) == ["chroma", "vectors.db"]
    assert not list((tmp_path / "data" / "chroma").iterdir())


def killed_at(path: str, step: str) -> None:
    """Open an old home's vectors and be killed just before one of the steps that move them."""

    def die(*_: object, **__: object) -> None:
        os.kill(os.getpid(), signal.SIGKILL)

    setattr(shutil if step == "rmtree" else Path, step, die)
    VectorIndex.open(Path(path), group=GROUP, fingerprint=FINGERPRINT).close()
