"""A vector index for each test, scanned in memory and in a real Chroma."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from pps.index.vector_index import IN_MEMORY, VectorIndex
from tests.integration.vectors.opening import opened


@pytest.fixture(params=[IN_MEMORY, 0], ids=["in memory", "in Chroma"])
def index(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[VectorIndex]:
    """Searched in one of the two ways; Chroma's is built while the test goes on."""
    made = opened(tmp_path / "data", in_memory=request.param)
    yield made
    made.close()
