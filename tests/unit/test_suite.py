"""What the suite counts on: what a file's tests set up is set up once, and there is one Neo4j."""

from __future__ import annotations

import pytest


def test_the_tests_of_a_file_run_on_one_side(request: pytest.FixtureRequest) -> None:
    """Without this pytest-xdist hands out each test alone, says nothing, and every side starts every server."""
    if hasattr(request.config, "workerinput"):
        assert request.node.nodeid.endswith(f"@{request.node.path.stem}")
