"""The embedded store after a kill, a torn log, and on a full disk."""

from __future__ import annotations

import asyncio
import random
import subprocess
import sys
from pathlib import Path

import pytest

from pps.core.errors import StoreUnavailable
from pps.core.ids import new_group
from pps.core.values import GraphCounts
from pps.graph.ladybug import open_ladybug
from pps.graph.ladybug_connection import LadybugOptions
from pps.graph.store_embedded import EmbeddedStore
from tests.integration.graph_embedded.nodes import MIB, create, some_nodes
from tests.sampling import sized


async def killed_writer(path: Path, group: str, checkpoint_bytes: int, after_s: float) -> list[str]:
    """Let a process save facts and kill it; return the facts that it said were saved."""
    arguments = [
        sys.executable,
        "-m",
        "tests.integration.graph_writer",
        str(path),
        group,
        str(checkpoint_bytes),
    ]
    writer = await asyncio.create_subprocess_exec(*arguments, stdout=subprocess.PIPE)
    assert writer.stdout
    first = (await writer.stdout.readline()).decode()
    await asyncio.sleep(after_s)
    writer.kill()
    rest = (await writer.stdout.read()).decode()
    await writer.wait()
    return (first + rest[: rest.rfind("\n") + 1]).split()


@pytest.mark.parametrize("checkpoint_bytes", [64 * 1024, 16 * MIB])
async def test_what_was_acknowledged_is_there_after_a_kill(
    path: Path, checkpoint_bytes: int
) -> None:
    group = new_group()
    saved: list[str] = []
    for turn in range(sized(3, 6)):
        after_s = 0.05 + 0.15 * turn * random.random()  # noqa: S311 - when to kill, not a secret
        saved += await killed_writer(path, group, checkpoint_bytes, after_s)
        driver = await open_ladybug(path)
        store = EmbeddedStore(driver, group)
        found = await store.facts(saved)
        counts = await store.counts()
        await driver.close()
        assert [fact.uuid for fact in found] == saved
        assert counts.facts % 20 == 0, "half of a batch was saved"
        assert counts.nodes - counts.facts in range(20 * (turn + 1) + 1)


NOISES = [random.Random(seed).randbytes(999) for seed in (0, 50, 97, 23, 18)]  # noqa: S311 - not a secret


async def saved_log(path: Path, group: str) -> tuple[list[str], bytes]:
    """Save ten batches of nodes, and leave the file and its log as a kill right after the last one would."""
    driver = await open_ladybug(path)
    store = EmbeddedStore(driver, group)
    saved: list[str] = []
    for _ in range(10):
        nodes = some_nodes(20, size=10)
        await store.save_nodes(nodes, {})
        saved += [node.uuid for node in nodes]
    base = path.read_bytes()  # noqa: ASYNC240 - nothing else runs
    log = path.with_name("graph.lbug.wal").read_bytes()
    await driver.close()
    path.write_bytes(base)  # noqa: ASYNC240 - nothing else runs
    return saved, log


@pytest.mark.parametrize(
    ("kept", "tail", "lost"),
    [
        pytest.param(None, bytes(1_000), 0, id="zeros"),
        pytest.param(None, None, 0, id="part of an older record"),
        *(
            pytest.param(None, noise, 0, id=f"noise {number_}")
            for number_, noise in enumerate(NOISES)
        ),
        pytest.param(-1, b"", 20, id="cut by a byte"),
        pytest.param(-700, b"", 20, id="cut within a record"),
    ],
)
async def test_a_log_that_ends_in_a_torn_write_is_read_up_to_there_and_kept(
    path: Path, kept: int | None, tail: bytes | None, lost: int
) -> None:
    group = new_group()
    saved, log = await saved_log(path, group)
    torn = log[:kept] + (log[-700:-100] if tail is None else tail)
    path.with_name("graph.lbug.wal").write_bytes(torn)
    driver = await open_ladybug(path)
    store = EmbeddedStore(driver, group)
    expected = saved[: len(saved) - lost]
    assert [node.uuid for node in await store.nodes(saved)] == expected
    await store.save_nodes(some_nodes(5), {})
    await driver.close()
    driver = await open_ladybug(path)
    store = EmbeddedStore(driver, group)
    assert [node.uuid for node in await store.nodes(saved)] == expected
    assert (await store.counts()).nodes == len(expected) + 5
    await driver.close()
    assert path.with_name("graph.lbug.wal.damaged").read_bytes() == torn


async def test_nothing_is_written_to_a_disk_that_is_nearly_full(path: Path) -> None:
    driver = await open_ladybug(path, LadybugOptions(free_bytes=2**60))
    store = EmbeddedStore(driver, new_group())
    with pytest.raises(StoreUnavailable, match="nearly full"):
        await store.save_nodes(some_nodes(1), {})
    with pytest.raises(StoreUnavailable, match="nearly full"):
        await create(driver, "x")
    assert await store.counts() == GraphCounts(0, 0, 0, 0)
    await driver.close()
