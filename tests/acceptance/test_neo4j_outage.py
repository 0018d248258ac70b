"""Neo4j is stopped in the middle of ingestion and started again: nothing is lost, /health is red, then green.

The long form leaves it away for a minute.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Event, Thread
from typing import Any

import pytest

from tests.acceptance.outage import data, health, healthy, idle, reasons, until
from tests.integration.interfaces.serving import Served, serving
from tests.neo4j_server import Neo4jServer, start_neo4j, stop_neo4j
from tests.sampling import sized

OUTAGE_S = sized(2.0, 60.0)
BEFORE, MEANWHILE = 20, 40


def tell(served: Served, number: int) -> None:
    fact = {"subject": f"Person{number % 7}", "relation": "WENT_TO", "object": f"Place{number}"}
    told = {
        "content": f"Turn {number}.",
        "source_ref": f"t{number}",
        "facts": [fact],
        "wait": "journal",
    }
    assert data(served, "remember", **told)["state"] == "accepted"


def facts_found(served: Served) -> dict[str, Any]:
    return data(served, "recall", query="Where did Person3 go?")["channels"]["facts"]


@contextmanager
def telling(served: Served) -> Iterator[list[int]]:
    """Tell one turn after another all the while; lends the list of those that were acknowledged."""
    told: list[int] = []
    ended = Event()

    def go() -> None:
        while not ended.wait(0.02) or len(told) < MEANWHILE:
            tell(served, BEFORE + len(told))
            told.append(BEFORE + len(told))

    thread = Thread(target=go)
    thread.start()
    try:
        yield told
    finally:
        ended.set()
        thread.join()


@pytest.mark.neo4j
def test_a_server_that_is_stopped_and_started_again_costs_nothing(
    tmp_path: Path, neo4j_server: Neo4jServer
) -> None:
    server = neo4j_server
    env = {
        "PPS_STORE": "neo4j",
        "NEO4J_URI": server.uri,
        "NEO4J_USER": server.user,
        "NEO4J_PASSWORD": server.password,
        "NEO4J_DATABASE": server.database,
        "PPS_JOBS__FIRST_WAIT_S": "0.1",
        "PPS_JOBS__LONGEST_WAIT_S": "2",
        "PPS_JOBS__BREAKER_FAILURES": "1",
    }
    with serving(tmp_path / "home", **env) as served:
        served.create("ana")
        for number in range(BEFORE):
            tell(served, number)
        until(served, lambda: idle(served) and healthy(served))
        try:
            with telling(served) as told:
                stop_neo4j(server.data)
                gone_at = time.monotonic()
            stats = data(served, "ingestion_stats")
            assert stats["done"] >= BEFORE
            assert stats["queued"] + stats["running"] > 0
            until(served, lambda: not healthy(served))
            assert health(served) == (503, {"status": "failing"})
            assert any("the store failed" in one or "Neo4j" in one for one in reasons(served))
            assert facts_found(served)["error"]
            time.sleep(max(0.0, OUTAGE_S - (time.monotonic() - gone_at)))
            assert not healthy(served)
        finally:
            start_neo4j(server.data, port=server.port, password=server.password)
        until(served, lambda: idle(served) and healthy(served))
        all_told = BEFORE + len(told)
        counted = data(served, "stats")
        assert {counted[one] for one in ("turns", "episodes", "facts")} == {all_told}
        assert data(served, "ingestion_stats")["done"] == all_told
        facts = facts_found(served)
        assert facts["hits"]
        assert "error" not in facts
        examined = served.pps("doctor", "--json")
        assert examined.returncode == 0, examined.stdout
