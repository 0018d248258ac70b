"""What the project tools take. ``project`` names a project by its path; the router decides what it reaches."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import AliasChoices, Field, StringConstraints

from pps.core import bounds
from pps.entities.paths import MAX_PATH
from pps.graph.protocol import MAX_HOPS
from pps.ingest.given_input import Input, Moment, Name, Tag, described_time
from pps.journal.values import ItemFilter
from pps.operations.inputs import GetInput, Id, Label, Uuid
from pps.operations.records import AddEventInput, AppendInput, UpdateInput

MAX_WAIT_S = 60
"""Longest that ``wait_for_agents`` waits, in seconds."""

Project = Annotated[
    str,
    Field(
        min_length=1,
        max_length=MAX_PATH,
        description="Absolute path of the project's folder: the one that you work in, as it is on this machine.",
    ),
]
Kind = Annotated[str, StringConstraints(pattern=r"^[A-Za-z][A-Za-z0-9_]{0,63}$")]
End = Annotated[str, StringConstraints(min_length=1, max_length=bounds.MAX_NAME)]
Long = Annotated[str, StringConstraints(min_length=1, max_length=bounds.MAX_CONTENT)]
Seconds = Annotated[
    int, Field(ge=5, le=3600, description="How long it is yours; extend it in time, or another runner gets the task.")
]


class NoInput(Input):
    """No arguments."""


class ProjectInput(Input):
    """Only the project."""

    project: Project


class GraphNode(Input):
    """A node to make: a title that it is found and linked by, and what there is to say."""

    title: Name = Field(description="Its name, by which others link to it.")
    content: Long = Field(description="The text, Markdown. [[Title]] links to another node, #tag tags it.")
    tags: tuple[Tag, ...] = Field(default=(), max_length=bounds.MAX_TAGS, description="Beside the #tags of the text.")
    node_type: Kind | None = Field(default=None, description="One word; 'agent' when not given.")
    parent_id: End | None = Field(default=None, description="Id or title of the node that it is a part of.")


class GraphEdge(Input):
    """A relation to make between two nodes, new or there already."""

    from_: End = Field(alias="from", description="Id or title of the node that it begins at.")
    to: End = Field(description="Id or title of the node that it leads to.")
    relation_type: Kind = Field(description="One word, such as depends_on.")


class CreateGraphInput(ProjectInput):
    """Nodes and relations to add to a project's graph."""

    nodes: tuple[GraphNode, ...] = Field(min_length=1, max_length=bounds.MAX_NODES, description="At least one.")
    edges: tuple[GraphEdge, ...] = Field(
        default=(), max_length=bounds.MAX_FACTS, description="One with an end that is nowhere is reported in 'skipped'."
    )


class NodeFilter(Input):
    """What to leave out before ranking. Values of one field are alternatives; fields add up."""

    node_types: tuple[Label, ...] = Field(default=(), max_length=50)
    tags: tuple[Tag, ...] = Field(default=(), max_length=50)
    relation_types: tuple[Name, ...] = Field(default=(), max_length=50, description="Nodes that such a relation joins.")
    source_types: tuple[Label, ...] = Field(
        default=(), max_length=50, description="Where it came from, or was spoken of, such as mcp."
    )
    since: Annotated[Moment, described_time("Nothing before.")] | None = None
    until: Annotated[Moment, described_time("Nothing at or after.")] | None = None

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


class Weights(Input):
    """How much each signal counts; only their relation matters, and 0 leaves one out."""

    vector: float | None = Field(default=None, ge=0, le=100, description="Nearness of meaning (0.4).")
    text: float | None = Field(
        default=None,
        ge=0,
        le=100,
        validation_alias=AliasChoices("text", "full_text"),
        description="Words in common (0.3); also called full_text.",
    )
    graph: float | None = Field(default=None, ge=0, le=100, description="Nearness to the anchor node (0.15).")
    tags: float | None = Field(default=None, ge=0, le=100, description="Share of the tags asked for (0.1).")
    recency: float | None = Field(default=None, ge=0, le=100, description="Youth, over four weeks (0.05).")


class SearchNodesInput(ProjectInput):
    """A question to a project's graph."""

    query: str = Field(min_length=1, max_length=8000, description="A question or key words, in any language.")
    limit: int = Field(default=10, ge=1, le=100, description="Most nodes.")
    filters: NodeFilter = NodeFilter()
    weights: Weights = Weights()
    anchor_node_id: Id | None = Field(default=None, description="Id of a node: what is near it ranks higher.")


class GetNodesInput(ProjectInput, GetInput):
    """Nodes to read whole."""


class UpdateNodeInput(ProjectInput, UpdateInput):
    """What a node is to be from now on; what is not given stays as it is."""


class AppendNodeInput(ProjectInput, AppendInput):
    """A paragraph more for a node."""


class RoutedEventInput(AddEventInput):
    """Something that happened in a project, to be kept by the memory that the project has."""

    project_path: Project = Field(default=...)


class GetGraphInput(ProjectInput):
    """A look at a project's graph around a node."""

    node_id: Id = Field(description="Id of a node, as another tool returned it.")
    operation: Literal["neighbors", "shortest_path", "subgraph"] = Field(
        description="'neighbors': what it is joined to; 'shortest_path': how it leads to the target; 'subgraph': "
        "everything within max_hops."
    )
    target_node_id: Id | None = Field(default=None, description="The other end of a shortest_path.")
    max_hops: int = Field(default=2, ge=1, le=MAX_HOPS, description="How far shortest_path and subgraph go.")


class SpawnAgentInput(ProjectInput):
    """A task for an agent that somebody else runs."""

    task: Long = Field(description="What it is to do, complete: the agent knows nothing else of this conversation.")
    title: Label = Field(default="", description="A line for people.")
    agent: Annotated[str, StringConstraints(max_length=64)] = Field(
        default="", description="The kind of agent that is meant, if the runners here know several."
    )
    node_id: Id | None = Field(default=None, description="Id of the node that it is about.")
    max_attempts: int = Field(default=3, ge=1, le=10, description="How often it is tried before it has failed.")


class WaitForAgentsInput(ProjectInput):
    """Tasks to wait for."""

    task_ids: tuple[Uuid, ...] = Field(min_length=1, max_length=100, description="Ids that spawn_agent returned.")
    timeout_s: float = Field(
        default=20, ge=0, le=MAX_WAIT_S, description="Longest wait, in seconds; then it says what still runs."
    )


class TaskClaimInput(Input):
    """A runner that is ready for a task."""

    runner: Annotated[str, StringConstraints(min_length=1, max_length=100)] = Field(description="Its name.")
    project: Project | None = None
    agent: Annotated[str, StringConstraints(max_length=64)] = Field(
        default="", description="Only tasks for this kind of agent, and those for any."
    )
    lease_s: Seconds = 300


class HeldTaskInput(ProjectInput):
    """A task that the runner holds."""

    task_id: Uuid
    lease: Annotated[str, StringConstraints(min_length=1, max_length=64)] = Field(description="As task_claim gave it.")


class TaskExtendInput(HeldTaskInput):
    """A task that needs longer."""

    lease_s: Seconds = 300
    note: Annotated[str, StringConstraints(max_length=1000)] = Field(default="", description="How far it is.")


class TaskCompleteInput(HeldTaskInput):
    """A task that is done."""

    result: Annotated[str, StringConstraints(max_length=bounds.MAX_CONTENT)] = ""


class TaskFailInput(HeldTaskInput):
    """A task that failed."""

    error: Annotated[str, StringConstraints(min_length=1, max_length=bounds.MAX_TEXT)] = Field(description="Why.")
    retry: bool = Field(default=True, description="Try again, while attempts are left.")


class TaskListInput(ProjectInput):
    """Which tasks to show."""

    limit: int = Field(default=50, ge=1, le=1000, description="Most tasks, newest first.")
