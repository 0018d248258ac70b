"""Latencies: percentiles of calls by one client after another or by several at once, and where the time goes."""

from __future__ import annotations

import asyncio
import itertools
import math
import time as clock
from collections.abc import Awaitable, Callable, Sequence
from typing import TypeAlias

from pps.core.recalled import Recall
from pps.memory import Memory

Ask: TypeAlias = Callable[[str], Awaitable[object]]
Figures: TypeAlias = dict[str, float]

CLIENTS = (1, 4, 8)
_WARM_S_A_CALL = 0.2
_WARM_QUESTIONS = 15
PARTS = ("embed", "retrieve", "fetch", "rerank", "total")


def percentiles(times_ms: Sequence[float]) -> Figures:
    """Return p50, p95 and p99 in milliseconds by the nearest rank, and how many calls there were."""
    ordered = sorted(times_ms)
    ranks = {
        name: max(1, math.ceil(share * len(ordered)))
        for name, share in (("p50", 0.5), ("p95", 0.95), ("p99", 0.99))
    }
    return {
        **{name: round(ordered[rank - 1], 2) for name, rank in ranks.items()},
        "calls": len(ordered),
    }


async def timed(ask: Ask, query: str) -> float:
    """Return how long one call took, in milliseconds."""
    started = clock.perf_counter()
    await ask(query)
    return (clock.perf_counter() - started) * 1000


async def by_clients(ask: Ask, queries: Sequence[str], clients: int) -> Figures:
    """Return the percentiles of calls by some clients at once, each asking again as soon as it has its answer."""
    waiting = iter(queries)
    times: list[float] = []

    async def client() -> None:
        for query in waiting:
            times.append(await timed(ask, query))  # noqa: PERF401 - what one client does, in order

    started = clock.perf_counter()
    await asyncio.gather(*(client() for _ in range(clients)))
    a_second = len(times) / (clock.perf_counter() - started)
    return {**percentiles(times), "calls_per_s": round(a_second, 1)}


async def parts(
    memory: Memory, queries: Sequence[str], profile: str, session: str
) -> dict[str, Figures]:
    """Return the percentiles of each part of one session's recalls; of channels, side by side, the slowest counts."""
    took: dict[str, list[float]] = {part: [] for part in PARTS}
    for query in queries:
        recalled: Recall = await memory.recall(query, profile=profile, session=session)
        for part in PARTS:
            took[part].append(recalled.took_ms[part])
    return {part: percentiles(times) for part, times in took.items()}


def warm_s(calls: int) -> float:
    """Return for how many seconds is asked before ``calls`` are timed."""
    return calls * _WARM_S_A_CALL


async def warmed(ask: Ask, questions: Questions, calls: int) -> None:
    """Ask for ``warm_s`` seconds: the machine of a database compiles what runs often, over some thousand calls."""
    ends = clock.perf_counter() + warm_s(calls)
    for query in itertools.cycle(questions.take(_WARM_QUESTIONS * calls)):
        if clock.perf_counter() >= ends:
            return
        await ask(query)


class Questions:
    """Hands out questions, none twice: a query that was asked before would not be embedded again."""

    def __init__(self, questions: Sequence[str]) -> None:
        self._left = iter(questions)

    def take(self, count: int) -> list[str]:
        """Return the next ones; raise ValueError when there are not so many left."""
        taken = list(itertools.islice(self._left, count))
        if len(taken) < count:
            raise ValueError(f"asked for {count} questions and only {len(taken)} are left")
        return taken
