"""Anchors: saved, searched, listed, read, set back, deleted, indexed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Annotated

from pydantic import Field, StringConstraints

from pps.core import bounds
from pps.core.text import counted
from pps.ingest.anchors import Anchor, AnchorInfo, AnchorVersion, ResyncReport
from pps.ingest.given_input import Input
from pps.memory import Memory
from pps.operations.inputs import (
    TAG_OPTION,
    Label,
    Nothing,
    Question,
    Tags,
    argument,
    options,
    unoffered,
)
from pps.operations.item_views import day_text, model_time, moment_text, redacted_text, short_line
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
)
from pps.operations.recall_tools import HitLine, HitView, hit_line, hit_text, hit_view
from pps.operations.table import ANCHORS, CORE, ERASES, READS, Hints, ModelView

_MOST_OF_VERSION = 2_000
Slug = Annotated[str, StringConstraints(min_length=1, max_length=100)]


class AnchorSaveInput(Input):
    """A short text that should stay findable as it is: a rule, a recipe, a moment."""

    title: Annotated[str, StringConstraints(min_length=1, max_length=bounds.MAX_ANCHOR_TITLE)] = (
        Field(description="Title that the anchor is found by.", json_schema_extra=argument())
    )
    text: str = Field(
        min_length=1,
        max_length=bounds.MAX_ANCHOR,
        description="Markdown.",
        json_schema_extra=argument(stdin=True, rest=True, default="-"),
    )
    slug: Slug | None = Field(
        default=None,
        description=(
            "Lower-case letters, digits and '-'. Default: made from the title. An anchor "
            "with this slug is replaced."
        ),
    )
    tags: Tags = Field(default=(), json_schema_extra=TAG_OPTION)
    expected: Label = Field(
        default="",
        description="'digest' from {anchor_get}. The anchor is replaced only if its digest is "
        "still this.",
    )


class AnchorSearchInput(Input):
    """A question to the anchors alone."""

    query: Question = Field(
        description="A question or key words.", json_schema_extra=argument(rest=True)
    )
    limit: int = Field(default=10, ge=1, le=100, description="Maximum anchors.")


class AnchorInput(Input):
    """Which anchor."""

    slug: Slug = Field(
        description="Slug of the anchor, from {anchor_list} or {anchor_search}.",
        json_schema_extra=argument(),
    )


class AnchorReadInput(AnchorInput):
    """Which anchor, and from where."""

    cursor: str = Field(
        default="",
        max_length=100,
        description="'next_cursor' of the page before.",
        json_schema_extra=unoffered(),
    )


class AnchorRevertInput(AnchorInput):
    """Which anchor, and which of its versions."""

    version: int = Field(
        ge=1,
        le=1 << 30,
        description="Version number, from {anchor_history}.",
        json_schema_extra=argument(),
    )


def anchor_saved_text(value: AnchorInfo) -> str:
    return f"Saved '{value.title}' as {value.slug}.{redacted_text(value.redacted)}"


@dataclass(frozen=True, slots=True)
class SavedAnchor:
    """An anchor that was saved."""

    slug: str
    title: str
    characters: int
    redacted: int | None = None


def anchor_for_model(value: AnchorInfo, _: Input) -> ModelView:
    data = SavedAnchor(value.slug, value.title, value.characters, value.redacted or None)
    size = counted(value.characters, "character")
    text = (
        f"Saved the anchor '{value.title}' as {value.slug} ({size}).{redacted_text(value.redacted)}"
    )
    return ModelView(data, text)


@CORE.operation(
    "Save an anchor",
    anchor_saved_text,
    Hints(destructive=True, idempotent=True),
    command="anchors save",
    examples=('pps anchors save ana "Sourdough" - < bread.md',),
    for_model=anchor_for_model,
)
async def anchor_save(memory: Memory, request: AnchorSaveInput) -> AnchorInfo:
    """Use it to keep a short Markdown text unchanged: a rule, a recipe, a description.

    It replaces an anchor of the same slug; the old text stays as a version ({anchor_history}).
    Returns the slug.
    """
    return await memory.anchor_save(**options(request))


def anchor_hits_text(hits: Sequence[HitView]) -> str:
    return (
        "\n".join(f"{number}. {hit_text(hit)}" for number, hit in enumerate(hits, 1))
        or EMPTY["anchor_search"]
    )


@dataclass(frozen=True, slots=True)
class HitLines:
    """Results of a search of one kind of thing, best first."""

    hits: tuple[HitLine, ...]


def anchor_hits_for_model(hits: Sequence[HitView], _: Input) -> ModelView:
    head = f"{counted(len(hits), 'anchor')}, best first:\n" if hits else ""
    return ModelView(HitLines(tuple(map(hit_line, hits))), head + anchor_hits_text(hits))


@CORE.operation(
    "Search the anchors",
    anchor_hits_text,
    READS,
    items="hits",
    command="anchors search",
    examples=('pps anchors search ana "how the bread is made"',),
    for_model=anchor_hits_for_model,
)
async def anchor_search(memory: Memory, request: AnchorSearchInput) -> tuple[HitView, ...]:
    """Use it when the answer is likely in an anchor.

    Returns the best anchors, each with its best passage.
    """
    return tuple(map(hit_view, await memory.anchor_search(request.query, limit=request.limit)))


def anchor_list_text(anchors: Sequence[AnchorInfo]) -> str:
    lines = [
        f"{anchor.slug}: {short_line(anchor.title)} ({day_text(anchor.modified_at)})"
        for anchor in anchors
    ]
    return "\n".join(lines) or EMPTY["anchor_list"]


@ANCHORS.operation(
    "List the anchors",
    anchor_list_text,
    READS,
    items="anchors",
    command="anchors list",
    examples=("pps anchors list ana",),
)
async def anchor_list(memory: Memory, _: Nothing) -> tuple[AnchorInfo, ...]:
    """Use it to see which anchors there are. Returns the slug, title and time of every one."""
    return tuple(await memory.anchor_list())


def anchor_text(value: Anchor) -> str:
    return (
        f"{value.title} ({value.slug}, {value.modified_at:%Y-%m-%d}, digest {value.digest})\n\n"
        f"{value.text}"
    )


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
    text = anchor_text(replace(anchor, text=data.text))
    if data.part:
        text = f"({data.part.words()})\n{text}"
    if not part.is_last:
        mark = start.digest or digest(anchor.slug, anchor.text)
        data = replace(data, next_cursor=str(ItemCursor(0, part.ends, mark)))
        text += f"\n\nMore follows: call again with cursor={data.next_cursor}"
    return ModelView(data, text)


@ANCHORS.operation(
    "Read an anchor whole",
    anchor_text,
    READS,
    command="anchors get",
    examples=("pps anchors get ana sourdough",),
    for_model=anchor_text_for_model,
)
async def anchor_get(memory: Memory, request: AnchorReadInput) -> Anchor:
    """Use it to read an anchor in full, or before you change it: 'expected' of {anchor_save} takes its digest.

    A long text comes in parts: pass 'next_cursor' as {cursor} for the next.
    """
    return continued_anchor(await memory.anchor_read(request.slug), request.cursor)


def anchor_versions_text(versions: Sequence[AnchorVersion]) -> str:
    return "\n\n".join(
        f"version {version.number}, "
        f"{moment_text(version.at)}{f', by {version.actor}' if version.actor else ''}: "
        f"{version.title}\n{version.text}"
        for version in versions
    )


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
    text = anchor_versions_text(excerpts[:count])
    return ModelView(
        AnchorVersionPage(tuple(excerpts[:count]), older),
        f"{text}\n\n{older:,} older versions" if older else text,
    )


@ANCHORS.operation(
    "List an anchor's versions",
    anchor_versions_text,
    READS,
    items="versions",
    command="anchors history",
    examples=("pps anchors history ana sourdough",),
    for_model=anchor_versions_for_model,
)
async def anchor_history(memory: Memory, request: AnchorInput) -> tuple[AnchorVersion, ...]:
    """Use it to see how an anchor changed.

    Returns its versions, the latest first, each with its number and text.
    """
    return tuple(reversed(await memory.anchor_versions(request.slug)))


@ANCHORS.operation(
    "Restore an anchor's version",
    anchor_saved_text,
    Hints(idempotent=True),
    command="anchors revert",
    examples=("pps anchors revert ana sourdough 2",),
)
async def anchor_revert(memory: Memory, request: AnchorRevertInput) -> AnchorInfo:
    """Use it to restore an earlier version of an anchor.

    That makes a new version; the current text stays as a version.
    """
    return await memory.anchor_revert(request.slug, request.version)


@dataclass(frozen=True, slots=True)
class AnchorDeleted:
    """Which anchor is gone."""

    slug: str
    deleted: bool = True


def anchor_deleted_text(view: AnchorDeleted) -> str:
    return f"Deleted {view.slug}."


@ANCHORS.operation(
    "Delete an anchor",
    anchor_deleted_text,
    ERASES,
    command="anchors delete",
    examples=("pps anchors delete ana sourdough",),
)
async def anchor_delete(memory: Memory, request: AnchorInput) -> AnchorDeleted:
    """Use it to delete an anchor's file, its versions and its index entries.

    It cannot be undone. To be able to undo it use {forget} with soft=true.
    """
    await memory.anchor_delete(request.slug)
    return AnchorDeleted(request.slug)


def resync_text(value: ResyncReport) -> str:
    return (
        f"{value.added + value.changed} indexed, {value.unchanged} unchanged, {value.removed} "
        "removed."
    )


@ANCHORS.operation(
    "Index the anchors' folder",
    resync_text,
    Hints(idempotent=True),
    command="anchors resync",
    examples=("pps anchors resync ana",),
)
async def anchor_resync(memory: Memory, _: Nothing) -> ResyncReport:
    """Use it after anchors' files were edited, added or deleted by hand.

    Returns how many were indexed and removed.
    """
    return await memory.anchor_resync()
