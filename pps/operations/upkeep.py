"""The state of a memory: its size, the state of texts, costs, and health."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, replace
from typing import Annotated

from pydantic import Field, StringConstraints

from pps.context.overview import Overview
from pps.core.reports import (
    AttemptReport,
    CostDay,
    CostReport,
    Extracted,
    Health,
    IngestionStats,
    Injected,
    JobReport,
    Ledger,
    Stats,
)
from pps.core.text import counted
from pps.core.time import iso
from pps.core.values import Skipped
from pps.entities.last_proof import Proof
from pps.ingest.given_input import Input, Moment, described_time
from pps.ingest.indexer import Progress
from pps.journal.usage import KEPT_D
from pps.memory import Memory
from pps.operations.inputs import Label, Nothing, argument, option
from pps.operations.item_views import day_text, moment_text
from pps.operations.pages import EMPTY, FOLLOWING, PAGE_CHARACTERS, as_json, fitting, json_size
from pps.operations.table import READS, SETS, UPKEEP, ModelView

_MODEL_IDENTITY = 1_500
"""Characters of the identity that a model gets."""
_JOB_STATES = {
    "queued": "waits to be taken in",
    "running": "is being taken in",
    "done": "is in graph and indexes",
    "failed": "could not be taken in; it is kept in the journal",
    "dropped": "was given up; it is kept in the journal",
}


class JobStatusInput(Input):
    """Which job: by its own number or by its turn."""

    id: Annotated[str, StringConstraints(min_length=1, max_length=40, pattern=r"^[0-9a-f-]+$")] = (
        Field(
            description="The job_id or the turn_id of a receipt, as text.",
            json_schema_extra=argument(),
        )
    )


class ExtractInput(Input):
    """Which turns, and whether to do it."""

    since: Annotated[Moment | None, described_time("Only turns said at this time or later.")] = None
    dry_run: bool = Field(
        default=True,
        description="True only counts the turns and estimates the tokens; false has them read.",
        json_schema_extra=option("--dry-run", default=False),
    )


class CostsInput(Input):
    """How far back."""

    days: int = Field(default=30, ge=1, le=3_660, description="Number of days, including today.")


class InjectedInput(Input):
    """How far back."""

    days: int = Field(
        default=7,
        ge=1,
        le=KEPT_D,
        description="Number of days up to now. Older figures are not kept.",
    )
    session: Label | None = Field(
        default=None, description="A conversation whose latest packs are listed, line by line."
    )


def overview_text(value: Overview) -> str:
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
    today = value.given
    lines.append(
        f"Given today: {counted(today.tokens, 'token')} in {counted(today.sessions, 'session')}."
    )
    lines += [f"given {line.kind}: {line.text} [{line.id}]" for line in today.lines]
    waiting = value.waiting
    lines += [f"failed: {turn.text} ({turn.error}) [{turn.id}]" for turn in waiting.failed_turns]
    lines += [
        f"one thing? {pair.keep_name} [{pair.keep}], {pair.drop_name} [{pair.drop}]: {pair.why}"
        for pair in waiting.proposed
    ]
    health = value.health
    lines.append("All is well." if health.ok else f"{health.problems} problems: {health.problem}")
    return "\n".join(lines)


def overview_for_model(value: Overview, _: Input) -> ModelView:
    """Return the overview with as many of the nodes as have room beside the rest."""
    view = replace(value, identity=value.identity[:_MODEL_IDENTITY], nodes=())
    room = PAGE_CHARACTERS - FOLLOWING - json_size(as_json(view))
    nodes = value.nodes[: fitting((json_size(as_json(node)) for node in value.nodes), room)]
    view = replace(view, nodes=nodes)
    return ModelView(view, overview_text(view))


@UPKEEP.operation(
    "An overview of the memory",
    overview_text,
    READS,
    command="overview",
    examples=("pps overview ana",),
    for_model=overview_for_model,
)
async def overview(memory: Memory, _: Nothing) -> Overview:
    """Use it for a summary of a memory.

    Returns the identity, the people, places, projects and things that matter now, recent changes,
    the latest conversations and records, what agents were given today, what waits for the person,
    and the health.
    """
    return await memory.overview()


def stats_text(value: Stats) -> str:
    span = (
        f", {day_text(value.first_turn_at)} to {day_text(value.last_turn_at)}"
        if value.first_turn_at
        else ""
    )
    lines = [
        f"{value.entity} ({value.store})",
        f"turns {value.turns:,}{span}",
        (
            f"nodes {value.nodes:,} · facts {value.facts:,} · episodes {value.episodes:,} · "
            f"anchors {value.anchors:,}"
        ),
    ]
    if value.unfinished_jobs or value.index_lag:
        lines.append(
            f"in work: {counted(value.unfinished_jobs, 'turn')}, "
            f"{counted(value.index_lag, 'index entry')}"
        )
    return "\n".join(lines)


@UPKEEP.operation(
    "Count what is known", stats_text, READS, command="stats", examples=("pps stats ana",)
)
async def stats(memory: Memory, _: Nothing) -> Stats:
    """Returns the number of turns, nodes, facts and anchors, and the time they cover.

    Also how many turns are still being processed.
    """
    return await memory.stats()


@dataclass(frozen=True, slots=True)
class Examined:
    """Whether a memory is well and its journal, graph and indexes hold the same ids."""

    ok: bool
    problems: tuple[str, ...]
    notes: tuple[str, ...]
    ledger: Ledger


def health_text(value: Health | Examined) -> str:
    lines = ["All is well." if value.ok else "Not well:"]
    return "\n".join(
        [
            *lines,
            *(f"- {problem}" for problem in value.problems),
            *(f"note: {note}" for note in value.notes),
        ]
    )


@UPKEEP.operation("Check a memory's health", health_text, READS)
async def health(memory: Memory, _: Nothing) -> Health:
    """Use it when something fails.

    Returns whether this memory works, and for each problem what to do.
    """
    return await memory.health()


def extracted_text(value: Extracted) -> str:
    if not value.turns:
        return "Nothing to read: every turn was read, or came with facts."
    why = f" ({value.why})" if value.why else ""
    if value.dry_run:
        return f"{value.turns:,} turns to read, about {value.tokens:,} tokens in and out.{why}"
    rest = f"; {value.waiting:,} wait{why}" if value.waiting else ""
    head = (
        f"{value.read:,} of {value.turns:,} turns read: {value.facts:,} facts, {value.dropped:,} "
        f"left out that no turn says, {value.tokens:,} tokens{rest}."
    )
    return "\n".join([head, *map(_left_out_text, value.left_out)])


@UPKEEP.operation(
    "Find facts in earlier turns",
    extracted_text,
    SETS,
    command="extract",
    examples=("pps extract ana --dry-run", "pps extract ana --since 2026-11-01"),
)
async def extract(memory: Memory, request: ExtractInput, progress: Progress | None) -> Extracted:
    """Use it to let the owner's extraction command find facts in turns that were not read yet.

    It spends the owner's tokens: ask first. By default it only returns the number of turns and an
    estimate of the tokens.
    """
    return await memory.jobs.extract(request.since, dry_run=request.dry_run, progress=progress)


def job_text(value: JobReport) -> str:
    why = f": {value.error}" if value.error and value.state != "done" else ""
    again = (
        f" It is tried again at {moment_text(value.next_at)}."
        if value.next_at and value.state == "queued"
        else ""
    )
    lines = [
        f"Job {value.id} {_JOB_STATES[value.state]}{why}.{again} [{value.turn_id}]",
        f"  “{value.text}”",
    ]
    lines += [f"  {_attempt_text(skipped_item)}" for skipped_item in value.tried]
    return "\n".join(
        [*lines, *(f"  {_left_out_text(skipped_item)}" for skipped_item in value.skipped)]
    )


def _left_out_text(skipped: Skipped) -> str:
    return (
        f"left out: {skipped.what}: {skipped.why}" if skipped.what else f"left out: {skipped.why}"
    )


def _attempt_text(attempt_report: AttemptReport) -> str:
    took_s = (attempt_report.ended_at - attempt_report.began_at).total_seconds()
    why = f": {attempt_report.error}" if attempt_report.error else ""
    cost = (
        f", {attempt_report.tokens_in:,} + {attempt_report.tokens_out:,} tokens, "
        f"${attempt_report.cost_usd:.4f}"
        if attempt_report.tokens_in
        else ""
    )
    return (
        f"{iso(attempt_report.began_at)} {attempt_report.stage} {attempt_report.outcome} "
        f"({took_s:.2f} s{cost}){why}"
    )


@UPKEEP.operation(
    "Show the state of a turn",
    job_text,
    READS,
    command="jobs show",
    examples=("pps jobs show ana 17",),
)
async def job_status(memory: Memory, request: JobStatusInput) -> JobReport:
    """Use it to learn whether a text that {remember} accepted is in graph and indexes.

    Returns every attempt, and why it failed if it did.
    """
    return await memory.jobs.status(request.id)


def ingestion_text(value: IngestionStats) -> str:
    lines = [
        f"waiting {value.queued + value.running:,} of at most {value.queue_most:,} · done "
        f"{value.done:,} · failed {value.failed:,} · dropped {value.dropped:,} · index entries to "
        f"make {value.index_lag:,}",
        f"last {value.window_s:,} s: {value.attempts:,} attempts, {value.failures:,} failed, "
        f"{value.tokens_in:,} tokens in, {value.tokens_out:,} out, ${value.cost_usd:.4f}",
    ]
    if value.queued + value.running:
        lines.append(
            f"oldest waits {value.oldest_s:,.0f} s; nothing ended for {value.stalled_s:,.0f} s"
        )
    return "\n".join([*lines, *(f"waits: {reason}" for reason in value.waits_for)])


@UPKEEP.operation("Show the state of ingestion", ingestion_text, READS)
async def ingestion_stats(memory: Memory, _: Nothing) -> IngestionStats:
    """Returns how many texts wait for graph and indexes, how many failed, and what they wait for."""
    return await memory.jobs.stats()


def costs_text(value: CostReport) -> str:
    bound = f" of {value.tokens_per_day:,}" if value.tokens_per_day else ""
    pause = (
        f"; reading pauses until {moment_text(value.paused_until)}" if value.paused_until else ""
    )
    none = [] if value.days else [EMPTY["costs"]]
    today = f"today {value.tokens_today:,}{bound} tokens{pause}"
    return "\n".join([today, *map(_cost_line, value.days), *none])


def _cost_line(cost_day: CostDay) -> str:
    cost = f", ${cost_day.cost_usd:.4f}" if cost_day.cost_usd is not None else ""
    silent = f", {cost_day.unmetered:,} answers did not say" if cost_day.unmetered else ""
    name = cost_day.model or "a model without a name"
    return (
        f"{cost_day.day} {name}: {cost_day.texts:,} texts, {cost_day.requests:,} requests, "
        f"{cost_day.tokens_in:,} tokens in, "
        f"{cost_day.tokens_out:,} out{cost}{silent}"
    )


@UPKEEP.operation(
    "Show what language models cost",
    costs_text,
    READS,
    command="costs",
    examples=("pps costs ana --days 7",),
)
async def costs(memory: Memory, request: CostsInput) -> CostReport:
    """Returns tokens, requests and dollars of extraction by a language model, by day and model.

    Also what is left of today's budget. Dollars only where the price is known.
    """
    return await memory.costs.report(request.days)


def injected_text(value: Injected) -> str:
    share = "none" if value.empty_share is None else f"{value.empty_share:.0%}"
    mean = (
        f", {value.tokens_a_session:,.0f} a session" if value.tokens_a_session is not None else ""
    )
    head = (
        f"{value.days} days: {value.sessions:,} sessions, {value.prompts:,} prompts ({share} "
        f"answered with nothing), {value.tokens:,} tokens{mean}"
    )
    lines = [
        f"{pack.last_at:%Y-%m-%d %H:%M} {pack.session or '(no session)'}: {pack.prompts:,} "
        f"prompts, {pack.empty:,} with nothing, {pack.tokens:,} tokens"
        for pack in value.latest
    ]
    for pack in value.packs:
        lines.append(f"{pack.at:%Y-%m-%d %H:%M:%S} {pack.occasion}: {pack.tokens:,} tokens")
        lines += [f"  {line.kind} {line.text} [{line.id}]" for line in pack.lines]
    none = [] if lines else [EMPTY["injected"]]
    return "\n".join([head, *lines, *none])


@UPKEEP.operation(
    "Show what agents were given",
    injected_text,
    READS,
    command="injected",
    examples=("pps injected ana --days 30", "pps injected ana --session 2f6c1c1e"),
)
async def injected(memory: Memory, request: InjectedInput) -> Injected:
    """Returns how many tokens of this memory agents were given, by session.

    Also how many prompts got nothing; with {session}, the contents of each pack of that
    conversation.
    """
    return await memory.sessions.injected(request.days, request.session)


@dataclass(frozen=True, slots=True)
class LastProof:
    """The last proof of isolation; nothing when none was run."""

    proof: Proof | None = None


def proof_text(value: LastProof) -> str:
    proof = value.proof
    if proof is None:
        return "No proof was run here; the owner runs one with `pps verify-isolation`."
    text = (
        "nothing went wrong"
        if proof.ok
        else f"{proof.leaks} leaks, {proof.told_apart} told apart, {proof.broken} broken"
    )
    return (
        f"{moment_text(proof.at)}: {proof.operations:,} attacks on {proof.store} in "
        f"{proof.seconds:g} s, {text} (PPS {proof.version})."
    )


@UPKEEP.operation("Show the last proof of isolation", proof_text, READS)
async def last_proof(memory: Memory, _: Nothing) -> LastProof:
    """Returns when isolation was last attacked, the attacks by kind, and the number of leaks.

    The owner of the machine runs `pps verify-isolation`, on throw-away memories.
    """
    return LastProof(await asyncio.to_thread(lambda: memory.last_proof))
