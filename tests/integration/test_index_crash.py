"""A kill in the middle of writes: what was acknowledged is there, and the next opening works."""

from __future__ import annotations

import random
import subprocess
import sys
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def program(task: str, folder: Path, start: int) -> list[str]:
    return [sys.executable, "-m", "tests.index_killed", task, str(folder), str(start)]


@pytest.mark.timeout(300)
def test_what_was_acknowledged_survives_being_killed_at_any_moment(tmp_path: Path) -> None:
    acknowledged, chance = 0, random.Random(11)  # noqa: S311 - moments to kill at
    for _ in range(5):
        writer = subprocess.Popen(program("write", tmp_path, acknowledged), cwd=ROOT, stdout=subprocess.PIPE, text=True)
        assert writer.stdout is not None
        assert writer.stdout.readline() == "ready\n"
        time.sleep(chance.uniform(0.1, 1.5))
        writer.kill()
        said = writer.communicate()[0].split()
        acknowledged = int(said[-1]) if said else acknowledged
        checked = subprocess.run(
            program("check", tmp_path, acknowledged), cwd=ROOT, capture_output=True, text=True, check=False, timeout=120
        )
        assert checked.returncode == 0, checked.stderr
    assert acknowledged > 0
