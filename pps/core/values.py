"""The values that modules exchange: frozen, slotted, free of any library's types."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from typing import TYPE_CHECKING, Literal, TypeAlias

from typing_extensions import TypeAliasType

from pps.core.time import CoarseTime, Time

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

if TYPE_CHECKING:
    JSON: TypeAlias = "str | int | float | bool | Sequence[JSON] | Mapping[str, JSON] | None"
else:
    JSON = TypeAliasType(
        "JSON", "str | int | float | bool | Sequence[JSON] | Mapping[str, JSON] | None"
    )
    """The same for Pydantic, which reads an alias of itself only so."""
Vector: TypeAlias = "NDArray[np.float32]"
"""One vector, shape (dimension,): unit-length, of the entity's pinned dimension."""
Matrix: TypeAlias = "NDArray[np.float32]"
"""One such vector a row, shape (rows, dimension)."""
FactKind: TypeAlias = Literal["fact", "relation"]
ItemKind: TypeAlias = Literal["node", "fact", "episode", "anchor"]
ChannelName: TypeAlias = Literal["nodes", "facts", "episodes", "anchors", "turns"]
ClosingCause: TypeAlias = Literal["superseded", "ended", "corrected", "explicit"]
ReceiptState: TypeAlias = Literal["accepted", "done", "duplicate", "failed"]

RESERVED_KINDS = frozenset(("Entity", "Episodic", "Community", "Saga", "RelatesToNode_"))
"""Graphiti's own labels: a node of such a kind would be taken for one of its other things."""

SELF = "Self"
"""The kind of the entity's own node: the centre of its graph, and never an answer."""

CHANNELS: tuple[ChannelName, ...] = ("nodes", "facts", "episodes", "anchors", "turns")
"""Every channel, in the order in which they are shown."""


@dataclass(frozen=True, slots=True)
class Node:
    """A thing that a memory knows; Graphiti's EntityNode.

    Attributes:
        uuid: Canonical UUID, minted by PPS or by Graphiti.
        name: 1 to 500 characters; the only text that its vector embeds.
        kind: One label beside ``Entity``, such as ``Person``; ``[A-Za-z][A-Za-z0-9_]{0,63}``,
            none of ``RESERVED_KINDS``.
        summary: Free text, may be empty.
        aliases: Other names that resolve to this node.
        tags: Lower-case tags.
        attributes: The user's own fields; kept as one JSON string in the graph.
        created_at: When PPS learned of it (aware UTC).
    """

    uuid: str
    name: str
    created_at: datetime
    kind: str = "Thing"
    summary: str = ""
    aliases: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    attributes: Mapping[str, JSON] = field(default_factory=dict[str, JSON])


@dataclass(frozen=True, slots=True)
class Fact:
    """A sentence that joins two nodes; Graphiti's EntityEdge.

    Attributes:
        subject, object: Node uuids. ``relation`` is the edge's name, such as ``LIVES_IN``.
        text: The sentence, 1 to 4,000 characters.
        kind: ``relation`` for typed links that the facts channel leaves out unless asked.
        episodes: Uuids of the supporting episodes, oldest first.
        valid_at, invalid_at: World time, half-open ``[valid_at, invalid_at)``; None is unknown /
            open. A day, month or year is a ``CoarseTime``; so are a turn's ``occurred_at`` and a
            draft's times.
        created_at, expired_at: When PPS learned of it and when it stopped believing it.
    """

    uuid: str
    subject: str
    object: str
    relation: str
    text: str
    created_at: datetime
    kind: FactKind = "fact"
    episodes: tuple[str, ...] = ()
    valid_at: Time | None = None
    invalid_at: Time | None = None
    expired_at: datetime | None = None
    attributes: Mapping[str, JSON] = field(default_factory=dict[str, JSON])


@dataclass(frozen=True, slots=True)
class Closing:
    """Why a fact has an ``invalid_at`` that its own statement did not give it.

    Attributes:
        fact: The closed fact.
        by_fact: The fact that took its place; empty when it was ended without one.
        by_turn: The turn whose words did it.
        cause: ``superseded``: a later statement in a single-valued slot; ``ended``: a statement
            that it holds no longer; ``corrected``: it was put right in the same session;
            ``explicit``: the fact that took its place names it (``invalidates``), or a model says
            that it contradicts it.
        at: The ``invalid_at`` that it gives the fact, world time.
        closed_at: When PPS learned of it.
        own_end: The ``invalid_at`` that the fact has without any closing; None is open.
    """

    fact: str
    by_fact: str
    by_turn: str
    cause: ClosingCause
    at: datetime
    closed_at: datetime
    own_end: datetime | None = None


@dataclass(frozen=True, slots=True)
class Episode:
    """One received text in the graph; Graphiti's EpisodicNode.

    A turn's episode has the turn's uuid.
    """

    uuid: str
    name: str
    content: str
    valid_at: Time
    created_at: datetime
    source: Literal["message", "text", "json"] = "message"
    description: str = ""
    facts: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Chunk:
    """Which part of a document a turn is.

    Attributes:
        path: The file, below the folder that was watched or imported.
        part: Counts from 0; parts: how many the document had when this was last looked at.
    """

    path: str
    part: int
    parts: int


@dataclass(frozen=True, slots=True)
class Turn:
    """One message in the journal; the truth of what was said.

    Attributes:
        seq: Position in the entity's journal, 1 upwards, never reused.
        role: ``user``, ``assistant``, ``system`` or ``tool``.
        actor: Who wrote it inside the entity, or an empty string.
        session: The conversation it belongs to.
        source, source_ref: Where it came from and its id there (empty when minted here).
        occurred_at: Event time; recorded_at: when it was acknowledged.
        chunk: Which part of a document it is; None for everything else.
        utc_offset_s: Seconds east of UTC of the clock that the event was noted by; None is that of
            the entity's zone.
    """

    uuid: str
    seq: int
    role: str
    content: str
    session: str
    occurred_at: datetime
    recorded_at: datetime
    actor: str = ""
    source: str = "api"
    source_ref: str = ""
    kind: str = "turn"
    tags: tuple[str, ...] = ()
    chunk: Chunk | None = None
    utc_offset_s: int | None = None


def local_time(turn: Turn, zone: tzinfo = UTC) -> datetime:
    """Return when a turn was said, in its own offset or else in the entity's zone.

    This is the reference time of its relative words ("yesterday"). A date alone has no zone and
    stays as it is.
    """
    if isinstance(turn.occurred_at, CoarseTime):
        return turn.occurred_at
    if turn.utc_offset_s is not None:
        zone = timezone(timedelta(seconds=turn.utc_offset_s))
    return turn.occurred_at.astimezone(zone)


def speaker_of(turn: Turn) -> str:
    return turn.actor or turn.role


def words_of(turn: Turn) -> str:
    """Return a turn's words without the speaker's name that they may begin with."""
    return turn.content.removeprefix(f"{turn.actor}: ") if turn.actor else turn.content


def spoken(turn: Turn) -> str:
    """Return a turn's words after ``speaker:``, unless they begin with it."""
    speaker = speaker_of(turn)
    return turn.content if turn.content.startswith(f"{speaker}:") else f"{speaker}: {turn.content}"


@dataclass(frozen=True, slots=True)
class AnchorPassage:
    """A passage of an anchor: ``slug`` names the Markdown file, ``part`` counts passages from 0."""

    slug: str
    part: int
    title: str
    text: str
    modified_at: datetime


@dataclass(frozen=True, slots=True)
class NodeDraft:
    """A node as a caller gives it; resolved by folded name or alias inside the entity."""

    name: str
    kind: str = "Thing"
    summary: str = ""
    aliases: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    attributes: Mapping[str, JSON] = field(default_factory=dict[str, JSON])


@dataclass(frozen=True, slots=True)
class FactDraft:
    """A fact as a caller gives it; subject and object are names (made when new).

    Attributes:
        text: The sentence; empty means ``subject relation object``.
        invalidates: Facts of this entity that this one replaces: uuids, texts (case and punctuation
            folded), or ``Subject RELATION``, with or without an object. They are closed at this
            fact's ``valid_at``.
    """

    subject: str
    relation: str
    object: str
    text: str = ""
    valid_at: Time | None = None
    invalid_at: Time | None = None
    invalidates: tuple[str, ...] = ()
    kind: FactKind = "fact"


@dataclass(frozen=True, slots=True)
class EndingDraft:
    """A statement that facts no longer hold, with no fact in their place: "I quit my job".

    It closes the facts that it is about and that were stated before it (by their turns' own times),
    also when they are taken in later. A fact that is stated again after it holds again.

    Attributes:
        subject, object: Names of the nodes that the facts join; an empty one is any node, and one
            of the two is given. A subject alone ends what is said of it; "Biscuit died" takes two
            endings, one with ``Biscuit`` as the subject and one (``HAS``) with it as the object.
        relations: Names of the relations that end, compared as the table of relations compares
            them; empty is any.
        text: The sentence, as it was said.
        ended_at: Since when they hold no longer, where the text says so; None is the turn's own
            time.
        ended_before: End of the stretch in which that lies, where the text names one ("in March"):
            ``ended_at`` is its beginning then. None when ``ended_at`` is exact.
    """

    subject: str = ""
    relations: tuple[str, ...] = ()
    object: str = ""
    text: str = ""
    ended_at: Time | None = None
    ended_before: Time | None = None


@dataclass(frozen=True, slots=True)
class CorrectionDraft:
    """A statement that puts right what the session just said, as "Actually no, it's Turin." does.

    The fact meant is the last that the speaker's turns before it in the session state (of the turns
    within reach, see ``ingest.supersession``). A fact with its subject and relation and the new
    object takes its place, from its beginning on. When no such fact is known, nothing is changed.

    Attributes:
        object: What is right.
        text: The sentence, as it was said.
        instead: What was wrong, where the text says so ("not Rex"): only a fact with such an object
            is meant.
        relations: Names of the relations that can be meant, "FAVOURITE_*" for all that begin so;
            empty is any single-valued one.
    """

    object: str
    text: str = ""
    instead: str = ""
    relations: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class RetractionDraft:
    """A statement about one fact: that it holds no longer, or that it was never true.

    Where facts are given with the same turn, the first of them takes its place.

    Attributes:
        fact: The id of the fact; one that is not known is left out.
        ended_at: Since when it holds no longer; None is since it began: it was never true, and held
            at no time.
    """

    fact: str
    ended_at: Time | None = None


@dataclass(frozen=True, slots=True)
class RecordDraft:
    """What makes a turn the source of a record: a node with a title, a kind and fields of its own.

    Attributes:
        title: 1 to 500 characters; empty takes the first 80 of the content.
        kind: The node's kind, such as ``voice``.
        parent: Id or title of the record that it is a child of; empty for none.
        attributes: The caller's own fields.
        pack: Whose kind it is; empty where the kind is no pack's. Only such a record has a summary,
            status and state, and it is always a node of its own.
    """

    title: str = ""
    kind: str = "manual"
    parent: str = ""
    attributes: Mapping[str, JSON] = field(default_factory=dict[str, JSON])
    pack: str = ""
    summary: str = ""
    status: str = ""
    state: str = ""


@dataclass(frozen=True, slots=True)
class RelationDraft:
    """A typed link between two nodes that are there, each given by id or by name.

    Attributes:
        relation_type: Such as ``references`` or ``child_of``; ``[A-Za-z][A-Za-z0-9_]{0,63}``.
        weight: How strong or how sure, 0 to 1.
        properties: What a pack gives the relation beside.
    """

    source: str
    target: str
    relation_type: str
    weight: float = 1.0
    properties: Mapping[str, JSON] = field(default_factory=dict[str, JSON])


@dataclass(frozen=True, slots=True)
class EventReceipt:
    """What became of an event; ``duration_ms`` is wall time.

    Attributes:
        node_id: The record; empty until it is in the graph (``state`` is ``accepted``).
        edges_created: Relations that this event made: to its parent and to what it links to.
        skipped: What was left out, and why; links that wait for their title among it.
        turn_id: Its source in the journal; job_id: the work on it.
        version: 1 when it is new; one more with each change.
    """

    node_id: str
    title: str
    edges_created: int
    tags_applied: tuple[str, ...]
    duration_ms: float
    skipped: tuple[Skipped, ...]
    turn_id: str
    job_id: int
    state: ReceiptState
    redacted: int = 0
    version: int = 1


@dataclass(frozen=True, slots=True)
class Related:
    """What became of relations: ids of those that hold now, in order, and what was left out."""

    edges_created: int
    ids: tuple[str, ...]
    skipped: tuple[Skipped, ...] = ()


@dataclass(frozen=True, slots=True)
class Skipped:
    """Something of a request that was left out, and why."""

    what: str
    why: str


@dataclass(frozen=True, slots=True)
class Receipt:
    """What became of a ``remember``: counts are of this call alone.

    ``duration_ms`` is wall time.
    """

    turn_id: str
    job_id: int
    state: ReceiptState
    nodes: int = 0
    facts: int = 0
    edges: int = 0
    tags: tuple[str, ...] = ()
    skipped: tuple[Skipped, ...] = ()
    redacted: int = 0
    duration_ms: float = 0.0


@dataclass(frozen=True, slots=True)
class Path:
    """A walk in the graph: nodes in order and the facts between them (one fewer)."""

    nodes: tuple[Node, ...]
    facts: tuple[Fact, ...]


@dataclass(frozen=True, slots=True)
class Subgraph:
    """Nodes and the facts among them; ``hops`` gives each node's distance from the start."""

    nodes: tuple[Node, ...]
    facts: tuple[Fact, ...]
    hops: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class GraphCounts:
    """How many of each the entity owns in the graph."""

    nodes: int
    facts: int
    episodes: int
    mentions: int
