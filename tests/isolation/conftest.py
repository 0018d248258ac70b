"""Entities side by side on each store, with the same names and facts, and marks that only one may ever see."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager
from pathlib import Path

import pytest
import pytest_asyncio

from pps.app import App
from pps.config import Settings
from pps.memory import Memory
from pps.operations.calls import Calls
from pps.proof.arena import Arena, Watch
from pps.proof.verify import throw_away
from tests.conftest import STORES
from tests.isolation.house import NAMES, House, One, told
from tests.isolation.standing import renewed
from tests.neo4j_server import Neo4jServer
from tests.postgresql_server import PostgresqlServer


def on_neo4j(server: Neo4jServer, home: Path) -> Settings:
    """Settings of the one store where all entities live in one database."""
    at = {
        "uri": server.uri,
        "user": server.user,
        "password": server.password,
        "database": server.database,
    }
    return Settings.model_validate({"home": home, "store": "neo4j", "neo4j": at})


def on_postgresql(server: PostgresqlServer, home: Path) -> Settings:
    """Settings of the one store where all entities' rows lie in the same tables."""
    return Settings(home=home, store="postgresql", postgresql=server.settings)


@pytest.fixture(scope="module", params=STORES)
def module_settings(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Settings:
    """Settings of each store in turn, for all tests of a file."""
    home = tmp_path_factory.mktemp("isolation") / "home"
    if request.param == "postgresql":
        return on_postgresql(request.getfixturevalue("postgresql_server"), home)
    if request.param != "neo4j":
        return Settings(home=home, store=request.param)
    return on_neo4j(request.getfixturevalue("neo4j_server"), home)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def standing_arena(module_settings: Settings) -> AsyncIterator[Arena]:
    """Three entities for all tests of a file: opening them is most of what a test costs."""
    async with (
        throw_away(module_settings) as (folder, open_driver),
        Arena.open(folder, open_driver) as opened,
    ):
        yield opened


@pytest_asyncio.fixture(loop_scope="module")
async def arena(standing_arena: Arena) -> AsyncIterator[Arena]:
    """The file's three entities, each as it was planted, nothing refused yet."""
    async with renewed(standing_arena) as lent:
        yield lent


@pytest.fixture
def shared_settings(neo4j_server: Neo4jServer, tmp_path: Path) -> Settings:
    """Settings of the one store where all entities live in one database."""
    return on_neo4j(neo4j_server, tmp_path / "home")


@pytest.fixture
async def shared_arena(shared_settings: Settings) -> AsyncIterator[Arena]:
    """Three entities in one Neo4j database, made for the test alone."""
    async with (
        throw_away(shared_settings) as (folder, open_driver),
        Arena.open(folder, open_driver) as opened,
    ):
        yield opened


@pytest.fixture
async def house(app: App) -> AsyncIterator[House]:
    """Memories of one application, on each store, each told the same and a word of its own."""
    watch = Watch()
    lent: list[AbstractAsyncContextManager[Memory]] = []
    async with asyncio.timeout(120):
        for name in NAMES:
            created = await app.create(name, packs=["constitution"])
            assert created.entity.name == name
    ones: list[One] = []
    stack = [app.memory(name) for name in NAMES]
    for opened in stack:
        lent.append(opened)
        ones.append(await told(await opened.__aenter__(), watch))
    yield House(app, Calls(app), ones, watch)
    for opened in reversed(lent):
        await opened.__aexit__(None, None, None)
