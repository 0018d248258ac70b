from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from pps.server import stop
from tests.integration.interfaces.serving import Served, clean_env, serving


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with serving(tmp_path_factory.mktemp("served") / "home") as served:
        yield served


@pytest.fixture
def alone(tmp_path: Path) -> Iterator[dict[str, str]]:
    """The environment of a data folder without a server; whatever was started there is ended."""
    home = tmp_path / "home"
    yield clean_env(home, PPS_SERVER__IDLE_STOP_S="60")
    stop(home)
