"""Remembering a text, listing facts in order of time, and reading items whole."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC
from typing import Annotated, Any, Literal

from pydantic import Field, JsonValue

from pps.context.lines import span
from pps.core import bounds
from pps.core.reports import TimelinePage, timeline_cursor
from pps.core.text import counted
from pps.core.time import shown
from pps.core.values import Fact, Receipt, Skipped, Turn
from pps.ingest.drafts import Extraction, RememberOptions
from pps.ingest.given_input import FactInput, Input, Moment, Name, NodeInput, described_time
from pps.memory import Memory
from pps.operations.inputs import (
    AT_OPTION,
    TAG_OPTION,
    TEXT_ARGUMENT,
    Content,
    Label,
    Names,
    SourcedText,
    Tags,
    argument,
    json_file,
    option,
    options,
    unoffered,
)
from pps.operations.item_views import (
    EpisodeView,
    FactLine,
    FactView,
    ItemView,
    Later,
    NodeView,
    TurnView,
    fact_line,
    fact_line_view,
    fact_text,
    fact_view,
    item_view,
    later_view,
    model_time,
    redacted_text,
    successor_mark,
    time_in_brackets,
)
from pps.operations.pages import (
    EMPTY,
    ItemCursor,
    TextPart,
    as_json,
    digest,
    fitting,
    item_cursor,
    json_size,
    lay_out,
    with_next_page,
)
from pps.operations.table import ADDS, CORE, READS, ModelView

_MOST_EPISODES = 10
_MOST_BESIDE = 4_000
"""Characters of a node's own fields that stand beside its text.

More of them are read after it, page by page.
"""


REMEMBER_WAIT_S = 2.0
"""How long ``remember`` waits for graph and indexes before it answers ``accepted``."""


class RememberInput(SourcedText):
    """A text to keep for good, with what you read in it."""

    content: Content = Field(
        description="The text as said or written; kept word for word.",
        json_schema_extra=TEXT_ARGUMENT,
    )
    nodes: tuple[NodeInput, ...] = Field(
        default=(),
        max_length=bounds.MAX_NODES,
        description="People, places and things that the text mentions. List those that you read in "
        "it.",
        json_schema_extra=json_file("--given"),
    )
    facts: tuple[FactInput, ...] = Field(
        default=(),
        max_length=bounds.MAX_FACTS,
        description=(
            "Facts that the text states, one sentence each. A changed fact names the old "
            "one in 'invalidates'."
        ),
        json_schema_extra=json_file("--given"),
    )
    role: Literal["user", "assistant", "system", "tool"] = Field(
        default="user", description="Who spoke."
    )
    actor: Label = Field(
        default="", description="Name of the speaker, if more than one shares this memory."
    )
    session: Label = Field(
        default="", description="Id of this conversation; turns of one session are neighbours."
    )
    source: Label = Field(
        default="mcp",
        description="Where the text came from.",
        json_schema_extra=unoffered(default="cli"),
    )
    source_ref: Label = Field(
        default="",
        description="Id of the text at its source. The same id again is stored once.",
        json_schema_extra=unoffered(),
    )
    occurred_at: Annotated[
        Moment | None, described_time("When it was said; now when not given.")
    ] = Field(default=None, json_schema_extra=AT_OPTION)
    kind: Label = Field(
        default="turn",
        description="'turn', or 'summary' for a summary of what went before.",
        json_schema_extra=unoffered(),
    )
    tags: Tags = Field(
        default=(),
        description="Tags, in addition to the #tags in the text.",
        json_schema_extra=TAG_OPTION,
    )
    extraction: Extraction | None = Field(
        default=None,
        description="'none' keeps only the text. Default: the memory's setting.",
    )
    wait: Literal["done", "journal"] = Field(
        default="done",
        description=("'journal' answers when the text is on disk, 'done' when it can be recalled."),
        json_schema_extra=unoffered(),
    )


class TimelineInput(Input):
    """Which facts, in order of the time since which they hold."""

    id: Name | None = Field(
        default=None,
        description="Id or name of a node: only facts that join it.",
        json_schema_extra=option("--about", rest=True),
    )
    relation: Name | None = Field(
        default=None, description="Only facts of this relation, such as LIVES_IN."
    )
    as_of: Annotated[Moment | None, described_time("Only what held at that time.")] = None
    after: Annotated[Moment | None, described_time("Only facts that began then or later.")] = None
    before: Annotated[Moment | None, described_time("Only facts that began before.")] = None
    limit: int = Field(default=50, ge=1, le=1000, description="Maximum facts on a page.")
    cursor: str = Field(default="", max_length=500, description="'next_cursor' of the page before.")


class GetInput(Input):
    """Ids that another operation returned."""

    ids: Names = Field(
        description=(
            "Ids of turns, facts, nodes or episodes, or their first characters as a pack shows "
            "them, or titles."
        ),
        json_schema_extra=argument(),
    )
    cursor: str = Field(
        default="",
        max_length=100,
        description="'next_cursor' of the page before, with the same ids.",
        json_schema_extra=unoffered(),
    )


def receipt_text(value: Receipt) -> str:
    state_text = {
        "done": "Remembered.",
        "accepted": "Safe on disk; graph and indexes follow in a moment.",
        "duplicate": "Known already; nothing was stored twice.",
        "failed": (
            "Kept in the journal, but it could not be taken into the graph; `health` says why."
        ),
    }[value.state]
    counts = (
        f"{counted(value.nodes, 'node')}, {counted(value.facts, 'fact')}, "
        f"{counted(value.edges, 'link')}"
    )
    tail = f" {counts} touched." if value.state == "done" else ""
    skipped = "".join(
        f"\nLeft out: {skipped_item.what}: {skipped_item.why}" for skipped_item in value.skipped
    )
    return f"{state_text}{tail} [{value.turn_id}]{redacted_text(value.redacted)}{skipped}"


@dataclass(frozen=True, slots=True)
class ReceiptLines:
    """What became of a text that was to be remembered."""

    state: str
    turn_id: str
    job_id: int
    nodes: int | None = None
    facts: int | None = None
    edges: int | None = None
    skipped: tuple[Skipped, ...] | None = None
    redacted: int | None = None
    duration_ms: float | None = None


def receipt_for_model(value: Receipt, _: Input) -> ModelView:
    is_done = value.state == "done"
    data = ReceiptLines(
        value.state,
        value.turn_id,
        value.job_id,
        nodes=value.nodes if is_done else None,
        facts=value.facts if is_done else None,
        edges=value.edges if is_done else None,
        skipped=value.skipped or None,
        redacted=value.redacted or None,
        duration_ms=round(value.duration_ms, 1),
    )
    return ModelView(data, receipt_text(value))


@CORE.operation(
    "Remember a text",
    receipt_text,
    ADDS,
    command="remember",
    aliases=("add",),
    examples=(
        'pps remember ana "The oven runs 20 degrees hot."',
        "cat notes.md | pps remember ana -",
    ),
    for_model=receipt_for_model,
)
async def remember(memory: Memory, request: RememberInput) -> Receipt:
    """Use it when something should last.

    Give the text word for word, with the nodes and facts that you read in it. Write facts as whole
    sentences with names written out and their times; a fact that changed names the old one in
    'invalidates'. Returns 'done' when it can be recalled, 'accepted' when that follows in a moment;
    nothing is lost.
    """
    arguments: RememberOptions = options(request, "content", "wait", "nodes", "facts", "extraction")
    arguments["nodes"] = [node.draft() for node in request.nodes]
    arguments["facts"] = [fact.draft() for fact in request.facts]
    if request.extraction:
        arguments["extraction"] = request.extraction
    return await memory.remember(
        request.content, wait=request.wait, timeout_s=REMEMBER_WAIT_S, **arguments
    )


@dataclass(frozen=True, slots=True)
class Timeline:
    """Facts in order of world time; ``next_cursor`` is empty on the last page."""

    facts: tuple[FactView, ...]
    next_cursor: str


def timeline_view(page: TimelinePage) -> Timeline:
    facts = (fact_view(fact, page.names, page.successors.get(fact.uuid)) for fact in page.facts)
    return Timeline(tuple(facts), page.next_cursor)


def timeline_text(view: Timeline) -> str:
    return "\n".join(map(fact_line, view.facts)) or EMPTY["timeline"]


@dataclass(frozen=True, slots=True)
class TimelinePageLines:
    """A page of facts in order of time; ``next_cursor`` is empty on the last."""

    facts: tuple[FactLine, ...]
    next_cursor: str


def timeline_for_model(view: Timeline, request: Input) -> ModelView:
    """Return as many of a page's facts as have room, and the cursor that continues after them."""
    lines = tuple(map(fact_line_view, view.facts))
    count = fitting(json_size(as_json(line)) for line in lines)
    cursor = view.next_cursor
    if count < len(lines):
        last = view.facts[count - 1]
        cursor = timeline_cursor(last.valid_at, last.id)
    as_of = model_time(getattr(request, "as_of", None))
    when = f" that held at {as_of}" if as_of else ""
    head = (
        f"{counted(count, 'fact')} in order of time{when}:"
        if count
        else f"No facts{when} match; with fewer conditions there may be some."
    )
    text = "\n".join([head, *map(fact_text, view.facts[:count])])
    return ModelView(TimelinePageLines(lines[:count], cursor), with_next_page(text, cursor))


@CORE.operation(
    "List facts by time",
    timeline_text,
    READS,
    command="timeline",
    aliases=("facts",),
    examples=("pps facts ana Priya", "pps timeline ana --about Lisbon --after 2026-01-01"),
    for_model=timeline_for_model,
)
async def timeline(memory: Memory, request: TimelineInput) -> Timeline:
    """Use it to see how something developed.

    Returns facts ordered by when they began to hold, ended facts included. 'superseded_by' names
    the fact that replaced one. It answers a page at a time: pass 'next_cursor' as {cursor} for the
    next.
    """
    return timeline_view(await memory.timeline(**options(request)))


def items_text(items: Sequence[ItemView]) -> str:
    return "\n\n".join(map(_item_for_people, items))


def _item_for_people(item: ItemView) -> str:
    if isinstance(item, NodeView):
        names = f" (also {', '.join(item.aliases)})" if item.aliases else ""
        head = f"node {item.name}{names}, {item.kind} [{item.id}]"
        return f"{head}\n{item.content or item.summary}".rstrip()
    if isinstance(item, FactView):
        return f"fact {fact_line(item)}"
    who = f"{item.actor or item.role}" if isinstance(item, TurnView) else item.name
    later = successor_mark(item.superseded_by) if isinstance(item, TurnView) else ""
    return (
        f"{item.type} {who}{time_in_brackets(item.occurred_at)}{later} [{item.id}]\n{item.content}"
    )


@dataclass(frozen=True, slots=True)
class ReadItem:
    """An item whole, or the part of its text that this page has.

    ``content`` is the text of a turn, a record or an episode. Of a fact ``episodes`` are the first
    ten of ``episodes_total`` turns that support it.
    """

    type: str
    id: str
    content: str | None = None
    text: str | None = None
    name: str | None = None
    kind: str | None = None
    summary: str | None = None
    aliases: tuple[str, ...] | None = None
    tags: tuple[str, ...] | None = None
    attributes: Mapping[str, JsonValue] | None = None
    role: str | None = None
    actor: str | None = None
    session: str | None = None
    source: str | None = None
    occurred_at: str | None = None
    created_at: str | None = None
    valid_at: str | None = None
    invalid_at: str | None = None
    relation: str | None = None
    subject: str | None = None
    object: str | None = None
    episodes: tuple[str, ...] | None = None
    episodes_total: int | None = None
    superseded_by: Later | None = None
    part: TextPart | None = None


@dataclass(frozen=True, slots=True)
class ReadItems:
    """A page of items; pass ``next_cursor`` as ``cursor``, with the same ids, for what follows."""

    items: tuple[ReadItem, ...]
    next_cursor: str | None = None


def continued_items(items: Sequence[ItemView], cursor: str) -> tuple[ItemView, ...]:
    """Return the items of a page, the first from the character where the last page ended.

    Raises:
        InvalidRequest: The cursor is none of a page of these items, or the item has changed since.
    """
    start = item_cursor(cursor, len(items))
    if start is None:
        return tuple(items)
    first = items[start.index]
    start.check(first.id, _body(first))
    return (
        _with_body(first, _body(first)[start.begins :], start.begins),
        *items[start.index + 1 :],
    )


def items_for_model(items: Sequence[ItemView], request: Input) -> ModelView:
    """Return as much of the items as has room, and the cursor that continues after it."""
    ids: Sequence[str] = getattr(request, "ids", ())
    start = item_cursor(getattr(request, "cursor", ""), len(ids)) or ItemCursor()
    bodies = [_body(item) for item in items]

    def with_part(index: int, part: TextPart) -> ItemView:
        return _with_body(items[index], bodies[index][: part.ends - part.begins], part.begins)

    def size_of(index: int, part: TextPart) -> int:
        return json_size(as_json(_item_line(with_part(index, part), part.unless_whole)))

    layout = lay_out(bodies, start.begins, size_of)
    pieces = [
        (with_part(index, part), part.unless_whole) for index, part in enumerate(layout.parts)
    ]
    text = "\n\n".join(_item_for_model(item, part) for item, part in pieces)
    next_cursor = None
    if layout.next_index is not None:
        index = layout.next_index
        begins = layout.next_begins
        is_same = index == 0 and start.begins  # whose text was cut already
        mark = start.digest if is_same else digest(items[index].id, bodies[index])
        next_cursor = str(ItemCursor(start.index + index, begins, mark))
        text += f"\n\nMore follows: call again with the same ids and cursor={next_cursor}"
    data = ReadItems(tuple(_item_line(item, part) for item, part in pieces), next_cursor)
    return ModelView(data, text)


def _fields_beside(node: NodeView) -> dict[str, Any]:
    named = {"aliases": node.aliases, "tags": node.tags, "attributes": node.attributes}
    return {name: value for name, value in named.items() if value}


def _are_long(node: NodeView) -> bool:
    return json_size(_fields_beside(node)) > _MOST_BESIDE


def _body(item: ItemView) -> str:
    """Return an item's text; of a node with its own fields behind it where these are long."""
    if isinstance(item, FactView):
        return ""
    if not isinstance(item, NodeView):
        return item.content
    body = item.summary if item.content is None else item.content
    if not _are_long(item):
        return body
    return f"{body}\n\nfields: {json.dumps(_fields_beside(item), ensure_ascii=False)}".lstrip()


def _with_body(item: ItemView, body: str, begins: int) -> ItemView:
    if isinstance(item, FactView):
        return item
    if not isinstance(item, NodeView):
        return replace(item, content=body)
    if begins or _are_long(item):
        item = replace(item, aliases=(), tags=(), attributes={})
    return replace(item, summary=body) if item.content is None else replace(item, content=body)


def _item_line(item: ItemView, part: TextPart | None) -> ReadItem:
    if isinstance(item, NodeView):
        is_record = item.content is not None
        return ReadItem(
            type=item.type,
            id=item.id,
            content=item.content,
            name=item.name,
            kind=item.kind,
            summary=None if is_record else item.summary or None,
            aliases=item.aliases or None,
            tags=item.tags or None,
            attributes=item.attributes or None,
            created_at=model_time(item.created_at),
            part=part,
        )
    if isinstance(item, FactView):
        total = len(item.episodes)
        return ReadItem(
            type=item.type,
            id=item.id,
            text=item.text,
            valid_at=model_time(item.valid_at),
            invalid_at=model_time(item.invalid_at),
            relation=item.relation,
            subject=item.subject,
            object=item.object,
            episodes=item.episodes[:_MOST_EPISODES] or None,
            episodes_total=total if total > _MOST_EPISODES else None,
            superseded_by=later_view(item.superseded_by),
        )
    read = ReadItem(
        type=item.type,
        id=item.id,
        content=item.content,
        occurred_at=model_time(item.occurred_at),
        part=part,
    )
    if isinstance(item, EpisodeView):
        return replace(read, name=item.name)
    return replace(
        read,
        kind=item.kind if item.kind != "turn" else None,
        tags=item.tags or None,
        role=None if item.actor else item.role,
        actor=item.actor,
        session=item.session,
        source=item.source,
        superseded_by=later_view(item.superseded_by),
    )


def _item_for_model(item: ItemView, part: TextPart | None) -> str:
    """Return an item to read: who, when and what it is in a line, then its text."""
    piece = f"\n({part.words()})" if part else ""
    if isinstance(item, FactView):
        more = len(item.episodes) - _MOST_EPISODES
        text = ", ".join(item.episodes[:_MOST_EPISODES])
        support = f"; said in {text}" + (f" and {more:,} more" if more > 0 else "")
        ends = f"{item.relation} from {item.subject} to {item.object}"
        held = span(item.valid_at, item.invalid_at)
        head = f"fact {item.text}{held}{successor_mark(item.superseded_by)} [{item.id}]"
        return f"{head}\n{ends}{support if text else ''}"
    if isinstance(item, NodeView):
        names = f" (also {', '.join(item.aliases)})" if item.aliases else ""
        tags = f", tags {', '.join(item.tags)}" if item.tags else ""
        since = shown(item.created_at, item.created_at.tzinfo or UTC)
        known = f"of {since}" if item.content is not None else f"known since {since}"
        head = f"node {item.name}{names}, kind {item.kind}{tags}, {known} [{item.id}]"
        own = json.dumps(dict(item.attributes), ensure_ascii=False) if item.attributes else ""
        lines = [head + piece, item.summary if item.content is None else item.content]
        return "\n".join([*filter(None, lines), *([f"fields: {own}"] if own else [])])
    if isinstance(item, EpisodeView):
        head = f"episode {item.name}{time_in_brackets(item.occurred_at)} [{item.id}]{piece}"
        return f"{head}\n{item.content}"
    kind = f", {item.kind}" if item.kind != "turn" else ""
    tags = f", tags {', '.join(item.tags)}" if item.tags else ""
    session = f", session {item.session}" if item.session else ""
    head = f"turn of {item.actor or item.role}{kind}{session}, from {item.source}{tags}"
    marks = f"{time_in_brackets(item.occurred_at)}{successor_mark(item.superseded_by)}"
    return f"{head}{marks} [{item.id}]{piece}\n{item.content}"


@CORE.operation(
    "Read items whole",
    items_text,
    READS,
    items="items",
    command="get",
    examples=("pps get ana 1b4e28ba",),
    for_model=items_for_model,
)
async def get(memory: Memory, request: GetInput) -> tuple[ItemView, ...]:
    """Use it to read in full what another tool showed in part.

    Returns the turn, fact, node or episode of each id.

    It answers a page at a time, and a long text in parts: pass 'next_cursor' as {cursor}, with the
    same ids, for the next.
    """
    return await read_items(memory, request.ids, request.cursor)


async def read_items(memory: Memory, ids: Sequence[str], cursor: str = "") -> tuple[ItemView, ...]:
    """Return items whole, from a cursor on; a record with its text, dated by it."""
    items = await memory.get(ids)
    texts = await memory.records.texts([item.uuid for item in items])
    turns = [item for item in items if isinstance(item, Turn)]
    facts = [item for item in items if isinstance(item, Fact)]
    successors = await memory.superseding.in_listing(turns, facts)
    views = [item_view(item, texts.get(item.uuid), successors.get(item.uuid)) for item in items]
    return continued_items(views, cursor)
