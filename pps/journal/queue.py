"""The queue of one entity's jobs: taken in order, tried, put back, parked, given another chance."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from functools import partial

from pps.core.errors import InvalidRequest
from pps.journal import job_reads, jobs, projection
from pps.journal.reader import Readers
from pps.journal.values import Attempt, Charge, Job, JobPayload, JobResult, JobState, QueueState, Readings, Stage
from pps.journal.writer import Writer

MAX_JOBS = 10_000
"""Most jobs that one call returns."""


class JobQueue:
    """The jobs of one ``memory.db``; errors and durability as for ``Journal``."""

    def __init__(self, writer: Writer, readers: Readers) -> None:
        self._writer = writer
        self._readers = readers

    async def take(self, stage: Stage, limit: int, at: datetime) -> list[Job]:
        """Return up to ``limit`` of a stage's first unfinished jobs, marked as running.

        Nothing when the first of them is not due at ``at``: later jobs never overtake it.
        """
        _check_limit(limit)
        span = await self._writer.write(partial(jobs.claim, stage=stage, limit=limit, at=at))
        if span is None:
            return []
        # Read beside the writer: acknowledgements would wait while thousands of facts are parsed.
        return await self._readers.read(partial(jobs.claimed, stage=stage, first=span[0], last=span[1]))

    async def after(self, stage: Stage, job_id: int, limit: int, facts: int) -> list[Job]:
        """Return a stage's unfinished jobs that come after one; they stay as they are.

        Args:
            stage: The stage.
            job_id: The job before the first.
            limit: At most so many jobs.
            facts: The job whose given facts make this number full is the last.
        """
        _check_limit(limit)
        return await self._readers.read(partial(jobs.after, stage=stage, job_id=job_id, limit=limit, facts=facts))

    async def due_at(self, stage: Stage) -> datetime | None:
        """Return when a stage's first unfinished job may be tried, which may be past; None when there is none."""
        return await self._readers.read(partial(job_reads.due_at, stage=stage))

    async def charge(self, job_id: int, taken: Charge) -> None:
        """Add to what the attempt in hand has cost, while it runs."""
        await self._writer.write(partial(jobs.charge, job_id=job_id, taken=taken))

    async def end(self, saved: Sequence[tuple[int, JobResult]], done: Sequence[tuple[int, JobResult]]) -> None:
        """Move jobs on to be read by a model, and mark others as done, in one transaction."""
        await self._writer.write(lambda db: (jobs.saved(db, saved), jobs.finish(db, done)))

    async def finish(self, results: Sequence[tuple[int, JobResult]]) -> int:
        """Mark jobs as done; those whose turn was forgotten meanwhile are passed over. Return how many were."""
        return await self._writer.write(partial(jobs.finish, results=results))

    async def give(self, found: Sequence[tuple[int, JobPayload]]) -> bool:
        """Give jobs what a command has read in their turns; False when one of them changed or went meanwhile."""
        return await self._writer.write(partial(jobs.give, found=found))

    async def put_back(self, job_ids: Sequence[int], until: datetime | None = None) -> None:
        """Queue jobs again that were taken and not tried; they are not tried before ``until``."""
        await self._writer.write(partial(jobs.put_back, job_ids=job_ids, until=until))

    async def due(self) -> None:
        """Let jobs that were put off without having failed be tried at once: what they waited for may be there."""
        await self._writer.write(jobs.due)

    async def fail(self, job_id: int, code: str, error: str, next_at: datetime | None) -> bool:
        """Note a failed attempt; try again at ``next_at``, or park the job when that is None.

        Returns False when its turn was forgotten while it ran.
        """
        return await self._writer.write(partial(jobs.fail, job_id=job_id, code=code, error=error, next_at=next_at))

    async def retry(self, job_ids: Sequence[int] | None = None) -> list[int]:
        """Queue ended jobs again, from the beginning; None takes every parked one. Return which.

        Raises:
            NotFound: One of them is not there, or in the queue already; nothing was changed.
        """
        return await self._writer.write(partial(jobs.retry, job_ids=job_ids))

    async def unread(self, since: datetime | None = None) -> tuple[int, int]:
        """Return how many turns said since a moment nothing has read for facts, and their characters."""
        return await self._readers.read(partial(job_reads.unread, since=since))

    async def read_later(self, since: datetime | None, limit: int) -> list[int]:
        """Queue the first of those turns to be read by a command; return their jobs."""
        return await self._writer.write(partial(jobs.read_later, since=since, limit=limit))

    async def readings(self, first: int = 0, last: int = 1 << 62) -> Readings:
        """Return what a command has made of the turns of some jobs; of all, when no bounds are given."""
        return await self._readers.read(partial(job_reads.readings, first=first, last=last))

    async def replay(self) -> None:
        """Queue every job again whose turn was saved; drop what only a lost graph knew: projection, merges."""
        await self._writer.write(lambda db: (jobs.replay(db), projection.clear(db), db.execute("DELETE FROM merges")))

    async def drop(self, job_ids: Sequence[int] | None = None) -> list[int]:
        """Give parked or waiting jobs up; None takes every parked one. Their turns stay in the journal. Return which.

        Raises:
            NotFound: One of them is not there, or is being worked on or done; nothing was changed.
        """
        return await self._writer.write(partial(jobs.drop, job_ids=job_ids))

    async def job(self, job_id: int) -> Job | None:
        """Return a job, or None when this entity has none of that id."""
        return await self._readers.read(partial(jobs.get, job_id=job_id))

    async def of_turn(self, turn_uuid: str) -> Job | None:
        """Return the job of a turn, or None when this entity has no such turn."""
        return await self._readers.read(partial(job_reads.get_of_turn, turn_uuid=turn_uuid))

    async def list(self, state: JobState | None = None, *, after: int = 0, limit: int = 100) -> list[Job]:
        """Return jobs of a state (None: unfinished and parked ones) with ids above ``after``, oldest first."""
        _check_limit(limit)
        return await self._readers.read(partial(job_reads.in_state, state=state, after=after, limit=limit))

    async def attempts(self, job_id: int) -> list[Attempt]:
        """Return the attempts at a job that came to an end, oldest first."""
        return await self._readers.read(partial(job_reads.attempts, job_id=job_id))

    async def state(self, since: datetime) -> QueueState:
        """Return how the queue stands, with what was attempted since a moment."""
        return await self._readers.read(partial(job_reads.state, since=since))

    async def turns_in(self, state: JobState) -> set[str]:
        """Return the turns whose jobs are in a state."""
        return set(await self._readers.read(partial(job_reads.turns_in, wanted=state)))


def _check_limit(limit: int) -> None:
    if not 1 <= limit <= MAX_JOBS:
        raise InvalidRequest("limit", f"must be 1 to {MAX_JOBS:,}")
