"""Throw-away entities with equal names and facts, their expected content, and who sees a leak.

Marks are planted in each entity, and every id that it owns is known.
"""

from __future__ import annotations

import asyncio
import logging
import random
import re
import secrets
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field, fields, is_dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, TypeAlias, cast

from graphiti_core.edges import CommunityEdge, HasEpisodeEdge
from graphiti_core.nodes import CommunityNode, SagaNode

from pps.core.feature_parts import Column, Listener, Table
from pps.core.ids import EntityId, new_group, stable_id
from pps.core.values import Episode, Fact, Node
from pps.index.indexes import EntityIndexes, IndexDoc, index_threads
from pps.isolation.binding import Inside, Models
from pps.isolation.client import EntityDriver, IsolatedGraphitiClient, bound_driver
from pps.isolation.counters import IsolationCounters
from pps.isolation.guard import BoundDriver
from pps.isolation.guarded_values import as_mapping
from pps.journal.entries import JobPayload, TurnDraft
from pps.journal.feature_tables import FeatureTables
from pps.journal.journal import Journal
from pps.models.hash import HashEmbedder
from pps.models.protocols import ExtractorModel, Reranked

_UUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_MAX_DEPTH = 16
NAMES = ("Ana", "Coffee", "Kitchen", "Lisbon", "Tea")
FACTS = (
    ("Ana", "DRINKS", "Coffee", "Ana drinks coffee in the kitchen."),
    ("Ana", "LIVES_IN", "Lisbon", "Ana lives in Lisbon."),
    ("Coffee", "STANDS_IN", "Kitchen", "The coffee stands in the kitchen."),
    ("Ana", "PREFERS", "Tea", "Ana prefers tea in the evening."),
)
ENTITY_NAMES = ("ana", "ana_2", "coffee", "an", "a_na")
"""Similar names, and one that is a word of the queries."""
DIMENSION = 32
_BEGAN = datetime(2026, 1, 1, tzinfo=UTC)
_WORD = re.compile(r"\w+")
OpenDriver: TypeAlias = Callable[[EntityId, Journal, EntityIndexes], Awaitable[EntityDriver]]
PLANTED_TABLE = Table("planted", (Column("text"), Column("number", "integer")))


class Watch:
    """Who owns which mark, id and group. ``leaks`` tells what of others a value holds."""

    def __init__(self) -> None:
        self._marks: dict[str, str] = {}
        self._owners: dict[str, str] = {}

    def mark(self, owner: str, *texts: str) -> None:
        """Remember texts that only this owner may ever see: planted words, and its group."""
        self._marks.update(dict.fromkeys(texts, owner))

    def own(self, owner: str, *ids: str) -> None:
        """Remember ids that are this owner's."""
        self._owners.update(dict.fromkeys(ids, owner))

    def leaks(self, viewer: str, value: object, known: AbstractSet[str] = frozenset()) -> list[str]:
        """Return what of others' the value holds, without quoting it.

        Ids that the caller passed in are no news.
        """
        leaks: list[str] = []
        for text in _texts(value, 0):
            leaks += [
                f"a mark planted in {owner}"
                for mark, owner in self._marks.items()
                if owner != viewer and mark in text
            ]
            for uuid in _UUID.findall(text):
                owner = self._owners.get(uuid, viewer)
                if owner != viewer and uuid not in known:
                    leaks.append(f"an id that {owner} owns")
        return leaks


def _texts(value: object, depth: int) -> Iterator[str]:
    """Yield every text in a value: fields, keys, items, attributes of a library's objects."""
    if isinstance(value, str):
        yield value
    elif value is None or isinstance(value, (bool, int, float, bytes)) or depth > _MAX_DEPTH:
        return
    elif isinstance(value, BaseException):
        yield str(value)
    elif is_dataclass(value):
        for field in fields(value):
            yield from _texts(getattr(value, field.name), depth + 1)
    else:
        yield from _of_compound(value, depth)


def _of_compound(value: object, depth: int) -> Iterator[str]:
    mapping = _mapping(value)
    if mapping is not None:
        for key, item in mapping.items():
            yield str(key)
            yield from _texts(item, depth + 1)
    elif isinstance(value, (list, tuple, AbstractSet)):
        for item in cast("list[object]", value):
            yield from _texts(item, depth + 1)


def _mapping(value: object) -> Mapping[str, Any] | None:
    dump = getattr(value, "model_dump", None)  # Graphiti's objects
    return cast("Mapping[str, Any]", dump()) if callable(dump) else as_mapping(value)


@dataclass(frozen=True, slots=True)
class ArenaStore:
    """The store that an arena is on.

    Attributes:
        open_driver: Opens the driver of an entity, whose journal is open.
        open_journal: Opens the journal of a group; its path lies in the entity's folder.
        erase: Removes what closing the journal leaves of a group outside of that folder.
    """

    open_driver: OpenDriver
    open_journal: Callable[[Path, str], Awaitable[Journal]] = Journal.open
    erase: Callable[[str], Awaitable[None]] | None = None


def dice(seed: int | None) -> random.Random:
    """Return the choices of a run; None makes them different each time."""
    return random.Random(seed)  # noqa: S311 - choices of a trial, not a secret


class OverlapReranker:
    """Scores a passage by the words it shares with the query: fast, and without a model."""

    name = "overlap"

    def rerank(self, query: str, passages: Sequence[str], *, deadline_s: float) -> Reranked:
        words = set(_WORD.findall(query.casefold()))
        scores = (
            len(words & set(_WORD.findall(passage.casefold()))) / (len(words) or 1)
            for passage in passages
        )
        return Reranked(tuple(scores), complete=True)

    def close(self) -> None:
        """Give back what it holds: nothing."""


class ExposedClient(IsolatedGraphitiClient):
    """A client that exposes its driver and hooks, so that attacks begin where its calls run."""

    def __init__(self, inside: Inside) -> None:
        super().__init__(inside)
        self.inside = inside


@dataclass(frozen=True, slots=True)
class ArenaFeature:
    """A feature with one table, which each entity of an arena has."""

    name: str = "arena"
    tables: tuple[Table, ...] = (PLANTED_TABLE,)
    listeners: tuple[Listener, ...] = ()


ARENA_FEATURE = ArenaFeature()


@dataclass(slots=True)
class Being:
    """One entity of the arena: how to reach it, and what it should hold."""

    entity: EntityId
    client: ExposedClient
    driver: EntityDriver
    bare: BoundDriver
    indexes: EntityIndexes
    journal: Journal
    mark: str
    community: str = ""
    saga: str = ""
    nodes: dict[str, Node] = field(default_factory=dict[str, Node])
    facts: dict[str, Fact] = field(default_factory=dict[str, Fact])
    episodes: dict[str, Episode] = field(default_factory=dict[str, Episode])
    turns: list[str] = field(default_factory=list[str])
    rows: list[str] = field(default_factory=list[str])
    made: int = 0
    planted: int = 0

    @property
    def name(self) -> str:
        return self.entity.name

    @property
    def shared(self) -> bool:
        return self.driver.store == "neo4j"

    def mint(self, noun: str) -> str:
        """Return a fresh id, made from the group as PPS makes them."""
        self.made += 1
        return stable_id(self.entity.group, "arena", noun, str(self.made))


def tables_of(being: Being) -> FeatureTables:
    """Return an entity's tables of the arena's feature."""
    return being.journal.feature_tables(ARENA_FEATURE, lambda: str)


class Arena:
    """Some beings on one store, side by side."""

    def __init__(self, beings: Sequence[Being], watch: Watch, counters: IsolationCounters) -> None:
        self.beings = list(beings)
        self.watch = watch
        self.counters = counters

    @classmethod
    @asynccontextmanager
    async def open(
        cls,
        folder: Path,
        store: ArenaStore,
        *,
        count: int = 3,
        client: type[ExposedClient] = ExposedClient,
        extractor: ExtractorModel | None = None,
    ) -> AsyncGenerator[Arena]:
        """Make entities in a folder, plant in each, and leave nothing behind.

        Args:
            folder: An empty folder; each entity gets one in it.
            store: Where their journals and graphs are.
            count: 2 to 5 entities.
            client: The class of their clients.
            extractor: Their language model, for those who have one at hand.
        """
        watch = Watch()
        counters = IsolationCounters(logging.DEBUG)
        async with AsyncExitStack() as stack:
            threads = index_threads()
            stack.callback(threads.shutdown)
            beings: list[Being] = []
            for name in ENTITY_NAMES[:count]:
                entity = EntityId(name, new_group())
                home = folder / name
                await asyncio.to_thread(home.mkdir, parents=True)
                if store.erase is not None:
                    stack.push_async_callback(store.erase, entity.group)
                journal = await store.open_journal(home / "memory.db", entity.group)
                stack.push_async_callback(journal.close)
                indexes = await EntityIndexes.open(
                    home,
                    group=entity.group,
                    fingerprint=HashEmbedder(DIMENSION).fingerprint,
                    executor=threads,
                )
                stack.push_async_callback(indexes.close)
                driver = await store.open_driver(entity, journal, indexes)
                stack.push_async_callback(driver.close)
                models = Models(HashEmbedder(DIMENSION), OverlapReranker(), extractor)
                opened = await client.open(entity, driver, indexes, models, counters)
                stack.push_async_callback(opened.close)
                stack.push_async_callback(opened.clear)
                bare = bound_driver(entity, driver, IsolationCounters(logging.DEBUG))
                mark = f"kanarie{secrets.token_hex(6)}"
                watch.mark(name, mark, entity.group)
                beings.append(Being(entity, opened, driver, bare, indexes, journal, mark))
            arena = cls(beings, watch, counters)
            for being in beings:
                await arena.plant(being)
            yield arena

    async def plant(self, being: Being) -> None:
        """Give an entity what all have, and something that only it has."""
        nodes = {name: self._node(being, name, "") for name in NAMES}
        nodes["secret"] = self._node(being, f"Secret of {being.mark}", being.mark)
        facts = [
            self._fact(being, nodes[s], relation, nodes[o], text) for s, relation, o, text in FACTS
        ]
        facts.append(
            self._fact(being, nodes["Ana"], "KNOWS", nodes["secret"], f"Ana knows {being.mark}.")
        )
        episodes = [
            self.episode(being, text)
            for text in ("Ana came into the kitchen.", f"The word is {being.mark}.")
        ]
        await self.save(being, list(nodes.values()), facts, episodes)
        await being.client.save_mentions(
            [(episode.uuid, nodes["Ana"].uuid) for episode in episodes]
        )
        await self._plant_of_graphiti(being, episodes, nodes["Ana"])
        await self._plant_turns(being)
        await self._plant_row(being)
        being.planted = being.made

    async def save(
        self,
        being: Being,
        nodes: Sequence[Node],
        facts: Sequence[Fact],
        episodes: Sequence[Episode],
    ) -> None:
        """Save and index, and remember what the entity should hold now."""
        embedder = HashEmbedder(DIMENSION)
        names = await asyncio.to_thread(embedder.embed_passages, [node.name for node in nodes])
        texts = await asyncio.to_thread(embedder.embed_passages, [fact.text for fact in facts])
        await being.client.save_nodes(
            nodes, {n.uuid: row for n, row in zip(nodes, names, strict=True)}
        )
        await being.client.save_episodes(episodes)
        await being.client.save_facts(
            facts, {f.uuid: row for f, row in zip(facts, texts, strict=True)}
        )
        await being.indexes.apply(
            [
                *(
                    IndexDoc("node", n.uuid, "nodes", n.summary, n.name, vectors=row.reshape(1, -1))
                    for n, row in zip(nodes, names, strict=True)
                ),
                *(
                    IndexDoc("fact", f.uuid, "facts", f.text, vectors=row.reshape(1, -1))
                    for f, row in zip(facts, texts, strict=True)
                ),
                *(IndexDoc("episode", e.uuid, "episodes", e.content) for e in episodes),
            ]
        )
        being.nodes.update((node.uuid, node) for node in nodes)
        being.facts.update((fact.uuid, fact) for fact in facts)
        being.episodes.update((episode.uuid, episode) for episode in episodes)
        self.watch.own(being.name, *(item.uuid for item in (*nodes, *facts, *episodes)))

    def random_of(self, being: Being, chance: random.Random) -> Being:
        return chance.choice([other for other in self.beings if other is not being])

    def episode(self, being: Being, content: str) -> Episode:
        moment = self._moment(being)
        return Episode(
            being.mint("episode"), "turn", content, moment, moment, description=being.mark
        )

    def _node(self, being: Being, name: str, summary: str) -> Node:
        return Node(
            being.mint("node"),
            name,
            self._moment(being),
            kind="Thing",
            summary=summary,
            tags=("planted",),
            attributes={"planted": being.mark},
        )

    def _fact(self, being: Being, subject: Node, relation: str, target: Node, text: str) -> Fact:
        moment = self._moment(being)
        return Fact(
            being.mint("fact"),
            subject.uuid,
            target.uuid,
            relation,
            text,
            moment,
            valid_at=moment,
            attributes={"planted": being.mark},
        )

    async def _plant_of_graphiti(
        self, being: Being, episodes: Sequence[Episode], member: Node
    ) -> None:
        """Add a community and a saga, which only Graphiti makes; neither may be reached."""
        being.community = being.mint("community")
        being.saga = being.mint("saga")
        group = being.entity.group
        await CommunityNode(
            uuid=being.community,
            name="Kitchen",
            group_id=group,
            summary=being.mark,
            name_embedding=[0.1],
        ).save(being.bare)
        await SagaNode(uuid=being.saga, name="Mornings", group_id=group, created_at=_BEGAN).save(
            being.bare
        )
        joined = [(CommunityEdge, being.community, member.uuid)]
        joined += [(HasEpisodeEdge, being.saga, episode.uuid) for episode in episodes]
        for kind, source, target in joined:
            edge = kind(
                uuid=being.mint("edge"),
                source_node_uuid=source,
                target_node_uuid=target,
                group_id=group,
                created_at=_BEGAN,
            )
            await edge.save(being.bare)
        self.watch.own(being.name, being.community, being.saga)

    async def _plant_turns(self, being: Being) -> None:
        for text in ("Ana came into the kitchen.", f"The word is {being.mark}."):
            appended = await being.journal.append(
                TurnDraft(text, source_ref=secrets.token_hex(4)), JobPayload()
            )
            being.turns.append(appended.turn.uuid)
            self.watch.own(being.name, appended.turn.uuid)

    async def _plant_row(self, being: Being) -> None:
        """Give it a row of a feature that holds its mark and is about its first turn."""
        await being.journal.features.prepare(
            being.entity.group, ARENA_FEATURE.name, ARENA_FEATURE.tables
        )
        values = {"text": f"The word is {being.mark}.", "number": 1}
        row = await tables_of(being).insert(PLANTED_TABLE.name, values, sources=being.turns[:1])
        being.rows.append(row)
        self.watch.own(being.name, row)

    def _moment(self, being: Being) -> datetime:
        return _BEGAN + timedelta(minutes=being.made)
