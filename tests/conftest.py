"""What every test stands on: a clean environment, a home of its own, and a real Neo4j for those that ask for it."""

from __future__ import annotations

import gc
import itertools
import os
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck
from hypothesis import settings as hypothesis_settings
from pydantic import SecretStr

# It makes the first import of graphiti_core silent.
import pps.isolation  # noqa: F401  # pyright: ignore[reportUnusedImport]
from pps.config import EmbedderSettings, Neo4jSettings, Settings
from tests.neo4j_server import CannotStart, Neo4jServer, running_neo4j
from tests.postgresql_server import CannotStart as NoPostgresql
from tests.postgresql_server import PostgresqlServer, running_postgresql
from tests.sampling import LONG, sized

if TYPE_CHECKING:
    from pps.app import App

_SETTINGS = (
    "PPS_",
    "NEO4J_",
    "OPENAI_",
    "ANTHROPIC_",
    "GEMINI_",
    "GOOGLE_",
    "GROQ_",
    "OLLAMA_",
    "GRAPHITI_",
    "XDG_",
)
_NEO4J_TIMEOUT_S = 600  # the first of them waits for the download and the start
gc.disable()  # until all tests are collected: it would look through every library a dozen times
# A busy machine is not a defect, and what a run tries is the same each time: the long form looks further.
hypothesis_settings.register_profile(
    "pps",
    deadline=None,
    max_examples=sized(30, 100),
    derandomize=not LONG,
    suppress_health_check=[HealthCheck.too_slow],
)
hypothesis_settings.load_profile("pps")

_LONGEST_ID = 200
_HERE = Path(__file__).parent
_ON_BOTH_STORES = ("test_memory", "test_merging")
"""Of the integration suite: what is told, found, changed, forgotten and merged, on Neo4j too. Every other operation
takes one path there in test_mcp_neo4j, forgetting softly, versions, records and sharing in the kills and the flows of
the acceptance suite, filters and walks in the isolation and contract suites. The other files are about what lies above
the store, whose contract, isolation and acceptance suites run on both; the long form runs these on both as well."""


_ALSO_ON_POSTGRESQL = (
    "acceptance/test_moving.py",
    "integration/page/test_page_rooms.py",
    "integration/test_journal_jobs.py",
    "integration/test_journal_links.py",
    "integration/test_journal_mirror.py",
    "integration/test_journal_transactions.py",
    "integration/test_journal_turns.py",
    "integration/test_memory.py",
    "integration/test_titled_records.py",
    "isolation/test_proof.py",
)
"""Files whose parameter ``postgresql`` the short form runs too, beside the contract of stores. The long form runs all:
the statements and the code above them are those of the embedded store."""


def pytest_make_parametrize_id(val: object, argname: str) -> str | None:
    """Name a long text by its length: each side sends all names, and a test's stands in the environment."""
    if isinstance(val, str | bytes) and len(val) > _LONGEST_ID:
        return f"{argname} of {len(val)}"
    return None


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what only the long form runs; say which tests share what they set up, on one side of the run.

    Those on Neo4j come first, then the folders in the order of their names: no side waits for a long test at the end.
    """
    if not LONG:
        config.hook.pytest_deselected(
            items=[item for item in items if _only_in_the_long_form(item)]
        )
        items[:] = [item for item in items if not _only_in_the_long_form(item)]
    items.sort(key=_is_embedded)
    for item in items:
        item.add_marker(pytest.mark.xdist_group(_side(item)))
        if not _is_embedded(item) and not item.get_closest_marker("timeout"):
            item.add_marker(pytest.mark.timeout(_NEO4J_TIMEOUT_S))


def _is_embedded(item: pytest.Item) -> bool:
    return (
        item.get_closest_marker("neo4j") is None and item.get_closest_marker("postgresql") is None
    )


def _side(item: pytest.Item) -> str:
    """Return which tests stay together: of a file, all that load torch, on Neo4j the isolation suite and the rest.

    A PostgreSQL server starts in seconds: each side of the run has its own.
    """
    if item.get_closest_marker("postgresql"):
        return f"{item.path.stem} on postgresql"
    if _is_embedded(item):
        return "torch" if item.get_closest_marker("torch") else item.path.stem
    return "neo4j isolation" if item.path.is_relative_to(_HERE / "isolation") else "neo4j"


def _only_in_the_long_form(item: pytest.Item) -> bool:
    if _has_parameter(item, "postgresql"):
        if item.path.parent.name == "graph_store":
            return False
        return str(item.path.relative_to(_HERE)) not in _ALSO_ON_POSTGRESQL
    by_parameter = _has_parameter(item, "neo4j")
    integration = (
        item.path.is_relative_to(_HERE / "integration") and item.path.parent.name != "graph_store"
    )
    if integration and item.path.stem.startswith("test_bench_"):
        return True  # whole benchmarks; their parts are tested in tests/unit, their isolation in tests/isolation
    measuring = item.path.stem == "test_bench"
    above = integration and item.path.stem not in _ON_BOTH_STORES
    return by_parameter and (
        measuring or above or item.get_closest_marker("beside_the_graph") is not None
    )


def _has_parameter(item: pytest.Item, value: str) -> bool:
    parameters = getattr(getattr(item, "callspec", None), "params", {}).values()
    return any(isinstance(one, str) and one == value for one in parameters)


@pytest.hookimpl(tryfirst=True)
def pytest_runtestloop() -> None:
    """Let the garbage collector pass over the libraries and the tests, which stay for good."""
    gc.freeze()
    gc.enable()


@pytest.fixture(scope="session")
def homes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Folders that are not there yet; pytest's own way looks through all there are for the next number."""
    folder = tmp_path_factory.mktemp("homes")
    return (folder / str(number) for number in itertools.count())


@pytest.fixture(autouse=True)
def clean_environment(homes: Iterator[Path], monkeypatch: pytest.MonkeyPatch) -> None:
    """No test sees the settings, the keys or the home folder of whoever runs it."""
    for name in os.environ:
        if name.startswith(_SETTINGS) and name != "GRAPHITI_TELEMETRY_ENABLED":
            monkeypatch.delenv(name)
    home = next(homes)
    home.mkdir(mode=0o700)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("PPS_HOME", str(home / "pps"))


@pytest.fixture(scope="session")
def neo4j_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Neo4jServer]:
    """One real Neo4j for all tests of a side that ask for it; every test uses a group of its own on it."""
    try:
        with running_neo4j(tmp_path_factory.mktemp("neo4j")) as server:
            yield server
    except CannotStart as reason:
        pytest.fail(f"these tests need a real Neo4j: {reason}", pytrace=False)


@pytest.fixture(scope="session")
def postgresql_server() -> Iterator[PostgresqlServer]:
    """One real PostgreSQL for all tests of a side that ask for it; every entity has a group of its own on it."""
    try:
        with running_postgresql() as server:
            yield server
    except NoPostgresql as reason:
        pytest.fail(f"these tests need a real PostgreSQL: {reason}", pytrace=False)


STORES = (
    "embedded",
    pytest.param("postgresql", marks=pytest.mark.postgresql),
    pytest.param("neo4j", marks=pytest.mark.neo4j),
)
IN_FILES = (STORES[0], STORES[2])
"""The stores whose memories are files of their own."""


@pytest.fixture(params=STORES)
def settings(request: pytest.FixtureRequest, tmp_path: Path) -> Settings:
    """Settings of a fresh data folder on each store, with the deterministic embedder."""
    found = Settings(
        home=tmp_path / "home", store=request.param, embedder=EmbedderSettings(name="hash")
    )
    if request.param == "postgresql":
        postgresql: PostgresqlServer = request.getfixturevalue("postgresql_server")
        return found.model_copy(update={"postgresql": postgresql.settings})
    if request.param != "neo4j":
        return found
    server: Neo4jServer = request.getfixturevalue("neo4j_server")
    neo4j = Neo4jSettings(
        uri=server.uri,
        user=server.user,
        password=SecretStr(server.password),
        database=server.database,
    )
    return found.model_copy(update={"neo4j": neo4j})


@pytest.fixture
async def app(settings: Settings) -> AsyncIterator[App]:
    """An open application on the settings of the test."""
    from pps.app import App

    async with App.open(settings) as opened:
        yield opened
