"""A database of the embedded store for each test."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from pps.core.ids import new_group
from pps.graph.ladybug import LadybugDriver, open_ladybug
from pps.graph.store_embedded import EmbeddedStore


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "graph.lbug"


@pytest.fixture
async def driver(path: Path) -> AsyncIterator[LadybugDriver]:
    opened = await open_ladybug(path)
    yield opened
    await opened.close()


@pytest.fixture
def store(driver: LadybugDriver) -> EmbeddedStore:
    return EmbeddedStore(driver, new_group())
