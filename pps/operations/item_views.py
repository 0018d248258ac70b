"""Nodes, facts, turns and episodes in answers: as data, as a line for a model, and as text.

Fields that do not apply are left out of the JSON. Times are ISO 8601 in UTC.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Literal, TypeAlias, cast

from pydantic import JsonValue

from pps.context.lines import span
from pps.core.recalled import Successor
from pps.core.text import counted, one_line
from pps.core.time import CoarseTime, Precision, coarse_text, precision_of, shown, shown_day
from pps.core.values import Episode, Fact, Node, Turn

LINE_LENGTH = 400
_SHORT_ID = 8


@dataclass(frozen=True, slots=True)
class NodeView:
    """A node; a record has its full text in ``content`` and its event time in ``created_at``."""

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
class Later:
    """The later statement that took an item's place; ``sure`` is false where it only may have."""

    text: str
    at: str
    id: str
    sure: Literal[False] | None = None


@dataclass(frozen=True, slots=True)
class FactLine:
    """A fact: its sentence, its time, and its two nodes by the first characters of their ids."""

    text: str
    id: str
    valid_at: str | None = None
    invalid_at: str | None = None
    relation: str | None = None
    subject: str | None = None
    object: str | None = None
    superseded_by: Later | None = None


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
    return _episode_view(item)


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


def fact_view(
    fact: Fact, names: Mapping[str, str], superseded_by: Successor | None = None
) -> FactView:
    """Return the view of a fact, with the known names of its ends, and what superseded it."""
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


def _episode_view(episode: Episode) -> EpisodeView:
    return EpisodeView(
        episode.uuid,
        episode.name,
        episode.content,
        episode.valid_at,
        coarse_precision(episode.valid_at),
    )


def coarse_precision(moment: datetime | None) -> Precision | None:
    """Return ``day``, ``month`` or ``year`` of a date.

    None of an instant, which answers leave out.
    """
    return None if moment is None or precision_of(moment) == "instant" else precision_of(moment)


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
        superseded_by=later_view(fact.superseded_by),
    )


def fact_text(fact: FactView) -> str:
    """Return a fact as a line, its sentence whole, with what it joins."""
    text = " ".join(fact.text.split())
    held = span(fact.valid_at, fact.invalid_at)
    ends = f"{fact.relation}: {fact.subject[:_SHORT_ID]} → {fact.object[:_SHORT_ID]}"
    return f"{text}{held}{successor_mark(fact.superseded_by)} [{fact.id}] {ends}"


def fact_line(fact: FactView) -> str:
    """Return a fact as a line: its sentence, since when and until when, its id."""
    held = span(fact.valid_at, fact.invalid_at)
    return f"{short_line(fact.text)}{held}{successor_mark(fact.superseded_by)} [{fact.id}]"


def successor_mark(successor: Successor | None) -> str:
    """Return in brackets what took the place of a statement; nothing while it stands."""
    return f" ({one_line(successor.mark(), LINE_LENGTH)})" if successor else ""


def later_view(successor: Successor | None) -> Later | None:
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


def time_in_brackets(moment: datetime | None) -> str:
    """Return a moment in brackets, to the minute; nothing when there is none."""
    return f" ({moment_text(moment)})" if moment else ""


def moment_text(moment: datetime) -> str:
    """Return a moment to the minute, on the clock that it is of."""
    return shown(moment, moment.tzinfo or UTC)


def short_line(text: str) -> str:
    return one_line(text, LINE_LENGTH)


def value_text(value: object) -> str:
    """Return a field's value to read: a text as it is, anything else as JSON."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def redacted_text(number: int) -> str:
    """Return how many secrets were taken out, as a line of its own.

    Nothing when there were none.
    """
    return (
        f"\n{counted(number, 'secret')} replaced with a marker before anything was kept."
        if number
        else ""
    )


def day_text(moment: datetime | None) -> str:
    """Return a day; a question mark when there is none."""
    return shown_day(moment, moment.tzinfo or UTC) if moment else "?"
