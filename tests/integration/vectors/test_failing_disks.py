"""Disks that fail in the middle of a change of rows and graph: nothing that is there is lost, nothing gone is found."""

from __future__ import annotations

import shutil
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest

from pps.core.errors import StoreError
from pps.index.neighbours import Neighbours
from pps.index.rows import RowStore
from pps.index.vectors import VectorIndex, VectorRow
from pps.models.protocols import Matrix
from tests.index_data import clustered, rows_of
from tests.integration.vectors.opening import opened


@contextmanager
def failing(monkeypatch: pytest.MonkeyPatch, part: type, name: str) -> Generator[None]:
    def refuse(*_: object, **__: object) -> None:
        raise StoreError("the disk is full")

    with monkeypatch.context() as patch:
        patch.setattr(part, name, refuse)
        with pytest.raises(StoreError, match="full"):
            yield


def all_merged(path: Path, vectors: Matrix) -> VectorIndex:
    index = opened(path)
    index.replace("facts", rows_of(vectors))
    while index.merge():
        pass
    return index


@pytest.mark.parametrize("reopened", [False, True])
def test_a_row_that_went_into_the_graph_unnoted_is_not_found_once_it_was_deleted_or_replaced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, reopened: bool
) -> None:
    vectors, _ = clustered(100, 1)
    index = opened(tmp_path)
    index.replace("facts", rows_of(vectors))
    with failing(monkeypatch, RowStore, "merge"):
        index.merge()
    if reopened:
        index.close()
        index = opened(tmp_path)
    index.delete("facts", ["o3"])
    index.replace("facts", [VectorRow("o4", 0, -vectors[4])])
    for _ in range(2):
        assert "o3" not in {hit.owner for hit in index.query("facts", vectors[3], 99)}
        found = {hit.owner: hit.similarity for hit in index.query("facts", vectors[4], 99)}
        assert (len(found), found["o4"]) == (99, pytest.approx(-1, abs=1e-4))
        index.merge()
    index.close()


def test_rows_that_the_graph_refuses_stay_found_and_can_be_deleted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    vectors, _ = clustered(100, 1)
    index = opened(tmp_path)
    index.replace("facts", rows_of(vectors))
    with failing(monkeypatch, Neighbours, "upsert"):
        index.merge()
    index.delete("facts", ["o3"])
    assert {hit.owner for hit in index.query("facts", vectors[4], 100)} == {f"o{at}" for at in range(100)} - {"o3"}
    index.close()


def test_rows_of_a_clearing_that_failed_are_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    vectors, _ = clustered(100, 1)
    index = all_merged(tmp_path, vectors)
    with failing(monkeypatch, RowStore, "clear"):
        index.clear()
    index.replace("facts", rows_of(vectors))
    assert len(index.query("facts", vectors[3], 100)) == 100
    index.clear()
    assert (index.count("facts"), index.query("facts", vectors[3], 100)) == (0, [])
    index.close()


def test_a_row_whose_deletion_failed_is_found_after_the_next_opening(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    vectors, _ = clustered(300, 1)
    index = all_merged(tmp_path, vectors)
    with failing(monkeypatch, RowStore, "put"):
        index.delete("facts", ["o3"])
    index.close()
    index = opened(tmp_path)
    assert index.query("facts", vectors[3], 1)[0].owner == "o3"
    index.close()


def test_an_opening_that_failed_leaves_nothing_open(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    vectors, _ = clustered(300, 1)
    all_merged(tmp_path / "chroma", vectors[:200]).close()
    with failing(monkeypatch, RowStore, "fresh"):
        opened(tmp_path / "chroma")
    shutil.rmtree(tmp_path / "chroma")  # as a rebuild does
    index = all_merged(tmp_path / "chroma", vectors)
    assert index.query("facts", vectors[3], 1)[0].owner == "o3"
    index.close()
