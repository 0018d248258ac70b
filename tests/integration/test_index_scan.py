"""Vectors in memory: so many that their codes are compared first, and what is found is still what scoring all finds."""

from __future__ import annotations

import tracemalloc
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from pps.index.flat_index import BITS, WORDS, FlatIndex, SimHash
from pps.models.protocols import Matrix
from tests.index_data import clustered

ROWS = 20_000
K = 10


@pytest.fixture(scope="module", params=["all directions", "a narrow cone"])
def crowd(request: pytest.FixtureRequest) -> tuple[Matrix, Matrix]:
    """Unit vectors and queries; those of a cone are like each other by 0.8, as some models' are."""
    vectors, queries = clustered(ROWS, 30, dimension=128)
    if request.param == "a narrow cone":
        axis = np.random.default_rng(5).standard_normal(128)
        axis *= 2 / np.linalg.norm(axis)
        vectors, queries = (both + axis for both in (vectors, queries))
    return tuple(
        (some / np.linalg.norm(some, axis=1, keepdims=True)).astype(np.float32)
        for some in (vectors, queries)
    )  # pyright: ignore[reportReturnType]


@pytest.fixture(scope="module")
def scanned(crowd: tuple[Matrix, Matrix]) -> FlatIndex:
    """Each vector, two an owner; put in by the hundred, so that many come after the codes were made."""
    made = FlatIndex(128)
    for at in range(0, ROWS, 100):
        made.put(
            [(f"o{row // 2}", row % 2) for row in range(at, at + 100)], crowd[0][at : at + 100]
        )
    return made


def share_found(
    scanned: FlatIndex, vectors: Matrix, queries: Matrix, allowed: set[int] | None = None
) -> float:
    owners = None if allowed is None else {f"o{owner}" for owner in allowed}
    found = 0
    for probe in queries:
        cosines = vectors @ probe
        if allowed is not None:
            cosines[[row for row in range(len(vectors)) if row // 2 not in allowed]] = -2
        best = {(f"o{row // 2}", row % 2) for row in np.argsort(-cosines)[:K].tolist()}
        hits = scanned.nearest(probe, K, owners)
        assert [cosine for _, cosine in hits] == sorted(
            (cosine for _, cosine in hits), reverse=True
        )
        found += len(best & {key for key, _ in hits})
    return found / (K * len(queries))


def test_what_scoring_all_finds_is_found(scanned: FlatIndex, crowd: tuple[Matrix, Matrix]) -> None:
    assert share_found(scanned, *crowd) >= 0.98


@pytest.mark.parametrize("share", [0.9, 0.5, 0.1, 0.01, 0.001])
def test_the_best_of_the_allowed_are_found(
    scanned: FlatIndex, crowd: tuple[Matrix, Matrix], share: float
) -> None:
    owners = ROWS // 2
    chosen = np.random.default_rng(3).choice(owners, int(owners * share), replace=False)
    assert share_found(scanned, *crowd, set(chosen.tolist())) >= 0.97


def test_the_best_of_the_allowed_are_found_far_from_the_query(
    scanned: FlatIndex, crowd: tuple[Matrix, Matrix]
) -> None:
    vectors, queries = crowd
    far = {int(row) // 2 for row in np.argsort(vectors @ queries[0])[: ROWS // 3]}
    assert share_found(scanned, vectors, queries[:1], far) == 1.0


def test_similarity_is_the_cosine(scanned: FlatIndex, crowd: tuple[Matrix, Matrix]) -> None:
    for (owner, part), cosine in scanned.nearest(7 * crowd[1][0], 50):
        assert cosine == pytest.approx(
            float(crowd[0][2 * int(owner[1:]) + part] @ crowd[1][0]), abs=1e-5
        )


@pytest.mark.parametrize("n", [1, 300, ROWS - 1, ROWS, ROWS + 5])
def test_a_list_is_as_long_as_asked_or_has_every_row(
    scanned: FlatIndex, crowd: tuple[Matrix, Matrix], n: int
) -> None:
    assert len({key for key, _ in scanned.nearest(crowd[1][0], n)}) == min(n, ROWS)
    some = {f"o{owner}" for owner in range(6000)}
    assert len({key for key, _ in scanned.nearest(crowd[1][0], n, some)}) == min(n, 12_000)


def test_rows_that_went_or_moved_are_not_found_where_they_were(
    crowd: tuple[Matrix, Matrix],
) -> None:
    vectors, _ = crowd
    made = FlatIndex(128, expected=ROWS)
    made.put([(str(row), 0) for row in range(ROWS)], vectors)
    made.drop([("3", 0), ("nobody", 0)])
    made.put([("7", 0)], vectors[9:10])
    assert len(made) == ROWS - 1
    assert "3" not in {key for (key, _), _ in made.nearest(vectors[3], 5)}
    assert made.nearest(vectors[3], 1)[0][0] != ("3", 0)
    assert made.nearest(vectors[7], 1)[0][0] != ("7", 0)
    assert {key for key, _ in made.nearest(vectors[9], 2)} == {("7", 0), ("9", 0)}


def test_rows_that_were_loaded_are_found_before_and_after_their_codes_are_made(
    crowd: tuple[Matrix, Matrix],
) -> None:
    vectors, probes = crowd
    keys = [(str(row), 0) for row in range(ROWS)]
    made, put = FlatIndex(128), FlatIndex(128)
    put.put(keys, vectors)
    for start in range(0, ROWS, 3_000):
        made.load(keys[start : start + 3_000], vectors[start : start + 3_000])
    exact = [made.nearest(probe, 10) for probe in probes]
    with ThreadPoolExecutor(3) as workers:
        made.code(workers)
    assert [made.nearest(probe, 10) for probe in probes] == [
        put.nearest(probe, 10) for probe in probes
    ]
    pairs = zip(exact, (made.nearest(probe, 10) for probe in probes), strict=True)
    shared = [
        len({key for key, _ in before} & {key for key, _ in after}) for before, after in pairs
    ]
    assert sum(shared) / len(shared) > 9.5
    made.put([("new", 0)], vectors[:1])
    assert {key for key, _ in made.nearest(vectors[0], 2)} == {("0", 0), ("new", 0)}


def test_making_room_takes_the_memory_of_the_room_and_little_more() -> None:
    rows, dimension = 16_384, 256
    vectors, _ = clustered(rows, 1, dimension=dimension)
    made = FlatIndex(dimension)
    put = 0
    tracemalloc.start()
    try:
        while put < rows:
            held = tracemalloc.get_traced_memory()[0]
            tracemalloc.reset_peak()
            made.put([(str(row), 0) for row in range(put, put + 128)], vectors[put : put + 128])
            put += 128
            most = 2 * (put + 128) * dimension * 4  # room for as many again
            if put > 9_000:  # when there are codes already
                assert tracemalloc.get_traced_memory()[1] - held < 1.3 * most
    finally:
        tracemalloc.stop()
    assert made.nearest(vectors[0], 1)[0][0] == ("0", 0)


def test_ten_thousand_rows_alike_are_no_trouble() -> None:
    made = FlatIndex(16)
    made.put([(str(row), 0) for row in range(10_000)], np.ones((10_000, 16), dtype=np.float32))
    probe = np.ones(16, dtype=np.float32)
    assert len(made.nearest(probe, 20)) == 20
    assert len(made.nearest(probe, 20, {str(row) for row in range(0, 10_000, 3)})) == 20


@pytest.mark.parametrize("dimension", [8, 384, 768, 1536])
def test_codes_differ_by_the_angle(dimension: int) -> None:
    draw = np.random.default_rng(1)
    some = draw.standard_normal((2, dimension)).astype(np.float32)
    hashed = SimHash(np.zeros((1, dimension), dtype=np.float32))
    codes = hashed.codes(some)
    assert codes.shape == (WORDS, 2)
    zero, other = hashed.distances(codes, some[0])
    assert zero == 0
    angle = np.arccos(float(some[0] @ some[1]) / float(np.prod(np.linalg.norm(some, axis=1))))
    assert other / BITS == pytest.approx(angle / np.pi, abs=0.12 if dimension < 64 else 0.05)
