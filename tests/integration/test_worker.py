"""The worker: passing trouble is waited out, a turn that can never succeed is parked, and the rest go on."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Sequence

import pytest

from pps.core.errors import StoreError, StoreUnavailable
from pps.ingest.worker import Worker
from pps.journal.journal import Journal
from pps.journal.values import Job, JobResult, TurnDraft

GROUP = "ent_" + "w" * 26


class Scripted:
    """A pipeline that fails as the content of a turn says; ``done`` is what it carried through, in order."""

    def __init__(self) -> None:
        self.done: list[str] = []
        self.away = 0

    async def run(self, jobs: Sequence[Job]) -> list[tuple[int, JobResult]]:
        for job in jobs:
            if job.turn.content == "bug":
                raise ZeroDivisionError
            if job.turn.content == "refused":
                raise StoreError("never")
        if self.away:
            self.away -= 1
            raise StoreUnavailable("away")
        self.done += [job.turn.content for job in jobs]
        return [(job.id, JobResult()) for job in jobs]

    async def settle(self) -> None:
        """Nothing is derived here."""


@pytest.fixture
async def journal(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Journal]:
    opened = await Journal.open(tmp_path_factory.mktemp("j") / "memory.db", GROUP)
    yield opened
    await opened.close()


async def worked(journal: Journal, pipeline: Scripted, *contents: str) -> list[str]:
    """Append turns, let the worker do them, and return their jobs' states."""
    worker = Worker(journal, pipeline, "w")
    appended = [await journal.append(TurnDraft(text, source_ref=str(n))) for n, text in enumerate(contents)]
    worker.start()
    jobs = [await worker.wait_for(one.job_id) for one in appended]
    await worker.stop()
    return [job.state for job in jobs]


async def test_jobs_are_done_in_order(journal: Journal) -> None:
    pipeline = Scripted()
    assert await worked(journal, pipeline, "a", "b", "c") == ["done"] * 3
    assert pipeline.done == ["a", "b", "c"]


async def test_a_store_that_is_away_is_waited_for(journal: Journal) -> None:
    pipeline = Scripted()
    pipeline.away = 2
    assert await worked(journal, pipeline, "a", "b") == ["done", "done"]
    assert pipeline.done == ["a", "b"]


@pytest.mark.parametrize("bad", ["refused", "bug"])
async def test_a_turn_that_can_never_succeed_is_parked_and_the_rest_go_on(
    journal: Journal, bad: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.CRITICAL + 1)
    pipeline = Scripted()
    assert await worked(journal, pipeline, "a", bad, "c") == ["done", "failed", "done"]
    assert pipeline.done == ["a", "c"]
    (parked,) = await journal.jobs("failed")
    assert (
        ("StoreError" in parked.error or "store" in parked.error)
        if bad == "refused"
        else "ZeroDivision" in parked.error
    )
