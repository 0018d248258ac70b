"""A program that fills an entity's indexes until it is killed, and one that checks what is left.

Run as ``python -m tests.index_killed write|check FOLDER START IN_MEMORY``; ``write`` prints how many owners are
acknowledged after every batch. A collection of more than ``IN_MEMORY`` is built in Chroma.
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

import numpy as np

from pps.index.indexes import EntityIndexes, IndexDoc, IndexSettings
from pps.models.protocols import Vector
from tests.index_data import DIMENSION, FINGERPRINT, GROUP


def vector(at: int) -> Vector:
    found = np.random.default_rng(at).standard_normal(DIMENSION).astype(np.float32)
    return found / np.linalg.norm(found)


def doc(at: int) -> IndexDoc:
    return IndexDoc(
        "episode", f"o{at}", "episodes", f"zebra number{at}", vectors=vector(at).reshape(1, -1)
    )


async def opened(folder: Path, in_memory: int) -> EntityIndexes:
    kept = IndexSettings(vectors_in_memory=in_memory)
    return await EntityIndexes.open(folder, group=GROUP, fingerprint=FINGERPRINT, kept=kept)


async def write(folder: Path, start: int, in_memory: int) -> None:
    """Add batches of many sizes, index some owners anew, and drop others, without end."""
    indexes, random, at = await opened(folder, in_memory), np.random.default_rng(start), start
    print("ready", flush=True)  # noqa: T201 - read by the test
    while True:
        count = int(random.integers(1, 600))
        older = [doc(int(one)) for one in random.integers(0, at, 3)] if at else []
        await indexes.apply(
            [*map(doc, range(at, at + count)), *older], [("episodes", f"dropped{at}")]
        )
        await indexes.apply(
            [IndexDoc("episode", f"dropped{at}", "episodes", "gone", vectors=vector(at)[None])]
        )
        at += count
        print(at, flush=True)  # noqa: T201 - read by the test


async def check(folder: Path, acknowledged: int, in_memory: int) -> None:
    """Fail unless every acknowledged owner is there in both indexes and found."""
    indexes = await opened(folder, in_memory)
    held, text = await indexes.owners("episodes")
    wanted = {f"o{at}" for at in range(acknowledged)}
    assert held is not None
    assert not wanted - held, f"{len(wanted - held)} of {acknowledged} have no vector"
    assert not wanted - text, f"{len(wanted - text)} of {acknowledged} have no text"
    for at in {
        *range(0, acknowledged, max(1, acknowledged // 100)),
        *range(max(0, acknowledged - 20), acknowledged),
    }:
        hits = await indexes.vector_search("episodes", vector(at), 2)
        assert f"o{at}" in {hit.owner for hit in hits if hit.similarity > 0.999}, (
            f"o{at} is not found by its vector"
        )
        assert (await indexes.text_search("episodes", f"number{at}", 1))[0].owner == f"o{at}"
    await indexes.close()


if __name__ == "__main__":
    asyncio.run(
        {"write": write, "check": check}[sys.argv[1]](Path(sys.argv[2]), *map(int, sys.argv[3:5]))
    )
