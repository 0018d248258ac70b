"""The worker: outages are waited out, garbage is tried again in bounds, what can never succeed is parked, in order."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Sequence
from dataclasses import replace
from datetime import timedelta

import pytest

from pps.core.errors import (
    ConfigError,
    ModelOutputInvalid,
    ModelUnavailable,
    NotFound,
    PPSError,
    StoreError,
    StoreUnavailable,
)
from pps.core.time import now
from pps.ingest.drafts import Backlog, EntityBacklog
from pps.ingest.work_rules import Breakers, Failing, RetryPolicy, WorkRules
from pps.ingest.worker import End, Worker
from pps.journal.entries import Job, JobPayload, JobResult, TurnDraft
from pps.journal.journal import Journal
from tests.waiting import PATIENCE_S, settle_until

GROUP = "ent_" + "w" * 26
QUICK = RetryPolicy(first_wait_s=0.001, longest_wait_s=1.0, attempts=3)
SECRET = "what Ana said in confidence"


class Scripted:
    """Steps that fail as the content of a turn says; ``done`` and ``heard`` are what they carried through, in order."""

    def __init__(self, journal: Journal) -> None:
        self.journal = journal
        self.done: list[str] = []
        self.heard: list[str] = []
        self.starts = 0
        self.away = 0
        self.deaf: list[PPSError] = []
        self.unindexable: list[PPSError] = []

    async def save(self, jobs: Sequence[Job], end: End) -> None:
        self.starts += 1
        for job in jobs:
            if job.turn.content == "bug":
                raise ZeroDivisionError(SECRET)
            if job.turn.content == "refused":
                raise StoreError("never")
            if job.turn.content == "poison":
                raise StoreUnavailable("away, it seems")
        if self.away:
            self.away -= 1
            raise StoreUnavailable("away")
        self.done += [job.turn.content for job in jobs if job.turn.content not in self.done]
        await self.journal.write(end([(job.id, JobResult(nodes=1)) for job in jobs]))

    async def index(self) -> None:
        if self.unindexable:
            raise self.unindexable.pop(0)

    async def read(self, job: Job) -> JobResult:
        if self.deaf:
            raise self.deaf.pop(0)
        self.heard.append(job.turn.content)
        return replace(job.result or JobResult(), facts=1)

    async def settle(self) -> None:
        """Nothing is derived here."""


@pytest.fixture
async def journal(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Journal]:
    opened = await Journal.open(tmp_path_factory.mktemp("j") / "memory.db", GROUP)
    yield opened
    await opened.close()


def quick_rules(breakers: Breakers | None = None) -> WorkRules:
    async def answers() -> None:
        """The store says that it is there."""

    backlog = EntityBacklog(Backlog(100), 100)
    return WorkRules(QUICK, breakers or Breakers.make(QUICK, 5), backlog, {"store": answers})


async def appended(journal: Journal, *contents: str, extraction: str = "given") -> list[int]:
    payload = JobPayload(extraction="model" if extraction == "model" else "given")
    return [
        (await journal.append(TurnDraft(text, source_ref=text), payload)).job_id
        for text in contents
    ]


async def worked(
    journal: Journal, steps: Scripted, *contents: str, extraction: str = "given"
) -> list[str]:
    """Append turns, let the worker do them, and return their jobs' states."""
    worker = Worker(journal, steps, "w", quick_rules())
    numbers = await appended(journal, *contents, extraction=extraction)
    worker.start()
    jobs = [await asyncio.wait_for(worker.wait_for(number), PATIENCE_S) for number in numbers]
    await worker.stop()
    return [job.state for job in jobs]


async def test_jobs_are_done_in_order(journal: Journal) -> None:
    steps = Scripted(journal)
    assert await worked(journal, steps, "a", "b", "c") == ["done"] * 3
    assert steps.done == ["a", "b", "c"]


async def test_a_store_that_is_away_is_waited_for_and_no_turn_is_blamed(journal: Journal) -> None:
    steps = Scripted(journal)
    steps.away = 2
    assert await worked(journal, steps, "a", "b") == ["done", "done"]
    assert steps.done == ["a", "b"]
    (first, second) = await journal.queue.list("done")
    assert [one.outcome for one in await journal.queue.attempts(first.id)] == [
        "again",
        "again",
        "done",
    ]
    assert [one.outcome for one in await journal.queue.attempts(second.id)] == ["done"]


async def test_a_store_that_comes_back_just_after_the_last_attempt_parks_no_turn(
    journal: Journal,
) -> None:
    """It answers when it is asked, and the attempt a moment before found it away."""
    steps = Scripted(journal)
    steps.away = QUICK.attempts
    assert await worked(journal, steps, "a", "b") == ["done", "done"]


@pytest.mark.parametrize("bad", ["refused", "bug", "poison"])
async def test_a_turn_that_can_never_succeed_is_parked_and_the_rest_go_on(
    journal: Journal, bad: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    steps = Scripted(journal)
    assert await worked(journal, steps, "a", bad, "c") == ["done", "failed", "done"]
    assert ("ZeroDivisionError" in caplog.text) == (bad == "bug")
    assert SECRET not in caplog.text
    assert steps.done == ["a", "c"]
    (parked,) = await journal.queue.list("failed")
    code = {"refused": "store", "bug": "internal", "poison": "store_unavailable"}[bad]
    assert (parked.turn.content, parked.code) == (bad, code)
    assert parked.failures == (QUICK.attempts + 1 if bad == "poison" else 1)


async def test_turns_are_saved_while_the_model_that_reads_them_is_away_and_read_in_order_after(
    journal: Journal,
) -> None:
    steps = Scripted(journal)
    steps.deaf = [
        ModelUnavailable("busy", provider="extractor", retry_after_s=0.05),
        ModelUnavailable("busy"),
    ]
    assert await worked(journal, steps, "a", "b", "c", extraction="model") == ["done"] * 3
    assert steps.done == steps.heard == ["a", "b", "c"]
    job = (await journal.queue.list("done"))[0]
    assert job.result == JobResult(nodes=1, facts=1)


async def test_turns_are_not_called_findable_before_a_failed_index_caught_up(
    journal: Journal,
) -> None:
    steps = Scripted(journal)
    steps.unindexable = [StoreUnavailable("no index"), StoreUnavailable("no index yet")]
    steps.deaf = [ModelUnavailable("busy", provider="extractor", retry_after_s=3600.0)]
    worker = Worker(journal, steps, "w", quick_rules())
    await appended(journal, "a", extraction="model")
    worker.start()
    assert await worker.saved(PATIENCE_S)
    assert steps.unindexable == []
    assert (await journal.queue.due_at("read")) is not None, "a reading still waits"
    await worker.stop()


async def test_a_provider_that_asks_to_be_left_alone_for_years_is_asked_again_within_the_hour(
    journal: Journal,
) -> None:
    await appended(journal, "one")
    (job,) = await journal.queue.take("save", 1, now())
    busy = ModelUnavailable("busy", provider="embedder", retry_after_s=1e15)
    assert not await Failing(journal, "w", quick_rules()).note(job, busy, "embedder")
    due_at = await journal.queue.due_at("save")
    assert due_at is not None
    assert timedelta(minutes=59) < due_at - now() <= timedelta(hours=1)


async def test_nonsense_of_a_model_is_asked_for_again_and_parked_after_the_attempts(
    journal: Journal,
) -> None:
    steps = Scripted(journal)
    steps.deaf = [ModelOutputInvalid("nonsense")] * 2
    assert await worked(journal, steps, "a", extraction="model") == ["done"]
    steps.deaf = [ModelOutputInvalid("nonsense")] * 3
    assert await worked(journal, steps, "b", "c", extraction="model") == ["failed", "done"]
    assert steps.heard == ["a", "c"]


async def test_nonsense_of_a_model_about_one_text_keeps_nobody_else_from_it(
    journal: Journal,
) -> None:
    """It answers; only an outage of it opens the breaker that all share."""
    breakers = Breakers.make(QUICK, 1)
    failing = Failing(journal, "w", quick_rules(breakers))
    await appended(journal, "a", extraction="model")
    (job,) = await journal.queue.take("save", 1, now())
    for error, is_open in (
        (ModelUnavailable("away"), True),
        (ModelOutputInvalid("nonsense"), False),
    ):
        await failing.note(job, error, "extractor")
        assert bool(breakers.open()) == is_open


async def test_a_refused_key_parks_nothing(journal: Journal) -> None:
    steps = Scripted(journal)
    steps.deaf = [ConfigError("extractor.api_key: refused")] * 4
    assert await worked(journal, steps, "a", extraction="model") == ["done"]


async def test_a_breaker_is_shared_and_its_closing_wakes_everyone_who_waits(
    journal: Journal, tmp_path_factory: pytest.TempPathFactory
) -> None:
    patient = RetryPolicy(first_wait_s=3_600, longest_wait_s=3_600, attempts=3)
    breakers = Breakers.make(patient, 1)
    steps = Scripted(journal)
    steps.away = 1
    (number,) = await appended(journal, "a")
    async with await Journal.open(tmp_path_factory.mktemp("o") / "memory.db", GROUP) as other:
        other_steps = Scripted(other)
        (other_number,) = await appended(other, "b")
        worker = Worker(journal, steps, "w", quick_rules(breakers))
        worker.start()
        while not worker.waits_for:  # noqa: ASYNC110 - no event of its own
            await asyncio.sleep(0.005)
        beside = Worker(other, other_steps, "o", quick_rules(breakers))
        beside.start()
        await asyncio.sleep(0.05)
        assert other_steps.starts == 0
        breakers.by_provider["store"].succeeded()
        jobs = await asyncio.wait_for(
            asyncio.gather(worker.wait_for(number), beside.wait_for(other_number)), PATIENCE_S
        )
        assert [job.state for job in jobs] == ["done", "done"]
        assert worker.waits_for == ()
        await worker.stop()
        await beside.stop()


async def test_a_full_disk_is_named_as_long_as_it_is_full_and_a_folder_that_is_gone_is_not_full(
    journal: Journal, monkeypatch: pytest.MonkeyPatch
) -> None:
    worker = Worker(journal, Scripted(journal), "w", quick_rules())
    assert worker.waits_for == ()
    monkeypatch.setattr("pps.ingest.work_rules.LEAST_FREE_BYTES", 1 << 60)
    assert len(worker.waits_for) == 1
    assert "disk is full" in worker.waits_for[0]
    folder = journal.path.parent
    folder.rename(folder.with_name("away"))
    try:
        assert worker.waits_for == ()
    finally:
        folder.with_name("away").rename(folder)


async def test_a_wait_outlives_the_process(journal: Journal) -> None:
    patient = WorkRules(
        RetryPolicy(first_wait_s=3_600, longest_wait_s=3_600),
        Breakers.make(QUICK, 5),
        EntityBacklog(Backlog(9), 9),
    )
    steps = Scripted(journal)
    steps.away = 1
    await appended(journal, "a")
    worker = Worker(journal, steps, "w", patient)
    worker.start()
    while not (due := await journal.queue.due_at("save")) or due < now():  # noqa: ASYNC110 - as above
        await asyncio.sleep(0.005)
    await worker.stop()
    again = Worker(journal, steps, "w", patient)
    again.start()
    await asyncio.sleep(0.1)
    assert steps.starts == 1
    assert await journal.queue.due_at("save") == due
    await again.stop()


async def test_turns_that_come_one_by_one_are_acknowledged_before_they_are_worked_on(
    journal: Journal, monkeypatch: pytest.MonkeyPatch
) -> None:
    for bound in ("_PAUSE_S", "_GIVES_WAY_S"):  # a machine that stands still is no pause
        monkeypatch.setattr(f"pps.ingest.worker.{bound}", 10 * PATIENCE_S)
    steps = Scripted(journal)
    worker = Worker(journal, steps, "w", quick_rules())
    worker.start()
    assert await worker.settled(PATIENCE_S)
    jobs: list[int] = []
    for number in range(12):
        jobs += await appended(journal, str(number))
        worker.notify(one_by_one=True)
        await asyncio.sleep(0.005)
    assert steps.starts == 0
    async with asyncio.timeout(PATIENCE_S):
        await worker.wait_for(jobs[-1])  # somebody waits: it is not put off further
    assert (steps.starts, steps.done) == (1, [str(number) for number in range(12)])
    await worker.stop()


async def test_turns_that_come_one_by_one_are_worked_on_after_a_pause(journal: Journal) -> None:
    steps = Scripted(journal)
    worker = Worker(journal, steps, "w", quick_rules())
    worker.start()
    assert await worker.settled(PATIENCE_S)
    await appended(journal, "later")
    worker.notify(one_by_one=True)
    await settle_until(lambda: "later" in steps.done)
    await worker.stop()


async def test_who_waits_for_a_turn_that_is_forgotten_is_told(journal: Journal) -> None:
    worker = Worker(journal, Scripted(journal), "w", quick_rules())
    made = await journal.append(TurnDraft("a", source_ref="a"), JobPayload())
    waits = asyncio.create_task(worker.wait_for(made.job_id))
    await asyncio.sleep(0.1)
    await journal.forget_turns([made.turn.uuid])
    await worker.forgotten()
    for waiting in (waits, asyncio.create_task(worker.wait_for(made.job_id))):
        with pytest.raises(NotFound, match="turn not found"):
            await asyncio.wait_for(waiting, PATIENCE_S)
    await worker.stop()
