"""The only door to an entity's graph."""

from __future__ import annotations

from typing import Literal, TypedDict, Unpack

from graphiti_core import Graphiti
from graphiti_core.driver.driver import GraphDriver, GraphProvider

from pps.core.errors import ConfigError
from pps.core.ids import EntityId
from pps.graph.protocol import GraphStore
from pps.graph.store_embedded import EmbeddedStore
from pps.graph.store_neo4j import Neo4jStore
from pps.index.entity import EntityIndexes
from pps.isolation.adapters import Extractor, GraphitiEmbedder, GraphitiReranker, make_llm
from pps.isolation.bound import Inside, Models
from pps.isolation.communities import Communities
from pps.isolation.counters import IsolationCounters
from pps.isolation.guard import GuardedDriver
from pps.isolation.metering import TokensUsed
from pps.isolation.objects import GroupObjects
from pps.isolation.operations import GroupOperations
from pps.isolation.reads import Reads
from pps.isolation.recipe_search import RecipeSearch
from pps.isolation.search import GroupSearch, SearchParts
from pps.isolation.transfer import Transfer
from pps.isolation.writes import Writes
from pps.models.protocols import Embedder, ExtractorModel, Reranker

_PROVIDERS = {"embedded": GraphProvider.KUZU, "neo4j": GraphProvider.NEO4J}


class _Given(TypedDict):
    store: Literal["embedded", "neo4j"]
    indexes: EntityIndexes
    embedder: Embedder | None
    reranker: Reranker | None
    extractor: ExtractorModel | None


class ClientOptions(_Given, total=False):
    """What a client is opened with.

    Attributes:
        store: What the driver leads to.
        indexes: The entity's own indexes; searches read them.
        embedder, reranker, extractor: The models, or None.
        counters: Where refusals are counted; one object for all clients of a process.
        rerank_deadline_s: Seconds that a cross-encoder recipe may take to rerank, 0.5 by default.
    """

    counters: IsolationCounters
    rerank_deadline_s: float


class IsolatedGraphitiClient(Reads, Writes, RecipeSearch, Communities, Transfer):
    """Everything that one entity can do with its graph, and nothing that touches another's.

    Bound to one ``EntityId`` for life; no method takes a group. Two locks, each enough alone: ids from outside
    are canonical UUIDs that must be the entity's before a call starts, and every statement runs on a guarded
    driver that checks what goes in and what comes out. An id of another entity is treated as one that does
    not exist. Neither Chroma, text index nor SQLite is written here: whoever writes reads ``Changes``.
    """

    @classmethod
    async def open(
        cls,
        entity: EntityId,
        driver: GraphDriver,
        **options: Unpack[ClientOptions],
    ) -> IsolatedGraphitiClient:
        """Bind a client to an entity, after an audit of what lies in the store.

        Args:
            entity: Whose memory it is.
            driver: The store's driver, opened and closed by the caller; the client never hands it on.
            **options: See ``ClientOptions``.

        Raises:
            IsolationError: The store holds an edge that joins two groups, or (embedded) another group's data.
            ConfigError: The driver is not of the store that was named, or a provider's package is missing.
        """
        store = options["store"]
        if driver.provider != _PROVIDERS[store]:
            raise ConfigError(f"store: is {store}, but the driver leads to {driver.provider.value}")
        client = cls(_inside(entity, driver, options))
        try:
            await client._audit(store)
        except BaseException:
            await client.close()
            raise
        return client

    async def close(self) -> None:
        """Let go of the entity and of the connections to its language model.

        The driver and the indexes belong to whoever opened them.
        """
        model = self._inside.graphiti.llm_client
        if isinstance(model, Extractor):
            await model.close()

    def take_tokens_used(self) -> dict[str, TokensUsed]:
        """Return by model what this entity's language model took since this was last asked, failed attempts too."""
        model = self._inside.graphiti.llm_client
        return model.meter.take() if isinstance(model, Extractor) else {}

    async def _audit(self, store: str) -> None:
        crossing = await self._store.foreign_edges()
        if crossing:
            raise self.counters.refuse(
                self.entity,
                "audit",
                f"{crossing} edge(s) in the graph join this entity to another; the graph was written by something "
                "else: restore it from a backup, or remove those edges, before opening it",
            )
        if store == "embedded" and await self._inside.objects.strangers():
            raise self.counters.refuse(
                self.entity,
                "audit",
                "the graph's file holds another entity's data; check that the right data folder is mounted",
            )


async def erase(entity: EntityId, driver: GraphDriver, counters: IsolationCounters) -> None:
    """Delete everything of an entity from a shared Neo4j without opening its memory; it can be run again."""
    guard = GuardedDriver(driver, entity, counters, shared=True)
    await Neo4jStore(guard.for_own_statements(), entity.group).clear()


def _inside(entity: EntityId, driver: GraphDriver, options: ClientOptions) -> Inside:
    store, indexes = options["store"], options["indexes"]
    counters = options.get("counters") or IsolationCounters()
    models = Models(
        options["embedder"], options["reranker"], options["extractor"], options.get("rerank_deadline_s", 0.5)
    )
    guard = GuardedDriver(driver, entity, counters, shared=store == "neo4j")
    own = guard.for_own_statements()
    graph: GraphStore = (EmbeddedStore if store == "embedded" else Neo4jStore)(own, entity.group)
    objects = GroupObjects(own, entity.group, driver.provider)
    guard.search_interface = GroupSearch(SearchParts(entity, graph, objects, indexes, counters))
    guard.graph_operations_interface = GroupOperations(entity, graph, objects, counters)
    graphiti = Graphiti(
        graph_driver=guard,
        llm_client=make_llm(models.extractor),
        embedder=GraphitiEmbedder(models.embedder),
        cross_encoder=GraphitiReranker(models.reranker, models.rerank_deadline_s),
    )
    return Inside(entity, guard, graph, objects, indexes, graphiti, models, counters)
