"""An entity's jobs as they can be looked at and acted on: status, retry, drop, numbers, health."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

from pps.core.errors import InvalidRequest, NotFound
from pps.core.ids import is_uuid
from pps.core.reports import AttemptReport, IngestionStats, JobReport
from pps.core.text import first_line
from pps.core.time import now
from pps.ingest.health import HealthLimits, problems, stalled_s
from pps.ingest.worker import Worker
from pps.ingest.working import WorkRules
from pps.journal.journal import Journal
from pps.journal.values import Attempt, Job, JobState

_MOST_IDS = 1_000
_TEXT = 120
_MICROS = 1_000_000


class Jobs:
    """The queue of one entity, for whoever looks after it. ``Memory.jobs``."""

    def __init__(self, name: str, journal: Journal, worker: Worker, rules: WorkRules, limits: HealthLimits) -> None:
        self._name = name
        self._journal = journal
        self._queue = journal.queue
        self._worker = worker
        self._rules = rules
        self._limits = limits

    async def list(self, state: JobState | None = None, *, after: int = 0, limit: int = 100) -> list[JobReport]:
        """Return jobs of a state (None: unfinished and parked ones) with ids above ``after``, oldest first."""
        return [_report(job, ()) for job in await self._queue.list(state, after=after, limit=limit)]

    async def status(self, wanted: int | str) -> JobReport:
        """Return a job by its own id or its turn's, with every attempt.

        Raises:
            NotFound: It is not this entity's.
        """
        turn = str(wanted) if is_uuid(str(wanted)) else None
        if turn is None and not str(wanted).isdecimal():
            raise InvalidRequest("id", "must be a job's number or a turn's id")
        job = await (self._queue.job(int(wanted)) if turn is None else self._queue.of_turn(turn))
        if job is None:
            raise NotFound("job")
        return _report(job, await self._queue.attempts(job.id))

    async def retry(self, ids: Sequence[int] | None = None) -> list[int]:
        """Queue ended jobs again, 1 to 1,000 of them; None takes every parked one. Return which.

        Raises:
            NotFound: One of them is not this entity's, or has not ended; nothing was changed.
            Overloaded: The queue has no room for so many.
        """
        count = (await self._queue.state(now())).counts["failed"] if ids is None else len(set(_checked(ids)))
        self._rules.backlog.reserve(count)
        queued: list[int] = []
        try:
            queued = await self._queue.retry(ids)
        finally:
            self._rules.backlog.release(count - len(queued))
        self._worker.notify()
        return queued

    async def drop(self, ids: Sequence[int] | None = None) -> list[int]:
        """Give parked or waiting jobs up; None takes every parked one. Their turns stay in the journal. Return which.

        Raises:
            NotFound: One of them is not there, or is being worked on or done; nothing was changed.
        """
        waiting = await self._journal.unfinished()
        dropped = await self._queue.drop(None if ids is None else _checked(ids))
        self._rules.backlog.release(max(0, waiting - await self._journal.unfinished()))
        await self._worker.dropped(dropped)
        return dropped

    async def stats(self) -> IngestionStats:
        """Return how the queue stands and what the latest attempts came to."""
        moment = now()
        state = await self._queue.state(moment - timedelta(seconds=self._limits.window_s))
        return IngestionStats(
            queued=state.counts["queued"],
            running=state.counts["running"],
            done=state.counts["done"],
            failed=state.counts["failed"],
            dropped=state.counts["dropped"],
            index_lag=await self._journal.dirty_count(),
            oldest_s=max(0.0, (moment - state.oldest_at).total_seconds()) if state.oldest_at else 0.0,
            stalled_s=stalled_s(state, self._worker.started_at, moment),
            window_s=self._limits.window_s,
            attempts=state.attempts,
            failures=state.failed,
            tokens_in=state.charge.tokens_in,
            tokens_out=state.charge.tokens_out,
            cost_usd=state.charge.cost_micros / _MICROS,
            queue_most=self._rules.backlog.most,
            tried=state.tried,
            failing=state.failing,
            waits_for=self._waits_for(),
        )

    async def problems(self) -> list[str]:
        """Return what is wrong with ingestion, one line each, with what to do next."""
        stats = await self.stats()
        found = problems(self._name, stats, self._limits, self._waits_for())
        if stats.failed:
            found[-1] += f"; the first says: {(await self._queue.list('failed', limit=1))[0].error}"
        return found

    def _waits_for(self) -> tuple[str, ...]:
        return (*([self._worker.trouble] if self._worker.trouble else []), *self._worker.waits_for)


def _checked(ids: Sequence[int]) -> Sequence[int]:
    if not 1 <= len(ids) <= _MOST_IDS:
        raise InvalidRequest("ids", f"give 1 to {_MOST_IDS:,} jobs")
    return ids


def _report(job: Job, attempts: Sequence[Attempt]) -> JobReport:
    result = job.result
    return JobReport(
        id=job.id,
        turn_id=job.turn.uuid,
        state=job.state,
        stage=job.stage,
        text=first_line(" ".join(job.turn.content.split()), _TEXT),
        attempts=job.attempts,
        failures=job.failures,
        code=job.code,
        error=job.error,
        queued_at=job.queued_at,
        next_at=job.next_at,
        nodes=result.nodes if result else 0,
        facts=result.facts if result else 0,
        tried=tuple(_attempt(one) for one in attempts),
    )


def _attempt(one: Attempt) -> AttemptReport:
    return AttemptReport(
        stage=one.stage,
        outcome=one.outcome,
        began_at=one.began_at,
        ended_at=one.ended_at,
        code=one.code,
        error=one.error,
        tokens_in=one.charge.tokens_in,
        tokens_out=one.charge.tokens_out,
        cost_usd=one.charge.cost_micros / _MICROS,
    )
