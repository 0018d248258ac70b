"""Queries of the vector index beside building, writing, deleting and clearing."""

from __future__ import annotations

import threading
from collections.abc import Generator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest

from pps.index.vector_index import VectorIndex
from pps.models.protocols import Matrix
from tests.index_data import clustered, rows_of
from tests.integration.vectors.opening import opened, wait_built


@contextmanager
def asked_by_three(index: VectorIndex, vectors: Matrix, allowed: int) -> Generator[None]:
    """Have three threads ask meanwhile; each answer must be right and full, with and without a filter."""
    done = threading.Event()

    def ask() -> None:
        while not done.is_set():
            assert index.query("facts", vectors[7], 1)[0].owner == "o7"
            assert (
                len(index.query("facts", vectors[9], 20, {f"o{at}" for at in range(allowed)})) == 20
            )

    with ThreadPoolExecutor(3) as threads:
        asking = [threads.submit(ask) for _ in range(3)]
        try:
            yield
        finally:
            done.set()
        for one in asking:
            one.result()


@pytest.mark.parametrize("reopened", [False, True])
def test_queries_run_beside_the_first_rows_in_chroma(tmp_path: Path, reopened: bool) -> None:
    vectors, _ = clustered(300, 1)
    for number in range(6):
        index = opened(tmp_path / f"{number}", in_memory=10_000 if reopened else 0)
        index.replace("facts", rows_of(vectors))
        if reopened:
            index.close()
            index = opened(tmp_path / f"{number}", in_memory=0)
        with asked_by_three(index, vectors, 250):
            wait_built(index)
        index.close()


def test_queries_and_writes_run_beside_each_other(index: VectorIndex) -> None:
    vectors, _ = clustered(3000, 1)
    index.replace("facts", rows_of(vectors[:500]))
    with asked_by_three(index, vectors, 400):
        for at in range(500, 3000, 250):
            index.replace("facts", rows_of(vectors[at : at + 250], start=at))
            index.delete("facts", [f"o{at + 1}"])
    assert index.count("facts") == 2990


def test_rows_go_while_queries_meet_them(tmp_path: Path) -> None:
    near, _ = clustered(2000, 1)
    index = opened(tmp_path, in_memory=0)
    index.replace("facts", rows_of(near))
    index.replace("facts", rows_of(-near[:1000], start=2000))
    wait_built(index)
    far = {f"o{at}" for at in range(2000, 3000)}
    done = threading.Event()

    def ask(allowed: set[str] | None) -> int:
        asked = 0
        while not done.is_set():
            assert len(index.query("facts", -near[7], 20, allowed)) == 20
            assert len(index.query("facts", near[7], 20, allowed)) == 20
            asked += 1
        return asked

    with ThreadPoolExecutor(3) as threads:
        asking = [threads.submit(ask, allowed) for allowed in (far, far, None)]
        try:
            for at in range(2000, 2950, 2):
                index.delete("facts", [f"o{at}", f"o{at + 1}"])
        finally:
            done.set()
        assert all(one.result() for one in asking)
    index.close()


def test_a_query_beside_clearing_finds_everything_or_nothing(index: VectorIndex) -> None:
    vectors, _ = clustered(300, 1)
    done = threading.Event()

    def ask() -> set[int]:
        found: set[int] = set()
        while not done.is_set():
            found.add(len(index.query("facts", vectors[7], 20)))
        return found

    with ThreadPoolExecutor(3) as threads:
        asking = [threads.submit(ask) for _ in range(3)]
        try:
            for _ in range(20):
                index.replace("facts", rows_of(vectors))
                index.clear()
        finally:
            done.set()
        assert set().union(*(one.result() for one in asking)) <= {0, 20}
    index.replace("facts", rows_of(vectors))
    assert len(index.query("facts", vectors[7], 20)) == 20
