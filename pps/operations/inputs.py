"""What each verb takes, with its bounds and a description that teaches a calling model.

Inputs are strict: an unknown argument, a number given as text or a bound that is broken is refused.
No input can name an entity: it comes from the connection.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal

from pydantic import Field, StringConstraints

from pps.core import bounds
from pps.core.ids import ID_PATTERN, UUID_PATTERN
from pps.core.layers import LAYERS, Layer
from pps.core.values import ChannelName
from pps.ingest.anchors import MAX_TEXT, MAX_TITLE
from pps.ingest.drafts import Extraction, RememberOptions
from pps.ingest.given_input import FactInput, Input, Moment, Name, NodeInput, Tag, described_time
from pps.journal.values import ItemFilter
from pps.recall.options import RecallOptions, TimelineOptions

Uuid = Annotated[str, Field(pattern=UUID_PATTERN)]
Id = Annotated[str, Field(pattern=ID_PATTERN)]
"""Of a turn, node or fact, whole or its first characters, 8 at least, as a pack shows them."""
Label = Annotated[str, StringConstraints(max_length=200)]
Slug = Annotated[str, StringConstraints(min_length=1, max_length=100)]


class Nothing(Input):
    """No arguments."""


class RememberInput(Input):
    """A text to keep for good, with what you read in it."""

    content: str = Field(
        min_length=1,
        max_length=bounds.MAX_CONTENT,
        description="The text as it was said or written; kept word for word.",
    )
    nodes: tuple[NodeInput, ...] = Field(
        default=(),
        max_length=bounds.MAX_NODES,
        description="Who and what the text speaks of. You are the reader: list them.",
    )
    facts: tuple[FactInput, ...] = Field(
        default=(),
        max_length=bounds.MAX_FACTS,
        description="What the text says, one sentence a fact. A fact that changed names the old one in 'invalidates'.",
    )
    role: Literal["user", "assistant", "system", "tool"] = Field(default="user", description="Who spoke.")
    actor: Label = Field(default="", description="Name of the speaker, if more than one shares this memory.")
    session: Label = Field(default="", description="Id of this conversation; turns of one session are neighbours.")
    source: Label = Field(default="mcp", description="Where it came from.")
    source_ref: Label = Field(
        default="", description="Its id there; the same one again is a duplicate and stored once."
    )
    occurred_at: Annotated[Moment, described_time("When it was said; now when not given.")] | None = None
    kind: Label = Field(default="turn", description="'turn', or 'summary' for a summary of what went before.")
    tags: tuple[Tag, ...] = Field(default=(), max_length=bounds.MAX_TAGS, description="Beside the #tags of the text.")
    extraction: Extraction | None = Field(
        default=None, description="'none' keeps only the text; the memory's own setting when not given."
    )
    wait: Literal["done", "journal"] = Field(
        default="done", description="'journal' answers as soon as it is safe on disk, 'done' when it can be recalled."
    )

    def options(self) -> RememberOptions:
        """Return what ``Memory.remember`` takes beside the content."""
        found: RememberOptions = {
            "role": self.role,
            "actor": self.actor,
            "session": self.session,
            "source": self.source,
            "source_ref": self.source_ref,
            "occurred_at": self.occurred_at,
            "kind": self.kind,
            "tags": self.tags,
            "nodes": [node.draft() for node in self.nodes],
            "facts": [fact.draft() for fact in self.facts],
        }
        if self.extraction:
            found["extraction"] = self.extraction
        return found


class FilterInput(Input):
    """What to leave out before ranking. Values of one field are alternatives; fields add up."""

    kinds: tuple[Label, ...] = Field(default=(), max_length=50, description="Of nodes, such as Person; of turns.")
    tags: tuple[Tag, ...] = Field(default=(), max_length=50)
    sources: tuple[Label, ...] = Field(default=(), max_length=50, description="Where turns came from.")
    relations: tuple[Name, ...] = Field(default=(), max_length=50, description="Of facts, such as LIVES_IN.")
    sessions: tuple[Label, ...] = Field(default=(), max_length=50)
    roles: tuple[Label, ...] = Field(default=(), max_length=4)
    layers: tuple[Layer, ...] = Field(
        default=(), max_length=len(LAYERS), description="Of a layered graph: each stands for the kinds of nodes in it."
    )
    statuses: tuple[Label, ...] = Field(
        default=(), max_length=50, description="The 'status' attribute of nodes, such as active."
    )
    since: Annotated[Moment, described_time("Nothing before.")] | None = None
    until: Annotated[Moment, described_time("Nothing at or after.")] | None = None

    def filters(self) -> ItemFilter:
        """Return the value that recall takes."""
        return ItemFilter(
            kinds=self.kinds,
            tags=self.tags,
            sources=self.sources,
            relations=self.relations,
            since=self.since,
            until=self.until,
            sessions=self.sessions,
            roles=self.roles,
            layers=self.layers,
            statuses=self.statuses,
        )


class RecallInput(Input):
    """A question to the memory."""

    query: str = Field(min_length=1, max_length=8000, description="A question or key words, in any language.")
    channels: tuple[ChannelName, ...] | Literal["auto"] | None = Field(
        default=None,
        description="Which lists to fill; 'auto' chooses by the kind of question. All of the profile's if not given.",
    )
    profile: Label = Field(default="default", description="How to rank; `pps profiles` lists them.")
    limit: int = Field(default=10, ge=1, le=100, description="Most results in each channel.")
    as_of: Annotated[Moment, described_time("What held at that time instead of now.")] | None = None
    session: Label | None = Field(default=None, description="Id of this conversation.")
    center: Id | None = Field(default=None, description="Id of a node: what is near it in the graph ranks higher.")
    during: str = Field(
        default="",
        max_length=200,
        description="Only what happened then, in words: 'last spring', 'May 2023', 'two weeks ago'.",
    )
    filters: FilterInput = FilterInput()
    weights: Mapping[Label, float] = Field(
        default={},
        description="Signal to weight, 0 to 1000, in place of the profile's: vector, text, graph, tags, recency, or "
        "a perspective of `pps profiles`.",
    )
    min_similarity: float | None = Field(default=None, ge=-1, le=1, description="Least cosine of what meaning finds.")
    max_hops: int = Field(default=2, ge=1, le=4, description="How far from the center profile 'hybrid' looks.")
    include_relationships: bool = Field(default=False, description="With each node, the newest facts that join it.")

    def options(self) -> RecallOptions:
        """Return what ``Memory.recall`` takes beside the query."""
        return {
            "profile": self.profile,
            "channels": self.channels,
            "limit": self.limit,
            "as_of": self.as_of,
            "session": self.session,
            "center": self.center,
            "during": self.during,
            "filters": self.filters.filters(),
            "weights": self.weights,
            "min_similarity": self.min_similarity,
            "max_hops": self.max_hops,
            "include_relationships": self.include_relationships,
        }


class WhyInput(RecallInput):
    """A question to the memory, and what should answer it."""

    expect: str = Field(default="", max_length=100, description="Id of what should be there: why it is not.")


class AmbientRecallInput(Input):
    """What is being talked about; at start-up it may be empty."""

    context: str = Field(
        max_length=65_536, description="The last message or two as they are. With mode 'startup' it may be empty."
    )
    limit_per_layer: int = Field(
        default=12, ge=1, le=50, description="Most items a section; what is not near is not shown at all."
    )
    session: Label | None = Field(
        default=None, description="Id of this conversation: what it was shown is not shown again."
    )
    mode: Literal["turn", "startup"] = Field(
        default="turn", description="'startup' once when a conversation begins: the latest, not the nearest."
    )
    budget_tokens: int | None = Field(
        default=None, ge=100, le=100_000, description="Most tokens of the text; never exceeded."
    )


class TimelineInput(Input):
    """Which facts, in order of the time since which they hold."""

    about: Name | None = Field(default=None, description="Name or id of a node: only facts that join it.")
    relation: Name | None = Field(default=None, description="Only facts of this relation, such as LIVES_IN.")
    as_of: Annotated[Moment, described_time("Only what held at that time.")] | None = None
    after: Annotated[Moment, described_time("Only facts that began then or later.")] | None = None
    before: Annotated[Moment, described_time("Only facts that began before.")] | None = None
    limit: int = Field(default=50, ge=1, le=1000, description="Most facts a page.")
    cursor: str = Field(default="", max_length=500, description="'next_cursor' of the page before.")

    def options(self) -> TimelineOptions:
        """Return what ``Memory.timeline`` takes."""
        return {
            "about": self.about,
            "relation": self.relation,
            "as_of": self.as_of,
            "after": self.after,
            "before": self.before,
            "limit": self.limit,
            "cursor": self.cursor,
        }


class GetInput(Input):
    """Ids that another verb returned."""

    ids: tuple[Id, ...] = Field(
        min_length=1,
        max_length=100,
        description="Ids of turns, facts, nodes or episodes, or their first characters as a pack shows them.",
    )


class ForgetInput(Input):
    """What to erase for good."""

    ids: tuple[Annotated[str, StringConstraints(min_length=1, max_length=100)], ...] = Field(
        min_length=1,
        max_length=100,
        description="Ids of turns, facts or nodes (the first 8 characters do), or slugs of anchors.",
    )
    dry_run: bool = Field(
        default=True, description="True only says what would go. Ask the person, then call again with false."
    )


class AnchorSaveInput(Input):
    """A short text that should stay findable as it is: a rule, a recipe, a moment."""

    title: Annotated[str, StringConstraints(min_length=1, max_length=MAX_TITLE)] = Field(
        description="What it is found by."
    )
    text: str = Field(min_length=1, max_length=MAX_TEXT, description="Markdown.")
    slug: Slug | None = Field(
        default=None,
        description="Lower-case letters, digits and '-'; made from the title if not given. An old one is replaced.",
    )
    tags: tuple[Tag, ...] = Field(default=(), max_length=bounds.MAX_TAGS)


class AnchorSearchInput(Input):
    """A question to the anchors alone."""

    query: str = Field(min_length=1, max_length=8000, description="A question or key words.")
    limit: int = Field(default=10, ge=1, le=100, description="Most anchors.")


class AnchorDeleteInput(Input):
    """Which anchor to delete."""

    slug: Slug = Field(description="Its slug, as anchor_list and anchor_search show it.")
