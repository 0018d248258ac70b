"""The model server goes away, talks nonsense and is slow while turns come in: nothing is lost, red, then green.

The server, its clients and the local HTTP server that speaks the models' protocol are processes and sockets of
their own; the same model server embeds and reads.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import pytest

from pps.core.errors import Overloaded
from tests.acceptance.outage import asked, data, embedding, healthy, idle, reading, until
from tests.integration.interfaces.serving import Served, serving
from tests.model_server import ModelServer, model_server

BOUND = 3


@pytest.fixture
def model() -> Iterator[ModelServer]:
    with model_server(retry_after="0") as running:
        yield running


@pytest.fixture
def served(tmp_path: Path, model: ModelServer) -> Iterator[Served]:
    settings = {
        **reading(model),
        **embedding(model),
        "PPS_JOBS__ATTEMPTS": "2",
        "PPS_JOBS__BREAKER_FAILURES": "1",
        "PPS_JOBS__QUEUE_ENTITY": str(BOUND),
    }
    with serving(tmp_path / "home", **settings) as running:
        running.create("ana")
        yield running


def remember(served: Served, text: str, extraction: str = "given") -> str:
    arguments = {"content": text, "wait": "journal", "extraction": extraction, "source_ref": text}
    return str(cast("Any", served.link.call("remember", "ana", arguments)["data"])["state"])


def agreed(served: Served) -> None:
    ended = served.pps("doctor", "ana")
    assert ended.returncode == 0, ended.stdout
    assert (
        f"turns done and episodes of the graph: {BOUND + 2} and {BOUND + 2}, the same ids"
        in ended.stdout
    )


@pytest.mark.timeout(240)
def test_a_model_server_that_is_away_slow_or_talks_nonsense_costs_nothing(
    served: Served, model: ModelServer
) -> None:
    assert remember(served, "Ana lives in Lisbon.", extraction="model") == "accepted"
    until(served, lambda: idle(served))
    assert healthy(served)

    model.mode = "closed"
    for number in range(BOUND):
        assert remember(served, f"Ben knows Ana, {number}.", extraction="model") == "accepted"
    until(served, lambda: not healthy(served))
    recalled = data(served, "recall", query="Where does Ana live?")
    assert "embed" in json.dumps(
        [[one.get("error"), one["notes"]] for one in recalled["channels"].values()]
    )
    assert any(hit["text"] for hit in recalled["channels"]["facts"]["hits"])  # by words

    with pytest.raises(Overloaded, match=f"jobs.queue_entity allows {BOUND}"):
        remember(served, "One too many.")
    assert asked(served, "POST", "/v1/remember", {"content": "Too many."}) == (503, "5")
    assert data(served, "stats")["turns"] == BOUND + 1
    problem = data(served, "health")["problems"][0]
    assert "embedding server" in problem
    assert "it goes on by itself" in problem

    model.mode = "not_json"
    time.sleep(1.0)
    listed = served.pps("jobs", "list", "ana", "--json")
    jobs = json.loads(listed.stdout)["jobs"]
    assert [job["state"] for job in jobs].count("failed") == 0
    assert len(jobs) == BOUND

    model.mode, model.delay_s = "slow", 0.1
    until(served, lambda: idle(served) and healthy(served))
    assert data(served, "stats")["episodes"] == BOUND + 1

    model.mode = "malformed"  # vectors as they should be, and a language model that talks nonsense
    assert remember(served, "Ana lives in Porto.", extraction="model") == "accepted"
    until(served, lambda: data(served, "ingestion_stats")["failed"] == 1)
    assert healthy(served)  # one text of one entity
    assert not data(served, "health")["ok"]
    shown = served.pps("jobs", "show", "ana", data_of_failed(served))
    assert "could not be taken in" in shown.stdout
    found = data(served, "recall", query="Porto")["channels"]
    assert any(
        "Porto" in hit["text"] for hit in found["turns" if "turns" in found else "episodes"]["hits"]
    )

    model.mode = "good"
    assert served.pps("jobs", "retry", "ana", "--all").stdout.strip() == "1 retried."
    until(served, lambda: idle(served) and data(served, "health")["ok"])
    agreed(served)
    assert data(served, "ingestion_stats")["done"] == BOUND + 2


def data_of_failed(served: Served) -> str:
    (job,) = json.loads(served.pps("jobs", "list", "ana", "--state", "failed", "--json").stdout)[
        "jobs"
    ]
    return str(job["turn_id"])
