"""Disks and a Chroma that fail in the middle of a change: nothing that is there is lost, nothing gone is found."""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Generator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from pps.core.errors import StoreError
from pps.index.chroma import ChromaCollection
from pps.index.vector_index import VectorIndex, VectorRow
from pps.index.vector_rows import RowStore
from pps.models.protocols import Matrix
from tests.index_data import clustered, rows_of
from tests.integration.vectors.opening import opened, wait_built


@contextmanager
def failing(monkeypatch: pytest.MonkeyPatch, part: type, name: str) -> Generator[None]:
    def refuse(*_: object, **__: object) -> None:
        raise StoreError("the disk is full")

    with monkeypatch.context() as patch:
        patch.setattr(part, name, refuse)
        yield


def built(path: Path, vectors: Matrix) -> VectorIndex:
    index = opened(path, in_memory=0)
    index.replace("facts", rows_of(vectors))
    wait_built(index)
    return index


def test_what_chroma_refuses_is_found_by_the_scan_and_built_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    vectors, _ = clustered(100, 1)
    with failing(monkeypatch, ChromaCollection, "put"):
        index = opened(tmp_path, in_memory=0)
        index.replace("facts", rows_of(vectors))
        while "stays in memory" not in caplog.text:
            pass
        index.delete("facts", ["o3"])
        index.replace("facts", [VectorRow("o4", 0, -vectors[4])])
        assert len(index.query("facts", vectors[4], 100)) == 99
        index.close()
    index = opened(tmp_path, in_memory=0)
    wait_built(index)
    found = {hit.owner: hit.similarity for hit in index.query("facts", vectors[4], 100)}
    assert (len(found), found["o4"], "o3" in found) == (99, pytest.approx(-1, abs=1e-4), False)
    index.close()


@pytest.mark.parametrize("reopened", [False, True])
def test_a_change_that_a_built_chroma_refuses_is_made_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, reopened: bool
) -> None:
    vectors, _ = clustered(300, 1)
    index = built(tmp_path, vectors[:200])
    with failing(monkeypatch, ChromaCollection, "put"):
        index.delete("facts", ["o3"])
        index.replace("facts", rows_of(vectors[200:], start=200))
        assert "o3" not in {hit.owner for hit in index.query("facts", vectors[3], 300)}
        assert index.query("facts", vectors[250], 1)[0].owner == "o250"
    if reopened:
        index.close()
        index = opened(tmp_path, in_memory=0)
        wait_built(index)
    assert {hit.owner for hit in index.query("facts", vectors[3], 300)} == {
        f"o{at}" for at in range(300)
    } - {"o3"}
    index.close()


def test_a_chroma_that_cannot_be_asked_is_left_for_the_scan_and_built_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    vectors, _ = clustered(300, 1)
    index = built(tmp_path, vectors)
    with failing(monkeypatch, ChromaCollection, "hits"):
        assert index.query("facts", vectors[3], 1)[0].owner == "o3"
    wait_built(index)
    assert index.query("facts", vectors[3], 1)[0].owner == "o3"
    index.close()


def test_rows_of_a_clearing_that_failed_are_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    vectors, _ = clustered(100, 1)
    index = built(tmp_path, vectors)
    with failing(monkeypatch, RowStore, "clear"), pytest.raises(StoreError, match="full"):
        index.clear()
    assert len(index.query("facts", vectors[3], 100)) == 100
    index.clear()
    assert (index.count("facts"), index.query("facts", vectors[3], 100)) == (0, [])
    index.close()


def test_a_row_whose_deletion_failed_is_found(
    index: VectorIndex, monkeypatch: pytest.MonkeyPatch
) -> None:
    vectors, _ = clustered(300, 1)
    index.replace("facts", rows_of(vectors))
    with failing(monkeypatch, RowStore, "put"), pytest.raises(StoreError, match="full"):
        index.delete("facts", ["o3"])
    assert index.query("facts", vectors[3], 1)[0].owner == "o3"


def test_an_opening_that_failed_leaves_nothing_open(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    vectors, _ = clustered(300, 1)
    built(tmp_path / "data", vectors[:200]).close()
    with failing(monkeypatch, RowStore, "scan"), pytest.raises(StoreError, match="full"):
        opened(tmp_path / "data", in_memory=10_000)
    shutil.rmtree(tmp_path / "data")  # as a rebuild does
    index = built(tmp_path / "data", vectors)
    assert index.query("facts", vectors[3], 1)[0].owner == "o3"
    index.close()


def test_rows_that_somebody_else_writes_are_not_opened(tmp_path: Path) -> None:
    opened(tmp_path).close()
    with sqlite3.connect(tmp_path / "vectors.db", isolation_level=None) as db:
        db.execute("BEGIN IMMEDIATE")
        with pytest.raises(StoreError, match="open already"):
            opened(tmp_path)
    db.close()


def test_damaged_rows_and_a_closed_index_are_said_with_what_helps(tmp_path: Path) -> None:
    made = opened(tmp_path)
    made.replace("facts", rows_of(clustered(3, 1)[0]))
    made.close()
    with pytest.raises(StoreError, match="closed"):
        made.count("facts")
    with closing(sqlite3.connect(tmp_path / "vectors.db", isolation_level=None)) as db:
        db.execute("UPDATE rows SET owner = cast(x'ff41' AS TEXT) WHERE owner = 'o1'")
    with pytest.raises(StoreError, match="pps reindex"):
        opened(tmp_path)
