"""How an entity's memory is: how much it holds, what became of what was told, and what it took."""

from __future__ import annotations

import asyncio
from dataclasses import replace

from pps.context.overview import Overview
from pps.core.reports import (
    CostReport,
    Extracted,
    Health,
    IngestionStats,
    Injected,
    JobReport,
    Stats,
)
from pps.core.text import counted
from pps.ingest.indexer import Progress
from pps.memory import Memory
from pps.operations import inputs, words
from pps.operations.outputs import LastProof
from pps.operations.pages import FOLLOWING, PAGE_CHARACTERS, as_json, fitting, json_size
from pps.operations.table import READS, SETS, UPKEEP, ModelView

_MODEL_IDENTITY = 1_500
"""Characters of the identity that a model gets."""


def overview_words(value: Overview) -> str:
    """Return the identity, then what matters now, changed, was given and waits, a line each."""
    holdings = value.holds
    lines = [
        *([value.identity, ""] if value.identity else []),
        f"{counted(holdings.turns, 'turn')}, {counted(holdings.nodes, 'node')}, "
        f"{counted(holdings.facts, 'fact')}, {counted(holdings.anchors, 'anchor')}.",
    ]
    lines += [
        f"{node.group}: {node.name} ({node.kind}): {node.line} [{node.id}]" for node in value.nodes
    ]
    for change in value.changes:
        instead = f" instead of: {change.before_text}" if change.before_text else ""
        lines.append(f"{change.change} {change.at:%Y-%m-%d}: {change.text}{instead} [{change.id}]")
    lines += [
        f"conversation {each.session}: {counted(each.turns, 'turn')}, last {each.last_at:%Y-%m-%d}"
        for each in value.conversations
    ]
    lines += [
        f"record {each.kind}: {each.title}{f' ({each.state})' if each.state else ''} [{each.id}]"
        for each in value.records
    ]
    given = value.given
    lines.append(
        f"Given today: {counted(given.tokens, 'token')} in {counted(given.sessions, 'session')}."
    )
    lines += [f"given {line.kind}: {line.text} [{line.id}]" for line in given.lines]
    waiting = value.waiting
    lines += [f"failed: {turn.text} ({turn.error}) [{turn.id}]" for turn in waiting.failed_turns]
    lines += [
        f"one thing? {pair.keep_name} [{pair.keep}], {pair.drop_name} [{pair.drop}]: {pair.why}"
        for pair in waiting.proposed
    ]
    health = value.health
    lines.append("All is well." if health.ok else f"{health.problems} problems: {health.problem}")
    return "\n".join(lines)


def overview_for_model(value: Overview, _: inputs.Input) -> ModelView:
    """Return the overview with as many of the nodes as have room beside the rest."""
    view = replace(value, identity=value.identity[:_MODEL_IDENTITY], nodes=())
    room = PAGE_CHARACTERS - FOLLOWING - json_size(as_json(view))
    nodes = value.nodes[: fitting((json_size(as_json(node)) for node in value.nodes), room)]
    view = replace(view, nodes=nodes)
    return ModelView(view, overview_words(view))


@UPKEEP.operation(
    "An overview of the memory",
    overview_words,
    READS,
    command="overview",
    examples=("pps overview ana",),
    for_model=overview_for_model,
)
async def overview(memory: Memory, _: inputs.Nothing) -> Overview:
    """Use it to see at a glance whose memory this is and what is going on in it.

    Returns the identity, the people, places, projects and things that matter now, what was learned
    or ended lately, the latest conversations and records, what agents were given today, what waits
    for the person, and the health.
    """
    return await memory.overview()


@UPKEEP.operation(
    "How much is known", words.stats, READS, command="stats", examples=("pps stats ana",)
)
async def stats(memory: Memory, _: inputs.Nothing) -> Stats:
    """Returns how many turns, nodes, facts and anchors there are, since when, and what is still being taken in."""
    return await memory.stats()


@UPKEEP.operation("Is the memory well", words.health, READS)
async def health(memory: Memory, _: inputs.Nothing) -> Health:
    """Use it when something fails.

    Returns whether this memory can do its work, and for each problem what to do.
    """
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

    It spends the owner's tokens: ask first. By default it only returns how many turns there are and
    what they take.
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
