"""``create_graph``: each node an event with a source of its own, then the relations between them."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import replace

from pps.core.text import fold
from pps.core.values import EventReceipt, RelationDraft, Skipped
from pps.ingest.drafts import Automatic
from pps.ingest.recorder import EventOptions, make_event
from pps.ingest.redact import KeyedRedactor
from pps.memory import Memory
from pps.operations.project.desk import Projects
from pps.operations.project.inputs import CreateGraphInput, GraphNode
from pps.operations.project.outputs import CreatedGraph, NodeId

WAIT_S = 60.0
"""How long the nodes may take to be in the graph; what takes longer is reported, and is safe."""

_SOURCE = "mcp"
_CHILD_OF = "child_of"
_AT_ONCE = 500


async def create_graph(projects: Projects, given: CreateGraphInput) -> CreatedGraph:
    """Make the nodes, then the edges. What was made by the same call before is found again, not made twice."""
    events = [(node.content, _event(node)) for node in given.nodes]
    for content, options in events:  # before a memory is made for them
        make_event(content, options, "none", KeyedRedactor(b"", on=False), Automatic())
    async with projects.memory(given.project, create=True) as memory:
        receipts = await memory.records.add_events(events, timeout_s=WAIT_S)
        ids = {fold(node.title): one.node_id for node, one in zip(given.nodes, receipts, strict=True) if one.node_id}
        made, skipped = await _related(memory, given, ids)
    pairs = list(zip(given.nodes, receipts, strict=True))
    late = [one for node, receipt in pairs for one in _left_out(node, receipt)]
    # A link to a node that comes later in the call waited for it, and was made when that appeared.
    appeared = {f"[[{fold(node.title)}]]" for node, receipt in pairs if receipt.state == "done"}
    left_out = [one for one in late if fold(one.what) not in appeared]
    linked = len(late) - len(left_out)
    return CreatedGraph(
        nodes_created=sum(one.state == "done" for one in receipts),
        node_ids=tuple(NodeId(one.title or node.title, one.node_id) for node, one in pairs if one.node_id),
        edges_created=made + linked + sum(one.edges_created for one in receipts if one.state == "done"),
        skipped=(*left_out, *skipped),
        redacted=sum(one.redacted for one in receipts),
    )


async def _related(memory: Memory, given: CreateGraphInput, ids: Mapping[str, str]) -> tuple[int, list[Skipped]]:
    """Make parents and edges; an end is a title of this call first, then an id or title that was there."""

    def end(name: str) -> str:
        return ids.get(fold(name), name)

    wanted = [
        (f"nodes[{number}].parent_id", RelationDraft(end(node.title), end(node.parent_id), _CHILD_OF))
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


def _event(node: GraphNode) -> EventOptions:
    event: EventOptions = {"source": _SOURCE, "source_ref": _reference(node), "title": node.title, "tags": node.tags}
    if node.node_type is not None:
        event["kind"] = node.node_type
    return event


def _reference(node: GraphNode) -> str:
    """Return what a node says, in short: the same node of a call that is made again has the same."""
    said = json.dumps([node.title, node.content, node.node_type, sorted(node.tags)], ensure_ascii=False)
    return f"create_graph:{hashlib.sha256(said.encode()).hexdigest()[:40]}"


def _left_out(node: GraphNode, receipt: EventReceipt) -> Sequence[Skipped]:
    if receipt.state == "failed":
        return [Skipped(node.title, "is kept, but could not be taken into the graph; job_status says why")]
    if not receipt.node_id:
        return [Skipped(node.title, "is safe on disk, and in the graph in a while; make the same call again then")]
    return receipt.skipped if receipt.state == "done" else ()
