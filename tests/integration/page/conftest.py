from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.chromium import Chromium, chromium
from tests.integration.interfaces.serving import Served, serving


@pytest.fixture(scope="module")
def browser() -> Iterator[Chromium]:
    with chromium() as browser:
        yield browser


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with serving(tmp_path_factory.mktemp("page") / "home") as served:
        yield served
