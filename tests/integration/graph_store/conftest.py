"""Each graph store in turn, with room for several groups."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from pps.core.ids import new_group
from pps.graph.graph_store import GraphStore
from tests.conftest import STORES
from tests.graph_backend import Backend, Neo4jBackend, PostgresqlBackend, SqlBackend


@pytest.fixture(params=STORES)
async def backend(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Backend]:
    opened: Backend
    if request.param == "embedded":
        opened = SqlBackend(tmp_path)
    elif request.param == "postgresql":
        opened = PostgresqlBackend(request.getfixturevalue("postgresql_server"), tmp_path)
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
    """Another group's graph on the same store."""
    return backend.store(new_group())
