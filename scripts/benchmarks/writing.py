"""How fast facts and turns are written, against stock Graphiti's bulk write and against the embedder alone."""

from __future__ import annotations

import time as clock
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from benchmarks.generator import FACTS_A_TURN, World, node_name
from benchmarks.given import GivenVectors, Recording
from benchmarks.stock import Rows, StockGraphiti
from benchmarks.words import WordVectors
from pps.app import App
from pps.config import Settings
from pps.core.footprint import keep_what_is_loaded
from pps.core.ids import EntityId, stable_id
from pps.core.time import now
from pps.core.values import Episode, Fact, FactDraft, Node
from pps.entities.registry import Entry
from pps.ingest.drafts import RememberOptions
from pps.memory import Memory
from pps.models.factory import make_embedder
from pps.models.protocols import Embedder

FACTS_A_CALL = 100
"""Facts that one structured turn hands over."""

_BEFORE = 10_000
_CALLS_AT_ONCE = 50
_IMPORTED_AT_ONCE, _IMPORTS = 100, 2
_STOCK_FACTS = 1_000
_STOCK_BEFORE = {"embedded": 1_000, "neo4j": 5_000}

Item = tuple[str, RememberOptions]


async def structured(settings: Settings, world: World, facts: int) -> dict[str, Any]:
    """Measure structured facts without vectors and with given ones, and stock Graphiti's bulk write of the same.

    Each is measured on a store that has done the same before, with other facts: a server that has just started
    compiles every statement anew, and Neo4j's machine compiles what it runs often while it runs.

    Args:
        settings: Of a throw-away data folder.
        world: Whose facts are written.
        facts: How many without vectors; a quarter of them with vectors.
    """
    plain = settings.model_copy(
        update={"embedder": settings.embedder.model_copy(update={"name": "none"})}
    )
    before = World(world.seed + 1)
    async with App.open(plain) as app:
        await _facts_a_second(app, "before_without_vectors", _structured(before, _BEFORE))
        without = await _facts_a_second(app, "facts_without_vectors", _structured(world, facts))
    given = _given(settings)
    items, others = _structured(world, facts // 4), _structured(before, _BEFORE)
    given.prepare(
        [text for content, options in [*items, *others] for text in _texts(content, options)]
    )
    async with App.open(settings, embedder=given) as app:
        await _facts_a_second(app, "before_with_vectors", others)
        with_vectors = await _facts_a_second(app, "facts_with_vectors", items)
        entries = list[Entry]()
        for name in ("before_stock", "stock"):
            await app.create(name)
            entries.append(app.registry.get(name))
    stock = await _stock(settings, given, list(zip(entries, (before, world), strict=True)))
    return {
        "facts_per_s_without_vectors": without,
        "facts_per_s_with_given_vectors": with_vectors,
        "stock_bulk_facts_per_s_with_given_vectors": stock,
        "times_stock": round(with_vectors / stock, 1),
        "facts": facts,
        "facts_a_call": FACTS_A_CALL,
    }


async def imported(settings: Settings, world: World, turns: int) -> dict[str, Any]:
    """Measure an import with the setting's model, of turns alone and with their facts: each twice, in turn.

    The model is asked for the same texts alone after each, so that what slows the machine for a while slows both.
    """
    items = list(world.turns(0, turns))
    kinds = {
        "turns_alone": [(content, _bare(options)) for content, options in items],
        "turns_with_facts": items,
    }
    found = {name: _Imports() for name in kinds}
    for number in range(_IMPORTS):
        for name, some in kinds.items():
            await _import(settings, f"import_{name}_{number}", some, found[name])
    return {name: one.told() for name, one in found.items()}


@dataclass
class _Imports:
    """What the imports of one kind took, summed."""

    seconds: float = 0.0
    alone_s: float = 0.0
    turns: int = 0
    texts: int = 0
    given: int = 0

    def told(self) -> dict[str, Any]:
        return {
            "turns_per_s": round(self.turns / self.seconds, 1),
            "seconds": round(self.seconds, 2),
            "texts": self.texts,
            "texts_given_to_the_model": self.given,
            "embedder_alone_s": round(self.alone_s, 2),
            "share_of_the_embedders_own_speed": round(self.alone_s / self.seconds, 2),
        }


async def _import(settings: Settings, entity: str, items: Sequence[Item], sums: _Imports) -> None:
    model = _model(settings)
    model.embed_passages(["warm"])
    recording = Recording(model)
    async with App.open(settings, embedder=recording) as app:
        sums.seconds += await _written(app, entity, items, _IMPORTED_AT_ONCE)
        sums.alone_s += recording.alone_s()
    sums.turns += len(items)
    sums.texts += len(recording.texts)
    sums.given += recording.given


async def grow(app: App, entity: str, world: World, start: int, stop: int) -> float:
    """Write turns ``start`` to ``stop - 1`` of the world through the public write path; return the seconds."""
    started = clock.perf_counter()
    async with app.memory(entity) as memory:
        for at in range(start, stop, 250):
            await memory.remember_many(list(world.turns(at, min(at + 250, stop))))
            await memory.settled()
    return clock.perf_counter() - started


def _structured(world: World, facts: int) -> list[Item]:
    """Return turns that hand over ``FACTS_A_CALL`` facts each."""
    every = [fact for number in range(facts // FACTS_A_TURN) for fact in world.facts(number)]
    calls = [every[at : at + FACTS_A_CALL] for at in range(0, len(every), FACTS_A_CALL)]
    return [(f"Notes, part {number}.", _options(number, call)) for number, call in enumerate(calls)]


def _options(number: int, facts: Sequence[FactDraft]) -> RememberOptions:
    return {
        "source": "bench",
        "source_ref": f"notes-{number}",
        "facts": tuple(facts),
        "extraction": "given",
    }


def _bare(options: RememberOptions) -> RememberOptions:
    return {**options, "nodes": (), "facts": ()}


async def _facts_a_second(app: App, entity: str, items: Sequence[Item]) -> float:
    await app.create(entity)
    async with app.memory(entity) as memory:
        before = (await memory.stats()).facts
    seconds = await _written(app, entity, items, _CALLS_AT_ONCE)
    async with app.memory(entity) as memory:
        return round(((await memory.stats()).facts - before) / seconds, 0)


async def _written(app: App, entity: str, items: Sequence[Item], at_once: int) -> float:
    await app.create(entity)
    async with app.memory(entity) as memory:
        await _warm(memory)
        keep_what_is_loaded()  # as ``pps serve`` does
        started = clock.perf_counter()
        for at in range(0, len(items), at_once):
            await memory.remember_many(items[at : at + at_once])
        await memory.settled()
        return clock.perf_counter() - started


async def _warm(memory: Memory) -> None:
    """Write one turn: libraries are imported and files made before the clock starts."""
    await memory.remember(
        "The first words.", facts=[FactDraft("Warm Start", "KNOWS", "Cold Start")]
    )


def _texts(content: str, options: RememberOptions) -> list[str]:
    facts = options.get("facts", ())
    names = [name for fact in facts for name in (fact.subject, fact.object)]
    return [content, f"user: {content}", *names, *(fact.text for fact in facts)]


def _model(settings: Settings) -> Embedder:
    model = make_embedder(settings.embedder)
    if model is None:
        raise ValueError("the settings name no embedder")
    return model


def _given(settings: Settings) -> GivenVectors:
    return GivenVectors(WordVectors(_model(settings)))


async def _stock(
    settings: Settings, given: GivenVectors, worlds: Sequence[tuple[Entry, World]]
) -> float:
    """Return the facts a second of Graphiti's own bulk write, vectors given, of the last of the worlds."""
    rate = 0.0
    for (entry, world), size in zip(
        worlds, (_STOCK_BEFORE[settings.store], _STOCK_FACTS), strict=True
    ):
        rows = _rows(entry.entity, given, world, size)
        stock = await StockGraphiti.open(settings, entry, given)
        try:
            started = clock.perf_counter()
            await stock.write(entry.entity.group, rows)
            rate = round(len(rows.facts) / (clock.perf_counter() - started), 0)
        finally:
            await stock.close()
    return rate


def _rows(entity: EntityId, given: GivenVectors, world: World, count: int) -> Rows:
    """Return the facts of the first turns as Graphiti's rows, with the nodes and turns that they stand on."""
    turns = list(world.turns(0, count // FACTS_A_TURN))
    drafts = [(number, fact) for number in range(len(turns)) for fact in world.facts(number)]
    names = dict.fromkeys(name for _, fact in drafts for name in (fact.subject, fact.object))
    ids = {name: stable_id(entity.group, "node", name) for name in names}
    episodes = [_episode(entity, number, content) for number, (content, _) in enumerate(turns)]
    facts = [_fact(entity, ids, fact, episodes[number].uuid) for number, fact in drafts]
    nodes = [Node(uuid, name, now()) for name, uuid in ids.items()]
    mentions = dict.fromkeys(
        (fact.episodes[0], end) for fact in facts for end in (fact.subject, fact.object)
    )
    vectors = dict(
        zip([n.uuid for n in nodes], given.embed_passages([n.name for n in nodes]), strict=True)
    )
    vectors |= dict(
        zip([f.uuid for f in facts], given.embed_passages([f.text for f in facts]), strict=True)
    )
    return Rows(nodes, facts, episodes, list(mentions), vectors)


def _episode(entity: EntityId, number: int, content: str) -> Episode:
    uuid = stable_id(entity.group, "turn", str(number))
    return Episode(uuid, node_name(number), content, now(), now(), "message", "bench")


def _fact(entity: EntityId, ids: dict[str, str], draft: FactDraft, episode: str) -> Fact:
    return Fact(
        uuid=stable_id(entity.group, "fact", draft.text),
        subject=ids[draft.subject],
        object=ids[draft.object],
        relation=draft.relation,
        text=draft.text,
        created_at=now(),
        episodes=(episode,),
        valid_at=draft.valid_at,
        invalid_at=draft.invalid_at,
    )
