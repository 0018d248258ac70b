"""Asks one entity in a process of its own, so that opening, memory and latency are those of a server that only asks.

``python -m benchmarks.probe`` reads a JSON object on stdin and prints one on stdout; ``asked`` runs it.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import subprocess
import sys
import time as clock
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Literal

from benchmarks.beside import LIMIT, OURS, ask_facts, beside
from benchmarks.generator import SHARES, World, share_tag
from benchmarks.latency import (
    CLIENTS,
    Ask,
    Figures,
    Questions,
    by_clients,
    parts,
    percentiles,
    timed,
    warmed,
)
from benchmarks.machine import peak_mib, resident_mib
from benchmarks.words import WordVectors
from pps.app import App
from pps.config import load
from pps.core.errors import ConfigError, StoreError
from pps.core.footprint import few_arenas, keep_what_is_loaded, switch_threads_often
from pps.journal.filters import ItemFilter
from pps.memory import Memory
from pps.models.embedding import CachedEmbedder
from pps.models.factory import make_embedder
from pps.models.protocols import Embedder

_SESSION = "live"
_FAR = datetime(2200, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Asked:
    """What a probe does.

    Attributes:
        entity: Whose memory is opened.
        turns: How many turns of the world of ``seed`` it holds.
        calls: Calls behind each row of percentiles.
        parts: Some of ``latency``, ``beside``, ``filters``, ``edges``, ``lookups``.
        first: The way (``beside.WAYS``) of the very first recall; empty is an ambient one.
    """

    entity: str
    seed: int
    turns: int
    calls: int
    parts: tuple[str, ...]
    first: str = ""


def asked(wanted: Asked, environment: Mapping[str, str]) -> dict[str, Any]:
    """Run a probe in a fresh process and return what it measured. Blocks.

    Raises:
        StoreError: It failed; the message is the end of what it said.
    """
    child = subprocess.run(
        [sys.executable, "-P", "-m", "benchmarks.probe"],
        input=json.dumps(asdict(wanted)),
        env={
            # As ``pps serve`` has it: else idle threads of numpy's take a core beside each recall.
            "OPENBLAS_NUM_THREADS": "1",
            **environment,
            "PYTHONPATH": str(Path(__file__).parents[1]),
        },
        capture_output=True,
        text=True,
        check=False,
    )
    if child.returncode:
        raise StoreError(f"the probe failed: {child.stderr.strip()[-300:]}")
    return json.loads(child.stdout)


def bench_embedder(environment: Mapping[str, str]) -> Embedder:
    """Return the embedder of generated data: the setting's model, whose passages were given.

    Raises:
        ConfigError: The settings name no embedder.
    """
    settings = load(env=environment)
    model = make_embedder(settings.embedder)
    if model is None:
        raise ConfigError("embedder.name: is 'none', and latencies without it say little; set one")
    return CachedEmbedder(WordVectors(model))


async def probe(wanted: Asked, environment: Mapping[str, str]) -> dict[str, Any]:
    """Open the entity twice, ask it, and return every figure."""
    settings = load(env=environment)
    found: dict[str, Any] = {}
    async with App.open(settings, embedder=bench_embedder(environment)) as app:
        before = resident_mib()
        for name in ("open_first_s", "open_warm_s"):
            started = clock.perf_counter()
            async with app.memory(wanted.entity):
                found[name] = round(clock.perf_counter() - started, 3)
            if name == "open_first_s":
                await app.close_all()
        async with app.memory(wanted.entity) as memory:
            questions = _questions(wanted)
            found["first_recall_ms"] = round(
                await timed(_first(memory, wanted.first), questions.take(1)[0]), 1
            )
            found["nodes"] = (await memory.stats()).nodes
            keep_what_is_loaded()  # as ``pps serve`` does
            for part in wanted.parts:
                found[part] = await _PARTS[part](memory, wanted, questions)
        found["memory_mib"] = {
            "before_opening": before,
            "in_use": resident_mib(),
            "peak": peak_mib(),
        }
    return found


def _first(memory: Memory, way: str) -> Ask:
    async def facts(query: str) -> object:
        return await ask_facts(memory, query, way)

    return facts if way else memory.ambient_recall


def _questions(wanted: Asked) -> Questions:
    world, count = World(wanted.seed), wanted.calls * 60 + 200
    mixed = [
        *world.questions(count // 2, wanted.turns),
        *world.vague_questions(count // 2, wanted.turns),
    ]
    random.Random(wanted.seed).shuffle(mixed)  # noqa: S311 - not a secret
    return Questions(mixed)


async def _latency(memory: Memory, wanted: Asked, questions: Questions) -> dict[str, Any]:
    ambient_recall = _ambient(memory)
    for query in questions.take(min(30, wanted.calls)):
        await ambient_recall(query)
    ambient = {
        str(clients): await by_clients(ambient_recall, questions.take(wanted.calls), clients)
        for clients in CLIENTS
    }
    return {
        "ambient_recall_by_clients": ambient,
        "recall_default": await by_clients(memory.recall, questions.take(wanted.calls), 1),
        "parts_of_ambient": await parts(memory, questions.take(wanted.calls), "ambient", _SESSION),
        "remember_done": await by_clients(
            _remembered(memory, "done"), questions.take(min(wanted.calls, 30)), 1
        ),
        "remember_journal": await by_clients(
            _remembered(memory, "journal"), questions.take(min(wanted.calls, 30)), 1
        ),
    }


def _ambient(memory: Memory) -> Ask:
    """Return what a hook asks: within a session, so that what it was shown lately is looked up, and noted."""

    async def ambient_recall(context: str) -> object:
        return await memory.ambient_recall(context, session=_SESSION)

    return ambient_recall


def _remembered(memory: Memory, wait: Literal["done", "journal"]) -> Ask:
    async def remember(text: str) -> object:
        return await memory.remember(text, wait=wait, source="bench", session=f"live-{wait}")

    return remember


async def _edges(memory: Memory, wanted: Asked, questions: Questions) -> dict[str, Any]:
    async def facts(query: str) -> object:
        return await ask_facts(memory, query, OURS)

    async def recipe(query: str) -> object:
        return await memory.recall(query, profile="EDGE_HYBRID_SEARCH_RRF", limit=LIMIT)

    for ask in (facts, recipe):
        await warmed(ask, questions, wanted.calls)
    return {
        "facts_channel": await by_clients(facts, questions.take(wanted.calls), 1),
        "same_recipe_on_our_indexes": await by_clients(recipe, questions.take(wanted.calls), 1),
    }


async def _beside(memory: Memory, wanted: Asked, questions: Questions) -> dict[str, Any]:
    return await beside(memory, questions, wanted.calls)


async def _filters(memory: Memory, wanted: Asked, questions: Questions) -> dict[str, Any]:
    """Ask the facts channel with and without filters, taking turns, so that the machine's moods hit all alike.

    A filter that was asked before may be remembered; ``first_use`` are filters that never were.
    """
    names = ("none", *map(share_tag, SHARES))
    again: dict[str, list[float]] = {name: [] for name in names}
    first: dict[str, list[float]] = {name: [] for name in names}
    least = dict.fromkeys(names, LIMIT)

    async def ask(query: str, filters: ItemFilter, name: str, times: list[float]) -> None:
        started = clock.perf_counter()
        recalled = await memory.recall(
            query, profile="facts", channels=("facts",), limit=LIMIT, filters=filters
        )
        times.append((clock.perf_counter() - started) * 1000)
        least[name] = min(least[name], len(recalled["facts"]))

    for number, query in enumerate(questions.take(2 * wanted.calls)):
        for name in names:
            tags = () if name == "none" else (name,)
            await ask(query, ItemFilter(tags=tags), name, again[name])
            if tags and number % 4 == 0:
                never = ItemFilter(tags=tags, until=_FAR + timedelta(seconds=number))
                await ask(query, never, name, first[name])
    plain = percentiles(again["none"])
    found: dict[str, dict[str, Any]] = {
        name: {**_against(percentiles(again[name]), plain), "fewest_results": least[name]}
        for name in names
    }
    for name in names[1:]:
        found[name]["first_use"] = _against(percentiles(first[name]), plain)
    return found


def _against(figures: Figures, plain: Figures) -> Figures:
    return {**figures, "p95_times_unfiltered": round(figures["p95"] / plain["p95"], 2)}


async def _lookups(memory: Memory, wanted: Asked, questions: Questions) -> dict[str, Any]:
    from benchmarks.lookups import lookups  # which runs probes itself

    return await lookups(memory, wanted, questions)


_PARTS: Mapping[str, Any] = {
    "latency": _latency,
    "beside": _beside,
    "filters": _filters,
    "edges": _edges,
    "lookups": _lookups,
}


def main() -> int:
    """Read what is asked on stdin, print what was measured."""
    few_arenas()  # as ``pps serve`` has them
    switch_threads_often()
    given: dict[str, Any] = json.load(sys.stdin)
    given["parts"] = tuple(given["parts"])
    wanted = Asked(**given)
    sys.stdout.write(json.dumps(asyncio.run(probe(wanted, os.environ))) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
