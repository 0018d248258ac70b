"""What statements Graphiti sends, by call site, way, kind and names of parameters: read off a recording driver.

Every public function and method of Graphiti that takes a driver is found by looking, so that one which an upgrade
brings is found too. ``RECORD_GRAPHITI=1 pytest tests/isolation/test_recorder.py`` writes the file anew; read the
difference against ``docs/isolation.md`` and the guard before committing it.
"""

from __future__ import annotations

import contextlib
import importlib.metadata
import inspect
from collections.abc import AsyncGenerator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import Any

from graphiti_core import Graphiti, edges, nodes
from graphiti_core.driver.driver import GraphDriver
from graphiti_core.driver.graph_operations.graph_operations import GraphOperationsInterface
from graphiti_core.driver.query_executor import Transaction
from graphiti_core.driver.search_interface.search_interface import SearchInterface
from graphiti_core.edges import (
    CommunityEdge,
    EntityEdge,
    EpisodicEdge,
    HasEpisodeEdge,
    NextEpisodeEdge,
)
from graphiti_core.nodes import CommunityNode, EntityNode, EpisodeType, EpisodicNode, SagaNode
from graphiti_core.search import search_utils
from graphiti_core.search.search_config import SearchConfig
from graphiti_core.search.search_config_recipes import COMBINED_HYBRID_SEARCH_MMR
from graphiti_core.search.search_filters import SearchFilters
from graphiti_core.utils import bulk_utils
from graphiti_core.utils.bulk_utils import RawEpisode
from graphiti_core.utils.maintenance import (
    community_operations,
    edge_operations,
    graph_data_operations,
)

from pps.core.ids import new_group, stable_id
from pps.isolation.graphiti_models import GraphitiEmbedder, GraphitiReranker
from pps.isolation.guarded_values import RefusedValue, names_of
from pps.models.hash import HashEmbedder

WHEN = datetime(2026, 4, 1, tzinfo=UTC)
VECTOR = [0.1] * 16
_PACKAGE = "graphiti_core"
_MODULES = (search_utils, graph_data_operations, community_operations, edge_operations, bulk_utils)
_METHODS = (
    *(
        "add_episode",
        "add_episode_bulk",
        "add_triplet",
        "remove_episode",
        "get_nodes_and_edges_by_episode",
    ),
    *(
        "summarize_saga",
        "build_communities",
        "retrieve_episodes",
        "search_",
        "_saga_get_previous_episode_uuid",
    ),
    *("_get_or_create_saga", "build_indices_and_constraints"),
)

Entry = tuple[str, str, str, tuple[str, ...]]


class Recording(GraphDriver):
    """Runs what it is given on a real driver and remembers its shape. What names nothing is not run."""

    def __init__(self, inner: Any, group: str) -> None:
        self.provider = inner.provider
        self._database = group
        self.inner = inner
        self.group = group
        self.entries: set[Entry] = set()

    def note(self, way: str, parameters: Mapping[str, Any]) -> bool:
        try:
            named = names_of(self.group, parameters)
            kind = "group" if named.bound else "id" if named.ids else "neither"
        except RefusedValue as refused:
            kind = f"refused ({refused.kind})"
        self.entries.add((_site(), way, kind, tuple(sorted(_names(parameters)))))
        return kind in ("group", "id")

    async def execute_query(self, cypher_query_: str, **kwargs: Any) -> Any:
        if not self.note(
            "execute_query", {key: value for key, value in kwargs.items() if not key.endswith("_")}
        ):
            return [], None, None
        return await self.inner.execute_query(cypher_query_, **kwargs)

    def session(self, database: str | None = None) -> Any:
        return _Session(self, self.inner.session())

    @asynccontextmanager
    async def transaction(self) -> AsyncGenerator[Transaction]:
        async with self.inner.transaction() as inner:
            yield _Ways(self, inner, "transaction")  # type: ignore[misc]

    async def close(self) -> None:
        return None

    def clone(self, database: str) -> GraphDriver:
        return self

    async def build_indices_and_constraints(self, delete_existing: bool = False) -> None:
        return None

    def delete_all_indexes(self) -> Any:
        raise NotImplementedError


class _Ways:
    def __init__(self, recording: Recording, inner: Any, way: str) -> None:
        self.recording, self.inner, self.way = recording, inner, way

    async def run(self, query: str, **kwargs: Any) -> Any:
        return (
            await self.inner.run(query, **kwargs) if self.recording.note(self.way, kwargs) else []
        )


class _Session(_Ways):
    def __init__(self, recording: Recording, inner: Any) -> None:
        super().__init__(recording, inner, "session.run")

    async def __aenter__(self) -> _Session:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def execute_write(self, func: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        async def work(inner: Any, *more: Any, **named: Any) -> Any:
            return await func(_Ways(self.recording, inner, "execute_write"), *more, **named)

        return await self.inner.execute_write(work, *args, **kwargs)

    async def close(self) -> None:
        await self.inner.close()


def _site() -> str:
    """Return the innermost function of Graphiti on the stack: file and qualified name, no line numbers."""
    frame: Any = inspect.currentframe()
    while frame is not None:
        path = frame.f_code.co_filename.replace("\\", "/")
        if f"/{_PACKAGE}/" in path:
            return f"{path.rpartition(f'/{_PACKAGE}/')[2]}:{frame.f_code.co_qualname}"
        frame = frame.f_back
    return "outside"


def _names(parameters: Mapping[str, Any], head: str = "") -> Iterator[str]:
    for key, value in parameters.items():
        if isinstance(value, Mapping):
            yield from _names(value, f"{head}{key}.")
        elif isinstance(value, list) and value and isinstance(value[0], Mapping):
            yield from {name for item in value for name in _names(item, f"{head}{key}[].")}
        else:
            yield f"{head}{key}"


class Sample:
    """One thing of each kind, saved on the recording driver, and arguments by name of parameter."""

    def __init__(self, driver: Recording, llm: Any) -> None:
        group = driver.group

        def uuid(name: str) -> str:
            return stable_id(group, name)

        self.node = EntityNode(
            uuid=uuid("a"), name="Ana", group_id=group, name_embedding=VECTOR, labels=["Person"]
        )
        self.other = EntityNode(
            uuid=uuid("b"), name="Lisbon", group_id=group, name_embedding=VECTOR
        )
        self.episode = _episode(uuid("e"), group)
        self.later = _episode(uuid("f"), group)
        self.community = CommunityNode(
            uuid=uuid("c"), name="Home", group_id=group, name_embedding=VECTOR
        )
        self.saga = SagaNode(uuid=uuid("s"), name="Days", group_id=group)
        ends = {"group_id": group, "created_at": WHEN}
        self.fact = EntityEdge(
            uuid=uuid("ab"), source_node_uuid=self.node.uuid, target_node_uuid=self.other.uuid, name="LIVES_IN",
            fact="Ana lives in Lisbon.", fact_embedding=VECTOR, episodes=[self.episode.uuid], valid_at=WHEN, **ends,
        )  # fmt: skip
        self.mention = EpisodicEdge(
            uuid=uuid("ea"),
            source_node_uuid=self.episode.uuid,
            target_node_uuid=self.node.uuid,
            **ends,
        )
        self.member = CommunityEdge(
            uuid=uuid("ca"),
            source_node_uuid=self.community.uuid,
            target_node_uuid=self.node.uuid,
            **ends,
        )
        self.has = HasEpisodeEdge(
            uuid=uuid("se"),
            source_node_uuid=self.saga.uuid,
            target_node_uuid=self.episode.uuid,
            **ends,
        )
        self.next = NextEpisodeEdge(
            uuid=uuid("ef"),
            source_node_uuid=self.episode.uuid,
            target_node_uuid=self.later.uuid,
            **ends,
        )
        self.embedder = GraphitiEmbedder(HashEmbedder(16))
        self.graphiti = Graphiti(
            graph_driver=driver,
            llm_client=llm,
            embedder=self.embedder,
            cross_encoder=GraphitiReranker(None, 1.0),
        )
        self.driver = driver

    def of(self, owner: str) -> Any:
        """Return the thing that a class is about."""
        by_name = {
            "EntityNode": self.node,
            "EpisodicNode": self.episode,
            "CommunityNode": self.community,
            "SagaNode": self.saga,
            "EntityEdge": self.fact,
            "EpisodicEdge": self.mention,
            "CommunityEdge": self.member,
            "HasEpisodeEdge": self.has,
            "NextEpisodeEdge": self.next,
        }
        return by_name.get(owner, self.node)

    def arguments(self, owner: str) -> dict[str, Any]:
        """Return an argument for each name of parameter that Graphiti uses."""
        thing, group = self.of(owner), self.driver.group
        is_edge = isinstance(thing, edges.Edge)
        return {
            **dict.fromkeys(("driver", "executor"), self.driver),
            "uuid": thing.uuid, "uuids": [thing.uuid], "uuid_cursor": thing.uuid, "limit": 3, "batch_size": 10,
            "group_id": group, "group_ids": [group], "tx": None, "embedder": self.embedder,
            "llm_client": self.graphiti.llm_client, "clients": self.graphiti.clients, "entity": self.node,
            "node": thing if not is_edge else self.node, "edge": thing if is_edge else self.fact,
            "nodes": [thing if isinstance(thing, nodes.Node) else self.node],
            "edges": [thing if is_edge else self.fact], "episodes": [self.episode], "communities": [self.community],
            "entity_node_uuid": self.node.uuid, "node_uuid": self.node.uuid, "episode_uuid": self.later.uuid,
            "source_node_uuid": self.node.uuid, "target_node_uuid": self.other.uuid, "saga_uuid": self.saga.uuid,
            "current_episode_uuid": self.later.uuid, "saga_id": self.saga.uuid, "episode_uuids": [self.episode.uuid],
            "center_node_uuid": self.node.uuid, "bfs_origin_node_uuids": [self.node.uuid, self.episode.uuid],
            "origin_uuids": [self.node.uuid], "bfs_max_depth": 2, "max_depth": 2, "search_vector": VECTOR,
            "query": "Ana", "queries": ["Ana"], "embeddings": [VECTOR], "search_filter": SearchFilters(),
            "reference_time": WHEN, "last_n": 3, "episodic_nodes": [self.episode], "episodic_edges": [self.mention],
            "entity_nodes": [self.node], "entity_edges": [self.fact],
            "duplicates_node_tuples": [(self.node, self.other)], "created_at": WHEN, "saga_name": "Days",
            "config": COMBINED_HYBRID_SEARCH_MMR.model_copy(deep=True), "source_node": self.node,
            "target_node": self.other, "name": "turn", "episode_body": "Ben knows Ana.", "source_description": "",
            "bulk_episodes": [_raw("Ana drinks Tea."), _raw("Ben likes Tea.")], "saga": "Days",
            "names": ["Ana"], "node_uuids": [self.other.uuid],
        }  # fmt: skip


def _episode(uuid: str, group: str) -> EpisodicNode:
    return EpisodicNode(
        uuid=uuid, name="turn", group_id=group, source=EpisodeType.message, source_description="",
        content="Ana lives in Lisbon.", created_at=WHEN, valid_at=WHEN,
    )  # fmt: skip


def _raw(content: str) -> RawEpisode:
    return RawEpisode(
        name="turn",
        content=content,
        source_description="",
        source=EpisodeType.message,
        reference_time=WHEN,
    )


def _targets(sample: Sample) -> Iterator[tuple[str, str, Callable[..., Any]]]:
    """Yield (owner, name, function) of everything public that takes a driver; what deletes comes last."""
    found: list[tuple[str, str, Callable[..., Any]]] = []
    for module in (nodes, edges):
        for owner, kind in inspect.getmembers(module, inspect.isclass):
            if kind.__module__ == module.__name__ and not inspect.isabstract(kind):
                found += [
                    (owner, name, getattr(sample.of(owner), name)) for name in _own_methods(kind)
                ]
    for module in _MODULES:
        found += [
            ("function", name, function)
            for name, function in inspect.getmembers(module, inspect.iscoroutinefunction)
            if function.__module__ == module.__name__ and not name.startswith("_")
        ]
    found += [("Graphiti", name, getattr(sample.graphiti, name)) for name in _METHODS]
    yield from sorted(found, key=lambda one: _deletes(one[1]))


def _deletes(name: str) -> bool:
    return any(word in name for word in ("delete", "clear", "remove"))


def _own_methods(kind: type) -> list[str]:
    return [
        name
        for name, member in inspect.getmembers(kind)
        if not name.startswith("_")
        and inspect.iscoroutinefunction(getattr(member, "__func__", member))
    ]


async def record(inner: Any, llm: Any) -> dict[str, Any]:
    """Call everything and return what was sent, sorted."""
    driver = Recording(inner, new_group())
    sample = Sample(driver, llm)
    everything = (
        *(sample.node, sample.other, sample.episode, sample.later, sample.community, sample.saga),
        *(sample.fact, sample.mention, sample.member, sample.has, sample.next),
    )
    for thing in everything:
        await _quietly(thing.save, {"driver": driver})
    for owner, name, function in _targets(sample):
        for thing in everything if _deletes(name) else ():  # whatever the call before took away
            await _quietly(thing.save, {"driver": driver})
        arguments = sample.arguments(owner)
        if (
            name == "episode_mentions_reranker"
        ):  # a list of ranked lists, under a name that is a list elsewhere
            arguments["node_uuids"] = [arguments["node_uuids"]]
        await _quietly(function, arguments)
        if "group_ids" in inspect.signature(function).parameters and name != "build_communities":
            await _quietly(function, {**arguments, "group_ids": None})
    await inner_clear(driver)
    return {"statements": [list(entry) for entry in sorted(driver.entries)]}


async def inner_clear(driver: Recording) -> None:
    """Delete what was made."""
    await graph_data_operations.clear_data(driver.inner, [driver.group])


async def _quietly(function: Callable[..., Any], arguments: Mapping[str, Any]) -> None:
    """Call with the arguments that it takes. What it says does not matter here: what it sent is noted."""
    parameters = inspect.signature(function).parameters
    given = {name: value for name, value in arguments.items() if name in parameters}
    with contextlib.suppress(Exception):  # broken calls are among those that are recorded
        await function(**given)


def interfaces() -> dict[str, Any]:
    """Return the hooks that Graphiti offers and what they take, and which version says so."""
    return {
        "version": importlib.metadata.version("graphiti-core"),
        "search": _signatures(SearchInterface),
        "operations": _signatures(GraphOperationsInterface),
        "graphiti": {
            name: list(inspect.signature(member).parameters)
            for name, member in inspect.getmembers(Graphiti, inspect.isfunction)
            if not name.startswith("_") or name in _METHODS
        },
        "recipe": sorted(SearchConfig.model_fields),
    }


def _signatures(kind: type) -> dict[str, list[str]]:
    return {
        name: list(inspect.signature(member).parameters)
        for name, member in vars(kind).items()
        if inspect.isfunction(member) and not name.startswith("_")
    }
