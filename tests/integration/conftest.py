"""Stores for the tests of this folder: a pool on the run's Neo4j, and a group that nobody had before."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from pps.core.ids import new_group
from pps.graph.neo4j import Neo4jPool, open_neo4j
from tests.neo4j_server import Neo4jServer


@pytest.fixture
async def neo4j_pool(neo4j_server: Neo4jServer) -> AsyncIterator[Neo4jPool]:
    pool = await open_neo4j(neo4j_server.uri, neo4j_server.user, neo4j_server.password, neo4j_server.database)
    yield pool
    await pool.close()


@pytest.fixture
def group() -> str:
    return new_group()
