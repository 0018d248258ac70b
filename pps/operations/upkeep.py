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
    """Use it for a summary of a memory.

    Returns the identity, the people, places, projects and things that matter now, recent changes,
    the latest conversations and records, what agents were given today, what waits for the person,
    and the health.
    """
    return await memory.overview()


@UPKEEP.operation(
    "Count what is known", words.stats, READS, command="stats", examples=("pps stats ana",)
)
async def stats(memory: Memory, _: inputs.Nothing) -> Stats:
    """Returns the number of turns, nodes, facts and anchors, and the time they cover.

    Also how many turns are still being processed.
    """
    return await memory.stats()


@UPKEEP.operation("Check a memory's health", words.health, READS)
async def health(memory: Memory, _: inputs.Nothing) -> Health:
    """Use it when something fails.

    Returns whether this memory works, and for each problem what to do.
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
    """Use it to let the owner's extraction command find facts in turns that were not read yet.

    It spends the owner's tokens: ask first. By default it only returns the number of turns and an
    estimate of the tokens.
    """
    return await memory.jobs.extract(request.since, dry_run=request.dry_run, progress=progress)


@UPKEEP.operation(
    "Show the state of a turn",
    words.job,
    READS,
    command="jobs show",
    examples=("pps jobs show ana 17",),
)
async def job_status(memory: Memory, request: inputs.JobStatusInput) -> JobReport:
    """Use it to learn whether a text that 'remember' accepted is in graph and indexes.

    Returns every attempt, and why it failed if it did.
    """
    return await memory.jobs.status(request.id)


@UPKEEP.operation("Show the state of ingestion", words.ingestion, READS)
async def ingestion_stats(memory: Memory, _: inputs.Nothing) -> IngestionStats:
    """Returns how many texts wait for graph and indexes, how many failed, and what they wait for."""
    return await memory.jobs.stats()


@UPKEEP.operation(
    "Show what language models cost",
    words.costs,
    READS,
    command="costs",
    examples=("pps costs ana --days 7",),
)
async def costs(memory: Memory, request: inputs.CostsInput) -> CostReport:
    """Returns tokens, requests and dollars of extraction by a language model, by day and model.

    Also what is left of today's budget. Dollars only where the price is known.
    """
    return await memory.costs.report(request.days)


@UPKEEP.operation(
    "Show what agents were given",
    words.injected,
    READS,
    command="injected",
    examples=("pps injected ana --days 30", "pps injected ana --session 2f6c1c1e"),
)
async def injected(memory: Memory, request: inputs.InjectedInput) -> Injected:
    """Returns how many tokens of this memory agents were given, by session.

    Also how many prompts got nothing; with 'session', the contents of each pack of that
    conversation.
    """
    return await memory.sessions.injected(request.days, request.session)


@UPKEEP.operation("Show the last proof of isolation", words.proved, READS)
async def last_proof(memory: Memory, _: inputs.Nothing) -> LastProof:
    """Returns when isolation was last attacked, the attacks by kind, and the number of leaks.

    The owner of the machine runs `pps verify-isolation`, on throw-away memories.
    """
    return LastProof(await asyncio.to_thread(lambda: memory.last_proof))
