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
from tests.sampling import LONG, sized

if TYPE_CHECKING:
    from pps.app import App

_SETTINGS = ("PPS_", "NEO4J_", "OPENAI_", "ANTHROPIC_", "GEMINI_", "GOOGLE_", "GROQ_", "OLLAMA_", "GRAPHITI_", "XDG_")
_NEO4J_TIMEOUT_S = 600  # the first of them waits for the download and the start

settings.register_profile("pps", deadline=None, max_examples=sized(30, 100))  # a busy machine is not a defect
settings.load_profile("pps")

_HERE = Path(__file__).parent
_ON_BOTH_STORES = (
    "test_memory",
    "test_recall_filters",
    "test_merging",
    "test_versions",
    "test_neighbours",
    "test_app",
    "test_typed_records",
    "test_squad_sharing",
    "test_recycle_bin",
    "test_injecting",
)
"""Of the integration suite: what every operation does on Neo4j too, once. The other files are about what lies above
the store, whose contract, isolation and acceptance suites run on both; the long form runs these on both as well."""


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what only the long form runs; let the tests on Neo4j share one server, and those of a file a side.

    Theirs come first, then the folders in the order of their names: no side waits for a long test at the end.
    """
    if not LONG:
        config.hook.pytest_deselected(items=[item for item in items if _only_in_the_long_form(item)])
        items[:] = [item for item in items if not _only_in_the_long_form(item)]
    items.sort(key=_is_embedded)
    for item in items:
        item.add_marker(pytest.mark.xdist_group(item.path.stem if _is_embedded(item) else "neo4j"))
        if not _is_embedded(item) and not item.get_closest_marker("timeout"):
            item.add_marker(pytest.mark.timeout(_NEO4J_TIMEOUT_S))


def _is_embedded(item: pytest.Item) -> bool:
    return item.get_closest_marker("neo4j") is None


def _only_in_the_long_form(item: pytest.Item) -> bool:
    by_parameter = any(
        isinstance(one, str) and one == "neo4j"
        for one in getattr(getattr(item, "callspec", None), "params", {}).values()
    )
    integration = item.path.is_relative_to(_HERE / "integration") and item.path.parent.name != "graph_store"
    measuring = item.path.stem == "test_bench"
    return by_parameter and (measuring or (integration and item.path.stem not in _ON_BOTH_STORES))


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
