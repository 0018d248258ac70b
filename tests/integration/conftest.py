"""What tests of this folder stand on: a memory and a server on each store, a pool on the run's Neo4j, a new group."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from pps.app import App
from pps.core.ids import new_group
from pps.isolation.neo4j import Neo4jPool, open_neo4j
from pps.memory import Memory
from tests.chat_server import ChatServer, chat_server
from tests.integration.interfaces.serving import Served, neo4j_env, serving
from tests.integration.recall_scene import play
from tests.journal_place import FilePlace, JournalPlace, PostgresqlPlace
from tests.neo4j_server import Neo4jServer


@pytest.fixture
async def memory(app: App) -> AsyncIterator[Memory]:
    """The memory of a new entity, ``ana``, on each store."""
    await app.create("ana")
    async with app.memory("ana") as opened:
        yield opened


@pytest.fixture(params=["embedded", pytest.param("postgresql", marks=pytest.mark.postgresql)])
async def place(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[JournalPlace]:
    """A place for the journal of a new group, on each SQL store."""
    place: JournalPlace = (
        FilePlace(tmp_path)
        if request.param == "embedded"
        else PostgresqlPlace(request.getfixturevalue("postgresql_server"), tmp_path)
    )
    yield place
    await place.close()


@pytest.fixture
async def scene(memory: Memory) -> Memory:
    """The memory of ``recall_scene``, on each store."""
    await play(memory)
    return memory


@pytest.fixture(scope="module", params=["embedded", pytest.param("neo4j", marks=pytest.mark.neo4j)])
def either(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Served]:
    """A server on each store."""
    where = neo4j_env(request.getfixturevalue("neo4j_server")) if request.param == "neo4j" else {}
    with serving(tmp_path_factory.mktemp("either") / "home", **where) as served:
        yield served


@pytest.fixture
async def neo4j_pool(neo4j_server: Neo4jServer) -> AsyncIterator[Neo4jPool]:
    pool = await open_neo4j(
        neo4j_server.uri, neo4j_server.user, neo4j_server.password, neo4j_server.database
    )
    yield pool
    await pool.close()


@pytest.fixture
def chat() -> Iterator[ChatServer]:
    """A local server that speaks the protocols of chat models."""
    with chat_server() as chat:
        yield chat


@pytest.fixture
def group() -> str:
    return new_group()
