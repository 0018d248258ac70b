"""Many entities on one application cost what the open set allows: memory, threads and file descriptors stay flat.

``PPS_ENTITIES=300 .venv/bin/python -m pytest tests/acceptance/test_many_entities.py`` runs the long form.
"""

from __future__ import annotations

import gc
import os
from dataclasses import dataclass
from pathlib import Path

import psutil
import pytest

from pps.app import App
from pps.config import EmbedderSettings, ServerSettings, Settings

ENTITIES = int(os.environ.get("PPS_ENTITIES", "24"))
OPEN = 4


@dataclass(frozen=True, slots=True)
class Cost:
    """What the process holds; ``memory`` is its resident set in MB."""

    threads: int
    files: int
    memory: float


def cost() -> Cost:
    gc.collect()
    process = psutil.Process()
    return Cost(process.num_threads(), process.num_fds(), process.memory_info().rss / 1e6)


async def touch(app: App, name: str) -> None:
    async with app.memory(name) as memory:
        await memory.remember(f"{name} keeps a secret: {name}-canary.", source_ref="1")
        recalled = await memory.recall("who keeps a secret?")
        said = [hit.text for hit in recalled["episodes"]]
        assert len(said) == 1
        assert f"{name}-canary" in said[0]


@pytest.mark.timeout(1500)
async def test_entities_opened_in_turn_cost_no_more_than_the_open_set(tmp_path: Path) -> None:
    names = [f"entity_{number}" for number in range(ENTITIES)]
    settings = Settings(
        home=tmp_path / "home", embedder=EmbedderSettings(name="hash"), server=ServerSettings(open_entities=OPEN)
    )
    async with App.open(settings) as app:
        for name in names:
            await app.create(name)
            await touch(app, name)
        first = cost()
        for name in names:
            await touch(app, name)
            assert len(app.open_names()) <= OPEN
        second = cost()
    closed = cost()
    # Pools of threads fill up, and the C library keeps up to eight arenas a core; what must not be is a price for
    # each entity: the long form shows it, where 300 entities must fit into the same bound.
    assert second.threads <= first.threads + 12, (first, second)
    assert second.files <= first.files + 12, (first, second)
    assert second.memory <= first.memory * 1.5 + 150, (first, second)
    assert closed.files < second.files, (second, closed)
