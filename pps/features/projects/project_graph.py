"""A project's graph as router tools take and show it: inputs, outputs and their words.

``project`` names a project by its path; the router decides what it reaches.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Literal

from pydantic import Field, StringConstraints

from pps.core import bounds
from pps.core.recalled import Hit
from pps.core.text import counted, one_line
from pps.core.values import Fact, Node, Path, Skipped, Subgraph, Turn
from pps.entities.paths import MAX_PATH
from pps.features.projects.projects import Vault
from pps.graph.graph_store import MAX_HOPS
from pps.ingest.given_input import Input, Moment, Name, Tag, described_time
from pps.journal.filters import ItemFilter
from pps.operations.inputs import Content, Labels, Question, Tags, Title, also, argument
from pps.operations.memory_tools import GetInput
from pps.operations.titled_texts import AddEventInput, AppendInput, UpdateInput

MOST_CONTENT = 2_000
"""Characters of a node's content in a list; ``get`` has the whole."""
MOST_NODES = 200
"""Most nodes that ``get_graph`` returns beside the one asked about."""
_LINE = 300

Project = Annotated[
    str,
    Field(
        min_length=1,
        max_length=MAX_PATH,
        description=(
            "Absolute path of the project's folder on this machine: the folder that you work in."
        ),
        json_schema_extra=argument(
            path=True,
            help=(
                "Path of the project's folder: the one that you work in, as it is on this machine."
            ),
        ),
    ),
]
Kind = Annotated[str, StringConstraints(pattern=r"^[A-Za-z][A-Za-z0-9_]{0,63}$")]


class ProjectInput(Input):
    """Only the project."""

    project: Project = Field(default=..., json_schema_extra=also("projectPath"))


class GraphNode(Input):
    """A node to make: a title that it is found and linked by, and what there is to say."""

    title: Name = Field(
        description="Name of the node; other nodes link to it by this name.",
        json_schema_extra=also("name"),
    )
    content: Content = Field(
        description="The text, Markdown. [[Title]] links to another node, #tag tags it."
    )
    tags: Tags = Field(default=(), description="Tags, in addition to the #tags in the text.")
    node_type: Kind | None = Field(
        default=None,
        description="One word; 'agent' when not given.",
        json_schema_extra=also("kind", "type"),
    )
    parent_id: Title | None = Field(
        default=None, description="Id or title of the node that this is a part of."
    )


class GraphEdge(Input):
    """A relation to make between two nodes, new or there already."""

    from_: Title = Field(
        alias="from",
        description="Id or title of the node where the edge begins.",
        json_schema_extra=also("source"),
    )
    to: Title = Field(
        description="Id or title of the node where the edge ends.", json_schema_extra=also("target")
    )
    relation_type: Kind = Field(
        description="One word, such as depends_on.", json_schema_extra=also("type")
    )


class CreateGraphInput(ProjectInput):
    """Nodes and relations to add to a project's graph."""

    nodes: tuple[GraphNode, ...] = Field(
        min_length=1, max_length=bounds.MAX_NODES, description="At least one."
    )
    edges: tuple[GraphEdge, ...] = Field(
        default=(),
        max_length=bounds.MAX_FACTS,
        description="An edge whose end does not exist is reported in 'skipped'.",
    )


class NodeFilter(Input):
    """What to leave out before ranking. Values of one field are alternatives; fields add up."""

    node_types: Labels = ()
    tags: tuple[Tag, ...] = Field(default=(), max_length=50)
    relation_types: tuple[Name, ...] = Field(
        default=(), max_length=50, description="Only nodes that one of these relations joins."
    )
    source_types: Labels = Field(
        default=(),
        description="Only nodes that came from, or are mentioned in, one of these sources, such as "
        "mcp.",
    )
    since: Annotated[Moment | None, described_time("Nothing before.")] = None
    until: Annotated[Moment | None, described_time("Nothing at or after.")] = None

    def filters(self) -> ItemFilter:
        """Return the value that recall takes."""
        return ItemFilter(
            kinds=self.node_types,
            tags=self.tags,
            relations=self.relation_types,
            sources=self.source_types,
            since=self.since,
            until=self.until,
        )


class SignalWeights(Input):
    """How much each signal counts; only their relation matters, and 0 leaves one out."""

    vector: float | None = Field(
        default=None, ge=0, le=100, description="Nearness of meaning (0.4)."
    )
    text: float | None = Field(
        default=None,
        ge=0,
        le=100,
        description="Words in common (0.3); also called full_text.",
        json_schema_extra=also("fullText"),
    )
    graph: float | None = Field(
        default=None,
        ge=0,
        le=100,
        description="Nearness to the anchor node (0.15).",
        json_schema_extra=also("graphProximity"),
    )
    tags: float | None = Field(
        default=None,
        ge=0,
        le=100,
        description="Share of the tags asked for (0.1).",
        json_schema_extra=also("tagOverlap"),
    )
    recency: float | None = Field(
        default=None, ge=0, le=100, description="Recency, over four weeks (0.05)."
    )


class SearchNodesInput(ProjectInput):
    """A question to a project's graph."""

    query: Question = Field(description="A question or key words, in any language.")
    limit: int = Field(default=10, ge=1, le=100, description="Maximum nodes.")
    filters: NodeFilter = NodeFilter()
    weights: SignalWeights = SignalWeights()
    anchor_node_id: Name | None = Field(
        default=None, description="Id or title of a node: what is near it ranks higher."
    )


class GetNodesInput(ProjectInput, GetInput):
    """Nodes to read whole."""


class UpdateNodeInput(ProjectInput, UpdateInput):
    """What a node is to be from now on; what is not given stays as it is."""


class AppendNodeInput(ProjectInput, AppendInput):
    """A paragraph more for a node."""


class RoutedEventInput(AddEventInput):
    """Something that happened in a project, to be kept by the memory that the project has."""

    project_path: Project = Field(default=..., json_schema_extra=also("project"))


class GetGraphInput(ProjectInput):
    """A look at a project's graph around a node."""

    node_id: Name = Field(description="Id or title of a node.")
    operation: Literal["neighbors", "shortest_path", "subgraph"] = Field(
        description="'neighbors': nodes joined to it; 'shortest_path': the path to the target; "
        "'subgraph': everything within max_hops."
    )
    target_node_id: Name | None = Field(
        default=None, description="The other end of a shortest_path: id or title."
    )
    max_hops: int = Field(
        default=2, ge=1, le=MAX_HOPS, description="Maximum hops of shortest_path and subgraph."
    )


@dataclass(frozen=True, slots=True)
class NodeId:
    """A node by its title."""

    title: str
    id: str


@dataclass(frozen=True, slots=True)
class CreatedGraph:
    """What came of a graph.

    Nodes that were there already have their ids in ``node_ids`` and are not counted.

    Attributes:
        nodes_created, edges_created: Made by this very call; ``edges`` counts parents and
            ``[[links]]`` too.
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
    """A node that was found.

    ``score`` compares only within its list; ``breakdown`` has each signal, 0 to 1.

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
    """A node of a graph view; ``content`` and ``created_at`` are as in ``NodeHit``.

    Attributes:
        hops: Distance from the requested node, or position on the path.
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


def node_hit(hit: Hit, item: Node, text: Turn | None) -> NodeHit:
    """Return the view of a hit; a record also has its text."""
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


def subgraph_view(
    operation: Literal["neighbors", "subgraph"], subgraph: Subgraph, texts: Mapping[str, Turn]
) -> GraphView:
    """Return the view of what lies around a node; it was asked for one node more than is shown."""
    listed = subgraph.nodes[: MOST_NODES + 1]
    ids = {node.uuid for node in listed}
    edges = tuple(_edge(fact) for fact in subgraph.facts if {fact.subject, fact.object} <= ids)
    nodes = tuple(_node(node, subgraph.hops[node.uuid], texts.get(node.uuid)) for node in listed)
    return GraphView(operation, nodes, edges, truncated=len(listed) < len(subgraph.nodes))


def path_view(path: Path | None, texts: Mapping[str, Turn]) -> GraphView:
    if path is None:
        return GraphView("shortest_path", found=False)
    nodes = tuple(_node(node, place, texts.get(node.uuid)) for place, node in enumerate(path.nodes))
    return GraphView("shortest_path", nodes, tuple(_edge(fact) for fact in path.facts))


def created(view: CreatedGraph) -> str:
    """Return what was made, a line a node, and what was left out."""
    lines = [f"{counted(view.nodes_created, 'node')}, {counted(view.edges_created, 'link')} made."]
    lines += [f"{line(node.title)} [{node.id}]" for node in view.node_ids]
    lines += [f"Left out: {skipped.what}: {skipped.why}" for skipped in view.skipped]
    return "\n".join(lines)


def hits(view: NodeHits) -> str:
    lines = [f"{number}. {_hit(result)}" for number, result in enumerate(view.results, 1)]
    return "\n".join([*lines, *(f"note: {note}" for note in view.notes)]) or "Nothing found."


def graph(view: GraphView) -> str:
    """Return the nodes, then the edges by the titles of their ends."""
    if not view.found:
        return "No path within max_hops."
    titles = {node.id: node.title for node in view.nodes}
    lines = [
        f"{node.hops}: {line(node.title)} ({node.kind}) [{node.id}]{_said(node.content)}"
        for node in view.nodes
    ]
    for edge in view.edges:
        source = titles.get(edge.source, edge.source)
        target = titles.get(edge.target, edge.target)
        text = f": {line(edge.text)}" if edge.text else ""
        lines.append(f"{source} -{edge.relation_type}-> {target}{text}")
    return "\n".join([*lines, *(["… and more nodes"] if view.truncated else [])])


def vaults(them: Sequence[Vault]) -> str:
    return "\n".join(map(_vault, them)) or "No projects yet: create_graph makes the first."


def _clipped(text: str) -> str:
    return text if len(text) <= MOST_CONTENT else text[: MOST_CONTENT - 1].rstrip() + "…"


def _node(node: Node, hops: int, text: Turn | None) -> GraphNodeView:
    made, content = (text.occurred_at, text.content) if text else (node.created_at, node.summary)
    return GraphNodeView(
        node.uuid, node.name, node.kind, hops, made, node.summary, node.tags, _clipped(content)
    )


def _edge(fact: Fact) -> GraphEdgeView:
    text = fact.text if fact.kind == "fact" else ""
    return GraphEdgeView(fact.uuid, fact.subject, fact.object, fact.relation, fact.kind, text)


def _hit(hit: NodeHit) -> str:
    tags = "".join(f" #{tag}" for tag in hit.tags)
    return f"{hit.title} ({hit.kind}){_said(hit.content)}{tags} {hit.score:.3f} [{hit.id}]"


def _said(content: str) -> str:
    return f": {line(content)}" if content else ""


def _vault(vault: Vault) -> str:
    if vault.error:
        return f"{vault.project} ({vault.name}): cannot be opened: {vault.error}"
    held = (("node", vault.nodes), ("edge", vault.edges), ("tag", vault.tags))
    return (
        f"{vault.project} ({vault.name}) [{vault.id}]: "
        f"{', '.join(counted(number or 0, word) for word, number in held)}"
    )


def line(text: str) -> str:
    return one_line(text, _LINE)
