"""Copies a group that lies only on Neo4j, from an earlier PPS, into an entity's tables."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from datetime import datetime
from functools import partial
from typing import Final

from graphiti_core.driver.driver import GraphDriver

from pps.core.errors import StoreError
from pps.core.ids import EntityId
from pps.index.indexes import EntityIndexes
from pps.isolation.binding import Inside, Models
from pps.isolation.client import EntityDriver, bind
from pps.isolation.counters import IsolationCounters
from pps.isolation.graph_digests import compare_graphs
from pps.isolation.graphiti_objects import GroupObjects
from pps.isolation.sql_objects import stored_episode, stored_fact, stored_node
from pps.store.graph_rows import StoredEpisode, StoredFact, StoredNode
from pps.store.graph_tables import GraphTables
from pps.store.sql_graph import (
    SqlGraphStore,
    clear,
    put_episodes,
    put_facts,
    put_mentions,
    put_nodes,
)
from pps.store.sql_session import SqlSession

_PAGE: Final = 1_000


class GroupReader:
    """Reads one group on Neo4j as rows, page by page; every statement binds the group.

    It changes nothing.
    """

    def __init__(self, inside: Inside) -> None:
        # A driver of Neo4j is bound to these.
        assert isinstance(inside.objects, GroupObjects)  # noqa: S101
        self.store = inside.store
        self._objects = inside.objects

    async def nodes(self) -> AsyncIterator[list[StoredNode]]:
        """Yield pages of nodes; their vectors are in the indexes."""
        after = ""
        while page := await self.store.scan_nodes(after, _PAGE):
            after = page[-1].uuid
            uuids = [node.uuid for node in page]
            nodes = await self._objects.nodes(uuids)
            yield [
                stored_node({**node.model_dump(), "attributes": node.attributes}) for node in nodes
            ]

    async def facts(self) -> AsyncIterator[list[StoredFact]]:
        """Yield pages of facts."""
        after = ""
        while page := await self.store.scan_facts(after, _PAGE):
            after = page[-1].uuid
            uuids = [fact.uuid for fact in page]
            rows = [stored_fact(edge.model_dump()) for edge in await self._objects.edges(uuids)]
            page_by_id = {fact.uuid: fact for fact in page}
            # Graphiti's object of a fact has no precision of its times.
            yield [
                StoredFact(page_by_id[row.uuid], row.graphiti, row.reference_time) for row in rows
            ]

    async def episodes(
        self,
    ) -> AsyncIterator[tuple[list[StoredEpisode], list[tuple[str, str, str, datetime]]]]:
        """Yield pages of episodes with their mentions."""
        after = ""
        while page := await self.store.scan_episodes(after, _PAGE):
            after = page[-1].uuid
            uuids = [episode.uuid for episode in page]
            episodes = await self._objects.episodes(uuids)
            rows = [
                stored_episode({**episode.model_dump(), "source": episode.source.value})
                for episode in episodes
            ]
            page_by_id = {episode.uuid: episode for episode in page}
            rows = [StoredEpisode(page_by_id[row.uuid], row.source, row.metadata) for row in rows]
            yield rows, await self._objects.mentions_of(uuids)


async def _kept_open() -> None:
    """Close nothing: the pool of connections belongs to the process."""


async def adopt_group(
    entity: EntityId,
    driver: GraphDriver,
    tables: GraphTables,
    indexes: EntityIndexes,
    counters: IsolationCounters,
) -> None:
    """Copy an entity's group on Neo4j into its tables, and compare both. Neo4j is not changed.

    After an interruption, the next call starts again from empty tables.

    Raises:
        StoreUnavailable: Neo4j is away.
        StoreError: The copy differs; the tables are emptied.
    """
    opened = EntityDriver(driver, "neo4j", _kept_open)
    reader = GroupReader(bind(entity, opened, indexes, Models(), counters))
    await tables.write(clear, secure=True)
    async for nodes in reader.nodes():
        await tables.write(partial(put_nodes, nodes=nodes))
    async for facts in reader.facts():
        await tables.write(partial(put_facts, facts=facts))
    async for episodes, mentions in reader.episodes():
        await tables.write(partial(_put_episodes, episodes=episodes, mentions=mentions))
    copy = SqlGraphStore(tables)
    counts_there = await reader.store.counts()
    counts_here = await copy.counts()
    differences = await compare_graphs(reader.store, copy)
    if counts_there != counts_here or differences.any:
        await tables.write(clear, secure=True)
        counts_of_differences = [
            f"{len(differences.missing[kind] | differences.extra[kind])} {kind}"
            for kind in differences.expected
            if differences.missing[kind] or differences.extra[kind]
        ]
        raise StoreError(
            f"{entity.name}: its graph on Neo4j was read, and "
            f"{', '.join(counts_of_differences) or 'the mentions'} came out otherwise; "
            "nothing was changed there. Stop what writes to that group and open the memory again"
        )


def _put_episodes(
    session: SqlSession,
    episodes: Sequence[StoredEpisode],
    mentions: Sequence[tuple[str, str, str, datetime]],
) -> None:
    put_episodes(session, episodes)
    put_mentions(session, mentions)
