"""What other memories kept: mem0's memories and relations, and a Graphiti graph as JSON."""

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
    """Tell whether a JSON object holds memories of mem0: what ``get_all`` returns, its export, OpenMemory's backup."""
    return any(map(is_memory, entry.entries("results", "memories")[:1])) or (
        entry.has("relations") and (entry.has("results") or entry.has("memories"))
    )


def read_mem0(source: Source) -> Iterator[Read]:
    """Yield a turn for each memory, and one with its fact for each relation."""
    for one in objects(source):
        if isinstance(one, Unreadable):
            yield one
        elif is_mem0(one.entry):
            named = {each.text("id"): each.get("name") for each in one.entry.entries("categories")}
            for number, memory in enumerate(one.entry.entries("results", "memories")):
                yield from _memory(memory, f"{source.name} memory {number}", named)
            for number, relation in enumerate(one.entry.entries("relations")):
                yield from _relation(relation, f"{source.name} relation {number}")
        else:
            yield from _memory(one.entry, one.where, {})


def _memory(found: JSONEntry, where: str, categories: Mapping[str, JSON]) -> Iterator[Read]:
    if found.text("state") == "deleted" or found.get("deleted_at"):
        yield Passed("memories that were deleted in mem0")
        return
    texts = (*(found.text(name) for name in _TEXTS), found.entry("metadata").text("data"))
    text = next((text for text in texts if text.strip()), "")
    if not text:
        yield Unreadable(where, f"has no text: none of {', '.join(_TEXTS)}")
        return
    named = [
        *found.values("categories"),
        *(categories.get(string(one)) for one in found.values("category_ids")),
    ]
    # A memory that mem0 rewrote keeps its id there; here its new words are a turn of their own.
    ref = short(f"{found.text('id') or 'memory'}:{content_hash(text)[:12]}")
    session, actor = (
        short(found.text("run_id", "user_id") or "mem0"),
        short(found.text("agent_id", "actor_id")),
    )
    marks, at = tags(map(string, named)), found.moment("updated_at", "created_at")
    common = RememberOptions(
        source="mem0", kind="memory", source_ref=ref, session=session, actor=actor
    )
    yield from pieces(text, {**common, "tags": marks, "occurred_at": at}, where)


def _relation(found: JSONEntry, where: str) -> Iterator[Read]:
    subject, target = found.text("source"), found.text("target", "destination")
    relation = found.text("relationship", "relation")
    if not (subject.strip() and relation.strip() and target.strip()):
        yield Unreadable(where, "has no source, relationship and target")
        return
    text = f"{subject} {relation.replace('_', ' ')} {target}"
    name = label(relation, "RELATES_TO").upper()
    fact = FactDraft(short(subject, 500), name, short(target, 500), text=text[: whole(text, 4_000)])
    common = RememberOptions(
        source="mem0", session="mem0", kind="memory", extraction="given", facts=[fact]
    )
    yield Item(text, {**common, "source_ref": f"relation:{content_hash(text)[:32]}"}, where)


def is_graphiti(entry: JSONEntry) -> bool:
    return (
        any(one.has("source_node_uuid") for one in entry.entries(*_EDGES)[:1])
        or any(one.has("uuid", "name") for one in entry.entries(*_NODES)[:1])
        or any(one.has("uuid", "content") for one in entry.entries(*_EPISODES)[:1])
    )


def read_graphiti(source: Source) -> Iterator[Read]:
    """Yield a turn for each episode with the facts it supports, then for each edge and node that no episode brings.

    Ids and groups of the other graph are not taken over: nothing is made under an id from outside.
    """
    for one in objects(source):
        if isinstance(one, Unreadable):
            yield one
            continue
        graph = _Graph(source.name)
        yield from graph.nodes_of(one.entry.entries(*_NODES))
        yield from graph.edges_of(one.entry.entries(*_EDGES))
        yield from graph.turns_of(one.entry.entries(*_EPISODES))
        yield from graph.rest()


@dataclass(slots=True)
class _Edge:
    draft: FactDraft
    ends: tuple[str, str]
    uuid: str
    made: JSON


@dataclass(slots=True)
class _Graph:
    """What is known of the graph while it is read; a node travels with the first turn that needs it."""

    file: str
    nodes: dict[str, NodeDraft] = field(default_factory=dict[str, NodeDraft])
    made: dict[str, JSON] = field(default_factory=dict[str, JSON])
    by_episode: dict[str, list[_Edge]] = field(default_factory=lambda: defaultdict(list))
    waiting: dict[str, _Edge] = field(default_factory=dict[str, _Edge])
    alone: dict[str, None] = field(default_factory=dict[str, None])

    def nodes_of(self, listed: list[JSONEntry]) -> Iterator[Read]:
        names: set[str] = set()
        for number, found in enumerate(listed):
            uuid, name = found.text("uuid"), found.text("name").strip()
            if not (uuid and name):
                yield Unreadable(f"{self.file} node {number}", "has no uuid and name")
                continue
            if fold(name) in names:
                yield Passed("nodes of a name that another has: the two become one")
            names.add(fold(name))
            self.nodes[uuid] = _node(found, name)
            self.made[uuid] = found.get("created_at")
            self.alone[uuid] = None

    def edges_of(self, listed: list[JSONEntry]) -> Iterator[Read]:
        for number, found in enumerate(listed):
            ends = (found.text("source_node_uuid"), found.text("target_node_uuid"))
            if not all(end in self.nodes for end in ends):
                yield Unreadable(
                    f"{self.file} edge {number}", "joins a node that is not in the file"
                )
                continue
            uuid = found.text("uuid") or f"edge-{number}"
            edge = _Edge(
                _fact(found, *(self.nodes[end].name for end in ends)),
                ends,
                uuid,
                found.get("created_at"),
            )
            self.waiting[uuid] = edge
            for episode in found.values("episodes"):
                self.by_episode[string(episode)].append(edge)

    def turns_of(self, listed: list[JSONEntry]) -> Iterator[Read]:
        for number, found in enumerate(listed):
            uuid, content = found.text("uuid"), found.text("content")
            where = f"{self.file} episode {number}"
            if not (uuid and content.strip()):
                yield Unreadable(where, "has no uuid and content")
                continue
            session, at = (
                short(found.text("source_description") or "graphiti"),
                found.moment("valid_at", "created_at"),
            )
            options = RememberOptions(source="graphiti", session=session, occurred_at=at)
            options["source_ref"] = f"episode:{short(uuid, 100)}"
            yield from self._told(content, options, self.by_episode.get(uuid, []), where)

    def rest(self) -> Iterator[Read]:
        common = RememberOptions(source="graphiti", session="graphiti", extraction="given")
        for uuid, edge in list(self.waiting.items()):
            ref, at = f"edge:{short(uuid, 100)}", edge.draft.valid_at or moment(edge.made)
            told = common | RememberOptions(source_ref=ref, kind="fact", occurred_at=at)
            yield from self._told(edge.draft.text, told, [edge], f"{self.file} edge {uuid}")
        for uuid in self.alone:
            node, ref, at = self.nodes[uuid], f"node:{short(uuid, 100)}", moment(self.made[uuid])
            told = common | RememberOptions(
                source_ref=ref, kind="node", nodes=[node], occurred_at=at
            )
            text = f"{node.name}: {node.summary}" if node.summary else node.name
            yield from pieces(text, told, f"{self.file} node {uuid}")

    def _told(
        self, content: str, options: RememberOptions, edges: list[_Edge], where: str
    ) -> Iterator[Read]:
        """Yield a turn with its facts; more of them than one turn may have follow in turns of their own."""
        taken = edges[: bounds.MAX_NODES // 2]
        ends = dict.fromkeys(end for edge in taken for end in edge.ends if end in self.alone)
        for edge in taken:
            self.waiting.pop(edge.uuid, None)
        for end in ends:
            self.alone.pop(end)
        nodes, facts = [self.nodes[end] for end in ends], [edge.draft for edge in taken]
        yield from pieces(
            content, options | RememberOptions(nodes=nodes, facts=facts, extraction="given"), where
        )


def _node(found: JSONEntry, name: str) -> NodeDraft:
    kinds = [string(one) for one in found.values("labels") if one not in RESERVED_KINDS]
    given = found.entry("attributes").fields
    attributes = {
        key: value
        for key, value in given.items()
        if key not in _RESERVED and not key.startswith("_")
    }
    draft = NodeDraft(
        short(name, bounds.MAX_NAME),
        kind(next(iter(kinds), "Thing"), "Thing"),
        short(found.text("summary"), bounds.MAX_TEXT),
        attributes=attributes,
    )
    try:
        bounds.check_attributes("attributes", attributes)
    except InvalidRequest:
        return replace(draft, attributes={})
    return draft


def _date_or_instant(moment: datetime | None) -> datetime | None:
    return None if moment is None else with_precision(moment)


def _fact(found: JSONEntry, subject: str, target: str) -> FactDraft:
    # Graphiti's own pipeline writes a date that it read as midnight in UTC.
    since = _date_or_instant(found.moment("valid_at"))
    until = _date_or_instant(found.moment("invalid_at", "expired_at"))
    if since and until and until < since:
        until = since
    relation = label(found.text("name"), "RELATES_TO")
    text = found.text("fact").strip() or f"{subject} {relation.replace('_', ' ').lower()} {target}"
    return FactDraft(
        subject,
        relation,
        target,
        text=short(text, bounds.MAX_TEXT),
        valid_at=since,
        invalid_at=until,
    )
