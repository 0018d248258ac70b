"""Records: events that become titled nodes, changes of texts, what they were before, and nodes that are one thing."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pps.core.errors import InvalidRequest
from pps.core.reports import Merge, MergePlan
from pps.core.values import EventReceipt
from pps.memory import Memory
from pps.operations import inputs, outputs, words
from pps.operations.model_views import continued_versions, history_for_model
from pps.operations.pages import version_cursor
from pps.operations.table import ADDS, ERASES, READS, RECORDS, Hints

WAIT_S = 2.0
"""How long a record is waited for before the answer is ``accepted``."""


async def keep_event(memory: Memory, request: inputs.AddEventInput, **more: Any) -> EventReceipt:
    """Keep a record; its receipt within ``WAIT_S``."""
    if not request.content.strip():
        raise InvalidRequest("content", "must hold more than white space")
    options: Mapping[str, Any] = inputs.options(request, "content", "project")
    return await memory.records.add_event(request.content, timeout_s=WAIT_S, **options, **more)


async def change(memory: Memory, request: inputs.UpdateInput) -> EventReceipt:
    """Change a record or a turn; its receipt within ``WAIT_S``."""
    named = inputs.options(request, "id", "project")
    changes: Mapping[str, Any] = {name: value for name, value in named.items() if value is not None}
    return await memory.records.update(request.id, timeout_s=WAIT_S, **changes)


async def add(memory: Memory, request: inputs.AppendInput) -> EventReceipt:
    """Add to a record or a turn; its receipt within ``WAIT_S``."""
    return await memory.records.append(
        request.id, request.content, actor=request.actor, timeout_s=WAIT_S
    )


@RECORDS.operation(
    "Save an event or a note",
    words.event,
    ADDS,
    command="event",
    examples=('pps event ana "The light is out, see [[Harbour]]. #maintenance" --source whisper',),
)
async def add_event(memory: Memory, request: inputs.AddEventInput) -> EventReceipt:
    """Use it to save an event or a note as a record.

    For what is said in a conversation use 'remember'. A record has a title, a kind, tags, a parent
    and [[links]] to other records; a link to a title that does not exist yet is made when a record
    of that title appears. Returns the record's id.
    """
    return await keep_event(memory, request)


@RECORDS.operation(
    "Change a record or a turn",
    words.event,
    Hints(destructive=False, idempotent=True),
    command="update",
    examples=('pps update ana 1b4e28ba --text "The light is on again."',),
)
async def update(memory: Memory, request: inputs.UpdateInput) -> EventReceipt:
    """Use it to change the text, title, kind, tags or fields of a record or a turn.

    The old state stays as a version, which 'history' shows. Returns the number of the new version.
    """
    return await change(memory, request)


@RECORDS.operation(
    "Add to a record or a turn",
    words.event,
    ADDS,
    command="append",
    examples=('pps append ana 1b4e28ba "It was repaired at noon."',),
)
async def append(memory: Memory, request: inputs.AppendInput) -> EventReceipt:
    """Use it to add a paragraph to the text of a record or a turn.

    The old text stays as a version.
    """
    return await add(memory, request)


@RECORDS.operation(
    "List a text's versions",
    words.history,
    READS,
    command="history",
    examples=("pps history ana 1b4e28ba --whole",),
    for_model=history_for_model,
)
async def history(memory: Memory, request: inputs.HistoryInput) -> outputs.HistoryView:
    """Use it to see how a record or a turn changed.

    Returns its versions, newest first: when, by whom, and a diff.

    It answers a page at a time, and a long text in parts: pass 'next_cursor' as 'cursor' for the
    next.
    """
    start = version_cursor(request.cursor)
    entries = await memory.records.history(
        request.id, limit=request.limit, newest=start[0] if start else None
    )
    versions = [outputs.version_view(entry, with_content=request.with_content) for entry in entries]
    if start:
        versions = continued_versions(versions, *start)
    has_older = bool(entries) and entries[-1].version.number > 1
    next_cursor = f"{entries[-1].version.number - 1}.0" if has_older else None
    return outputs.HistoryView(request.id, tuple(versions), next_cursor)


@RECORDS.operation(
    "Find duplicate nodes",
    words.duplicates,
    READS,
    command="merges list",
    examples=("pps merges list ana",),
)
async def find_duplicates(
    memory: Memory, request: inputs.FindDuplicatesInput
) -> outputs.Duplicates:
    """Use it to find nodes that may be the same person, place or thing.

    Returns pairs with the same name, or where one's name is an alias of the other, and the merges
    done so far.
    """
    merging = memory.records.merging
    limit = request.limit
    return outputs.Duplicates(
        tuple(await merging.duplicates(limit=limit)), tuple(await merging.merges(limit=limit))
    )


@RECORDS.operation(
    "Merge two nodes",
    words.plan,
    ERASES,
    command="merges apply",
    examples=("pps merges apply ana 1b4e28ba 6fa459ea --yes",),
)
async def merge_nodes(memory: Memory, request: inputs.MergeNodesInput) -> MergePlan:
    """Use it when two nodes are the same person, place or thing.

    Names, facts and mentions of 'drop' move to 'keep'. By default it is a dry run: show what it
    returns, and only then call again with dry_run=false. 'undo_merge' separates them again.
    """
    return await memory.records.merging.merge(request.keep, request.drop, dry_run=request.dry_run)


@RECORDS.operation(
    "Undo a merge",
    words.merge,
    Hints(),
    command="merges undo",
    examples=("pps merges undo ana 1b4e28ba-2fa1-5d2b-883f-0016d3cca427",),
)
async def undo_merge(memory: Memory, request: inputs.UndoMergeInput) -> Merge:
    """Use it to separate two merged nodes, exactly as they were.

    What the node gained since the merge stays with it.
    """
    return await memory.records.merging.undo(request.id)
