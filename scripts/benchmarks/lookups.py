"""What a lookup in each perspective takes in a large memory, and what its features cost beside the vectors alone."""

from __future__ import annotations

import asyncio
import contextlib
import sqlite3
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from benchmarks import pages
from benchmarks.ablation import write_profile
from benchmarks.generator import World
from benchmarks.latency import Questions, by_clients, percentiles, timed
from benchmarks.machine import machine, resident_mib
from benchmarks.measuring import throw_away
from benchmarks.pages import Report
from benchmarks.probe import Asked, asked, bench_embedder
from benchmarks.quality import Progress
from pps import __version__
from pps.app import App
from pps.config import Settings
from pps.config.spaces import spaces
from pps.core.values import NodeDraft
from pps.ingest.drafts import RememberOptions
from pps.memory import Memory
from pps.recall.perspectives import PERSPECTIVES

GOAL_MS, INJECT_GOAL_MS = 5, 100
_ASKED = tuple(one.perspective for one in spaces().values() if one.perspective != "late")
"""All but the one that reads the best fifty word by word: it costs the same at any size (perspectives.md)."""
ENTITY = "large"
_NAME = "only-{}"
_WHOLE = "multi_space"
_WARM, _PAGE, _WRITES = 10, 250, 20
_FEATURE_SIZES = "SELECT perspective, sum(length(blob)) FROM features GROUP BY 1"
_FILE = "src/step_{}.py"
_SAID = (
    f"We changed {_FILE} to call load_step().",
    "It failed because the cache of step {} was stale.",
    "I want to find out how step {} can be made faster.",
)


def write_lookups(settings: Settings) -> None:
    """Write a profile for each perspective: alone, or with the vectors."""
    for name in _ASKED:
        beside = {} if PERSPECTIVES[name].finds else {"dense": 1.0}
        write_profile(settings, _NAME.format(name), {"perspectives": {**beside, name: 1.0}})


def memories(world: World, start: int, stop: int) -> Iterator[tuple[str, RememberOptions]]:
    """Yield turns as ``remember_many`` takes them, one fact each; some tell causes, intents, code."""
    for number, (text, options) in enumerate(world.turns(start, stop), start):
        (fact, *_), said = world.facts(number), ("", *_SAID)[number % 4]
        nodes = (NodeDraft(fact.subject, "Person"),)
        yield f"{text} {said.format(number)}".strip(), {**options, "facts": (fact,), "nodes": nodes}


async def large(
    turns: int, env: Mapping[str, str], out: Path | None, progress: Progress, calls: int = 100
) -> dict[str, Any]:
    """Write a memory of so many turns, ask it in a process of its own, and return the report as plain JSON.

    ``calls`` are made by each perspective, after a few that are not counted.
    """
    world, before = World(), machine()
    async with throw_away(env, None) as settings:
        write_lookups(settings)
        inner = {**env, "PPS_HOME": str(settings.home), "PPS_STORE": settings.store}
        async with App.open(settings, embedder=bench_embedder(inner)) as app:
            await app.create(ENTITY)
            async with app.memory(ENTITY) as memory:
                for at in range(0, turns, _PAGE):
                    await memory.remember_many(list(memories(world, at, min(at + _PAGE, turns))))
                    await memory.settled()
                    progress("writing a large memory", min(at + _PAGE, turns), turns)
            async with app.memory(ENTITY) as memory:
                features: list[tuple[str, int]] = await memory.parts.journal.read(
                    lambda db: db.execute(_FEATURE_SIZES).fetchall()
                )
        found = await asyncio.to_thread(
            asked, Asked(ENTITY, world.seed, turns, calls, ("lookups",)), inner
        )
        vectors = _vector_sizes(settings.home / "entities" / ENTITY / "data" / "vectors.db")
        sizes = {name: round(int(size) / turns, 1) for name, size in (*vectors, *features) if size}
    report: dict[str, Any] = {
        "benchmark": "lookups",
        "title": "Perspectives in a large memory",
        "command": f"scripts/bench lookups --turns {turns} --out docs/benchmarks",
        "version": __version__,
        "machine": before,
        "store": settings.store,
        "embedder": settings.embedder.name,
        "turns": turns,
        "memory_mib": found["memory_mib"],
        "bytes_a_turn": sizes,
        **found["lookups"],
    }
    if out:
        await asyncio.to_thread(pages.save, report, out, "lookups", page, _draw)
    return report


async def lookups(memory: Memory, wanted: Asked, questions: Questions) -> dict[str, Any]:
    """Return for each perspective what finding by it alone takes in ms, of the calls that found something.

    ``growth_mib`` is by how much the process grew while it was first asked so; the vectors come first.
    """
    found: dict[str, Any] = {}
    warm = min(_WARM, wanted.calls)
    for name in _ASKED:
        before = resident_mib()
        times: list[float] = []
        for call, question in enumerate(questions.take(warm + wanted.calls)):
            number = call * 4 + 1
            query = f"Why did we change {_FILE.format(number)}? {question}"
            recalled = await memory.recall(
                query, profile=_NAME.format(name), channels=("episodes",), session="live"
            )
            if call >= warm and recalled["episodes"]:
                times.append(recalled.took_ms["retrieve"] + recalled.took_ms["rerank"])
        ms = percentiles(times) if times else None
        finds = PERSPECTIVES[name].finds
        found[name] = {
            "finds": finds,
            "found": len(times),
            "ms": ms,
            "growth_mib": round(resident_mib() - before, 1),
        }

    async def inject(question: str) -> object:
        return await memory.ambient_recall(question, session="inject")

    async def whole(question: str) -> object:
        return await memory.recall(question, profile=_WHOLE)

    times: list[float] = []
    for question in questions.take(min(wanted.calls, _WRITES)):
        await memory.remember(f"{question} Nobody knows.", source="bench")
        times.append(await timed(whole, question))
    return {
        "perspectives": found,
        "inject": await by_clients(inject, questions.take(wanted.calls), 1),
        "whole": await by_clients(whole, questions.take(wanted.calls), 1),
        "whole_after_a_write": percentiles(times),
    }


def _vector_sizes(file: Path) -> list[tuple[str, int | None]]:
    with contextlib.closing(sqlite3.connect(file)) as rows:
        return rows.execute("SELECT 'vectors', sum(length(vector)) FROM rows").fetchall()


def _table(report: Report) -> list[list[str]]:
    return [
        [
            name if one["finds"] else f"vectors and {name}",
            str(one["found"]),
            f"{one['ms']['p50']} / {one['ms']['p95']}" if one["ms"] else "–",
            str(one["growth_mib"]),
        ]
        for name, one in report["perspectives"].items()
    ]


def page(report: Report, name: str) -> str:
    """Return the report as Markdown."""
    inject, whole, after = report["inject"], report["whole"], report["whole_after_a_write"]
    parts = [
        *pages.head(report, name),
        f"{report['turns']:,} generated turns and as many facts. Milliseconds of finding turns by one perspective "
        "alone, without the question's embedding, p50 / p95 of the calls that found something (goal p95 < "
        f"{GOAL_MS}); one that finds nothing itself orders what the vectors found. MiB is by how much the process grew "
        "when it was first asked.",
        pages.table(["perspective", "found", "ms", "MiB"], _table(report)),
        f"An ambient recall by all that its profile has, the embedding included: {inject['p50']} / {inject['p95']} ms "
        f"(goal p95 < {INJECT_GOAL_MS}). A recall by `{_WHOLE}` in all channels: {whole['p50']} / {whole['p95']} ms; "
        f"the first after a write, for which features are read anew: {after['p50']} / {after['p95']} ms. The process "
        f"holds {report['memory_mib']['in_use']:.0f} MiB at the end.",
        "Bytes on disk a turn, with its fact and its nodes: "
        + ", ".join(f"{one} {size:,.0f}" for one, size in report["bytes_a_turn"].items())
        + ".",
    ]
    return "\n\n".join(parts) + "\n"


def text(report: Report) -> str:
    """Return the table for a terminal."""
    return "\n".join("  ".join(row) for row in _table(report))


def _draw(report: Report, file: Path) -> None:
    found = {name: one["ms"]["p95"] for name, one in report["perspectives"].items() if one["ms"]}
    with pages.panels(file, 1) as (axis,):
        axis.barh(list(found)[::-1], list(found.values())[::-1], color=pages.OURS_COLOUR)
        axis.axvline(GOAL_MS, color=pages.GOAL_COLOUR, linestyle="--")
        axis.set_xlabel("ms, p95")
