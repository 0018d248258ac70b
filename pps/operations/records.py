"""Records: events that become titled nodes, changes of texts, and what they were before."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated

from pydantic import Field, JsonValue, StringConstraints

from pps.core import bounds
from pps.core.errors import InvalidRequest
from pps.core.values import EventReceipt
from pps.ingest.recorder import MAX_PATH, EventOptions
from pps.ingest.revising import Changes, HistoryEntry
from pps.memory import Memory
from pps.operations import inputs, outputs
from pps.operations.render import at, counted, redacted
from pps.operations.table import AnyVerb, Hints, Verb

WAIT_S = 2.0
"""How long a record is waited for before the answer is ``accepted``."""

Title = Annotated[str, StringConstraints(min_length=1, max_length=bounds.MAX_NAME)]
Content = Annotated[str, StringConstraints(min_length=1, max_length=bounds.MAX_CONTENT)]


class AddEventInput(inputs.Input):
    """Something that happened or was noted, to be kept as a record with a title."""

    content: Content = Field(description="The text, in Markdown. Its #tags and [[links]] are taken up.")
    title: str = Field(default="", max_length=bounds.MAX_NAME, description="Its first 80 characters if not given.")
    source: inputs.Label = Field(default="mcp", description="Where it came from: whisper, screenpipe, mcp, editor, …")
    source_ref: inputs.Label = Field(default="", description="Its id there; the same one again is stored once.")
    timestamp: Annotated[inputs.Moment, inputs.described_time("When it happened; now when not given.")] | None = None
    kind: str = Field(default="", max_length=64, description="What it is; by its source if not given.")
    parent_node_id: str = Field(
        default="", max_length=bounds.MAX_NAME, description="Id or title of the record that it is a part of."
    )
    tags: tuple[inputs.Tag, ...] = Field(
        default=(), max_length=bounds.MAX_TAGS, description="Beside the #tags of the text."
    )
    metadata: Mapping[str, JsonValue] = Field(default={}, description="Any fields of your own, as JSON.")
    project_path: str = Field(
        default="", max_length=MAX_PATH, description="Kept with it; whose memory it is goes by the connection."
    )
    session: inputs.Label = Field(default="", description="Id of this conversation; the source if not given.")
    actor: inputs.Label = Field(default="", description="Who wrote it, if more than one shares this memory.")

    def options(self) -> EventOptions:
        """Return what ``Records.add_event`` takes beside the content."""
        return {
            "title": self.title,
            "source": self.source,
            "source_ref": self.source_ref,
            "timestamp": self.timestamp,
            "kind": self.kind,
            "parent_node_id": self.parent_node_id,
            "tags": self.tags,
            "metadata": self.metadata,
            "project_path": self.project_path,
            "session": self.session,
            "actor": self.actor,
        }


class UpdateInput(inputs.Input):
    """What a text is to be from now on; what is not given stays as it is."""

    id: inputs.Id = Field(description="Of a record or of a turn.")
    content: Content | None = Field(default=None, description="The whole new text.")
    title: Title | None = Field(default=None, description="Of a record.")
    kind: Annotated[str, StringConstraints(min_length=1, max_length=64)] | None = None
    tags: tuple[inputs.Tag, ...] | None = Field(
        default=None, max_length=bounds.MAX_TAGS, description="All of them; the #tags of the text join them."
    )
    metadata: Mapping[str, JsonValue] | None = Field(default=None, description="Joined with a record's own fields.")
    actor: inputs.Label = Field(default="", description="Who changes it.")

    def changes(self) -> Changes:
        """Return what ``Records.update`` takes."""
        found: Changes = {"actor": self.actor}
        if self.content is not None:
            found["content"] = self.content
        if self.title is not None:
            found["title"] = self.title
        if self.kind is not None:
            found["kind"] = self.kind
        if self.tags is not None:
            found["tags"] = self.tags
        if self.metadata is not None:
            found["metadata"] = self.metadata
        return found


class AppendInput(inputs.Input):
    """A paragraph more for a text that is kept."""

    id: inputs.Id = Field(description="Of a record or of a turn.")
    content: Content = Field(description="What comes after what is there, as a paragraph of its own.")
    actor: inputs.Label = Field(default="", description="Who adds it.")


class HistoryInput(inputs.Input):
    """Whose versions."""

    id: inputs.Id = Field(description="Of a record or of a turn.")
    limit: int = Field(default=20, ge=1, le=1_000, description="Most versions, the newest first.")
    with_content: bool = Field(default=False, description="Each version's whole text too, not only what changed.")


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
    """What a text was, newest first."""

    id: str
    versions: tuple[VersionView, ...]


async def read_items(memory: Memory, ids: Sequence[str]) -> outputs.Items:
    """Return items whole; a record with its text, dated by it."""
    found = await memory.get(ids)
    texts = await memory.records.texts([item.uuid for item in found])
    return outputs.Items(tuple(outputs.item_view(item, texts.get(item.uuid)) for item in found))


async def add_event(memory: Memory, given: AddEventInput) -> EventReceipt:
    """Keep a record; its receipt within ``WAIT_S``."""
    if not given.content.strip():
        raise InvalidRequest("content", "must hold more than white space")
    return await memory.records.add_event(given.content, timeout_s=WAIT_S, **given.options())


async def update(memory: Memory, given: UpdateInput) -> EventReceipt:
    """Change a record or a turn; its receipt within ``WAIT_S``."""
    return await memory.records.update(given.id, timeout_s=WAIT_S, **given.changes())


async def append(memory: Memory, given: AppendInput) -> EventReceipt:
    """Add to a record or a turn; its receipt within ``WAIT_S``."""
    return await memory.records.append(given.id, given.content, actor=given.actor, timeout_s=WAIT_S)


async def _history(memory: Memory, given: HistoryInput) -> HistoryView:
    found = await memory.records.history(given.id, limit=given.limit)
    return HistoryView(given.id, tuple(_version(one, with_content=given.with_content) for one in found))


def _version(entry: HistoryEntry, *, with_content: bool) -> VersionView:
    one = entry.version
    return VersionView(
        one.number,
        one.change,
        one.at,
        one.tags,
        title=one.title or None,
        actor=one.actor or None,
        diff=entry.diff or None,
        content=one.content if with_content else None,
    )


def event(value: EventReceipt) -> str:
    """Return what became of a record or of a change, in a few lines."""
    said = {
        "done": f"Kept as version {value.version}.",
        "accepted": "Safe on disk; graph and indexes follow in a moment.",
        "duplicate": "Known already; nothing was stored twice.",
        "failed": "Kept in the journal, but it could not be taken into the graph; `job_status` says why.",
    }[value.state]
    title = f" “{value.title}”" if value.title else ""
    tags = f" Tags: {', '.join(value.tags_applied)}." if value.tags_applied else ""
    links = f" {counted(value.edges_created, 'relation')} made." if value.edges_created else ""
    skipped = "".join(f"\nLeft out: {one.what}: {one.why}" for one in value.skipped)
    return f"{said}{title}{tags}{links} [{value.node_id or value.turn_id}]{redacted(value.redacted)}{skipped}"


def history(view: HistoryView) -> str:
    """Return each version's heading, and what changed."""
    return "\n\n".join("\n".join(_lines(one)) for one in view.versions)


def _lines(one: VersionView) -> Sequence[str]:
    by = f" by {one.actor}" if one.actor else ""
    head = f"version {one.version}: {one.change}{by}{at(one.at)}"
    return [head, *([one.diff] if one.diff else []), *([one.content] if one.content else [])]


RECORD_VERBS: tuple[AnyVerb, ...] = (
    Verb(
        "add_event",
        "Keep a record",
        "Keep something that happened or was noted as a record with a title, a kind, tags, a parent and [[links]] to "
        "other records; a link to a title that does not exist yet is made when it appears. For what is said in "
        "conversation use 'remember'.",
        AddEventInput,
        EventReceipt,
        add_event,
        event,
        Hints(),
    ),
    Verb(
        "update",
        "Change a record or a turn",
        "Give a record or a turn another text, title, kind, tags or fields. What it was stays as a version, which "
        "'history' shows.",
        UpdateInput,
        EventReceipt,
        update,
        event,
        Hints(destructive=False, idempotent=True),
    ),
    Verb(
        "append",
        "Add to a record or a turn",
        "Add a paragraph to the text of a record or a turn. What it was stays as a version.",
        AppendInput,
        EventReceipt,
        append,
        event,
        Hints(),
    ),
    Verb(
        "history",
        "What a text was before",
        "The versions of a record or a turn, newest first: when, by whom, and what changed as a unified diff.",
        HistoryInput,
        HistoryView,
        _history,
        history,
        Hints(read_only=True, idempotent=True),
    ),
)
