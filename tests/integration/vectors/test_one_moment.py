"""Queries beside a writer: a row that there is, is found whatever is done to it meanwhile."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

from pps.index.flat_index import ScannedRows
from pps.index.vectors import VectorIndex, VectorRow
from pps.models.protocols import Matrix
from tests.index_data import DIMENSION, clustered, rows_of


@pytest.fixture
def often_switching() -> Iterator[None]:
    """Have threads take turns a thousand times as often."""
    interval = sys.getswitchinterval()
    sys.setswitchinterval(5e-6)
    yield
    sys.setswitchinterval(interval)


@pytest.mark.usefixtures("often_switching")
@pytest.mark.parametrize("rows", [300, 9000])
def test_rows_are_found_while_they_are_replaced_and_others_go(rows: int) -> None:
    """With 9,000 codes are compared; the room is used up, and all copied, again and again."""
    vectors, _ = clustered(rows, 1)
    keys = [(f"o{row}", 0) for row in range(rows)]
    scanned, done = ScannedRows(DIMENSION), threading.Event()
    scanned.put(keys, vectors, ())
    some = {f"o{row}" for row in range(20)}

    def ask() -> None:
        while not done.is_set():
            assert [key for key, _ in scanned.nearest(vectors[7], 1)] == [keys[7]]
            assert {key for key, _ in scanned.nearest(vectors[7], 30, some)} == set(keys[:20])
            assert len(scanned.nearest(vectors[7], rows)) >= rows - 1

    with ThreadPoolExecutor(3) as threads:
        asking = [threads.submit(ask) for _ in range(3)]
        try:
            for at in range(1000):
                scanned.put(keys[:20], vectors[:20], ())
                (scanned.drop if at % 2 else lambda gone: scanned.put(gone, vectors[:1], ()))([("another", 0)])
        finally:
            done.set()
        for one in asking:
            one.result()


Answer = tuple[list[tuple[tuple[str, int], float]], Any]


def when_scanned(
    monkeypatch: pytest.MonkeyPatch, before: Callable[[], None], after: Callable[[], None], *, among: bool
) -> None:
    """Have something done once, just before or after the rows in memory are scanned, for some owners or for all."""
    scan, todo = ScannedRows.over_graph, [(before, after)]

    def scanning(self: ScannedRows, *given: Any) -> Answer:
        first, then = todo.pop() if todo and (given[-1] is not None) == among else (nothing, nothing)
        first()
        answer = scan(self, *given)
        then()
        return answer

    monkeypatch.setattr(ScannedRows, "over_graph", scanning)


def nothing() -> None:
    pass


Half = tuple[VectorIndex, Matrix, Matrix]
FAR = {f"o{at}" for at in range(300)}
"""The owners that are not like the query: the index must be told of them, since those nearest are all others."""


@pytest.fixture
def half_merged(index: VectorIndex) -> Half:
    """An index, a query, and vectors like it: 390 rows, of which 256 and ``o3`` are in the graph, the rest in memory.

    ``o7`` is like the query in memory and unlike it in the graph.
    """
    vectors, probes = clustered(390, 1)
    noise = np.random.default_rng(2).standard_normal((390, DIMENSION)).astype(np.float32)
    vectors[300:] = probes[0] + 0.005 * noise[300:]
    like = probes[0] + 0.05 * noise[:10]
    vectors[3], vectors[7] = like[3], -probes[0]
    index.replace("facts", rows_of(vectors))
    index.merge()
    index.replace("facts", [VectorRow("o7", 0, like[7])])
    return index, probes[0], like


def similarity(some: Half, owner: str, *, among: bool) -> float:
    index, probe, _ = some
    hits = index.query("facts", probe, 20, FAR) if among else index.query("facts", probe, 110)
    return {hit.owner: hit.similarity for hit in hits}[owner]


@pytest.mark.parametrize("among", [False, True])
@pytest.mark.parametrize("late", [False, True])
def test_a_row_is_found_while_it_goes_into_the_graph(
    half_merged: Half, monkeypatch: pytest.MonkeyPatch, among: bool, late: bool
) -> None:
    index, wanted = half_merged[0], similarity(half_merged, "o7", among=among)

    def merge() -> None:
        index.merge()
        assert index.in_memory == 0

    when_scanned(monkeypatch, *((nothing, merge) if late else (merge, nothing)), among=among)
    assert similarity(half_merged, "o7", among=among) == pytest.approx(wanted, abs=1e-4)
    assert (wanted > 0.8, index.in_memory) == (True, 0)


@pytest.mark.parametrize("among", [False, True])
@pytest.mark.parametrize("late", [False, True])
def test_a_row_of_the_graph_is_found_while_it_is_replaced(
    half_merged: Half, monkeypatch: pytest.MonkeyPatch, among: bool, late: bool
) -> None:
    index, _, like = half_merged
    wanted = similarity(half_merged, "o3", among=among)

    def replace() -> None:
        index.replace("facts", [VectorRow("o3", 0, like[3] + np.float32(1e-5))])

    held = index.in_memory
    when_scanned(monkeypatch, *((nothing, replace) if late else (replace, nothing)), among=among)
    assert similarity(half_merged, "o3", among=among) == pytest.approx(wanted, abs=1e-3)
    assert index.in_memory == held + 1


@pytest.mark.usefixtures("often_switching")
def test_rows_that_a_failed_write_would_replace_are_found_all_along() -> None:
    vectors, _ = clustered(40, 1)
    keys = [(f"o{row}", 0) for row in range(40)]
    scanned, done = ScannedRows(DIMENSION), threading.Event()
    scanned.put(keys[:30], vectors[:30], keys[:3])

    def ask() -> None:
        while not done.is_set():
            assert {key for key, _ in scanned.nearest(vectors[7], 40)} >= set(keys[:30])

    with ThreadPoolExecutor(2) as threads:
        asking = [threads.submit(ask) for _ in range(2)]
        try:
            for _ in range(3000):
                before = scanned.before(keys[20:])
                scanned.put(keys[20:], vectors[20:], keys[20:])
                scanned.undo(before)
        finally:
            done.set()
        for one in asking:
            one.result()
    assert (len(scanned), scanned.over) == (30, set(keys[:3]))
