"""What every test stands on: a clean environment, a home of its own, and one real Neo4j for the whole run."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import settings

from pps.config import EmbedderSettings, Neo4jSettings, Settings
from tests.neo4j_server import CannotStart, Neo4jServer, running_neo4j

if TYPE_CHECKING:
    from pps.app import App

_SETTINGS = ("PPS_", "NEO4J_", "OPENAI_", "ANTHROPIC_", "GEMINI_", "GOOGLE_", "GROQ_", "OLLAMA_", "GRAPHITI_", "XDG_")
_NEO4J_TIMEOUT_S = 600  # the first of them waits for the download and the start

settings.register_profile("pps", deadline=None)  # a busy machine is not a defect
settings.load_profile("pps")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.get_closest_marker("neo4j") and not item.get_closest_marker("timeout"):
            item.add_marker(pytest.mark.timeout(_NEO4J_TIMEOUT_S))


@pytest.fixture(autouse=True)
def clean_environment(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """No test sees the settings, the keys or the home folder of whoever runs it."""
    for name in os.environ:
        if name.startswith(_SETTINGS) and name != "GRAPHITI_TELEMETRY_ENABLED":
            monkeypatch.delenv(name)
    home = tmp_path_factory.mktemp("home")
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("PPS_HOME", str(home / "pps"))


@pytest.fixture(scope="session")
def neo4j_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Neo4jServer]:
    """One real Neo4j for all tests that ask for it; every test uses a group of its own on it."""
    try:
        with running_neo4j(tmp_path_factory.mktemp("neo4j")) as server:
            yield server
    except CannotStart as reason:
        pytest.fail(f"these tests need a real Neo4j: {reason}", pytrace=False)


@pytest.fixture(params=["embedded", pytest.param("neo4j", marks=pytest.mark.neo4j)])
def settings(request: pytest.FixtureRequest, tmp_path: Path) -> Settings:
    """Settings of a fresh data folder on each store, with the deterministic embedder."""
    found = Settings(home=tmp_path / "home", store=request.param, embedder=EmbedderSettings(name="hash"))
    if request.param == "embedded":
        return found
    server: Neo4jServer = request.getfixturevalue("neo4j_server")
    neo4j = Neo4jSettings(uri=server.uri, user=server.user, password=server.password, database=server.database)
    return found.model_copy(update={"neo4j": neo4j})


@pytest.fixture
async def app(settings: Settings) -> AsyncIterator[App]:
    """An open application on the settings of the test."""
    from pps.app import App

    async with App.open(settings) as opened:
        yield opened
