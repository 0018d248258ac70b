"""Publishing an entity's graph on Neo4j: a follower of the change log copies the SQL tables there.

Stock Graphiti, Neo4j Browser and Bloom read the published graph, and Graphiti's own recipes run on
it. PPS reads no data back from it: an entry of the log names the row that changed, and the follower
writes the row as the tables have it now. So every entry can be applied again. While Neo4j is away,
the memory works, and the changes wait in the log.

The other way, ``adopt_group`` copies a group that lies only on Neo4j, from an earlier PPS, into an
entity's tables.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import random
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import TypeAlias, TypeVar

from graphiti_core.driver.driver import GraphDriver

from pps.core.errors import IsolationError, PPSError, StoreError, StoreUnavailable
from pps.core.ids import EntityId
from pps.core.log_context import unforeseen
from pps.core.text import counted
from pps.core.values import Episode, Fact, Node, Vector
from pps.index.indexes import EntityIndexes
from pps.isolation.binding import Inside, Models
from pps.isolation.client import EntityDriver, bind
from pps.isolation.counters import IsolationCounters
from pps.isolation.graph_digests import Differences, compare_graphs
from pps.isolation.graphiti_objects import GroupObjects
from pps.isolation.recipes import GraphitiResults, SearchOptions, search_recipe
from pps.isolation.sql_objects import stored_episode, stored_fact, stored_node
from pps.isolation.store_neo4j import Neo4jStore
from pps.journal.change_log import LogEntry
from pps.journal.entries import Change
from pps.journal.meta import PUBLISHED_AT
from pps.store.graph_rows import StoredEpisode, StoredFact, StoredNode
from pps.store.graph_tables import GraphTables, log_graph_rows
from pps.store.sql_graph import (
    SqlGraphStore,
    clear,
    put_episodes,
    put_facts,
    put_mentions,
    put_nodes,
)
from pps.store.sql_session import SqlSession

Connect: TypeAlias = Callable[[], Awaitable[GraphDriver]]
_Item = TypeVar("_Item", StoredNode, StoredFact, StoredEpisode, "tuple[str, str]")

ANEW = "anew"
"""Stands in the journal for the position of a graph that must be written from the beginning."""

WAIT_S = 2.0
"""How long a search waits for the published graph to catch up with the tables."""
_ENTRIES_AT_ONCE = 1_000
_PAGE = 1_000
_LOOK_S = 2.0
_FIRST_RETRY_S = 0.25
_LONGEST_RETRY_S = 15.0
_PATIENCE_S = 60.0
"""How long one write to Neo4j may take; a broken connection would hang for much longer."""
_ENDS_WITHIN_S = 2.0
_VECTORS_LATE_S = 1.0
"""How long changes wait for their vectors."""
_SAVED_AFTER_S = 10.0
_SAVED_AFTER_ENTRIES = 256

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class PublishingState:
    """The progress of publishing.

    Attributes:
        behind: Number of changes that Neo4j lacks; None while all of the graph is written again.
        waits_for: Why publishing waits; empty while it works.
        refused: Id → error, for the items that Neo4j refuses and that are skipped.
    """

    behind: int | None
    waits_for: str
    refused: dict[str, str]

    def problems(self) -> list[str]:
        """Return the problems as sentences; empty when there are none."""
        problems = list[str]()
        if self.waits_for:
            lacks = "all of it" if self.behind is None else counted(self.behind, "change")
            problems.append(
                f"publishing waits: Neo4j lacks {lacks} ({self.waits_for}); "
                "the memory works without it"
            )
        if self.refused:
            uuid, why = next(iter(self.refused.items()))
            problems.append(
                f"Neo4j does not take {counted(len(self.refused), 'item')}, such as {uuid}: {why}"
            )
        return problems


class Publisher:
    """Keeps one entity's group on Neo4j equal to its tables. Call ``open``, then ``start``.

    Args:
        entity: The owner of the graph.
        tables: The entity's graph, the truth.
        connect: Returns the driver of the server; raises StoreUnavailable while it is away.
        indexes: The entity's indexes, whose vectors are published; recipes on Neo4j do not read
            them.
        models: The models that recipes use.
        counters: Counts the refusals of the guard.
    """

    def __init__(
        self,
        entity: EntityId,
        tables: GraphTables,
        connect: Connect,
        indexes: EntityIndexes,
        models: Models,
        counters: IsolationCounters,
    ) -> None:
        self._entity = entity
        self._journal = tables.journal
        self._source = SqlGraphStore(tables)
        self._connect = connect
        self._indexes = indexes
        self._models = models
        self._counters = counters
        self._inside: Inside | None = None
        self._position: int | None = None
        self._needed_after = 0
        self._saved = 0
        self._saved_at = time.monotonic()
        self._waits_for = ""
        self._refused: dict[str, str] = {}
        self._ahead = 0
        self._passed_at = time.monotonic()
        self._woken = asyncio.Event()
        self._moved = asyncio.Event()
        self._stopping = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    async def open(self, *, anew: bool = False) -> None:
        """Read the saved position, and have the log name every row of the graph that changes.

        ``anew`` writes all of the graph again. So does a saved position that the log does not
        reach.
        """
        span = await self._journal.log_span()
        stored = await self._journal.get_meta(PUBLISHED_AT)
        position = int(stored) if stored and stored.isdigit() and not anew else None
        if position is not None and span.dropped <= position <= span.last:
            self._position = self._saved = self._needed_after = position
        else:
            self._needed_after = span.last
            await self._journal.set_meta(PUBLISHED_AT, ANEW)
        await self._journal.write(log_graph_rows)

    def start(self) -> None:
        """Start publishing in the background."""
        self._stopping.clear()
        self._task = asyncio.create_task(self._run())

    async def stop(self) -> None:
        """Stop publishing; the remaining changes wait in the log.

        A running write gets a moment to end: a cancelled call would leave its connection open until
        garbage collection.
        """
        if self._task is not None:
            self._stopping.set()
            self._woken.set()
            await asyncio.wait([self._task], timeout=_ENDS_WITHIN_S)
            self._task.cancel()
            await asyncio.wait([self._task])
        with contextlib.suppress(StoreError):
            await self.save_position()

    async def begin_anew(self) -> None:
        """Write all of the graph again, from an empty group."""
        await self.stop()
        self._position = self._inside = None
        self._saved = -1
        self._ahead = 0
        self._needed_after = (await self._journal.log_span()).last
        await self._journal.set_meta(PUBLISHED_AT, ANEW)
        self.start()

    def notify(self) -> None:
        """Wake the follower: the log may have new entries."""
        self._woken.set()

    async def state(self) -> PublishingState:
        """Return the progress of publishing."""
        behind = None
        if self._position is not None:
            behind = await self._journal.count_entries(self._position)
        return PublishingState(behind, self._waits_for if behind != 0 else "", dict(self._refused))

    async def save_position(self) -> int:
        """Save the position; return the position behind which entries of the log are needed."""
        position = self._position
        if position is not None and position != self._saved:
            await self._journal.set_meta(PUBLISHED_AT, str(position))
            self._saved = position
            self._saved_at = time.monotonic()
        return self._needed_after if position is None else self._saved

    async def catch_up(self, timeout_s: float = WAIT_S) -> None:
        """Wait until the published graph has everything that the tables have now.

        Raises:
            StoreUnavailable: It did not catch up in time; the message says how far it is behind.
        """
        end = (await self._journal.log_span()).last
        try:
            async with asyncio.timeout(timeout_s):
                while self._position is None or self._position < end:
                    moved = self._moved
                    self._woken.set()
                    await moved.wait()
        except TimeoutError:
            state = await self.state()
            if state.behind is None:
                progress = "is being written anew"
            else:
                progress = f"is {counted(state.behind, 'change')} behind"
            reason = f" ({state.waits_for})" if state.waits_for else ""
            raise StoreUnavailable(
                f"the graph published on Neo4j {progress}{reason}; "
                "try again, or recall with a profile of PPS's own"
            ) from None

    async def forget(self) -> bool:
        """Wait for deletions to reach Neo4j; return whether they did.

        While Neo4j is away, they wait in the log and are made when it is back.
        """
        if self._waits_for:
            return False
        try:
            await self.catch_up()
        except StoreUnavailable:
            return False
        return True

    async def search(
        self, query: str, recipe: str, limit: int, options: SearchOptions
    ) -> GraphitiResults:
        """Run a recipe on Neo4j once it has caught up with the tables; wait for that 2 s at most.

        Raises:
            StoreUnavailable: Neo4j is away, or behind; the message says how far.
        """
        await self.catch_up()
        inside = await self._reach()
        try:
            async with asyncio.timeout(_PATIENCE_S):
                return await search_recipe(inside, query, recipe, limit, options)
        except TimeoutError:
            raise StoreUnavailable(f"Neo4j did not answer within {_PATIENCE_S:.0f} s") from None

    async def differences(self) -> Differences:
        """Compare the published graph with the tables; ids that the log still names are left out.

        Raises:
            StoreUnavailable: Neo4j is away.
        """
        differences = await compare_graphs(self._source, (await self._reach()).store)
        entries = await self._journal.log_entries(self._position or 0, 100_000)
        return differences.without({entry.change.id for entry in entries})

    async def _run(self) -> None:
        retry_s = _FIRST_RETRY_S
        while not self._stopping.is_set():
            try:
                await self._publish()
                self._waits_for = ""
                retry_s = _FIRST_RETRY_S
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(_LOOK_S):
                        await self._woken.wait()
                continue
            except TimeoutError:
                self._waits_for = "Neo4j does not answer"
            except PPSError as error:
                if self._waits_for != error.message:
                    _log.warning("%s: publishing waits: %s", self._entity.name, error.message)
                self._waits_for = error.message
            # After a defect the memory goes on without publishing, and its health says so.
            except Exception as error:  # noqa: BLE001
                unforeseen(_log, f"{self._entity.name}: a defect in publishing", error)
                self._waits_for = f"an unforeseen error ({type(error).__name__})"
            pause_s = retry_s * random.uniform(0.5, 1.0)  # noqa: S311 - spreads tries
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(pause_s):
                    await self._stopping.wait()
            retry_s = min(2 * retry_s, _LONGEST_RETRY_S)

    async def _publish(self) -> None:
        """Apply entries of the log behind the position, up to one that waits for its vector."""
        if self._position is None:
            await self._publish_anew()
        entries: Sequence[LogEntry] = ()
        while not self._stopping.is_set():
            self._woken.clear()
            position = self._position or 0
            entries = await self._journal.log_entries(position, _ENTRIES_AT_ONCE)
            made = self._vectors_made()
            ready = [entry for entry in entries if made is None or entry.position <= made]
            if not ready:
                break
            await self._apply([entry.change for entry in ready])
            self._pass(ready[-1].position)
            is_old = time.monotonic() - self._saved_at > _SAVED_AFTER_S
            if is_old or ready[-1].position - self._saved >= _SAVED_AFTER_ENTRIES:
                await self.save_position()
        if entries and time.monotonic() - self._passed_at > _VECTORS_LATE_S:
            await self._publish_without_vectors()

    async def _publish_without_vectors(self) -> None:
        """Apply entries that still wait for their vectors; they are applied again later.

        Meanwhile deleted items leave Neo4j, and new items can be found there by text.
        """
        self._ahead = max(self._ahead, self._position or 0)
        while entries := await self._journal.log_entries(self._ahead, _ENTRIES_AT_ONCE):
            await self._apply([entry.change for entry in entries])
            self._ahead = entries[-1].position

    def _vectors_made(self) -> int | None:
        """Return the log's position up to which the indexes have vectors; None without a model."""
        return self._indexes.positions.get("vectors")

    def _pass(self, position: int) -> None:
        self._position = position
        self._passed_at = time.monotonic()
        self._moved.set()
        self._moved = asyncio.Event()

    async def _publish_anew(self) -> None:
        """Empty the group and write all rows of the tables; later changes come from the log."""
        target = await self._target()
        end = (await self._journal.log_span()).last
        made = self._vectors_made()
        self._needed_after = start = end if made is None else min(end, made)
        self._refused.clear()
        await target.clear()
        after = ""
        while nodes := await self._source.scan_nodes(after, _PAGE):
            after = nodes[-1].uuid
            await self._save_nodes([node.uuid for node in nodes])
        after = ""
        while facts := await self._source.scan_facts(after, _PAGE):
            after = facts[-1].uuid
            await self._save_facts([fact.uuid for fact in facts])
        after = ""
        while episodes := await self._source.scan_episodes(after, _PAGE):
            after = episodes[-1].uuid
            await self._save_episodes([episode.uuid for episode in episodes])
        self._pass(start)
        await self.save_position()

    async def _apply(self, changes: Sequence[Change]) -> None:
        """Write changed items as they are now; delete the absent ones first.

        Entries for the indexes count too: such an entry may stand for a vector that was made late.
        """
        nodes = _ids(changes, "node", "graph_node")
        facts = _ids(changes, "fact", "graph_fact")
        episodes = _ids(changes, "graph_episode")
        if not (nodes or facts or episodes):
            return
        target = await self._target()
        async with asyncio.timeout(_PATIENCE_S):
            await target.delete_facts(_absent(facts, await self._source.facts(facts)))
            await target.delete_episodes(_absent(episodes, await self._source.episodes(episodes)))
            await target.delete_nodes(_absent(nodes, await self._source.nodes(nodes)))
        await self._save_nodes(nodes)
        await self._save_facts(facts)
        await self._save_episodes(episodes)

    async def _save_nodes(self, uuids: Sequence[str]) -> None:
        target = await self._target()
        nodes = await self._source.stored_nodes(uuids)
        vectors = await self._source.node_vectors(uuids)

        async def save(batch: Sequence[StoredNode]) -> None:
            await target.save_stored_nodes(batch, _vectors_of(vectors, batch))

        await self._save_each(nodes, save, lambda node: node.uuid)

    async def _save_facts(self, uuids: Sequence[str]) -> None:
        """Save facts; first save those of their nodes whose entries come later in the log."""
        target = await self._target()
        facts = await self._source.stored_facts(uuids)
        nodes: list[str] = []
        for stored in facts:
            nodes += (stored.fact.subject, stored.fact.object)
        known = await self._known_nodes(nodes)
        facts = [stored for stored in facts if {stored.fact.subject, stored.fact.object} <= known]
        vectors = await self._source.fact_vectors(uuids)

        async def save(batch: Sequence[StoredFact]) -> None:
            await target.save_stored_facts(batch, _vectors_of(vectors, batch))

        await self._save_each(facts, save, lambda stored: stored.uuid)

    async def _save_episodes(self, uuids: Sequence[str]) -> None:
        """Save episodes, and make each one's mentions those of the tables."""
        target = await self._target()
        episodes = await self._source.stored_episodes(uuids)

        async def save(batch: Sequence[StoredEpisode]) -> None:
            await target.save_episodes([stored.episode for stored in batch])

        await self._save_each(episodes, save, lambda stored: stored.uuid)
        saved = [stored.uuid for stored in episodes if stored.uuid not in self._refused]
        mentioned = await self._source.mentioned_nodes(saved)
        async with asyncio.timeout(_PATIENCE_S):
            published = await target.mentioned_nodes(saved)
        wanted = {(episode, node) for episode, nodes in mentioned.items() for node in nodes}
        present = {(episode, node) for episode, nodes in published.items() for node in nodes}
        known = await self._known_nodes([node for _, node in wanted - present])
        new = sorted(pair for pair in wanted - present if pair[1] in known)
        async with asyncio.timeout(_PATIENCE_S):
            await target.delete_mentions(sorted(present - wanted))
        await self._save_each(new, target.save_mentions, lambda pair: pair[0])

    async def _known_nodes(self, uuids: Sequence[str]) -> set[str]:
        """Save the nodes that Neo4j lacks; return the nodes that it has then."""
        wanted = list(dict.fromkeys(uuids))
        target = await self._target()
        async with asyncio.timeout(_PATIENCE_S):
            known = {node.uuid for node in await target.nodes(wanted)}
        missing = [uuid for uuid in wanted if uuid not in known]
        if missing:
            await self._save_nodes(missing)
            async with asyncio.timeout(_PATIENCE_S):
                known |= {node.uuid for node in await target.nodes(missing)}
        return known

    async def _save_each(
        self,
        items: Sequence[_Item],
        save: Callable[[Sequence[_Item]], Awaitable[None]],
        uuid_of: Callable[[_Item], str],
    ) -> None:
        """Save items together; skip and note an item that Neo4j refuses.

        After a refusal each half is saved by itself, down to the item that is refused.
        """
        if not items:
            return
        try:
            async with asyncio.timeout(_PATIENCE_S):
                await save(items)
        except PPSError as error:
            if error.retryable or isinstance(error, IsolationError):
                raise
            if len(items) == 1:
                self._refused[uuid_of(items[0])] = error.message
                return
            half = len(items) // 2
            await self._save_each(items[:half], save, uuid_of)
            await self._save_each(items[half:], save, uuid_of)
            return
        for item in items:
            self._refused.pop(uuid_of(item), None)

    async def _target(self) -> Neo4jStore:
        store = (await self._reach()).store
        assert isinstance(store, Neo4jStore)  # noqa: S101 - what a driver of Neo4j is bound to
        return store

    async def _reach(self) -> Inside:
        """Return the objects bound to the group on Neo4j; audit the group at the first call.

        Raises:
            StoreUnavailable: Neo4j is away.
            ConfigError: It cannot be used.
            IsolationError: An edge joins the group to another.
        """
        if self._inside is None:
            driver = await self._connect()
            opened = EntityDriver(driver, "neo4j")
            inside = bind(self._entity, opened, self._indexes, self._models, self._counters)
            crossing = await inside.store.foreign_edges()
            if crossing:
                raise self._counters.refuse(
                    self._entity,
                    "audit",
                    f"{crossing} edge(s) on Neo4j join this entity's published graph to another; "
                    "remove them there",
                )
            self._inside = inside
        return self._inside


def _ids(changes: Sequence[Change], *kinds: str) -> list[str]:
    return list(dict.fromkeys(change.id for change in changes if change.kind in kinds))


def _vectors_of(
    vectors: dict[str, Vector], items: Sequence[StoredNode] | Sequence[StoredFact]
) -> dict[str, Vector]:
    return {item.uuid: vectors[item.uuid] for item in items if item.uuid in vectors}


def _absent(uuids: Sequence[str], present: Sequence[Node | Fact | Episode]) -> list[str]:
    known = {item.uuid for item in present}
    return [uuid for uuid in uuids if uuid not in known]


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
    opened = EntityDriver(driver, "neo4j")
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
