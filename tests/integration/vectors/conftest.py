"""A vector index on a real Chroma for each test."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from pps.index.vectors import VectorIndex
from tests.integration.vectors.opening import opened


@pytest.fixture
def index(tmp_path: Path) -> Iterator[VectorIndex]:
    made = opened(tmp_path / "chroma")
    yield made
    made.close()
