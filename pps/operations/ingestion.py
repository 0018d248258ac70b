"""What became of what was told: the verbs about an entity's queue."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, StringConstraints

from pps.core.reports import AttemptReport, Extracted, IngestionStats, JobReport
from pps.core.time import iso
from pps.memory import Memory
from pps.operations import inputs
from pps.operations.table import AnyVerb, Hints, Verb

_READ = Hints(read_only=True, idempotent=True)
_ENDS = {
    "queued": "waits to be taken in",
    "running": "is being taken in",
    "done": "is in graph and indexes",
    "failed": "could not be taken in; it is kept in the journal",
    "dropped": "was given up; it is kept in the journal",
}


class JobStatusInput(inputs.Input):
    """Which job: by its own number or by its turn."""

    id: Annotated[str, StringConstraints(min_length=1, max_length=40, pattern=r"^[0-9a-f-]+$")] = Field(
        description="The job_id or the turn_id of a receipt, as text."
    )


class ExtractInput(inputs.Input):
    """Which turns, and whether to do it."""

    since: Annotated[inputs.Moment, inputs.described_time("Only turns said at this time or later.")] | None = None
    dry_run: bool = Field(default=True, description="Only count them and estimate the tokens; false has them read.")


async def _extract(memory: Memory, given: ExtractInput) -> Extracted:
    return await memory.jobs.extract(given.since, dry_run=given.dry_run)


def extracted(value: Extracted) -> str:
    """Return how much there is to read, in a line."""
    what = "would take" if value.dry_run else "is being read; it takes"
    why = f"; {value.why}" if value.why else ""
    return f"{value.turns:,} turns that nothing has read for facts: {what} about {value.tokens:,} tokens{why}"


async def _job_status(memory: Memory, given: JobStatusInput) -> JobReport:
    return await memory.jobs.status(given.id)


async def _ingestion_stats(memory: Memory, _: inputs.Nothing) -> IngestionStats:
    return await memory.jobs.stats()


def job(value: JobReport) -> str:
    """Return what became of a turn, and each attempt at it."""
    why = f": {value.error}" if value.error and value.state != "done" else ""
    again = f" It is tried again at {iso(value.next_at)}." if value.next_at and value.state == "queued" else ""
    lines = [f"Job {value.id} {_ENDS[value.state]}{why}.{again} [{value.turn_id}]", f"  “{value.text}”"]
    return "\n".join([*lines, *(f"  {_attempt(one)}" for one in value.tried)])


def ingestion(value: IngestionStats) -> str:
    """Return how the queue stands, in a few lines."""
    lines = [
        f"waiting {value.queued + value.running:,} of at most {value.queue_most:,} · done {value.done:,} · "
        f"failed {value.failed:,} · dropped {value.dropped:,} · index entries to make {value.index_lag:,}",
        f"last {value.window_s:,} s: {value.attempts:,} attempts, {value.failures:,} failed, "
        f"{value.tokens_in:,} tokens in, {value.tokens_out:,} out, ${value.cost_usd:.4f}",
    ]
    if value.queued + value.running:
        lines.append(f"oldest waits {value.oldest_s:,.0f} s; nothing ended for {value.stalled_s:,.0f} s")
    return "\n".join([*lines, *(f"waits: {one}" for one in value.waits_for)])


def _attempt(one: AttemptReport) -> str:
    took_s = (one.ended_at - one.began_at).total_seconds()
    why = f": {one.error}" if one.error else ""
    cost = f", {one.tokens_in:,} + {one.tokens_out:,} tokens, ${one.cost_usd:.4f}" if one.tokens_in else ""
    return f"{iso(one.began_at)} {one.stage} {one.outcome} ({took_s:.2f} s{cost}){why}"


INGESTION_VERBS: tuple[AnyVerb, ...] = (
    Verb(
        "extract",
        "Find facts in earlier turns",
        "Have the owner's own command read the turns that nothing has read for facts, or say how many there are and "
        "what that would take. It spends the owner's tokens: ask first.",
        ExtractInput,
        Extracted,
        _extract,
        extracted,
        Hints(idempotent=True),
    ),
    Verb(
        "job_status",
        "What became of a turn",
        "Whether a text that 'remember' accepted is in graph and indexes by now, every attempt at it, and why it "
        "failed if it did.",
        JobStatusInput,
        JobReport,
        _job_status,
        job,
        _READ,
    ),
    Verb(
        "ingestion_stats",
        "How taking in goes",
        "How many texts still wait to be taken into graph and indexes, how many failed, what it cost, and which "
        "store or model is waited for.",
        inputs.Nothing,
        IngestionStats,
        _ingestion_stats,
        ingestion,
        _READ,
    ),
)
