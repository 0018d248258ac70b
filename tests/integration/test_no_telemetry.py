"""No library that PPS uses keeps an id of the machine or reports usage."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

SCRIPT = """
import asyncio, os, socket
from pathlib import Path

import pps
from pps.app import App
from pps.config import Settings

def refuse(self, address, *rest):
    if self.family != socket.AF_UNIX:
        raise AssertionError(f"something connects to {address}")
    return connect(self, address, *rest)

connect = socket.socket.connect
socket.socket.connect = refuse

async def main():
    async with App.open(Settings(home=Path(os.environ["HOME"]) / "pps")) as app:
        await app.create("ana")
        async with app.memory("ana") as memory:
            await memory.remember("Priya lives in Tarn.")
            assert (await memory.recall("Where does Priya live?"))["episodes"]

asyncio.run(main())
"""


def test_a_whole_run_with_the_real_model_leaves_nothing_but_its_data_folder_and_connects_nowhere(
    tmp_path: Path,
) -> None:
    env = {
        name: value
        for name, value in os.environ.items()
        if "TELEMETRY" not in name and name != "DO_NOT_TRACK"
    }
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT],
        env=env | {"HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["pps"]
