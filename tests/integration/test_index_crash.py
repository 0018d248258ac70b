"""A kill in the middle of writes: what was acknowledged is there, and the next opening works."""

from __future__ import annotations

import random
import subprocess
import sys
import time
from pathlib import Path

import pytest

from pps.index.vector_index import IN_MEMORY
from tests.sampling import sized

ROOT = Path(__file__).parents[2]


def program(task: str, folder: Path, start: int, in_memory: int) -> list[str]:
    return [sys.executable, "-m", "tests.index_killed", task, str(folder), str(start), str(in_memory)]


@pytest.mark.timeout(300)
@pytest.mark.parametrize("in_memory", [IN_MEMORY, 200])
def test_what_was_acknowledged_survives_being_killed_at_any_moment(tmp_path: Path, in_memory: int) -> None:
    acknowledged, chance = 0, random.Random(11)  # noqa: S311 - moments to kill at
    for _ in range(sized(2, 5)):
        writing = program("write", tmp_path, acknowledged, in_memory)
        writer = subprocess.Popen(writing, cwd=ROOT, stdout=subprocess.PIPE, text=True)
        assert writer.stdout is not None
        assert writer.stdout.readline() == "ready\n"
        time.sleep(chance.uniform(0.1, 1.5))
        writer.kill()
        said = writer.communicate()[0].split()
        acknowledged = int(said[-1]) if said else acknowledged
        checking = program("check", tmp_path, acknowledged, in_memory)
        checked = subprocess.run(checking, cwd=ROOT, capture_output=True, text=True, check=False, timeout=120)
        assert checked.returncode == 0, checked.stderr
    assert acknowledged > 0
