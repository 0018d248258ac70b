"""Stores for the tests of this folder: a server on each, a pool on the run's Neo4j, a group that nobody had before."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator

import pytest

from pps.core.ids import new_group
from pps.graph.neo4j import Neo4jPool, open_neo4j
from tests.integration.surfaces.serving import Served, neo4j_env, serving
from tests.neo4j_server import Neo4jServer


@pytest.fixture(scope="module", params=["embedded", pytest.param("neo4j", marks=pytest.mark.neo4j)])
def either(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A server on each store."""
    where = neo4j_env(request.getfixturevalue("neo4j_server")) if request.param == "neo4j" else {}
    with serving(tmp_path_factory.mktemp("either") / "home", **where) as served:
        yield served


@pytest.fixture
async def neo4j_pool(neo4j_server: Neo4jServer) -> AsyncIterator[Neo4jPool]:
    pool = await open_neo4j(neo4j_server.uri, neo4j_server.user, neo4j_server.password, neo4j_server.database)
    yield pool
    await pool.close()


@pytest.fixture
def group() -> str:
    return new_group()
