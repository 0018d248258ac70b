"""A model server that hangs, limits its use or answers too late: it is unwell for a reason, then well, all is done.

The server, its clients and the local HTTP server that speaks the models' protocol are processes and sockets of
their own.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.acceptance.outage import (
    data,
    health,
    health_to_owner,
    healthy,
    idle,
    reading,
    reasons,
    until,
)
from tests.integration.interfaces.serving import Served, serving
from tests.model_server import Asked, ModelServer, model_server

RETRY_AFTER_S = 0.5
REQUESTS_A_TRY = 2
"""Of one that fails: a provider's library asks once more."""


@pytest.fixture
def model() -> Iterator[ModelServer]:
    with model_server(retry_after=str(RETRY_AFTER_S)) as running:
        yield running


@contextmanager
def ana(home: Path, model: ModelServer, **jobs: str) -> Iterator[Served]:
    """Run a server with one entity, whose texts the model reads."""
    with serving(home, **reading(model), **jobs) as served:
        served.create("ana")
        yield served


def told(served: Served, text: str, entity: str = "ana") -> str:
    receipt = data(served, "remember", entity, content=text, wait="journal")
    assert receipt["state"] == "accepted"
    return str(receipt["turn_id"])


def outcomes(served: Served, turn: str) -> list[str]:
    """Return how the attempts at a turn ended, in order."""
    return [
        f"{one['stage']} {one['outcome']}" for one in data(served, "job_status", id=turn)["tried"]
    ]


def readings(served: Served, name: str, turn: str) -> list[tuple[str, str]]:
    """Return when a model began to read a turn and when that ended, of each attempt."""
    tried = data(served, "job_status", name, id=turn)["tried"]
    return [(one["began_at"], one["ended_at"]) for one in tried if one["stage"] == "read"]


def named(name: str, some: Iterable[Asked]) -> bool:
    """Tell whether one of some requests is about what an entity was told."""
    return any(name.title() in str(one.body) for one in some)


def well(served: Served) -> bool:
    return idle(served) and data(served, "health")["ok"] and healthy(served)


def degraded(served: Served, *entities: str) -> bool:
    """Tell whether entities are unwell, by their own word and to the owner; the server is well for everyone."""
    status, told = health_to_owner(served)
    assert (status, health(served)) == (200, (200, {"status": "ok"}))
    named = {one["entity"] for one in told["problems"]} if told["status"] == "degraded" else set()
    return named >= set(entities) and not any(
        data(served, "health", name)["ok"] for name in entities
    )


def test_an_entity_is_unwell_by_the_rate_of_failures_alone_and_well_when_they_went_well_after_all(
    tmp_path: Path, model: ModelServer
) -> None:
    model.mode = "malformed"
    rules = {"PPS_JOBS__ATTEMPTS": "1", "PPS_JOBS__BREAKER_FAILURES": "100"}
    with ana(tmp_path / "home", model, **rules) as served:
        for number in range(9):
            told(served, f"Ana likes Tea{number}.")
        until(served, lambda: data(served, "ingestion_stats")["failed"] == 9)
        assert not any("that were tried" in one for one in reasons(served))
        told(served, "Ana likes Rye.")
        until(served, lambda: data(served, "ingestion_stats")["failed"] == 10)
        ids = json.loads(served.pps("jobs", "drop", "ana", "--all", "--yes", "--json").stdout)[
            "dropped"
        ]
        (reason,) = reasons(served)
        assert reason.startswith("10 of 10 turns that were tried in the last 600 s failed")
        assert degraded(served, "ana")

        model.mode = "good"
        assert served.pps("jobs", "retry", "ana", *map(str, ids)).stdout == "10 retried.\n"
        until(served, lambda: well(served))
        assert health_to_owner(served)[1]["status"] == "ok"
        assert data(served, "stats")["facts"] == 10


@pytest.mark.timeout(180)
def test_a_provider_that_limits_its_use_is_left_alone_and_everything_is_read_once_in_the_end(
    tmp_path: Path, model: ModelServer
) -> None:
    rules = {"PPS_JOBS__BREAKER_FAILURES": "1", "PPS_EXTRACTOR__TIMEOUT_S": "1.5"}
    with ana(tmp_path / "home", model, **rules) as served:
        model.mode = "rate_limited"
        first = [
            told(served, text)
            for text in ("Ana lives in Lisbon.", "Ben knows Ana.", "Ben likes Tea.")
        ]
        until(served, lambda: len(model.asked) >= 4)
        assert any("the extractor failed" in one for one in reasons(served))
        limited = [one.at for one in list(model.asked)]
        model.mode = "good"
        assert (
            min(after - before for before, after in itertools.pairwise(limited))
            >= 0.95 * RETRY_AFTER_S
        )
        until(served, lambda: well(served))
        assert [outcomes(served, turn) for turn in first[1:]] == [["save done", "read done"]] * 2

        model.mode = "quota_spent"
        spent, behind = told(served, "Carl works at Acme."), told(served, "Carl owns Boats.")
        until(served, lambda: outcomes(served, spent).count("read again") >= 2)
        assert not healthy(served)
        assert outcomes(served, behind) == ["save done"]
        model.mode = "good"
        until(served, lambda: well(served))
        tries = outcomes(served, spent).count("read again")
        assert model.answered.count("quota_spent") in (
            REQUESTS_A_TRY * tries,
            REQUESTS_A_TRY * tries + 1,
        )

        model.mode, model.delay_s = "slow", 10.0
        told(served, "Dora drinks Coffee.")
        until(served, lambda: not healthy(served))
        assert any("cannot be reached" in one for one in reasons(served))
        model.mode = "good"
        until(served, lambda: well(served))

        stats = data(served, "stats")
        assert (stats["turns"], stats["episodes"], stats["facts"]) == (6, 6, 6)
        assert data(served, "ingestion_stats")["done"] == 6


@pytest.mark.timeout(180)
def test_entities_are_read_beside_each_other_up_to_the_bound_each_in_order_and_are_unwell_by_the_oldest_turn(
    tmp_path: Path, model: ModelServer
) -> None:
    model.mode = "held"
    rules = {"PPS_JOBS__READ_AT_ONCE": "2", "PPS_JOBS__RED_OLDEST_S": "1"}
    with ana(tmp_path / "home", model, **rules) as served:
        assert health(served) == (200, {"status": "ok"})
        others = ["xanthe", "yorick", "zenobia"]
        for name in others:
            served.create(name)
        jobs = {
            name: [told(served, f"{name.title()} owns Boat{n}.", name) for n in range(3)]
            for name in ["ana", *others]
        }
        until(served, lambda: degraded(served, *jobs) and len(model.together) == 2)
        assert health(served, "nonsense") == (200, {"status": "ok"})
        oldest = [
            one for one in reasons(served) if one.startswith("the oldest of 3 waiting turns came ")
        ]
        assert len(oldest) == 4
        assert "`pps jobs list ana` shows what they wait for" in oldest[0]
        waiting = [name for name in jobs if not named(name, model.together[-1])]
        assert len(waiting) == 2
        until(served, lambda: all(data(served, "stats", name)["episodes"] == 3 for name in waiting))
        assert len(model.together) == 2

        model.mode, model.delay_s = "slow", 0.03
        model.freed.set()
        until(served, lambda: all(idle(served, name) for name in jobs))
        until(served, lambda: health_to_owner(served)[1]["status"] == "ok")
        assert all(data(served, "health", name)["ok"] for name in jobs)
        for name, turns in jobs.items():
            spans = [span for turn in turns for span in readings(served, name, turn)]
            assert len(spans) == 3
            assert all(earlier[1] <= later[0] for earlier, later in itertools.pairwise(spans))
            assert data(served, "stats", name)["facts"] == 3
    together = [{name for name in jobs if named(name, some)} for some in model.together]
    assert max(map(len, together)) == 2
    assert set().union(*together) == jobs.keys()
