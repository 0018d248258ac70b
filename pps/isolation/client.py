"""The only door to an entity's graph."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal, Protocol, Self, TypeAlias, TypeVar, Unpack

from graphiti_core import Graphiti
from graphiti_core.driver.driver import GraphDriver, GraphProvider
from graphiti_core.nodes import EpisodeType
from graphiti_core.search.search_utils import RELEVANT_SCHEMA_LIMIT

from pps.core.bounds import check_keywords
from pps.core.errors import ConfigError, InvalidRequest, ModelUnavailable, NotSet, StoreError
from pps.core.ids import EntityId, check_uuid
from pps.core.reports import timeline_cursor
from pps.core.time import plain
from pps.core.values import Episode, Fact, GraphCounts, Node
from pps.graph.graph_store import GraphChange, GraphStore, GraphTimelineOptions
from pps.index.indexes import EntityIndexes
from pps.isolation.binding import FirstLock, Inside, Models, check_limit, check_uuids
from pps.isolation.counters import IsolationCounters, NoBreach
from pps.isolation.graphiti_models import (
    NO_EMBEDDER,
    NO_EXTRACTOR,
    Extractor,
    GraphitiEmbedder,
    GraphitiErrors,
    GraphitiReranker,
    make_llm,
)
from pps.isolation.graphiti_objects import GraphitiObjects, GroupObjects, GroupOperations
from pps.isolation.graphiti_search import GraphFilters
from pps.isolation.guard import BoundDriver, GuardedDriver
from pps.isolation.providers import TokensUsed
from pps.isolation.recipes import GraphitiResults, SearchOptions, search_recipe
from pps.isolation.sql_driver import SqlDriver
from pps.isolation.sql_objects import SqlObjects
from pps.isolation.sql_operations import SqlOperations
from pps.isolation.sql_search import SqlSearch
from pps.isolation.store_neo4j import Neo4jStore
from pps.journal.db import Work, nothing
from pps.models.protocols import Vector
from pps.store.graph_tables import GraphTables
from pps.store.graphiti_reads import GraphitiReads
from pps.store.sql_graph import SqlGraphStore

StoreName: TypeAlias = Literal["embedded", "postgresql", "neo4j"]

_ANOTHERS_FILE = (
    "the graph's file holds another entity's data; check that the right data folder is mounted"
)
_MANY = 100_000
_Item = TypeVar("_Item", Node, Fact, Episode)


async def _close_nothing() -> None:
    pass


@dataclass(frozen=True, slots=True)
class EntityDriver:
    """The store of an entity's client, and the function that closes it.

    Attributes:
        driver: The entity's graph tables; for ``neo4j``, where graphs are published, the driver of
            the server.
        close: Closes nothing by default: the journal with the tables, or the process with the pool
            of connections, belongs to another owner.
    """

    driver: GraphDriver | GraphTables
    store: StoreName
    close: Callable[[], Awaitable[None]] = _close_nothing


class PublishedSearch(Protocol):
    """Runs Graphiti's recipes on the published graph."""

    async def search(
        self, query: str, recipe: str, limit: int, options: SearchOptions
    ) -> GraphitiResults:
        """Run a recipe; see ``IsolatedGraphitiClient.search``."""
        ...


@dataclass(frozen=True, slots=True)
class GraphitiChanges:
    """Uuids of everything that Graphiti's pipeline created or changed.

    Attributes:
        before: Uuid → the fact before the change, for facts that already existed.
    """

    nodes: tuple[str, ...] = ()
    facts: tuple[str, ...] = ()
    episodes: tuple[str, ...] = ()
    before: Mapping[str, Fact] = field(default_factory=dict[str, Fact])


class IsolatedGraphitiClient:
    """All operations of one entity on its graph; none can reach the graph of another entity.

    The client is permanently bound to one ``EntityId``; no method takes a group. There are two
    independent locks, each of which suffices alone. First, ids from outside must be canonical UUIDs
    and are checked to belong to the entity before a call starts. Second, every statement runs on a
    guarded driver that checks its parameters and rows. An id of another entity is treated like one
    that does not exist.

    A batch of writes is one transaction; writing an existing uuid updates it. Written ids belong to
    the entity already or were created by PPS; an id of another entity raises NotFound, and nothing
    changes. The client does not update the indexes: callers follow the change log or
    ``GraphitiChanges``.

    All methods raise InvalidRequest for an id that is not a canonical UUID, and StoreUnavailable.
    """

    def __init__(self, inside: Inside) -> None:
        self._inside = inside
        self._published: PublishedSearch | None = None
        self._one_at_a_time = asyncio.Lock()

    @classmethod
    async def open(
        cls,
        entity: EntityId,
        opened: EntityDriver,
        indexes: EntityIndexes,
        models: Models | None = None,
        counters: IsolationCounters | None = None,
    ) -> Self:
        """Bind a client to an entity, after an audit of the store.

        Args:
            entity: The owner of the memory.
            opened: The store's driver; the caller opens and closes it, and the client does not
                expose it.
            indexes: The entity's indexes, which searches read.
            models: The models that the client may use; none by default.
            counters: Counts refusals; one object for all clients of a process.

        Raises:
            IsolationError: The store has an edge between two groups, or the entity's file has data
                of another group.
            ConfigError: The driver does not match the named store, or a provider's package is
                missing.
        """
        counters = counters or IsolationCounters()
        client = cls(bind(entity, opened, indexes, models or Models(), counters))
        try:
            await client._audit(opened.store)
        except BaseException:
            await client.close()
            raise
        return client

    def search_published(self, published: PublishedSearch | None) -> None:
        """Run ``search`` on the published graph from now on; None: on the tables again."""
        self._published = published

    async def close(self) -> None:
        """Close the connections to the language model; the opener closes driver and indexes."""
        if self.model:
            await self.model.close()

    @property
    def entity(self) -> EntityId:
        """The entity that the client is bound to."""
        return self._inside.entity

    @property
    def counters(self) -> IsolationCounters:
        """The counts of refusals."""
        return self._inside.counters

    @property
    def model(self) -> Extractor | None:
        """The language model of this entity, or None."""
        model = self._inside.graphiti.llm_client
        return model if isinstance(model, Extractor) else None

    @property
    def _store(self) -> GraphStore:
        return self._inside.store

    def take_tokens_used(self) -> dict[str, TokensUsed]:
        """Return model → tokens used since the last call, including failed attempts."""
        return self.model.meter.take() if self.model else {}

    async def nodes(self, uuids: Sequence[str], *, strict: bool = False) -> list[Node]:
        """Return nodes in the order of the ids; absent ones are left out.

        Raises:
            NotFound: ``strict`` is set and a node is absent.
        """
        return await self._by_id(self._store.nodes, uuids, strict)

    async def facts(self, uuids: Sequence[str], *, strict: bool = False) -> list[Fact]:
        """Return facts; as ``nodes``."""
        return await self._by_id(self._store.facts, uuids, strict)

    async def episodes(self, uuids: Sequence[str], *, strict: bool = False) -> list[Episode]:
        """Return episodes; as ``nodes``."""
        return await self._by_id(self._store.episodes, uuids, strict)

    async def scan_nodes(self, after: str, limit: int) -> list[Node]:
        """Return up to ``limit`` (1 to 10,000) nodes after a uuid, in uuid order; "" starts."""
        return await self._store.scan_nodes(_cursor(after), check_limit(limit))

    async def scan_facts(self, after: str, limit: int) -> list[Fact]:
        """Return a page of facts; as ``scan_nodes``."""
        return await self._store.scan_facts(_cursor(after), check_limit(limit))

    async def scan_episodes(self, after: str, limit: int) -> list[Episode]:
        """Return a page of episodes; as ``scan_nodes``."""
        return await self._store.scan_episodes(_cursor(after), check_limit(limit))

    async def facts_of_nodes(self, uuids: Sequence[str], limit: int) -> list[Fact]:
        """Return up to ``limit`` facts that touch the nodes, newest first."""
        wanted = check_uuids(uuids)
        return await self._store.facts_of_nodes(wanted, check_limit(limit, _MANY)) if wanted else []

    async def facts_of_episodes(self, uuids: Sequence[str]) -> list[Fact]:
        """Return the facts that any of the episodes supports, in uuid order."""
        wanted = check_uuids(uuids)
        return await self._store.facts_of_episodes(wanted) if wanted else []

    async def facts_between(self, pairs: Sequence[tuple[str, str]]) -> list[Fact]:
        """Return the facts between each (subject, object) pair, in uuid order."""
        _check_pairs(pairs)
        return await self._store.facts_between(list(pairs)) if pairs else []

    async def mentioned_nodes(self, episodes: Sequence[str]) -> dict[str, list[str]]:
        """Return episode → uuids of the nodes it mentions; others are left out."""
        wanted = check_uuids(episodes)
        return await self._store.mentioned_nodes(wanted) if wanted else {}

    async def episodes_of_nodes(self, nodes: Sequence[str]) -> dict[str, list[str]]:
        """Return node → uuids of the episodes that mention it; others are left out."""
        wanted = check_uuids(nodes)
        return await self._inside.objects.episodes_of_nodes(wanted) if wanted else {}

    async def timeline(self, **options: Unpack[GraphTimelineOptions]) -> list[Fact]:
        """Return facts by (``valid_at``, uuid), undated facts last; see ``GraphTimelineOptions``.

        Raises:
            NotFound: ``node`` is not a node of this entity.
        """
        check_keywords("timeline", options, GraphTimelineOptions)
        node = options.get("node")
        if node is not None:
            await self.nodes([node], strict=True)
        return await self._store.timeline(**options)

    @staticmethod
    def timeline_cursor(fact: Fact) -> str:
        """Return the cursor that continues a timeline after this fact."""
        return timeline_cursor(fact.valid_at, fact.uuid)

    async def counts(self) -> GraphCounts:
        """Return the numbers of the entity's nodes, facts, episodes and mentions."""
        return await self._store.counts()

    async def search(
        self,
        query: str,
        *,
        recipe: str,
        limit: int = 10,
        center: str | None = None,
        filters: GraphFilters | None = None,
        as_of: datetime | None = None,
    ) -> GraphitiResults:
        """Search this entity's graph with one of Graphiti's recipes.

        Args:
            query: Any text of 1 to 8,000 characters.
            recipe: A name in ``RECIPES``.
            limit: Maximum results in each channel, 1 to 1,000.
            center: Uuid of the node from which recipes with NODE_DISTANCE measure.
            filters: Restrict the nodes and facts.
            as_of: World time, aware; by default now. Facts that do not hold then are left out, as
                are facts of the kind ``relation``.

        Returns:
            The results of each channel, best first. Scores compare only within a channel.
            ``notes`` names each step of the recipe that was replaced or skipped (no centre, no
            reranker, no vectors, a reranker that took too long).

        Raises:
            InvalidRequest: A bound is violated.
            NotFound: The centre is not a node of this entity; nothing was searched.
            StoreUnavailable: The memory publishes its graph, so recipes run there, and that graph
                lags behind or cannot be reached.
        """
        if center is not None:
            await self.nodes([center], strict=True)
        options = SearchOptions(center=center, filters=filters, as_of=as_of)
        most = check_limit(limit, 1_000)
        if self._published is not None:
            return await self._published.search(query, recipe, most, options)
        return await search_recipe(self._inside, query, recipe, most, options)

    async def apply(
        self,
        change: GraphChange,
        before: Work[object] = nothing,
        after: Work[object] = nothing,
    ) -> None:
        """Write a change, and what the journal's other tables get with it, in one transaction.

        Args:
            change: Ids are the entity's, or fresh; bounds and errors as of the single writes.
            before: Writes other tables of the entity's own journal, before the graph's.
            after: As ``before``, after the graph's.

        Raises:
            InvalidRequest: ``before`` or ``after`` is given and the graph is not in the journal's
                tables.
        """
        items = (*change.nodes, *change.facts, *change.episodes)
        ids = _check_batch((item.uuid for item in items), {})
        referenced: list[str] = []
        for fact in change.facts:
            referenced += (fact.subject, fact.object, *fact.episodes)
        for episode in change.episodes:
            referenced += episode.facts
        check_uuids(referenced)
        check_uuids([*change.gone_facts, *change.gone_episodes, *change.gone_nodes])
        _check_pairs([*change.parted, *change.mentions])
        if ids:
            await self._inside.lock.free(ids)
        if isinstance(self._store, SqlGraphStore):
            await self._store.apply(change, before, after)
            return
        if before is not nothing or after is not nothing:
            raise InvalidRequest("before", "needs a graph in the tables of the entity's journal")
        await self._store.apply(change)

    async def save_nodes(self, nodes: Sequence[Node], vectors: Mapping[str, Vector]) -> None:
        """Create or update nodes.

        Args:
            nodes: At most one for each uuid.
            vectors: uuid → vector of the name; a node without one keeps what it has.

        Raises:
            InvalidRequest: An id comes twice; a kind or attribute is refused.
            NotFound: An id belongs to another entity.
        """
        ids = _check_batch((node.uuid for node in nodes), vectors)
        if ids:
            await self._inside.lock.free(ids)
            await self._store.save_nodes(nodes, vectors)

    async def save_facts(self, facts: Sequence[Fact], vectors: Mapping[str, Vector]) -> None:
        """Create or update facts, as ``save_nodes``.

        NotFound also when a subject or object is not a node of this entity.
        """
        ids = _check_batch((fact.uuid for fact in facts), vectors)
        check_uuids([id_ for fact in facts for id_ in (fact.subject, fact.object, *fact.episodes)])
        if ids:
            await self._inside.lock.free(ids)
            await self._store.save_facts(facts, vectors)

    async def save_episodes(self, episodes: Sequence[Episode]) -> None:
        """Create or update episodes; as ``save_nodes``."""
        ids = _check_batch((episode.uuid for episode in episodes), {})
        check_uuids([id_ for episode in episodes for id_ in episode.facts])
        if ids:
            await self._inside.lock.free(ids)
            await self._store.save_episodes(episodes)

    async def save_mentions(self, pairs: Sequence[tuple[str, str]]) -> None:
        """Join (episode, node) pairs; NotFound when an end is not this entity's."""
        _check_pairs(pairs)
        if pairs:
            await self._store.save_mentions(pairs)

    async def delete_mentions(self, pairs: Sequence[tuple[str, str]]) -> None:
        """Delete mentions, as (episode, node); absent and foreign pairs are skipped."""
        _check_pairs(pairs)
        if pairs:
            await self._store.delete_mentions(pairs)

    async def delete_nodes(self, uuids: Sequence[str]) -> int:
        """Delete nodes with their facts and mentions; return how many of them this entity had."""
        wanted = check_uuids(uuids)
        return await self._store.delete_nodes(wanted) if wanted else 0

    async def delete_facts(self, uuids: Sequence[str]) -> int:
        """Delete facts; return how many of them this entity had."""
        wanted = check_uuids(uuids)
        return await self._store.delete_facts(wanted) if wanted else 0

    async def delete_episodes(self, uuids: Sequence[str]) -> int:
        """Delete episodes with their mentions; return how many of them this entity had."""
        wanted = check_uuids(uuids)
        return await self._store.delete_episodes(wanted) if wanted else 0

    async def clear(self) -> None:
        """Delete everything of this entity from the graph."""
        await self._store.clear()

    async def extract_episode(self, uuid: str) -> GraphitiChanges:
        """Run Graphiti's pipeline on a stored episode: extract, resolve and save nodes and facts.

        Run again, it returns what it made the first time: the mentions that Graphiti saves last are
        the mark. One at a time: Graphiti resolves against what is stored.

        Raises:
            NotFound: The episode is not this entity's.
            ModelUnavailable, ModelOutputInvalid, ModelError: The language model.
        """
        inside = self._inside
        (episode,) = await self.episodes([uuid], strict=True)
        nodes_made = await inside.objects.read_by_graphiti(uuid)
        if nodes_made:
            facts = await self._store.facts_of_episodes([uuid])
            fact_ids = tuple(fact.uuid for fact in facts)
            return GraphitiChanges(tuple(nodes_made), fact_ids, (uuid,))
        self._need_models()
        if isinstance(inside.guard, SqlDriver):
            inside.guard.replaced_facts.clear()
        # Graphiti passes the time to a driver, which knows no dates without a time of day.
        said_at = plain(episode.valid_at)
        # Graphiti's own choice of context would contain this episode itself.
        latest = await inside.objects.latest_episodes(said_at, RELEVANT_SCHEMA_LIMIT + 1)
        context = [episode_id for episode_id in latest if episode_id != uuid]
        async with self._one_at_a_time:
            with NoBreach(self.entity), GraphitiErrors():
                made = await inside.graphiti.add_episode(
                    episode.name,
                    episode.content,
                    "",
                    said_at,
                    source=EpisodeType(episode.source),
                    group_id=self.entity.group,
                    uuid=uuid,
                    previous_episode_uuids=context[-RELEVANT_SCHEMA_LIMIT:],
                )
        inside.lock.own_groups(item.group_id for item in (*made.nodes, *made.edges, made.episode))
        guard = inside.guard
        return GraphitiChanges(
            nodes=tuple(dict.fromkeys(node.uuid for node in made.nodes)),
            facts=tuple(dict.fromkeys(edge.uuid for edge in made.edges)),
            episodes=(made.episode.uuid,),
            before=dict(guard.replaced_facts) if isinstance(guard, SqlDriver) else {},
        )

    async def _by_id(
        self,
        read: Callable[[Sequence[str]], Awaitable[list[_Item]]],
        uuids: Sequence[str],
        strict: bool,
    ) -> list[_Item]:
        unique_ids = check_uuids(uuids)
        items = await read(unique_ids) if unique_ids else []
        self._inside.lock.only_requested((item.uuid for item in items), unique_ids)
        if strict:
            self._inside.lock.all_answered(len(items), len(unique_ids))
        return items

    def _need_models(self) -> None:
        if self._inside.models.extractor is None:
            raise NotSet(NO_EXTRACTOR)
        if self._inside.models.embedder is None:
            raise ModelUnavailable(NO_EMBEDDER)

    async def _audit(self, store: str) -> None:
        strangers = await self._inside.objects.strangers() if store != "neo4j" else set[bool]()
        if strangers == {False}:
            raise StoreError(
                f"the graph of {self.entity.name} is damaged: its rows name no valid owner; "
                f"`pps rebuild {self.entity.name}` makes it anew from the journal"
            )
        crossing = await self._store.foreign_edges()
        if crossing:
            raise self.counters.refuse(
                self.entity,
                "audit",
                f"{crossing} edge(s) in the graph join this entity to another; the graph was "
                "written by something else: restore it from a backup, or remove those edges, "
                "before opening it",
            )
        if strangers:
            raise self.counters.refuse(
                self.entity,
                "audit",
                _ANOTHERS_FILE,
            )


def bound_driver(
    entity: EntityId, opened: EntityDriver, counters: IsolationCounters
) -> BoundDriver:
    """Return the driver that Graphiti gets for an entity, without the hooks that search.

    Raises:
        IsolationError: The file is another entity's.
        ConfigError: What was opened is not of the store that was named.
    """
    if isinstance(opened.driver, GraphTables):
        return _sql_driver(entity, opened, opened.driver, counters)
    return _guarded(entity, opened, opened.driver, counters)


async def erase(entity: EntityId, driver: GraphDriver, counters: IsolationCounters) -> None:
    """Delete an entity's group from a shared Neo4j without opening its memory.

    It can be run again.
    """
    guard = GuardedDriver(driver, entity, counters)
    await Neo4jStore(guard.for_own_statements(), entity.group).clear()


def bind(
    entity: EntityId,
    opened: EntityDriver,
    indexes: EntityIndexes,
    models: Models,
    counters: IsolationCounters,
) -> Inside:
    """Return the objects bound to an entity on a store, for this package alone.

    Raises as ``bound_driver``.
    """
    graph: GraphStore
    objects: GraphitiObjects
    driver: BoundDriver
    if isinstance(opened.driver, GraphTables):
        driver = _sql_driver(entity, opened, opened.driver, counters)
        graph = SqlGraphStore(opened.driver)
        objects = SqlObjects(graph, GraphitiReads(opened.driver))
        driver.search_interface = SqlSearch(entity, opened.driver, indexes, counters)
    else:
        driver = _guarded(entity, opened, opened.driver, counters)
        own = driver.for_own_statements()
        graph = Neo4jStore(own, entity.group)
        objects = GroupObjects(own, entity.group)
        # No hook for searches: Graphiti sends its own statements, under the guard.
        driver.graph_operations_interface = GroupOperations(entity, graph, objects, counters)
    graphiti = Graphiti(
        graph_driver=driver,
        llm_client=make_llm(models.extractor),
        embedder=GraphitiEmbedder(models.embedder),
        cross_encoder=GraphitiReranker(models.reranker, models.rerank_deadline_s),
    )
    lock = FirstLock(entity, driver, counters)
    return Inside(entity, driver, lock, graph, objects, indexes, graphiti, models, counters)


def _guarded(
    entity: EntityId, opened: EntityDriver, driver: GraphDriver, counters: IsolationCounters
) -> GuardedDriver:
    if opened.store != "neo4j" or driver.provider != GraphProvider.NEO4J:
        raise ConfigError(
            f"store: is {opened.store}, but the driver leads to {driver.provider.value}"
        )
    return GuardedDriver(driver, entity, counters)


def _sql_driver(
    entity: EntityId, opened: EntityDriver, file: GraphTables, counters: IsolationCounters
) -> SqlDriver:
    if opened.store == "neo4j":
        raise ConfigError(f"store: is {opened.store}, but the driver leads to SQL tables")
    if file.group != entity.group:
        raise counters.refuse(entity, "audit", _ANOTHERS_FILE)
    driver = SqlDriver(entity, file, counters)
    driver.graph_operations_interface = SqlOperations(entity, file, counters)
    return driver


def _check_batch(uuids: Iterable[str], vectors: Mapping[str, Vector]) -> list[str]:
    ids = list(uuids)
    if len(check_uuids(ids)) != len(ids):
        raise InvalidRequest("id", "comes twice in one batch")
    if not vectors.keys() <= set(ids):
        raise InvalidRequest("vectors", "may only be of what is saved")
    return ids


def _check_pairs(pairs: Sequence[tuple[str, str]]) -> None:
    check_uuids([id_ for pair in pairs for id_ in pair])


def _cursor(after: str) -> str:
    return check_uuid(after, "after") if after else ""
