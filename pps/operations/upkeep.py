"""How an entity's memory is: how much it holds, what became of what was told, and what it took."""

from __future__ import annotations

import asyncio

from pps.core.reports import (
    CostReport,
    Extracted,
    Health,
    IngestionStats,
    Injected,
    JobReport,
    Stats,
)
from pps.ingest.indexer import Progress
from pps.memory import Memory
from pps.operations import inputs, words
from pps.operations.outputs import LastProof
from pps.operations.table import READS, SETS, UPKEEP


@UPKEEP.operation(
    "How much is known", words.stats, READS, command="stats", examples=("pps stats ana",)
)
async def stats(memory: Memory, _: inputs.Nothing) -> Stats:
    """Returns how many turns, nodes, facts and anchors there are, since when, and what is still being taken in."""
    return await memory.stats()


@UPKEEP.operation("Is the memory well", words.health, READS)
async def health(memory: Memory, _: inputs.Nothing) -> Health:
    """Use it when something fails. Returns whether this memory can do its work, and for each problem what to do."""
    return await memory.health()


@UPKEEP.operation(
    "Find facts in earlier turns",
    words.extracted,
    SETS,
    command="extract",
    examples=("pps extract ana --dry-run", "pps extract ana --since 2026-11-01"),
)
async def extract(
    memory: Memory, request: inputs.ExtractInput, progress: Progress | None
) -> Extracted:
    """Use it to have the owner's own command read the turns that nothing has read for facts.

    It spends the owner's tokens: ask first. By default it only returns how many turns there are and what they take.
    """
    return await memory.jobs.extract(request.since, dry_run=request.dry_run, progress=progress)


@UPKEEP.operation(
    "What became of a turn",
    words.job,
    READS,
    command="jobs show",
    examples=("pps jobs show ana 17",),
)
async def job_status(memory: Memory, request: inputs.JobStatusInput) -> JobReport:
    """Use it to ask whether a text that 'remember' accepted is in graph and indexes by now.

    Returns every attempt at it, and why it failed if it did.
    """
    return await memory.jobs.status(request.id)


@UPKEEP.operation("How taking in goes", words.ingestion, READS)
async def ingestion_stats(memory: Memory, _: inputs.Nothing) -> IngestionStats:
    """Returns how many texts wait to be taken into graph and indexes, how many failed, and what is waited for."""
    return await memory.jobs.stats()


@UPKEEP.operation(
    "What language models took",
    words.costs,
    READS,
    command="costs",
    examples=("pps costs ana --days 7",),
)
async def costs(memory: Memory, request: inputs.CostsInput) -> CostReport:
    """Returns tokens, requests and dollars that reading by a language model took, by day and model.

    Dollars where the price is known; and how today's budget stands.
    """
    return await memory.costs.report(request.days)


@UPKEEP.operation(
    "How much was injected",
    words.injected,
    READS,
    command="injected",
    examples=("pps injected ana --days 30", "pps injected ana --session 2f6c1c1e"),
)
async def injected(memory: Memory, request: inputs.InjectedInput) -> Injected:
    """Returns how many tokens of this memory hooks and ambient_recall put before agents, by session.

    Also how many prompts were answered with nothing; with 'session' what each pack of that conversation held.
    """
    return await memory.sessions.injected(request.days, request.session)


@UPKEEP.operation("When isolation was last proved", words.proved, READS)
async def last_proof(memory: Memory, _: inputs.Nothing) -> LastProof:
    """Returns when it was last tried whether anything of one memory reaches another, by how many attacks, and how.

    What went wrong is counted. The owner of the machine tries it with `pps verify-isolation`, on throw-away memories.
    """
    return LastProof(await asyncio.to_thread(lambda: memory.last_proof))
