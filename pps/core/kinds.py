"""Kinds as data: a pack's kinds of records, their fields, relations, life cycles and layers.

Only values: ``config.packs`` reads them from TOML files; whoever knows of kinds is given an
entity's ``Kinds``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from pps.core.errors import InvalidRequest
from pps.core.json_shapes import known_name
from pps.core.text import nearest_name
from pps.core.values import JSON, NodeDraft

FieldType: TypeAlias = Literal[
    "text",
    "number",
    "integer",
    "bool",
    "date",
    "datetime",
    "duration",
    "enum",
    "list",
    "ref",
    "json",
]
Priority: TypeAlias = Literal["P0", "P1", "P2", "P3", "P4", "none"]
Load: TypeAlias = Literal["always", "on_demand", "by_time", "aggregate"]
Status: TypeAlias = Literal["draft", "active", "archived", "deprecated"]
TurnRole: TypeAlias = Literal["user", "assistant", "system", "tool"]
"""Who speaks in a turn."""

STATUSES: tuple[Status, ...] = ("draft", "active", "archived", "deprecated")
"""What every record has, beside the life cycle of its kind."""
COMMON_FIELDS = (
    *(
        "id",
        "kind",
        "title",
        "summary",
        "description",
        "status",
        "tags",
        "metadata",
        "provenance",
        "relations",
        "cites",
    ),
    *(
        "pack",
        "pack_version",
        "version",
        "expected_version",
        "actor",
        "author",
        "turn",
        "created_at",
        "updated_at",
    ),
)
"""What no kind may call a field of its own."""
ANY_KIND = "*"
"""In a relation of a pack: any kind of that pack but the reserved ones."""
ANY_SOURCE = "*"
"""In the sources of a kind: each source that no kind names."""
PLAIN_KIND = "Thing"
"""The kind of nodes that are no records; relations and refs may lead to one."""


@dataclass(frozen=True, slots=True)
class FieldSpec:
    """One field of a kind, or one property of a relation.

    Attributes:
        of: What a list has, or the values of a json map.
        enum: The values of an enum, or the names that a json map may have.
        kind: What a ref points to; empty for any kind.
        min, max: Bounds of a number, of a text's characters, of a list's length.
        index: ``where`` and ``order`` of ``record_list`` find it fast.
        about: Said to agents in the schema.
        embed: Its text is among what a record is found by, by words and by meaning.
    """

    name: str
    type: FieldType
    of: FieldSpec | None = None
    enum: tuple[str, ...] = ()
    kind: str = ""
    required: bool = False
    min: float | None = None
    max: float | None = None
    index: bool = False
    about: str = ""
    embed: bool = True

    @property
    def is_text(self) -> bool:
        """Whether its values are texts: a text, a list of texts or a map of texts."""
        return self.type == "text" or (
            self.type in ("list", "json") and self.of is not None and self.of.type == "text"
        )


@dataclass(frozen=True, slots=True)
class Lifecycle:
    """Which states a record of a kind goes through.

    Attributes:
        field: The name of its state among the fields, such as ``state``.
        moves: State → the states that may follow; one without followers is an end.
        others: Moves, as (from, to) and sorted, that only another actor than the one who made the
            record may do.
    """

    name: str
    field: str
    start: str
    moves: Mapping[str, tuple[str, ...]]
    others: tuple[tuple[str, str], ...] = ()

    @property
    def states(self) -> tuple[str, ...]:
        """Every state, in the order in which the pack names them."""
        return tuple(
            dict.fromkeys(
                (self.start, *self.moves, *(to for tos in self.moves.values() for to in tos))
            )
        )


@dataclass(frozen=True, slots=True)
class KindSpec:
    """A kind of records.

    Attributes:
        layer: The layer that it lies in; empty for none.
        embed: Fields whose labelled lines stand first in the text that a record is found by; every
            other field of text follows them, unless its ``embed`` is off.
        priority: How soon a changed record is embedded; ``none`` is never.
        describe: Its description is in session lists.
        sources: Of an open pack: a titled text of one of these sources is of this kind unless it
            names another; ``*`` stands for every source that no kind names. In lower case.
        role: Of an open pack: the role of the turns of such texts.
    """

    name: str
    pack: str
    version: int
    layer: str = ""
    about: str = ""
    embed: tuple[str, ...] = ()
    priority: Priority = "P2"
    describe: bool = False
    lifecycle: Lifecycle | None = None
    fields: Mapping[str, FieldSpec] = field(default_factory=dict[str, FieldSpec])
    sources: tuple[str, ...] = ()
    role: TurnRole = "user"


@dataclass(frozen=True, slots=True)
class RelationSpec:
    """A relation of one pair of kinds, with the properties that it has between them."""

    name: str
    source: str
    target: str
    fields: Mapping[str, FieldSpec] = field(default_factory=dict[str, FieldSpec])


@dataclass(frozen=True, slots=True)
class LayerSpec:
    """A layer: when it is loaded, and how many tokens of a session's start it may take."""

    name: str
    load: Load = "on_demand"
    budget_tokens: int = 0


@dataclass(frozen=True, slots=True)
class Authority:
    """What an actor may write: the kinds of some layers, but for some kinds."""

    actor: str
    write: tuple[str, ...]
    deny: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ToolSpec:
    """An operation that names a generic one, with fixed, default and refused arguments."""

    name: str
    operation: str
    fixed: Mapping[str, JSON] = field(default_factory=dict[str, JSON])
    defaults: Mapping[str, JSON] = field(default_factory=dict[str, JSON])
    about: str = ""
    without: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class KindPack:
    """A file of kinds.

    Attributes:
        open: Its kinds are written by ``add_event``, with any fields, and any other kind is as
            good.
        reserved: Kinds and relations that the system makes alone, never a caller.
    """

    name: str
    version: int
    open: bool = False
    about: str = ""
    layers: tuple[LayerSpec, ...] = ()
    kinds: Mapping[str, KindSpec] = field(default_factory=dict[str, KindSpec])
    relations: tuple[RelationSpec, ...] = ()
    authority: tuple[Authority, ...] = ()
    tools: tuple[ToolSpec, ...] = ()
    reserved: frozenset[str] = frozenset()


class Kinds:
    """The kinds of one entity: those of its packs, in their order. Names are unique among them.

    A kind is *typed* when a pack that is not open has it: it is written by the operations of
    records alone.
    """

    def __init__(self, packs: Iterable[KindPack] = ()) -> None:
        self.packs = tuple(packs)
        self.by_name: Mapping[str, KindSpec] = {
            name: kind for pack in self.packs if not pack.open for name, kind in pack.kinds.items()
        }
        self._open_kinds: Mapping[str, KindSpec] = {
            name: kind for pack in self.packs if pack.open for name, kind in pack.kinds.items()
        }
        self.layers: Mapping[str, LayerSpec] = {
            layer.name: layer for pack in self.packs for layer in pack.layers
        }
        self._relations = {
            (relation.name, relation.source, relation.target): relation
            for pack in self.packs
            for relation in pack.relations
        }

    def __contains__(self, kind: str) -> bool:
        return kind in self.by_name

    def __iter__(self) -> Iterator[KindSpec]:
        return iter(self.by_name.values())

    def kind(self, name: str) -> KindSpec:
        """Return a typed kind, its name in any case; InvalidRequest names those that there are."""
        if name not in self.by_name:
            for known_name, kind in self.by_name.items():
                if known_name.casefold() == name.casefold():
                    return kind
            if name in self._open_kinds:
                raise InvalidRequest(
                    "kind",
                    f"{name} is a kind of titled texts, which add_event writes and update changes",
                )
            known = ", ".join(self.by_name) or "none: `pps pack enable` gives this memory a pack"
            near = nearest_name(name, self.by_name)
            if near:
                raise InvalidRequest(
                    "kind", f"{name!r} is no kind of this memory's packs; did you mean {near!r}?"
                )
            raise InvalidRequest(
                "kind", f"{name!r} is no kind of this memory's packs; there are {known}"
            )
        return self.by_name[name]

    def typed_or_open(self, name: str) -> KindSpec:
        """Return a typed kind or one of an open pack, its name in any case; raises as ``kind``."""
        open_name = known_name(name, self._open_kinds)
        if name not in self.by_name and open_name in self._open_kinds:
            return self._open_kinds[open_name]
        return self.kind(name)

    def of_source(self, source: str) -> str:
        """Return the kind of a titled text that names none, by its source in any case.

        Where two packs name the source, the earlier one decides.
        InvalidRequest when no open pack has a kind for it.
        """
        for wanted in (source.strip().lower(), ANY_SOURCE):
            for kind in self._open_kinds.values():
                if wanted in kind.sources:
                    return kind.name
        raise InvalidRequest("kind", "no pack has a kind for texts of this source: give one")

    def role_of(self, kind: str) -> TurnRole:
        """Return the role of the turns of titled texts of a kind.

        ``user`` for a kind of no pack.
        """
        return self._open_kinds[kind].role if kind in self._open_kinds else "user"

    def of_layers(self, layers: Iterable[str], field: str = "layers") -> tuple[str, ...]:
        """Return the kinds of some layers, in the packs' order.

        InvalidRequest for a name that is none.
        """
        wanted = tuple(known_name(layer, self.layers) for layer in layers)
        for name in wanted:
            if name not in self.layers:
                known = ", ".join(self.layers) or "none"
                raise InvalidRequest(
                    field, f"{name!r} is no layer of this memory's packs; there are {known}"
                )
        return tuple(kind.name for kind in self if kind.layer in wanted)

    def relation_name(self, name: str) -> str:
        """Return the name of a relation of the packs that a name spells in any case.

        Else the name itself.
        """
        return known_name(name, {relation for relation, _, _ in self._relations})

    def state_name(self, name: str) -> str:
        """Return the state of a life cycle of the packs that a name spells in any case.

        Else the name itself.
        """
        cycles = (kind.lifecycle for kind in self)
        return known_name(name, {state for cycle in cycles if cycle for state in cycle.states})

    def relation(self, name: str, source: str, target: str) -> RelationSpec:
        """Return a relation between two kinds; InvalidRequest names the pairs that it may join."""
        relation = self._relations.get((name, source, target)) or self._between_any(
            name, source, target
        )
        if relation is None:
            pairs = [
                f"{a} → {b}" for (relation_name, a, b) in self._relations if relation_name == name
            ]
            names = sorted(
                {
                    relation_name
                    for relation_name, a, b in self._relations
                    if (a, b) == (source, target)
                }
            )
            hint = f"it joins {', '.join(pairs)}" if pairs else "no pack has it"
            if (name, target, source) in self._relations:
                hint = f"it leads the other way, {target} → {source}; {hint}"
            also = f"; {source} → {target} has {', '.join(names)}" if names else ""
            raise InvalidRequest(
                "type", f"{name!r} does not join {source} → {target}: {hint}{also}"
            )
        return relation

    def is_turned(self, name: str, source: str, target: str) -> bool:
        """Tell whether a relation joins two kinds only from ``target`` to ``source``."""
        return (
            (name, target, source) in self._relations
            and (name, source, target) not in self._relations
            and self._between_any(name, source, target) is None
        )

    def _between_any(self, name: str, source: str, target: str) -> RelationSpec | None:
        for pack in self.packs:
            ends = {source, target}
            if ends <= pack.kinds.keys() and ends.isdisjoint(pack.reserved):
                for relation in pack.relations:
                    if (relation.name, relation.source, relation.target) == (
                        name,
                        ANY_KIND,
                        ANY_KIND,
                    ):
                        return relation
        return None

    def relations(self) -> tuple[RelationSpec, ...]:
        """Return every relation, a pair each, in the packs' order."""
        return tuple(self._relations.values())

    def check_by_hand(self, field: str, name: str) -> None:
        """Raise InvalidRequest when a kind or relation is made by the system alone."""
        if any(name in pack.reserved for pack in self.packs):
            raise InvalidRequest(field, f"{name} is made by the squad itself, never by hand")

    def check_write(self, actor: str, kind: str) -> None:
        """Raise InvalidRequest when an actor may not write a kind: see ``Authority``.

        The person (no actor) may write all; where a pack has authorities, actors without one only
        read.
        """
        pack = next((pack for pack in self.packs if kind in pack.kinds), None)
        if not actor or pack is None or not pack.authority:
            return
        own = next((rule for rule in pack.authority if rule.actor == actor), None)
        if own is None or pack.kinds[kind].layer not in own.write or kind in own.deny:
            may = ", ".join(own.write) if own else "nothing"
            raise InvalidRequest("kind", f"{actor!r} may not write {kind}; it may write {may}")

    def check_free(self, field: str, kind: str) -> None:
        """Raise InvalidRequest, naming the operations, if only those of records write a kind."""
        if kind in self.by_name:
            pack = self.by_name[kind].pack
            raise InvalidRequest(
                field,
                f"{kind} is a kind of the pack {pack}: use record_save, which checks its fields",
            )

    def check_nodes(self, nodes: Sequence[NodeDraft]) -> None:
        """Raise InvalidRequest if a node that a caller passed with a text has a kind of records."""
        for number, node in enumerate(nodes):
            self.check_free(f"nodes[{number}].kind", node.kind)


NO_KINDS = Kinds()
"""Of an entity without packs."""
