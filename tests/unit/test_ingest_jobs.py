"""Waiting, breaking, holding back and judging health: the rules of the queue, without a store."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pps.config import JobsSettings
from pps.core.errors import (
    ConfigError,
    InvalidRequest,
    ModelError,
    ModelOutputInvalid,
    ModelUnavailable,
    Overloaded,
    PPSError,
    StoreConflict,
    StoreError,
    StoreUnavailable,
)
from pps.core.reports import IngestionStats
from pps.ingest.drafts import Backlog, EntityBacklog
from pps.ingest.ingestion import problems, stalled_s
from pps.ingest.work_rules import Breaker, Breakers, Places, RetryPolicy, fault_of, provider_of
from pps.journal.entries import Charge, QueueState

NOW = datetime(2026, 3, 7, 8, 30, tzinfo=UTC)
STEADY = RetryPolicy(first_wait_s=10.0, longest_wait_s=80.0)


@given(st.integers(1, 10_000))
def test_a_wait_is_random_between_nothing_and_the_doubled_bound(failures: int) -> None:
    bound = min(80.0, 10.0 * 2 ** min(failures - 1, 20))
    waits = [STEADY.wait_s(failures) for _ in range(20)]
    assert all(0 <= one <= bound for one in waits)
    assert len(set(waits)) > 1


def test_waits_grow_until_the_longest() -> None:
    """Of 200 draws out of 0 to a bound, all lie below nine tenths of it once in a thousand million times."""
    longest = [max(STEADY.wait_s(failures) for _ in range(200)) for failures in (1, 2, 3, 4, 5, 9)]
    for seen, bound in zip(longest, (10.0, 20.0, 40.0, 80.0, 80.0, 80.0), strict=True):
        assert 0.9 * bound < seen <= bound


@pytest.mark.parametrize(
    ("error", "fault", "provider"),
    [
        (StoreUnavailable("x"), "outage", "store"),
        (StoreConflict("x"), "outage", "store"),
        (ModelUnavailable("x"), "outage", "extractor"),
        (ModelUnavailable("x", provider="embedder"), "outage", "embedder"),
        (ConfigError("embedder.api_key: x"), "outage", "extractor"),
        (ModelOutputInvalid("x"), "passing", "extractor"),
        (ModelOutputInvalid("x", provider="embedder"), "outage", "embedder"),
        (ModelError("x"), "lasting", "extractor"),
        (StoreError("x"), "lasting", "extractor"),
        (InvalidRequest("x", "y"), "lasting", "extractor"),
    ],
)
def test_an_error_says_whose_fault_it_is(error: PPSError, fault: str, provider: str) -> None:
    assert (fault_of(error), provider_of(error, "extractor")) == (fault, provider)


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def test_a_breaker_opens_after_failures_in_a_row_and_closes_when_one_try_goes_well() -> None:
    clock, told = Clock(), list[str]()
    breaker = Breaker("store", STEADY, 3, clock)
    breaker.listen(lambda: told.append("closed"))
    for _ in range(2):
        breaker.failed("away")
    breaker.succeeded()
    for _ in range(2):
        breaker.failed("away")
    assert (breaker.state, breaker.claim("a"), told) == ("closed", True, [])
    breaker.failed("away for good")
    assert (breaker.state, breaker.claim("a"), breaker.why) == ("open", False, "away for good")
    clock.now += 80
    assert breaker.state == "half-open"
    assert [breaker.claim(who) for who in ("a", "b", "a")] == [True, False, True]
    breaker.failed("still away")
    assert breaker.state == "open"
    clock.now += 80
    assert breaker.claim("b")
    breaker.release("a")
    assert not breaker.claim("a")
    breaker.release("b")
    assert breaker.claim("a")
    breaker.succeeded()
    assert (breaker.state, breaker.why, breaker.wait_s, told) == ("closed", "", 0.0, ["closed"])


def test_a_provider_that_says_when_is_left_alone_until_then() -> None:
    clock = Clock()
    breaker = Breaker("extractor", STEADY, 5, clock)
    breaker.failed("quota", retry_after_s=200)
    assert breaker.wait_s >= 200
    clock.now += 199
    assert not breaker.claim("a")
    breaker.failed("quota", retry_after_s=1e9)
    assert breaker.wait_s <= 3_600


def test_a_claim_on_several_takes_all_or_none() -> None:
    breakers = Breakers.make(STEADY, 1)
    own = breakers.with_own(("store",), STEADY, 1)
    own.failed("store", StoreUnavailable("away"))
    assert breakers.claim(("store", "embedder"), "a") is None
    refusing = own.claim(("embedder", "store"), "a")
    assert refusing is not None
    assert [one.name for one in own.open()] == [refusing.name] == ["store"]
    own.succeeded(("store",))
    assert own.open() == []


def test_a_full_queue_refuses_before_anything_and_takes_again_when_there_is_room() -> None:
    total = Backlog(5)
    one, other = EntityBacklog(total, 4), EntityBacklog(total, 4)
    one.reserve(3)
    with pytest.raises(Overloaded, match=r"3 turns of this memory .* jobs.queue_entity allows 4"):
        one.reserve(2)
    other.reserve(2)
    with pytest.raises(
        Overloaded, match=r"5 turns of all memories .* jobs.queue_total allows 5"
    ) as refused:
        other.reserve(1)
    assert refused.value.retryable
    assert refused.value.retry_after_s > 0
    one.release(2)
    other.reserve(1)
    assert total.waiting == 4
    other.set(0)
    one.release(100)
    assert total.waiting == 0
    one.reserve(9)  # a batch larger than the bound is taken by an empty queue, or it never would be
    assert one.waiting == 9


def test_places_are_bounded_and_who_comes_anew_lets_those_who_wait_go_first() -> None:
    places, told = Places(2), list[str]()
    assert [places.claim(who, lambda who=who: told.append(who)) for who in "abc"] == [
        True,
        True,
        False,
    ]
    assert [places.waits(who) for who in "abc"] == [False, False, True]
    places.release("a")
    assert told == ["c"]
    assert not places.claim("a", lambda: told.append("a"))
    assert places.claim("c", lambda: told.append("c"))
    places.release("a")  # it wants none any more
    places.release("b")
    assert told == ["c"]
    assert places.claim("d", lambda: told.append("d"))


QUEUE = QueueState({}, None, None, 0, 0, Charge())
STATS = IngestionStats(0, 0, 5, 0, 0, 0, 0.0, 0.0, 600, 0, 0, 0, 0, 0.0, 100)


def test_turns_flow_while_single_ones_come_and_few_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    at = 100.0
    monkeypatch.setattr("pps.ingest.drafts.clock.monotonic", lambda: at)
    total = Backlog(10_000)
    ana, ben = EntityBacklog(total, 5_000), EntityBacklog(total, 5_000)
    assert not total.flows()
    ana.reserve(50)
    assert not total.flows()  # many at once: nobody waits for each
    ben.reserve(1)
    assert total.flows()
    at += 0.3
    assert not total.flows()
    ana.reserve(2_000)
    ben.reserve(1)
    assert not total.flows()  # there would be no time for it


def test_a_queue_stalls_only_when_nothing_ends() -> None:
    long_ago, lately, start = (
        NOW - timedelta(hours=2),
        NOW - timedelta(seconds=3),
        NOW - timedelta(hours=5),
    )
    assert stalled_s(QUEUE, start, NOW) == 0
    assert stalled_s(replace(QUEUE, oldest_at=long_ago), start, NOW) == 7200
    assert stalled_s(replace(QUEUE, oldest_at=long_ago, moved_at=lately), start, NOW) == 3
    assert stalled_s(replace(QUEUE, oldest_at=lately, moved_at=long_ago), start, NOW) == 3
    assert stalled_s(replace(QUEUE, oldest_at=long_ago), lately, NOW) == 3


@pytest.mark.parametrize(
    ("stats", "trouble", "said"),
    [
        (STATS, (), ""),
        (replace(STATS, queued=9_000, oldest_s=3_599, stalled_s=299), (), ""),
        (
            replace(STATS, queued=7, stalled_s=300),
            (),
            "nothing of 7 waiting turns has been taken in for 300 s",
        ),
        (
            replace(STATS, queued=8, running=1, oldest_s=3_600),
            (),
            "the oldest of 9 waiting turns came 3,600 s ago",
        ),
        (replace(STATS, attempts=99, failures=99, tried=9, failing=9), (), ""),
        (replace(STATS, tried=20, failing=9), (), ""),
        (
            replace(STATS, tried=20, failing=10),
            (),
            "10 of 20 turns that were tried in the last 600 s failed",
        ),
        (replace(STATS, failed=2), (), "`pps jobs retry ana --all` tries again"),
        (STATS, ("the store failed, away",), "ingestion waits: the store failed, away"),
    ],
)
def test_health_says_what_is_wrong_and_what_to_do(
    stats: IngestionStats, trouble: tuple[str, ...], said: str
) -> None:
    found = problems("ana", stats, JobsSettings(), trouble)
    assert len(found) == bool(said)
    assert said in "".join(found)
