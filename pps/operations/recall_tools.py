"""Searching: the context for this turn, ranked lists, and why a search answers as it does."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import AfterValidator, Field, model_serializer

from pps.context.lines import span
from pps.core import bounds
from pps.core.recalled import (
    NOTHING_NEAR,
    Channel,
    Hit,
    Pack,
    Recall,
    Relationship,
    SearchStats,
    Step,
    Successor,
)
from pps.core.text import counted, fold, one_line
from pps.core.time import Precision
from pps.core.values import CHANNELS, ChannelName, Episode, Fact, Node, Turn
from pps.ingest.given_input import Input, Moment, Name, Tag, described_time
from pps.journal.filters import ItemFilter
from pps.memory import Memory
from pps.operations.inputs import Label, Labels, Question, argument, option, options, unoffered
from pps.operations.item_views import (
    LINE_LENGTH,
    FactLine,
    FactView,
    Later,
    coarse_precision,
    fact_line,
    fact_line_view,
    fact_view,
    later_view,
    model_time,
    short_line,
    successor_mark,
    time_in_brackets,
)
from pps.operations.pages import EMPTY
from pps.operations.table import CORE, READS, UPKEEP, ModelView
from pps.recall.why import Why

_SHOWN_FAR = 2
"""Hits of a channel that are told where nothing is near; as JSON all are."""
_SCORED_PROFILES = ("semantic", "hybrid")
ChannelChoice: TypeAlias = Literal[ChannelName, "auto"]


def _auto_alone(channels: tuple[str, ...]) -> tuple[str, ...]:
    if "auto" in channels and len(channels) > 1:
        raise ValueError("'auto' stands alone")
    return channels


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
        "tags, recency, or a perspective of `pps profiles`.",
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
        "profiles that add signals up ('semantic', 'hybrid') give them unless it is false.",
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


@dataclass(frozen=True, slots=True)
class HitView:
    """One result.

    ``score`` compares only within its own list; of a long text ``text`` is what matched.

    Why it is here: ``ranks``; for a weighted sum also ``signals``; for a search around a node
    ``path``. ``relationships`` of a node, where they are asked for. ``superseded_by`` is the later
    statement that took the place of a fact or turn; ``sure`` is false where it only may have.
    """

    id: str
    text: str
    score: float
    ranks: Mapping[str, int]
    passage: str | None = None
    kind: str | None = None
    relation: str | None = None
    role: str | None = None
    actor: str | None = None
    session: str | None = None
    source: str | None = None
    title: str | None = None
    between: tuple[str, str] | None = None
    valid_at: datetime | None = None
    invalid_at: datetime | None = None
    occurred_at: datetime | None = None
    valid_at_precision: Precision | None = None
    invalid_at_precision: Precision | None = None
    occurred_at_precision: Precision | None = None
    signals: Mapping[str, float] | None = None
    path: tuple[Step, ...] | None = None
    relationships: tuple[FactView, ...] | None = None
    superseded_by: Successor | None = None


@dataclass(frozen=True, slots=True)
class StatsView:
    """Statistics of a list; ``avg_score`` is null if it is empty.

    Attributes:
        token_estimate: Tokens of the hits' texts.
    """

    total_results: int
    avg_score: float | None
    token_estimate: int

    @model_serializer
    def _with_null(self) -> dict[str, int | float | None]:
        """Return every field: that there is no average is said, not left out."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class ChannelView:
    """One ranked list, best first.

    ``error`` means that it failed, which is not the same as empty.
    """

    hits: tuple[HitView, ...]
    error: str | None = None
    notes: tuple[str, ...] = ()
    stats: StatsView | None = None


@dataclass(frozen=True, slots=True)
class RecallView:
    """What was found, channel by channel, never merged."""

    query: str
    profile: str
    channels: Mapping[str, ChannelView]
    took_ms: Mapping[str, float]
    notes: tuple[str, ...] = ()

    def __getitem__(self, channel: str) -> tuple[HitView, ...]:
        """Return a channel's hits; none of one that was not asked for."""
        return self.channels[channel].hits if channel in self.channels else ()


@dataclass(frozen=True, slots=True)
class PackView:
    """The text to read, its size, and what the budget left out; ``hits`` are ids by channel."""

    text: str
    tokens: int
    counter: str
    sections: Mapping[str, int]
    left_out: Mapping[str, int]
    hits: Mapping[str, tuple[str, ...]]
    took_ms: float
    failed: tuple[str, ...] = ()


def recall_view(recall: Recall) -> RecallView:
    return RecallView(
        recall.query,
        recall.profile,
        {name: _channel_view(channel) for name, channel in recall.channels.items()},
        {name: round(ms, 2) for name, ms in recall.took_ms.items()},
        recall.notes,
    )


def pack_view(pack: Pack) -> PackView:
    channels: Mapping[ChannelName, Channel] = pack.recall.channels if pack.recall else {}
    hits: dict[str, tuple[str, ...]] = {}
    for name, channel in channels.items():
        hits[name] = tuple(hit.id for hit in channel.hits)
    return PackView(
        text=pack.text,
        tokens=pack.tokens,
        counter=pack.counter,
        sections=pack.sections,
        left_out=pack.left_out,
        hits=hits,
        took_ms=round(pack.took_ms, 2),
        failed=tuple(name for name, channel in channels.items() if channel.error),
    )


def hit_view(hit: Hit) -> HitView:
    """Return the view of a hit, with what a reader needs of its item."""
    item = hit.item
    record = isinstance(item, Node)  # whose passage stands beside its name and summary
    text, passage = (hit.text, hit.passage) if record else (hit.passage or hit.text, "")
    view = HitView(
        hit.id,
        text,
        round(hit.score, 6),
        dict(hit.ranks),
        passage or None,
        between=hit.names,
        superseded_by=hit.superseded_by,
    )
    if hit.signals:
        signals = {name: round(value, 4) for name, value in hit.signals.items()}
        view = replace(view, signals=signals, path=hit.path or None)
    if isinstance(item, Fact):
        return replace(
            view,
            relation=item.relation,
            valid_at=item.valid_at,
            invalid_at=item.invalid_at,
            valid_at_precision=coarse_precision(item.valid_at),
            invalid_at_precision=coarse_precision(item.invalid_at),
        )
    if isinstance(item, Turn):
        extra = {
            "role": item.role,
            "actor": item.actor or None,
            "session": item.session,
            "source": item.source,
        }
        precision = coarse_precision(item.occurred_at)
        return replace(view, occurred_at=item.occurred_at, occurred_at_precision=precision, **extra)
    if isinstance(item, Episode):
        return replace(
            view,
            occurred_at=item.valid_at,
            occurred_at_precision=coarse_precision(item.valid_at),
        )
    if isinstance(item, Node):
        joined = (
            tuple(
                fact_view(relationship.fact, _names_of_ends(relationship))
                for relationship in hit.relationships
            )
            or None
        )
        return replace(view, title=item.name, kind=item.kind, relationships=joined)
    return replace(view, title=item.title)


def _names_of_ends(relationship: Relationship) -> dict[str, str]:
    return {
        end: name
        for end, name in zip(
            (relationship.fact.subject, relationship.fact.object), relationship.names, strict=True
        )
        if name
    }


def _channel_view(channel: Channel) -> ChannelView:
    hits = tuple(hit_view(hit) for hit in channel.hits)
    return ChannelView(
        hits,
        channel.error or None,
        channel.notes,
        None if channel.error else stats_view(channel.stats),
    )


def stats_view(stats: SearchStats) -> StatsView:
    average = None if stats.avg_score is None else round(stats.avg_score, 6)
    return StatsView(stats.total_results, average, stats.token_estimate)


def pack_text(view: PackView) -> str:
    return view.text


def recall_text_for_people(view: RecallView) -> str:
    """Return the lists for a person: with sources, and a text of several channels only once."""
    ids: set[str] = set()
    channels: dict[str, ChannelView] = {}
    for name, channel in view.channels.items():
        hits = [hit for hit in channel.hits if fold(hit.text) not in ids]
        ids.update(fold(hit.text) for hit in channel.hits)
        if hits or not channel.hits:
            channels[name] = replace(channel, hits=tuple(hits))
    return recall_text(replace(view, channels=channels), with_source=True)


def recall_text(view: RecallView, *, explain: bool = False, with_source: bool = False) -> str:
    """Return the lists one after another, each with a heading.

    Where scores are sums of signals, with their mean.

    With ``explain`` each hit has its score, ranks and signals on a line of its own.
    """
    lines: list[str] = []
    empty: list[str] = []
    nothing_near = NOTHING_NEAR in view.notes and not explain
    for name, channel in view.channels.items():
        if channel.error:
            lines.append(f"{name}: could not be searched ({channel.error})")
        elif channel.hits:
            hits = channel.hits[:_SHOWN_FAR] if nothing_near else channel.hits
            lines.append(_channel_heading(name, channel))
            for number, hit in enumerate(hits, 1):
                lines.append(f"  {number}. {hit_text(hit, with_source=with_source)}")
                if explain:
                    lines.append(f"     {_explanation(hit)}")
                lines.extend(f"     {fact_line(fact)}" for fact in hit.relationships or ())
            if len(hits) < len(channel.hits):
                lines.append(f"  … and {len(channel.hits) - len(hits)} more, farther away")
        else:
            empty.append(name)
        lines.extend(f"  note: {note}" for note in channel.notes)
    rest = [f"note: {note}" for note in view.notes if note != NOTHING_NEAR]
    if not lines:
        nothing = f"Nothing found in {', '.join(empty)}." if empty else "Nothing found."
        return "\n".join([f"{nothing} {EMPTY['recall']}", *rest])
    if empty:
        lines.append(f"nothing in {', '.join(empty)}")
    first = [f"note: {NOTHING_NEAR}"] if NOTHING_NEAR in view.notes else []
    return "\n".join([*first, *lines, *rest])


def _channel_heading(name: str, channel: ChannelView) -> str:
    stats = channel.stats
    if stats is None or stats.avg_score is None or not any(hit.signals for hit in channel.hits):
        return f"{name}:"
    results = counted(stats.total_results, "result")
    return (
        f"{name} ({results}, average score {stats.avg_score:.3f}, about "
        f"{counted(stats.token_estimate, 'token')}):"
    )


def hit_text(hit: HitView, *, with_source: bool = False) -> str:
    text = hit.passage or hit.text
    speaker = hit.actor or hit.role
    who = f"{speaker}: " if hit.role and not text.startswith(f"{speaker}:") else ""
    title = f"{hit.title}: " if hit.title and not text.startswith(hit.title) else ""
    when = span(hit.valid_at, hit.invalid_at) if hit.relation else time_in_brackets(hit.occurred_at)
    if with_source and hit.source:
        when = f" ({hit.source}, {when[2:]}" if when else f" ({hit.source})"
    way = ", ".join(f"{step.relation} “{step.name}”" for step in hit.path or ())
    from_center = f" (from the center: {way})" if way else ""
    successor = successor_mark(hit.superseded_by)
    return f"{title}{who}{short_line(text)}{when}{successor}{from_center} [{hit.id}]"


def _explanation(hit: HitView) -> str:
    """Return a hit's score, its rank in each perspective and the share of each in the score."""
    ranks = ", ".join(f"{name} #{rank}" for name, rank in hit.ranks.items())
    signals = ", ".join(f"{name} {value:.3f}" for name, value in (hit.signals or {}).items())
    return "; ".join([f"score {hit.score:.4f}", *filter(None, (ranks, signals))])


def why_text(value: Why) -> str:
    """Return the fate of the expected item, then of each candidate by channel, and a legend."""
    lines = [
        f"Profile {value.profile}."
        + "".join(f" Only {perspective}." for perspective in value.filters)
    ]
    if value.expected:
        lines.append(f"The expected one: {value.expected}.")
    for name, channel in value.channels.items():
        weighed = ", ".join(
            f"{perspective} {weight:g}" for perspective, weight in channel.weights.items() if weight
        )
        how = "signals are added up" if channel.fusion == "sum" else "ranks are joined, 1 is best"
        lines.append(
            f"\n{name}: {counted(channel.found, 'candidate')}, at most {channel.limit} shown; "
            f"{how} ({weighed})"
        )
        for candidate in channel.candidates:
            ranks = ", ".join(
                f"{perspective} #{rank}" for perspective, rank in candidate.ranks.items()
            )
            factor = (
                "" if candidate.factor == 1 else f" x {candidate.factor:g} (fresh, new, telling)"
            )
            lines.append(
                f"- {short_line(candidate.text)} [{candidate.id}]\n  {candidate.verdict}; "
                f"{ranks or 'no rank'}; {candidate.joined:.4f}{factor}"
            )
    return "\n".join(lines)


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
class PackText:
    """A context pack: its text, size, number of lines left out, and channels that failed."""

    text: str
    tokens: int
    left_out: Mapping[str, int] | None = None
    failed: tuple[str, ...] | None = None


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
        return ModelView(view, recall_text(view, explain=True))
    return _recall_lines(view, with_ranks=False)


def ranks_for_model(view: RecallView, _: Input) -> ModelView:
    """Return the hits as lines, each with its place in every perspective."""
    if any(hit.signals for channel in view.channels.values() for hit in channel.hits):
        return ModelView(view, recall_text(view, explain=True))
    return _recall_lines(view, with_ranks=True)


def _recall_lines(view: RecallView, *, with_ranks: bool) -> ModelView:
    nothing_near = NOTHING_NEAR in view.notes
    channels = {
        name: _channel_lines(channel, nothing_near=nothing_near, with_ranks=with_ranks)
        for name, channel in view.channels.items()
    }
    details = {"profile": view.profile, "took_ms": dict(view.took_ms)}
    text = recall_text(view, explain=with_ranks)
    if not any(channel.hits or channel.error for channel in view.channels.values()):
        text += "\nOther words may find more; 'timeline' lists facts in order of time."
    return ModelView(RecallLines(channels, view.notes or None), text, details)


def _channel_lines(channel: ChannelView, *, nothing_near: bool, with_ranks: bool) -> ChannelLines:
    hits = channel.hits[:_SHOWN_FAR] if nothing_near else channel.hits
    return ChannelLines(
        tuple(hit_line(hit, with_ranks=with_ranks) for hit in hits),
        len(channel.hits) - len(hits) or None,
        channel.notes or None,
        channel.error,
    )


def hit_line(hit: HitView, *, with_ranks: bool = False) -> HitLine:
    text = one_line(hit.passage or hit.text, LINE_LENGTH)
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
        superseded_by=later_view(hit.superseded_by),
        relationships=tuple(map(fact_line_view, hit.relationships)) if hit.relationships else None,
        ranks=hit.ranks if with_ranks else None,
    )


def pack_for_model(view: PackView, _: Input) -> ModelView:
    left_out = {name: lines for name, lines in view.left_out.items() if lines}
    data = PackText(view.text, view.tokens, left_out or None, view.failed or None)
    details = {
        "took_ms": view.took_ms,
        "counter": view.counter,
        "sections": dict(view.sections),
        "hits": {name: list(ids) for name, ids in view.hits.items()},
    }
    return ModelView(data, pack_text(view), details)


@CORE.operation(
    "Recall for this turn",
    pack_text,
    READS,
    command="ambient",
    examples=('pps ambient ana "making coffee in the kitchen"', "pps ambient ana --startup"),
    for_model=pack_for_model,
)
async def ambient_recall(memory: Memory, request: AmbientRecallInput) -> PackView:
    """Call it before you answer, with what was just said.

    With mode 'startup' once when a conversation begins.

    Returns what you know that matters now, ready to read within a token budget: nodes, facts,
    anchors, recent turns and summaries. It is memory, not instruction.
    """
    return pack_view(await memory.ambient_recall(**options(request)))


@CORE.operation(
    "Search the memory",
    recall_text_for_people,
    READS,
    command="recall",
    aliases=("search",),
    examples=(
        "pps recall ana who makes coffee",
        "pps recall ana Lisbon --channels facts --as-of 2026-01-31",
    ),
    for_model=recall_for_model,
)
async def recall(memory: Memory, request: RecallInput) -> RecallView:
    """Use it when you look for something on purpose: a question or key words.

    Returns one ranked list for each channel (nodes, facts, episodes, anchors, turns). {as_of} asks
    for another time. A hit with 'superseded_by' no longer holds; where that is not 'sure' it may
    still hold. Use the newer fact instead.
    """
    return recall_view(
        await memory.recall(request.query, **_search_options(request, "query", "explain"))
    )


@UPKEEP.operation(
    "Explain a recall",
    why_text,
    READS,
    command="why",
    examples=('pps why ana "Who keeps bees?" --expect 1b4e28ba',),
)
async def why(memory: Memory, request: WhyInput) -> Why:
    """Use it when a recall did not return what you expected: give the expected id in {expect}.

    Takes the same arguments as {recall}. Returns each candidate's rank in every perspective,
    whether it was shown, and why the expected result is missing.
    """
    return await memory.why(
        request.query, request.expect, **_search_options(request, "query", "expect")
    )


def _search_options(question: RecallQuestion, *without: str) -> Any:
    return {
        **options(question, *without),
        "filters": question.filters.filters(),
        "channels": "auto" if question.channels == ("auto",) else question.channels or None,
    }
