"""Queries beside a writer: a row that there is, is found whatever is done to it meanwhile."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from pps.index.flat_index import FlatIndex
from pps.index.vector_index import VectorRow
from tests.index_data import DIMENSION, clustered, rows_of
from tests.integration.vectors.opening import in_chroma, opened, wait_built


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
    flat, done = FlatIndex(DIMENSION), threading.Event()
    flat.put(keys, vectors)
    some = {f"o{row}" for row in range(20)}

    def ask() -> None:
        while not done.is_set():
            assert [key for key, _ in flat.nearest(vectors[7], 1)] == [keys[7]]
            assert {key for key, _ in flat.nearest(vectors[7], 30, some)} == set(keys[:20])
            assert len(flat.nearest(vectors[7], rows)) >= rows - 1

    with ThreadPoolExecutor(3) as threads:
        asking = [threads.submit(ask) for _ in range(3)]
        try:
            for at in range(1000):
                flat.put(keys[:20], vectors[:20])
                (flat.drop if at % 2 else lambda gone: flat.put(gone, vectors[:1]))(
                    [("another", 0)]
                )
        finally:
            done.set()
        for one in asking:
            one.result()


@pytest.mark.parametrize("among", [False, True])
def test_what_changes_while_chroma_is_built_is_found_before_during_and_after(
    tmp_path: Path, among: bool
) -> None:
    """Every row that there is, is found at every moment; one that went is not, and none is found by an older vector."""
    vectors, _ = clustered(3000, 1)
    index = opened(tmp_path, in_memory=2000)
    index.replace("facts", rows_of(vectors[:2000]))
    index.replace("facts", rows_of(vectors[2000:2100], start=2000))
    changed = 0
    while not index.is_built("facts") or changed < 40:
        if changed == 800:  # a busy machine builds longer than there are rows to change
            wait_built(index)
        new, moved, gone = 2100 + changed, changed, 1000 + changed
        index.replace("facts", rows_of(vectors[new : new + 1], start=new))
        index.replace("facts", [VectorRow(f"o{moved}", 0, -vectors[moved])])
        index.delete("facts", [f"o{gone}"])
        some = {f"o{at}" for at in (new, moved, gone, *range(400, 600))} if among else None
        assert index.query("facts", vectors[new], 1, some)[0].owner == f"o{new}"
        assert index.query("facts", -vectors[moved], 1, some)[0].similarity == pytest.approx(
            1, abs=1e-4
        )
        for old in (moved, gone):
            best = index.query("facts", vectors[old], 1, some)[0]
            assert best.owner != f"o{gone}"
            if (
                best.owner == f"o{moved}"
            ):  # by its present vector: row 433's is near the old row 1433
                present = float(-vectors[moved] @ vectors[old])
                assert best.similarity == pytest.approx(present, abs=1e-4)
        changed += 1
    assert index.count("facts") == 2100
    index.close()
    assert in_chroma(tmp_path) == 2100
