"""The vector index on a real Chroma: full lists, filters, isolation, refusals, mending."""

from __future__ import annotations

import logging
import shutil
import sqlite3
import threading
from collections.abc import Callable, Generator, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest

from pps.core.errors import ConfigError, InvalidRequest, IsolationError, StoreConflict, StoreError
from pps.index.rows import RowStore
from pps.index.vectors import COLLECTIONS, IN_MEMORY, VectorIndex, VectorRow
from pps.models.protocols import Fingerprint, Matrix
from tests.index_data import DIMENSION, FINGERPRINT, GROUP, OTHER_GROUP, best, clustered, rows_of


def opened(
    path: Path, *, group: str = GROUP, fingerprint: Fingerprint = FINGERPRINT, in_memory: int = IN_MEMORY
) -> VectorIndex:
    return VectorIndex.open(path, group=group, fingerprint=fingerprint, in_memory=in_memory)


def closed_with(path: Path, vectors: np.ndarray) -> None:
    """Leave an index of these rows, all in the graph, closed well."""
    made = opened(path)
    made.replace("facts", rows_of(vectors))
    while made.merge():
        pass
    made.close()


@pytest.fixture
def index(tmp_path: Path) -> Iterator[VectorIndex]:
    made = opened(tmp_path / "chroma")
    yield made
    made.close()


@pytest.fixture(scope="module", params=["in memory", "half in the graph", "all in the graph"])
def crowd(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[VectorIndex, Matrix, Matrix]]:
    """6,000 rows of 3,000 owners, and 20 queries; read only."""
    vectors, queries = clustered(6000, 20)
    made = opened(tmp_path_factory.mktemp("crowd"))
    made.replace("episodes", rows_of(vectors, parts=2))
    if request.param == "half in the graph":
        for _ in range(12):
            made.merge()
    while request.param == "all in the graph" and made.merge():
        pass
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
    index.replace("facts", [VectorRow("same", 0, base), VectorRow("right", 0, right), VectorRow("not", 0, opposite)])
    found = {hit.owner: hit.similarity for hit in index.query("facts", base, 3)}
    assert found == pytest.approx({"same": 1.0, "right": 0.0, "not": -1.0}, abs=1e-5)


def test_the_nearest_are_found_as_by_scoring_every_row(crowd: tuple[VectorIndex, Matrix, Matrix]) -> None:
    index, vectors, queries = crowd
    shared = 0
    for probe in queries:
        hits = index.query("episodes", probe, 10)
        assert len({hit.owner for hit in hits}) == 10
        assert [hit.similarity for hit in hits] == sorted((hit.similarity for hit in hits), reverse=True)
        shared += len({hit.owner for hit in hits} & set(best(vectors, probe, 10, parts=2)))
    assert shared / 200 >= 0.98


def test_an_owner_is_found_once_by_its_best_part(crowd: tuple[VectorIndex, Matrix, Matrix]) -> None:
    index, vectors, _ = crowd
    for at in (0, 1, 4001):
        first = index.query("episodes", vectors[at], 1)[0]
        assert (first.owner, first.part) == (f"o{at // 2}", at % 2)
        assert first.similarity == pytest.approx(1.0, abs=1e-5)


@pytest.mark.parametrize("share", [0.9, 0.5, 0.1, 0.01, 0.001])
def test_lists_are_full_at_any_share_of_allowed_owners(crowd: tuple[VectorIndex, Matrix, Matrix], share: float) -> None:
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
def test_a_list_is_as_long_as_asked_or_has_every_owner(crowd: tuple[VectorIndex, Matrix, Matrix], k: int) -> None:
    index, _, queries = crowd
    assert len({hit.owner for hit in index.query("episodes", queries[0], k)}) == min(k, 3000)


def test_owners_that_are_not_there_may_be_allowed(crowd: tuple[VectorIndex, Matrix, Matrix]) -> None:
    index, _, queries = crowd
    strangers = {f"stranger{at}" for at in range(2000)}
    assert index.query("episodes", queries[0], 5, strangers) == []
    assert [hit.owner for hit in index.query("episodes", queries[0], 5, strangers | {"o7"})] == ["o7"]
    assert index.query("episodes", queries[0], 5, set()) == []


def test_replacing_drops_the_owners_older_parts_and_upserting_does_not(index: VectorIndex) -> None:
    vectors, _ = clustered(6, 1)
    index.replace("episodes", [VectorRow("a", part, vectors[part]) for part in range(3)])
    index.upsert("episodes", [VectorRow("a", 3, vectors[3])])
    assert index.query("episodes", vectors[3], 1)[0].part == 3
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


@pytest.mark.parametrize("owner", ["a:b", "0:0", "a#1", "咖啡", "", " ", "'; DROP TABLE rows; --", "a" * 500])
def test_an_owner_may_be_any_text(index: VectorIndex, owner: str) -> None:
    vectors, _ = clustered(1, 1)
    index.replace("anchors", [VectorRow(owner, 12, vectors[0])])
    assert [(hit.owner, hit.part) for hit in index.query("anchors", vectors[0], 1, {owner})] == [(owner, 12)]
    index.delete("anchors", [owner])
    assert index.count("anchors") == 0


@pytest.mark.parametrize(
    "vector",
    [
        np.ones(DIMENSION + 1, dtype=np.float32),
        np.zeros(DIMENSION, dtype=np.float32),
        np.full(DIMENSION, np.nan, dtype=np.float32),
        np.full(DIMENSION, np.inf, dtype=np.float32),
    ],
)
def test_a_vector_that_cannot_be_compared_is_refused_whole(index: VectorIndex, vector: Matrix) -> None:
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
    assert [again.query("facts", vectors[at], 1)[0].owner for at in (0, 1200, 2499)] == ["o0", "o1200", "o2499"]
    again.close()


def test_clearing_empties_every_collection_and_the_index_goes_on(index: VectorIndex) -> None:
    vectors, _ = clustered(3, 1)
    index.replace("facts", rows_of(vectors))
    index.clear()
    assert (index.count("facts"), index.query("facts", vectors[0], 1)) == (0, [])
    index.replace("facts", rows_of(vectors[:1]))
    assert index.count("facts") == 1


def test_another_entitys_folder_is_refused(tmp_path: Path) -> None:
    opened(tmp_path).close()
    with pytest.raises(IsolationError):
        opened(tmp_path, group=OTHER_GROUP)
    opened(tmp_path).close()


def test_another_entitys_chroma_files_are_refused_even_beside_ones_own_rows(tmp_path: Path) -> None:
    vectors, _ = clustered(5, 1)
    for name, group in (("mine", GROUP), ("theirs", OTHER_GROUP)):
        made = opened(tmp_path / name, group=group)
        made.replace("facts", rows_of(vectors))
        made.close()
    shutil.copy(tmp_path / "theirs" / "chroma.sqlite3", tmp_path / "mine" / "chroma.sqlite3")
    with pytest.raises(IsolationError):
        opened(tmp_path / "mine")


@pytest.mark.parametrize(
    "fingerprint",
    [
        Fingerprint("other-model", DIMENSION, "mean"),
        Fingerprint("test-model", DIMENSION * 2, "mean"),
        Fingerprint("test-model", DIMENSION, "cls"),
        Fingerprint("test-model", DIMENSION, "mean", normalised=False),
    ],
)
def test_another_models_vectors_are_refused_with_the_command_that_helps(
    tmp_path: Path, fingerprint: Fingerprint
) -> None:
    opened(tmp_path).close()
    with pytest.raises(ConfigError, match="pps reembed"):
        opened(tmp_path, fingerprint=fingerprint)


def test_the_fingerprint_and_the_owner_are_in_every_collections_metadata(tmp_path: Path) -> None:
    made = opened(tmp_path)
    made.replace("facts", rows_of(clustered(1, 1)[0]))
    made.close()
    with sqlite3.connect(tmp_path / "chroma.sqlite3") as db:
        held = dict(db.execute("SELECT key, coalesce(str_value, int_value, bool_value) FROM collection_metadata"))
    db.close()
    assert held == {
        "pps_group": GROUP,
        "pps_model": "test-model",
        "pps_dimension": DIMENSION,
        "pps_pooling": "mean",
        "pps_normalised": 1,
    }


def test_a_graph_that_was_closed_well_is_not_counted_at_opening(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A bound on work: Chroma counts by reading every row."""
    vectors, _ = clustered(300, 1)
    closed_with(tmp_path, vectors)
    counted: list[object] = []
    monkeypatch.setattr("chromadb.api.models.Collection.Collection.count", counted.append)
    index = opened(tmp_path)
    assert index.query("facts", vectors[7], 1)[0].owner == "o7"
    index.close()
    assert not counted


def test_a_folder_is_open_once(tmp_path: Path) -> None:
    first = opened(tmp_path)
    first.replace("facts", rows_of(clustered(3, 1)[0]))
    with pytest.raises(StoreConflict):
        opened(tmp_path)
    assert first.count("facts") == 3
    first.close()
    first.close()
    again = opened(tmp_path)
    assert again.count("facts") == 3
    again.close()


def test_a_closed_index_says_so(tmp_path: Path) -> None:
    index = opened(tmp_path)
    index.close()
    with pytest.raises(StoreError, match="closed"):
        index.count("facts")


def test_two_entities_never_see_each_other(tmp_path: Path) -> None:
    vectors, _ = clustered(40, 1)
    ana, ben = opened(tmp_path / "ana"), opened(tmp_path / "ben", group=OTHER_GROUP)
    ana.replace("facts", rows_of(vectors[:20]))
    ben.replace("facts", rows_of(vectors[20:], start=100))
    assert {hit.owner for hit in ana.query("facts", vectors[30], 50)} == {f"o{at}" for at in range(20)}
    assert {hit.owner for hit in ben.query("facts", vectors[0], 50)} == {f"o{at}" for at in range(100, 120)}
    ana.clear()
    assert ben.count("facts") == 20
    ana.close()
    assert ben.query("facts", vectors[20], 1)[0].owner == "o100"
    ben.close()


def test_no_text_reaches_chromas_files(tmp_path: Path) -> None:
    made = opened(tmp_path)
    made.replace("facts", rows_of(clustered(3, 1)[0]))
    made.close()
    db = sqlite3.connect(tmp_path / "chroma.sqlite3")
    assert db.execute("SELECT count(*) FROM embedding_metadata").fetchone() == (0,)
    assert db.execute("SELECT count(*) FROM embedding_fulltext_search").fetchone() == (0,)
    db.close()


def damaged_database(folder: Path) -> None:
    (folder / "chroma.sqlite3").write_bytes(b"not a database" * 500)


def cut_database(folder: Path) -> None:
    (folder / "chroma.sqlite3").write_bytes((folder / "chroma.sqlite3").read_bytes()[:8192])


def graphs(folder: Path) -> list[Path]:
    return [found for found in folder.iterdir() if found.is_dir()]


def cut_graph(folder: Path) -> None:
    for graph in graphs(folder):
        (graph / "data_level0.bin").write_bytes((graph / "data_level0.bin").read_bytes()[:1000])


def lost_graph(folder: Path) -> None:
    for graph in graphs(folder):
        shutil.rmtree(graph)


def lost_chroma(folder: Path) -> None:
    lost_graph(folder)
    (folder / "chroma.sqlite3").unlink()


@pytest.mark.parametrize("damage", [damaged_database, cut_database, cut_graph, lost_graph, lost_chroma])
def test_what_is_broken_of_chroma_is_made_again_from_the_rows(
    tmp_path: Path, damage: Callable[[Path], None], caplog: pytest.LogCaptureFixture
) -> None:
    vectors, _ = clustered(1500, 1)
    closed_with(tmp_path, vectors)
    damage(tmp_path)
    with caplog.at_level(logging.WARNING):
        again = opened(tmp_path)
    assert "again from its rows" in caplog.text
    assert [again.query("facts", vectors[at], 1)[0].owner for at in range(0, 1500, 100)] == [
        f"o{at}" for at in range(0, 1500, 100)
    ]
    again.close()
    assert opened_again_quietly(tmp_path, caplog)


def test_graphs_of_the_first_layout_are_emptied_and_their_rows_are_found(tmp_path: Path) -> None:
    vectors, _ = clustered(300, 1)
    closed_with(tmp_path, vectors)
    with sqlite3.connect(tmp_path / "rows.db") as db:
        db.execute("DROP TABLE merged")
        db.execute("CREATE TABLE waiting (collection TEXT, owner TEXT, part INTEGER, over INTEGER)")
        db.execute("DELETE FROM marks WHERE key = 'layout'")
    db.close()
    index = opened(tmp_path)
    assert (index.in_memory, merged(tmp_path)) == (300, 0)
    assert [index.query("facts", vectors[at], 1)[0].owner for at in (0, 299)] == ["o0", "o299"]
    index.close()


def opened_again_quietly(folder: Path, caplog: pytest.LogCaptureFixture) -> bool:
    caplog.clear()
    opened(folder).close()
    return caplog.text == ""


def test_rows_that_cannot_be_read_are_an_error_that_names_reindex(tmp_path: Path) -> None:
    opened(tmp_path).close()
    (tmp_path / "rows.db").write_bytes(b"not a database" * 500)
    for _ in range(2):
        with pytest.raises(StoreError, match="pps reindex"):
            opened(tmp_path)
    (tmp_path / "rows.db").unlink()
    opened(tmp_path).close()


def test_a_folder_that_is_a_file_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "chroma").write_text("")
    with pytest.raises(StoreError):
        opened(tmp_path / "chroma")


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
def test_what_is_found_does_not_tell_what_is_in_the_graph_yet(tmp_path: Path, seed: int) -> None:
    draw = np.random.default_rng(seed)
    vectors, probes = clustered(900, 5)
    index, model = opened(tmp_path), Model()
    for _ in range(60):
        step = draw.integers(0, 6)
        owners = [f"o{at}" for at in draw.choice(200, draw.integers(1, 30), replace=False)]
        if step <= 2:  # new owners, and new vectors of old ones, in or out of the graph
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
        elif step == 4:
            index.merge()
        else:
            index.close()
            index = opened(tmp_path)
        there = {owner for owner, _ in model.rows}
        assert index.owners("facts") == there
        for probe in probes:
            hits = index.query("facts", probe, 10)
            wanted = model.best(probe, 10)
            assert len(hits) == len(wanted)
            assert len({hit.owner for hit in hits} & set(wanted)) >= len(wanted) - 1  # the graph is approximate
            for hit in hits:
                vector = model.rows[hit.owner, hit.part]
                assert hit.similarity == pytest.approx(float(vector @ probe / np.linalg.norm(vector)), abs=1e-4)
            some = set(sorted(there)[:90])
            assert len(index.query("facts", probe, 50, some)) == min(50, len(some))
    index.close()


def test_vectors_in_memory_and_in_the_graph_are_found_alike(index: VectorIndex) -> None:
    vectors, _ = clustered(600, 1)
    index.replace("facts", rows_of(vectors))
    assert [index.query("facts", vectors[at], 1)[0].owner for at in (0, 300, 599)] == ["o0", "o300", "o599"]
    assert [(index.in_memory, index.merge()) for _ in range(4)] == [(600, True), (344, True), (88, False), (0, False)]
    assert [index.query("facts", vectors[at], 1)[0].owner for at in (0, 300, 599)] == ["o0", "o300", "o599"]


def test_no_more_are_in_memory_than_the_setting_says(tmp_path: Path) -> None:
    vectors, _ = clustered(3000, 1)
    index = opened(tmp_path, in_memory=1000)
    index.replace("facts", rows_of(vectors[:2000]))
    index.replace("nodes", rows_of(vectors[2000:]))
    assert index.in_memory <= 1000
    assert index.query("facts", vectors[3], 1)[0].owner == "o3"
    index.close()
    assert merged(tmp_path) == 3000 - index_opened_in_memory(tmp_path, 1000)
    assert index_opened_in_memory(tmp_path, 100) == 100  # a smaller bound holds from the next opening on
    assert merged(tmp_path) == 2900


def index_opened_in_memory(folder: Path, most: int) -> int:
    index = opened(folder, in_memory=most)
    try:
        return index.in_memory
    finally:
        index.close()


def merged(folder: Path) -> int:
    """Return how many rows are in Chroma's graphs; the rows' own file must say the same."""
    with sqlite3.connect(folder / "rows.db") as db:
        (said,) = db.execute("SELECT count(*) FROM merged").fetchone()
    with sqlite3.connect(folder / "chroma.sqlite3") as db:
        (inside,) = db.execute("SELECT count(*) FROM embeddings").fetchone()
    assert said == inside
    return int(inside)


def test_rows_that_the_disk_refuses_are_not_found(index: VectorIndex, monkeypatch: pytest.MonkeyPatch) -> None:
    vectors, _ = clustered(80, 1)
    index.replace("facts", rows_of(vectors[:70]))

    def refuse(*_: object) -> None:
        raise StoreError("the disk is full")

    with monkeypatch.context() as patch:
        patch.setattr(RowStore, "put", refuse)
        with pytest.raises(StoreError, match="full"):
            index.replace("facts", rows_of(vectors[70:], start=70))
    assert {hit.owner for hit in index.query("facts", vectors[75], 80)} == {f"o{at}" for at in range(70)}


@contextmanager
def asked_by_three(index: VectorIndex, vectors: Matrix, allowed: int) -> Generator[None]:
    """Have three threads ask meanwhile; each answer must be right and full, with and without a filter."""
    done = threading.Event()

    def ask() -> None:
        while not done.is_set():
            assert index.query("facts", vectors[7], 1)[0].owner == "o7"
            assert len(index.query("facts", vectors[9], 20, {f"o{at}" for at in range(allowed)})) == 20

    with ThreadPoolExecutor(3) as threads:
        asking = [threads.submit(ask) for _ in range(3)]
        try:
            yield
        finally:
            done.set()
        for one in asking:
            one.result()


@pytest.mark.parametrize("reopened", [False, True])
def test_queries_run_beside_the_first_rows_of_a_graph(tmp_path: Path, reopened: bool) -> None:
    vectors, _ = clustered(300, 1)
    for number in range(12):
        index = opened(tmp_path / f"{number}")
        index.replace("facts", rows_of(vectors))
        if reopened:
            index.close()
            index = opened(tmp_path / f"{number}")
        with asked_by_three(index, vectors, 250):
            while index.merge():
                pass
        index.close()


def test_queries_and_writes_run_beside_each_other(index: VectorIndex) -> None:
    vectors, _ = clustered(3000, 1)
    index.replace("facts", rows_of(vectors[:500]))
    with asked_by_three(index, vectors, 400):
        for at in range(500, 3000, 250):
            index.replace("facts", rows_of(vectors[at : at + 250], start=at))
            index.delete("facts", [f"o{at + 1}"])
            index.merge()
    assert index.count("facts") == 2990


def test_rows_go_while_queries_meet_them(index: VectorIndex) -> None:
    near, _ = clustered(2000, 1)
    index.replace("facts", rows_of(near))
    index.replace("facts", rows_of(-near[:1000], start=2000))
    while index.merge():
        pass
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
                while index.merge():
                    pass
                index.clear()
        finally:
            done.set()
        assert set().union(*(one.result() for one in asking)) == {0, 20}
