"""What is written into the vector index and taken out of it: parts, owners, collections, refusals."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from pps.core.errors import InvalidRequest, StoreError
from pps.index.vector_index import VectorIndex, VectorRow
from pps.index.vector_rows import RowStore
from pps.models.protocols import Matrix
from tests.index_data import DIMENSION, clustered, rows_of
from tests.integration.vectors.opening import in_chroma, opened, wait_built


def test_replacing_drops_the_owners_older_parts(index: VectorIndex) -> None:
    vectors, _ = clustered(6, 1)
    index.replace("episodes", [VectorRow("a", part, vectors[part]) for part in range(3)])
    assert index.query("episodes", vectors[2], 1)[0].part == 2
    index.replace("episodes", [VectorRow("a", 0, vectors[4])])
    only = index.query("episodes", vectors[2], 5)
    assert [(hit.owner, hit.part) for hit in only] == [("a", 0)]
    assert only[0].similarity < 0.999
    np.testing.assert_array_equal(index.vectors("episodes", ["a", "b"])["a"], vectors[4])


def test_deleted_owners_are_gone_and_absent_ones_are_no_error(index: VectorIndex) -> None:
    vectors, _ = clustered(200, 1)
    index.replace("facts", rows_of(vectors))
    index.delete("facts", ["o3", "nobody"])
    index.delete("nodes", ["o3"])
    assert "o3" not in {hit.owner for hit in index.query("facts", vectors[3], 200)}
    assert (index.count("facts"), "o3" in index.owners("facts")) == (199, False)


def test_collections_are_apart(index: VectorIndex) -> None:
    vectors, _ = clustered(2, 1)
    index.replace("facts", [VectorRow("a", 0, vectors[0])])
    index.replace("past_facts", [VectorRow("b", 0, vectors[1])])
    assert [hit.owner for hit in index.query("facts", vectors[1], 5)] == ["a"]
    assert index.owners("past_facts") == {"b"}


@pytest.mark.parametrize(
    "owner", ["a:b", "0:0", "a#1", "咖啡", "", " ", "'; DROP TABLE rows; --", "a" * 500]
)
def test_an_owner_may_be_any_text(index: VectorIndex, owner: str) -> None:
    vectors, _ = clustered(1, 1)
    index.replace("anchors", [VectorRow(owner, 12, vectors[0])])
    assert [(hit.owner, hit.part) for hit in index.query("anchors", vectors[0], 1, {owner})] == [
        (owner, 12)
    ]
    index.delete("anchors", [owner])
    assert index.count("anchors") == 0


@pytest.mark.parametrize(
    "vector",
    [
        np.ones(DIMENSION + 1, dtype=np.float32),
        np.zeros(DIMENSION, dtype=np.float32),
        np.full(DIMENSION, np.nan, dtype=np.float32),
        np.full(DIMENSION, np.inf, dtype=np.float32),
        np.full(DIMENSION, 1e20, dtype=np.float32),
        np.full(DIMENSION, 1e-22, dtype=np.float32),
    ],
)
def test_a_vector_that_cannot_be_compared_is_refused_whole(
    index: VectorIndex, vector: Matrix
) -> None:
    good = clustered(1, 1)[0][0]
    with pytest.raises(InvalidRequest):
        index.replace("facts", [VectorRow("good", 0, good), VectorRow("bad", 0, vector)])
    with pytest.raises(InvalidRequest):
        index.query("facts", vector, 1)
    assert index.count("facts") == 0


def test_an_unknown_collection_is_refused(index: VectorIndex) -> None:
    with pytest.raises(InvalidRequest, match="collection"):
        index.query("secrets", clustered(1, 1)[0][0], 1)


def test_everything_is_there_after_a_reopen(tmp_path: Path) -> None:
    vectors, _ = clustered(2500, 1)
    first = opened(tmp_path)
    first.replace("facts", rows_of(vectors))
    first.close()
    again = opened(tmp_path)
    assert again.count("facts") == 2500
    assert [again.query("facts", vectors[at], 1)[0].owner for at in (0, 1200, 2499)] == [
        "o0",
        "o1200",
        "o2499",
    ]
    again.close()


def test_clearing_empties_every_collection_and_the_index_goes_on(index: VectorIndex) -> None:
    vectors, _ = clustered(3, 1)
    index.replace("facts", rows_of(vectors))
    index.clear()
    assert (index.count("facts"), index.query("facts", vectors[0], 1)) == (0, [])
    index.replace("facts", rows_of(vectors[:1]))
    assert index.count("facts") == 1


def test_a_collection_beyond_the_bound_is_searched_in_chroma_and_a_smaller_one_in_memory(
    tmp_path: Path,
) -> None:
    vectors, _ = clustered(3000, 1)
    index = opened(tmp_path, in_memory=1000)
    index.replace("facts", rows_of(vectors[:1000]))
    index.replace("nodes", rows_of(vectors[:900]))
    index.replace("anchors", rows_of(vectors[:1]))
    assert not index.is_built("facts")
    index.replace("facts", rows_of(vectors[1000:2000], start=1000))
    wait_built(index, "facts")
    wait_built(index, "anchors")
    assert not index.is_built("nodes")
    assert [
        index.query(name, vectors[at], 1)[0].owner for name, at in (("facts", 1500), ("nodes", 3))
    ] == [
        "o1500",
        "o3",
    ]
    index.close()
    assert [in_chroma(tmp_path, name) for name in ("facts", "nodes", "anchors")] == [2000, 0, 1]
    again = opened(tmp_path, in_memory=5000)  # another bound holds from the next opening on
    assert [again.is_built(name) for name in ("facts", "nodes", "anchors")] == [False, False, True]
    assert again.query("facts", vectors[1500], 1)[0].owner == "o1500"
    again.close()
    assert in_chroma(tmp_path, "facts") == 0


def test_rows_that_the_disk_refuses_are_not_found(
    index: VectorIndex, monkeypatch: pytest.MonkeyPatch
) -> None:
    vectors, _ = clustered(80, 1)
    index.replace("facts", rows_of(vectors[:70]))

    def refuse(*_: object) -> None:
        raise StoreError("the disk is full")

    with monkeypatch.context() as patch:
        patch.setattr(RowStore, "put", refuse)
        with pytest.raises(StoreError, match="full"):
            index.replace("facts", rows_of(vectors[70:], start=70))
    assert {hit.owner for hit in index.query("facts", vectors[75], 80)} == {
        f"o{at}" for at in range(70)
    }
