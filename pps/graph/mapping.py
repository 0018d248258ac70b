"""Converts PPS's values to Graphiti's rows and back.

What Graphiti has no place for (kind, aliases, tags, the user's own attributes) is one JSON string
under the attribute ``pps``, so that stock Graphiti reads the graph. Attributes that Graphiti's own
pipeline wrote are "foreign": they are kept, and a reader sees them under the user's own.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Mapping
from datetime import UTC, datetime
from typing import Any, Literal, Protocol, TypeVar, cast

import numpy as np

from pps.core.errors import InvalidRequest, StoreError
from pps.core.ids import check_uuid, stable_id
from pps.core.time import from_micros, is_midnight, plain, precision_of, with_precision
from pps.core.values import JSON, RESERVED_KINDS, Episode, Fact, Node, Vector

ATTRIBUTE = "pps"
DEFAULT_KIND = "Thing"

FACT_TIMES = ("created_at", "expired_at", "valid_at", "invalid_at")
"""The times of a fact, as properties."""
_WORLD_TIMES = ("valid_at", "invalid_at")
_TIMES = "times"
"""In a fact's ``pps``: name of a time → precision that ``with_precision`` cannot tell."""
_KIND = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,63}")
_ROW_FIELDS = frozenset(
    (
        *("uuid", "name", "group_id", "labels", "created_at", "summary", "name_embedding", "fact"),
        *("source_node_uuid", "target_node_uuid", "source_uuid", "target_uuid", "fact_embedding"),
        *("episodes", "expired_at", "valid_at", "invalid_at", "reference_time"),
    )
)
_KNOWN = _ROW_FIELDS | {ATTRIBUTE}
_REFUSED = frozenset(("uuid", "group_id", "labels"))


class _HasUuid(Protocol):
    @property
    def uuid(self) -> str: ...


_Item = TypeVar("_Item", bound=_HasUuid)


def node_labels(node: Node) -> list[str]:
    """Return ``Entity`` and the kind.

    The default kind adds no label, so that Graphiti may find a better one.

    Raises:
        InvalidRequest: The kind is not ``[A-Za-z][A-Za-z0-9_]{0,63}`` (labels reach statements as
            text), or reserved.
    """
    if not _KIND.fullmatch(node.kind) or node.kind in RESERVED_KINDS:
        raise InvalidRequest(
            "kind", "must match [A-Za-z][A-Za-z0-9_]{0,63} and be no label of Graphiti's own"
        )
    return ["Entity"] if node.kind == DEFAULT_KIND else ["Entity", node.kind]


def node_columns(node: Node) -> dict[str, Any]:
    """Return the columns of a node that both stores write in the same way, as with the next two."""
    return {"name": node.name, "created_at": node.created_at, "summary": node.summary}


def fact_columns(fact: Fact) -> dict[str, Any]:
    return {
        "name": fact.relation,
        "fact": fact.text,
        "episodes": list(fact.episodes),
        **fact_times(fact),
    }


def fact_times(fact: Fact) -> dict[str, datetime | None]:
    """Return the times of a fact as instants; how precise they are stands in its ``pps``."""
    times: dict[str, datetime | None] = {name: getattr(fact, name) for name in FACT_TIMES}
    return {name: None if at is None else plain(at) for name, at in times.items()}


def episode_columns(episode: Episode) -> dict[str, Any]:
    return {
        "name": episode.name,
        "content": episode.content,
        "valid_at": plain(episode.valid_at),
        "created_at": episode.created_at,
        "source": episode.source,
        "source_description": episode.description,
        "entity_edges": list(episode.facts),
    }


def node_pps(node: Node, foreign: Mapping[str, Any] | None = None) -> str:
    """Return the JSON of a node's ``pps``, without attributes equal to Graphiti's (``foreign``)."""
    own = own_attributes(node.attributes, foreign)
    return _dump({"kind": node.kind, "aliases": node.aliases, "tags": node.tags, "attributes": own})


def fact_pps(fact: Fact, foreign: Mapping[str, Any] | None = None) -> str:
    """Return the JSON string for a fact's ``pps`` attribute; ``foreign`` as in ``node_pps``."""
    precisions = _precisions(fact)
    if fact.kind == "fact" and not fact.attributes and not precisions:
        return _PLAIN_PPS
    ours: dict[str, object] = {
        "kind": fact.kind,
        "attributes": own_attributes(fact.attributes, foreign),
    }
    return _dump({**ours, _TIMES: precisions} if precisions else ours)


def _precisions(fact: Fact) -> dict[str, str]:
    """Return the precisions that a time does not imply: midnight is a day, else an instant."""
    precisions: dict[str, str] = {}
    for name in _WORLD_TIMES:
        at: datetime | None = getattr(fact, name)
        if at is not None and is_midnight(at) and precision_of(at) != "day":
            precisions[name] = precision_of(at)
    return precisions


def joined(texts: Collection[str]) -> str:
    """Return ids, or other texts without commas, as one text.

    Drivers take a microsecond or two for each value of a list.

    Raises:
        InvalidRequest: One of them has a comma.
    """
    text = ",".join(texts)
    if text.count(",") >= max(1, len(texts)):
        raise InvalidRequest("uuid", "must not have a comma")
    return text


def foreign_attributes(attributes: object) -> dict[str, Any]:
    """Return Graphiti's own attributes in a column: a mapping, a JSON string or None."""
    return {key: value for key, value in _mapping(attributes).items() if key not in _KNOWN}


def node_of(row: Mapping[str, Any]) -> Node:
    """Return the node of a row: uuid, name, labels, created_at, summary, attributes."""
    ours, attributes = _split(row["attributes"])
    kind = str(ours.get("kind") or DEFAULT_KIND)
    if kind == DEFAULT_KIND:
        kind = next((label for label in _texts(row["labels"]) if _is_kind(label)), DEFAULT_KIND)
    return Node(
        uuid=str(row["uuid"]),
        name=str(row["name"]),
        created_at=moment_of(row["created_at"]),
        kind=kind,
        summary=str(row.get("summary") or ""),
        aliases=_texts(ours.get("aliases")),
        tags=_texts(ours.get("tags")),
        attributes=attributes,
    )


def fact_of(row: Mapping[str, Any]) -> Fact:
    """Return the fact of a row with Graphiti's columns of an EntityEdge."""
    ours, attributes = _split(row["attributes"])
    precisions = _mapping(ours.get(_TIMES))
    return Fact(
        uuid=str(row["uuid"]),
        subject=str(row["source_node_uuid"]),
        object=str(row["target_node_uuid"]),
        relation=str(row["name"]),
        text=str(row["fact"]),
        created_at=moment_of(row["created_at"]),
        kind="relation" if ours.get("kind") == "relation" else "fact",
        episodes=_texts(row.get("episodes")),
        valid_at=_world_time(row.get("valid_at"), precisions.get("valid_at", "")),
        invalid_at=_world_time(row.get("invalid_at"), precisions.get("invalid_at", "")),
        expired_at=_maybe(row.get("expired_at")),
        attributes=attributes,
    )


def episode_of(row: Mapping[str, Any]) -> Episode:
    """Return the episode of a row: Graphiti's columns of an EpisodicNode."""
    source = cast(Literal["message", "json", "text"], row["source"])
    return Episode(
        uuid=str(row["uuid"]),
        name=str(row["name"]),
        content=str(row["content"]),
        valid_at=with_precision(moment_of(row["valid_at"])),
        created_at=moment_of(row["created_at"]),
        source=source if source in ("message", "json") else "text",
        description=str(row.get("source_description") or ""),
        facts=_texts(row.get("entity_edges")),
    )


def vector_of(value: object) -> Vector | None:
    """Return a stored list of floats as float32, shape (dimension,), or None when there is none."""
    return None if value is None else np.asarray(value, dtype=np.float32)


def mention_id(group: str, episode: str, node: str) -> str:
    """Return the uuid of the edge that joins an episode to a node it mentions."""
    return stable_id(group, "mention", episode, node)


def in_order(items: Iterable[_Item], uuids: Iterable[str]) -> list[_Item]:
    """Return items in the order of the uuids asked; absent left out, repeated ids once."""
    items_by_id = {item.uuid: item for item in items}
    return [items_by_id[uuid] for uuid in dict.fromkeys(uuids) if uuid in items_by_id]


def parse_cursor(cursor: str) -> tuple[datetime | None, str]:
    """Return (valid_at, uuid) of a cursor. Raises InvalidRequest when it is not one."""
    head, _, uuid = cursor.partition(":")
    try:
        return (from_micros(int(head)) if head else None), check_uuid(uuid, "cursor")
    except (ValueError, OverflowError, OSError):
        raise InvalidRequest("cursor", "must be a cursor that timeline gave") from None


def is_label(text: str) -> bool:
    """Tell whether a text can be a label: ``[A-Za-z][A-Za-z0-9_]{0,63}``."""
    return _KIND.fullmatch(text) is not None


def _is_kind(label: str) -> bool:
    # Graphiti marks nodes of some backends with a label made of the group.
    return (
        label not in RESERVED_KINDS
        and not label.startswith("Entity_")
        and bool(_KIND.fullmatch(label))
    )


def own_attributes(
    attributes: Mapping[str, JSON], foreign: Mapping[str, Any] | None
) -> dict[str, JSON]:
    """Return the user's attributes: those that Graphiti's (``foreign``) lack or have otherwise.

    Raises:
        InvalidRequest: A name is uuid, group_id or labels, or begins with ``_``.
    """
    graphiti = foreign or {}
    own = {
        key: value
        for key, value in attributes.items()
        if key not in graphiti or graphiti[key] != value
    }
    for key in own:
        if key in _REFUSED or key.startswith("_"):
            raise InvalidRequest(
                "attributes", "may not use uuid, group_id, labels or names that begin with _"
            )
    return own


def _split(raw: object) -> tuple[dict[str, Any], dict[str, JSON]]:
    if raw == _PLAIN_FACT:  # most rows, and reading JSON in JSON is most of a row's cost
        return {"kind": "fact"}, {}
    stored = _mapping(raw)
    ours = _mapping(stored.get(ATTRIBUTE))
    return ours, {**foreign_attributes(stored), **_mapping(ours.get("attributes"))}


def _mapping(value: object) -> dict[str, Any]:
    if value is None or value == "":
        return {}
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except json.JSONDecodeError as error:
            raise StoreError(f"a stored attribute is not JSON: {error.msg}") from None
    if not isinstance(value, Mapping):
        raise StoreError("stored attributes are not a JSON object")
    return dict(cast(Mapping[str, Any], value))


def _dump(value: Mapping[str, object]) -> str:
    try:
        return json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    except (TypeError, ValueError):
        raise InvalidRequest(
            "attributes", "must be JSON: text, numbers, true, false, null, lists, objects"
        ) from None


def _texts(value: object) -> tuple[str, ...]:
    return tuple(str(item) for item in cast(Iterable[object], value or ()))


_PLAIN_PPS = _dump({"kind": "fact", "attributes": {}})
_PLAIN_FACT = json.dumps({ATTRIBUTE: _PLAIN_PPS}, ensure_ascii=False)


def moment_of(value: object) -> datetime:
    """Return a stored time as an instant in UTC; StoreError when there is none."""
    moment = _maybe(value)
    if moment is None:
        raise StoreError("a stored row has no time where one is required")
    return moment


def _world_time(value: object, precision: str) -> datetime | None:
    moment = _maybe(value)
    return None if moment is None else with_precision(moment, precision)


def _maybe(value: object) -> datetime | None:
    if value is None:
        return None
    native = (
        cast(Any, value).to_native() if hasattr(value, "to_native") else value
    )  # Neo4j's DateTime
    if isinstance(native, str):
        native = datetime.fromisoformat(native)
    if not isinstance(native, datetime):
        raise StoreError(f"a stored time has the type {type(native).__name__}")
    return native.replace(tzinfo=UTC) if native.tzinfo is None else native.astimezone(UTC)
