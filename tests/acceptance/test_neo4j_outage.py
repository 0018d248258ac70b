"""Neo4j is stopped while turns come in, and started again: the memory goes on, and what is published catches up.

Until graphs were published, a memory on Neo4j had its graph there alone: turns waited, recall failed and /health was
red. Now only publishing waits, and health says so. The long form leaves it away for a minute.
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
def test_a_memory_goes_on_while_neo4j_is_away_and_publishes_afterwards(
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
        until(served, lambda: "up to date" in served.pps("publish", "ana", "neo4j").stdout)
        try:
            with telling(served) as told:
                stop_neo4j(server.data)
                gone_at = time.monotonic()
            until(served, lambda: idle(served))
            assert data(served, "ingestion_stats")["done"] == BEFORE + len(told)
            facts = facts_found(served)
            assert facts["hits"]
            assert "error" not in facts
            until(served, lambda: any("publishing waits" in one for one in reasons(served)))
            status, answer = health(served)
            assert status == 200, answer
            examined = served.pps("doctor", "ana").stdout
            assert "publishing waits" in examined
            refused = served.pps("recall", "ana", "Person3", "--profile", "EDGE_HYBRID_SEARCH_RRF")
            assert refused.returncode
            assert "behind" in refused.stdout + refused.stderr
            time.sleep(max(0.0, OUTAGE_S - (time.monotonic() - gone_at)))
        finally:
            start_neo4j(server.data, port=server.port, password=server.password)
        until(served, lambda: idle(served) and not reasons(served))
        all_told = BEFORE + len(told)
        counted = data(served, "stats")
        assert {counted[one] for one in ("turns", "episodes", "facts")} == {all_told}
        assert data(served, "ingestion_stats")["done"] == all_told
        examined = served.pps("doctor", "ana", "--json")
        assert examined.returncode == 0, examined.stdout
        ledger = served.link.call("doctor", "", {"entity": "ana"})["data"]["ledger"]
        compared = {one["what"] for one in ledger["agreements"]}
        assert {
            f"{kind} and published graph" for kind in ("nodes", "facts", "episodes")
        } <= compared
