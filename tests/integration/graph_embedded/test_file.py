"""The embedded store's file: open once, opened again, refused, given back."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from pathlib import Path

import pytest

from pps.core.errors import StoreConflict, StoreError, StoreUnavailable
from pps.core.ids import new_group
from pps.graph.ladybug import LadybugDriver, open_ladybug
from pps.graph.store_embedded import EmbeddedStore
from tests.integration.graph_embedded.nodes import create, number, some_nodes


async def test_a_file_is_open_once_in_a_process(driver: LadybugDriver, path: Path) -> None:
    with pytest.raises(StoreConflict, match=str(os.getpid())):
        await open_ladybug(path)
    assert await number(driver) == 0


async def test_a_file_is_open_once_on_a_machine(driver: LadybugDriver, path: Path) -> None:
    code = (
        "import asyncio, pathlib, sys; from pps.graph.ladybug import open_ladybug; "
        "asyncio.run(open_ladybug(pathlib.Path(sys.argv[1])))"
    )
    done = await asyncio.to_thread(
        subprocess.run,
        [sys.executable, "-c", code, str(path)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert f"StoreConflict: {path} is held by process {os.getpid()}" in done.stderr


async def test_a_closed_file_can_be_opened_again_at_once(path: Path) -> None:
    for turn in range(3):
        driver = await open_ladybug(path)
        assert await number(driver) == turn
        await create(driver, str(turn))
        await driver.close()
        await driver.close()
        with pytest.raises(StoreUnavailable):
            await number(driver)
        with pytest.raises(StoreUnavailable):
            await create(driver, "x")
        with pytest.raises(StoreUnavailable):
            async with driver.transaction():
                pass


FIRST_OPENINGS = """
import asyncio, sys, time
from pathlib import Path
from ladybug import _backend
from pps.graph.ladybug_connection import LadybugOptions
from pps.graph.ladybug_pool import LadybugPool

load = _backend._import_pybind_module

def slowly():
    time.sleep(0.5)
    return load()

async def main():
    _backend._import_pybind_module = slowly
    folder = Path(sys.argv[1])
    for pool in await asyncio.gather(*(LadybugPool.open(folder / f"{n}.lbug", LadybugOptions()) for n in range(4))):
        await pool.close()

asyncio.run(main())
"""


def test_the_first_files_of_a_process_may_be_opened_side_by_side(tmp_path: Path) -> None:
    """LadybugDB's library is being loaded for the first when the others come."""
    ended = subprocess.run(
        [sys.executable, "-c", FIRST_OPENINGS, str(tmp_path)], capture_output=True, text=True
    )
    assert ended.returncode == 0, ended.stderr


async def test_what_is_no_database_is_refused_and_left_as_it_is(path: Path, tmp_path: Path) -> None:
    path.write_bytes(b"something else" * 1000)  # noqa: ASYNC240 - nothing else runs
    for _ in range(2):
        with pytest.raises(StoreError) as caught:
            await open_ladybug(path)
        assert not isinstance(caught.value, StoreConflict)
    assert path.read_bytes() == b"something else" * 1000  # noqa: ASYNC240 - nothing else runs
    with pytest.raises(StoreUnavailable):
        await open_ladybug(tmp_path / "absent" / "graph.lbug")


async def test_opening_and_closing_gives_everything_back(tmp_path: Path) -> None:
    def held() -> tuple[int, int]:
        return len(list(Path("/proc/self/task").iterdir())), len(
            list(Path("/proc/self/fd").iterdir())
        )

    async def use(turn: int) -> None:
        driver = await open_ladybug(tmp_path / f"{turn}.lbug")
        await EmbeddedStore(driver, new_group()).save_nodes(some_nodes(50), {})
        await driver.close()

    for turn in range(3):
        await use(turn)
    threads, files = held()
    for turn in range(3, 33):
        await use(turn)
    assert held()[0] <= threads + 2  # Arrow starts some of its own when it likes
    assert held()[1] == files


async def test_forty_files_are_open_at_once(tmp_path: Path) -> None:
    drivers = [await open_ladybug(tmp_path / f"{turn}.lbug") for turn in range(40)]
    await asyncio.gather(*(create(driver, "x") for driver in drivers))
    assert [await number(driver) for driver in drivers] == [1] * 40
    for driver in drivers:
        await driver.close()
