"""What a calling model gets of an answer: no scores, ranks or durations, and no more than a page at a time.

A client gives its model the structured content or the text, never both, so each is complete by itself: what one shows
the other shows too. In the structured content what is read stands first, what is only passed on (ids, cursors) after
it. Field names are those of the full answer, which HTTP ``/v1``, ``--json`` and Python return. What is left out comes
with ``explain: true`` where it can help, or lies in ``_meta``. Times are of the entity's zone, dates as they were given.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any, Literal

from pydantic import JsonValue

from pps.context.lines import span
from pps.core.errors import InvalidRequest
from pps.core.phrases import NOTHING_NEAR
from pps.core.recalled import Successor
from pps.core.reports import Forgotten, Mentions, timeline_cursor
from pps.core.text import counted, one_line
from pps.core.time import CoarseTime, coarse_text, shown, shown_day
from pps.core.values import Receipt, Skipped
from pps.ingest.anchors import Anchor, AnchorInfo, AnchorVersion
from pps.operations import words
from pps.operations.inputs import Input
from pps.operations.outputs import (
    ChannelView,
    EpisodeView,
    FactView,
    HistoryView,
    HitView,
    ItemView,
    NodeView,
    PackView,
    RecallView,
    Timeline,
    VersionView,
)
from pps.operations.pages import (
    ItemCursor,
    TextPart,
    as_json,
    digest,
    fitting,
    item_cursor,
    json_size,
    lay_out,
    version_cursor,
)
from pps.operations.table import ModelView

_LINE = 400
_SHOWN_FAR = 2
"""Hits of a channel that are shown where nothing is near."""
_SCORED_PROFILES = ("semantic", "hybrid")
_MOST_IDS = 100
_MOST_OF_VERSION = 2_000
_MOST_EPISODES = 10
_MOST_BESIDE = 4_000
"""Characters of a node's own fields that stand beside its text.

More of them are read after it, page by page.
"""
_SHORT_ID = 8


@dataclass(frozen=True, slots=True)
class Later:
    """The later statement that took an item's place; ``sure`` is false where it only may have."""

    text: str
    at: str
    id: str
    sure: Literal[False] | None = None


@dataclass(frozen=True, slots=True)
class FactLine:
    """A fact: its sentence, since when and until when, and its ends by the first characters of their ids."""

    text: str
    id: str
    valid_at: str | None = None
    invalid_at: str | None = None
    relation: str | None = None
    subject: str | None = None
    object: str | None = None
    superseded_by: Later | None = None


@dataclass(frozen=True, slots=True)
class HitLine:
    """A result of a search; of a long text at most 400 characters: ``get`` has the whole.

    ``ranks`` are given where a tool promises them.
    """

    text: str
    id: str
    role: str | None = None
    actor: str | None = None
    occurred_at: str | None = None
    valid_at: str | None = None
    invalid_at: str | None = None
    superseded_by: Later | None = None
    relationships: tuple[FactLine, ...] | None = None
    ranks: Mapping[str, int] | None = None


@dataclass(frozen=True, slots=True)
class ChannelLines:
    """A ranked list, best first.

    ``more`` are farther away and not shown, ``error`` says why it could not be searched.
    """

    hits: tuple[HitLine, ...]
    more: int | None = None
    notes: tuple[str, ...] | None = None
    error: str | None = None


@dataclass(frozen=True, slots=True)
class RecallLines:
    """What a search found, channel by channel."""

    channels: Mapping[str, ChannelLines]
    notes: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class HitLines:
    """Results of a search of one kind of thing, best first."""

    hits: tuple[HitLine, ...]


@dataclass(frozen=True, slots=True)
class PackText:
    """A context pack: the text, its size in tokens, how many lines had no room, channels that could not be searched."""

    text: str
    tokens: int
    left_out: Mapping[str, int] | None = None
    failed: tuple[str, ...] | None = None


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


@dataclass(frozen=True, slots=True)
class SavedAnchor:
    """An anchor that was saved."""

    slug: str
    title: str
    characters: int
    redacted: int | None = None


@dataclass(frozen=True, slots=True)
class AnchorPage:
    """An anchor whole, or the part of its text that this page has; ``digest`` is of the whole."""

    text: str
    title: str
    slug: str
    digest: str
    modified_at: str
    tags: tuple[str, ...] | None = None
    part: TextPart | None = None
    next_cursor: str | None = None


@dataclass(frozen=True, slots=True)
class ForgottenLines:
    """What went, or would go; of each the first 100 ids, and in ``more`` how many there are beyond.

    ``asked``: of a dry run by names, the ids to give when it is done. ``mentions``: what still says
    its name. ``upgrade_copy``: of a dry run, the copy of the memory from before its upgrade goes
    too.
    """

    dry_run: bool
    asked: tuple[str, ...] | None = None
    turns: tuple[str, ...] | None = None
    facts: tuple[str, ...] | None = None
    facts_kept: tuple[str, ...] | None = None
    nodes: tuple[str, ...] | None = None
    anchors: tuple[str, ...] | None = None
    no_longer_restorable: tuple[str, ...] | None = None
    restorable_as: str | None = None
    restorable_until: str | None = None
    upgrade_copy: bool | None = None
    more: Mapping[str, int] | None = None
    mentions: Mentions | None = None


@dataclass(frozen=True, slots=True)
class TimelinePageLines:
    """A page of facts in order of time; ``next_cursor`` is empty on the last."""

    facts: tuple[FactLine, ...]
    next_cursor: str


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


@dataclass(frozen=True, slots=True)
class VersionLines:
    """A version of a text; ``part`` where the page does not have all of its diff and, behind it, its content."""

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


def recall_for_model(view: RecallView, request: Input) -> ModelView:
    """Return the hits as lines.

    All that is known of each with ``explain``, or where the profile adds signals up.

    Those profiles (``semantic``, ``hybrid`` and own ones) are asked for their scores.
    """
    explain: bool | None = getattr(request, "explain", None)
    if explain is None:
        has_signals = any(hit.signals for list_ in view.channels.values() for hit in list_.hits)
        explain = has_signals or view.profile in _SCORED_PROFILES
    if explain:
        return ModelView(view, words.recall(view, explain=True))
    return _recall_lines(view, with_ranks=False)


def ranks_for_model(view: RecallView, _: Input) -> ModelView:
    """Return the hits as lines, each with its place in every perspective."""
    if any(hit.signals for channel in view.channels.values() for hit in channel.hits):
        return ModelView(view, words.recall(view, explain=True))
    return _recall_lines(view, with_ranks=True)


def _recall_lines(view: RecallView, *, with_ranks: bool) -> ModelView:
    nothing_near = NOTHING_NEAR in view.notes
    channels = {
        name: _channel_lines(channel, nothing_near=nothing_near, with_ranks=with_ranks)
        for name, channel in view.channels.items()
    }
    details = {"profile": view.profile, "took_ms": dict(view.took_ms)}
    text = words.recall(view, explain=with_ranks)
    if not any(channel.hits or channel.error for channel in view.channels.values()):
        text += "\nOther words may find more; 'timeline' lists facts in order of time."
    return ModelView(RecallLines(channels, view.notes or None), text, details)


def _channel_lines(channel: ChannelView, *, nothing_near: bool, with_ranks: bool) -> ChannelLines:
    hits = channel.hits[:_SHOWN_FAR] if nothing_near else channel.hits
    return ChannelLines(
        tuple(_hit_line(hit, with_ranks=with_ranks) for hit in hits),
        len(channel.hits) - len(hits) or None,
        channel.notes or None,
        channel.error,
    )


def _hit_line(hit: HitView, *, with_ranks: bool = False) -> HitLine:
    text = one_line(hit.passage or hit.text, _LINE)
    if hit.title and not text.startswith(hit.title):
        text = f"{hit.title}: {text}"
    says_speaker = text.startswith(f"{hit.actor or hit.role}:")
    return HitLine(
        text=text,
        id=hit.id,
        role=None if hit.actor or says_speaker else hit.role,
        actor=None if says_speaker else hit.actor,
        occurred_at=model_time(hit.occurred_at),
        valid_at=model_time(hit.valid_at),
        invalid_at=model_time(hit.invalid_at),
        superseded_by=later(hit.superseded_by),
        relationships=tuple(map(fact_line_view, hit.relationships)) if hit.relationships else None,
        ranks=hit.ranks if with_ranks else None,
    )


def hits_for_model(hits: Sequence[HitView], _: Input) -> ModelView:
    head = f"{counted(len(hits), 'anchor')}, best first:\n" if hits else ""
    return ModelView(HitLines(tuple(map(_hit_line, hits))), head + words.anchor_hits(hits))


def pack_for_model(view: PackView, _: Input) -> ModelView:
    left_out = {name: lines for name, lines in view.left_out.items() if lines}
    data = PackText(view.text, view.tokens, left_out or None, view.failed or None)
    details = {
        "took_ms": view.took_ms,
        "counter": view.counter,
        "sections": dict(view.sections),
        "hits": {name: list(ids) for name, ids in view.hits.items()},
    }
    return ModelView(data, words.pack(view), details)


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
    return ModelView(data, words.receipt(value))


def anchor_for_model(value: AnchorInfo, _: Input) -> ModelView:
    data = SavedAnchor(value.slug, value.title, value.characters, value.redacted or None)
    size = counted(value.characters, "character")
    text = (
        f"Saved the anchor '{value.title}' as {value.slug} "
        f"({size}).{words.redacted(value.redacted)}"
    )
    return ModelView(data, text)


def continued_anchor(anchor: Anchor, cursor: str) -> Anchor:
    """Return an anchor with its text from a cursor on.

    Raises:
        InvalidRequest: The cursor is none of a page of this anchor, or it has changed since.
    """
    start = item_cursor(cursor, 1)
    if start is None:
        return anchor
    start.check(anchor.slug, anchor.text)
    return replace(anchor, text=anchor.text[start.begins :])


def anchor_text_for_model(anchor: Anchor, request: Input) -> ModelView:
    """Return as much of an anchor's text as has room, and the cursor that continues after it."""
    start = item_cursor(getattr(request, "cursor", ""), 1) or ItemCursor()
    whole = AnchorPage(
        anchor.text,
        anchor.title,
        anchor.slug,
        anchor.digest,
        model_time(anchor.modified_at) or "",
        tags=anchor.tags or None,
    )

    def shown_part(part: TextPart) -> AnchorPage:
        text = anchor.text[: part.ends - part.begins]
        return replace(whole, text=text, part=part.unless_whole)

    def size_of(_: int, part: TextPart) -> int:
        return json_size(as_json(shown_part(part)))

    [part] = lay_out([anchor.text], start.begins, size_of).parts
    data = shown_part(part)
    text = words.anchor_whole(replace(anchor, text=data.text))
    if data.part:
        text = f"({data.part.words()})\n{text}"
    if not part.is_last:
        mark = start.digest or digest(anchor.slug, anchor.text)
        data = replace(data, next_cursor=str(ItemCursor(0, part.ends, mark)))
        text += f"\n\nMore follows: call again with cursor={data.next_cursor}"
    return ModelView(data, text)


@dataclass(frozen=True, slots=True)
class AnchorVersionPage:
    """The latest versions of an anchor that have room, the latest first.

    ``older`` counts those that have none.
    """

    versions: tuple[AnchorVersion, ...]
    older: int | None = None


def anchor_versions_for_model(versions: Sequence[AnchorVersion], _: Input) -> ModelView:
    """Return as many versions as have room, each with at most 2,000 characters of its text."""
    excerpts = [replace(version, text=version.text[:_MOST_OF_VERSION]) for version in versions]
    count = max(1, fitting(json_size(as_json(excerpt)) for excerpt in excerpts))
    older = len(excerpts) - count or None
    text = words.anchor_versions(excerpts[:count])
    return ModelView(
        AnchorVersionPage(tuple(excerpts[:count]), older),
        f"{text}\n\n{older:,} older versions" if older else text,
    )


def forgotten_for_model(value: Forgotten, _: Input) -> ModelView:
    """Return what went, with the ids: what a dry run would take is to be shown before it is done."""
    groups = {
        name: ids
        for name in ("turns", "facts", "facts_kept", "nodes", "anchors", "no_longer_restorable")
        if (ids := getattr(value, name))
    }
    more = {name: len(ids) - _MOST_IDS for name, ids in groups.items() if len(ids) > _MOST_IDS}
    first: dict[str, Any] = {name: ids[:_MOST_IDS] for name, ids in groups.items()}
    data = ForgottenLines(
        value.dry_run,
        asked=value.asked if value.by_name else None,
        **first,
        restorable_as=value.restorable_as or None,
        restorable_until=model_time(value.restorable_until),
        upgrade_copy=value.upgrade_copy or None,
        more=more or None,
        mentions=value.mentions,
    )
    lines = [
        f"{name.replace('_', ' ')}: {', '.join(ids)}"
        + (f" and {more[name]:,} more" if name in more else "")
        for name, ids in first.items()
    ]
    return ModelView(data, "\n".join([words.gone(value), *lines]))


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
    text = [head, *map(fact_text, view.facts[:count])]
    if cursor:
        text.append(f"More: cursor={cursor}")
    return ModelView(TimelinePageLines(lines[:count], cursor), "\n".join(text))


def fact_line_view(fact: FactView) -> FactLine:
    """Return a fact as a model reads it in a list, its sentence whole."""
    return FactLine(
        text=" ".join(fact.text.split()),
        id=fact.id,
        valid_at=model_time(fact.valid_at),
        invalid_at=model_time(fact.invalid_at),
        relation=fact.relation,
        subject=fact.subject[:_SHORT_ID],
        object=fact.object[:_SHORT_ID],
        superseded_by=later(fact.superseded_by),
    )


def fact_text(fact: FactView) -> str:
    """Return a fact as a line, its sentence whole, with what it joins."""
    text = " ".join(fact.text.split())
    held = span(fact.valid_at, fact.invalid_at)
    ends = f"{fact.relation}: {fact.subject[:_SHORT_ID]} → {fact.object[:_SHORT_ID]}"
    return f"{text}{held}{words.mark(fact.superseded_by)} [{fact.id}] {ends}"


def continued(items: Sequence[ItemView], cursor: str) -> tuple[ItemView, ...]:
    """Return the items that a page begins with, the first from the character on at which the page before ended.

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
        return json_size(as_json(_read_item(with_part(index, part), part.unless_whole)))

    layout = lay_out(bodies, start.begins, size_of)
    pieces = [
        (with_part(index, part), part.unless_whole) for index, part in enumerate(layout.parts)
    ]
    text = "\n\n".join(_item_text(item, part) for item, part in pieces)
    next_cursor = None
    if layout.next_index is not None:
        index = layout.next_index
        begins = layout.next_begins
        is_same = index == 0 and start.begins  # whose text was cut already
        mark = start.digest if is_same else digest(items[index].id, bodies[index])
        next_cursor = str(ItemCursor(start.index + index, begins, mark))
        text += f"\n\nMore follows: call again with the same ids and cursor={next_cursor}"
    data = ReadItems(tuple(_read_item(item, part) for item, part in pieces), next_cursor)
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


def _read_item(item: ItemView, part: TextPart | None) -> ReadItem:
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
            superseded_by=later(item.superseded_by),
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
        superseded_by=later(item.superseded_by),
    )


def _item_text(item: ItemView, part: TextPart | None) -> str:
    """Return an item to read: who, when and what it is in a line, then its text."""
    piece = f"\n({part.words()})" if part else ""
    if isinstance(item, FactView):
        more = len(item.episodes) - _MOST_EPISODES
        text = ", ".join(item.episodes[:_MOST_EPISODES])
        support = f"; said in {text}" + (f" and {more:,} more" if more > 0 else "")
        ends = f"{item.relation} from {item.subject} to {item.object}"
        held = span(item.valid_at, item.invalid_at)
        head = f"fact {item.text}{held}{words.mark(item.superseded_by)} [{item.id}]"
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
        return f"episode {item.name}{words.at(item.occurred_at)} [{item.id}]{piece}\n{item.content}"
    kind = f", {item.kind}" if item.kind != "turn" else ""
    tags = f", tags {', '.join(item.tags)}" if item.tags else ""
    session = f", session {item.session}" if item.session else ""
    head = f"turn of {item.actor or item.role}{kind}{session}, from {item.source}{tags}"
    marks = f"{words.at(item.occurred_at)}{words.mark(item.superseded_by)}"
    return f"{head}{marks} [{item.id}]{piece}\n{item.content}"


def continued_versions(
    versions: Sequence[VersionView], number: int, begins: int
) -> list[VersionView]:
    """Return the versions that a page begins with, the first from a character of its diff and content on.

    Raises:
        InvalidRequest: There is no such version, or it is shorter.
    """
    first = versions[0] if versions else None
    diff, content = (first.diff or "", first.content or "") if first else ("", "")
    if first is None or first.version != number or begins > len(diff) + len(content):
        raise InvalidRequest(
            "cursor", "the text is another than that of the page before; call again without it"
        )
    diff, content = diff[begins:], content[max(0, begins - len(diff)) :]
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
    text = "\n\n".join([head, *("\n".join(_version_text(line)) for line in lines)])
    if next_cursor:
        text += f"\n\nMore follows: call again with cursor={next_cursor}"
    return ModelView(HistoryLines(tuple(lines), view.id, next_cursor), text)


def _version_line(entry: VersionView, part: TextPart) -> VersionLines:
    """Return a version with the first characters of its diff and then of its content, as many as the part has."""
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


def _version_text(line: VersionLines) -> Iterator[str]:
    by = f" by {line.actor}" if line.actor else ""
    tags = f", tags {', '.join(line.tags)}" if line.tags else ""
    title = f", “{line.title}”" if line.title else ""
    yield f"version {line.version}: {line.change}{by} ({line.at}){title}{tags}"
    if line.part:
        yield f"({line.part.words()} of its diff and text)"
    yield from filter(None, (line.diff, line.content))


def later(successor: Successor | None) -> Later | None:
    """Return what took a statement's place as a model reads it, with the day.

    None while it stands.
    """
    if successor is None:
        return None
    return Later(
        successor.text,
        shown_day(successor.at, successor.at.tzinfo or UTC),
        successor.id,
        None if successor.sure else False,
    )


def model_time(moment: datetime | None) -> str | None:
    """Return a date as it is known, an instant in its own zone to the second."""
    if moment is None:
        return None
    if isinstance(moment, CoarseTime):
        return coarse_text(moment)
    return moment.replace(microsecond=0).isoformat().replace("+00:00", "Z")
