"""Nodes that may be one thing: the verbs that propose, do and undo merges."""

from __future__ import annotations

from dataclasses import dataclass

from pydantic import Field

from pps.core.reports import Duplicate, Merge, MergePlan
from pps.memory import Memory
from pps.operations import inputs
from pps.operations.render import at, counted
from pps.operations.table import AnyVerb, Hints, Verb


class FindDuplicatesInput(inputs.Input):
    """How many."""

    limit: int = Field(default=50, ge=1, le=1_000, description="Most pairs, and most merges.")


class MergeNodesInput(inputs.Input):
    """Which two nodes are one thing."""

    keep: inputs.Id = Field(description="Id of the node that stays.")
    drop: inputs.Id = Field(description="Id of the node whose names, facts and mentions go over to it.")
    dry_run: bool = Field(default=True, description="True only says what would come of it.")


class UndoMergeInput(inputs.Input):
    """Which merge."""

    id: inputs.Uuid = Field(description="Of a merge, as merge_nodes and find_duplicates say it.")


@dataclass(frozen=True, slots=True)
class Duplicates:
    """Pairs that may be one thing, and the merges that were done, newest first."""

    duplicates: tuple[Duplicate, ...]
    merges: tuple[Merge, ...]


async def _find(memory: Memory, given: FindDuplicatesInput) -> Duplicates:
    merging = memory.records.merging
    return Duplicates(
        tuple(await merging.duplicates(limit=given.limit)), tuple(await merging.merges(limit=given.limit))
    )


async def _merge(memory: Memory, given: MergeNodesInput) -> MergePlan:
    return await memory.records.merging.merge(given.keep, given.drop, dry_run=given.dry_run)


async def _undo(memory: Memory, given: UndoMergeInput) -> Merge:
    return await memory.records.merging.undo(given.id)


def duplicates(view: Duplicates) -> str:
    """Return a line a pair, then a line a merge."""
    lines = [
        f"{one.keep_name} ({one.keep_kind}) [{one.keep}] · {one.drop_name} ({one.drop_kind}) [{one.drop}]: {one.why}"
        for one in view.duplicates
    ]
    return "\n".join([*(lines or ["No duplicates found."]), *(f"merge: {merge(one)}" for one in view.merges)])


def merge(value: Merge) -> str:
    """Return what was merged into what, and whether it still is."""
    return f"{value.drop_name} into {value.keep_name}{at(value.at)}, {value.state} [{value.id}]"


def plan(value: MergePlan) -> str:
    """Return what a merge does, or would do."""
    names = f", also {', '.join(value.aliases)}" if value.aliases else ""
    moved = f"{counted(value.facts, 'fact')} and {counted(value.mentions, 'mention')}"
    if value.dry_run:
        return (
            f"Would make one node: {value.name} ({value.kind}{names}); {moved} go over to it [{value.keep}]. Nothing "
            "was changed; call again with dry_run=false to do it."
        )
    return f"One node: {value.name} ({value.kind}{names}); {moved} went over to it [{value.keep}]. Undo: [{value.id}]"


MERGE_VERBS: tuple[AnyVerb, ...] = (
    Verb(
        "find_duplicates",
        "Nodes that may be one thing",
        "Pairs of nodes with the same name or with a name that is an alias of the other, and the merges done so far.",
        FindDuplicatesInput,
        Duplicates,
        _find,
        duplicates,
        Hints(read_only=True, idempotent=True),
    ),
    Verb(
        "merge_nodes",
        "Merge two nodes",
        "Let two nodes that are one thing be one: names, facts and mentions of the one go over to the other. By "
        "default a dry run: show that, and only then call again with dry_run=false. 'undo_merge' makes them two again.",
        MergeNodesInput,
        MergePlan,
        _merge,
        plan,
        Hints(destructive=True),
    ),
    Verb(
        "undo_merge",
        "Undo a merge",
        "Make two nodes of one again, exactly as they were; what the node got since the merge stays with it.",
        UndoMergeInput,
        Merge,
        _undo,
        merge,
        Hints(idempotent=False),
    ),
)
