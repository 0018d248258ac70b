"""What the project tools answer, as data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from pps.core.recalled import Hit
from pps.core.values import Fact, Node, Path, Skipped, Subgraph, Turn
from pps.entities.tasks import FINISHED, AgentTask, TaskState
from pps.operations.project.desk import Claimed, Vault

MOST_CONTENT = 2_000
"""Characters of a node's content in a list; ``get`` has the whole."""
MOST_NODES = 200
"""Most nodes that ``get_graph`` returns beside the one asked about."""


@dataclass(frozen=True, slots=True)
class NodeId:
    """A node by its title."""

    title: str
    id: str


@dataclass(frozen=True, slots=True)
class CreatedGraph:
    """What came of a graph. Nodes that were there already have their ids in ``node_ids`` and are not counted.

    Attributes:
        nodes_created, edges_created: Made by this very call; ``edges`` counts parents and ``[[links]]`` too.
        skipped: What was left out, and why.
        redacted: Secrets that were taken out of the texts.
    """

    nodes_created: int
    node_ids: tuple[NodeId, ...]
    edges_created: int
    skipped: tuple[Skipped, ...] = ()
    redacted: int = 0


@dataclass(frozen=True, slots=True)
class NodeHit:
    """A node that was found. ``score`` compares only within its list; ``breakdown`` has each signal, 0 to 1.

    Attributes:
        content: What it says, at most 2,000 characters; ``get`` returns the whole.
        created_at: When what it says happened; of a node without a text, when it was taken in.
    """

    id: str
    title: str
    summary: str
    kind: str
    tags: tuple[str, ...]
    score: float
    breakdown: Mapping[str, float]
    created_at: datetime
    content: str = ""


@dataclass(frozen=True, slots=True)
class NodeHits:
    """Nodes that answer a question, best first."""

    results: tuple[NodeHit, ...]
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class GraphNodeView:
    """A node of a look; ``hops`` is its distance from the node asked about, or its place on the path.

    ``content`` and ``created_at`` as in ``NodeHit``.
    """

    id: str
    title: str
    kind: str
    hops: int
    created_at: datetime
    summary: str = ""
    tags: tuple[str, ...] = ()
    content: str = ""


@dataclass(frozen=True, slots=True)
class GraphEdgeView:
    """A relation, or a fact with its sentence."""

    id: str
    source: str
    target: str
    relation_type: str
    kind: str
    text: str = ""


@dataclass(frozen=True, slots=True)
class GraphView:
    """A look at a graph: nearest nodes first, or in the order of the path.

    Attributes:
        found: False when there is no path within ``max_hops``.
        truncated: There is more than the 200 nodes shown.
    """

    operation: Literal["neighbors", "shortest_path", "subgraph"]
    nodes: tuple[GraphNodeView, ...] = ()
    edges: tuple[GraphEdgeView, ...] = ()
    found: bool = True
    truncated: bool = False


@dataclass(frozen=True, slots=True)
class Vaults:
    """The projects that have a memory, the newest first."""

    vaults: tuple[Vault, ...]


@dataclass(frozen=True, slots=True)
class TaskView:
    """A task and how it stands."""

    id: str
    state: TaskState
    attempts: int
    max_attempts: int
    created_at: datetime
    updated_at: datetime
    title: str | None = None
    agent: str | None = None
    runner: str | None = None
    lease_until: datetime | None = None
    note: str | None = None
    result: str | None = None
    error: str | None = None


@dataclass(frozen=True, slots=True)
class TaskStates:
    """Tasks in the order asked. ``running`` are ids of those that have not ended, waiting ones too."""

    tasks: tuple[TaskView, ...]
    running: tuple[str, ...]
    all_done: bool


@dataclass(frozen=True, slots=True)
class TaskList:
    """Tasks, newest first."""

    tasks: tuple[TaskView, ...]


@dataclass(frozen=True, slots=True)
class ClaimedTask:
    """A task to carry out; ``lease`` is what its end is reported with."""

    project: str
    prompt: str
    lease: str
    task: TaskView
    node_id: str | None = None


@dataclass(frozen=True, slots=True)
class MaybeTask:
    """A task, or none when none waits."""

    claimed: ClaimedTask | None = None


def node_hit(hit: Hit, item: Node, text: Turn | None) -> NodeHit:
    """Return the view of a node that was found, with the text that makes it a record."""
    signals = {name: round(value, 4) for name, value in hit.signals.items()}
    return NodeHit(
        item.uuid,
        item.name,
        item.summary,
        item.kind,
        item.tags,
        round(hit.score, 6),
        signals,
        text.occurred_at if text else item.created_at,
        _clipped(text.content if text else item.summary),
    )


def subgraph_view(operation: Literal["neighbors", "subgraph"], found: Subgraph, texts: Mapping[str, Turn]) -> GraphView:
    """Return the view of what lies around a node; it was asked for one node more than is shown."""
    shown = found.nodes[: MOST_NODES + 1]
    ids = {one.uuid for one in shown}
    edges = tuple(_edge(fact) for fact in found.facts if {fact.subject, fact.object} <= ids)
    nodes = tuple(_node(one, found.hops[one.uuid], texts.get(one.uuid)) for one in shown)
    return GraphView(operation, nodes, edges, truncated=len(shown) < len(found.nodes))


def path_view(path: Path | None, texts: Mapping[str, Turn]) -> GraphView:
    """Return the view of a path."""
    if path is None:
        return GraphView("shortest_path", found=False)
    nodes = tuple(_node(one, place, texts.get(one.uuid)) for place, one in enumerate(path.nodes))
    return GraphView("shortest_path", nodes, tuple(_edge(fact) for fact in path.facts))


def task_view(task: AgentTask) -> TaskView:
    """Return the view of a task; what it asks for and its lease are left out."""
    return TaskView(
        task.id,
        task.state,
        task.attempts,
        task.draft.max_attempts,
        task.created_at,
        task.updated_at,
        task.draft.title or None,
        task.draft.agent or None,
        task.runner or None,
        task.lease_until,
        task.note or None,
        task.result or None,
        task.error or None,
    )


def task_states(tasks: list[AgentTask]) -> TaskStates:
    """Return the view of tasks that were waited for."""
    running = tuple(one.id for one in tasks if one.state not in FINISHED)
    return TaskStates(tuple(task_view(one) for one in tasks), running, not running)


def claimed_view(claimed: Claimed | None) -> MaybeTask:
    """Return the view of a task for the runner that has just got it."""
    if claimed is None:
        return MaybeTask()
    task = claimed.task
    return MaybeTask(
        ClaimedTask(claimed.project, task.draft.prompt, task.lease, task_view(task), task.draft.node or None)
    )


def _clipped(text: str) -> str:
    return text if len(text) <= MOST_CONTENT else text[: MOST_CONTENT - 1].rstrip() + "…"


def _node(node: Node, hops: int, text: Turn | None) -> GraphNodeView:
    made, said = (text.occurred_at, text.content) if text else (node.created_at, node.summary)
    return GraphNodeView(node.uuid, node.name, node.kind, hops, made, node.summary, node.tags, _clipped(said))


def _edge(fact: Fact) -> GraphEdgeView:
    text = fact.text if fact.kind == "fact" else ""
    return GraphEdgeView(fact.uuid, fact.subject, fact.object, fact.relation, fact.kind, text)
