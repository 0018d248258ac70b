"""Nothing of the process's memory, which holds the words of every open entity, is saved in the files of one of them."""

from __future__ import annotations

import sqlite3
import struct
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.index_data import clustered, rows_of
from tests.integration.vectors.opening import closed_with, opened, wait_built


def rooms(folder: Path) -> Iterator[tuple[str, bytes]]:
    """Yield what each graph's files hold behind their last row."""
    for header in folder.glob("chroma/*/*/header.bin"):
        _, _, _, rows, width = struct.unpack_from("<IQQQQ", header.read_bytes())
        yield "length.bin", header.with_name("length.bin").read_bytes()[rows * 4 :]
        yield "data_level0.bin", header.with_name("data_level0.bin").read_bytes()[rows * width :]


@pytest.mark.parametrize("count", [1, 5, 990, 2_300])
def test_behind_the_last_row_of_a_graph_are_zeros(tmp_path: Path, count: int) -> None:
    rows = rows_of(clustered(count, 1)[0])
    index = opened(tmp_path, in_memory=0)
    for collection in ("facts", "nodes"):
        index.replace(collection, rows)
        wait_built(index, collection)
        theirs = [
            "the words of another entity " * 20 for _ in range(500)
        ]  # and memory that is free again
        del theirs
        index.delete(collection, [rows[0].owner])
        assert not b"".join(rest for _, rest in rooms(tmp_path)).strip(b"\0")
    index.close()
    assert {name for name, _ in rooms(tmp_path)} == {"length.bin", "data_level0.bin"}
    assert not b"".join(rest for _, rest in rooms(tmp_path)).strip(b"\0")


def test_what_a_crash_left_behind_the_last_row_is_gone_when_the_index_is_open_again(
    tmp_path: Path,
) -> None:
    vectors, queries = clustered(40, 1)
    closed_with(tmp_path, vectors)
    with sqlite3.connect(tmp_path / "vectors.db") as db:
        db.execute("DELETE FROM marks WHERE key = 'whole facts'")  # as of a process that was killed
    db.close()
    words = b"the words of another entity".ljust(64, b"!")
    for lengths in tmp_path.glob("chroma/*/*/length.bin"):
        lengths.write_bytes(lengths.read_bytes()[:-64] + words)
    index = opened(tmp_path)
    assert not any(words in file.read_bytes() for file in tmp_path.rglob("*") if file.is_file())
    assert len(index.query("facts", queries[0], 40)) == 40
    index.close()


def test_a_save_that_no_clock_tells_from_the_one_before_is_found_at_the_latest_when_the_index_is_closed(
    tmp_path: Path,
) -> None:
    rows = rows_of(clustered(40, 1)[0])
    index = opened(tmp_path, in_memory=0)
    index.replace("facts", rows)
    wait_built(index)
    (lengths,) = tmp_path.glob("chroma/*/*/length.bin")
    lengths.write_bytes(lengths.read_bytes()[:-64] + b"the words of another entity".ljust(64, b"!"))
    index.close()
    assert not b"".join(rest for _, rest in rooms(tmp_path)).strip(b"\0")
