"""Each graph store in turn, on a database with room for several groups."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from pps.core.ids import new_group
from pps.graph.graph_store import GraphStore
from tests.graph_backend import Backend, EmbeddedBackend, Neo4jBackend


@pytest.fixture(params=["embedded", pytest.param("neo4j", marks=pytest.mark.neo4j)])
async def backend(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Backend]:
    if request.param == "embedded":
        opened: Backend = EmbeddedBackend(tmp_path / "graph.lbug")
    else:
        opened = Neo4jBackend(request.getfixturevalue("neo4j_server"))
    await opened.open()
    yield opened
    await opened.close()


@pytest.fixture
def store(backend: Backend) -> GraphStore:
    return backend.store(new_group())


@pytest.fixture
def other(backend: Backend) -> GraphStore:
    """Another group's graph on the same database."""
    return backend.store(new_group())
