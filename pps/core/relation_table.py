"""The relations that an installation knows: their names, and which are single-valued."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache

_SEPARATORS = re.compile(r"[\W_]+")
_SUBJECT_KINDS: Mapping[str, frozenset[str]] = {
    "Person": frozenset(("person", "self", "user", "human")),
}
_OBJECT_KINDS: Mapping[str, frozenset[str]] = {
    "Place": frozenset(
        [
            "place",
            "city",
            "town",
            "village",
            "country",
            "region",
            "location",
            "district",
            "neighbourhood",
            "neighborhood",
        ]
    ),
    "Organisation": frozenset(
        ["organisation", "organization", "company", "business", "employer", "institution", "firm"]
    ),
}
"""Kinds that extractors use for the same thing as a kind of the table."""


@lru_cache(maxsize=4096)
def relation_key(name: str) -> str:
    """Return a relation's name for comparisons: no case, spaces, hyphens or underscores."""
    return _SEPARATORS.sub("", name).casefold()


@dataclass(frozen=True, slots=True)
class RelationRule:
    """One relation of the table.

    Attributes:
        name: Its canonical name, such as ``LIVES_IN``.
        subject, object: Kinds of its ends.
        single: A subject has one at a time: the later statement closes the earlier.
        dated: A date beside a statement says since when it holds; else the date is what it is
            about.
        also: Other names that it is called by.
        also_if: Names that stand for it only between nodes of its kinds.
        topics: Names with a topic in place of ``*``, such as ``FAVOURITE_*``: what is said above
            holds for each topic by itself, and ``name`` alone is no single-valued relation.
    """

    name: str
    subject: str = "Thing"
    object: str = "Thing"
    single: bool = False
    dated: bool = True
    also: tuple[str, ...] = ()
    also_if: tuple[str, ...] = ()
    topics: tuple[str, ...] = ()

    def joins(self, subject_kind: str, object_kind: str) -> bool:
        """Tell whether nodes of two kinds are certainly such as this relation joins."""
        return _is_kind(subject_kind, self.subject, _SUBJECT_KINDS) and _is_kind(
            object_kind, self.object, _OBJECT_KINDS
        )


class Relations:
    """The table of an installation; names are compared as ``relation_key`` does."""

    def __init__(self, relations: Iterable[RelationRule]) -> None:
        """Take relations whose names are all different."""
        self.by_name: Mapping[str, RelationRule] = {
            relation.name: relation for relation in relations
        }
        self._by_key: dict[str, RelationRule] = {}
        self._by_key_if_kinds: dict[str, RelationRule] = {}
        self._keys: dict[str, tuple[str, ...]] = {}
        self._topics: dict[str, RelationRule] = {}
        for relation in self.by_name.values():
            bare = replace(relation, single=False) if relation.topics else relation
            self._by_key[relation_key(relation.name)] = bare
            for name in relation.also:
                self._by_key[relation_key(name)] = bare
            for name in relation.topics:
                self._topics[relation_key(name)] = relation
            for name in relation.also_if:
                self._by_key_if_kinds[relation_key(name)] = relation
            names = (relation.name, *relation.also, *relation.also_if)
            self._keys[relation.name] = tuple(dict.fromkeys(map(relation_key, names)))

    def find(self, name: str, subject_kind: str = "", object_kind: str = "") -> RelationRule | None:
        """Return the relation that a name stands for between nodes of two kinds.

        None when it is not in the table.

        Without kinds, names that stand for a relation only between its kinds are not found.
        """
        key = relation_key(name)
        relation = self._by_key.get(key)
        if relation:
            return relation
        conditional = self._by_key_if_kinds.get(key)
        if conditional and conditional.joins(subject_kind, object_kind):
            return conditional
        return self._of_topic(key)

    def _of_topic(self, key: str) -> RelationRule | None:
        """Return the relation of a topic, such as ``FAVOURITE_EDITOR``, by its longest prefix."""
        for beginning in sorted(self._topics, key=len, reverse=True):
            topic = key.removeprefix(beginning)
            if topic and topic != key:
                relation = self._topics[beginning]
                spellings = _spellings(topic)
                names = tuple(
                    name.replace("*", spelling)
                    for name in relation.topics
                    for spelling in spellings
                )
                name = f"{relation.name}_{spellings[0].upper()}"
                return replace(relation, name=name, also=names, also_if=(), topics=())
        return None

    def depends_on_kinds(self, name: str) -> bool:
        """Tell whether a name stands for a relation only between certain kinds."""
        key = relation_key(name)
        return key in self._by_key_if_kinds and key not in self._by_key

    def is_single(self, name: str) -> bool:
        """Tell whether a subject has one of a relation at a time, whatever its ends are."""
        relation = self.find(name)
        return relation is not None and relation.single

    def keys(self, relation: RelationRule) -> tuple[str, ...]:
        """Return every key by which facts may name a relation, whatever its ends are."""
        if relation.name in self._keys:
            return self._keys[relation.name]
        return tuple(dict.fromkeys(map(relation_key, (relation.name, *relation.also))))


_BRITISH_AND_AMERICAN = (
    ("colour", "color"),
    ("flavour", "flavor"),
    ("theatre", "theater"),
    ("neighbour", "neighbor"),
    ("jewellery", "jewelry"),
    ("yoghurt", "yogurt"),
    ("doughnut", "donut"),
    ("whisky", "whiskey"),
)
"""Topics that people and agents spell in two ways."""


@lru_cache(maxsize=4096)
def _spellings(topic: str) -> tuple[str, ...]:
    """Return the spellings of a topic, the British first: "colour" and "color" are one."""
    for british, american in _BRITISH_AND_AMERICAN:
        if british in topic:
            return topic, topic.replace(british, american)
        if american in topic:
            return topic.replace(american, british), topic
    return (topic,)


def _is_kind(kind: str, wanted: str, similar: Mapping[str, frozenset[str]]) -> bool:
    folded = kind.casefold()
    return folded == wanted.casefold() or folded in similar.get(wanted, frozenset())
