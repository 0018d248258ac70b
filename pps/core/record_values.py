"""Records as values: a node with a kind, a life cycle and typed fields.

Their relations, cites and moves.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal, TypeAlias

from pps.core.values import JSON

CiteKind: TypeAlias = Literal["fact", "turn", "record"]
Compare: TypeAlias = Literal["=", "!=", "<", "<=", ">", ">=", "in", "contains", "is_null"]
TITLED_PACK = "events"
"""The pack of the records that are titled texts; every memory has it.

A pack of one's own may name the kind of a titled text too. Its record is of this pack all the same:
what is titled stays so when that pack goes, and this name alone tells it from a typed record.
"""
TITLED_PACK_VERSION = 1


@dataclass(frozen=True, slots=True)
class Cite:
    """What a record rests on. ``gone`` tells that it was forgotten since."""

    kind: CiteKind
    id: str
    gone: bool = False


@dataclass(frozen=True, slots=True)
class Record:
    """A record as it is now: a typed record, or a titled text.

    Attributes:
        id: Its node's uuid; turn: the source in the journal. Its text is the summary, and the
            description of a typed record; a titled text can be longer than its summary.
        summary: 1 to 2,000 characters; of a titled text its first sentence, 200 at most.
        fields: Typed by the kind, dates and times as ISO 8601 texts; of a titled text as given.
        state: Of the kind's life cycle; empty where it has none.
        pack, pack_version: Whose kind it was when it was last written; ``TITLED_PACK`` of a titled
            text.
        version: 1 when it is new, one more with each change; what ``expected_version`` compares.
        actor: Who wrote this version; author: who made it. Empty is the person.
        created_at: Event time, what recency goes by; updated_at: when this version was written.
    """

    id: str
    kind: str
    title: str
    summary: str
    created_at: datetime
    updated_at: datetime
    fields: Mapping[str, JSON] = field(default_factory=dict[str, JSON])
    status: str = "active"
    state: str = ""
    tags: tuple[str, ...] = ()
    pack: str = ""
    pack_version: int = 0
    version: int = 1
    actor: str = ""
    author: str = ""
    turn: str = ""


@dataclass(frozen=True, slots=True)
class Relation:
    """A typed edge between two nodes that was made by hand.

    ``properties`` has ``weight`` where the pack has it.
    """

    id: str
    source: str
    type: str
    target: str
    created_at: datetime
    properties: Mapping[str, JSON] = field(default_factory=dict[str, JSON])
    actor: str = ""


@dataclass(frozen=True, slots=True)
class Transition:
    """One move of a record through its life cycle."""

    record: str
    before: str
    after: str
    actor: str
    at: datetime
    why: str = ""


@dataclass(frozen=True, slots=True)
class Condition:
    """One thing that a field must be.

    Attributes:
        field: Of the kind, or title, summary, status, state, created_at, updated_at.
        value: None with ``is_null``, a list with ``in``.
    """

    field: str
    op: Compare
    value: JSON = None


@dataclass(frozen=True, slots=True)
class RecordQuery:
    """Which records: values of one attribute are alternatives, attributes add up.

    Attributes:
        ids: Only these.
        kinds: Typed kinds, and kinds of open packs for the titled texts of these kinds. Empty for
            every typed kind: a memory has far more titled texts than records to look through.
        since, until: Event time, half-open.
        order: Fields, ``-`` before one for the greatest first; then by creation.
        cursor: ``next_cursor`` of the page before.
    """

    ids: tuple[str, ...] = ()
    kinds: tuple[str, ...] = ()
    statuses: tuple[str, ...] = ()
    states: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    where: tuple[Condition, ...] = ()
    since: datetime | None = None
    until: datetime | None = None
    order: tuple[str, ...] = ()
    limit: int = 100
    cursor: str = ""


@dataclass(frozen=True, slots=True)
class RecordPage:
    """A page of records; ``total`` and ``by_kind`` count all matches.

    The ``next_cursor`` of the last page is empty.
    """

    records: tuple[Record, ...]
    total: int
    next_cursor: str = ""
    by_kind: Mapping[str, int] = field(default_factory=dict[str, int])


@dataclass(frozen=True, slots=True)
class RecordGraph:
    """All records and the relations that hold among them, at one write counter of the entity.

    Attributes:
        stamp: Changes with every write; what is computed of the graph is good as long as it is the
            same.
    """

    records: Mapping[str, Record]
    relations: tuple[Relation, ...]
    stamp: int
