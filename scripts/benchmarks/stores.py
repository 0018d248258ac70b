"""What the embedded store and SQL tables take for the same work on the same graph, through the client and its threads.

``PYTHONPATH=scripts python -m benchmarks.stores --facts 50000`` prints a table. Each question is asked of both stores in
turn, so that what else the machine does falls on both; their answers must be the same.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import statistics
import tempfile
import time
import uuid
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np

from pps.config import Settings
from pps.core.ids import EntityId, new_group
from pps.core.values import Episode, Fact, Node, Vector
from pps.index.indexes import EntityIndexes
from pps.models.hash import HashEmbedder
from pps.proof.arena import ExposedClient
from pps.proof.verify import throw_away

STORES = ("embedded", "sqlite")
_BEGAN = datetime(2026, 1, 1, tzinfo=UTC)
_DIMENSION = 384
_BATCH = 2_000

Answer = object
Work = Callable[[ExposedClient, int], Awaitable[Answer]]


class GraphWorld:
    """A graph of some facts, a quarter as many nodes and half as many episodes, the same for the same seed."""

    def __init__(self, facts: int, seed: int = 7) -> None:
        self._dice = random.Random(seed)  # noqa: S311 - a graph, not a secret
        self.nodes = [
            Node(self._id(), f"Node {number}", _BEGAN, kind="Person", tags=("a",))
            for number in range(facts // 4)
        ]
        self.episodes = [
            Episode(
                self._id(),
                "turn",
                f"text {number} " * 8,
                _BEGAN + timedelta(minutes=number),
                _BEGAN,
            )
            for number in range(facts // 2)
        ]
        self.facts = [self._fact(number) for number in range(facts)]
        self.more = [self._fact(facts + number) for number in range(_BATCH)]
        self.mentions = [
            (self.episodes[number % len(self.episodes)].uuid, fact.subject)
            for number, fact in enumerate(self.facts[: facts // 2])
        ]
        rows = np.random.default_rng(seed).standard_normal(
            (facts + _BATCH, _DIMENSION), dtype=np.float32
        )
        rows /= np.linalg.norm(rows, axis=1, keepdims=True)
        every = zip((*self.facts, *self.more), rows, strict=True)
        self.vectors: Mapping[str, Vector] = {fact.uuid: row for fact, row in every}

    def some(self, items: Sequence[Fact | Node | Episode], count: int, turn: int) -> list[str]:
        """Return ids of some items, the same for the same turn."""
        dice = random.Random(turn)  # noqa: S311 - a choice, not a secret
        return [item.uuid for item in dice.sample(items, count)]

    def _id(self) -> str:
        return str(uuid.UUID(int=self._dice.getrandbits(128), version=4))

    def _fact(self, number: int) -> Fact:
        subject, target = self._dice.choice(self.nodes), self._dice.choice(self.nodes)
        if self._dice.random() < 0.3:  # some nodes have many facts
            target = self.nodes[min(int(self._dice.paretovariate(1.2)), len(self.nodes) - 1)]
        return Fact(
            self._id(),
            subject.uuid,
            target.uuid,
            "KNOWS",
            f"{subject.name} knows {target.name} since {number}",
            _BEGAN + timedelta(seconds=number),
            episodes=(self.episodes[number % len(self.episodes)].uuid,),
            valid_at=_BEGAN + timedelta(hours=number % 9_000),
        )


@dataclass
class Figures:
    """Seconds of each piece of work on one store, and what it answered."""

    seconds: dict[str, float] = field(default_factory=dict[str, float])
    answers: list[Answer] = field(default_factory=list[Answer])


async def fill(client: ExposedClient, world: GraphWorld) -> None:
    for at in range(0, len(world.nodes), _BATCH):
        await client.save_nodes(world.nodes[at : at + _BATCH], {})
    for at in range(0, len(world.episodes), _BATCH):
        await client.save_episodes(world.episodes[at : at + _BATCH])
    for at in range(0, len(world.facts), _BATCH):
        await save(client, world, world.facts[at : at + _BATCH])
    for at in range(0, len(world.mentions), _BATCH):
        await client.save_mentions(world.mentions[at : at + _BATCH])


async def save(client: ExposedClient, world: GraphWorld, facts: Sequence[Fact]) -> None:
    await client.save_facts(facts, {fact.uuid: world.vectors[fact.uuid] for fact in facts})


async def scan(client: ExposedClient) -> int:
    after, count = "", 0
    while page := await client.scan_facts(after, 500):
        after = page[-1].uuid
        count += len(page)
    return count


async def audit(client: ExposedClient) -> tuple[int, set[bool]]:
    """Do what every opening of a client does: look for edges between groups and for another's rows."""
    return await client.inside.store.foreign_edges(), await client.inside.objects.strangers()


def questions(world: GraphWorld) -> dict[str, tuple[int, Work]]:
    """Return by name how often each piece of work is done, and the work."""
    w = world

    async def ids(work: Awaitable[Sequence[Fact]]) -> list[str]:
        return [fact.uuid for fact in await work]

    async def forget(client: ExposedClient, turn: int) -> int:
        return await client.delete_facts([fact.uuid for fact in w.more[turn * 20 : turn * 20 + 20]])

    return {
        "one fact by id": (60, lambda c, n: ids(c.facts(w.some(w.facts, 1, n)))),
        "50 facts by id": (40, lambda c, n: ids(c.facts(w.some(w.facts, 50, n)))),
        "1,000 facts by id": (6, lambda c, n: ids(c.facts(w.some(w.facts, 1_000, n)))),
        "50 nodes by id": (40, lambda c, n: c.nodes(w.some(w.nodes, 50, n))),
        "facts of one node": (40, lambda c, n: ids(c.facts_of_nodes(w.some(w.nodes, 1, n), 200))),
        "facts of ten nodes": (20, lambda c, n: ids(c.facts_of_nodes(w.some(w.nodes, 10, n), 200))),
        "two hops": (20, lambda c, n: c.inside.store.distances(w.some(w.nodes, 1, n)[0], 2)),
        "timeline, 100 facts": (20, lambda c, n: ids(c.timeline(limit=100))),
        "timeline of a node": (20, lambda c, n: ids(c.timeline(node=w.some(w.nodes, 1, n)[0]))),
        "what held in May": (
            10,
            lambda c, n: ids(c.timeline(as_of=_BEGAN + timedelta(days=130 + n), limit=100)),
        ),
        "facts of 20 episodes": (
            20,
            lambda c, n: ids(c.facts_of_episodes(w.some(w.episodes, 20, n))),
        ),
        "mentions of 20 episodes": (
            20,
            lambda c, n: c.mentioned_nodes(w.some(w.episodes, 20, n)),
        ),
        "audit at an opening": (3, lambda c, n: audit(c)),
        "counts": (5, lambda c, n: c.counts()),
        "scan of all facts": (2, lambda c, n: scan(c)),
        "write one fact": (20, lambda c, n: save(c, w, [w.more[n]])),
        "write 500 facts": (4, lambda c, n: save(c, w, w.more[n * 500 : n * 500 + 500])),
        "forget 20 facts": (5, forget),
    }


async def compare(facts: int, folder: Path) -> tuple[dict[str, Figures], dict[str, int]]:
    """Do the same work on both stores and return what each took, and the bytes of its files."""
    world = GraphWorld(facts)
    figures = {store: Figures() for store in STORES}
    clients: dict[str, ExposedClient] = {}
    async with AsyncExitStack() as stack:
        for store in STORES:
            settings = Settings(home=folder / store, store=store)
            place, open_driver = await stack.enter_async_context(throw_away(settings))
            entity = EntityId("bench", new_group())
            opened = await open_driver(entity, place)
            stack.push_async_callback(opened.close)
            fingerprint = HashEmbedder(8).fingerprint
            (place / "indexes").mkdir()
            indexes = await EntityIndexes.open(
                place / "indexes", group=entity.group, fingerprint=fingerprint
            )
            stack.push_async_callback(indexes.close)
            clients[store] = await ExposedClient.open(entity, opened, indexes)
            stack.push_async_callback(clients[store].close)
            began = time.perf_counter()
            await fill(clients[store], world)
            figures[store].seconds["fill"] = time.perf_counter() - began
        for name, (times, work) in questions(world).items():
            await _alternate(name, times, work, clients, figures)
        sizes = {
            store: sum(file.stat().st_size for file in (folder / store).rglob("graph.*"))
            for store in STORES
        }
    return figures, sizes


async def _alternate(
    name: str,
    times: int,
    work: Work,
    clients: Mapping[str, ExposedClient],
    figures: Mapping[str, Figures],
) -> None:
    seconds: dict[str, list[float]] = {store: [] for store in clients}
    for turn in range(times):
        for store in list(clients)[:: 1 if turn % 2 else -1]:
            began = time.perf_counter()
            answer = await work(clients[store], turn)
            seconds[store].append(time.perf_counter() - began)
            figures[store].answers.append(answer)
    for store, values in seconds.items():
        figures[store].seconds[name] = statistics.median(values)


def main() -> None:
    """Print a table: milliseconds on each store, and how many times as long the embedded one takes."""
    reader = argparse.ArgumentParser(description=__doc__)
    reader.add_argument("--facts", type=int, default=10_000)
    facts = reader.parse_args().facts
    with tempfile.TemporaryDirectory(prefix="pps-stores-") as folder:
        figures, sizes = asyncio.run(compare(facts, Path(folder)))
    first, second = (figures[store] for store in STORES)
    print(f"{facts:,} facts; same answers: {first.answers == second.answers}")
    print(f"{'ms, median':28}{STORES[0]:>12}{STORES[1]:>12}{'ratio':>8}")
    for name, value in first.seconds.items():
        other = second.seconds[name]
        print(f"{name:28}{value * 1e3:12.2f}{other * 1e3:12.2f}{value / other:8.2f}")
    print(f"{'MiB on disk':28}" + "".join(f"{sizes[store] / 2**20:12.1f}" for store in STORES))


if __name__ == "__main__":
    main()
