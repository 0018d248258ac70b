"""Tools of a pack: other names of generic operations, for the entities that have the pack."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, fields
from datetime import UTC, tzinfo
from typing import Any

from pps.core.argument_reading import read_arguments
from pps.core.errors import InvalidRequest
from pps.core.json_bounds import check_values
from pps.core.json_shapes import plain_name, shape_of
from pps.core.kinds import NO_KINDS, KindPack, Kinds, KindSpec, ToolSpec
from pps.core.text import snake
from pps.core.values import JSON
from pps.operations.table import AnyOperation, Operation, plain, unknown_argument
from pps.records.asks import QUERIES
from pps.records.kind_models import KindModels
from pps.records.named_query import Query

TYPED = "-typed"
"""Suffix of the toolset of a pack's generated tools: create and change for each kind."""
_SAVE = "record_save"
_ASK = "record_ask"
_OF_RECORD = frozenset(("title", "summary", "status", "tags"))
_BESIDE = ("relations", "cites")
_KIND_TOOLS = (("create", "Keep a new {kind}"), ("update", "Change a {kind}"))
_RELATIONS = {
    "type": "array",
    "items": {
        "type": "object",
        "properties": {
            "type": {"type": "string"},
            "target": {"type": "string"},
            "properties": {"type": "object"},
        },
        "required": ["type", "target"],
    },
    "description": "Made with it: a type such as SERVES, and as target an id or title.",
}
_PROVENANCE = {
    "type": "object",
    "description": "module, actor, source, confidence (0 to 1), notes.",
}


@dataclass(frozen=True, slots=True)
class PackTool(Operation[Any, Any, Any]):
    """A generic operation under another name, without the arguments that are fixed.

    Attributes:
        dotted: Its name as the pack writes it, such as ``foundation.list.v2``.
        fixed: Arguments that a caller cannot give.
        defaults: Arguments that hold where a caller gives none.
        without: Arguments that make no sense with what is fixed: a caller cannot give them either.
    """

    dotted: str = ""
    fixed: Mapping[str, JSON] = field(default_factory=dict[str, JSON])
    defaults: Mapping[str, JSON] = field(default_factory=dict[str, JSON])
    without: frozenset[str] = frozenset()

    def parse(self, arguments: Mapping[str, JSON], zone: tzinfo | None = UTC) -> Any:
        """Return the generic operation's checked input; raises as ``Operation.parse``."""
        check_values(arguments)
        read = read_arguments(arguments, shape_of(self.input))
        hidden = self.fixed.keys() | self.without
        refused = hidden & read.keys()
        if refused:
            known = [name for name in self.input.model_fields if name not in hidden]
            raise InvalidRequest(min(refused), unknown_argument(min(refused), known))
        return Operation[Any, Any, Any].parse(self, {**self.defaults, **read, **self.fixed}, zone)

    def input_schema(self, refs: str = "#/$defs/{model}") -> dict[str, Any]:
        schema = Operation[Any, Any, Any].input_schema(self, refs)
        hidden = self.fixed.keys() | self.without
        properties: dict[str, Any] = {
            name: definition
            for name, definition in schema["properties"].items()
            if name not in hidden
        }
        for name in self.defaults.keys() & properties.keys():
            properties[name] = {**properties[name], "default": self.defaults[name]}
        required = [
            name
            for name in schema.get("required", ())
            if name in properties and name not in self.defaults
        ]
        return _with_used_defs({**schema, "properties": properties, "required": required})


@dataclass(frozen=True, slots=True)
class QueryTool(PackTool):
    """``record_ask`` of one query, whose own parameters are the arguments."""

    query: Query | None = None

    def parse(self, arguments: Mapping[str, JSON], zone: tzinfo | None = UTC) -> Any:
        """Return the input of ``record_ask``; raises as ``Operation.parse``.

        ``parameters`` are taken as one, too.
        """
        fields = self._fields()
        check_values(arguments)
        named = _named_as(arguments, [*fields, "parameters"])
        unknown = named.keys() - {*fields, "parameters"}
        if unknown:
            hint = f"; there are {', '.join(fields)}"
            raise InvalidRequest(min(unknown)[:100], f"unknown argument{hint}")
        whole = named.pop("parameters", None)
        if whole:
            whole = read_arguments({"parameters": whole}, shape_of(self.input))["parameters"]
            if not isinstance(whole, dict):
                raise InvalidRequest("parameters", "must be an object")
            repeated = _named_as(whole, fields).keys() & named.keys()
            if repeated:
                raise InvalidRequest(min(repeated)[:100], "is given twice")
            named = {**whole, **named}
        return Operation[Any, Any, Any].parse(self, {**self.fixed, "parameters": named}, zone)

    def input_schema(self, refs: str = "#/$defs/{model}") -> dict[str, Any]:
        """Return the schema of the query's parameters."""
        schema = self.query.given.model_json_schema(ref_template=refs) if self.query else {}
        members = {
            name: schema[name] for name in ("properties", "required", "$defs") if name in schema
        }
        return plain({"type": "object", "properties": {}, "required": [], **members})

    def _fields(self) -> Mapping[str, Any]:
        return self.query.given.model_fields if self.query else {}


@dataclass(frozen=True, slots=True)
class KindTool(PackTool):
    """``record_save`` of one kind, whose own fields are the arguments.

    Attributes:
        kind: What is kept or changed.
        models: Of its pack's kinds; made when one is asked for.
    """

    kind: str = ""
    models: KindModels = field(default_factory=lambda: KindModels(NO_KINDS))

    def parse(self, arguments: Mapping[str, JSON], zone: tzinfo | None = UTC) -> Any:
        """Return the input of ``record_save``; raises as ``Operation.parse``."""
        own = self.models.model(self.kind).model_fields.keys() - _OF_RECORD
        known = [*own, *_OF_RECORD, *self.beside]
        named = _named_as(arguments, known)
        unknown = named.keys() - known
        if unknown:
            name = min(unknown)[:100]
            raise InvalidRequest(name, unknown_argument(name, known))
        record = {
            name: value for name, value in named.items() if name not in own and value is not None
        }
        if self.is_update and "id" not in record:
            raise InvalidRequest("id", "field required")
        new: dict[str, JSON] = {} if self.is_update else {"expected_version": 0}
        fields = {
            name: value for name, value in named.items() if name in own
        }  # a null takes one out
        record = {**record, **new, "kind": self.kind, "fields": fields}
        return Operation[Any, Any, Any].parse(self, {"records": [record]}, zone)

    @property
    def is_update(self) -> bool:
        return self.dotted.endswith(".update.v1")

    @property
    def beside(self) -> tuple[str, ...]:
        """What is taken of a record beside its kind's fields."""
        return ("id", "expected_version", *_BESIDE) if self.is_update else ("created_at", *_BESIDE)

    def input_schema(self, refs: str = "#/$defs/{model}") -> dict[str, Any]:
        """Return the schema of the kind's fields, and of what a record has beside them.

        Kept to what tools need.
        """
        schema = plain(self.models.model(self.kind).model_json_schema(ref_template=refs))
        more = {**_record_properties(self), "relations": _RELATIONS}
        beside = {name: more[name] for name in self.beside}
        properties = {**schema["properties"], "provenance": _PROVENANCE, **beside}
        if self.is_update:  # what is left out stays as it is
            properties = {
                name: _without_default(definition) for name, definition in properties.items()
            }
        required = ["id"] if self.is_update else schema.get("required", [])
        return _with_used_defs(
            {
                "type": "object",
                "properties": properties,
                "required": required,
                "$defs": schema.get("$defs", {}),
            }
        )


class PackTools:
    """The tools of packs, made once for each set of packs."""

    def __init__(self, generic: Mapping[str, AnyOperation]) -> None:
        self._generic = generic
        self._made: dict[tuple[int, ...], tuple[tuple[KindPack, ...], dict[str, AnyOperation]]] = {}

    def of(self, kinds: Kinds) -> Mapping[str, AnyOperation]:
        """Return the tools of an entity's packs by name, in snake_case.

        None has the name of an operation.
        """
        key = tuple(
            id(pack) for pack in kinds.packs
        )  # the packs are held beside, so no other has one of these ids
        if key not in self._made:
            if len(self._made) > 64:
                self._made.clear()
            made: dict[str, AnyOperation] = {}
            for made_tool in (tool for pack in kinds.packs for tool in self._tools(pack)):
                made.setdefault(made_tool.name, made_tool)
            self._made[key] = (
                kinds.packs,
                {n: tool for n, tool in made.items() if n not in self._generic},
            )
        return self._made[key][1]

    def _tools(self, pack: KindPack) -> Iterator[AnyOperation]:
        if _SAVE in self._generic and not pack.open:
            models = KindModels(Kinds([pack]))
            for kind in pack.kinds.values():
                yield from self._of_kind(pack, kind, models)
        for spec in pack.tools:
            if spec.operation in self._generic:
                yield self._of_row(pack, spec)

    def _of_row(self, pack: KindPack, spec: ToolSpec) -> PackTool:
        generic = self._generic[spec.operation]
        query = next(
            (query_known for query_known in QUERIES if query_known.name == spec.fixed.get("query")),
            None,
        )
        if spec.operation != _ASK or spec.defaults or set(spec.fixed) != {"query"}:
            query = None
        about = spec.about or (query.about if query else "")
        columns = _columns(generic, spec.name, _said(about, generic.description), pack.name)
        if query:
            return QueryTool(**columns, dotted=spec.name, fixed=spec.fixed, query=query)
        without = frozenset(spec.without)
        return PackTool(
            **columns, dotted=spec.name, fixed=spec.fixed, defaults=spec.defaults, without=without
        )

    def _of_kind(self, pack: KindPack, kind: KindSpec, models: KindModels) -> Iterator[KindTool]:
        generic = self._generic[_SAVE]
        rows = {spec.name.replace(".", "_") for spec in pack.tools}
        for verb, title in _KIND_TOOLS:
            dotted = f"{snake(kind.name)}.{verb}.v1"
            if (
                dotted.replace(".", "_") in rows
            ):  # such as relationship.create.v1, which joins two records
                dotted = f"{snake(kind.name)}_record.{verb}.v1"
            text = (
                f"{title.format(kind=kind.name)}: {kind.about or 'a record'}. Returns its id and "
                "version."
            )
            columns = _columns(generic, dotted, text, pack.name + TYPED)
            columns["title"] = title.format(kind=kind.name)
            yield KindTool(**columns, dotted=dotted, kind=kind.name, models=models)


def toolsets(packs: Iterable[KindPack]) -> tuple[str, ...]:
    """Return the toolsets of packs: one of a pack's rows, one of the tools made from its kinds."""
    named = [(pack.name, pack.name + TYPED) for pack in packs if not pack.open]
    return tuple(name for pair in named for name in pair)


def tool_name(dotted: str) -> str:
    """Return the name of a tool for one that may have dots or camelCase."""
    return snake(dotted.replace(".", "_"))


def _said(about: str, generic: str) -> str:
    """Return what a row says of itself, with what the operation says comes back.

    The operation's words for none.
    """
    if not about or "Returns " in about:
        return about or generic
    _, returns, returned = generic.partition("Returns ")
    return f"{about.rstrip('.')}. {returns}{returned}".strip()


def _without_default(definition: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in definition.items() if key != "default"}


def _with_used_defs(schema: dict[str, Any]) -> dict[str, Any]:
    """Return a schema with only the definitions that it refers to, directly or indirectly."""
    defs: dict[str, Any] = schema.pop("$defs", {})
    referring = json.dumps(schema)
    used = dict[str, Any]()
    while True:
        # A reference ends with the name, after a slash or, in OpenAPI, after the operation's name
        # and a dot.
        added = {
            name: definition
            for name, definition in defs.items()
            if name not in used and (f'/{name}"' in referring or f'.{name}"' in referring)
        }
        if not added:
            break
        used |= added
        referring = json.dumps(added)
    return {**schema, **({"$defs": used} if used else {})}


def _columns(generic: AnyOperation, dotted: str, description: str, toolset: str) -> dict[str, Any]:
    as_it_is: dict[str, Any] = {
        field.name: getattr(generic, field.name) for field in fields(Operation)
    }
    return {**as_it_is, "name": tool_name(dotted), "description": description, "toolset": toolset}


def _named_as(arguments: Mapping[str, JSON], known: Iterable[str]) -> dict[str, JSON]:
    """Return arguments by the known names that they may spell otherwise.

    Raises InvalidRequest for one given twice.
    """
    names = {plain_name(name): name for name in known}
    renamed: dict[str, JSON] = {}
    for written, value in arguments.items():
        name = names.get(plain_name(written), written)
        if name in renamed:
            raise InvalidRequest(name[:100], "is given twice")
        renamed[name] = value
    return renamed


def _record_properties(operation: AnyOperation) -> dict[str, Any]:
    """Return the schema of one record's arguments of ``record_save``."""
    schema = Operation[Any, Any, Any].input_schema(operation)
    item = schema["properties"]["records"]["items"]
    properties: dict[str, Any] = (
        schema["$defs"][item["$ref"].rpartition("/")[2]] if "$ref" in item else item
    )
    return properties["properties"]
