"""The in-order worker: takes an entity's jobs from the journal and carries them into graph and indexes."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Coroutine, Sequence

from pps.core.errors import PPSError, StoreUnavailable
from pps.ingest.pipeline import Pipeline
from pps.journal.journal import Journal
from pps.journal.values import Job

_log = logging.getLogger(__name__)
_BATCH = 256
_LONGEST_WAIT_S = 30.0
_LOOK_S = 60.0
"""How often an idle worker looks for facts that end by the clock."""


class Worker:
    """One task an entity. Jobs are done in the order of their receipt; batches share one write.

    A step that fails for a passing reason is tried again with growing waits, and the jobs behind it
    wait; one that can never succeed is parked as ``failed`` with its error, and the rest go on.
    """

    def __init__(self, journal: Journal, pipeline: Pipeline, name: str) -> None:
        self._journal = journal
        self._pipeline = pipeline
        self._name = name
        self._wake = asyncio.Event()
        self._settled = asyncio.Event()
        self._waiters: dict[int, list[asyncio.Future[Job]]] = {}
        self._task: asyncio.Task[None] | None = None
        self._in_hand: list[Job] = []
        self._one_by_one = 0
        self.trouble = ""
        """Why the worker is waiting to try again; empty when it is not."""

    def start(self) -> None:
        """Begin to work on what the journal holds."""
        self._wake.set()
        self._begin(self._run())

    async def stop(self) -> None:
        """Stop at once; a job in hand is done again at the next start."""
        if self._task:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task
            self._task = None
        for future in [future for waiting in self._waiters.values() for future in waiting if not future.done()]:
            future.set_exception(
                StoreUnavailable("the memory was closed before this was done; it goes on at the next start")
            )

    def notify(self) -> None:
        """Say that the journal has a new job."""
        self._settled.clear()
        self._wake.set()

    async def wait_for(self, job_id: int) -> Job:
        """Return a job once it is done or failed."""
        future: asyncio.Future[Job] = asyncio.get_running_loop().create_future()
        self._waiters.setdefault(job_id, []).append(future)
        job = await self._journal.job(job_id)
        if job and job.state in ("done", "failed") and not future.done():
            future.set_result(job)
        return await future

    async def settled(self, timeout_s: float) -> bool:
        """Wait until every acknowledged turn is indexed, at most ``timeout_s``; tell whether it is."""
        try:
            async with asyncio.timeout(timeout_s):
                await self._settled.wait()
        except TimeoutError:
            return False
        return True

    def _begin(self, work: Coroutine[None, None, None]) -> None:
        self._task = asyncio.create_task(work, name=f"worker-{self._name}")
        self._task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[None]) -> None:
        """Go on after an error that nobody foresaw: it must not stop the turns behind it."""
        if task.cancelled() or (error := task.exception()) is None:
            return
        _log.critical("entity %s: an unforeseen error in ingestion", self._name, exc_info=error)
        self.trouble = f"an unforeseen {type(error).__name__}; the server's log has the details"
        self._begin(self._after(error))

    async def _after(self, error: BaseException) -> None:
        """Park the one turn that causes an unforeseen error; find it by going one by one."""
        jobs, self._in_hand = self._in_hand, []
        if len(jobs) == 1:
            why = f"unforeseen {type(error).__name__}; the log has the details"
            await self._journal.fail_job(jobs[0].id, why, retryable=False)
            await self._tell(jobs)
        elif jobs:
            self._one_by_one = len(jobs)
        else:
            await asyncio.sleep(_LONGEST_WAIT_S)
        await self._run()

    async def _run(self) -> None:
        wait_s = 0.5
        while True:
            try:
                jobs = await self._journal.next_jobs(1 if self._one_by_one else _BATCH)
                if not jobs:
                    await self._rest()
                    continue
                self._in_hand = jobs
                await self._work(jobs)
                self._in_hand, self._one_by_one = [], max(0, self._one_by_one - 1)
                self.trouble, wait_s = "", 0.5
            except PPSError as error:
                if not error.retryable:
                    _log.exception("entity %s: ingestion stopped", self._name)
                self.trouble = f"{error.code}: {error.message}"
                _log.warning("entity %s: ingestion waits %.1f s after: %s", self._name, wait_s, self.trouble)
                await asyncio.sleep(wait_s)
                wait_s = min(_LONGEST_WAIT_S, wait_s * 2)

    async def _rest(self) -> None:
        """Index what is left over and sleep until there is a job."""
        self._wake.clear()
        if await self._journal.unfinished():
            return
        await self._pipeline.settle()
        if not self._wake.is_set():
            self._settled.set()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_LOOK_S):
                await self._wake.wait()

    async def _work(self, jobs: Sequence[Job]) -> None:
        try:
            results = await self._pipeline.run(jobs)
        except PPSError as error:
            if error.retryable:
                raise
            if len(jobs) > 1:
                for job in jobs:
                    await self._work([job])
                return
            await self._journal.fail_job(jobs[0].id, f"{error.code}: {error.message}", retryable=False)
            _log.warning("entity %s: job %d failed: %s", self._name, jobs[0].id, error.code)
        else:
            await self._journal.finish_jobs(results)
        await self._tell(jobs)

    async def _tell(self, jobs: Sequence[Job]) -> None:
        for job in jobs:
            waiting = self._waiters.pop(job.id, [])
            if waiting and (done := await self._journal.job(job.id)):
                for future in waiting:
                    if not future.done():
                        future.set_result(done)
