"""Looking at an entity's graph without a question: around a node, and what changed between two moments."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated

from pydantic import Field

from pps.core.text import counted
from pps.ingest.given_input import Moment, Name, described_time
from pps.memory import Memory
from pps.operations import words
from pps.operations.command_line import argument
from pps.operations.inputs import Input
from pps.operations.outputs import FactView, NodeView, fact_view, node_view
from pps.operations.table import READS, RECORDS


class AroundInput(Input):
    """From where, and how far."""

    node: Name | None = Field(
        default=None,
        description="Name or id of a node; your own node when not given.",
        json_schema_extra=argument(rest=True),
    )
    max_hops: int = Field(default=1, ge=1, le=4, description="How many facts away, at most.")
    limit: int = Field(
        default=100, ge=1, le=999, description="Most nodes beside it, the nearest first."
    )
    as_of: Annotated[Moment | None, described_time("What held at that time instead of now.")] = None


class ChangesInput(Input):
    """Between which moments."""

    since: Annotated[Moment, described_time("Changes at that time or later.")]
    until: Annotated[Moment, described_time("Changes before that time.")]
    about: Name | None = Field(
        default=None, description="Name or id of a node: only facts that join it."
    )
    limit: int = Field(
        default=200, ge=1, le=1_000, description="Most that began, and most that ended."
    )


@dataclass(frozen=True, slots=True)
class Around:
    """A node with what is near it, and the facts and relations among them; ``hops`` is each node's distance."""

    node: str
    nodes: tuple[NodeView, ...]
    facts: tuple[FactView, ...]
    hops: Mapping[str, int]
    more: bool


@dataclass(frozen=True, slots=True)
class Replacement:
    """A fact that ended, and the one that took its place."""

    old: FactView
    new: FactView


@dataclass(frozen=True, slots=True)
class ChangesView:
    """What began, ended and was replaced between two moments, by time; ``more`` means that there is more."""

    opened: tuple[FactView, ...]
    closed: tuple[FactView, ...]
    replaced: tuple[Replacement, ...]
    more: bool


def around_words(view: Around) -> str:
    lines = [f"{view.hops[one.id]}: {one.name} ({one.kind}) [{one.id}]" for one in view.nodes]
    lines += [words.fact_line(one) for one in view.facts]
    return "\n".join([*lines, *(["… and more nodes"] if view.more else [])])


def changes_words(view: ChangesView) -> str:
    counts = ((view.opened, "began"), (view.closed, "ended"), (view.replaced, "replaced"))
    lines = [", ".join(f"{counted(len(some), 'fact')} {what}" for some, what in counts) + "."]
    lines += [f"+ {words.fact_line(one)}" for one in view.opened]
    lines += [f"- {words.fact_line(one)}" for one in view.closed]
    lines += [
        f"- {words.fact_line(one.old)}\n  + {words.fact_line(one.new)}" for one in view.replaced
    ]
    return "\n".join(
        [*lines, *(["More: ask for a shorter time or a higher limit."] if view.more else [])]
    )


@RECORDS.operation(
    "Look around a node",
    around_words,
    READS,
    command="around",
    examples=("pps around ana", "pps around ana Priya", "pps around ana 1b4e28ba --max-hops 2"),
)
async def graph_around(memory: Memory, given: AroundInput) -> Around:
    """Use it to see what a node is joined to: people, places and things by facts and relations that hold now.

    Begins at your own node if none is named; a name that several nodes have is refused with their ids. Returns the nodes, nearest first, with their distance, and the facts among them.
    """
    node = await memory.graph.find(given.node) if given.node else memory.graph.own
    found = await memory.graph.around(
        node, max_hops=given.max_hops, limit=given.limit + 1, as_of=given.as_of
    )
    nodes = sorted(found.nodes, key=lambda one: found.hops[one.uuid])
    shown = {one.uuid: one.name for one in nodes[: given.limit + 1]}
    facts = tuple(
        fact_view(one, shown) for one in found.facts if one.subject in shown and one.object in shown
    )
    hops = {uuid: found.hops[uuid] for uuid in shown}
    return Around(
        next(iter(shown)),
        tuple(map(node_view, nodes[: len(shown)])),
        facts,
        hops,
        len(nodes) > len(shown),
    )


@RECORDS.operation(
    "What changed between two moments",
    changes_words,
    READS,
    command="changes",
    examples=(
        "pps changes ana --since 2026-01-01 --until 2026-02-01",
        "pps changes ana --since 2026-01-01 --until 2026-02-01 --about Lisbon",
    ),
)
async def changes(memory: Memory, given: ChangesInput) -> ChangesView:
    """Use it to tell what is different: which facts began, ended, or were replaced between two times.

    Returns facts by time, of one node or of all. For what held at one time use 'timeline' with 'as_of'.
    """
    found = await memory.graph.changes(
        given.since, given.until, about=given.about or "", limit=given.limit
    )
    return ChangesView(
        tuple(fact_view(one, found.names) for one in found.opened),
        tuple(fact_view(one, found.names) for one in found.closed),
        tuple(
            Replacement(fact_view(old, found.names), fact_view(new, found.names))
            for old, new in found.replaced
        ),
        found.more,
    )
