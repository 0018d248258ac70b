"""Memories of other programs: mem0, Graphiti, MCP's memory server, claude-mem and others.

The others are mcp-memory-service and Letta.
"""

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
from pps.ingest.hook_events import tool_line
from pps.ingest.importing.items import (
    Item,
    Passed,
    Read,
    Unreadable,
    joined,
    kind,
    label,
    pieces,
    short,
    tags,
)
from pps.ingest.importing.source_files import Source
from pps.ingest.importing.streams import JSONEntry, moment, objects, sequence, string
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


# MCP's memory server


def is_mcp_memory_line(entry: JSONEntry) -> bool:
    return (entry.get("type") == "entity" and entry.has("name", "observations")) or (
        entry.get("type") == "relation" and entry.has("from", "to", "relationType")
    )


def is_mcp_memory(entry: JSONEntry) -> bool:
    """Tell whether an object is the memory server's ``read_graph``, or a line of its file."""
    if is_mcp_memory_line(entry):
        return True
    entities = entry.entries("entities")[:1]
    relations = entry.entries("relations")[:1]
    return any(entity.has("name", "entityType") for entity in entities) or any(
        relation.has("from", "to", "relationType") for relation in relations
    )


def read_mcp_memory(source: Source) -> Iterator[Read]:
    """Yield a turn for each observation, with its entity as a node, and one for each relation."""
    at = source.modified_at()  # the file has no times of its own
    for item in objects(source):
        if isinstance(item, Unreadable):
            yield item
            continue
        entry = item.entry
        if entry.get("type") == "entity":
            yield from _mcp_entity(entry, at, item.where)
        elif entry.get("type") == "relation":
            yield from _mcp_relation(entry, at, item.where)
        elif is_mcp_memory(entry):
            for number, entity in enumerate(entry.entries("entities")):
                yield from _mcp_entity(entity, at, f"{item.where} entity {number}")
            for number, relation in enumerate(entry.entries("relations")):
                yield from _mcp_relation(relation, at, f"{item.where} relation {number}")
        else:
            yield Unreadable(item.where, "is no entity and no relation of MCP's memory server")


def _mcp_entity(entity: JSONEntry, at: datetime, where: str) -> Iterator[Read]:
    name = entity.text("name").strip()
    if not name:
        yield Unreadable(where, "has no name")
        return
    observations: list[str] = []
    for value in entity.values("observations"):
        # Forks of the server keep objects with their times.
        words = string(value) or JSONEntry.of(value).text("content", "text", "observation")
        if words.strip():
            observations.append(words.strip())
    written_kind = entity.text("entityType", "type")
    node = NodeDraft(
        short(name, bounds.MAX_NAME),
        kind(written_kind[:1].upper() + written_kind[1:], "Thing"),
        short(" ".join(observations), bounds.MAX_TEXT),
    )
    common = RememberOptions(
        source="mcp-memory",
        session="mcp-memory",
        kind="memory",
        nodes=[node],
        extraction="given",
        occurred_at=at,
    )
    texts = [f"{name}: {observation}" for observation in observations]
    for text in texts or [f"{name} ({written_kind})" if written_kind else name]:
        reference = f"observation:{content_hash(text)[:32]}"
        yield from pieces(text, {**common, "source_ref": reference}, where)


def _mcp_relation(relation: JSONEntry, at: datetime, where: str) -> Iterator[Read]:
    subject = relation.text("from").strip()
    target = relation.text("to").strip()
    written = relation.text("relationType").strip()
    if not (subject and target and written):
        yield Unreadable(where, "has no from, to and relationType")
        return
    text = f"{subject} {written.replace('_', ' ')} {target}"
    fact = FactDraft(
        short(subject, bounds.MAX_NAME),
        label(written, "RELATES_TO").upper(),
        short(target, bounds.MAX_NAME),
        text=short(text, bounds.MAX_TEXT),
    )
    options = RememberOptions(
        source="mcp-memory",
        session="mcp-memory",
        kind="memory",
        facts=[fact],
        extraction="given",
        source_ref=f"relation:{content_hash(text)[:32]}",
        occurred_at=at,
    )
    yield Item(text, options, where)


# claude-mem


def is_claude_mem(entry: JSONEntry) -> bool:
    return isinstance(entry.get("observations"), list) and (
        entry.has("exportedAt") or entry.has("exported_at") or entry.has("totalObservations")
    )


def read_claude_mem(source: Source) -> Iterator[Read]:
    """Yield the observations, session summaries and prompts of an export of claude-mem."""
    for item in objects(source):
        if isinstance(item, Unreadable):
            yield item
        elif not is_claude_mem(item.entry):
            yield Unreadable(item.where, "is no export of claude-mem: it has no observations")
        else:
            entry = item.entry
            for observation in entry.entries("observations"):
                yield from _observed_by_claude_mem(observation, item.where)
            for summary in entry.entries("summaries"):
                yield from _summary_of_claude_mem(summary, item.where)
            for prompt in entry.entries("prompts"):
                yield from _prompt_of_claude_mem(prompt, item.where)
            for _ in entry.values("sessions"):
                yield Passed("claude-mem's own lines about sessions")


def _common_of_claude_mem(entry: JSONEntry) -> RememberOptions:
    session = entry.text("content_session_id", "memory_session_id", "sdk_session_id")
    project = tags([entry.text("project")])
    options = RememberOptions(
        source="claude-mem",
        session=short(session or entry.text("project") or "claude-mem"),
        tags=[f"project-{name}"[:64] for name in project],
    )
    epoch_ms = entry.get("created_at_epoch")
    at = None
    if isinstance(epoch_ms, (int, float)) and not isinstance(epoch_ms, bool):
        at = moment(epoch_ms / 1000)
    at = at or entry.moment("created_at")
    if at:
        options["occurred_at"] = at
    return options


def _observed_by_claude_mem(entry: JSONEntry, where: str) -> Iterator[Read]:
    facts = [f"- {fact}" for fact in _listed(entry, "facts")]
    text = joined(
        [
            entry.text("title"),
            entry.text("subtitle"),
            entry.text("narrative", "text"),
            "\n".join(facts),
        ]
    )
    reference = f"observation:{entry.get('id') or ''}:{content_hash(text)[:16]}"
    common = _common_of_claude_mem(entry)
    marks = tags([entry.text("type"), *_listed(entry, "concepts")])
    options = common | RememberOptions(
        role="assistant",
        kind="memory",
        tags=[*common.get("tags", ()), *marks],
        source_ref=short(reference),
    )
    yield from pieces(text, options, f"{where} observation {entry.get('id')}")


def _summary_of_claude_mem(entry: JSONEntry, where: str) -> Iterator[Read]:
    names = ("request", "investigated", "learned", "completed", "next_steps", "key_decisions")
    parts = [
        f"{name.replace('_', ' ').capitalize()}: {entry.text(name)}"
        for name in names
        if entry.text(name)
    ]
    text = joined([entry.text("summary_text"), *parts, entry.text("notes")])
    reference = f"summary:{entry.get('id') or ''}:{content_hash(text)[:16]}"
    options = _common_of_claude_mem(entry) | RememberOptions(
        role="system", kind="summary", source_ref=short(reference)
    )
    yield from pieces(text, options, f"{where} summary {entry.get('id')}")


def _prompt_of_claude_mem(entry: JSONEntry, where: str) -> Iterator[Read]:
    text = entry.text("prompt_text", "prompt", "text")
    reference = f"prompt:{entry.get('id') or ''}:{content_hash(text)[:16]}"
    options = _common_of_claude_mem(entry) | RememberOptions(source_ref=short(reference))
    yield from pieces(text, options, f"{where} prompt {entry.get('id')}")


def _listed(entry: JSONEntry, name: str) -> list[str]:
    """Return the texts of a list, which claude-mem's tables keep as JSON text."""
    values = entry.values(name)
    written = entry.text(name)
    if written:
        values = JSONEntry.loaded(f'{{"list": {written}}}').values("list") or [written]
    texts = [string(value).strip() for value in values]
    return [text for text in texts if text]


# mcp-memory-service


def is_memory_service(entry: JSONEntry) -> bool:
    """Tell whether an object is a backup, an export or a memory of mcp-memory-service."""
    first = next(iter(entry.entries("memories")), entry)
    return first.has("content", "content_hash") or (
        first.has("document", "metadata") and entry.has("memories")
    )


def read_memory_service(source: Source) -> Iterator[Read]:
    """Yield a turn for each memory, with its tags and its time."""
    for item in objects(source):
        if isinstance(item, Unreadable):
            yield item
            continue
        listed = item.entry.entries("memories")
        for number, entry in enumerate(listed or [item.entry]):
            where = f"{item.where} memory {number}" if listed else item.where
            yield from _service_memory(entry, where)


def _service_memory(entry: JSONEntry, where: str) -> Iterator[Read]:
    text = entry.text("content", "document")
    metadata = entry.entry("metadata")
    if not text.strip():
        yield Unreadable(where, "has no content")
        return
    written = entry.get("tags") or metadata.get("tags") or metadata.get("tags_str") or ""
    names = written.split(",") if isinstance(written, str) else map(string, sequence(written))
    kinds = [entry.text("memory_type", "type") or metadata.text("memory_type", "type")]
    times = ("created_at", "created_at_iso", "timestamp", "timestamp_float")
    at = entry.moment(*times) or metadata.moment(*times)
    reference = entry.text("content_hash") or metadata.text("content_hash") or content_hash(text)
    options = RememberOptions(
        source="mcp-memory-service",
        session="mcp-memory-service",
        kind="memory",
        tags=tags([*(name.strip("[]\"' ") for name in names), *kinds]),
        source_ref=short(reference, 100),
    )
    if at:
        options["occurred_at"] = at
    yield from pieces(text, options, where)


# Letta


def is_letta(entry: JSONEntry) -> bool:
    agents = entry.entries("agents")
    return any(agent.has("messages") for agent in agents[:1]) or (
        entry.has("core_memory", "messages") and entry.has("agent_type")
    )


def read_letta(source: Source) -> Iterator[Read]:
    """Yield the blocks of the core memory and the messages of each agent in an agent file."""
    for item in objects(source):
        if isinstance(item, Unreadable):
            yield item
            continue
        entry = item.entry
        if not is_letta(entry):
            yield Unreadable(item.where, "is no agent file of Letta")
            continue
        agents = entry.entries("agents") or [entry]
        for block in [*entry.entries("blocks"), *entry.entries("core_memory")]:
            yield from _letta_block(block, item.where)
        for number, agent in enumerate(agents):
            yield from _letta_agent(agent, f"{item.where} agent {number}")


def _letta_block(block: JSONEntry, where: str) -> Iterator[Read]:
    text = block.text("value")
    name = block.text("label") or "memory"
    content = f"[{name}]\n{text}" if text.strip() else ""
    options = RememberOptions(
        source="letta",
        session="core-memory",
        role="system",
        kind="memory",
        source_ref=f"block:{content_hash(content)[:32]}",
    )
    yield from pieces(content, options, f"{where} block {name}")


def _letta_agent(agent: JSONEntry, where: str) -> Iterator[Read]:
    session = short(agent.text("id", "name") or "letta")
    for number, message in enumerate(agent.entries("messages")):
        reference = short(message.text("id") or str(number), 180)
        common = RememberOptions(source="letta", session=session, source_ref=reference)
        at = message.moment("created_at")
        if at:
            common["occurred_at"] = at
        yield from _letta_message(message, common, f"{where} message {number}")


def _letta_message(message: JSONEntry, common: RememberOptions, where: str) -> Iterator[Read]:
    role = message.text("role")
    parts = message.entries("content")
    text = joined(part.text("text") for part in parts) or message.text("content", "text")
    if role == "user":
        event = JSONEntry.loaded(text)
        if event.get("type") in ("heartbeat", "login", "system_alert"):
            yield Passed("Letta's own messages")
            return
        words = event.text("message") if event.get("type") == "user_message" else text
        yield from pieces(words, {**common, "role": "user"}, where)
    elif role == "assistant":
        yield from _letta_answer(message, text, common, where)
    elif role == "tool":
        yield Passed("results of tools")
    else:
        yield Passed("messages of the system")


def _letta_answer(
    message: JSONEntry, text: str, common: RememberOptions, where: str
) -> Iterator[Read]:
    """Yield an agent's messages by the tool ``send_message``; its other words are thoughts."""
    calls = message.entries("tool_calls")
    if not calls:
        yield from pieces(text, {**common, "role": "assistant"}, where)
    elif text.strip():
        yield Passed("thoughts of the model")
    for number, call in enumerate(calls):
        function = call.entry("function")
        arguments = JSONEntry.loaded(function.text("arguments"))
        name = function.text("name") or "tool"
        reference = f"{common.get('source_ref', '')}:{number}"
        if name == "send_message":
            options = common | RememberOptions(role="assistant", source_ref=reference)
            yield from pieces(arguments.text("message"), options, where)
        else:
            line = tool_line(name, arguments.texts())
            options = common | RememberOptions(role="tool", source_ref=reference)
            yield from pieces(line, options, where)
