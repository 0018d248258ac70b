"""What each verb answers, as data: small views of the core's values, the same for every surface.

Fields that do not apply are left out of the JSON. Times are ISO 8601 in UTC.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime
from typing import Literal, TypeAlias, cast

from pydantic import JsonValue, model_serializer

from pps.core.recalled import (
    Channel,
    Hit,
    Pack,
    Recall,
    Relationship,
    SearchStats,
    Step,
    Successor,
)
from pps.core.reports import Duplicate, Ledger, Merge, TimelinePage
from pps.core.time import Precision, precision_of
from pps.core.values import ChannelName, Episode, Fact, Node, Turn
from pps.entities.last_proof import Proof
from pps.ingest.revising import HistoryEntry


@dataclass(frozen=True, slots=True)
class NodeView:
    """A node; a record has its whole text as ``content``, and ``created_at`` is when that happened."""

    id: str
    name: str
    kind: str
    summary: str
    created_at: datetime
    aliases: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    attributes: Mapping[str, JsonValue] = field(default_factory=dict[str, JsonValue])
    content: str | None = None
    type: Literal["node"] = "node"


@dataclass(frozen=True, slots=True)
class FactView:
    """A fact; ``subject`` and ``object`` are ids of nodes, the names stand beside them where known.

    ``superseded_by`` is the later statement that took its place; absent while it stands.
    """

    id: str
    text: str
    relation: str
    subject: str
    object: str
    episodes: tuple[str, ...]
    created_at: datetime
    kind: str = "fact"
    subject_name: str | None = None
    object_name: str | None = None
    valid_at: datetime | None = None
    invalid_at: datetime | None = None
    expired_at: datetime | None = None
    valid_at_precision: Precision | None = None
    invalid_at_precision: Precision | None = None
    superseded_by: Successor | None = None
    type: Literal["fact"] = "fact"


@dataclass(frozen=True, slots=True)
class TurnView:
    """A message as it was said; ``superseded_by`` is the later statement that took its place."""

    id: str
    content: str
    role: str
    session: str
    source: str
    occurred_at: datetime
    actor: str | None = None
    source_ref: str | None = None
    kind: str = "turn"
    tags: tuple[str, ...] = ()
    occurred_at_precision: Precision | None = None
    utc_offset_s: int | None = None
    superseded_by: Successor | None = None
    type: Literal["turn"] = "turn"


@dataclass(frozen=True, slots=True)
class EpisodeView:
    """A text that the graph took in without a turn of the journal."""

    id: str
    name: str
    content: str
    occurred_at: datetime
    occurred_at_precision: Precision | None = None
    type: Literal["episode"] = "episode"


ItemView: TypeAlias = NodeView | FactView | TurnView | EpisodeView


@dataclass(frozen=True, slots=True)
class LastProof:
    """The last proof of isolation; nothing when none was run."""

    proof: Proof | None = None


@dataclass(frozen=True, slots=True)
class Examined:
    """Whether a memory is well and its journal, graph and indexes hold the same ids."""

    ok: bool
    problems: tuple[str, ...]
    notes: tuple[str, ...]
    ledger: Ledger


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
    """How much a list brought: ``avg_score`` is null when it is empty, ``token_estimate`` is of the hits' texts."""

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


@dataclass(frozen=True, slots=True)
class Timeline:
    """Facts in order of world time; ``next_cursor`` is empty on the last page."""

    facts: tuple[FactView, ...]
    next_cursor: str


@dataclass(frozen=True, slots=True)
class AnchorDeleted:
    """Which anchor is gone."""

    slug: str
    deleted: bool = True


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


@dataclass(frozen=True, slots=True)
class Duplicates:
    """Pairs that may be one thing, and the merges that were done, newest first."""

    duplicates: tuple[Duplicate, ...]
    merges: tuple[Merge, ...]


def item_view(
    item: Node | Fact | Episode | Turn,
    text: Turn | None = None,
    superseded_by: Successor | None = None,
) -> ItemView:
    """Return the view of an item, whole; of a record with the turn whose text it is."""
    if isinstance(item, Node):
        view = node_view(item)
        return replace(view, content=text.content, created_at=text.occurred_at) if text else view
    if isinstance(item, Fact):
        return fact_view(item, {}, superseded_by)
    if isinstance(item, Turn):
        return turn_view(item, superseded_by=superseded_by)
    return _episode(item)


def coarse_precision(moment: datetime | None) -> Precision | None:
    """Return ``day``, ``month`` or ``year`` of a date.

    None of an instant, which answers leave out.
    """
    return None if moment is None or precision_of(moment) == "instant" else precision_of(moment)


def fact_view(
    fact: Fact, names: Mapping[str, str], superseded_by: Successor | None = None
) -> FactView:
    """Return the view of a fact, with the names of its ends where they are known, and what took its place."""
    return FactView(
        id=fact.uuid,
        text=fact.text,
        relation=fact.relation,
        subject=fact.subject,
        object=fact.object,
        episodes=fact.episodes,
        created_at=fact.created_at,
        kind=fact.kind,
        subject_name=names.get(fact.subject),
        object_name=names.get(fact.object),
        valid_at=fact.valid_at,
        invalid_at=fact.invalid_at,
        expired_at=fact.expired_at,
        valid_at_precision=coarse_precision(fact.valid_at),
        invalid_at_precision=coarse_precision(fact.invalid_at),
        superseded_by=superseded_by,
    )


def recall_view(recall: Recall) -> RecallView:
    return RecallView(
        recall.query,
        recall.profile,
        {name: _channel(channel) for name, channel in recall.channels.items()},
        _rounded(recall.took_ms),
        recall.notes,
    )


def pack_view(pack: Pack) -> PackView:
    channels: Mapping[ChannelName, Channel] = pack.recall.channels if pack.recall else {}
    return PackView(
        text=pack.text,
        tokens=pack.tokens,
        counter=pack.counter,
        sections=pack.sections,
        left_out=pack.left_out,
        hits={name: tuple(hit.id for hit in channel.hits) for name, channel in channels.items()},
        took_ms=round(pack.took_ms, 2),
        failed=tuple(name for name, channel in channels.items() if channel.error),
    )


def timeline_view(page: TimelinePage) -> Timeline:
    facts = (fact_view(fact, page.names, page.successors.get(fact.uuid)) for fact in page.facts)
    return Timeline(tuple(facts), page.next_cursor)


def version_view(entry: HistoryEntry, *, with_content: bool) -> VersionView:
    version = entry.version
    content = entry.version.content if with_content else None
    given = (version.title or None, version.actor or None, entry.diff or None, content)
    return VersionView(version.number, version.change, version.at, version.tags, *given)


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
                fact_view(relationship.fact, _names(relationship))
                for relationship in hit.relationships
            )
            or None
        )
        return replace(view, title=item.name, kind=item.kind, relationships=joined)
    return replace(view, title=item.title)


def _names(relationship: Relationship) -> dict[str, str]:
    return {
        end: name
        for end, name in zip(
            (relationship.fact.subject, relationship.fact.object), relationship.names, strict=True
        )
        if name
    }


def _channel(channel: Channel) -> ChannelView:
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


def node_view(node: Node) -> NodeView:
    return NodeView(
        id=node.uuid,
        name=node.name,
        kind=node.kind,
        summary=node.summary,
        created_at=node.created_at,
        aliases=node.aliases,
        tags=node.tags,
        attributes=cast("Mapping[str, JsonValue]", node.attributes),
    )


def turn_view(
    turn: Turn, most: int | None = None, superseded_by: Successor | None = None
) -> TurnView:
    """Return the view of a turn, with at most so many characters of it, and what took its place."""
    return TurnView(
        id=turn.uuid,
        content=turn.content[:most],
        role=turn.role,
        session=turn.session,
        source=turn.source,
        occurred_at=turn.occurred_at,
        actor=turn.actor or None,
        source_ref=turn.source_ref or None,
        kind=turn.kind,
        tags=turn.tags,
        occurred_at_precision=coarse_precision(turn.occurred_at),
        utc_offset_s=turn.utc_offset_s,
        superseded_by=superseded_by,
    )


def _episode(episode: Episode) -> EpisodeView:
    return EpisodeView(
        episode.uuid,
        episode.name,
        episode.content,
        episode.valid_at,
        coarse_precision(episode.valid_at),
    )


def _rounded(times: Mapping[str, float]) -> dict[str, float]:
    return {name: round(value, 2) for name, value in times.items()}
