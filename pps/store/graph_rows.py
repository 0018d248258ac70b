"""Converts rows of the graph's tables to values and back, with the SQL of their columns.

``StoredNode`` and ``StoredFact`` hold PPS's value and the fields that only Graphiti reads: its
labels, the attributes that its pipeline wrote, and a fact's reference time.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final

import numpy as np

from pps.core.errors import InvalidRequest, StoreError
from pps.core.text import fold
from pps.core.time import from_micros, micros, plain, precision_of, with_precision
from pps.core.values import JSON, Episode, Fact, Node, Vector
from pps.graph.mapping import node_labels, own_attributes
from pps.journal import names
from pps.store.sql_session import Row, Value, assignments

NODE_COLUMNS: Final = (
    "uuid, name, kind, labels, summary, aliases, tags, attributes, graphiti, created_at, "
    "source, status"
)
SELECT_NODE: Final = (
    "SELECT n.uuid, n.name, n.kind, n.labels, n.summary, n.aliases, n.tags, n.attributes, "
    "n.graphiti, n.created_at "
    "FROM node n"
)
NAME_COLUMNS: Final = "node, place, name, folded, spelling, head, size, is_alias"
FACT_COLUMNS: Final = (
    "uuid, subject, object, relation, text, kind, attributes, graphiti, created_at, "
    "valid_at, valid_precision, invalid_at, invalid_precision, expired_at, reference_time"
)
SELECT_FACT: Final = (
    "SELECT f.uuid, f.subject, f.object, f.relation, f.text, f.kind, f.attributes, f.graphiti, "
    "f.created_at, f.valid_at, f.valid_precision, f.invalid_at, f.invalid_precision, "
    "f.expired_at, f.reference_time, EPISODES_OF(f) "
    "FROM fact f"
)
EPISODE_COLUMNS: Final = (
    "uuid, name, content, source, description, facts, metadata, created_at, "
    "valid_at, valid_precision"
)
SELECT_EPISODE: Final = (
    "SELECT e.uuid, e.name, e.content, e.source, e.description, e.facts, e.metadata, "
    "e.created_at, e.valid_at, e.valid_precision FROM episode e"
)

RECORD_SOURCE: Final = "record_source"
"""Attribute that marks a record's node if the record has its own field named ``source``."""

REPLACE_NODE: Final = f"ON CONFLICT (uuid, grp) DO UPDATE SET {assignments(NODE_COLUMNS)}"
REPLACE_FACT: Final = (
    f"ON CONFLICT (uuid, grp) DO UPDATE SET {assignments(FACT_COLUMNS, but='reference_time')}, "
    "reference_time = coalesce(excluded.reference_time, fact.reference_time)"
)
REPLACE_EPISODE: Final = (
    f"ON CONFLICT (uuid, grp) DO UPDATE SET {assignments(EPISODE_COLUMNS, but='metadata')}, "
    "metadata = CASE excluded.metadata WHEN '' THEN episode.metadata ELSE excluded.metadata END"
)
"""Updates keep Graphiti's fields if the new value has none."""


@dataclass(frozen=True, slots=True)
class StoredNode:
    """A node with Graphiti's fields.

    Attributes:
        node: PPS's value; its attributes are Graphiti's, overridden by the user's.
        labels: Graphiti's labels, including ``Entity``.
        graphiti: Attributes that Graphiti's pipeline wrote.
    """

    node: Node
    labels: tuple[str, ...]
    graphiti: Mapping[str, JSON] = field(default_factory=dict[str, JSON])

    @property
    def uuid(self) -> str:
        return self.node.uuid

    @classmethod
    def from_row(cls, row: Row) -> StoredNode:
        return cls(node_from_row(row), tuple(_list(row[3])), _object(row[8]))

    @classmethod
    def of(cls, node: Node, graphiti: Mapping[str, JSON]) -> StoredNode:
        """Return the stored form of a node; InvalidRequest if its kind is not a valid label."""
        return cls(node, tuple(node_labels(node)), graphiti)

    def columns(self) -> tuple[Value, ...]:
        """Return the values of ``NODE_COLUMNS``; InvalidRequest for invalid attributes."""
        node = self.node
        return (
            node.uuid,
            node.name,
            node.kind,
            _json(self.labels),
            node.summary,
            _json(node.aliases),
            _json(node.tags),
            _attributes(own_attributes(node.attributes, self.graphiti)),
            _attributes(self.graphiti),
            micros(node.created_at),
            _text_attribute(node, RECORD_SOURCE) or _text_attribute(node, "source"),
            _text_attribute(node, "status"),
        )

    def name_rows(self) -> list[tuple[Value, ...]]:
        """Return a row of ``NAME_COLUMNS`` for the name and for each distinct alias."""
        rows = list[tuple[Value, ...]]()
        for place, name in enumerate(dict.fromkeys((self.node.name, *self.node.aliases))):
            units = names.units(name)
            head, size = (units[0], min(len(units), names.MAX_UNITS)) if units else ("", 0)
            spelling = names.spelling(units)
            rows.append((self.uuid, place, name, fold(name), spelling, head, size, int(place > 0)))
        return rows


@dataclass(frozen=True, slots=True)
class StoredFact:
    """A fact with Graphiti's attributes and the event time of the episode that states it."""

    fact: Fact
    graphiti: Mapping[str, JSON] = field(default_factory=dict[str, JSON])
    reference_time: datetime | None = None

    @property
    def uuid(self) -> str:
        return self.fact.uuid

    @classmethod
    def from_row(cls, row: Row) -> StoredFact:
        return cls(fact_from_row(row), _object(row[7]), _moment(row[14]))

    def columns(self) -> tuple[Value, ...]:
        """Return the values of ``FACT_COLUMNS``; InvalidRequest for invalid attributes."""
        fact = self.fact
        return (
            fact.uuid,
            fact.subject,
            fact.object,
            fact.relation,
            fact.text,
            fact.kind,
            _attributes(own_attributes(fact.attributes, self.graphiti)),
            _attributes(self.graphiti),
            micros(fact.created_at),
            _micros(fact.valid_at),
            _precision(fact.valid_at),
            _micros(fact.invalid_at),
            _precision(fact.invalid_at),
            _micros(fact.expired_at),
            _micros(self.reference_time),
        )


@dataclass(frozen=True, slots=True)
class StoredEpisode:
    """An episode with Graphiti's source and its metadata as JSON text."""

    episode: Episode
    source: str
    metadata: str = ""

    @property
    def uuid(self) -> str:
        return self.episode.uuid

    @classmethod
    def from_row(cls, row: Row) -> StoredEpisode:
        return cls(episode_from_row(row), row[3], row[6])

    def columns(self) -> tuple[Value, ...]:
        """Return the values of ``EPISODE_COLUMNS``."""
        episode = self.episode
        return (
            episode.uuid,
            episode.name,
            episode.content,
            self.source,
            episode.description,
            _json(episode.facts),
            self.metadata,
            micros(episode.created_at),
            micros(plain(episode.valid_at)),
            precision_of(episode.valid_at),
        )


def node_from_row(row: Row) -> Node:
    """Return the node of a row of ``SELECT_NODE``."""
    uuid, name, kind, _, summary, aliases, tags, attributes, graphiti, created_at = row
    return Node(
        uuid=uuid,
        name=name,
        created_at=from_micros(created_at),
        kind=kind,
        summary=summary,
        aliases=tuple(_list(aliases)),
        tags=tuple(_list(tags)),
        attributes=_merged(graphiti, attributes),
    )


def fact_from_row(row: Row) -> Fact:
    """Return the fact of a row of ``SELECT_FACT``."""
    uuid, subject, object_, relation, text, kind, attributes, graphiti, created_at, *times = row
    valid_at, valid_precision, invalid_at, invalid_precision, expired_at, _, episodes = times
    return Fact(
        uuid=uuid,
        subject=subject,
        object=object_,
        relation=relation,
        text=text,
        created_at=from_micros(created_at),
        kind=kind,
        episodes=tuple(_list(episodes)),
        valid_at=_world_time(valid_at, valid_precision),
        invalid_at=_world_time(invalid_at, invalid_precision),
        expired_at=_moment(expired_at),
        attributes=_merged(graphiti, attributes),
    )


def episode_from_row(row: Row) -> Episode:
    """Return the episode of a row of ``SELECT_EPISODE``; an unknown source reads as ``text``."""
    uuid, name, content, source, description, facts, _, created_at, valid_at, precision = row
    return Episode(
        uuid=uuid,
        name=name,
        content=content,
        valid_at=with_precision(from_micros(valid_at), precision),
        created_at=from_micros(created_at),
        source=source if source in ("message", "json") else "text",
        description=description,
        facts=tuple(_list(facts)),
    )


def vector_blob(vector: Vector) -> bytes:
    """Return a vector as it is stored: float32, little endian."""
    return np.asarray(vector, dtype="<f4").tobytes()


def vector_from_blob(blob: bytes) -> Vector:
    """Return a stored vector, shape (dimension,); StoreError when it is none."""
    if not blob or len(blob) % 4:
        raise StoreError("a stored vector is damaged")
    return np.frombuffer(blob, dtype="<f4").astype(np.float32, copy=False)


def _merged(graphiti: str, own: str) -> Mapping[str, JSON]:
    """Return the attributes of a value: the user's own over Graphiti's."""
    return {**_object(graphiti), **_object(own)}


def _text_attribute(node: Node, name: str) -> str:
    value = node.attributes.get(name, "")
    return value if isinstance(value, str) else ""


def _micros(moment: datetime | None) -> int | None:
    return None if moment is None else micros(plain(moment))


def _precision(moment: datetime | None) -> str:
    return "instant" if moment is None else precision_of(moment)


def _moment(value: int | None) -> datetime | None:
    return None if value is None else from_micros(value)


def _world_time(value: int | None, precision: str) -> datetime | None:
    return None if value is None else with_precision(from_micros(value), precision)


def _json(values: Sequence[str]) -> str:
    return json.dumps(values, ensure_ascii=False) if values else "[]"


def _attributes(values: Mapping[str, JSON]) -> str:
    if not values:
        return "{}"
    try:
        return json.dumps(values, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    except (TypeError, ValueError):
        raise InvalidRequest(
            "attributes", "must be JSON: text, numbers, true, false, null, lists, objects"
        ) from None


def _list(text: str) -> list[str]:
    return [] if text == "[]" else _read(text, list)


def _object(text: str) -> dict[str, JSON]:
    return {} if text == "{}" else _read(text, dict)


def _read(text: str, kind: type[Any]) -> Any:
    try:
        value = json.loads(text)
    except ValueError:
        value = None
    if not isinstance(value, kind):
        raise StoreError("a stored value is damaged: it is not the JSON that belongs there")
    return value
