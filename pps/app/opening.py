"""Opening one entity's memory: its lock, journal, graph, indexes and worker, in that order."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import Callable
from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING, Literal

from pps.app.moving import erase_other_copy
from pps.app.shared import Shared, fingerprint_text
from pps.app.upgrading import remove_old_graph, upgrade
from pps.config import load_prices
from pps.config.packs import load_packs, shipped_pack
from pps.config.relation_files import load_relations
from pps.config.zones import zone_of
from pps.context.fence import marks_of
from pps.context.provided_topics import ProvidedTopics
from pps.core.errors import ConfigError, ModelUnavailable, StoreError, StoreUnavailable
from pps.core.ids import EntityId, stable_id
from pps.core.kinds import NO_KINDS, Kinds
from pps.core.time import now
from pps.core.values import SELF, Node
from pps.entities import folder, last_proof
from pps.entities.own import OwnSettings, own_settings
from pps.entities.registry import Entry
from pps.index.indexes import EntityIndexes, IndexSettings
from pps.ingest.anchors import Anchors
from pps.ingest.budget import Costs
from pps.ingest.command_reader import Asked, Groups, Reader
from pps.ingest.drafts import Automatic, Intake
from pps.ingest.duplicates import Merging
from pps.ingest.feature_listening import MemoryFeatures
from pps.ingest.forget import Forgetter
from pps.ingest.indexer import REEMBEDDING, Indexer
from pps.ingest.ingestion import Jobs
from pps.ingest.ledger import Bookkeeper
from pps.ingest.passage_vectors import PassageVectors
from pps.ingest.record_vectors import Drift, RecordVectors
from pps.ingest.recycle_bin import RecycleBin
from pps.ingest.redact import KeyedRedactor
from pps.ingest.revising import RecordParts
from pps.ingest.work_rules import Provider, WorkRules
from pps.ingest.worker import Worker
from pps.ingest.write_path import Pipeline
from pps.isolation.binding import Models
from pps.isolation.client import EntityDriver, IsolatedGraphitiClient
from pps.isolation.publishing import ANEW, Publisher, adopt_group
from pps.journal.journal import Journal
from pps.journal.meta import PUBLISHED_AT
from pps.memory import Memory, Parts
from pps.models.factory import make_extractor
from pps.models.program import make_command
from pps.models.protocols import Embedder
from pps.recall.engine import RecallEngine
from pps.recall.search import Sources
from pps.records.asks import Asks
from pps.records.records import Records
from pps.records.session import Layers
from pps.records.work_hours import ProvidedCalendars
from pps.store.graph_tables import GraphTables

if TYPE_CHECKING:
    from pps.isolation.neo4j import PooledNeo4jDriver

Anew = Literal["no", "vectors", "all", "graph"]
"""Files to begin anew, empty: ``vectors`` for another model, ``all`` indexes, the ``graph`` too.

The jobs of a graph that begins anew are queued again, so that the worker brings back what the
journal knows.
"""


async def open_memory(entry: Entry, shared: Shared, *, anew: Anew = "no") -> Memory:
    """Open an entity's files: upgrade old ones, repair leftovers of a crash, start the worker.

    Raises:
        StoreConflict: Another process holds the files; the message names it.
        ConfigError: The vectors were made by another embedding model, which is not available
            (unless they begin anew). Or the graph is in a file of an earlier PPS, and the extra
            ``migrate``, which reads it, is not installed.
        StoreError, StoreUnavailable: A file or server cannot be used.
    """
    async with contextlib.AsyncExitStack() as stack:
        await stack.enter_async_context(folder.held(entry))
        await asyncio.to_thread(folder.check_files, entry)
        if anew != "graph":
            await upgrade(entry)
        journal = await _open_journal(entry, shared)
        stack.push_async_callback(journal.close)
        own = await asyncio.to_thread(own_settings, entry.folder)
        journal.zone = zone_of(own.time_zone or shared.settings.time_zone)
        journal.bin.keep = timedelta(days=shared.settings.forgetting.restorable_d)
        if shared.running is not None:
            journal.bin.running = shared.running.mark
        moves = shared.moves
        if moves is not None and await asyncio.to_thread(moves.other_copy, entry.entity.group):
            journal.erase_other_copy = partial(erase_other_copy, entry, moves, shared)
        opening = _Opening(entry, shared, anew, journal, own, stack)
        opening.kinds = Kinds(await asyncio.to_thread(load_packs, shared.settings.home, own.packs))
        # Without a layered pack, filters know the layers of the one that is shipped.
        journal.allowing.kinds = (
            opening.kinds if opening.kinds.layers else Kinds((shipped_pack("constitution"),))
        )
        opening.embedder = await opening.pinned_embedder()
        if anew == "graph":
            await journal.queue.replay()  # first: a crash leaves jobs that are done again
            await asyncio.to_thread(remove_old_graph, entry)
        memory = await opening.memory()
        stack.pop_all()
        return memory


async def bring_up_to_date(entry: Entry, shared: Shared) -> None:
    """Upgrade the tables of a closed memory to this version; the caller holds its files.

    No worker starts and no index changes. Jobs that a crash interrupted are repaired when the
    memory is opened.

    Raises as ``open_memory``.
    """
    await upgrade(entry)
    journal = await _open_journal(entry, shared)
    await journal.close()


async def _open_journal(entry: Entry, shared: Shared) -> Journal:
    path = entry.folder / "data" / folder.JOURNAL
    group = entry.entity.group
    if entry.store != "postgresql":
        return await Journal.open(path, group)
    return await Journal.open_in(await shared.database(), path, group, made=entry.made)


def self_node_id(entity: EntityId) -> str:
    return stable_id(entity.group, "self")


class _Opening:
    """Opens one entity's memory, from its files to a running worker.

    Everything that it opens is closed by the exit stack.
    """

    def __init__(
        self,
        entry: Entry,
        shared: Shared,
        anew: Anew,
        journal: Journal,
        own: OwnSettings,
        stack: contextlib.AsyncExitStack,
    ) -> None:
        settings = shared.settings.extractor
        self._entry = entry
        self._shared = shared
        self._anew: Anew = anew
        self._journal = journal
        self._own_calendar = own.calendar.model_dump(exclude_none=True)
        self._automatic = Automatic(own.automatic.tags, own.automatic.relations)
        self._extractor = settings.model_validate(
            {**settings.model_dump(), **own.extractor.model_dump(exclude_none=True)}
        )
        self._stack = stack
        self._redacts = shared.settings.redaction == "on"
        self.embedder: Embedder | None = None
        self.kinds = NO_KINDS

    async def memory(self) -> Memory:
        """Open the parts in the order in which they depend on each other."""
        entity = self._entry.entity
        journal = self._journal
        shared = self._shared
        indexes = await self._indexes()
        client = await self._client(indexes)
        publisher = await self._publisher(client, indexes)
        redactor = partial(KeyedRedactor, await journal.secret("identifiers"), on=self._redacts)
        journal.given.clean = lambda session: redactor().identifier(session)
        with contextlib.suppress(
            StoreUnavailable
        ):  # now, so that no read has to write it on a full disk
            await marks_of(journal)
        anchors = Anchors(
            self._entry.folder / "anchors", indexes, self.embedder, journal, redaction=self._redacts
        )
        vectors = self._vectors()
        indexer = self._indexer(client, indexes, vectors, anchors, publisher)
        await indexer.follow()
        if publisher is not None:
            publisher.start()
        self._stack.push_async_callback(indexer.close)
        costs = await self._costs(client)
        relations = await asyncio.to_thread(load_relations, shared.settings.home)
        pipeline = Pipeline(
            client, journal, indexes, indexer, vectors, costs, self.kinds, relations
        )
        self_node = await self._self_node(client, pipeline)
        rules = shared.work.rules(client, self.embedder, self_node, self._own_providers())
        worker = Worker(
            journal, pipeline, entity.name, rules, self._reader(client, costs, redactor, rules)
        )
        intake = Intake(journal, worker, rules.backlog)
        recycle_bin = RecycleBin(client, journal, indexer, anchors, pipeline)
        forgetter = Forgetter(
            client, journal, indexer, anchors, recycle_bin, worker, pipeline, self_node
        )
        merging = Merging(client, journal, indexer, worker, pipeline, self_node)
        bookkeeper = Bookkeeper(client, journal, indexes, indexer, self._missing_on_server)
        notes = await _repaired(
            forgetter, merging, indexer, anchors, pipeline, is_made_anew=self._anew != "no"
        )
        mode = self._extractor.mode
        records = RecordParts(
            journal, client, pipeline, intake, worker, mode, redactor, self._automatic, self.kinds
        )
        record_api = Records(records, merging, forgetter)
        calendars = ProvidedCalendars(
            lambda: shared.provided("calendars"),
            shared.settings,
            self._own_calendar,
            self._entry.folder,
            journal.zone,
        )
        tuning = shared.profiles.tuning
        features = MemoryFeatures(journal, redactor, shared.features)
        self._stack.push_async_callback(features.stop)
        sources = Sources(
            client,
            journal,
            indexes,
            self.embedder,
            shared.reranker,
            anchors,
            self_node,
            tuning,
            colbert=shared.colbert if self.embedder else None,
            relations=relations,
        )
        await self._start(worker, rules)
        engine = RecallEngine(sources, shared.profiles)
        memory = Memory(
            Parts(
                entity=entity,
                store=self._entry.store,
                self_node=self_node,
                kinds=self.kinds,
                layers=Layers(record_api, self.kinds, calendars, journal, anchors),
                extraction=mode,
                redactor=redactor,
                automatic=self._automatic,
                records=record_api,
                asks=Asks(record_api, self.kinds, client, engine, self.embedder),
                costs=costs,
                budget_tokens=shared.settings.recall.budget_tokens,
                journal=journal,
                client=client,
                indexes=indexes,
                indexer=indexer,
                worker=worker,
                intake=intake,
                jobs=Jobs(
                    entity.name, journal, worker, rules, shared.work.settings, costs, mode, indexer
                ),
                bookkeeper=bookkeeper,
                anchors=anchors,
                engine=engine,
                topics=self._topics(sources),
                features=features,
                hooks_leave_out=frozenset(() if shared.settings.hooks.nodes else ("nodes",)),
                proof=partial(last_proof.read, shared.settings.home),
                forgetter=forgetter,
                closing=self._stack.pop_all(),
                notes=notes
                if self.embedder
                else ("no embedder is set: recall goes by text and graph",),
                shared=partial(shared.shared_lines, entity),
            )
        )
        await features.start(memory)
        return memory

    def _topics(self, sources: Sources) -> ProvidedTopics:
        hooks = self._shared.settings.hooks
        sections = {"topics": "topics", "alerts": "alerts", "explore": "explored"}
        in_hooks = tuple(section for name, section in sections.items() if getattr(hooks, name))
        find = partial(self._shared.provided, "topics")
        topics = ProvidedTopics(find, sources, self._entry.entity.group, in_hooks)
        self._stack.push_async_callback(topics.stop)
        return topics

    async def pinned_embedder(self) -> Embedder | None:
        """Return the embedder that the entity is bound to since its first vector.

        If its vectors begin anew, it is the embedder of the settings.
        """
        journal = self._journal
        name = self._entry.entity.name
        embedder = self._shared.embedder
        pinned = await journal.get_meta("fingerprint")
        current = fingerprint_text(embedder.fingerprint) if embedder else ""
        if self._anew == "vectors":
            if not current:
                raise ConfigError(
                    "embedder.name: is 'none', so there is nothing to embed with; set a model first"
                )
            await journal.set_meta(REEMBEDDING, "1")
            await journal.set_meta("fingerprint", current)
            return embedder
        if await journal.get_meta(REEMBEDDING):
            raise ConfigError(f"{name}: a re-embedding was cut short; run `pps reembed {name}`")
        if pinned and current and pinned != current:
            return await self._embedder_of(pinned, current)
        if current and not pinned:
            await journal.set_meta("fingerprint", current)
        return embedder

    async def _embedder_of(self, pinned: str, current: str) -> Embedder:
        name = self._entry.entity.name
        pinned_model = json.loads(pinned)["model"]
        current_model = json.loads(current)["model"]
        try:
            embedder = await self._shared.embedder_of(pinned)
        except ConfigError as error:
            why = (
                f"{name}: its vectors are of {pinned_model}. {error.message}; or run `pps reembed "
                f"{name}`"
            )
            raise ConfigError(why) from None
        if embedder is None:
            why = f"the embedder set is {current_model}; set it back or run `pps reembed {name}`"
            raise ConfigError(f"{name}: its vectors are of {pinned_model}, {why}")
        return embedder

    async def _indexes(self) -> EntityIndexes:
        settings = self._shared.settings
        indexes = await EntityIndexes.open(
            self._entry.folder / "data",
            group=self._entry.entity.group,
            fingerprint=self.embedder.fingerprint if self.embedder else None,
            kept=IndexSettings(settings.text.language, settings.vectors.in_memory),
            executor=self._shared.threads,
            rebuild="all" if self._anew == "graph" else self._anew,
        )
        self._stack.push_async_callback(indexes.close)
        return indexes

    async def _client(self, indexes: EntityIndexes) -> IsolatedGraphitiClient:
        shared = self._shared
        if self._entry.is_published:
            await self._prepare_publishing(indexes)
        remedy = f"`pps rebuild {self._entry.entity.name}` makes it anew"
        store = "postgresql" if self._entry.store == "postgresql" else "embedded"
        driver = EntityDriver(GraphTables(self._journal, remedy, indexes), store)
        has_own_extractor = self._extractor != shared.settings.extractor
        extractor = make_extractor(self._extractor) if has_own_extractor else shared.extractor
        models = Models(
            self.embedder, shared.reranker, extractor, shared.settings.reranker.deadline_ms / 1000
        )
        client = await IsolatedGraphitiClient.open(
            self._entry.entity, driver, indexes, models, shared.counters
        )
        self._stack.push_async_callback(client.close)
        if self._anew == "graph":
            await client.clear()
        return client

    async def _prepare_publishing(self, indexes: EntityIndexes) -> None:
        """Copy a graph that an earlier PPS kept on Neo4j alone into the tables, and note that.

        Raises:
            StoreUnavailable: Neo4j does not answer.
            StoreError: The copy is not the same as the graph.
        """
        journal = self._journal
        if await journal.get_meta(PUBLISHED_AT) is not None:
            return
        only_on_neo4j = self._entry.store == "neo4j" and self._entry.made
        if only_on_neo4j and self._anew != "graph":
            driver = (await self._shared.server()).driver()
            tables = GraphTables(journal)
            await adopt_group(self._entry.entity, driver, tables, indexes, self._shared.counters)
            await journal.set_meta(PUBLISHED_AT, str((await journal.log_span()).last))
        else:
            await journal.set_meta(PUBLISHED_AT, ANEW)

    async def _publisher(
        self, client: IsolatedGraphitiClient, indexes: EntityIndexes
    ) -> Publisher | None:
        """Start publishing the graph on Neo4j, if the entity's graph is published."""
        if not self._entry.is_published:
            return None
        shared = self._shared

        async def connect() -> PooledNeo4jDriver:
            return (await shared.server()).driver()

        publisher = Publisher(
            self._entry.entity,
            GraphTables(self._journal, indexes=indexes),
            connect,
            indexes,
            Models(
                self.embedder, shared.reranker, None, shared.settings.reranker.deadline_ms / 1000
            ),
            shared.counters,
        )
        await publisher.open(anew=self._anew == "graph")
        self._stack.push_async_callback(publisher.stop)
        client.search_published(publisher)
        return publisher

    async def _missing_on_server(self) -> tuple[str, ...]:
        return await (await self._shared.server()).missing()

    def _indexer(
        self,
        client: IsolatedGraphitiClient,
        indexes: EntityIndexes,
        vectors: PassageVectors | None,
        anchors: Anchors,
        publisher: Publisher | None,
    ) -> Indexer:
        records = RecordVectors(self.kinds, self._journal, indexes, vectors)
        drift = Drift(
            client,
            self._journal,
            records,
            scheduled=self._shared.settings.embedder.drift == "scheduled",
        )
        colbert = self._shared.colbert if self.embedder else None
        return Indexer(client, self._journal, indexes, vectors, anchors, drift, colbert, publisher)

    def _own_providers(self) -> tuple[Provider, ...]:
        own: dict[Provider, bool] = {
            "store": self._entry.store != "postgresql",
            "extractor": self._extractor != self._shared.settings.extractor,
        }
        return tuple(name for name, is_own in own.items() if is_own)

    def _vectors(self) -> PassageVectors | None:
        shared = self._shared
        if self.embedder is None:
            return None
        if (
            shared.settings.embedder.name not in ("minilm", "bge-small")
            and self.embedder is shared.embedder
        ):
            return PassageVectors(
                self.embedder
            )  # it works elsewhere, or on every core for a single text
        return PassageVectors(self.embedder, shared.work.backlog.flows)

    async def _costs(self, client: IsolatedGraphitiClient) -> Costs:
        prices = await asyncio.to_thread(load_prices, self._shared.settings.home)
        return Costs(
            self._journal,
            prices,
            self._extractor.tokens_per_day,
            self._extractor.model,
            client.model,
        )

    def _reader(
        self,
        client: IsolatedGraphitiClient,
        costs: Costs,
        redactor: Callable[[], KeyedRedactor],
        rules: WorkRules,
    ) -> Reader | None:
        if self._extractor.mode != "command":
            return None
        groups = Groups(self._extractor.group_tokens, self._extractor.idle_s)
        models = Asked(make_command(self._extractor), client, costs, groups, redactor)
        return Reader(self._journal, self._entry.entity.name, rules, models)

    async def _self_node(self, client: IsolatedGraphitiClient, pipeline: Pipeline) -> str:
        """Return the uuid of the entity's own node; create the node in a new graph."""
        name = self._entry.entity.name
        uuid = self_node_id(self._entry.entity)
        if not await client.nodes([uuid]):
            if self._entry.made and self._anew != "graph":
                raise StoreError(folder.graph_gone(name))
            title = name.replace("_", " ").title()
            await pipeline.write_nodes(
                [Node(uuid, title, now(), kind=SELF, aliases=(name,) if title != name else ())]
            )
        return uuid

    async def _start(self, worker: Worker, rules: WorkRules) -> None:
        """Start the worker. Each start tries parked turns again."""
        await self._journal.queue.retry()
        await self._journal.queue.due()
        rules.backlog.set(await self._journal.unfinished())
        worker.start()
        self._stack.push_async_callback(worker.stop)


async def _repaired(
    forgetter: Forgetter,
    merging: Merging,
    indexer: Indexer,
    anchors: Anchors,
    pipeline: Pipeline,
    *,
    is_made_anew: bool,
) -> tuple[str, ...]:
    """Finish work that a crash interrupted, and bring lagging indexes up to date.

    A model that does not answer, or a disk that is nearly full, does not prevent the opening; the
    worker tries again later.

    Returns:
        What could not be done, or an empty text.
    """
    try:
        await forgetter.resume()
        await merging.resume()
        await pipeline.project_relations()
        if not is_made_anew:
            await indexer.catch_up()
        await anchors.resync()
    except ModelUnavailable as error:
        return (f"the indexes lag, the embedding model is away: {error.message}",)
    except StoreUnavailable as error:
        return (
            "what the last run left could not be finished; the next start tries again: "
            f"{error.message}",
        )
    return ()
