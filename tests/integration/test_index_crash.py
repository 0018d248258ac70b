"""A kill in the middle of writes: what was acknowledged is there, and the next opening works."""

from __future__ import annotations

import random
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

from pps.index.vector_index import IN_MEMORY, VectorRow
from tests.index_data import clustered, rows_of
from tests.integration.vectors.opening import closed_with, in_chroma, opened, wait_built
from tests.sampling import sized

ROOT = Path(__file__).parents[2]


def program(task: str, folder: Path, start: int, in_memory: int) -> list[str]:
    return [
        sys.executable,
        "-m",
        "tests.index_killed",
        task,
        str(folder),
        str(start),
        str(in_memory),
    ]


@pytest.mark.timeout(300)
@pytest.mark.parametrize("in_memory", [IN_MEMORY, 200])
def test_what_was_acknowledged_survives_being_killed_at_any_moment(
    tmp_path: Path, in_memory: int
) -> None:
    acknowledged, chance = 0, random.Random(11)  # noqa: S311 - moments to kill at
    for _ in range(sized(2, 5)):
        writing = program("write", tmp_path, acknowledged, in_memory)
        writer = subprocess.Popen(writing, cwd=ROOT, stdout=subprocess.PIPE, text=True)
        assert writer.stdout is not None
        assert writer.stdout.readline() == "ready\n"
        if not acknowledged:
            acknowledged = int(writer.stdout.readline())
        time.sleep(chance.uniform(0.0, 1.5))
        writer.kill()
        said = writer.communicate()[0].split()
        acknowledged = int(said[-1]) if said else acknowledged
        checking = program("check", tmp_path, acknowledged, in_memory)
        checked = subprocess.run(
            checking, cwd=ROOT, capture_output=True, text=True, check=False, timeout=120
        )
        assert checked.returncode == 0, checked.stderr
    assert acknowledged > 0


KILLED_AT = """
import os, sys
from pathlib import Path
import numpy as np
from pps.index.chroma import ChromaCollection
from pps.index.vector_rows import VectorRow
from tests.integration.vectors.opening import opened

folder, what = Path(sys.argv[1]), sys.argv[2]
index = opened(folder, in_memory=0)
assert index.is_built("facts"), "whole when it was left"
setattr(ChromaCollection, "erase" if what == "clear" else "put", lambda *_: os._exit(9))
if what == "put":
    index.replace("facts", [VectorRow("new", 0, np.load(folder / "new.npy"))])
elif what == "delete":
    index.delete("facts", ["o3"])
else:
    index.clear()
"""


@pytest.mark.parametrize("what", ["put", "delete", "clear"])
def test_a_kill_between_the_rows_and_chroma_leaves_chroma_no_other_truth(
    tmp_path: Path, what: str
) -> None:
    vectors, (new, *_) = clustered(100, 2)
    closed_with(tmp_path, vectors)
    np.save(tmp_path / "new.npy", new)
    killed = subprocess.run(
        [sys.executable, "-c", KILLED_AT, str(tmp_path), what], cwd=ROOT, check=False, timeout=120
    )
    assert killed.returncode == 9
    index = opened(tmp_path, in_memory=0)
    with closing(index):
        if what == "put":
            index.replace("facts", [VectorRow("new", 0, new)])  # the log tells it again
        elif what == "delete":
            index.delete("facts", ["o3"])
        else:
            assert index.query("facts", new, 5) == []
            assert in_chroma(tmp_path) == 0
            index.replace("facts", rows_of(vectors[:80]))
        wait_built(index)
        owners = [
            hit.owner for hit in index.query("facts", new if what == "put" else vectors[3], 1)
        ]
        nearest = {"put": ["new"], "clear": ["o3"]}
        assert owners == nearest[what] if what in nearest else "o3" not in owners
