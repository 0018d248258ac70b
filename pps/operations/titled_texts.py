"""Events that become titled records, changes of texts, their versions, and merges of nodes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Annotated, Any

from pydantic import Field, JsonValue, StringConstraints

from pps.core import bounds
from pps.core.errors import InvalidRequest
from pps.core.reports import Duplicate, Merge, MergePlan
from pps.core.text import counted
from pps.core.values import EventReceipt
from pps.entities.paths import MAX_PATH
from pps.ingest.given_input import Input, Moment, Name, described_time
from pps.ingest.revising import HistoryEntry
from pps.memory import Memory
from pps.operations.inputs import (
    AT_OPTION,
    TAG_OPTION,
    TEXT_ARGUMENT,
    YES_OPTION,
    Content,
    Id,
    Label,
    SourcedText,
    Tags,
    Title,
    argument,
    json_text,
    option,
    options,
    unoffered,
)
from pps.operations.item_views import model_time, redacted_text, time_in_brackets
from pps.operations.pages import (
    EMPTY,
    NOTHING_CHANGED,
    TextPart,
    as_json,
    json_size,
    lay_out,
    version_cursor,
)
from pps.operations.table import ADDS, ERASES, READS, RECORDS, Hints, ModelView

WAIT_S = 2.0
"""How long a record is waited for before the answer is ``accepted``."""


class AddEventInput(SourcedText):
    """Something that happened or was noted, to be kept as a record with a title."""

    content: Content = Field(
        description="Text, in Markdown. Its #tags become tags, its [[links]] relations.",
        json_schema_extra=TEXT_ARGUMENT,
    )
    title: str = Field(
        default="",
        max_length=bounds.MAX_NAME,
        description="Title. Default: the first 80 characters of the text.",
    )
    source: Label = Field(
        default="mcp",
        description="Where the text came from, such as whisper, screenpipe, mcp or editor.",
        json_schema_extra=option("--source", default="editor"),
    )
    source_ref: Label = Field(
        default="",
        description="Id at its source. The same id again is stored once.",
        json_schema_extra=option("--ref"),
    )
    timestamp: Annotated[Moment | None, described_time("When it happened; now when not given.")] = (
        Field(default=None, json_schema_extra=AT_OPTION)
    )
    kind: str = Field(
        default="", max_length=64, description="Kind of record. Default: chosen by its source."
    )
    parent_node_id: str = Field(
        default="",
        max_length=bounds.MAX_NAME,
        description="Id or title of the record that this is a part of.",
        json_schema_extra=option("--parent"),
    )
    tags: Tags = Field(
        default=(),
        description="Tags, in addition to the #tags in the text.",
        json_schema_extra=TAG_OPTION,
    )
    metadata: Mapping[str, JsonValue] = Field(
        default={},
        description="Any fields of your own, as JSON.",
        json_schema_extra=json_text("--metadata"),
    )
    project_path: str = Field(
        default="",
        max_length=MAX_PATH,
        description="Kept with the record. The memory is that of the connection, whatever path is "
        "given.",
        json_schema_extra=unoffered(),
    )
    session: Label = Field(
        default="",
        description="Id of this conversation. Default: the source.",
        json_schema_extra=unoffered(),
    )
    actor: Label = Field(
        default="", description="Name of the writer, if more than one shares this memory."
    )


class UpdateInput(Input):
    """What a text is to be from now on; what is not given stays as it is."""

    id: Name = Field(
        description="Id of a record or of a turn, or the title of a record.",
        json_schema_extra=argument(),
    )
    content: Content | None = Field(
        default=None,
        description="The whole new text.",
        json_schema_extra=option("--text", stdin=True),
    )
    title: Title | None = Field(default=None, description="New title of a record.")
    kind: Annotated[str, StringConstraints(min_length=1, max_length=64)] | None = None
    tags: Tags | None = Field(
        default=None,
        description="All tags. The #tags in the text are added.",
        json_schema_extra=TAG_OPTION,
    )
    metadata: Mapping[str, JsonValue] | None = Field(
        default=None,
        description="Fields to set; a record's other fields stay.",
        json_schema_extra=json_text("--metadata"),
    )
    actor: Label = Field(default="", description="Who changes it.")


class AppendInput(Input):
    """A paragraph more for a text that is kept."""

    id: Name = Field(
        description="Id of a record or of a turn, or the title of a record.",
        json_schema_extra=argument(),
    )
    content: Content = Field(
        description="Paragraph to add at the end.",
        json_schema_extra=TEXT_ARGUMENT,
    )
    actor: Label = Field(default="", description="Who adds it.")


class HistoryInput(Input):
    """The text whose versions are wanted."""

    id: Name = Field(
        description="Id of a record or of a turn, or the title of a record.",
        json_schema_extra=argument(),
    )
    limit: int = Field(default=20, ge=1, le=1_000, description="Maximum versions, newest first.")
    cursor: str = Field(default="", max_length=100, description="'next_cursor' of the page before.")
    with_content: bool = Field(
        default=False,
        description="True also returns the whole text of each version.",
        json_schema_extra=option("--whole"),
    )


class FindDuplicatesInput(Input):
    """How many pairs."""

    limit: int = Field(default=50, ge=1, le=1_000, description="Maximum pairs, and maximum merges.")


class MergeNodesInput(Input):
    """Which two nodes are one thing."""

    keep: Name = Field(
        description="Id or name of the node that stays.", json_schema_extra=argument()
    )
    drop: Name = Field(
        description="Id or name of the node whose names, facts and mentions go over to it.",
        json_schema_extra=argument(),
    )
    dry_run: bool = Field(
        default=True,
        description="True only shows the result; nothing is merged.",
        json_schema_extra=YES_OPTION,
    )


class UndoMergeInput(Input):
    """Which merge."""

    id: Id = Field(
        description="Id of a merge, from {merge_nodes} or {find_duplicates}.",
        json_schema_extra=argument(),
    )


def event_text(value: EventReceipt) -> str:
    state_text = {
        "done": f"Kept as version {value.version}.",
        "accepted": "Safe on disk; graph and indexes follow in a moment.",
        "duplicate": "Known already; nothing was stored twice.",
        "failed": (
            "Kept in the journal, but it could not be taken into the graph; `job_status` says why."
        ),
    }[value.state]
    title = f" “{value.title}”" if value.title else ""
    tags = f" Tags: {', '.join(value.tags_applied)}." if value.tags_applied else ""
    links = f" {counted(value.edges_created, 'relation')} made." if value.edges_created else ""
    skipped = "".join(
        f"\nLeft out: {skipped_item.what}: {skipped_item.why}" for skipped_item in value.skipped
    )
    return (
        f"{state_text}{title}{tags}{links} "
        f"[{value.node_id or value.turn_id}]{redacted_text(value.redacted)}{skipped}"
    )


async def keep_event(memory: Memory, request: AddEventInput, **more: Any) -> EventReceipt:
    """Keep a record; its receipt within ``WAIT_S``."""
    if not request.content.strip():
        raise InvalidRequest("content", "must hold more than white space")
    arguments: Mapping[str, Any] = options(request, "content", "project")
    return await memory.records.add_event(request.content, timeout_s=WAIT_S, **arguments, **more)


async def change(memory: Memory, request: UpdateInput) -> EventReceipt:
    """Change a record or a turn; its receipt within ``WAIT_S``."""
    named = options(request, "id", "project")
    changes: Mapping[str, Any] = {name: value for name, value in named.items() if value is not None}
    return await memory.records.update(request.id, timeout_s=WAIT_S, **changes)


async def add(memory: Memory, request: AppendInput) -> EventReceipt:
    """Add to a record or a turn; its receipt within ``WAIT_S``."""
    return await memory.records.append(
        request.id, request.content, actor=request.actor, timeout_s=WAIT_S
    )


@RECORDS.operation(
    "Save an event or a note",
    event_text,
    ADDS,
    command="event",
    examples=('pps event ana "The light is out, see [[Harbour]]. #maintenance" --source whisper',),
)
async def add_event(memory: Memory, request: AddEventInput) -> EventReceipt:
    """Use it to save an event or a note as a record.

    For what is said in a conversation use {remember}. A record has a title, a kind, tags, a parent
    and [[links]] to other records; a link to a title that does not exist yet is made when a record
    of that title appears. Returns the record's id.
    """
    return await keep_event(memory, request)


@RECORDS.operation(
    "Change a record or a turn",
    event_text,
    Hints(destructive=False, idempotent=True),
    command="update",
    examples=('pps update ana 1b4e28ba --text "The light is on again."',),
)
async def update(memory: Memory, request: UpdateInput) -> EventReceipt:
    """Use it to change the text, title, kind, tags or fields of a record or a turn.

    The old state stays as a version, which {history} shows. Returns the number of the new version.
    """
    return await change(memory, request)


@RECORDS.operation(
    "Add to a record or a turn",
    event_text,
    ADDS,
    command="append",
    examples=('pps append ana 1b4e28ba "It was repaired at noon."',),
)
async def append(memory: Memory, request: AppendInput) -> EventReceipt:
    """Use it to add a paragraph to the text of a record or a turn.

    The old text stays as a version.
    """
    return await add(memory, request)


@dataclass(frozen=True, slots=True)
class VersionView:
    """A version; ``diff`` is a unified diff to the one before it, absent for the first."""

    version: int
    change: str
    at: datetime
    tags: tuple[str, ...]
    title: str | None = None
    actor: str | None = None
    diff: str | None = None
    content: str | None = None


@dataclass(frozen=True, slots=True)
class HistoryView:
    """What a text was, newest first.

    ``next_cursor`` continues with older versions where there are more.
    """

    id: str
    versions: tuple[VersionView, ...]
    next_cursor: str | None = None


def version_view(entry: HistoryEntry, *, with_content: bool) -> VersionView:
    version = entry.version
    content = entry.version.content if with_content else None
    return VersionView(
        version.number,
        version.change,
        version.at,
        version.tags,
        version.title or None,
        version.actor or None,
        entry.diff or None,
        content,
    )


def history_text(view: HistoryView) -> str:
    return "\n\n".join("\n".join(_version_lines(version)) for version in view.versions)


def _version_lines(version: VersionView) -> Sequence[str]:
    by = f" by {version.actor}" if version.actor else ""
    head = f"version {version.version}: {version.change}{by}{time_in_brackets(version.at)}"
    return [
        head,
        *([version.diff] if version.diff else []),
        *([version.content] if version.content else []),
    ]


@dataclass(frozen=True, slots=True)
class VersionLines:
    """A version of a text; ``part`` is set if the page has only a part of its diff and content."""

    version: int
    change: str
    at: str
    actor: str | None = None
    title: str | None = None
    tags: tuple[str, ...] | None = None
    diff: str | None = None
    content: str | None = None
    part: TextPart | None = None


@dataclass(frozen=True, slots=True)
class HistoryLines:
    """A page of versions, newest first; pass ``next_cursor`` as ``cursor`` for what follows."""

    versions: tuple[VersionLines, ...]
    id: str
    next_cursor: str | None = None


def continued_versions(
    versions: Sequence[VersionView], number: int, begins: int
) -> list[VersionView]:
    """Return the versions of a page, the first from a character of its diff and content on.

    Raises:
        InvalidRequest: There is no such version, or it is shorter.
    """
    first = versions[0] if versions else None
    diff, content = (first.diff or "", first.content or "") if first else ("", "")
    if first is None or first.version != number or begins > len(diff) + len(content):
        raise InvalidRequest(
            "cursor", "the text is another than that of the page before; call again without it"
        )
    content = content[max(0, begins - len(diff)) :]
    diff = diff[begins:]
    return [replace(first, diff=diff or None, content=content or None), *versions[1:]]


def history_for_model(view: HistoryView, request: Input) -> ModelView:
    """Return as much of the versions as has room, and the cursor that continues after it."""
    start = version_cursor(getattr(request, "cursor", ""))
    bodies = [f"{entry.diff or ''}{entry.content or ''}" for entry in view.versions]

    def line(index: int, part: TextPart) -> VersionLines:
        return _version_line(view.versions[index], part)

    def size_of(index: int, part: TextPart) -> int:
        return json_size(as_json(line(index, part)))

    layout = lay_out(bodies, start[1] if start else 0, size_of)
    lines = [line(index, part) for index, part in enumerate(layout.parts)]
    next_cursor = view.next_cursor
    if layout.next_index is not None:
        next_cursor = f"{view.versions[layout.next_index].version}.{layout.next_begins}"
    head = f"{counted(len(lines), 'version')} of [{view.id}], newest first:"
    text = "\n\n".join([head, *("\n".join(_version_text_for_model(line)) for line in lines)])
    if next_cursor:
        text += f"\n\nMore follows: call again with cursor={next_cursor}"
    return ModelView(HistoryLines(tuple(lines), view.id, next_cursor), text)


def _version_line(entry: VersionView, part: TextPart) -> VersionLines:
    """Return a version with the part's number of characters of its diff and then its content."""
    diff = entry.diff or ""
    content = entry.content or ""
    count = part.ends - part.begins
    return VersionLines(
        entry.version,
        entry.change,
        model_time(entry.at) or "",
        actor=entry.actor,
        title=entry.title,
        tags=entry.tags or None,
        diff=diff[:count] if diff else None,
        content=content[: max(0, count - len(diff))] if content else None,
        part=part.unless_whole,
    )


def _version_text_for_model(line: VersionLines) -> Iterator[str]:
    by = f" by {line.actor}" if line.actor else ""
    tags = f", tags {', '.join(line.tags)}" if line.tags else ""
    title = f", “{line.title}”" if line.title else ""
    yield f"version {line.version}: {line.change}{by} ({line.at}){title}{tags}"
    if line.part:
        yield f"({line.part.words()} of its diff and text)"
    yield from filter(None, (line.diff, line.content))


@RECORDS.operation(
    "List a text's versions",
    history_text,
    READS,
    command="history",
    examples=("pps history ana 1b4e28ba --whole",),
    for_model=history_for_model,
)
async def history(memory: Memory, request: HistoryInput) -> HistoryView:
    """Use it to see how a record or a turn changed.

    Returns its versions, newest first: when, by whom, and a diff.

    It answers a page at a time, and a long text in parts: pass 'next_cursor' as {cursor} for the
    next.
    """
    start = version_cursor(request.cursor)
    entries = await memory.records.history(
        request.id, limit=request.limit, newest=start[0] if start else None
    )
    versions = [version_view(entry, with_content=request.with_content) for entry in entries]
    if start:
        versions = continued_versions(versions, *start)
    has_older = bool(entries) and entries[-1].version.number > 1
    next_cursor = f"{entries[-1].version.number - 1}.0" if has_older else None
    return HistoryView(request.id, tuple(versions), next_cursor)


@dataclass(frozen=True, slots=True)
class Duplicates:
    """Pairs that may be one thing, and the merges that were done, newest first."""

    duplicates: tuple[Duplicate, ...]
    merges: tuple[Merge, ...]


def duplicates_text(view: Duplicates) -> str:
    lines = [
        f"{duplicate.keep_name} ({duplicate.keep_kind}) [{duplicate.keep}] · {duplicate.drop_name} "
        f"({duplicate.drop_kind}) [{duplicate.drop}]: {duplicate.why}"
        for duplicate in view.duplicates
    ]
    return "\n".join(
        [
            *(lines or [EMPTY["find_duplicates"]]),
            *(f"merge: {merge_text(merge_view)}" for merge_view in view.merges),
        ]
    )


def merge_text(value: Merge) -> str:
    names = f"{value.drop_name} into {value.keep_name}"
    return f"{names}{time_in_brackets(value.at)}, {value.state} [{value.id}]"


@RECORDS.operation(
    "Find duplicate nodes",
    duplicates_text,
    READS,
    command="merges list",
    examples=("pps merges list ana",),
)
async def find_duplicates(memory: Memory, request: FindDuplicatesInput) -> Duplicates:
    """Use it to find nodes that may be the same person, place or thing.

    Returns pairs with the same name, or where one's name is an alias of the other, and the merges
    done so far.
    """
    merging = memory.records.merging
    limit = request.limit
    return Duplicates(
        tuple(await merging.duplicates(limit=limit)), tuple(await merging.merges(limit=limit))
    )


def merge_plan_text(value: MergePlan) -> str:
    names = f", also {', '.join(value.aliases)}" if value.aliases else ""
    moved = f"{counted(value.facts, 'fact')} and {counted(value.mentions, 'mention')}"
    if value.dry_run:
        return (
            f"Would make one node: {value.name} ({value.kind}{names}); {moved} go over to it "
            f"[{value.keep}]. {NOTHING_CHANGED}"
        )
    return (
        f"One node: {value.name} ({value.kind}{names}); {moved} went over to it [{value.keep}]. "
        f"Undo: [{value.id}]"
    )


@RECORDS.operation(
    "Merge two nodes",
    merge_plan_text,
    ERASES,
    command="merges apply",
    examples=("pps merges apply ana 1b4e28ba 6fa459ea --yes",),
)
async def merge_nodes(memory: Memory, request: MergeNodesInput) -> MergePlan:
    """Use it when two nodes are the same person, place or thing.

    Names, facts and mentions of {drop} move to {keep}. By default it is a dry run: show what it
    returns, and only then call again with {dry_run=false}. {undo_merge} separates them again.
    """
    return await memory.records.merging.merge(request.keep, request.drop, dry_run=request.dry_run)


@RECORDS.operation(
    "Undo a merge",
    merge_text,
    Hints(),
    command="merges undo",
    examples=("pps merges undo ana 1b4e28ba-2fa1-5d2b-883f-0016d3cca427",),
)
async def undo_merge(memory: Memory, request: UndoMergeInput) -> Merge:
    """Use it to separate two merged nodes, exactly as they were.

    What the node gained since the merge stays with it.
    """
    return await memory.records.merging.undo(request.id)
