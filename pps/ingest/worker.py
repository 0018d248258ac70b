"""The worker: applies an entity's jobs, in order, from the journal to graph and indexes.

A job has two stages. *save* stores its turn with the nodes and facts that were given or that rules
read; *read* has a model read the turn, where its extraction asks for that. Each stage runs in the
order of receipt: while its first job waits for another attempt, the later ones wait too; a parked
job lets them pass. Saving does not wait for reading, so a turn can be found while the language
model is away. If a command reads, a ``Reader`` does the second stage beside this worker, and its
jobs come back to be saved with the reading.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable, Collection, Coroutine, Generator, Iterable, Sequence
from dataclasses import replace
from functools import partial
from typing import Protocol, TypeAlias

from pps.core import time
from pps.core.errors import BudgetSpent, NotFound, PPSError, StoreUnavailable
from pps.ingest.command_reader import Reader, reads
from pps.ingest.work_rules import END_OF_TIME, Door, Failing, Provider, WorkRules
from pps.journal.db import Work
from pps.journal.entries import Job, JobResult, Stage
from pps.journal.job_queue import end as end_jobs
from pps.journal.job_queue import read_by_rules
from pps.journal.journal import Journal

_log = logging.getLogger(__name__)
_BATCH = 256
_FIRST_WAIT_S = 0.5
_LONGEST_WAIT_S = 30.0
_PAUSE_S = 0.05
_GIVES_WAY_S = 5.0
"""Most seconds for which work waits while single turns come in without a pause."""
_LOOK_S = 60.0
"""How often an idle worker looks for facts that end by the clock."""
_PLACE_S = 5.0
"""How long a worker waits before it looks again for a place for a reading."""
_NEEDED: dict[Stage, tuple[Provider, ...]] = {
    "save": ("store", "embedder"),
    "read": ("store", "embedder", "extractor"),
}
_MODEL: dict[Stage, Provider] = {"save": "embedder", "read": "extractor"}
_ENDED = ("done", "failed", "dropped")


End: TypeAlias = Callable[[Sequence[tuple[int, JobResult]]], Work[object]]
"""Makes the journal's transaction that ends jobs, from their ids and results."""


class Steps(Protocol):
    """The steps of a job. Every step is idempotent: run again, it doubles nothing."""

    async def save(self, jobs: Sequence[Job], end: End) -> None:
        """Save turns in order with their given nodes and facts, and end their jobs.

        One transaction for all of them.
        """
        ...

    async def index(self) -> None:
        """Apply the saved changes to the indexes."""
        ...

    async def read(self, job: Job) -> JobResult:
        """Let a model read a saved turn; return the result of the whole job."""
        ...

    async def settle(self) -> float | None:
        """Bring the indexes up to date with the clock and with changes that were left over.

        Return the seconds until there is more to do by the clock: 0 for at once, None for nothing.
        """
        ...


class Worker:
    """One task for each entity. A batch of saves is one write; a model reads turns one at a time.

    Attributes:
        reader: Has turns read by a command; without one, the steps have them read by a model.
        held: The lock that jobs, and everything else that changes the graph, run under.
    """

    def __init__(
        self,
        journal: Journal,
        steps: Steps,
        name: str,
        rules: WorkRules,
        reader: Reader | None = None,
    ) -> None:
        self.reader = reader
        self.held = Door().held
        self._queue = journal.queue
        self._steps = steps
        self._name = name
        self._rules = rules
        self._failing = Failing(journal, name, self._rules)
        self._wake = asyncio.Event()
        self._settled = asyncio.Event()
        self._saved = asyncio.Event()
        self._notices = 0
        self._waiters: dict[int, list[asyncio.Future[Job]]] = {}
        self._task: asyncio.Task[None] | None = None
        self._urgent = asyncio.Event()
        self._wanted = 0
        self._came = self._came_before = 0
        self._in_hand: list[Job] = []
        self._unindexed: set[int] = set()
        """Jobs that are saved and ended, and not yet in the indexes."""
        self._lag: PPSError | None = None
        self._one_by_one: dict[Stage, int] = {"save": 0, "read": 0}
        self._hurry = False
        self.started_at = time.now()
        self._trouble = ""

    @property
    def waits_for(self) -> tuple[str, ...]:
        """The reasons why work cannot go on for now, a sentence each."""
        full = self._failing.full_disk()
        is_reader_away = self.reader is not None and bool(self.reader.away)
        failed = [
            f"the {breaker.name} failed, {breaker.why}"
            for breaker in self._rules.breakers.open()
            if breaker.name != "extractor" or not is_reader_away
        ]
        reasons = (
            self._trouble,
            self.reader.trouble if self.reader else "",
            full.message if full else "",
            *failed,
        )
        return tuple(filter(None, reasons))

    @property
    def outage(self) -> bool:
        """Whether it waits for something that entities share: the disk, a server, a model."""
        return self._failing.full_disk() is not None or any(
            breaker.shared for breaker in self._rules.breakers.open()
        )

    def start(self) -> None:
        self._wake.set()
        for breaker in self._rules.breakers.by_provider.values():
            breaker.listen(self._reopened)
        if self.reader:
            self.reader.start(self.dropped, self.save_by_rules)
        self._begin(self._run())

    async def stop(self) -> None:
        """Stop at once; a job in hand is done again at the next start."""
        for breaker in self._rules.breakers.by_provider.values():
            breaker.forget(self._reopened)
            breaker.release(self)
        self._rules.places.release(self)
        try:
            if self.reader:
                await self.reader.stop()
        finally:
            if self._task:
                self._task.cancel()
                with contextlib.suppress(asyncio.CancelledError):
                    await self._task
                self._task = None
        self._rules.backlog.set(0)
        closed = StoreUnavailable(
            "the memory was closed before this was done; it goes on at the next start"
        )
        for futures in self._waiters.values():
            for future in futures:
                if not future.done():
                    future.set_exception(closed)

    def notify(self, *, one_by_one: bool = False) -> None:
        """Wake the worker: the journal has a new job, or an old one that may be tried at once.

        After ``one_by_one`` more turns may follow, whose acknowledgements go first.
        """
        self._came += one_by_one
        self._notices += 1
        self._settled.clear()
        self._saved.clear()
        self._wake.set()
        if self.reader:
            self.reader.notify()

    async def dropped(self, job_ids: Sequence[int]) -> None:
        """Notify callers that wait for jobs which were given up or read elsewhere, and wake up."""
        await self._tell(job_ids)
        self.notify()

    async def save_by_rules(self, job_ids: Sequence[int]) -> None:
        """Save turns that wait for the command once more, with the facts that rules read in them.

        Jobs that no longer wait for it are passed over. After a crash it is done again.
        """
        async with self.held(None):
            jobs: list[Job] = []
            for id_ in job_ids:
                job = await self._queue.job(id_)
                if job is not None:
                    jobs.append(job)
            waiting = [
                replace(job, payload=replace(job.payload, rules_meanwhile=True))
                for job in jobs
                if (job.state, job.stage) == ("queued", "read")
            ]
            if waiting:
                await self._steps.save(
                    waiting, lambda results: partial(read_by_rules, results=results)
                )
                await self._steps.index()

    async def wait_for(self, job_id: int) -> Job:
        """Return a job once it has ended, or is saved and waits for a command to read it.

        A job has ended when it is done, failed or dropped.

        Raises:
            NotFound: Its turn is forgotten.
        """
        future: asyncio.Future[Job] = asyncio.get_running_loop().create_future()
        self._waiters.setdefault(job_id, []).append(future)
        try:
            with self._needed_now():
                await self._tell([job_id])
                return await future
        finally:
            others = [other for other in self._waiters.pop(job_id, ()) if other is not future]
            if others:
                self._waiters[job_id] = others

    async def ended(self, job_id: int, timeout_s: float | None) -> Job | None:
        """Return a job as ``wait_for``; None when time ran out."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(timeout_s):
                return await self.wait_for(job_id)
        return None

    async def forgotten(self) -> None:
        """Notify the callers whose turns are forgotten by now."""
        await self._tell([*self._waiters])

    async def settled(self, timeout_s: float) -> bool:
        """Wait at most ``timeout_s`` until every acknowledged turn is indexed; tell whether it is.

        A command reads the waiting turns at once.
        """
        with self.reader.awaited() if self.reader else contextlib.nullcontext():
            return await self._wait_until(self._settled, timeout_s)

    def read_now(self) -> None:
        """Let a command read the waiting turns without waiting for more of them."""
        if self.reader:
            self.reader.hurry()

    async def saved(self, timeout_s: float) -> bool:
        """As ``settled``, until every turn can be found; a model may have yet to read some."""
        return await self._wait_until(self._saved, timeout_s)

    async def _wait_until(self, event: asyncio.Event, timeout_s: float) -> bool:
        with self._needed_now(), contextlib.suppress(TimeoutError):
            async with asyncio.timeout(timeout_s):
                await event.wait()
            return True
        return False

    @contextlib.contextmanager
    def _needed_now(self) -> Generator[None]:
        self._wanted += 1
        self._urgent.set()
        try:
            yield
        finally:
            self._wanted -= 1
            if not self._wanted:
                self._urgent.clear()

    async def _give_way(self) -> None:
        """Debounce single turns up to ``_GIVES_WAY_S``, unless a caller waits for a result.

        Work takes the processor from acknowledgements, and one write for many turns costs little
        more than one for a single turn.
        """
        clock = asyncio.get_running_loop().time
        until = clock() + _GIVES_WAY_S
        while self._came != self._came_before and clock() < until and not self._urgent.is_set():
            self._came_before = self._came
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_PAUSE_S):
                    await self._urgent.wait()

    def _reopened(self) -> None:
        """Try waiting jobs at once: a provider that had failed answers again."""
        self._hurry = True
        self._wake.set()

    def _begin(self, work: Coroutine[None, None, None]) -> None:
        self._task = asyncio.create_task(work, name=f"worker-{self._name}")
        self._task.add_done_callback(self._restart_after_error)

    def _restart_after_error(self, task: asyncio.Task[None]) -> None:
        """Go on after an unforeseen error: it must not stop the turns behind it."""
        if task.cancelled():
            return
        error = task.exception()
        if error is None:
            return
        self._trouble = self._failing.unforeseen(error)
        self._begin(self._park_and_run(error))

    async def _park_and_run(self, error: BaseException) -> None:
        """Park the one turn that causes an unforeseen error; find it by going one by one."""
        jobs = self._in_hand
        self._in_hand = []
        if jobs and (outage := self._failing.full_disk()):
            await self._note_failure(jobs, outage)
        elif len(jobs) == 1:
            await self._failing.park(jobs[0], error)
            await self._tell(job.id for job in jobs)
        elif jobs:
            self._one_by_one[jobs[0].stage] = len(jobs)
            await self._queue.put_back([job.id for job in jobs])
        else:
            await asyncio.sleep(_LONGEST_WAIT_S)
        await self._run()

    async def _run(self) -> None:
        wait_s = _FIRST_WAIT_S
        while True:
            try:
                await self._give_way()
                if not (
                    await self._step("save") or (self.reader is None and await self._step("read"))
                ):
                    await self._rest()
                if self._lag is not None:
                    lag = self._lag
                    self._lag = None
                    raise lag
                self._trouble = ""
                wait_s = _FIRST_WAIT_S
            except PPSError as error:  # of the journal, or of changes left over for the indexes
                self._trouble = f"{error.code}: {error.message}"
                _log.warning(
                    "entity %s: ingestion waits %.1f s after: %s", self._name, wait_s, self._trouble
                )
                await asyncio.sleep(wait_s)
                wait_s = min(_LONGEST_WAIT_S, wait_s * 2)

    async def _step(self, stage: Stage) -> bool:
        """Try the first jobs of a stage; False when there are none that may be tried yet."""
        breakers = self._rules.breakers
        needed = _NEEDED[stage]
        if stage == "read" and not await self._has_place():
            return False
        try:
            if breakers.claim(needed, self):
                return False
            limit = 1 if stage == "read" or self._one_by_one[stage] else _BATCH
            at = END_OF_TIME if self._hurry else time.now()
            async with self.held(None):
                self._in_hand = jobs = await self._queue.take(stage, limit, at)
                if jobs and await self._try(stage, jobs):
                    breakers.succeeded(needed)
                self._in_hand = []
        finally:
            breakers.release(needed, self)
            if stage == "read":
                self._rules.places.release(self)
        return bool(jobs)

    async def _has_place(self) -> bool:
        """Claim a place for a reading; give it back and return False if nothing is to read."""
        if await self._queue.due_at("read") is None:
            self._rules.places.release(self)
            return False
        notices = self._notices
        if (
            not self._saved.is_set()
            and not self._unindexed
            and await self._queue.due_at("save") is None
            and notices == self._notices
        ):
            self._saved.set()
        return self._rules.places.claim(self, self._wake.set)

    async def _try(self, stage: Stage, jobs: list[Job]) -> bool:
        """Do the work and return True, or note why it failed and return False."""
        try:
            await self._work(stage, jobs)
        except BudgetSpent as spent:
            await self._queue.put_back([job.id for job in jobs], spent.until)
            self._hurry = False
        except PPSError as error:
            await self._note_failure(jobs, error)
        else:
            self._one_by_one[stage] = max(0, self._one_by_one[stage] - 1)
            return True
        return False

    async def _work(self, stage: Stage, jobs: Sequence[Job]) -> None:
        if stage == "read" and jobs[0].payload.extraction == "command":
            # The setting of the command is gone: nothing can read the turn.
            await self._queue.finish([(jobs[0].id, jobs[0].result or JobResult())])
        elif stage == "read":
            await self._queue.finish([(jobs[0].id, await self._steps.read(jobs[0]))])
        else:
            if self.reader:
                to_read = {job.id for job in jobs if reads(job)}
            else:
                to_read = {job.id for job in jobs if job.payload.extraction == "model"}
            await self._save(jobs, to_read)
            if self.reader and to_read:
                self.reader.notify()
            jobs = [job for job in jobs if job.id not in to_read]
        self._rules.backlog.release(len(jobs))
        await self._tell(job.id for job in jobs)

    async def _save(self, jobs: Sequence[Job], to_read: Collection[int]) -> None:
        """Save and index turns.

        Indexing that fails is tried again, and until it succeeds the jobs do not count as ended.
        """

        def end(results: Sequence[tuple[int, JobResult]]) -> Work[object]:
            saved = [(job_id, result) for job_id, result in results if job_id in to_read]
            done = [(job_id, result) for job_id, result in results if job_id not in to_read]
            return partial(end_jobs, saved=saved, done=done)

        ids = [job.id for job in jobs]
        self._unindexed.update(ids)
        try:
            await self._steps.save(jobs, end)
        except BaseException:
            self._unindexed.difference_update(ids)
            raise
        self._in_hand = []
        try:
            await self._steps.index()
        except PPSError as error:
            self._lag = error
        else:
            await self._indexed()

    async def _indexed(self) -> None:
        """Notify callers that wait for turns which are in the indexes now."""
        ids = self._unindexed
        self._unindexed = set()
        await self._tell(ids)

    def _has_ended(self, job: Job) -> bool:
        if job.id in self._unindexed:
            return False
        return job.state in _ENDED or (self.reader is not None and job.stage == "read")

    async def _note_failure(self, jobs: Sequence[Job], error: PPSError) -> None:
        """Note a failed attempt of the first job; put the other jobs of the batch back."""
        stage = jobs[0].stage
        first = jobs[0]
        fault = self._failing.fault_of(error)
        if len(jobs) > 1:
            self._one_by_one[stage] = len(jobs) if fault != "outage" else 1
            if fault != "outage":
                await self._queue.put_back([job.id for job in jobs])
                return
            await self._queue.put_back([job.id for job in jobs[1:]])
        if fault != "lasting":
            self._hurry = False
        if await self._failing.note(first, error, _MODEL[stage]):
            self._rules.backlog.release(1)
        await self._tell([first.id])

    async def _rest(self) -> None:
        """Index changes left over if no job waits; sleep until a job comes or may be retried."""
        self._wake.clear()
        self._hurry = False
        wait_s = await self._wait_s()
        look_s = _LOOK_S
        if wait_s is not None and self._unindexed:  # a reading waits, and indexing had failed
            async with self.held(None):
                await self._steps.index()
                await self._indexed()
        if wait_s is None:
            unread = self.reader is not None and await self._queue.due_at("read") is not None
            if not unread:
                self._rules.backlog.set(0)
            async with self.held(None):
                again_s = await self._steps.settle()
                await self._indexed()
            look_s = _LOOK_S if again_s is None else min(_LOOK_S, max(0.01, again_s))
            if not self._wake.is_set():
                self._saved.set()
                if not unread and again_s != 0:
                    self._settled.set()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(
                look_s if wait_s is None else max(0.01, min(wait_s, _LOOK_S))
            ):
                await self._wake.wait()

    async def _wait_s(self) -> float | None:
        """Return the seconds until a job, or a place for a reading, may be tried; None: no job."""
        if self.reader:
            return await self._failing.wait_s({"save": _NEEDED["save"]})
        if not self._rules.places.waits(self):
            return await self._failing.wait_s(_NEEDED)
        save_s = await self._failing.wait_s({"save": _NEEDED["save"]})
        return _PLACE_S if save_s is None else min(save_s, _PLACE_S)

    async def _tell(self, job_ids: Iterable[int]) -> None:
        for job_id in job_ids:
            if not self._waiters.get(job_id):
                continue
            job = await self._queue.job(job_id)
            if job and not self._has_ended(job):
                continue
            for future in self._waiters.pop(job_id, ()):
                if future.done():
                    continue
                if job:
                    future.set_result(job)
                else:
                    future.set_exception(NotFound("turn"))
