"""Our facts channel beside the plain ways to search the same indexes, each as a profile."""

from __future__ import annotations

from benchmarks.ablation import write_profile
from benchmarks.latency import CLIENTS, Figures, Questions, by_clients
from pps.config import Settings
from pps.memory import Memory

OURS = "facts"
_ALONE = {"dense-alone": "dense", "bm25-alone": "bm25"}
WAYS = (OURS, *_ALONE)
LIMIT = 10
_WARM = 30


def write_ways(settings: Settings) -> None:
    """Write the profiles of a single perspective into the home's own profiles."""
    for name, perspective in _ALONE.items():
        write_profile(settings, name, {"perspectives": {perspective: 1.0}}, "facts")


async def ask_facts(memory: Memory, query: str, way: str) -> object:
    """Ask the facts channel in one of the ``WAYS``."""
    return await memory.recall(query, profile=way, channels=("facts",), limit=LIMIT)


async def beside(memory: Memory, questions: Questions, calls: int) -> dict[str, dict[str, Figures]]:
    """Return the latencies of each of the ``WAYS`` by the number of clients."""
    found: dict[str, dict[str, Figures]] = {}
    for way in WAYS:

        async def ask(query: str, way: str = way) -> object:
            return await ask_facts(memory, query, way)

        for query in questions.take(min(_WARM, calls)):
            await ask(query)
        found[way] = {
            str(clients): await by_clients(ask, questions.take(calls), clients)
            for clients in CLIENTS
        }
    return found
