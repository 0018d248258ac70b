"""Finds groups and ids in a statement's parameters and a row's values, at any depth."""

from __future__ import annotations

import re
import uuid
from collections.abc import Iterable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, cast

from pps.core.ids import is_uuid

GROUP_KEYS = frozenset(("group_id", "group_ids"))

CONTENT_KEYS = frozenset(
    (
        "content",
        "name",
        "names",
        "saga_name",
        "summary",
        "fact",
        "query",
        "source_description",
        "episode_metadata",
        "attributes",
        "pps",
        "labels",
        "edge_types",
        "relation",
        "name_embedding",
        "fact_embedding",
        "search_vector",
        "embedding",
    )
)
"""Keys of users' texts, attributes and vectors, whose values are not checked for ids.

A refusal would reveal which ids exist in other groups.
"""

FLATTENED = frozenset(("entity_data", "edge_data", "nodes", "entity_edges"))
"""Keys under which Graphiti's Neo4j dialect mixes users' attributes with its own columns."""

ID_KEYS = frozenset(
    (
        "uuid",
        "uuids",
        "source_uuid",
        "target_uuid",
        "source_node_uuid",
        "target_node_uuid",
        "episodes",
        "entity_edges",
        "first_episode_uuid",
        "last_episode_uuid",
    )
)
"""Graphiti's own columns of ids in the mappings under ``FLATTENED``."""

_MAX_DEPTH = 24
_GROUP = re.compile(r"ent_[a-z0-9]{26}")
_GROUP_LENGTH = 30
_PLAIN = (bool, int, float, datetime)
"""Values that cannot carry a group or an id."""
_NUMERIC_KINDS = frozenset("biufcM")


class RefusedValue(Exception):
    """A refused value.

    Attributes:
        kind: A ``BreachKind``.
        why: A sentence that names no value.
    """

    def __init__(self, kind: str, why: str) -> None:
        super().__init__(why)
        self.kind = kind
        self.why = why


@dataclass(slots=True)
class Named:
    """The groups and ids in a statement's parameters.

    Attributes:
        bound: Whether a parameter names the entity's own group.
        ids: Every canonical UUID outside of content; not collected for PPS's own statements.
        emptiness: Whether a parameter is an empty list.
    """

    bound: bool = False
    ids: set[str] = field(default_factory=set[str])
    emptiness: bool = False


def names_of(group: str, parameters: Mapping[str, Any], *, own: bool = False) -> Named:
    """Return the groups and ids in a statement's parameters.

    Args:
        group: The only group that may be named.
        parameters: Keyword arguments merged with ``params=``.
        own: The statement is PPS's own: ids are not collected, and lists that begin and end with a
            float are skipped as vectors.

    Raises:
        RefusedValue: Of the kind ``group`` for another group or a value that cannot be checked; of
            the kind ``id`` for something other than a canonical UUID under a key of ids.
    """
    named = Named()
    walk = _Walk(group, named, own)
    for key, value in parameters.items():
        walk.value(key, value, 0, flattened=False)
    return named


def check_rows(group: str, rows: Iterable[Any]) -> None:
    """Check that no row contains another group, at any depth and under any key.

    Raises:
        RefusedValue: Of the kind ``row``.
    """
    for row in rows:
        _check_row(group, "", row, 0, content=False)


def ids_of_unbound_rows(rows: Iterable[Any]) -> set[str]:
    """Return the ids in rows without a group, such as counts, embeddings and scores."""
    ids: set[str] = set()
    for row in rows:
        mapping = as_mapping(row)
        if mapping is None or not any(str(key).rpartition(".")[2] in GROUP_KEYS for key in mapping):
            _collect_ids("", row, 0, ids)
    return ids


def names_foreign_group(group: str, text: str) -> bool:
    """Return whether a text contains the group of another entity."""
    return any(named_group != group for named_group in _GROUP.findall(text))


def as_mapping(value: object) -> Mapping[str, Any] | None:
    """Return a dict, a record, or a driver's node or relationship as a mapping; else None."""
    if type(value) is dict or isinstance(value, Mapping):  # nearly every row is a dict: quick
        return cast(Mapping[str, Any], value)
    items = getattr(value, "items", None)
    return dict(cast(Any, items)()) if callable(items) else None


class _Walk:
    """Collects the groups and ids of parameters into ``named``.

    ``flattened`` is whether a value is below a key of ``FLATTENED``.
    """

    def __init__(self, group: str, named: Named, own: bool) -> None:
        self._group = group
        self._named = named
        self._own = own

    def value(self, key: str, value: object, depth: int, *, flattened: bool) -> None:
        if depth > _MAX_DEPTH:
            raise RefusedValue("group", "a parameter is nested too deeply to be checked")
        if key in GROUP_KEYS:
            self._groups(value)
        elif isinstance(value, str):
            self._text(key, value, flattened)
        elif value is None or isinstance(value, _PLAIN):
            return
        else:
            self._compound(key, value, depth, flattened)

    def _compound(self, key: str, value: object, depth: int, flattened: bool) -> None:
        mapping = as_mapping(value)
        if mapping is not None:
            self._mapping(key, mapping, depth, flattened)
        elif isinstance(value, (list, tuple, AbstractSet)):
            self._items(key, cast("list[object]", value), depth, flattened)
        elif hasattr(value, "dtype"):
            array = cast(Any, value)
            if array.dtype.kind not in _NUMERIC_KINDS:
                self.value(key, array.tolist(), depth + 1, flattened=flattened)
        elif not self._own and (
            hasattr(value, "__iter__") or isinstance(value, (bytes, uuid.UUID))
        ):
            raise RefusedValue("group", "a parameter is of a type that cannot be checked")

    def _mapping(self, key: str, mapping: Mapping[str, Any], depth: int, flattened: bool) -> None:
        inner = flattened or (depth <= 1 and key in FLATTENED)
        for name, item in mapping.items():
            if not self._own and is_uuid(name):
                self._named.ids.add(name)
            self.value(str(name), item, depth + 1, flattened=inner)

    def _items(self, key: str, items: Iterable[object], depth: int, flattened: bool) -> None:
        values = list(items)
        if not values:
            self._named.emptiness = True
        elif self._own and _is_vector(values):
            return
        for item in values:
            if type(item) is not float:
                self.value(key, item, depth + 1, flattened=flattened)

    def _groups(self, value: object) -> None:
        groups = _as_list(value)
        if not groups or not all(same_group(item, self._group) for item in groups):
            raise RefusedValue("group", "a statement named a group that is not the entity's own")
        self._named.bound = True

    def _text(self, key: str, text: str, flattened: bool) -> None:
        if key in CONTENT_KEYS or (flattened and key not in ID_KEYS and key not in FLATTENED):
            return
        if _is_group(text) and not same_group(text, self._group):
            raise RefusedValue("group", "a parameter spelled another group")
        if self._own:
            return  # the statement binds the group, so its ids need no look-up
        if is_uuid(text):
            self._named.ids.add(text)
        elif key in ID_KEYS or key.endswith(("uuid", "uuids")) or _is_loose_uuid(text):
            raise RefusedValue(
                "id", "something that is not a canonical UUID stood where an id belongs"
            )


def _is_loose_uuid(text: str) -> bool:
    if not 32 <= len(text) <= 48:
        return False
    try:
        uuid.UUID(text)
    except ValueError:
        return False
    return True


def _is_group(text: str) -> bool:
    return len(text) == _GROUP_LENGTH and _GROUP.fullmatch(text) is not None


def same_group(value: object, group: str) -> bool:
    """Return whether a value is the group.

    Calls ``str.__eq__``, because a subclass of str may override the comparison.
    """
    return isinstance(value, str) and str.__eq__(value, group) is True


def _collect_ids(key: str, value: object, depth: int, ids: set[str]) -> None:
    if depth > _MAX_DEPTH or key in CONTENT_KEYS:
        return
    mapping = as_mapping(value)
    if is_uuid(value):
        ids.add(cast(str, value))
    elif mapping is not None:
        for name, item in mapping.items():
            _collect_ids(str(name).rpartition(".")[2], item, depth + 1, ids)
    elif isinstance(value, (list, tuple, AbstractSet)) and not _is_vector(
        cast("list[object]", value)
    ):
        for item in cast("list[object]", value):
            _collect_ids(key, item, depth + 1, ids)


def _is_vector(value: object) -> bool:
    items = cast("list[object]", value) if isinstance(value, list) else []
    return bool(items) and isinstance(items[0], float) and isinstance(items[-1], float)


def _check_row(group: str, key: str, value: object, depth: int, *, content: bool) -> None:
    if depth > _MAX_DEPTH:
        raise RefusedValue("row", "a row is nested too deeply to be checked")
    if key in GROUP_KEYS:
        if not all(same_group(item, group) for item in _as_list(value)):
            raise RefusedValue("row", "a row of another group came back")
    elif isinstance(value, str):
        if not content and _is_group(value) and not same_group(value, group):
            raise RefusedValue("row", "a row carried another group")
    elif value is not None and not isinstance(value, _PLAIN):
        _check_compound(group, key, value, depth, content)


def _as_list(value: object) -> list[object]:
    return list(cast("list[object]", value)) if isinstance(value, (list, tuple)) else [value]


def _check_compound(group: str, key: str, value: object, depth: int, content: bool) -> None:
    mapping = as_mapping(value)
    if mapping is not None:
        # Below "attributes" (a node's properties) the names are the user's.
        for name, item in mapping.items():
            column = str(name).rpartition(".")[2]
            is_content = content or key == "attributes" or column in CONTENT_KEYS
            _check_row(group, column, item, depth + 1, content=is_content)
    elif isinstance(value, (list, tuple, AbstractSet)):
        items = cast("list[object]", value)
        if _is_vector(items):
            return
        for item in items:
            _check_row(group, key, item, depth + 1, content=content)
    else:
        for part in ("nodes", "relationships"):  # a path
            _check_row(group, key, getattr(value, part, None), depth + 1, content=content)
