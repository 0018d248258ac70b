"""The project tools: what a router's agents may ask of the graphs of projects."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Literal

from pps.core.errors import InvalidRequest, StoreError
from pps.core.text import fold
from pps.core.values import EventReceipt, Node, RelationDraft, Skipped, Turn
from pps.features.projects import project_graph as shapes
from pps.features.projects.projects import Projects, Vault
from pps.ingest.drafts import Automatic
from pps.ingest.recorder import EventOptions, make_event
from pps.ingest.redact import KeyedRedactor
from pps.memory import Memory
from pps.operations import titled_texts, words
from pps.operations.inputs import Nothing
from pps.operations.knowledge import read_items
from pps.operations.model_views import items_for_model
from pps.operations.outputs import ItemView
from pps.operations.table import ADDS, PROJECTS, READS, SETS
from pps.recall.engine import SIGNALS

CREATE_WAIT_S = 60.0
"""How long the nodes of ``create_graph`` may take to be in the graph; what takes longer is reported, and is safe."""

_SOURCE = "mcp"
_CHILD_OF = "child_of"
_AT_ONCE = 500
_PROFILE = "blended"
_MOST = 100
"""Most results of one recall."""
_NAMES = {SIGNALS[name]: name for name in reversed([*SIGNALS])}


@PROJECTS.operation("Add to a project's graph", shapes.created, SETS)
async def create_graph(projects: Projects, given: shapes.CreateGraphInput) -> shapes.CreatedGraph:
    """Use it to keep what you found out about a project as nodes with titles, joined by typed edges.

    The project's memory is made when it is the first time. The same call again changes nothing. Returns the nodes' ids;
    what was left out is in 'skipped'.
    """
    events = [(node.content, _event(node)) for node in given.nodes]
    for content, options in events:  # before a memory is made for them
        make_event(content, options, "none", KeyedRedactor(b"", on=False), Automatic())
    async with projects.memory(given.project, create=True) as memory:
        receipts = await memory.records.add_events(events, timeout_s=CREATE_WAIT_S)
        ids = {
            fold(node.title): one.node_id
            for node, one in zip(given.nodes, receipts, strict=True)
            if one.node_id
        }
        made, skipped = await _related(memory, given, ids)
    pairs = list(zip(given.nodes, receipts, strict=True))
    late = [one for node, receipt in pairs for one in _left_out(node, receipt)]
    # A link to a node that comes later in the call waited for it, and was made when that appeared.
    appeared = {f"[[{fold(node.title)}]]" for node, receipt in pairs if receipt.state == "done"}
    left_out = [one for one in late if fold(one.what) not in appeared]
    linked = len(late) - len(left_out)
    return shapes.CreatedGraph(
        nodes_created=sum(one.state == "done" for one in receipts),
        node_ids=tuple(
            shapes.NodeId(one.title or node.title, one.node_id)
            for node, one in pairs
            if one.node_id
        ),
        edges_created=made
        + linked
        + sum(one.edges_created for one in receipts if one.state == "done"),
        skipped=(*left_out, *skipped),
        redacted=sum(one.redacted for one in receipts),
    )


@PROJECTS.operation("Search a project's graph", shapes.hits, READS)
async def search_nodes(projects: Projects, given: shapes.SearchNodesInput) -> shapes.NodeHits:
    """Use it before you look things up yourself: a question or key words.

    Returns the nodes of the project that best answer, by meaning, words, nearness in the graph, tags and youth, each
    with its signals. A project without a memory is not found: create_graph makes it.
    """
    async with projects.memory(given.project) as memory:
        own = memory.graph.own
        found = await memory.recall(
            given.query,
            profile=_PROFILE,
            channels=("nodes",),
            limit=min(given.limit + 1, _MOST),
            center=given.anchor_node_id,
            filters=given.filters.filters(),
            weights=_weights(given.weights),
        )
        texts = await memory.records.texts([hit.id for hit in found.channels["nodes"].hits])
    channel = found.channels["nodes"]
    if channel.error:
        raise StoreError(f"the nodes could not be searched: {channel.error}")
    hits = [(hit, hit.item) for hit in channel.hits if hit.id != own]
    named = [
        (replace(hit, signals=_named(hit.signals)), item)
        for hit, item in hits
        if isinstance(item, Node)
    ]
    return shapes.NodeHits(
        tuple(
            shapes.node_hit(hit, item, texts.get(item.uuid)) for hit, item in named[: given.limit]
        ),
        channel.notes,
    )


@PROJECTS.operation("Look at a project's graph", shapes.graph, READS)
async def get_graph(projects: Projects, given: shapes.GetGraphInput) -> shapes.GraphView:
    """Use it to see what a node is joined to, how it leads to another, or everything around it.

    Returns nodes, nearest first or in the order of the path, and the edges between them.
    """
    if (given.operation == "shortest_path") != (given.target_node_id is not None):
        raise InvalidRequest(
            "target_node_id", "is needed for a shortest_path, and for nothing else"
        )
    async with projects.memory(given.project) as memory:
        if given.target_node_id is not None:
            path = await memory.graph.between(
                given.node_id, given.target_node_id, max_hops=given.max_hops
            )
            return shapes.path_view(path, await _texts(memory, path.nodes if path else ()))
        operation: Literal["neighbors", "subgraph"] = (
            "neighbors" if given.operation == "neighbors" else "subgraph"
        )
        hops = 1 if operation == "neighbors" else given.max_hops
        found = await memory.graph.around(given.node_id, max_hops=hops, limit=shapes.MOST_NODES + 1)
        return shapes.subgraph_view(operation, found, await _texts(memory, found.nodes))


@PROJECTS.operation(
    "Read nodes of a project whole",
    words.items,
    READS,
    items="items",
    for_model=items_for_model,
)
async def get(projects: Projects, given: shapes.GetNodesInput) -> tuple[ItemView, ...]:
    """Use it to read in full what another tool showed in part. Returns everything that nodes of a project say.

    It answers a page at a time, and a long text in parts: pass 'next_cursor' as 'cursor', with the same ids, for the
    next.
    """
    async with projects.memory(given.project) as memory:
        return await read_items(memory, given.ids, given.cursor)


@PROJECTS.operation("Change a node of a project", words.event, SETS)
async def update(projects: Projects, given: shapes.UpdateNodeInput) -> EventReceipt:
    """Use it to give a node of a project another text, title, kind, tags or fields. What it was stays as a version."""
    async with projects.memory(given.project) as memory:
        return await titled_texts.change(memory, given)


@PROJECTS.operation("Add to a node of a project", words.event, ADDS)
async def append(projects: Projects, given: shapes.AppendNodeInput) -> EventReceipt:
    """Use it to add a paragraph to what a node of a project says. What it was stays as a version."""
    async with projects.memory(given.project) as memory:
        return await titled_texts.add(memory, given)


@PROJECTS.operation("Keep what happened in a project", words.event, ADDS)
async def add_event(projects: Projects, given: shapes.RoutedEventInput) -> EventReceipt:
    """Use it to keep what happened as a record of the project whose folder holds 'project_path'.

    A path that no project of yours holds is not found: create_graph makes a project's memory.
    """
    async with projects.memory_of(given.project_path) as memory:
        return await titled_texts.keep_event(memory, given)


@PROJECTS.operation("List the projects", shapes.vaults, READS, items="vaults")
async def list_vaults(projects: Projects, _: Nothing) -> tuple[Vault, ...]:
    """Use it to see which projects you may use. Returns those that have a memory, with their nodes, edges and tags."""
    return tuple(await projects.vaults())


async def _related(
    memory: Memory, given: shapes.CreateGraphInput, ids: Mapping[str, str]
) -> tuple[int, list[Skipped]]:
    """Make parents and edges; an end is a title of this call first, then an id or title that was there."""

    def end(name: str) -> str:
        return ids.get(fold(name), name)

    wanted = [
        (
            f"nodes[{number}].parent_id",
            RelationDraft(end(node.title), end(node.parent_id), _CHILD_OF),
        )
        for number, node in enumerate(given.nodes)
        if node.parent_id is not None
    ]
    wanted += [
        (f"edges[{number}]", RelationDraft(end(edge.from_), end(edge.to), edge.relation_type))
        for number, edge in enumerate(given.edges)
    ]
    made, skipped = 0, list[Skipped]()
    for start in range(0, len(wanted), _AT_ONCE):
        part = wanted[start : start + _AT_ONCE]
        related = await memory.records.relate([one for _, one in part], created_by=_SOURCE)
        made += related.edges_created
        places = {f"relations[{number}]": what for number, (what, _) in enumerate(part)}
        skipped += [replace(one, what=places.get(one.what, one.what)) for one in related.skipped]
    return made, skipped


def _event(node: shapes.GraphNode) -> EventOptions:
    event: EventOptions = {
        "source": _SOURCE,
        "source_ref": _reference(node),
        "title": node.title,
        "tags": node.tags,
    }
    if node.node_type is not None:
        event["kind"] = node.node_type
    return event


def _reference(node: shapes.GraphNode) -> str:
    """Return what a node says, in short: the same node of a call that is made again has the same."""
    said = json.dumps(
        [node.title, node.content, node.node_type, sorted(node.tags)], ensure_ascii=False
    )
    return f"create_graph:{hashlib.sha256(said.encode()).hexdigest()[:40]}"


def _left_out(node: shapes.GraphNode, receipt: EventReceipt) -> Sequence[Skipped]:
    if receipt.state == "failed":
        return [
            Skipped(
                node.title, "is kept, but could not be taken into the graph; job_status says why"
            )
        ]
    if not receipt.node_id:
        return [
            Skipped(
                node.title,
                "is safe on disk, and in the graph in a while; make the same call again then",
            )
        ]
    return receipt.skipped if receipt.state == "done" else ()


def _weights(weights: shapes.SignalWeights) -> dict[str, float]:
    return {name: value for name, value in weights.model_dump().items() if value is not None}


def _named(signals: Mapping[str, float]) -> dict[str, float]:
    return {_NAMES.get(name, name): value for name, value in signals.items()}


async def _texts(memory: Memory, nodes: Sequence[Node]) -> Mapping[str, Turn]:
    return await memory.records.texts([one.uuid for one in nodes])
