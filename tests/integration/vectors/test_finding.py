"""What the vector index finds: the nearest, lists that are full under any filter, in memory and in Chroma alike."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from pps.index.vector_index import COLLECTIONS, IN_MEMORY, VectorIndex, VectorRow
from pps.models.protocols import Matrix
from tests.index_data import DIMENSION, best, clustered, rows_of
from tests.integration.vectors.opening import opened, wait_built


@pytest.fixture(scope="module", params=[IN_MEMORY, 0], ids=["in memory", "in Chroma"])
def crowd(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[VectorIndex, Matrix, Matrix]]:
    """6,000 rows of 3,000 owners, and 20 queries; read only."""
    vectors, queries = clustered(6000, 20)
    made = opened(tmp_path_factory.mktemp("crowd"), in_memory=request.param)
    made.replace("episodes", rows_of(vectors, parts=2))
    if request.param == 0:
        wait_built(made, "episodes")
    yield made, vectors, queries
    made.close()


def test_an_empty_index_finds_nothing(index: VectorIndex) -> None:
    probe = clustered(1, 1)[1][0]
    for collection in COLLECTIONS:
        assert index.query(collection, probe, 5) == []
        assert index.count(collection) == 0
        assert index.owners(collection) == set()
        assert index.vectors(collection, ["a"]) == {}


def test_similarity_is_raw_cosine(index: VectorIndex) -> None:
    base = np.zeros(DIMENSION, dtype=np.float32)
    base[0] = 1
    opposite, right = -base, np.roll(base, 1)
    index.replace(
        "facts",
        [VectorRow("same", 0, base), VectorRow("right", 0, right), VectorRow("not", 0, opposite)],
    )
    found = {hit.owner: hit.similarity for hit in index.query("facts", base, 3)}
    assert found == pytest.approx({"same": 1.0, "right": 0.0, "not": -1.0}, abs=1e-5)


def test_the_nearest_are_found_as_by_scoring_every_row(
    crowd: tuple[VectorIndex, Matrix, Matrix],
) -> None:
    index, vectors, queries = crowd
    shared = 0
    for probe in queries:
        hits = index.query("episodes", probe, 10)
        assert len({hit.owner for hit in hits}) == 10
        assert [hit.similarity for hit in hits] == sorted(
            (hit.similarity for hit in hits), reverse=True
        )
        shared += len({hit.owner for hit in hits} & set(best(vectors, probe, 10, parts=2)))
    assert shared / 200 >= 0.98


def test_an_owner_is_found_once_by_its_best_part(crowd: tuple[VectorIndex, Matrix, Matrix]) -> None:
    index, vectors, _ = crowd
    for at in (0, 1, 4001):
        first = index.query("episodes", vectors[at], 1)[0]
        assert (first.owner, first.part) == (f"o{at // 2}", at % 2)
        assert first.similarity == pytest.approx(1.0, abs=1e-5)


@pytest.mark.parametrize("share", [0.9, 0.5, 0.1, 0.01, 0.001])
def test_lists_are_full_at_any_share_of_allowed_owners(
    crowd: tuple[VectorIndex, Matrix, Matrix], share: float
) -> None:
    index, vectors, queries = crowd
    chosen = np.random.default_rng(3).choice(3000, max(1, int(3000 * share)), replace=False)
    allowed = {f"o{at}" for at in chosen}
    found = wanted = 0
    for probe in queries:
        hits = index.query("episodes", probe, 10, allowed)
        assert len(hits) == min(10, len(allowed))
        assert {hit.owner for hit in hits} <= allowed
        exact = set(best(vectors, probe, 10, parts=2, allowed=allowed))
        found, wanted = found + len({hit.owner for hit in hits} & exact), wanted + len(exact)
    assert found / wanted >= 0.97


def test_lists_are_full_when_what_is_allowed_lies_far_from_the_query(
    crowd: tuple[VectorIndex, Matrix, Matrix],
) -> None:
    index, vectors, queries = crowd
    near = best(vectors, queries[0], 3000, parts=2)
    for allowed in (set(near[-1500:]), set(near[-400:])):
        hits = index.query("episodes", queries[0], 20, allowed)
        assert len(hits) == 20
        assert {hit.owner for hit in hits} <= allowed


@pytest.mark.parametrize("k", [1, 2999, 3000, 5000])
def test_a_list_is_as_long_as_asked_or_has_every_owner(
    crowd: tuple[VectorIndex, Matrix, Matrix], k: int
) -> None:
    index, _, queries = crowd
    assert len({hit.owner for hit in index.query("episodes", queries[0], k)}) == min(k, 3000)


def test_owners_that_are_not_there_may_be_allowed(
    crowd: tuple[VectorIndex, Matrix, Matrix],
) -> None:
    index, _, queries = crowd
    strangers = {f"stranger{at}" for at in range(2000)}
    assert index.query("episodes", queries[0], 5, strangers) == []
    assert [hit.owner for hit in index.query("episodes", queries[0], 5, strangers | {"o7"})] == [
        "o7"
    ]
    assert index.query("episodes", queries[0], 5, set()) == []


class Model:
    """What an index should hold and find, by scoring everything."""

    def __init__(self) -> None:
        self.rows: dict[tuple[str, int], Matrix] = {}

    def best(self, probe: Matrix, k: int) -> list[str]:
        found: dict[str, float] = {}
        for (owner, _), vector in self.rows.items():
            cosine = float(vector @ probe / (np.linalg.norm(vector) * np.linalg.norm(probe)))
            found[owner] = max(cosine, found.get(owner, -2.0))
        return sorted(found, key=lambda owner: -found[owner])[:k]


@pytest.mark.parametrize("seed", range(4))
def test_what_is_found_does_not_tell_what_is_in_chroma_yet(tmp_path: Path, seed: int) -> None:
    draw = np.random.default_rng(seed)
    vectors, probes = clustered(900, 5)
    index, model = opened(tmp_path, in_memory=100), Model()
    for _ in range(60):
        step = draw.integers(0, 6)
        owners = [f"o{at}" for at in draw.choice(200, draw.integers(1, 30), replace=False)]
        if step <= 2:  # new owners, and new vectors of old ones, in Chroma or not
            rows = [
                VectorRow(owner, part, vectors[draw.integers(0, 900)])
                for owner in owners
                for part in range(draw.integers(1, 4))
            ]
            index.replace("facts", rows)
            model.rows = {key: row for key, row in model.rows.items() if key[0] not in owners}
            model.rows.update({(row.owner, row.part): row.vector for row in rows})
        elif step == 3:
            index.delete("facts", owners[:5])
            model.rows = {key: row for key, row in model.rows.items() if key[0] not in owners[:5]}
        elif step == 4 and len(model.rows) > 100:
            wait_built(index)
        else:
            index.close()
            index = opened(tmp_path, in_memory=100)
        there = {owner for owner, _ in model.rows}
        assert index.owners("facts") == there
        for probe in probes:
            hits = index.query("facts", probe, 10)
            wanted = model.best(probe, 10)
            assert len(hits) == len(wanted)
            assert (
                len({hit.owner for hit in hits} & set(wanted)) >= len(wanted) - 1
            )  # the graph is approximate
            for hit in hits:
                vector = model.rows[hit.owner, hit.part]
                assert hit.similarity == pytest.approx(
                    float(vector @ probe / np.linalg.norm(vector)), abs=1e-4
                )
            some = set(sorted(there)[:90])
            assert len(index.query("facts", probe, 50, some)) == min(50, len(some))
    index.close()
