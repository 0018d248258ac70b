"""The project tools: what a router's agents may ask of the graphs of projects."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Literal

from pps.core.bounds import check_tags
from pps.core.errors import InvalidRequest, StoreError
from pps.core.text import fold
from pps.core.values import EventReceipt, Node, RelationDraft, Skipped, Turn
from pps.features.projects import project_graph as shapes
from pps.features.projects.projects import Projects, Vault
from pps.ingest.recorder import EventOptions, check_event
from pps.memory import Memory
from pps.operations import titled_texts
from pps.operations.inputs import Nothing
from pps.operations.item_views import ItemView
from pps.operations.memory_tools import items_for_model, items_text, read_items
from pps.operations.table import ADDS, PROJECTS, READS, SETS
from pps.operations.titled_texts import event_text
from pps.recall.engine import SIGNALS

CREATE_WAIT_S = 60.0
"""How long the nodes of ``create_graph`` may take to be in the graph.

What takes longer is reported, and is safe.
"""

_SOURCE = "mcp"
_CHILD_OF = "child_of"
_AT_ONCE = 500
_PROFILE = "blended"
_MOST = 100
"""Most results of one recall."""
_NAMES = {SIGNALS[name]: name for name in reversed([*SIGNALS])}


@PROJECTS.operation("Add to a project's graph", shapes.created, SETS)
async def create_graph(projects: Projects, request: shapes.CreateGraphInput) -> shapes.CreatedGraph:
    """Use it to keep what you learned about a project as nodes with titles, joined by typed edges.

    The first call makes the project's memory. The same call again changes nothing. Returns the
    nodes' ids; 'skipped' lists what was left out.
    """
    events = [(node.content, _event(node)) for node in request.nodes]
    for content, options in events:  # before a memory is made for them
        check_event(content, options)
        check_tags(options.get("tags", ()))
    async with projects.memory(request.project, create=True) as memory:
        receipts = await memory.records.add_events(events, timeout_s=CREATE_WAIT_S)
        ids = {
            fold(node.title): receipt.node_id
            for node, receipt in zip(request.nodes, receipts, strict=True)
            if receipt.node_id
        }
        made, skipped = await _related(memory, request, ids)
    pairs = list(zip(request.nodes, receipts, strict=True))
    late = [skipped_item for node, receipt in pairs for skipped_item in _left_out(node, receipt)]
    # A link to a node that comes later in the call waited for it, and was made when that appeared.
    appeared = {f"[[{fold(node.title)}]]" for node, receipt in pairs if receipt.state == "done"}
    left_out = [skipped_item for skipped_item in late if fold(skipped_item.what) not in appeared]
    linked = len(late) - len(left_out)
    return shapes.CreatedGraph(
        nodes_created=sum(receipt.state == "done" for receipt in receipts),
        node_ids=tuple(
            shapes.NodeId(receipt.title or node.title, receipt.node_id)
            for node, receipt in pairs
            if receipt.node_id
        ),
        edges_created=made
        + linked
        + sum(receipt.edges_created for receipt in receipts if receipt.state == "done"),
        skipped=(*left_out, *skipped),
        redacted=sum(receipt.redacted for receipt in receipts),
    )


@PROJECTS.operation("Search a project's graph", shapes.hits, READS)
async def search_nodes(projects: Projects, request: shapes.SearchNodesInput) -> shapes.NodeHits:
    """Use it before you search the project's files: give a question or key words.

    Returns the project's best nodes, by meaning, words, nearness in the graph, tags and recency,
    each with its signals. A project without a memory is not found: {create_graph} makes one.
    """
    async with projects.memory(request.project) as memory:
        own = memory.graph.own
        recalled = await memory.recall(
            request.query,
            profile=_PROFILE,
            channels=("nodes",),
            limit=min(request.limit + 1, _MOST),
            center=request.anchor_node_id,
            filters=request.filters.filters(),
            weights=request.weights.model_dump(exclude_none=True),
        )
        texts = await memory.records.texts([hit.id for hit in recalled.channels["nodes"].hits])
    channel = recalled.channels["nodes"]
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
            shapes.node_hit(hit, item, texts.get(item.uuid)) for hit, item in named[: request.limit]
        ),
        channel.notes,
    )


@PROJECTS.operation("Look at a project's graph", shapes.graph, READS)
async def get_graph(projects: Projects, request: shapes.GetGraphInput) -> shapes.GraphView:
    """Use it to see the neighbours of a node, the path to another node, or everything around it.

    Returns nodes, nearest first or in the order of the path, and the edges between them.
    """
    if (request.operation == "shortest_path") != (request.target_node_id is not None):
        raise InvalidRequest(
            "target_node_id", "is needed for a shortest_path, and for nothing else"
        )
    async with projects.memory(request.project) as memory:
        if request.target_node_id is not None:
            path = await memory.graph.between(
                request.node_id, request.target_node_id, max_hops=request.max_hops
            )
            return shapes.path_view(path, await _texts(memory, path.nodes if path else ()))
        operation: Literal["neighbors", "subgraph"] = (
            "neighbors" if request.operation == "neighbors" else "subgraph"
        )
        hops = 1 if operation == "neighbors" else request.max_hops
        subgraph = await memory.graph.around(
            request.node_id, max_hops=hops, limit=shapes.MOST_NODES + 1
        )
        return shapes.subgraph_view(operation, subgraph, await _texts(memory, subgraph.nodes))


@PROJECTS.operation(
    "Read nodes of a project whole",
    items_text,
    READS,
    items="items",
    for_model=items_for_model,
)
async def get(projects: Projects, request: shapes.GetNodesInput) -> tuple[ItemView, ...]:
    """Use it to read in full what another tool showed in part.

    Returns the whole text and fields of nodes of a project. It answers a page at a time, and a long
    text in parts: pass 'next_cursor' as {cursor}, with the same ids, for the next.
    """
    async with projects.memory(request.project) as memory:
        return await read_items(memory, request.ids, request.cursor)


@PROJECTS.operation("Change a node of a project", event_text, SETS)
async def update(projects: Projects, request: shapes.UpdateNodeInput) -> EventReceipt:
    """Use it to change the text, title, kind, tags or fields of a node of a project.

    The old state stays as a version.
    """
    async with projects.memory(request.project) as memory:
        return await titled_texts.change(memory, request)


@PROJECTS.operation("Add to a node of a project", event_text, ADDS)
async def append(projects: Projects, request: shapes.AppendNodeInput) -> EventReceipt:
    """Use it to add a paragraph to the text of a node of a project.

    The old text stays as a version.
    """
    async with projects.memory(request.project) as memory:
        return await titled_texts.add(memory, request)


@PROJECTS.operation("Save an event of a project", event_text, ADDS)
async def add_event(projects: Projects, request: shapes.RoutedEventInput) -> EventReceipt:
    """Use it to save an event as a record of the project whose folder holds {project_path}.

    A path in no project of yours is not found: {create_graph} makes a project's memory.
    """
    async with projects.memory_of(request.project_path) as memory:
        return await titled_texts.keep_event(memory, request)


@PROJECTS.operation("List the projects", shapes.vaults, READS, items="vaults")
async def list_vaults(projects: Projects, _: Nothing) -> tuple[Vault, ...]:
    """Use it to see which projects you may use.

    Returns those that have a memory, with their nodes, edges and tags.
    """
    return tuple(await projects.vaults())


async def _related(
    memory: Memory, request: shapes.CreateGraphInput, ids: Mapping[str, str]
) -> tuple[int, list[Skipped]]:
    """Make parents and edges.

    An end is a title of this call first, then an id or title that was there.
    """

    def end(name: str) -> str:
        return ids.get(fold(name), name)

    wanted = [
        (
            f"nodes[{number}].parent_id",
            RelationDraft(end(node.title), end(node.parent_id), _CHILD_OF),
        )
        for number, node in enumerate(request.nodes)
        if node.parent_id is not None
    ]
    wanted += [
        (f"edges[{number}]", RelationDraft(end(edge.from_), end(edge.to), edge.relation_type))
        for number, edge in enumerate(request.edges)
    ]
    made = 0
    skipped = list[Skipped]()
    for start in range(0, len(wanted), _AT_ONCE):
        part = wanted[start : start + _AT_ONCE]
        related = await memory.records.relate([draft for _, draft in part], created_by=_SOURCE)
        made += related.edges_created
        places = {f"relations[{number}]": place for number, (place, _) in enumerate(part)}
        skipped += [
            replace(skipped_item, what=places.get(skipped_item.what, skipped_item.what))
            for skipped_item in related.skipped
        ]
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
    """Return a digest of a node's content, so that a repeated call finds the same node."""
    digested = json.dumps(
        [node.title, node.content, node.node_type, sorted(node.tags)], ensure_ascii=False
    )
    return f"create_graph:{hashlib.sha256(digested.encode()).hexdigest()[:40]}"


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


def _named(signals: Mapping[str, float]) -> dict[str, float]:
    return {_NAMES.get(name, name): value for name, value in signals.items()}


async def _texts(memory: Memory, nodes: Sequence[Node]) -> Mapping[str, Turn]:
    return await memory.records.texts([node.uuid for node in nodes])
