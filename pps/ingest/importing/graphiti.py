"""A Graphiti graph as JSON: lists of nodes, edges and episodes as their models dump them.

Episodes become turns with the facts they support; an edge without an episode, and a node without an edge, become
turns of their own. Ids and groups of the other graph are not taken over: nothing is made under an id from outside.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from pps.core import bounds
from pps.core.errors import InvalidRequest
from pps.core.text import fold
from pps.core.values import JSON, RESERVED_KINDS, FactDraft, NodeDraft
from pps.ingest.drafts import RememberOptions
from pps.ingest.importing.items import (
    Passed,
    Read,
    Unreadable,
    kind,
    label,
    mapping,
    moment,
    pieces,
    sequence,
    short,
    string,
)
from pps.ingest.importing.sources import Source
from pps.ingest.importing.streams import document

SOURCE = "graphiti"
_NODES = ("nodes", "entities", "entity_nodes")
_EDGES = ("edges", "facts", "entity_edges")
_EPISODES = ("episodes", "episodic_nodes", "episode_nodes")
_RESERVED = ("name_embedding", "uuid", "group_id", "labels", "pps")


def is_export(value: Mapping[str, JSON]) -> bool:
    """Tell whether a JSON object holds a graph of this format."""
    edges = _first(value, _EDGES)
    nodes = _first(value, _NODES)
    if any("source_node_uuid" in mapping(one) for one in edges[:1]):
        return True
    return any({"uuid", "name"} <= mapping(one).keys() for one in nodes[:1]) or any(
        {"uuid", "content"} <= mapping(one).keys() for one in _first(value, _EPISODES)[:1]
    )


def read(source: Source) -> Iterator[Read]:
    """Yield a turn for each episode, then for each edge and node that no episode brings."""
    whole = document(source)
    if isinstance(whole, Unreadable):
        yield whole
        return
    graph = _Graph(source.name)
    value = mapping(whole.value)
    yield from graph.nodes_of(_first(value, _NODES))
    yield from graph.edges_of(_first(value, _EDGES))
    yield from graph.turns_of(_first(value, _EPISODES))
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
    edges: dict[str, _Edge] = field(default_factory=dict[str, _Edge])
    waiting: dict[str, None] = field(default_factory=dict[str, None])
    alone: dict[str, None] = field(default_factory=dict[str, None])

    def nodes_of(self, listed: Sequence[JSON]) -> Iterator[Read]:
        names: set[str] = set()
        for number, one in enumerate(listed):
            found = mapping(one)
            uuid, name = string(found.get("uuid")), string(found.get("name")).strip()
            if not (uuid and name):
                yield Unreadable(f"{self.file} node {number}", "has no uuid and name")
                continue
            if fold(name) in names:
                yield Passed("nodes of a name that another has: the two become one")
            names.add(fold(name))
            self.nodes[uuid] = _node(found, name)
            self.made[uuid] = found.get("created_at")
            self.alone[uuid] = None

    def edges_of(self, listed: Sequence[JSON]) -> Iterator[Read]:
        for number, one in enumerate(listed):
            found = mapping(one)
            ends = (string(found.get("source_node_uuid")), string(found.get("target_node_uuid")))
            if not all(end in self.nodes for end in ends):
                yield Unreadable(f"{self.file} edge {number}", "joins a node that is not in the file")
                continue
            uuid = string(found.get("uuid")) or f"edge-{number}"
            edge = _Edge(_fact(found, *(self.nodes[end].name for end in ends)), ends, uuid, found.get("created_at"))
            self.edges[uuid] = edge
            self.waiting[uuid] = None
            for episode in sequence(found.get("episodes")):
                self.by_episode[string(episode)].append(edge)

    def turns_of(self, listed: Sequence[JSON]) -> Iterator[Read]:
        for number, one in enumerate(listed):
            found = mapping(one)
            uuid, content = string(found.get("uuid")), string(found.get("content"))
            where = f"{self.file} episode {number}"
            if not (uuid and content.strip()):
                yield Unreadable(where, "has no uuid and content")
                continue
            options: RememberOptions = {
                "source": SOURCE,
                "source_ref": f"episode:{short(uuid, 100)}",
                "session": short(string(found.get("source_description")) or SOURCE, 200),
                "occurred_at": moment(found.get("valid_at")) or moment(found.get("created_at")),
            }
            yield from self._told(content, options, self.by_episode.get(uuid, []), where)

    def rest(self) -> Iterator[Read]:
        for uuid in list(self.waiting):
            edge = self.edges[uuid]
            options: RememberOptions = {
                "source": SOURCE,
                "source_ref": f"edge:{short(uuid, 100)}",
                "session": SOURCE,
                "kind": "fact",
                "occurred_at": edge.draft.valid_at or moment(edge.made),
            }
            yield from self._told(edge.draft.text, options, [edge], f"{self.file} edge {uuid}")
        for uuid in list(self.alone):
            node = self.nodes[uuid]
            told: RememberOptions = {
                "source": SOURCE,
                "source_ref": f"node:{short(uuid, 100)}",
                "session": SOURCE,
                "kind": "node",
                "nodes": [node],
                "extraction": "given",
                "occurred_at": moment(self.made[uuid]),
            }
            text = f"{node.name}: {node.summary}" if node.summary else node.name
            yield from pieces(text, told, f"{self.file} node {uuid}")

    def _told(self, content: str, options: RememberOptions, edges: list[_Edge], where: str) -> Iterator[Read]:
        """Yield a turn with its facts; more of them than one turn may have follow in turns of their own."""
        taken = edges[: bounds.MAX_NODES // 2]
        ends = [end for edge in taken for end in edge.ends if end in self.alone]
        for edge in taken:
            self.waiting.pop(edge.uuid, None)
        nodes = [self.nodes[end] for end in dict.fromkeys(ends)]
        for end in ends:
            self.alone.pop(end, None)
        given: RememberOptions = {**options, "nodes": nodes, "facts": [edge.draft for edge in taken]}
        yield from pieces(content, {**given, "extraction": "given"}, where)


def _first(value: Mapping[str, JSON], names: Sequence[str]) -> Sequence[JSON]:
    return next((found for name in names if (found := sequence(value.get(name)))), ())


def _node(found: Mapping[str, JSON], name: str) -> NodeDraft:
    kinds = [string(one) for one in sequence(found.get("labels")) if one not in RESERVED_KINDS]
    attributes = {
        key: value
        for key, value in mapping(found.get("attributes")).items()
        if key not in _RESERVED and not key.startswith("_")
    }
    draft = NodeDraft(
        short(name, bounds.MAX_NAME),
        kind(next(iter(kinds), "Thing"), "Thing"),
        short(string(found.get("summary")), bounds.MAX_TEXT),
        attributes=attributes,
    )
    try:
        bounds.check_attributes("attributes", attributes)
    except InvalidRequest:
        return replace(draft, attributes={})
    return draft


def _fact(found: Mapping[str, JSON], subject: str, target: str) -> FactDraft:
    since, until = moment(found.get("valid_at")), moment(found.get("invalid_at")) or moment(found.get("expired_at"))
    if since and until and until < since:
        until = since
    relation = label(string(found.get("name")), "RELATES_TO")
    text = string(found.get("fact")).strip() or f"{subject} {relation.replace('_', ' ').lower()} {target}"
    return FactDraft(subject, relation, target, text=short(text, bounds.MAX_TEXT), valid_at=since, invalid_at=until)
