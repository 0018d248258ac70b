"""What each operation of an entity takes, with its bounds and a description that teaches a calling model.

Inputs are strict: an unknown argument, a value of another type or a bound that is broken is refused. What clients spell
otherwise (a list as JSON text, a number as text, camelCase) was read before: ``core.argument_reading``.
No input can name an entity: it comes from the connection.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import AfterValidator, Field, JsonValue, StringConstraints

from pps.core import bounds
from pps.core.ids import ID_PATTERN
from pps.core.values import CHANNELS, ChannelName
from pps.entities.paths import MAX_PATH
from pps.ingest.drafts import Extraction
from pps.ingest.given_input import FactInput, Input, Moment, Name, NodeInput, Tag, described_time
from pps.journal.filters import ItemFilter
from pps.journal.usage import KEPT_D
from pps.operations.command_line import argument, json_file, json_text, option, unoffered

Id = Annotated[str, Field(pattern=ID_PATTERN)]
"""Of a turn, node or fact, whole or its first characters, 8 at least, as a pack shows them."""
Label = Annotated[str, StringConstraints(max_length=200)]
Labels = Annotated[tuple[Label, ...], Field(max_length=50)]
Ids = Annotated[tuple[Id, ...], Field(min_length=1, max_length=100)]
Names = Annotated[tuple[Name, ...], Field(min_length=1, max_length=100)]
"""Ids, their first characters, or titles."""
Tags = Annotated[tuple[Tag, ...], Field(max_length=bounds.MAX_TAGS)]
Question = Annotated[str, StringConstraints(min_length=1, max_length=8_000)]
Slug = Annotated[str, StringConstraints(min_length=1, max_length=100)]
Title = Annotated[str, StringConstraints(min_length=1, max_length=bounds.MAX_NAME)]
Content = Annotated[str, StringConstraints(min_length=1, max_length=bounds.MAX_CONTENT)]

ChannelChoice: TypeAlias = Literal[ChannelName, "auto"]

_TAG = option("--tag")
_AT = option("--at")
_YES = option("--yes/--dry-run", inverts=True)
_TEXT = argument(stdin=True, rest=True)


def options(request: Input, *without: str) -> Any:
    """Return an input's fields as the keyword arguments of what carries it out, but for some."""
    return {
        name: getattr(request, name) for name in type(request).model_fields if name not in without
    }


def fields_of(value: Any) -> dict[str, Any]:
    """Return a dataclass's fields as they are."""
    return {field.name: getattr(value, field.name) for field in fields(value)}


def _auto_alone(channels: tuple[str, ...]) -> tuple[str, ...]:
    if "auto" in channels and len(channels) > 1:
        raise ValueError("'auto' stands alone")
    return channels


class Nothing(Input):
    """No arguments."""


class RememberInput(Input):
    """A text to keep for good, with what you read in it."""

    content: Content = Field(
        description="The text as said or written; kept word for word.", json_schema_extra=_TEXT
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
    ] = Field(default=None, json_schema_extra=_AT)
    kind: Label = Field(
        default="turn",
        description="'turn', or 'summary' for a summary of what went before.",
        json_schema_extra=unoffered(),
    )
    tags: Tags = Field(
        default=(),
        description="Tags, in addition to the #tags in the text.",
        json_schema_extra=_TAG,
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


class FilterInput(Input):
    """What to leave out before ranking. Values of one field are alternatives; fields add up."""

    kinds: Labels = Field(default=(), description="Kinds of nodes, such as Person, or of turns.")
    tags: tuple[Tag, ...] = Field(default=(), max_length=50)
    sources: Labels = Field(default=(), description="Where turns came from.")
    relations: tuple[Name, ...] = Field(
        default=(), max_length=50, description="Relations of facts, such as LIVES_IN."
    )
    sessions: Labels = ()
    roles: tuple[Label, ...] = Field(default=(), max_length=4)
    layers: Labels = Field(
        default=(),
        description="Layers of a pack, such as vision. A layer stands for its kinds of nodes.",
    )
    status: Labels = Field(
        default=(), description="The 'status' attribute of nodes, such as active."
    )
    since: Annotated[Moment | None, described_time("Nothing before.")] = None
    until: Annotated[Moment | None, described_time("Nothing at or after.")] = None

    def filters(self) -> ItemFilter:
        """Return the value that recall takes."""
        return ItemFilter(**options(self, "status"), statuses=self.status)


class RecallQuestion(Input):
    """A question to the memory."""

    query: Question = Field(
        description="A question or key words, in any language.",
        json_schema_extra=argument(rest=True),
    )
    channels: Annotated[tuple[ChannelChoice, ...], AfterValidator(_auto_alone)] = Field(
        default=(),
        max_length=len(CHANNELS),
        description=(
            "Lists to return; 'auto' chooses them by the kind of question. Default: all "
            "lists of the profile."
        ),
    )
    profile: Label = Field(default="default", description="How to rank; `pps profiles` lists them.")
    limit: int | None = Field(
        default=None,
        ge=1,
        le=100,
        description=(
            "Maximum results in each channel. Default: 10, for nodes 5, and 20 for a "
            "question about several things."
        ),
    )
    as_of: Annotated[Moment | None, described_time("What held at that time instead of now.")] = None
    session: Label | None = Field(default=None, description="Id of this conversation.")
    center: Name | None = Field(
        default=None, description="Id or name of a node. Results near it in the graph rank higher."
    )
    during: str = Field(
        default="",
        max_length=200,
        description=(
            "Only what happened then, in words: 'last spring', 'May 2023', 'two weeks ago'."
        ),
    )
    filters: FilterInput = Field(default=FilterInput(), json_schema_extra=unoffered())
    weights: Mapping[Label, float] = Field(
        default={},
        description="Signal to weight, 0 to 1000, in place of the profile's: vector, text, graph, "
        "tags, recency, or "
        "a perspective of `pps profiles`.",
        json_schema_extra=unoffered(),
    )
    min_similarity: float | None = Field(
        default=None,
        ge=-1,
        le=1,
        description="Minimum cosine similarity of results found by meaning.",
    )
    max_hops: int = Field(
        default=2, ge=1, le=4, description="How far from the center profile 'hybrid' looks."
    )
    include_relationships: bool = Field(
        default=False, description="With each node, the newest facts that join it."
    )


class RecallInput(RecallQuestion):
    """A question to the memory, and how much is told of each result."""

    explain: bool | None = Field(
        default=None,
        description="True adds each result's score, rank in every perspective and signals; the "
        "profiles that add "
        "signals up ('semantic', 'hybrid') give them unless it is false.",
        json_schema_extra=unoffered(),
    )


class WhyInput(RecallQuestion):
    """A question to the memory, and what should answer it."""

    expect: str = Field(
        default="",
        max_length=bounds.MAX_NAME,
        description="Id or title of an expected result. The answer says why it is missing.",
    )


class AmbientRecallInput(Input):
    """What is being talked about; at start-up it may be empty."""

    context: str = Field(
        max_length=65_536,
        description="The latest one or two messages, unchanged. With mode 'startup' it may be "
        "empty.",
        json_schema_extra=argument(rest=True, default=""),
    )
    limit_per_layer: int = Field(
        default=12,
        ge=1,
        le=50,
        description="Maximum items in each section. Items that are not near are left out.",
    )
    session: Label | None = Field(
        default=None,
        description="Id of this conversation. Items it was already shown are left out.",
    )
    mode: Literal["turn", "startup", "preview"] = Field(
        default="turn",
        description="'turn': what is near the context. 'startup': the latest; call it once, when a "
        "conversation begins. 'preview': the same as 'turn', for people; it is not "
        "recorded as given to an agent.",
        json_schema_extra=option("--startup", value="startup"),
    )
    budget_tokens: int | None = Field(
        default=None,
        ge=100,
        le=100_000,
        description="Maximum tokens of the text; never exceeded.",
        json_schema_extra=option("--budget"),
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


class ForgetInput(Input):
    """What to erase for good."""

    ids: Names = Field(
        description="Ids of turns, facts or nodes (or their first 8 characters), or slugs of "
        "anchors. A dry run also takes titles of records and names of nodes.",
        json_schema_extra=argument(),
    )
    dry_run: bool = Field(
        default=True,
        description="True only lists what would be forgotten. Ask the person, then call again with "
        "false.",
        json_schema_extra=_YES,
    )
    keep: bool = Field(default=False, description="True keeps copies in a squad's pool.")


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
    tags: Tags = Field(default=(), json_schema_extra=_TAG)
    expected: Label = Field(
        default="",
        description="'digest' from anchor_get. The anchor is replaced only if its digest is still "
        "this.",
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
        description="Slug of the anchor, from anchor_list or anchor_search.",
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


class AddEventInput(Input):
    """Something that happened or was noted, to be kept as a record with a title."""

    content: Content = Field(
        description="Text, in Markdown. Its #tags become tags, its [[links]] relations.",
        json_schema_extra=_TEXT,
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
        Field(default=None, json_schema_extra=_AT)
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
        json_schema_extra=_TAG,
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
        json_schema_extra=_TAG,
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
        json_schema_extra=_TEXT,
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
        json_schema_extra=_YES,
    )


class UndoMergeInput(Input):
    """Which merge."""

    id: Id = Field(
        description="Id of a merge, from merge_nodes or find_duplicates.",
        json_schema_extra=argument(),
    )


class JobStatusInput(Input):
    """Which job: by its own number or by its turn."""

    id: Annotated[str, StringConstraints(min_length=1, max_length=40, pattern=r"^[0-9a-f-]+$")] = (
        Field(
            description="The job_id or the turn_id of a receipt, as text.",
            json_schema_extra=argument(),
        )
    )


class ExtractInput(Input):
    """Which turns, and whether to do it."""

    since: Annotated[Moment | None, described_time("Only turns said at this time or later.")] = None
    dry_run: bool = Field(
        default=True,
        description="True only counts the turns and estimates the tokens; false has them read.",
        json_schema_extra=option("--dry-run", default=False),
    )


class CostsInput(Input):
    """How far back."""

    days: int = Field(default=30, ge=1, le=3_660, description="Number of days, including today.")


class InjectedInput(Input):
    """How far back."""

    days: int = Field(
        default=7,
        ge=1,
        le=KEPT_D,
        description="Number of days up to now. Older figures are not kept.",
    )
    session: Label | None = Field(
        default=None, description="A conversation whose latest packs are listed, line by line."
    )
