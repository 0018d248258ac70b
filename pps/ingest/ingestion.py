"""An entity's jobs as they can be looked at and acted on: status, retry, drop, numbers, health."""

from __future__ import annotations

import asyncio
import math
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager
from datetime import datetime, timedelta
from functools import partial

from pps.config import ExtractorSettings, JobsSettings
from pps.core.errors import InvalidRequest, NotFound
from pps.core.ids import is_uuid
from pps.core.reports import AttemptReport, Extracted, IngestionStats, JobReport
from pps.core.text import one_line
from pps.core.time import iso, now, utc
from pps.core.values import Skipped
from pps.ingest.budget import Costs
from pps.ingest.command_reader import Reader
from pps.ingest.extraction import estimate
from pps.ingest.indexer import Indexer, Progress
from pps.ingest.work_rules import WorkRules
from pps.ingest.worker import Worker
from pps.journal.entries import MICROS, Extraction, Job, JobResult, JobState, QueueState, Readings
from pps.journal.journal import Journal

LEAST_TRIED = 10
"""Fewer turns within the window say nothing about a rate."""
HOW_TO_SET = "`pps hooks install --entity NAME --extract claude` sets it, or extractor.mode and .command in pps.toml"
_READ_AT_ONCE = 1_000
_LOOK_S = 0.2
_CHARACTERS_A_TOKEN = 3.5
_MANY_TURNS = 5
_ADVICE = (
    "they come from the agent that remembers (nodes, facts), from a command that reads the turns (`pps hooks install "
    "--entity {name} --extract claude`, then `pps extract {name}`), or from a model (extractor.mode)"
)
_MOST_IDS = 1_000
_MOST_LEFT_OUT = 20
_TEXT = 120
_MAX_JOB_DIGITS = 18


async def facts_hint(name: str, journal: Journal, mode: Extraction, reader: Reader | None) -> str:
    """Return what keeps a memory from having facts, or how it gets some; empty when nothing is to be said.

    What is set already is never advised.

    Args:
        name: The entity's.
        journal: Its journal.
        mode: ``extractor.mode`` of the entity.
        reader: Has a command read its turns; None where no command is set.
    """
    if reader and reader.away:
        return (
            f"new facts are those that rules find: {reader.command!r}, which is set to read the turns, cannot be asked "
            f"({reader.away}); it reads them when it answers again"
        )
    turns = await journal.count_turns()
    if turns < _MANY_TURNS or await journal.count_facts():
        return ""
    if reader:
        why = f"{reader.command!r} reads the turns when a session pauses or ends: `pps jobs list {name}` says what waits"
    elif mode == "model":
        why = f"the language model that is set reads each turn: `pps jobs list {name}` says what waits"
    else:
        why = _ADVICE.format(name=name)
    return f"{turns:,} turns and no facts: {why}"


def stalled_s(state: QueueState, started_at: datetime, now: datetime) -> float:
    """Return for how long nothing of the queue has come to an end although something waits, in seconds.

    It counts from whichever is latest: the oldest job's receipt, the last end of any job, the start of the
    worker. So a long import is well as long as it moves, and a start has its fair time.
    """
    if state.oldest_at is None:
        return 0.0
    return max(
        0.0,
        (now - max(state.oldest_at, state.moved_at or state.oldest_at, started_at)).total_seconds(),
    )


def problems(
    name: str, stats: IngestionStats, limits: JobsSettings, trouble: Sequence[str]
) -> list[str]:
    """Return what is wrong, one line each, with what to do next; ``trouble`` is what the worker waits for."""
    found = [f"ingestion waits: {one}; it goes on by itself when that is mended" for one in trouble]
    waiting = stats.queued + stats.running
    safe = f"they are safe in the journal, `pps jobs list {name}` shows what they wait for"
    if stats.stalled_s >= limits.red_after_s:
        found.append(
            f"nothing of {waiting:,} waiting turns has been taken in for {stats.stalled_s:,.0f} s; {safe}"
        )
    if stats.oldest_s >= limits.red_oldest_s:
        found.append(
            f"the oldest of {waiting:,} waiting turns came {stats.oldest_s:,.0f} s ago; {safe}; for a long import "
            "jobs.red_oldest_s may be raised"
        )
    if stats.tried >= LEAST_TRIED and stats.failing / stats.tried >= limits.red_failure_rate:
        found.append(
            f"{stats.failing:,} of {stats.tried:,} turns that were tried in the last {stats.window_s:,} s failed; "
            f"`pps jobs list {name}` shows why"
        )
    if stats.failed:
        found.append(
            f"{stats.failed:,} turns could not be taken into the graph; they are kept in the journal: `pps jobs list "
            f"{name} --state failed` shows why, `pps jobs retry {name} --all` tries again, `pps jobs drop` gives up"
        )
    return found


class Jobs:
    """The queue of one entity, for whoever looks after it. ``Memory.jobs``."""

    def __init__(
        self,
        name: str,
        journal: Journal,
        worker: Worker,
        rules: WorkRules,
        limits: JobsSettings,
        costs: Costs,
        mode: Extraction,
        indexer: Indexer,
    ) -> None:
        self._name = name
        self._indexer = indexer
        self._mode: Extraction = mode
        self._costs = costs
        self._journal = journal
        self._queue = journal.queue
        self._worker = worker
        self._rules = rules
        self._limits = limits

    async def mark(self) -> tuple[int, bool]:
        """Return what is another when anything of the memory was changed since, and whether anything is in work."""
        is_in_work = await self._journal.unfinished() or await self._indexer.lag()
        return await self._journal.mark(), bool(is_in_work)

    async def list(
        self, state: JobState | None = None, *, after: int = 0, limit: int = 100
    ) -> list[JobReport]:
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
        if turn is None and len(str(wanted)) > _MAX_JOB_DIGITS:  # no row has such a number
            raise NotFound("job")
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
        count = (
            (await self._queue.state(now())).counts["failed"]
            if ids is None
            else len(set(_checked(ids)))
        )
        async with self._room(count) as queued:
            queued += await self._queue.retry(ids)
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

    async def extract(
        self,
        since: datetime | None = None,
        *,
        dry_run: bool = True,
        progress: Progress | None = None,
    ) -> Extracted:
        """Have a command read the turns that nothing has read; what is done is not read again.

        Args:
            since: Only turns said at this aware instant or later.
            dry_run: Only count, and estimate what it takes.
            progress: Told as it goes; without, the turns are queued and nothing is waited for.

        Raises:
            InvalidRequest: No command is set for this entity.
        """
        since = utc(since, "since") if since else None
        turns, characters = await self._queue.unread(since)
        reader = self._worker.reader
        group = reader.groups.tokens if reader else ExtractorSettings().group_tokens
        estimated = sum(estimate(math.ceil(characters / _CHARACTERS_A_TOKEN), group))
        unset = "" if reader else f"is not 'command' for {self._name}: {HOW_TO_SET}"
        if dry_run:
            return Extracted(
                True, turns, 0, 0, 0, turns, estimated, unset and f"extractor.mode {unset}"
            )
        if reader is None:
            raise InvalidRequest("extractor.mode", unset)
        if not turns:
            return Extracted(False, 0, 0, 0, 0, 0, 0)
        before = (await self._costs.report(1)).tokens_today
        told = partial(_told, progress, turns) if progress else None
        found, why, left_out = await self._read(since, reader.hurry, told)
        left = turns - found.read
        spent = (await self._costs.report(1)).tokens_today - before if progress else estimated
        why = why or (f"`pps jobs list {self._name}` says for what" if progress and left else "")
        return Extracted(
            dry_run=False,
            turns=turns,
            read=found.read,
            facts=found.facts,
            dropped=found.dropped,
            waiting=left,
            tokens=spent,
            why=why,
            left_out=tuple(left_out),
        )

    async def _read(
        self, since: datetime | None, hurry: Callable[[], None], told: Callable[[int], None] | None
    ) -> tuple[Readings, str, list[Skipped]]:
        """Queue what nothing has read, as there is room, and wait for it if somebody is told.

        Return what was found, why it stopped, and the first of what was left out.
        """
        found = Readings(0, 0, 0, 0)
        why = ""
        left_out: list[Skipped] = []
        while not why and (ids := await self._read_later(since)):
            hurry()
            while (
                told and (last := await self._queue.readings(ids[0], ids[-1])).waiting and not why
            ):
                told(found.read + last.read)
                await asyncio.sleep(_LOOK_S)
                paused_until = await self._costs.paused_until()
                why = (
                    f"today's budget is spent; it goes on by itself at {iso(paused_until)}"
                    if paused_until
                    else ""
                )
                why = why or "; ".join(self._worker.waits_for)
            last = await self._queue.readings(ids[0], ids[-1])
            rows = await self._queue.left_out(ids[0], ids[-1], _MOST_LEFT_OUT - len(left_out))
            left_out += [Skipped(what, reason) for what, reason in rows]
            found = Readings(
                found.read + last.read, found.facts + last.facts, found.dropped + last.dropped, 0
            )
        return found, why, left_out

    async def _read_later(self, since: datetime | None) -> list[int]:
        """Queue the next turns that nothing has read, as many as there is room for."""
        count = min(_READ_AT_ONCE, (await self._queue.unread(since))[0])
        async with self._room(count) as queued:
            queued += await self._queue.read_later(since, count)
        return queued

    @asynccontextmanager
    async def _room(self, count: int) -> AsyncGenerator[list[int]]:
        """Take places in the queue for so many jobs; give those back that the body does not list."""
        self._rules.backlog.reserve(count)
        queued: list[int] = []
        try:
            yield queued
        finally:
            self._rules.backlog.release(count - len(queued))
        self._worker.notify()

    async def facts_hint(self) -> str:
        """Return what keeps the memory from having facts, or how it gets some; empty when nothing is to be said."""
        return await facts_hint(self._name, self._journal, self._mode, self._worker.reader)

    async def notes(self) -> tuple[str, ...]:
        """Return what is worth knowing of the budget and of the facts: how to get some, and what was left out."""
        notes = await self._costs.notes()
        if hint := await self.facts_hint():
            return (*notes, hint)
        dropped = (await self._queue.readings()).dropped if self._worker.reader else 0
        said = f"a command's readings left out {dropped:,} facts or nodes that no turn says"
        return (*notes, said) if dropped else notes

    async def stats(self) -> IngestionStats:
        """Return how the queue stands and what the latest attempts came to."""
        moment = now()
        window_s = self._limits.red_window_s
        state = await self._queue.state(moment - timedelta(seconds=window_s))
        return IngestionStats(
            **state.counts,
            index_lag=await self._indexer.lag(),
            oldest_s=max(0.0, (moment - state.oldest_at).total_seconds())
            if state.oldest_at
            else 0.0,
            stalled_s=stalled_s(state, self._worker.started_at, moment),
            window_s=window_s,
            attempts=state.attempts,
            failures=state.failed,
            tokens_in=state.charge.tokens_in,
            tokens_out=state.charge.tokens_out,
            cost_usd=state.charge.cost_micros / MICROS,
            queue_most=self._rules.backlog.most,
            tried=state.tried,
            failing=state.failing,
            waits_for=self._worker.waits_for,
        )

    async def problems(self) -> list[str]:
        """Return what is wrong with ingestion, one line each, with what to do next."""
        stats = await self.stats()
        found = problems(self._name, stats, self._limits, self._worker.waits_for)
        if stats.failed:
            found[-1] += f"; the first says: {(await self._queue.list('failed', limit=1))[0].error}"
        return found


def _told(progress: Progress, turns: int, read: int) -> None:
    progress("turns read", read, turns)


def _checked(ids: Sequence[int]) -> Sequence[int]:
    if not 1 <= len(ids) <= _MOST_IDS:
        raise InvalidRequest("ids", f"give 1 to {_MOST_IDS:,} jobs")
    return ids


def _report(job: Job, attempts: Sequence[AttemptReport]) -> JobReport:
    result = job.result or JobResult()
    return JobReport(
        id=job.id,
        turn_id=job.turn.uuid,
        state=job.state,
        stage=job.stage,
        text=one_line(job.turn.content, _TEXT),
        attempts=job.attempts,
        failures=job.failures,
        code=job.code,
        error=job.error,
        nodes=result.nodes,
        facts=result.facts,
        queued_at=job.queued_at,
        next_at=job.next_at,
        tried=tuple(attempts),
        skipped=result.skipped,
    )
