"""What an entity's packs say, as data, as text and as a picture."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from pps.core.kinds import ANY_KIND, FieldSpec, KindPack, KindSpec, Lifecycle
from pps.core.record_values import RecordQuery
from pps.core.text import counted
from pps.memory import Memory
from pps.operations.inputs import Nothing
from pps.operations.pages import EMPTY
from pps.operations.table import READS, RECORDS


@dataclass(frozen=True, slots=True)
class FieldView:
    """A field of a kind or a property of a relation: what it may hold, in words."""

    name: str
    type: str
    required: bool = False
    index: bool = False
    about: str = ""


@dataclass(frozen=True, slots=True)
class KindView:
    """A kind: its fields beside those of every record, and how many records there are of it."""

    name: str
    pack: str
    layer: str
    about: str
    priority: str
    fields: tuple[FieldView, ...]
    lifecycle: str = ""
    count: int | None = None


@dataclass(frozen=True, slots=True)
class RelationView:
    """A relation of some pairs of kinds, as [from, to], with its properties."""

    name: str
    pairs: tuple[tuple[str, str], ...]
    fields: tuple[FieldView, ...] = ()


@dataclass(frozen=True, slots=True)
class LayerView:
    """A layer: when it is loaded, how many tokens of a session's start it may take, its kinds."""

    name: str
    load: str
    budget_tokens: int
    kinds: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Schema:
    """What packs say: layers, kinds, relations, life cycles, names of tools.

    ``authority`` has the layers that an actor may write, ``denied`` the kinds of them that it may
    not.
    """

    packs: Mapping[str, int]
    layers: tuple[LayerView, ...]
    kinds: tuple[KindView, ...]
    relations: tuple[RelationView, ...]
    lifecycles: tuple[Lifecycle, ...]
    authority: Mapping[str, tuple[str, ...]]
    denied: Mapping[str, tuple[str, ...]]
    tools: Mapping[str, str]


_LEGEND = (
    "Layers, when a session is given them and within how many tokens; kinds with their priority "
    "(P0 is the highest); fields, * must be given."
)


def schema_words(value: Schema) -> str:
    """Return a schema as text: kinds by layer with fields, relations, life cycles and actors."""
    lines: list[str] = [_LEGEND] if value.kinds else []
    layer = None
    for kind in value.kinds:
        if kind.layer != layer:
            layer = kind.layer
            about = next(
                (
                    f" ({kind_layer.load}, {kind_layer.budget_tokens:,} tokens)"
                    for kind_layer in value.layers
                    if kind_layer.name == layer
                ),
                "",
            )
            lines.append(f"{layer or 'in no layer'}{about}")
        count = f", {counted(kind.count, 'record')}" if kind.count else ""
        about = f": {kind.about}" if kind.about else ""
        lines.append(f"  {kind.name}{about} ({kind.priority}{count})")
        lines += [f"    {_field_line(field)}" for field in kind.fields]
    if value.relations:
        lines.append("relations (one given the other way round is kept this way, with a warning)")
    for relation in value.relations:
        pairs = ", ".join(f"{a} → {b}" for a, b in relation.pairs)
        fields = "".join(f"; {_field_line(field)}" for field in relation.fields)
        lines.append(f"  {relation.name}: {pairs}{fields}")
    for cycle in value.lifecycles:
        moves = "; ".join(f"{a} → {', '.join(b)}" for a, b in cycle.moves.items())
        lines.append(f"life cycle {cycle.name} ({cycle.field}, from {cycle.start}): {moves}")
        if cycle.others:
            lines.append(
                "  only by another than its author: "
                f"{', '.join(f'{a} → {b}' for a, b in cycle.others)}"
            )
    for actor, may in value.authority.items():
        denied = f", but no {', '.join(value.denied[actor])}" if value.denied.get(actor) else ""
        lines.append(f"{actor} may write: {', '.join(may) or 'nothing'}{denied}")
    return "\n".join(lines) or EMPTY["schema_inventory"]


def _field_line(field: FieldView) -> str:
    return (
        f"{field.name}{'*' if field.required else ''}: "
        f"{field.type}{f' ({field.about})' if field.about else ''}"
    )


def schema_of(packs: tuple[KindPack, ...], counts: Mapping[str, int] | None = None) -> Schema:
    """Return what packs say, with the number of records of each kind where it is known."""
    cycles = {
        (kind.pack, kind.lifecycle.name): kind.lifecycle
        for pack in packs
        for kind in pack.kinds.values()
        if kind.lifecycle
    }
    kinds = tuple(kind for pack in packs for kind in pack.kinds.values())
    layers: list[LayerView] = []
    for pack in packs:
        for layer in pack.layers:
            names = tuple(kind.name for kind in pack.kinds.values() if kind.layer == layer.name)
            layers.append(LayerView(layer.name, layer.load, layer.budget_tokens, names))
    return Schema(
        {pack.name: pack.version for pack in packs},
        tuple(layers),
        tuple(_kind(kind, None if counts is None else counts.get(kind.name, 0)) for kind in kinds),
        tuple(_relations(packs)),
        tuple(cycles.values()),
        {rule.actor: rule.write for pack in packs for rule in pack.authority},
        {rule.actor: rule.deny for pack in packs for rule in pack.authority if rule.deny},
        {tool.name: tool.operation for pack in packs for tool in pack.tools},
    )


def _kind(kind: KindSpec, count: int | None) -> KindView:
    fields = tuple(map(_field, kind.fields.values()))
    cycle = kind.lifecycle.name if kind.lifecycle else ""
    return KindView(
        kind.name, kind.pack, kind.layer, kind.about, kind.priority, fields, cycle, count
    )


def _field(spec: FieldSpec) -> FieldView:
    return FieldView(spec.name, _type(spec), spec.required, spec.index, spec.about)


def _type(spec: FieldSpec) -> str:
    """Return what a field may hold, such as ``text of at most 2,000 characters``."""
    bounds = " to ".join(
        "" if bound is None else f"{bound:,g}" for bound in (spec.min, spec.max)
    ).strip()
    match spec.type:
        case "enum":
            return " | ".join(spec.enum)
        case "ref":
            return f"id of a {spec.kind or 'node'}"
        case "list":
            return f"list of {_type(spec.of) if spec.of else 'text'}"
        case "json" if spec.enum or spec.of:
            return (
                f"map of {', '.join(spec.enum) or 'names'} to {spec.of.type if spec.of else 'json'}"
            )
        case "text" if spec.max is not None:
            return f"text, at most {int(spec.max):,} characters"
        case _:
            return f"{spec.type}{f', {bounds}' if bounds != 'to' else ''}"


def _relations(packs: tuple[KindPack, ...]) -> Iterator[RelationView]:
    """Group pairs that have the same properties."""
    ends: dict[tuple[str, tuple[FieldView, ...]], list[tuple[str, str]]] = {}
    for pack in packs:
        for relation in pack.relations:
            ends.setdefault(
                (relation.name, tuple(map(_field, relation.fields.values()))), []
            ).append((relation.source, relation.target))
    for (name, fields), pairs in ends.items():
        yield RelationView(name, tuple(pairs), fields)


def diagram(pack: KindPack) -> str:
    """Return the kinds and relations of a pack as a Mermaid class diagram."""
    lines = ["classDiagram"]
    for layer in (*(layer.name for layer in pack.layers), ""):
        indent = "    " if layer else "  "
        within = [kind for kind in pack.kinds.values() if kind.layer == layer]
        if layer and within:
            lines.append(f"  namespace {layer} {{")
        for kind in within:
            fields = [f"{indent}  {spec.type} {spec.name}" for spec in kind.fields.values()]
            lines += (
                [f"{indent}class {kind.name} {{", *fields, f"{indent}}}"]
                if fields
                else [f"{indent}class {kind.name}"]
            )
        if layer and within:
            lines.append("  }")
    joined: dict[tuple[str, str], list[str]] = {}
    for relation in pack.relations:
        ends = ["AnyKind" if end == ANY_KIND else end for end in (relation.source, relation.target)]
        joined.setdefault((ends[0], ends[1]), []).append(relation.name)
    lines += [f"  {a} --> {b} : {', '.join(names)}" for (a, b), names in joined.items()]
    return "\n".join(lines)


@RECORDS.operation(
    "List kinds of records",
    schema_words,
    READS,
    command="schema",
    examples=("pps schema ana",),
)
async def schema_inventory(memory: Memory, _: Nothing) -> Schema:
    """Use it before the first {record_save} to learn the kinds of this memory's packs.

    Returns layers, kinds with fields and bounds, relations with the kinds that they join, life
    cycles, and the number of records of each kind.
    """
    # Kinds of open packs are left out: record_save, for which this is read, does not write them.
    page = await memory.records.list(RecordQuery(limit=1))
    return schema_of(tuple(pack for pack in memory.kinds.packs if not pack.open), page.by_kind)
