"""The vector index's folder: whose it is, open once, no text in it, mended where it is broken."""

from __future__ import annotations

import logging
import shutil
import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest

from pps.core.errors import ConfigError, IsolationError, StoreConflict, StoreError
from pps.index.chroma import listing
from pps.models.protocols import Fingerprint
from tests.index_data import DIMENSION, GROUP, OTHER_GROUP, clustered, rows_of
from tests.integration.vectors.opening import closed_with, opened, wait_built


def test_another_entitys_folder_is_refused(tmp_path: Path) -> None:
    opened(tmp_path).close()
    with pytest.raises(IsolationError):
        opened(tmp_path, group=OTHER_GROUP)
    opened(tmp_path).close()


def test_another_entitys_chroma_files_are_never_searched(tmp_path: Path) -> None:
    vectors, _ = clustered(10, 1)
    for name, group, some in (("mine", GROUP, vectors[:5]), ("theirs", OTHER_GROUP, vectors[5:])):
        made = opened(tmp_path / name, group=group, in_memory=0)
        made.replace("facts", rows_of(some))
        wait_built(made)
        made.close()
    shutil.rmtree(tmp_path / "mine" / "chroma")
    shutil.copytree(tmp_path / "theirs" / "chroma", tmp_path / "mine" / "chroma")
    with sqlite3.connect(
        tmp_path / "mine" / "vectors.db"
    ) as db:  # not even when they are said to be one's own
        listed = db.execute(
            "UPDATE marks SET value = ? WHERE key = 'whole facts'", (files(tmp_path / "mine"),)
        )
        assert listed.rowcount == 1
    db.close()
    with pytest.raises(IsolationError):
        opened(tmp_path / "mine", in_memory=0)
    with sqlite3.connect(tmp_path / "mine" / "vectors.db") as db:
        db.execute("DELETE FROM marks WHERE key = 'whole facts'")
    db.close()
    mine = opened(tmp_path / "mine", in_memory=0)
    wait_built(mine)
    assert mine.query("facts", vectors[2], 9)[0].owner == "o2"
    mine.close()


def files(folder: Path) -> str:
    return listing(folder / "chroma" / "facts")


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
    closed_with(tmp_path, clustered(1, 1)[0])
    with sqlite3.connect(tmp_path / "chroma" / "facts" / "chroma.sqlite3") as db:
        held = dict(
            db.execute(
                "SELECT key, coalesce(str_value, int_value, bool_value) FROM collection_metadata"
            )
        )
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
    index = opened(tmp_path, in_memory=0)
    assert index.is_built("facts")
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
    assert {hit.owner for hit in ana.query("facts", vectors[30], 50)} == {
        f"o{at}" for at in range(20)
    }
    assert {hit.owner for hit in ben.query("facts", vectors[0], 50)} == {
        f"o{at}" for at in range(100, 120)
    }
    ana.clear()
    assert ben.count("facts") == 20
    ana.close()
    assert ben.query("facts", vectors[20], 1)[0].owner == "o100"
    ben.close()


def test_no_text_reaches_chromas_files(tmp_path: Path) -> None:
    closed_with(tmp_path, clustered(3, 1)[0])
    db = sqlite3.connect(tmp_path / "chroma" / "facts" / "chroma.sqlite3")
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


def lost_database(folder: Path) -> None:
    (folder / "chroma.sqlite3").unlink()


def lost_chroma(folder: Path) -> None:
    lost_graph(folder)
    lost_database(folder)


@pytest.mark.parametrize(
    "damage", [damaged_database, cut_database, lost_database, cut_graph, lost_graph, lost_chroma]
)
def test_what_is_broken_of_chroma_is_made_again_from_the_rows(
    tmp_path: Path, damage: Callable[[Path], None], caplog: pytest.LogCaptureFixture
) -> None:
    vectors, _ = clustered(1500, 1)
    closed_with(tmp_path, vectors)
    damage(tmp_path / "chroma" / "facts")
    with caplog.at_level(logging.WARNING):
        again = opened(tmp_path, in_memory=0)
    assert "again from its rows" in caplog.text
    wait_built(again)
    assert [again.query("facts", vectors[at], 1)[0].owner for at in range(0, 1500, 100)] == [
        f"o{at}" for at in range(0, 1500, 100)
    ]
    again.close()
    assert opened_again_quietly(tmp_path, caplog)


def opened_again_quietly(folder: Path, caplog: pytest.LogCaptureFixture) -> bool:
    caplog.clear()
    opened(folder, in_memory=0).close()
    return caplog.text == ""


def test_rows_that_cannot_be_read_are_an_error_that_names_reindex(tmp_path: Path) -> None:
    opened(tmp_path).close()
    (tmp_path / "vectors.db").write_bytes(b"not a database" * 500)
    for _ in range(2):
        with pytest.raises(StoreError, match="pps reindex"):
            opened(tmp_path)
    (tmp_path / "vectors.db").unlink()
    opened(tmp_path).close()


def test_a_folder_that_is_a_file_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "chroma").write_text("")
    with pytest.raises(StoreError):
        opened(tmp_path / "chroma")
