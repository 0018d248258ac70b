"""Entities side by side on each store, with the same names and facts, and marks that only one may ever see."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from pps.config import Settings
from pps.isolation.attacks.arena import Arena
from pps.isolation.proof import throw_away
from tests.neo4j_server import Neo4jServer


@pytest.fixture
async def arena(settings: Settings) -> AsyncIterator[Arena]:
    """Three entities on the store of the test."""
    async with throw_away(settings) as (folder, open_driver), Arena.open(folder, open_driver) as opened:
        yield opened


@pytest.fixture
def shared_settings(neo4j_server: Neo4jServer, tmp_path: Path) -> Settings:
    """Settings of the one store where all entities live in one database."""
    return Settings.model_validate(
        {
            "home": tmp_path / "home",
            "store": "neo4j",
            "neo4j": {
                "uri": neo4j_server.uri,
                "user": neo4j_server.user,
                "password": neo4j_server.password,
                "database": neo4j_server.database,
            },
        }
    )


@pytest.fixture
async def shared_arena(shared_settings: Settings) -> AsyncIterator[Arena]:
    """Three entities in one Neo4j database."""
    async with throw_away(shared_settings) as (folder, open_driver), Arena.open(folder, open_driver) as opened:
        yield opened
