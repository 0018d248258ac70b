"""Opening one entity's memory: its lock, journal, graph, indexes and worker, in that order."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncGenerator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from typing import Literal

from pps.config import ExtractorSettings, Settings, load_prices
from pps.core.errors import ConfigError, ModelUnavailable, StoreError, StoreUnavailable
from pps.core.footprint import cores
from pps.core.ids import EntityId, stable_id
from pps.core.time import now
from pps.core.values import Node
from pps.entities import files
from pps.entities.own import own_settings
from pps.entities.registry import Entry
from pps.graph.ladybug import open_ladybug
from pps.graph.neo4j import Neo4jPool, open_neo4j
from pps.index.indexes import EntityIndexes, Kept
from pps.ingest.anchors import Anchors
from pps.ingest.budget import Costs
from pps.ingest.command_reader import Asked, Groups, Reader
from pps.ingest.drafts import Automatic, Intake
from pps.ingest.duplicates import Merging
from pps.ingest.forget import Forgetter
from pps.ingest.indexer import REEMBEDDING, Indexer
from pps.ingest.ingestion import Jobs
from pps.ingest.ledger import Bookkeeper
from pps.ingest.limits import Provider
from pps.ingest.passage_vectors import PassageVectors
from pps.ingest.recorder import Records
from pps.ingest.redact import KeyedRedactor
from pps.ingest.revising import RecordParts
from pps.ingest.work_rules import SharedWork, WorkRules
from pps.ingest.worker import Worker
from pps.ingest.write_path import Pipeline
from pps.isolation.client import EntityDriver, IsolatedGraphitiClient
from pps.isolation.counters import IsolationCounters
from pps.journal.journal import Journal
from pps.memory import Memory, Parts
from pps.models.command import make_command
from pps.models.factory import embedder_of, make_embedder, make_extractor, make_reranker
from pps.models.protocols import Embedder, ExtractorModel, Fingerprint, Reranker
from pps.recall.engine import RecallEngine
from pps.recall.profiles import Profiles


@dataclass(slots=True)
class Shared:
    """What all memories of a process share: models, threads and the connection to a server."""

    settings: Settings
    embedder: Embedder | None
    reranker: Reranker | None
    extractor: ExtractorModel | None
    threads: ThreadPoolExecutor
    profiles: Profiles
    work: SharedWork
    counters: IsolationCounters = field(default_factory=IsolationCounters)
    _others: dict[str, Embedder] = field(default_factory=dict[str, Embedder])
    _server: Neo4jPool | None = None
    _lock: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def server(self) -> Neo4jPool:
        """Return the one connection pool to Neo4j, opened when the first entity needs it."""
        async with self._lock:
            if self._server is None:
                found = self.settings.neo4j
                self._server = await open_neo4j(
                    found.uri, found.user, found.password.get_secret_value(), found.database
                )
            return self._server

    async def embedder_of(self, pinned: str) -> Embedder | None:
        """Return the model that an entity's vectors are of, where that is not the one set; None if it needs settings.

        Raises:
            ConfigError: It is not on this machine.
        """
        async with self._lock:
            if pinned not in self._others:
                found = await asyncio.to_thread(embedder_of, json.loads(pinned)["model"])
                if found is None or _fingerprint(found.fingerprint) != pinned:
                    return None
                self._others[pinned] = found
            return self._others[pinned]

    async def close(self) -> None:
        """Give back the server's connections, the models and the threads."""
        for model in (self.embedder, self.reranker, *self._others.values()):
            if model is not None:
                await asyncio.to_thread(model.close)
        if self._server:
            await self._server.close()
        await asyncio.to_thread(self.threads.shutdown)


@contextlib.asynccontextmanager
async def open_shared(settings: Settings, embedder: Embedder | None = None) -> AsyncGenerator[Shared]:
    """Make the models and threads that the memories share; nothing is loaded before it is needed."""
    shared = Shared(
        settings,
        embedder or make_embedder(settings.embedder),
        make_reranker(settings.reranker),
        make_extractor(settings.extractor),
        ThreadPoolExecutor(max_workers=cores() + 2, thread_name_prefix="pps-index"),
        Profiles.load(settings),
        SharedWork.of(settings.jobs),
    )
    try:
        yield shared
    finally:
        await shared.close()


Anew = Literal["no", "vectors", "all", "graph"]
"""What to begin anew, empty: ``vectors`` for another model, ``all`` indexes that cannot be opened, the ``graph`` too.

The jobs of a graph that begins anew are queued again, so that the worker brings back what the journal knows.
"""


async def open_memory(entry: Entry, shared: Shared, *, anew: Anew = "no") -> Memory:
    """Open an entity's files, repair what a crash left and start its worker.

    Raises:
        StoreConflict: Another process holds the files; the message names it.
        ConfigError: The vectors are of another model, which cannot be had (unless they begin anew).
        StoreError, StoreUnavailable: A file or server cannot be used.
    """
    async with contextlib.AsyncExitStack() as stack:
        await stack.enter_async_context(files.held(entry))
        await asyncio.to_thread(files.check, entry, graph_begins_anew=anew == "graph")
        journal = await Journal.open(entry.folder / "data" / files.JOURNAL, entry.entity.group)
        stack.push_async_callback(journal.close)
        embedder = await _embedder(journal, entry.entity.name, shared, reembed=anew == "vectors")
        if anew == "graph":
            await journal.queue.replay()  # first: a crash leaves jobs that are done again
            await asyncio.to_thread(files.remove_graph, entry.folder)
        memory = await _assembled(stack, entry, shared, journal, embedder, anew)
        stack.pop_all()
        return memory


async def close_memory(memory: Memory) -> None:
    """Close everything that ``open_memory`` opened, last first."""
    await memory.close()


def self_node_id(entity: EntityId) -> str:
    """Return the uuid of the entity's own node."""
    return stable_id(entity.group, "self")


async def _indexes(
    stack: contextlib.AsyncExitStack, entry: Entry, shared: Shared, embedder: Embedder | None, anew: Anew
) -> EntityIndexes:
    indexes = await EntityIndexes.open(
        entry.folder / "data",
        group=entry.entity.group,
        fingerprint=embedder.fingerprint if embedder else None,
        kept=Kept(shared.settings.text.language, shared.settings.vectors.in_memory),
        executor=shared.threads,
        rebuild="all" if anew == "graph" else anew,
    )
    stack.push_async_callback(indexes.close)
    return indexes


async def _client(
    stack: contextlib.AsyncExitStack,
    entry: Entry,
    shared: Shared,
    embedder: Embedder | None,
    indexes: EntityIndexes,
    extractor: ExtractorSettings,
) -> IsolatedGraphitiClient:
    driver = await _driver(entry, shared)
    stack.push_async_callback(driver.close)
    client = await IsolatedGraphitiClient.open(
        entry.entity,
        driver.driver,
        store=driver.store,
        indexes=indexes,
        embedder=embedder,
        reranker=shared.reranker,
        extractor=shared.extractor if extractor == shared.settings.extractor else make_extractor(extractor),
        counters=shared.counters,
        rerank_deadline_s=shared.settings.reranker.deadline_ms / 1000,
    )
    stack.push_async_callback(client.close)
    return client


async def _assembled(
    stack: contextlib.AsyncExitStack,
    entry: Entry,
    shared: Shared,
    journal: Journal,
    embedder: Embedder | None,
    anew: Anew,
) -> Memory:
    entity, settings = entry.entity, shared.settings
    own = await asyncio.to_thread(own_settings, entry.folder)
    extractor = settings.extractor.model_validate({**settings.extractor.model_dump(), **own.extractor})
    indexes = await _indexes(stack, entry, shared, embedder, anew)
    client = await _client(stack, entry, shared, embedder, indexes, extractor)
    if anew == "graph":
        await client.clear()  # on a server there is no file of it
    redacts = settings.redaction == "on"
    redactor = partial(KeyedRedactor, await journal.secret("identifiers"), on=redacts)
    anchors = Anchors(entry.folder / "anchors", indexes, embedder, journal, redaction=redacts)
    vectors = _vectors(shared, embedder)
    indexer = Indexer(client, journal, indexes, vectors, anchors)
    costs = await _costs(journal, settings.home, extractor)
    pipeline = Pipeline(client, journal, indexes, indexer, vectors, costs)
    self_node = await _self_node(entity, client, pipeline, made=entry.made and anew != "graph")
    rules = shared.work.rules(client, embedder, self_node, _own(entry, extractor, settings))
    groups = Groups(extractor.group_tokens, extractor.idle_s)
    asked = Asked(make_command(extractor), client, costs, groups, redactor) if extractor.mode == "command" else None
    reader = Reader(journal, entity.name, rules, asked) if asked else None
    worker = Worker(journal, pipeline, entity.name, rules, reader)
    intake, automatic = Intake(journal, worker, rules.backlog), Automatic(own.tags, own.relations)
    forgetter = Forgetter(client, journal, indexer, anchors, worker, self_node)
    merging = Merging(client, journal, indexer, vectors, worker, self_node)
    missing = (await shared.server()).missing if entry.store == "neo4j" else None
    bookkeeper = Bookkeeper(client, journal, indexes, missing)
    notes = await _repaired(forgetter, merging, bookkeeper, indexer, anchors)
    records = Records(
        RecordParts(journal, client, pipeline, intake, worker, extractor.mode, redactor, automatic), merging
    )
    engine = RecallEngine(client, journal, indexes, embedder, shared.reranker, shared.profiles, self_node, anchors)
    await _started(worker, journal, rules)
    stack.push_async_callback(worker.stop)
    return Memory(
        Parts(
            entity=entity,
            store=entry.store,
            self_node=self_node,
            extraction=extractor.mode,
            redactor=redactor,
            automatic=automatic,
            records=records,
            costs=costs,
            budget_tokens=settings.recall.budget_tokens,
            journal=journal,
            client=client,
            indexes=indexes,
            indexer=indexer,
            worker=worker,
            intake=intake,
            jobs=Jobs(entity.name, journal, worker, rules, shared.work.settings, costs),
            bookkeeper=bookkeeper,
            anchors=anchors,
            engine=engine,
            forgetter=forgetter,
            closing=stack.pop_all(),
            notes=notes if embedder else ("no embedder is set: recall goes by text and graph",),
        )
    )


def _own(entry: Entry, extractor: ExtractorSettings, settings: Settings) -> tuple[Provider, ...]:
    """Return what no other entity depends on: an embedded store, an extractor of its own."""
    own: dict[Provider, bool] = {"store": entry.store == "embedded", "extractor": extractor != settings.extractor}
    return tuple(name for name, is_own in own.items() if is_own)


def _vectors(shared: Shared, embedder: Embedder | None) -> PassageVectors | None:
    if embedder is None:
        return None
    if shared.settings.embedder.name not in ("minilm", "bge-small") and embedder is shared.embedder:
        return PassageVectors(embedder)  # it works elsewhere, or on every core for a single text
    return PassageVectors(embedder, shared.work.backlog.flows)


async def _costs(journal: Journal, home: Path, extractor: ExtractorSettings) -> Costs:
    prices = await asyncio.to_thread(load_prices, home)
    return Costs(journal, prices, extractor.tokens_per_day, extractor.model)


async def _started(worker: Worker, journal: Journal, rules: WorkRules) -> None:
    """Start the worker; each start gives parked turns another chance."""
    await journal.queue.retry()
    await journal.queue.due()
    rules.backlog.set(await journal.unfinished())
    worker.start()


async def _driver(entry: Entry, shared: Shared) -> EntityDriver:
    if entry.store == "neo4j":
        return EntityDriver((await shared.server()).driver(), "neo4j", _kept_open)
    try:
        driver = await open_ladybug(entry.folder / "data" / files.GRAPH)
    except StoreError as error:
        if type(error) is not StoreError:  # the others pass
            raise
        raise StoreError(f"{error.message}; `pps rebuild {entry.entity.name}` makes it anew") from error
    return EntityDriver(driver, "embedded", driver.close)


async def _kept_open() -> None:
    """The pool to a server is shared; it is closed with the process's other shared things."""


async def _embedder(journal: Journal, name: str, shared: Shared, *, reembed: bool) -> Embedder | None:
    """Return the model that an entity is held to from its first vector on; ``reembed`` holds it to the one set now."""
    pinned = await journal.get_meta("fingerprint")
    embedder = shared.embedder
    current = _fingerprint(embedder.fingerprint) if embedder else ""
    if reembed:
        if not current:
            raise ConfigError("embedder.name: is 'none', so there is nothing to embed with; set a model first")
        await journal.set_meta(REEMBEDDING, "1")
        await journal.set_meta("fingerprint", current)
        return embedder
    if await journal.get_meta(REEMBEDDING):
        raise ConfigError(f"{name}: a re-embedding was cut short; run `pps reembed {name}`")
    if pinned and current and pinned != current:
        return await _as_before(name, pinned, current, shared)
    if current and not pinned:
        await journal.set_meta("fingerprint", current)
    return embedder


async def _as_before(name: str, pinned: str, current: str, shared: Shared) -> Embedder:
    was, now_set = json.loads(pinned)["model"], json.loads(current)["model"]
    try:
        embedder = await shared.embedder_of(pinned)
    except ConfigError as error:
        raise ConfigError(f"{name}: its vectors are of {was}. {error.message}; or run `pps reembed {name}`") from None
    if embedder is None:
        raise ConfigError(
            f"{name}: its vectors are of {was}, the embedder set is {now_set}; set it back or run `pps reembed {name}`"
        )
    return embedder


def _fingerprint(fingerprint: Fingerprint) -> str:
    return json.dumps(asdict(fingerprint), sort_keys=True)


async def _self_node(entity: EntityId, client: IsolatedGraphitiClient, pipeline: Pipeline, *, made: bool) -> str:
    """Make the entity's own node when it is not there; return its uuid. A graph that was made once has it."""
    uuid = self_node_id(entity)
    if not await client.nodes([uuid]):
        if made:
            raise StoreError(files.graph_gone(entity.name))
        name = entity.name.replace("_", " ").title()
        node = Node(uuid, name, now(), kind="Self", summary="", aliases=(entity.name,) if name != entity.name else ())
        await pipeline.write_nodes([node])
    return uuid


async def _repaired(
    forgetter: Forgetter, merging: Merging, bookkeeper: Bookkeeper, indexer: Indexer, anchors: Anchors
) -> tuple[str, ...]:
    """Carry through what a crash cut short and bring lagging indexes up to date; return what could not be done.

    A model that is away, or a disk that is nearly full, keeps nobody from opening a memory: its worker tries again.
    """
    try:
        await forgetter.resume()
        await merging.resume()
        if await bookkeeper.lags():
            await bookkeeper.repair()
        await indexer.drain()
        await anchors.resync()
    except ModelUnavailable as error:
        return (f"the indexes lag, the embedding model is away: {error.message}",)
    except StoreUnavailable as error:
        return (f"what the last run left could not be finished; the next start tries again: {error.message}",)
    return ()
