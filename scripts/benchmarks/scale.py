"""Speed and size on generated memories: latency, memory, disk, filters, the edge channel, writing; one report."""

from __future__ import annotations

import asyncio
import contextlib
import os
import time as clock
from collections.abc import AsyncGenerator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from benchmarks import acknowledging, writing
from benchmarks.agreement import agreement
from benchmarks.beside import LIMIT, write_ways
from benchmarks.generator import FACTS_A_TURN, World
from benchmarks.latency import (
    CLIENTS,
    Ask,
    Questions,
    by_clients,
    percentiles,
    timed,
    warm_s,
    warmed,
)
from benchmarks.machine import disk_bytes, machine
from benchmarks.measuring import delete_all, throw_away
from benchmarks.probe import Asked, asked, bench_embedder
from benchmarks.quality import Progress
from benchmarks.stock import StockGraphiti
from pps import __version__
from pps.app import App
from pps.config import Settings
from pps.core.errors import ConfigError, InvalidRequest
from pps.models.factory import make_embedder

ONLY = ("recall", "filters", "edges", "nearest", "structured", "import", "http")
"""What a run can be held to."""

SIZES = (2_500, 25_000, 100_000)
MIDDLE = 50_000
"""Facts at which filters and the edge channel are measured."""

ENTITY = "world"
_STOCK_CALLS = 30
_STOCK_WARM, _STOCK_BESIDE = 3, 12
_COLD_STARTS, _COLD_BESIDE = 5, 3


@dataclass(frozen=True, slots=True)
class Plan:
    """What a scale run measures.

    Attributes:
        sizes: Facts at which latency is measured, rising; a fifth as many nodes and a quarter as many turns. The
            nearest are compared at the last.
        middle: Facts at which filters and the edge channel are measured.
        only: Some of ``ONLY``; empty for all.
        calls: Calls behind each row of percentiles.
        facts, turns: How many are written where writing is measured.
        seed: Of the generated world.
    """

    sizes: tuple[int, ...] = SIZES
    middle: int = MIDDLE
    only: tuple[str, ...] = ()
    calls: int = 150
    facts: int = 20_000
    turns: int = 2_400
    seed: int = 7

    def wants(self, what: str) -> bool:
        """Tell whether a part is measured."""
        return not self.only or what in self.only

    def command(self, store: str) -> str:
        """Return the command that asks for the same."""
        words = ["scripts/bench scale"]
        plain = Plan()
        if self.sizes != plain.sizes:
            words.append("--sizes " + ",".join(map(str, self.sizes)))
        if self.middle != plain.middle:
            words.append(f"--middle {self.middle}")
        if self.only:
            words.append("--only " + ",".join(self.only))
        given = {name: getattr(self, name) for name in ("calls", "facts", "turns", "seed")}
        words += [
            f"--{name} {value}" for name, value in given.items() if value != getattr(plain, name)
        ]
        return " ".join([*words, *([f"--store {store}"] if store else [])])


@dataclass(slots=True)
class _Run:
    """A run under way: what it works with and what it has found."""

    plan: Plan
    settings: Settings
    environment: Mapping[str, str]
    progress: Progress
    world: World
    written_turns: int = 0
    written_s: float = 0.0
    found: dict[str, Any] = field(default_factory=dict[str, Any])


async def scale(
    plan: Plan, store: str, environment: Mapping[str, str], progress: Progress
) -> dict[str, Any]:
    """Write generated memories into throw-away entities, measure them, and return the report as plain JSON.

    Raises:
        InvalidRequest: An option is not what it should be.
        ConfigError: The settings name no embedder, or the store cannot be used.
    """
    _check(plan)
    started = clock.perf_counter()
    async with throw_away(environment, store or None) as settings:
        inner = {**environment, "PPS_HOME": str(settings.home), "PPS_STORE": settings.store}
        run = _Run(plan, settings, inner, progress, World(plan.seed))
        before = machine()
        await _stages(run)
        if plan.wants("nearest"):
            run.found["nearest"] = await asyncio.to_thread(_nearest, run)
        await _writing(run)
    return {
        "title": "Scale: speed and size",
        "command": plan.command(store),
        "benchmark": "scale",
        "version": __version__,
        "machine": before,
        "store": settings.store,
        "embedder": settings.embedder.name,
        "reranker": settings.reranker.name,
        "seed": plan.seed,
        **run.found,
        "load_1_min_at_the_end": round(os.getloadavg()[0], 2),
        "took_s": round(clock.perf_counter() - started, 0),
    }


def _check(plan: Plan) -> None:
    unknown = [one for one in plan.only if one not in ONLY]
    if unknown:
        raise InvalidRequest("only", f"must be some of {', '.join(ONLY)}")
    if any(size < 100 or size > 1_000_000 for size in (*plan.sizes, plan.middle, plan.facts)):
        raise InvalidRequest("sizes", "must be 100 to 1,000,000 facts each")
    if not 2 <= plan.calls <= 10_000 or not 20 <= plan.turns <= 100_000:
        raise InvalidRequest("calls", "must be 2 to 10,000, and turns 20 to 100,000")


async def _stages(run: _Run) -> None:
    """Let one memory grow from size to size and measure it at each."""
    plan = run.plan
    stages: dict[int, list[str]] = {}
    if plan.wants("recall"):
        write_ways(run.settings)
        stages.update((size, ["latency", "beside"]) for size in plan.sizes)
    for part in ("filters", "edges"):
        if plan.wants(part):
            stages.setdefault(plan.middle, []).append(part)
    for size in sorted(stages):
        await _grown(run, size)
        run.progress(f"measuring {size:,} facts", 0, 1)
        wanted = Asked(ENTITY, plan.seed, run.written_turns, plan.calls, tuple(stages[size]))
        await _measured(run, size, wanted)
        run.progress(f"measuring {size:,} facts", 1, 1)


def _nearest(run: _Run) -> dict[str, int | dict[str, float]]:
    model = make_embedder(run.settings.embedder)
    if model is None:
        raise ConfigError(
            "embedder.name: is 'none', and there is nothing to compare without vectors; set one"
        )
    with contextlib.closing(model):
        return agreement(model, run.world, max(run.plan.sizes), run.progress)


async def _grown(run: _Run, size: int) -> None:
    turns = size // FACTS_A_TURN
    run.progress(f"writing {size:,} facts", 0, 1)
    async with App.open(run.settings, embedder=bench_embedder(run.environment)) as app:
        await app.create(ENTITY)
        run.written_s += await writing.grow(app, ENTITY, run.world, run.written_turns, turns)
    run.written_turns = turns
    run.progress(f"writing {size:,} facts", 1, 1)


async def _measured(run: _Run, size: int, wanted: Asked) -> None:
    found = await asyncio.to_thread(asked, wanted, run.environment)
    parts = {name: found.pop(name) for name in ("filters", "edges") if name in found}
    if "latency" in wanted.parts:
        found["first_recall_ms"] = await _cold(run, wanted, "", _COLD_STARTS)
        found["beside"] = {
            **{
                way: {
                    "cold_ms": await _cold(run, wanted, way, _COLD_BESIDE),
                    "by_clients": by_clients,
                }
                for way, by_clients in found["beside"].items()
            },
            "stock_search": await _stock_by_clients(run),
        }
        disk = disk_bytes(run.settings.home / "entities" / ENTITY)
        run.found.setdefault("recall", {})[str(size)] = {
            "facts": size,
            "turns": run.written_turns,
            **found,
            "disk_kib_a_fact": round(disk / size / 1024, 2),
            "written_facts_per_s_so_far": round(size / run.written_s, 0),
        }
    if "filters" in parts:
        run.found["filters"] = {"facts": size, "by_tag": parts["filters"]}
    if "edges" in parts:
        stock = await _stock_edges(run)
        ours = parts["edges"]["facts_channel"]
        run.found["edges"] = {
            "facts": size,
            **parts["edges"],
            "stock_graphiti": stock,
            "asked_before_s": warm_s(run.plan.calls),
            "times_faster_p50": round(stock["p50"] / ours["p50"], 1),
            "times_faster_p95": round(stock["p95"] / ours["p95"], 1),
        }


async def _cold(run: _Run, wanted: Asked, way: str, times: int) -> dict[str, float]:
    """Return the percentiles of the very first recall of so many processes, as many as calls at most."""
    first = replace(wanted, parts=(), first=way)
    found = [
        await asyncio.to_thread(asked, first, run.environment)
        for _ in range(min(times, run.plan.calls))
    ]
    return percentiles([one["first_recall_ms"] for one in found])


async def _stock_by_clients(run: _Run) -> dict[str, Any]:
    async with _stock(run) as (facts, questions):
        cold_ms = await timed(facts, questions.take(1)[0])
        for query in questions.take(_STOCK_WARM):
            await facts(query)
        calls = min(_STOCK_BESIDE, run.plan.calls)
        found = {
            str(clients): await by_clients(facts, questions.take(calls), clients)
            for clients in CLIENTS
        }
        return {"cold_ms": percentiles([cold_ms]), "by_clients": found}


async def _stock_edges(run: _Run) -> dict[str, Any]:
    """Ask stock Graphiti's edge search of the very graph that our edge channel was asked of, warmed as long."""
    async with _stock(run) as (facts, questions):
        await warmed(facts, questions, run.plan.calls)
        times = [
            await timed(facts, query) for query in questions.take(min(_STOCK_CALLS, run.plan.calls))
        ]
        return percentiles(times)


@contextlib.asynccontextmanager
async def _stock(run: _Run) -> AsyncGenerator[tuple[Ask, Questions]]:
    """Lend Graphiti's own search over the graph, and questions."""
    async with App.open(run.settings, embedder=bench_embedder(run.environment)) as app:
        entry = app.registry.get(ENTITY)
    embedder = bench_embedder(run.environment)
    stock = await StockGraphiti.open(run.settings, entry, embedder)

    async def facts(query: str) -> object:
        return await stock.facts(query, entry.entity.group, LIMIT)

    try:
        yield facts, Questions(run.world.questions(20 * run.plan.calls, run.written_turns + 1))
    finally:
        await stock.close()
        await asyncio.to_thread(embedder.close)


async def _writing(run: _Run) -> None:
    plan = run.plan
    if plan.wants("structured"):
        async with _elsewhere(run, "structured") as settings:
            run.found["structured"] = await writing.structured(settings, run.world, plan.facts)
    if plan.wants("import"):
        async with _elsewhere(run, "import") as settings:
            run.found["import"] = await writing.imported(settings, run.world, plan.turns)
    if plan.wants("http"):
        calls = max(acknowledging.CLIENTS, plan.calls * 4)
        async with _elsewhere(run, "http") as settings:
            run.found["http"] = await asyncio.to_thread(
                acknowledging.acknowledged, settings, run.world, calls
            )


@contextlib.asynccontextmanager
async def _elsewhere(run: _Run, name: str) -> AsyncGenerator[Settings]:
    """Lend settings with an empty data folder inside the throw-away one; its entities go at the end."""
    run.progress(f"writing: {name}", 0, 1)
    home = run.settings.home / name
    await asyncio.to_thread(home.mkdir)
    settings = run.settings.model_copy(update={"home": home})
    try:
        yield settings
    finally:
        await delete_all(settings)
        run.progress(f"writing: {name}", 1, 1)
