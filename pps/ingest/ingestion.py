"""The jobs of an entity for its operator: status, retry, drop, statistics, health."""

from __future__ import annotations

import asyncio
import math
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager
from datetime import datetime, timedelta

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
"""The failure rate of fewer turns within the window is not judged."""
HOW_TO_SET = (
    "`pps hooks install --entity NAME --extract claude` sets it, or extractor.mode and .command in "
    "pps.toml"
)
_READ_AT_ONCE = 1_000
_LOOK_S = 0.2
_CHARACTERS_A_TOKEN = 3.5
_MANY_TURNS = 5
_ADVICE = (
    "they come from the agent that remembers (nodes, facts), from a command that reads the turns "
    "(`pps hooks install --entity {name} --extract claude`, then `pps extract {name}`), or from a "
    "model (extractor.mode)"
)
_MOST_IDS = 1_000
_MOST_LEFT_OUT = 20
_TEXT = 120
_MAX_JOB_DIGITS = 18


async def facts_hint(name: str, journal: Journal, mode: Extraction, reader: Reader | None) -> str:
    """Return why a memory has no facts and how it gets some; empty when it has or needs none yet.

    A setting that is set already is never advised.

    Args:
        name: The entity's name.
        journal: The entity's journal.
        mode: ``extractor.mode`` of the entity.
        reader: The reader of the extraction command; None when no command is set.
    """
    if reader and reader.away:
        return (
            f"new facts are those that rules find: {reader.command!r}, which is set to read the "
            f"turns, cannot be asked ({reader.away}); it reads them when it answers again"
        )
    turns = await journal.count_turns()
    if turns < _MANY_TURNS or await journal.count_facts():
        return ""
    waiting = f"`pps jobs list {name}` says what waits"
    if reader:
        why = f"{reader.command!r} reads the turns when a session pauses or ends: {waiting}"
    elif mode == "model":
        why = f"the language model that is set reads each turn: {waiting}"
    else:
        why = _ADVICE.format(name=name)
    return f"{turns:,} turns and no facts: {why}"


def stalled_s(state: QueueState, started_at: datetime, now: datetime) -> float:
    """Return for how many seconds no job has ended although some wait.

    It counts from the latest of: the receipt of the oldest job, the last end of any job, the start
    of the worker. So a long import is healthy while it makes progress, and a start has its time.
    """
    if state.oldest_at is None:
        return 0.0
    since = max(state.oldest_at, state.moved_at or state.oldest_at, started_at)
    return max(0.0, (now - since).total_seconds())


def problems(
    name: str, stats: IngestionStats, limits: JobsSettings, trouble: Sequence[str]
) -> list[str]:
    """Return the problems of ingestion, a line each, with what to do next.

    ``trouble`` are the stores and models that the worker waits for, a sentence each.
    """
    lines = [
        f"ingestion waits: {cause}; it goes on by itself when that is mended" for cause in trouble
    ]
    waiting = stats.queued + stats.running
    safe = f"they are safe in the journal, `pps jobs list {name}` shows what they wait for"
    if stats.stalled_s >= limits.red_after_s:
        lines.append(
            f"nothing of {waiting:,} waiting turns has been taken in for {stats.stalled_s:,.0f} s; "
            f"{safe}"
        )
    if stats.oldest_s >= limits.red_oldest_s:
        lines.append(
            f"the oldest of {waiting:,} waiting turns came {stats.oldest_s:,.0f} s ago; {safe}; "
            "for a long import jobs.red_oldest_s may be raised"
        )
    if stats.tried >= LEAST_TRIED and stats.failing / stats.tried >= limits.red_failure_rate:
        lines.append(
            f"{stats.failing:,} of {stats.tried:,} turns that were tried in the last "
            f"{stats.window_s:,} s failed; `pps jobs list {name}` shows why"
        )
    if stats.failed:
        lines.append(
            f"{stats.failed:,} turns could not be taken into the graph; they are kept in the "
            f"journal: `pps jobs list {name} --state failed` shows why, "
            f"`pps jobs retry {name} --all` tries again, `pps jobs drop` gives up"
        )
    return lines


class Jobs:
    """The queue of one entity, for its operator. ``Memory.jobs``."""

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
        """Return a mark that changes with every change of the memory; whether work is pending."""
        is_in_work = await self._journal.unfinished() or await self._indexer.lag()
        return await self._journal.mark(), bool(is_in_work)

    async def list(
        self, state: JobState | None = None, *, after: int = 0, limit: int = 100
    ) -> list[JobReport]:
        """Return jobs of a state with ids above ``after``, oldest first.

        Without a state: unfinished and parked jobs.
        """
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
        if ids is None:
            count = (await self._queue.state(now())).counts["failed"]
        else:
            count = len(set(_check_ids(ids)))
        async with self._room(count) as queued:
            queued += await self._queue.retry(ids)
        return queued

    async def drop(self, ids: Sequence[int] | None = None) -> list[int]:
        """Give up parked or waiting jobs, every parked one for None; return their ids.

        Their turns stay in the journal.

        Raises:
            NotFound: A job does not exist, is running or is done; nothing was changed.
        """
        waiting = await self._journal.unfinished()
        dropped = await self._queue.drop(None if ids is None else _check_ids(ids))
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
        """Let the extraction command read the turns that nothing has read yet.

        Args:
            since: Only turns said at this aware instant or later.
            dry_run: Only count the turns and estimate the tokens.
            progress: Called as reading goes on. Without it the turns are queued and the call
                returns at once.

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

        def report(read: int) -> None:
            if progress is not None:
                progress("turns read", read, turns)

        readings, why, left_out = await self._read(
            since, reader.hurry, report if progress is not None else None
        )
        left = turns - readings.read
        spent = (await self._costs.report(1)).tokens_today - before if progress else estimated
        why = why or (f"`pps jobs list {self._name}` says for what" if progress and left else "")
        return Extracted(
            dry_run=False,
            turns=turns,
            read=readings.read,
            facts=readings.facts,
            dropped=readings.dropped,
            waiting=left,
            tokens=spent,
            why=why,
            left_out=tuple(left_out),
        )

    async def _read(
        self,
        since: datetime | None,
        hurry: Callable[[], None],
        report: Callable[[int], None] | None,
    ) -> tuple[Readings, str, list[Skipped]]:
        """Queue unread turns, as the queue has room; wait for their readings if ``report`` is set.

        Returns:
            The totals, why it stopped early (or ""), and the first drafts that were left out.
        """
        total = Readings(0, 0, 0, 0)
        why = ""
        left_out: list[Skipped] = []
        while not why:
            ids = await self._read_later(since)
            if not ids:
                break
            hurry()
            if report is not None:
                why = await self._wait_until_read(ids, total.read, report)
            last = await self._queue.readings(ids[0], ids[-1])
            rows = await self._queue.left_out(ids[0], ids[-1], _MOST_LEFT_OUT - len(left_out))
            left_out += [Skipped(draft, reason) for draft, reason in rows]
            total = Readings(
                total.read + last.read, total.facts + last.facts, total.dropped + last.dropped, 0
            )
        return total, why, left_out

    async def _wait_until_read(
        self, ids: Sequence[int], read_before: int, report: Callable[[int], None]
    ) -> str:
        """Wait until jobs are read; return "", or else why they have to wait longer."""
        while True:
            readings = await self._queue.readings(ids[0], ids[-1])
            if not readings.waiting:
                return ""
            report(read_before + readings.read)
            await asyncio.sleep(_LOOK_S)
            paused_until = await self._costs.paused_until()
            if paused_until:
                return f"today's budget is spent; it goes on by itself at {iso(paused_until)}"
            if self._worker.waits_for:
                return "; ".join(self._worker.waits_for)

    async def _read_later(self, since: datetime | None) -> list[int]:
        """Queue as many unread turns as there is room for; return the ids of their jobs."""
        count = min(_READ_AT_ONCE, (await self._queue.unread(since))[0])
        async with self._room(count) as queued:
            queued += await self._queue.read_later(since, count)
        return queued

    @asynccontextmanager
    async def _room(self, count: int) -> AsyncGenerator[list[int]]:
        """Reserve places in the queue for jobs; release those that the body does not list."""
        self._rules.backlog.reserve(count)
        queued: list[int] = []
        try:
            yield queued
        finally:
            self._rules.backlog.release(count - len(queued))
        self._worker.notify()

    async def facts_hint(self) -> str:
        """Do what the function ``facts_hint`` says, for this memory."""
        return await facts_hint(self._name, self._journal, self._mode, self._worker.reader)

    async def notes(self) -> tuple[str, ...]:
        """Return notes on the budget and on the facts: how to get some, and what was left out."""
        notes = await self._costs.notes()
        hint = await self.facts_hint()
        if hint:
            return (*notes, hint)
        dropped = (await self._queue.readings()).dropped if self._worker.reader else 0
        if not dropped:
            return notes
        note = f"a command's readings left out {dropped:,} facts or nodes that no turn says"
        return (*notes, note)

    async def stats(self) -> IngestionStats:
        """Return the state of the queue and the totals of the latest attempts."""
        moment = now()
        window_s = self._limits.red_window_s
        state = await self._queue.state(moment - timedelta(seconds=window_s))
        oldest_s = 0.0
        if state.oldest_at:
            oldest_s = max(0.0, (moment - state.oldest_at).total_seconds())
        return IngestionStats(
            **state.counts,
            index_lag=await self._indexer.lag(),
            oldest_s=oldest_s,
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
        """Return the problems of ingestion, a line each, with what to do next."""
        stats = await self.stats()
        lines = problems(self._name, stats, self._limits, self._worker.waits_for)
        if stats.failed:
            first = (await self._queue.list("failed", limit=1))[0]
            lines[-1] += f"; the first says: {first.error}"
        return lines


def _check_ids(ids: Sequence[int]) -> Sequence[int]:
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
