"""Reading packs of kinds from TOML, with every mistake and its line.

Each table of a pack's file is validated by a model of its own.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, TypeVar, cast

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from pps.config.border import problems
from pps.config.toml_lines import TomlLines
from pps.core.kinds import (
    ANY_KIND,
    COMMON_FIELDS,
    PLAIN_KIND,
    Authority,
    FieldSpec,
    FieldType,
    KindPack,
    KindSpec,
    LayerSpec,
    Lifecycle,
    Load,
    Priority,
    RelationSpec,
    ToolSpec,
    TurnRole,
)
from pps.core.text import nearest_name
from pps.core.user_files import NestedTooDeeply, parse_toml
from pps.core.values import RESERVED_KINDS

Tree = dict[str, object]
MAX_BYTES = 1_000_000
MAX_MISTAKES = 200
"""Most mistakes of one file that are told with their lines."""
_NAME = re.compile(r"[a-z][a-z0-9_-]{0,63}")
_SNAKE = re.compile(r"[a-z][a-z0-9_]{0,63}")
_KIND = re.compile(r"[A-Z][A-Za-z0-9_]{0,63}")
_LABEL = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,63}")
_TOOL = re.compile(r"[A-Za-z][A-Za-z0-9_.]{0,63}")
_OF_EDGES = ("id", "type", "source", "target")
_Path = tuple[str, ...]
Operations = Mapping[str, Collection[str]]
"""Name of an operation → names of its arguments."""


class Part(BaseModel):
    """A table of the file; unknown keys are mistakes."""

    model_config = ConfigDict(extra="forbid", strict=True)


class Head(Part):
    """The file's own keys."""

    name: str
    version: int = Field(ge=1, le=1_000_000)
    open: bool = False
    reserved: list[str] = []
    about: str = Field(default="", max_length=500)
    layers: Tree = {}
    kinds: Tree = {}
    lifecycles: Tree = {}
    relations: Tree = {}
    authority: Tree = {}
    tools: Tree = {}


class Layer(Part):
    """A layer."""

    load: Load = "on_demand"
    budget_tokens: int = Field(default=0, ge=0, le=1_000_000)


class Kind(Part):
    """A kind."""

    layer: str = ""
    about: str = Field(default="", max_length=500)
    embed: list[str] = []
    priority: Priority = "P2"
    describe: bool = False
    lifecycle: str = ""
    fields: Tree = {}
    sources: list[Annotated[str, Field(min_length=1, max_length=200)]] = []
    role: TurnRole = "user"


class FieldTable(Part):
    """A field of a kind, or a property of a relation."""

    type: FieldType | None = None
    of: FieldTable | None = None
    enum: list[Annotated[str, Field(min_length=1, max_length=200)]] = Field(
        default=[], max_length=200
    )
    kind: str = ""
    required: bool = False
    min: float | None = None
    max: float | None = None
    index: bool = False
    about: str = Field(default="", max_length=500)
    embed: bool = True


class LifecyclePart(Part):
    """A life cycle."""

    field: str = "state"
    start: str
    moves: dict[str, list[str]]
    others: list[Annotated[list[str], Field(min_length=2, max_length=2)]] = []


class RelationPart(Part):
    """A relation of some pairs of kinds."""

    pairs: list[Annotated[list[str], Field(min_length=2, max_length=2)]] = Field(min_length=1)
    fields: Tree = {}


class AuthorityPart(Part):
    """What an actor may write."""

    write: list[str]
    deny: list[str] = []


class Tool(Part):
    """A tool of the pack's own name."""

    operation: str = Field(min_length=1)
    fixed: dict[str, Any] = {}
    defaults: dict[str, Any] = {}
    about: str = Field(default="", max_length=500)
    without: list[str] = []


_Model = TypeVar("_Model", bound=Part)


@dataclass(frozen=True, slots=True)
class Mistake:
    """A mistake in a pack's file; ``where`` is the path of the key, or empty."""

    line: int
    where: str
    problem: str

    def __str__(self) -> str:
        where = f"{self.where}: " if self.where else ""
        return f"line {self.line}: {where}{self.problem}"


def read_pack(
    text: str, name: str = "", operations: Operations | None = None
) -> tuple[KindPack | None, tuple[Mistake, ...]]:
    """Read a pack from a TOML text.

    Args:
        text: The whole file.
        name: The name that the pack must have (the file's); any name if empty.
        operations: All operations with their arguments. A tool must call one of them, and must not
            have the name of one. Without them tools are not checked.

    Returns:
        The pack or None, and all mistakes in the order of lines.
    """
    if len(text.encode()) > MAX_BYTES:
        return None, (Mistake(1, "", f"the file is longer than {MAX_BYTES:,} bytes"),)
    try:
        tree = parse_toml(text)
    except NestedTooDeeply as error:
        return None, (Mistake(1, "", str(error)),)
    except tomllib.TOMLDecodeError as error:
        at = re.search(r"\(at line (\d+)", str(error))
        line = int(at[1]) if at else len(text.splitlines()) or 1
        return None, (Mistake(line, "", f"not valid TOML: {str(error).partition(' (at ')[0]}"),)
    reading = _PackFile(tree, TomlLines(text), operations)
    pack = reading.pack(name)
    mistakes = tuple(sorted(dict.fromkeys(reading.mistakes), key=lambda mistake: mistake.line))
    if reading.count > MAX_MISTAKES:
        more = f"and {reading.count - MAX_MISTAKES:,} more mistakes: mend these first"
        mistakes = (*mistakes, Mistake(len(text.splitlines()) or 1, "", more))
    return (None if mistakes else pack), mistakes


class _PackFile:
    """A file that is read: each part by itself, so that a mistake does not hide others."""

    def __init__(self, tree: Tree, lines: TomlLines, operations: Operations | None) -> None:
        self.mistakes: list[Mistake] = []
        self.count = 0
        self._tree = tree
        self._lines = lines
        self._operations = operations or {}
        self._open = tree.get("open") is True
        self._sources_named: set[str] = set()
        self._known = {key: [*_table(tree.get(key))] for key in ("layers", "kinds", "lifecycles")}

    def pack(self, name: str) -> KindPack | None:
        head = self._model(Head, self._tree, ())
        text = str(self._tree.get("name", ""))
        if "name" in self._tree and not _NAME.fullmatch(text):
            self._say(
                ("name",), "must be a small letter, then up to 63 small letters, digits, '_' or '-'"
            )
        elif name and "name" in self._tree and text != name:
            self._say(("name",), f"must be {name!r}, as the file is called")
        if not self._known["kinds"]:
            self._say(("kinds",), "a pack has one kind at least")
        lifecycles = {
            name: self._lifecycle(name, tree) for name, tree in self._tables("lifecycles")
        }
        layers = tuple(self._layer(name, tree) for name, tree in self._tables("layers"))
        version = head.version if head else 0
        kinds = {
            name: self._kind(KindSpec(name, text, version), tree, lifecycles)
            for name, tree in self._tables("kinds")
        }
        relations = self._relations()
        authority = tuple(self._authority(name, tree) for name, tree in self._tables("authority"))
        tools = self._tools()
        if head is None:
            return None
        return KindPack(
            text,
            version,
            head.open,
            head.about,
            layers,
            kinds,
            relations,
            authority,
            tools,
            self._reserved(head.reserved, kinds, relations),
        )

    def _reserved(
        self,
        names: Sequence[str],
        kinds: Mapping[str, KindSpec],
        relations: Sequence[RelationSpec],
    ) -> frozenset[str]:
        """Return the kinds and relations that callers cannot make; unknown names are mistakes."""
        known = {*kinds, *(relation.name for relation in relations)}
        for name in names:
            if name not in known:
                self._say(("reserved",), f"{name!r} is no kind and no relation of this pack", name)
        return frozenset(names)

    def _tables(self, key: str) -> list[tuple[str, object]]:
        return [*_table(self._tree.get(key)).items()]

    def _say(self, path: _Path, problem: str, hint: str = "") -> None:
        self.count += 1
        if self.count > MAX_MISTAKES:
            return  # finding a line reads the whole file
        self.mistakes.append(Mistake(self._lines.line(path, hint), ".".join(path), problem))

    def _suggestion(self, name: str, known: Collection[str]) -> str:
        """Return a suggestion for an unknown name, or an empty text.

        None is computed for mistakes beyond those that are reported.
        """
        near = nearest_name(name, known) if self.count < MAX_MISTAKES else ""
        return f", did you mean {near!r}?" if near else ""

    def _model(self, model: type[_Model], value: object, path: _Path) -> _Model | None:
        try:
            return model.model_validate(value)
        except ValidationError as error:
            for problem in problems(error, model):
                near = f", did you mean {problem.near!r}?" if problem.near else ""
                inner = tuple(problem.path.split(".")) if problem.path else ()
                self._say(
                    (*path, *inner),
                    f"unknown key{near}" if problem.unknown else problem.problem,
                    inner[-1] if inner else "",
                )
            return None

    def _check_known(self, noun: str, name: str, path: _Path) -> None:
        """Report a layer, kind or life cycle that this pack does not have."""
        known = self._known[noun]
        if name in known or (noun == "kinds" and name == PLAIN_KIND):
            return
        self._say(
            path, f"{name!r} is none of this pack's {noun}{self._suggestion(name, known)}", name
        )

    def _layer(self, name: str, tree: object) -> LayerSpec:
        path = ("layers", name)
        self._check_name(_SNAKE, name, path)
        model = self._model(Layer, tree, path)
        return LayerSpec(name, model.load, model.budget_tokens) if model else LayerSpec(name)

    def _check_name(self, pattern: re.Pattern[str], name: str, path: _Path) -> None:
        if not pattern.fullmatch(name):
            first = {_KIND: "a capital", _SNAKE: "a small letter"}.get(pattern, "a letter")
            rest = "small letters, digits or '_'" if pattern is _SNAKE else "letters, digits or '_'"
            self._say(path, f"the name must be {first}, then up to 63 {rest}")

    def _kind(
        self, kind: KindSpec, tree: object, lifecycles: Mapping[str, Lifecycle | None]
    ) -> KindSpec:
        path = ("kinds", kind.name)
        self._check_name(_LABEL if self._open else _KIND, kind.name, path)
        if kind.name in RESERVED_KINDS or kind.name == PLAIN_KIND:
            self._say(path, "the name is reserved, choose another")
        model = self._model(Kind, tree, path)
        lifecycle = lifecycles.get(model.lifecycle) if model else None
        fields = self._fields(
            _table(_table(tree).get("fields")),
            path,
            COMMON_FIELDS,
            lifecycle.field if lifecycle else "",
        )
        if self._open and fields:
            self._say((*path, "fields"), "the kinds of an open pack take any fields, and name none")
        if model is None:
            return kind
        sources = self._sources(model, path)
        if model.layer:
            self._check_known("layers", model.layer, (*path, "layer"))
        if model.lifecycle:
            self._check_known("lifecycles", model.lifecycle, (*path, "lifecycle"))
        for field in model.embed:
            if field not in ("title", "summary", "description", *fields):
                self._say(
                    (*path, "embed"),
                    f"{field!r} is no field of it{self._suggestion(field, fields)}",
                    field,
                )
        return KindSpec(
            kind.name,
            kind.pack,
            kind.version,
            model.layer,
            model.about,
            tuple(model.embed),
            model.priority,
            model.describe,
            lifecycle,
            fields,
            sources,
            model.role,
        )

    def _sources(self, model: Kind, path: _Path) -> tuple[str, ...]:
        """Return the sources whose titled texts become records of a kind, in lower case."""
        for key in ("sources", "role"):
            if key in model.model_fields_set and not self._open:
                self._say((*path, key), "only a kind of an open pack has it", key)
        sources = [source.strip().lower() for source in model.sources]
        for source in sources:
            if source in self._sources_named:
                self._say((*path, "sources"), f"{source!r} is named twice in this pack", source)
            self._sources_named.add(source)
        return tuple(sources)

    def _fields(
        self, tree: Tree, path: _Path, taken: Sequence[str], state: str = ""
    ) -> dict[str, FieldSpec]:
        specs: dict[str, FieldSpec] = {}
        for name, table in tree.items():
            where = (*path, "fields", name)
            self._check_name(_SNAKE, name, where)
            if name in taken:
                self._say(where, "every record has it already, choose another name")
            if name == state:
                self._say(where, "is where its life cycle keeps the state, choose another name")
            model = self._model(FieldTable, table, where)
            if model is not None:
                specs[name] = self._field(name, model, where)
        return specs

    def _field(
        self, name: str, field_table: FieldTable, path: _Path, within: str = ""
    ) -> FieldSpec:
        kind: FieldType = field_table.type or (
            "enum" if "enum" in field_table.model_fields_set else "text"
        )
        mistakes = {
            "enum": field_table.enum and kind not in ("enum", "json"),
            "kind": field_table.kind and kind != "ref",
            "of": field_table.of and kind not in ("list", "json"),
            "min": field_table.min is not None
            and kind not in ("text", "number", "integer", "list"),
            "max": field_table.max is not None
            and kind not in ("text", "number", "integer", "list"),
            "index": field_table.index and (kind == "json" or within),
            "required": field_table.required and within,
            "type": kind in ("list", "json") and within,
        }
        for key, is_wrong in mistakes.items():
            if is_wrong:
                self._say(
                    (*path, key),
                    f"does not go with the type {kind}{' of ' + within if within else ''}",
                    key,
                )
        if kind == "enum" and (
            not field_table.enum or len(set(field_table.enum)) < len(field_table.enum)
        ):
            self._say((*path, "enum"), "must have values, each once", "enum")
        if (
            field_table.min is not None
            and field_table.max is not None
            and field_table.min > field_table.max
        ):
            self._say((*path, "min"), "must not be greater than max", "min")
        if kind in ("text", "list") and any(
            bound is not None and (bound < 0 or bound % 1)
            for bound in (field_table.min, field_table.max)
        ):
            self._say((*path, "max"), "bounds of a text or a list are whole numbers, 0 or more")
        if field_table.kind:
            self._check_known("kinds", field_table.kind, (*path, "kind"))
        of = self._field(name, field_table.of, (*path, "of"), kind) if field_table.of else None
        return FieldSpec(
            name,
            kind,
            of,
            tuple(field_table.enum),
            field_table.kind,
            required=field_table.required,
            min=field_table.min,
            max=field_table.max,
            index=field_table.index,
            about=field_table.about,
            embed=field_table.embed,
        )

    def _lifecycle(self, name: str, tree: object) -> Lifecycle | None:
        path = ("lifecycles", name)
        self._check_name(_SNAKE, name, path)
        model = self._model(LifecyclePart, tree, path)
        if model is None:
            return None
        moves = {state: tuple(to) for state, to in model.moves.items()}
        others = tuple(sorted({(a, b) for a, b in model.others}))
        self._check_name(_SNAKE, model.field, (*path, "field"))
        if model.field in COMMON_FIELDS:
            self._say((*path, "field"), "every record has it already, choose another name")
        lifecycle = Lifecycle(name, model.field, model.start, moves, others)
        if model.start not in moves:
            self._say((*path, "start"), f"{model.start!r} has no moves")
        reached = {model.start}
        todo = [model.start]
        while todo:
            todo = [to for state in todo for to in moves.get(state, ()) if to not in reached]
            reached.update(todo)
        for state in lifecycle.states:
            self._check_name(_SNAKE, state, (*path, "moves"))
            if state not in reached:
                self._say((*path, "moves"), f"no move leads to {state!r}", state)
        for a, b in others:
            if b not in moves.get(a, ()):
                self._say((*path, "others"), f"{a} → {b} is no move of it", a)
        return lifecycle

    def _relations(self) -> tuple[RelationSpec, ...]:
        specs: dict[tuple[str, str, str], RelationSpec] = {}
        for name, tables in self._tables("relations"):
            self._check_name(_LABEL, name, ("relations", name))
            if not isinstance(tables, list):
                self._say(("relations", name), f"must be a list of tables: [[relations.{name}]]")
                continue
            for number, tree in enumerate(cast("list[object]", tables)):
                path = ("relations", name, str(number))
                fields = self._fields(_table(_table(tree).get("fields")), path, _OF_EDGES)
                relation = self._model(RelationPart, tree, path)
                for source, target in self._pairs(relation.pairs if relation else [], path):
                    if (name, source, target) in specs:
                        self._say((*path, "pairs"), f"{source} → {target} is there twice", source)
                    specs[name, source, target] = RelationSpec(name, source, target, fields)
        return tuple(specs.values())

    def _pairs(self, pairs: list[list[str]], path: _Path) -> list[tuple[str, str]]:
        """Return the pairs of kinds; ``A|B`` means either, ``*`` any kind of the pack."""
        for kind in {end for pair in pairs for ends in pair for end in ends.split("|")}:
            if kind != ANY_KIND:
                self._check_known("kinds", kind, (*path, "pairs"))
        return [
            (a, b) for first, second in pairs for a in first.split("|") for b in second.split("|")
        ]

    def _authority(self, actor: str, tree: object) -> Authority:
        path = ("authority", actor)
        model = self._model(AuthorityPart, tree, path)
        if model is None:
            return Authority(actor, ())
        for name in model.write:
            self._check_known("layers", name, (*path, "write"))
        for name in model.deny:
            self._check_known("kinds", name, (*path, "deny"))
        return Authority(actor, tuple(model.write), tuple(model.deny))

    def _tools(self) -> tuple[ToolSpec, ...]:
        specs: dict[str, ToolSpec] = {}
        for name, tree in self._tables("tools"):
            path = ("tools", name)
            if not _TOOL.fullmatch(name):
                self._say(
                    path, "the name must be a letter, then up to 63 letters, digits, '_' or '.'"
                )
            if name.replace(".", "_") in specs:
                self._say(path, "another tool has the same name with '_' for '.'")
            if name.replace(".", "_") in self._operations:
                self._say(path, "an operation has this name, choose another")
            tool = self._model(Tool, tree, path)
            if tool is not None:
                if self._operations:
                    self._call(tool, path)
                specs[name.replace(".", "_")] = ToolSpec(
                    name, **dict[str, Any](tool, without=tuple(tool.without))
                )
        return tuple(specs.values())

    def _call(self, tool: Tool, path: _Path) -> None:
        """Report an unknown operation of a tool, or unknown arguments for it."""
        checks = [(("operation",), tool.operation, self._operations, "is no operation")]
        known = self._operations.get(tool.operation)
        if known is not None:
            checks = [
                ((key, name), name, known, "is no argument of it")
                for key in ("fixed", "defaults", "without")
                for name in getattr(tool, key)
            ]
        for where, name, names, problem in checks:
            if name not in names:
                self._say(
                    (*path, *where), f"{name!r} {problem}{self._suggestion(name, names)}", name
                )


def _table(value: object) -> Tree:
    return cast("Tree", value) if isinstance(value, dict) else {}
