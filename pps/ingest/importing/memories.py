"""Memories of other systems: mem0's memories and relations, and a Graphiti graph as JSON."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime

from pps.core import bounds
from pps.core.errors import InvalidRequest
from pps.core.text import content_hash, fold
from pps.core.time import with_precision
from pps.core.values import JSON, RESERVED_KINDS, FactDraft, NodeDraft
from pps.ingest.drafts import RememberOptions
from pps.ingest.importing.items import (
    Item,
    Passed,
    Read,
    Unreadable,
    kind,
    label,
    pieces,
    short,
    tags,
)
from pps.ingest.importing.source_files import Source
from pps.ingest.importing.streams import objects
from pps.ingest.lenient_json import JSONEntry, moment, string
from pps.ingest.redact import whole

_TEXTS = ("memory", "content", "data", "text")
_NODES = ("nodes", "entities", "entity_nodes")
_EDGES = ("edges", "facts", "entity_edges")
_EPISODES = ("episodes", "episodic_nodes", "episode_nodes")
_RESERVED = ("name_embedding", "uuid", "group_id", "labels", "pps")


def is_memory(entry: JSONEntry) -> bool:
    if entry.has("memory", "id"):
        return isinstance(entry.get("memory"), str)
    return entry.has("id", "content", "created_at") and any(
        map(entry.has, ("state", "categories", "app_id"))
    )


def is_mem0(entry: JSONEntry) -> bool:
    """Tell whether an object holds memories of mem0 in any of its forms, or of OpenMemory."""
    return any(map(is_memory, entry.entries("results", "memories")[:1])) or (
        entry.has("relations") and (entry.has("results") or entry.has("memories"))
    )


def read_mem0(source: Source) -> Iterator[Read]:
    """Yield a turn for each memory, and one with its fact for each relation."""
    for item in objects(source):
        if isinstance(item, Unreadable):
            yield item
            continue
        entry = item.entry
        if not is_mem0(entry):
            yield from _memory(entry, item.where, {})
            continue
        categories = {
            category.text("id"): category.get("name") for category in entry.entries("categories")
        }
        for number, memory in enumerate(entry.entries("results", "memories")):
            yield from _memory(memory, f"{source.name} memory {number}", categories)
        for number, relation in enumerate(entry.entries("relations")):
            yield from _relation(relation, f"{source.name} relation {number}")


def _memory(memory: JSONEntry, where: str, categories: Mapping[str, JSON]) -> Iterator[Read]:
    """Yield a memory as a turn; ``categories`` are names by id."""
    if memory.text("state") == "deleted" or memory.get("deleted_at"):
        yield Passed("memories that were deleted in mem0")
        return
    texts = (*(memory.text(name) for name in _TEXTS), memory.entry("metadata").text("data"))
    text = next((text for text in texts if text.strip()), "")
    if not text:
        yield Unreadable(where, f"has no text: none of {', '.join(_TEXTS)}")
        return
    of_ids = [categories.get(string(id_)) for id_ in memory.values("category_ids")]
    names = [*memory.values("categories"), *of_ids]
    options = RememberOptions(
        source="mem0",
        kind="memory",
        # A memory that mem0 rewrote keeps its id there; here its new text is a turn of its own.
        source_ref=short(f"{memory.text('id') or 'memory'}:{content_hash(text)[:12]}"),
        session=short(memory.text("run_id", "user_id") or "mem0"),
        actor=short(memory.text("agent_id", "actor_id")),
        tags=tags(map(string, names)),
        occurred_at=memory.moment("updated_at", "created_at"),
    )
    yield from pieces(text, options, where)


def _relation(entry: JSONEntry, where: str) -> Iterator[Read]:
    subject = entry.text("source")
    target = entry.text("target", "destination")
    relation = entry.text("relationship", "relation")
    if not (subject.strip() and relation.strip() and target.strip()):
        yield Unreadable(where, "has no source, relationship and target")
        return
    text = f"{subject} {relation.replace('_', ' ')} {target}"
    name = label(relation, "RELATES_TO").upper()
    fact = FactDraft(short(subject, 500), name, short(target, 500), text=text[: whole(text, 4_000)])
    options = RememberOptions(
        source="mem0",
        session="mem0",
        kind="memory",
        extraction="given",
        facts=[fact],
        source_ref=f"relation:{content_hash(text)[:32]}",
    )
    yield Item(text, options, where)


def is_graphiti(entry: JSONEntry) -> bool:
    return (
        any(edge.has("source_node_uuid") for edge in entry.entries(*_EDGES)[:1])
        or any(node.has("uuid", "name") for node in entry.entries(*_NODES)[:1])
        or any(episode.has("uuid", "content") for episode in entry.entries(*_EPISODES)[:1])
    )


def read_graphiti(source: Source) -> Iterator[Read]:
    """Yield a turn for each episode with its facts, then one for each remaining edge and node.

    Ids and groups of the other graph are not taken over: nothing is stored under a foreign id.
    """
    for item in objects(source):
        if isinstance(item, Unreadable):
            yield item
            continue
        graph = _Graph(source.name)
        yield from graph.add_nodes(item.entry.entries(*_NODES))
        yield from graph.add_edges(item.entry.entries(*_EDGES))
        yield from graph.read_episodes(item.entry.entries(*_EPISODES))
        yield from graph.read_rest()


@dataclass(slots=True)
class _Edge:
    draft: FactDraft
    ends: tuple[str, str]
    uuid: str
    created_at: JSON


@dataclass(slots=True)
class _Graph:
    """The graph as far as it is read; a node goes with the first turn that needs it.

    Attributes:
        nodes, created_at: By the node's uuid.
        by_episode: Episode → the edges that it supports.
        waiting: Uuid → edge, of those that no turn has had yet.
        alone: The nodes that no turn has had yet.
    """

    file: str
    nodes: dict[str, NodeDraft] = field(default_factory=dict[str, NodeDraft])
    created_at: dict[str, JSON] = field(default_factory=dict[str, JSON])
    by_episode: dict[str, list[_Edge]] = field(default_factory=lambda: defaultdict(list))
    waiting: dict[str, _Edge] = field(default_factory=dict[str, _Edge])
    alone: dict[str, None] = field(default_factory=dict[str, None])

    def add_nodes(self, entries: list[JSONEntry]) -> Iterator[Read]:
        names: set[str] = set()
        for number, entry in enumerate(entries):
            uuid = entry.text("uuid")
            name = entry.text("name").strip()
            if not (uuid and name):
                yield Unreadable(f"{self.file} node {number}", "has no uuid and name")
                continue
            if fold(name) in names:
                yield Passed("nodes of a name that another has: the two become one")
            names.add(fold(name))
            self.nodes[uuid] = _node_draft(entry, name)
            self.created_at[uuid] = entry.get("created_at")
            self.alone[uuid] = None

    def add_edges(self, entries: list[JSONEntry]) -> Iterator[Read]:
        for number, entry in enumerate(entries):
            ends = (entry.text("source_node_uuid"), entry.text("target_node_uuid"))
            if not all(end in self.nodes for end in ends):
                yield Unreadable(
                    f"{self.file} edge {number}", "joins a node that is not in the file"
                )
                continue
            uuid = entry.text("uuid") or f"edge-{number}"
            draft = _fact_draft(entry, self.nodes[ends[0]].name, self.nodes[ends[1]].name)
            edge = _Edge(draft, ends, uuid, entry.get("created_at"))
            self.waiting[uuid] = edge
            for episode in entry.values("episodes"):
                self.by_episode[string(episode)].append(edge)

    def read_episodes(self, entries: list[JSONEntry]) -> Iterator[Read]:
        """Yield a turn for each episode, with the edges that it supports."""
        for number, entry in enumerate(entries):
            uuid = entry.text("uuid")
            content = entry.text("content")
            where = f"{self.file} episode {number}"
            if not (uuid and content.strip()):
                yield Unreadable(where, "has no uuid and content")
                continue
            options = RememberOptions(
                source="graphiti",
                session=short(entry.text("source_description") or "graphiti"),
                occurred_at=entry.moment("valid_at", "created_at"),
                source_ref=f"episode:{short(uuid, 100)}",
            )
            yield from self._turn(content, options, self.by_episode.get(uuid, []), where)

    def read_rest(self) -> Iterator[Read]:
        """Yield a turn for each edge, then for each node, that no episode has brought."""
        common = RememberOptions(source="graphiti", session="graphiti", extraction="given")
        for uuid, edge in list(self.waiting.items()):
            options = common | RememberOptions(
                source_ref=f"edge:{short(uuid, 100)}",
                kind="fact",
                occurred_at=edge.draft.valid_at or moment(edge.created_at),
            )
            yield from self._turn(edge.draft.text, options, [edge], f"{self.file} edge {uuid}")
        for uuid in self.alone:
            node = self.nodes[uuid]
            options = common | RememberOptions(
                source_ref=f"node:{short(uuid, 100)}",
                kind="node",
                nodes=[node],
                occurred_at=moment(self.created_at[uuid]),
            )
            text = f"{node.name}: {node.summary}" if node.summary else node.name
            yield from pieces(text, options, f"{self.file} node {uuid}")

    def _turn(
        self, content: str, options: RememberOptions, edges: list[_Edge], where: str
    ) -> Iterator[Read]:
        """Yield a turn with its facts; facts beyond a turn's bound follow in further turns."""
        taken = edges[: bounds.MAX_NODES // 2]
        ends = dict.fromkeys(end for edge in taken for end in edge.ends if end in self.alone)
        for edge in taken:
            self.waiting.pop(edge.uuid, None)
        for end in ends:
            self.alone.pop(end)
        with_graph = options | RememberOptions(
            nodes=[self.nodes[end] for end in ends],
            facts=[edge.draft for edge in taken],
            extraction="given",
        )
        yield from pieces(content, with_graph, where)


def _node_draft(entry: JSONEntry, name: str) -> NodeDraft:
    labels = [string(label_) for label_ in entry.values("labels") if label_ not in RESERVED_KINDS]
    attributes = {
        key: value
        for key, value in entry.entry("attributes").fields.items()
        if key not in _RESERVED and not key.startswith("_")
    }
    draft = NodeDraft(
        short(name, bounds.MAX_NAME),
        kind(labels[0] if labels else "Thing", "Thing"),
        short(entry.text("summary"), bounds.MAX_TEXT),
        attributes=attributes,
    )
    try:
        bounds.check_attributes("attributes", attributes)
    except InvalidRequest:
        return replace(draft, attributes={})
    return draft


def _fact_draft(entry: JSONEntry, subject: str, target: str) -> FactDraft:
    # Graphiti's own pipeline writes a date that it read as midnight in UTC.
    since = _date_or_instant(entry.moment("valid_at"))
    until = _date_or_instant(entry.moment("invalid_at", "expired_at"))
    if since and until and until < since:
        until = since
    relation = label(entry.text("name"), "RELATES_TO")
    text = entry.text("fact").strip() or f"{subject} {relation.replace('_', ' ').lower()} {target}"
    return FactDraft(
        subject,
        relation,
        target,
        text=short(text, bounds.MAX_TEXT),
        valid_at=since,
        invalid_at=until,
    )


def _date_or_instant(moment: datetime | None) -> datetime | None:
    return None if moment is None else with_precision(moment)
