"""What clients send is read by each tool's own schema: every spelling of every argument of every tool, and refusals.

The cases are made from the schemas themselves, so that a new tool or argument is tried without a line here.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import date
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from pps.config.packs import shipped_pack
from pps.core.argument_reading import read_arguments
from pps.core.errors import InvalidRequest
from pps.core.json_bounds import MAX_VALUES
from pps.core.json_shapes import Shape, plain_name, shape_of, shape_of_schema
from pps.core.kinds import Kinds
from pps.core.values import JSON
from pps.features.projects.project_graph import CreateGraphInput, RoutedEventInput
from pps.interfaces.mcp.tools import tool
from pps.operations.catalog import OPERATIONS, operations_for
from pps.operations.pack_tools import KindTool, PackTool, PackTools, QueryTool
from pps.operations.table import AnyOperation
from pps.records.asks import QUERIES
from pps.records.kind_models import KindModels

PACKS = ("constitution", "squad")
ID = "1b4e28ba-2fa1-5d2b-883f-0016d3cca427"


def tools_of_packs() -> list[PackTool]:
    generic = operations_for("entity")
    return [
        one
        for name in PACKS
        for one in PackTools(generic).of(Kinds([shipped_pack(name)])).values()
        if isinstance(one, PackTool)
    ]


ROWS = [one for one in tools_of_packs() if not isinstance(one, KindTool | QueryTool)]
KIND_TOOLS = [one for one in tools_of_packs() if isinstance(one, KindTool)]
TOOLS: list[AnyOperation] = [*OPERATIONS, *ROWS]


def sample(schema: Any, definitions: Mapping[str, Any]) -> Any:
    """Return a small valid value of a JSON schema."""
    if "$ref" in schema:
        return sample(definitions[schema["$ref"].rpartition("/")[2]], definitions)
    if "anyOf" in schema:
        known = [one for one in schema["anyOf"] if one.get("type") != "null"]
        described = {name: it for name, it in schema.items() if name != "anyOf"}
        return sample({**described, **known[0]}, definitions)
    if "enum" in schema:
        return schema["enum"][-1]
    if "const" in schema:
        return schema["const"]
    match schema.get("type"):
        case "string":
            return _sample_text(schema)
        case "integer":
            return max(schema.get("minimum", 2), min(2, schema.get("maximum", 2)))
        case "number":
            return float(max(schema.get("minimum", 0.5), min(0.5, schema.get("maximum", 0.5))))
        case "boolean":
            return True
        case "array":
            items = schema.get("items", {})
            return [sample(items, definitions) for _ in range(max(1, schema.get("minItems", 1)))]
        case "object":
            properties = schema.get("properties")
            if properties is not None:
                return {name: sample(properties[name], definitions) for name in properties}
            more = schema.get("additionalProperties")
            return {"own": sample(more, definitions) if isinstance(more, dict) else "as given"}
        case _:
            return "anything"


def _sample_text(schema: Mapping[str, Any]) -> str:
    if schema.get("format") == "date":
        return "2026-01-31"
    if schema.get("format") == "duration":
        return "PT2H"
    if "ISO 8601" in schema.get("description", ""):
        return "2026-01-31T09:00:00Z"
    if "pattern" in schema:
        return next(one for one in (ID, "abc", "a=b", "12") if re.search(schema["pattern"], one))
    return "plain text"[: schema.get("maxLength", 99)].strip()


def camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(part.capitalize() for part in rest)


@dataclass(frozen=True)
class Spelling:
    """A whole set of arguments with one value spelled otherwise; ``path`` says where, ``how`` in which way."""

    path: str
    how: str
    arguments: Mapping[str, Any]


def spellings(value: Any, shape: Shape, path: str = "") -> Iterator[Spelling]:
    """Yield a value in each other way that its schema lets it be written, at every depth."""
    if isinstance(value, dict) and "object" in shape.types:
        yield from _object_spellings(value, shape, path)
    elif isinstance(value, list) and "array" in shape.types:
        yield Spelling(path, "array as JSON text", json.dumps(value))  # type: ignore[arg-type]
        if len(value) == 1:
            yield Spelling(path, "one value for a list", value[0])
        for number, item in enumerate(value):
            for inner in spellings(item, shape.item, f"{path}.{number}"):
                changed = [*value[:number], inner.arguments, *value[number + 1 :]]
                yield Spelling(inner.path, inner.how, changed)  # type: ignore[arg-type]
    elif isinstance(value, bool):
        if "string" not in shape.types:
            yield Spelling(path, "boolean as text", str(value))  # type: ignore[arg-type]
    elif isinstance(value, int | float):
        if "string" not in shape.types:
            yield Spelling(path, "number as text", str(value))  # type: ignore[arg-type]
        if isinstance(value, int) and "integer" in shape.types:
            yield Spelling(path, "whole float", float(value))  # type: ignore[arg-type]
            yield Spelling(path, "whole float as text", f"{value}.0")  # type: ignore[arg-type]
    elif isinstance(value, str) and shape.choices:
        yield Spelling(path, "choice in capitals", value.upper())  # type: ignore[arg-type]
        yield Spelling(path, "choice in camelCase", camel(value))  # type: ignore[arg-type]


def _object_spellings(value: dict[str, Any], shape: Shape, path: str) -> Iterator[Spelling]:
    if path:
        yield Spelling(path, "object as JSON text", json.dumps(value))  # type: ignore[arg-type]
        if shape.short and set(value) == {shape.short}:
            yield Spelling(path, "object as its name", value[shape.short])
    for name, inner in value.items():
        if name not in shape.properties:
            continue
        place = f"{path}.{name}" if path else name
        others = {camel(name), name.upper(), name.replace("_", "-")} - {name}
        for other in sorted(others):
            renamed = {other if one == name else one: it for one, it in value.items()}
            yield Spelling(place, f"named {other}", renamed)
        for one in spellings(inner, shape.properties[name], place):
            yield Spelling(one.path, one.how, {**value, name: one.arguments})


def cases(schema: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield sets of arguments that together have every argument of a schema: each with those that are required."""
    definitions = schema.get("$defs", {})
    properties = schema.get("properties", {})
    required = {name: sample(properties[name], definitions) for name in schema.get("required", ())}
    yield required
    for name, inner in properties.items():
        if name not in required:
            yield {**required, name: sample(inner, definitions)}
    for name in properties:
        if any("x-short" in one for one in shape_of_schema(schema).properties[name].item.schemas):
            yield {**required, name: [{"name": "Ana"}]}


def accepted_cases(operation: AnyOperation) -> list[dict[str, Any]]:
    """Return the sets of arguments of a tool that it takes; all of them, but for what excludes each other."""
    taken: list[dict[str, Any]] = []
    for arguments in cases(full_schema(operation)):
        operation.parse(arguments)
        taken.append(arguments)
    return taken


def full_schema(operation: AnyOperation) -> dict[str, Any]:
    """Return the schema with its bounds and marks, without what a pack's row fixes."""
    schema = operation.input.model_json_schema()
    if not isinstance(operation, PackTool):
        return schema
    hidden = {*operation.fixed, *operation.without}
    properties = {name: it for name, it in schema["properties"].items() if name not in hidden}
    required = [name for name in schema.get("required", ()) if name in properties]
    return {**schema, "properties": properties, "required": required}


@pytest.mark.parametrize("operation", TOOLS, ids=lambda one: f"{one.audience}-{one.name}")
def test_every_spelling_of_every_argument_is_read_as_the_plain_one(operation: AnyOperation) -> None:
    shape = shape_of(operation.input)
    for arguments in accepted_cases(operation):
        expected = operation.parse(arguments)
        for spelled in spellings(arguments, shape):
            read = operation.parse(spelled.arguments)
            assert read == expected, (spelled.path, spelled.how)


@pytest.mark.parametrize("operation", TOOLS, ids=lambda one: f"{one.audience}-{one.name}")
def test_what_the_schema_does_not_take_is_refused(operation: AnyOperation) -> None:
    shape = shape_of(operation.input)
    for arguments in accepted_cases(operation):
        for name, inner in shape.properties.items():
            if name not in arguments:
                continue
            near = f"{name}x"
            if shape.property_name(near) is None:
                with pytest.raises(InvalidRequest, match=f"{near}: unknown argument, did you mean"):
                    operation.parse({**arguments, near: arguments[name]})
            other = name.upper()
            if other != name:
                with pytest.raises(InvalidRequest, match=f"{name}: is given twice"):
                    operation.parse({**arguments, other: arguments[name]})
            for wrong in refused_values(inner):
                with pytest.raises(InvalidRequest) as refused:
                    operation.parse({**arguments, name: wrong})
                assert refused.value.message.startswith(name), wrong


def refused_values(shape: Shape) -> list[JSON]:
    """Return values that are of no type that the schema takes, and cannot be read as one."""
    types = shape.types
    if not types:
        return []
    wrong: list[JSON] = []
    if types <= {"integer", "null"}:
        wrong += ["five", "5.5", 5.5, "0x5", "5 5", "", True, [5, 6], {"a": 5}, "[5]", "1e400"]
    if types <= {"number", "integer", "null"}:
        wrong += ["NaN", "Infinity", "1,5", "half", True, "1e400"]
    if types <= {"boolean", "null"}:
        wrong += ["yes", "1", 1, 0, "", "on"]
    if types <= {"string", "null"}:
        wrong += [5, 5.0, True, ["a"], {"a": "b"}]
        if shape.choices:
            unknown = ["nonesuch", "", json.dumps([shape.choices[0]])]
            wrong += [text for text in unknown if text not in shape.choices]
    if types <= {"object", "null"}:
        wrong += [5, True, "[1]", '{"a":', [{}]]
        wrong += [] if shape.short else ["text", ""]
    if types <= {"array", "null"} and shape.item.types:
        wrong += [True, "{"] if "string" not in shape.item.types else [True, 5]
    return wrong


@pytest.mark.parametrize("operation", KIND_TOOLS, ids=lambda one: one.name)
def test_a_kinds_own_tool_takes_every_spelling_of_its_fields(operation: KindTool) -> None:
    models = operation.models
    model = models.model(operation.kind)
    schema = model.model_json_schema()
    record = {"id": ID} if operation.is_update else {}
    for fields in cases(schema):
        expected = checked(models, operation, {**record, **fields})
        for spelled in spellings(fields, shape_of(model)):
            read = checked(models, operation, {**record, **spelled.arguments})
            assert read == expected, (spelled.path, spelled.how)
    with pytest.raises(InvalidRequest, match=r"sumary: unknown argument, did you mean 'summary'\?"):
        operation.parse({**record, "sumary": "x"})


def checked(models: KindModels, operation: KindTool, arguments: Mapping[str, Any]) -> object:
    [given] = operation.parse(arguments).records
    own = {"title": given.title, "summary": given.summary, "status": given.status}
    fields = {name: value for name, value in own.items() if value is not None} | given.fields
    return models.check(
        operation.kind, {**fields, **({"tags": [*given.tags]} if given.tags else {})}
    )


@pytest.mark.parametrize("kind", [kind for name in PACKS for kind in shipped_pack(name).kinds])
def test_record_save_reads_a_kinds_fields_by_the_kinds_schema(kind: str) -> None:
    pack = next(shipped_pack(name) for name in PACKS if kind in shipped_pack(name).kinds)
    models = KindModels(Kinds([pack]))
    for fields in cases(models.schema(kind)):
        expected = models.check(kind, fields)
        for spelled in spellings(fields, shape_of(models.model(kind))):
            assert models.check(kind, spelled.arguments) == expected, (spelled.path, spelled.how)


@pytest.mark.parametrize("query", QUERIES, ids=lambda one: one.name)
def test_a_named_query_takes_every_spelling_of_its_parameters(query: Any) -> None:
    for parameters in cases(query.given.model_json_schema()):
        expected = query.read(parameters, ZoneInfo("Europe/Berlin"))
        for spelled in spellings(parameters, shape_of(query.given)):
            read = query.read(spelled.arguments, ZoneInfo("Europe/Berlin"))
            assert read == expected, (spelled.path, spelled.how)


def test_no_two_arguments_of_a_tool_are_one_name_spelled_differently() -> None:
    for operation in TOOLS:
        names = list(shape_of(operation.input).properties)
        assert len({plain_name(name) for name in names}) == len(names), operation.name


def test_no_tool_shows_a_schema_that_some_clients_refuse() -> None:
    def keys(schema: Any) -> Iterator[str]:
        if isinstance(schema, list):
            for item in schema:
                yield from keys(item)
        elif isinstance(schema, dict):
            for name, inner in schema.items():
                if name == "properties":
                    for property_schema in inner.values():
                        yield from keys(property_schema)
                elif name not in ("enum", "default", "required"):
                    yield name
                    yield from keys(inner)

    refused = {"$ref", "$defs", "anyOf", "oneOf", "allOf", "const", "x-short", "x-also", "cli"}
    for operation in (*TOOLS, *KIND_TOOLS, *tools_of_packs()):
        assert not refused & set(keys(tool(operation)["inputSchema"])), operation.name


OBJECT = shape_of_schema(
    {
        "type": "object",
        "additionalProperties": False,
        "properties": {
            "text": {"type": "string"},
            "texts": {"type": "array", "items": {"type": "string"}},
            "own": {"type": "object"},
            "any": {},
            "numbers": {"type": "array", "items": {"type": "integer"}},
            "op": {"enum": ["=", "<", "in"], "type": "string"},
        },
    }
)


@pytest.mark.parametrize(
    ("name", "given", "read"),
    [
        ("text", '["a", "b"]', '["a", "b"]'),
        ("text", '{"a": 1}', '{"a": 1}'),
        ("text", "5", "5"),
        ("text", "true", "true"),
        ("texts", '{"a": 1}', ['{"a": 1}']),
        ("texts", "[draft] plan", ["[draft] plan"]),
        ("texts", "a, b", ["a, b"]),
        ("texts", '["[\\"a\\"]"]', ['["a"]']),
        ("own", '{"dueDate": "5", "n": "[1]"}', {"dueDate": "5", "n": "[1]"}),
        ("any", '{"a": 1}', '{"a": 1}'),
        ("any", 5.0, 5.0),
        ("numbers", "5", [5]),
        ("numbers", 5, [5]),
        ("numbers", '["5", 6.0]', [5, 6]),
        ("numbers", "9007199254740993", [9007199254740993]),
        ("numbers", [1e300], [1e300]),
        ("op", "IN", "in"),
        ("op", "<=", "<="),
    ],
)
def test_a_value_is_read_as_what_it_can_only_mean(name: str, given: JSON, read: JSON) -> None:
    assert read_arguments({name: given}, OBJECT) == {name: read}


def test_json_within_texts_is_bounded_together() -> None:
    items = "[" + ",".join(["1"] * (MAX_VALUES // 3)) + "]"
    shape = shape_of_schema(
        {"type": "array", "items": {"type": "array", "items": {"type": "integer"}}}
    )
    whole = shape_of_schema({"type": "object", "properties": {"lists": shape.schemas[0]}})
    assert len(read_arguments({"lists": [items] * 2}, whole)["lists"]) == 2  # type: ignore[arg-type]
    with pytest.raises(InvalidRequest, match="must hold at most"):
        read_arguments({"lists": [items] * 4}, whole)
    with pytest.raises(InvalidRequest, match="nested too deeply"):
        read_arguments({"lists": "[" * 200 + "]" * 200}, whole)


@pytest.mark.parametrize(
    ("field", "given", "kept"),
    [
        ("deadline", "2026-03", "2026-03"),
        ("deadline", "2026", "2026"),
        ("deadline", "2026-03-10", "2026-03-10"),
        ("deadline", "2026-03-10T00:00:00Z", "2026-03-10"),
    ],
)
def test_a_date_of_a_record_stays_as_precise_as_it_was_given(
    field: str, given: str, kept: str
) -> None:
    models = KindModels(Kinds([shipped_pack("constitution")]), ZoneInfo("America/New_York"))
    whole: dict[str, JSON] = {"title": "Run", "summary": "Far.", field: given}
    assert models.check("Goal", whole)[field] == kept
    with pytest.raises(InvalidRequest, match=f"Goal.{field}: an ISO 8601 date, .* without a time"):
        models.check("Goal", {**whole, field: "2026-03-10T17:00:00"})


def test_a_time_of_a_record_without_a_zone_is_of_the_entitys_and_a_date_stays_one() -> None:
    models = KindModels(Kinds([shipped_pack("constitution")]), ZoneInfo("Europe/Berlin"))
    for given, kept in (
        ("2026-03-10T09:00:00", "2026-03-10T08:00:00.000000Z"),
        ("2026-03-10", "2026-03-10"),
        ("2026-03", "2026-03"),
    ):
        whole: dict[str, JSON] = {"title": "t", "summary": "s", "decided_at": given}
        assert models.check("Decision", whole)["decided_at"] == kept


@pytest.mark.parametrize(
    ("given", "zone", "day"),
    [
        ("2026-03-10", "Europe/Berlin", date(2026, 3, 10)),
        ("2026-03", "Europe/Berlin", date(2026, 3, 1)),
        ("2026-03-09T23:30:00Z", "Europe/Berlin", date(2026, 3, 10)),
        ("2026-03-10T02:30:00.000Z", "America/New_York", date(2026, 3, 9)),
        ("2026-03-10T00:00:00Z", "America/New_York", date(2026, 3, 10)),
        ("2026-03-10T23:30:00", "America/New_York", date(2026, 3, 10)),
    ],
)
def test_a_day_is_taken_as_an_instant_too(given: str, zone: str, day: date) -> None:
    workload = next(one for one in OPERATIONS if one.name == "workload_assess")
    read = workload.parse({"startDate": given}, ZoneInfo(zone))
    assert read.start_date == day


def test_choices_with_commas_are_a_list_and_texts_with_commas_are_one() -> None:
    choices = {"type": "array", "items": {"type": "string", "enum": ["facts", "nodes"]}}
    texts = {"type": "array", "items": {"type": "string"}}
    shape = shape_of_schema({"type": "object", "properties": {"channels": choices, "tags": texts}})
    assert read_arguments({"channels": "Facts, nodes"}, shape) == {"channels": ["facts", "nodes"]}
    assert read_arguments({"channels": "facts,roads"}, shape) == {"channels": "facts,roads"}
    assert read_arguments({"tags": "facts,nodes"}, shape) == {"tags": ["facts,nodes"]}


def test_project_tools_take_the_names_that_other_tools_have() -> None:
    edges = {"source": "A", "target": "B", "type": "uses"}
    nodes = [{"name": "A", "content": "c", "kind": "Service"}]
    assert read_arguments(
        {"project_path": "/shop", "nodes": nodes, "edges": edges}, shape_of(CreateGraphInput)
    ) == {
        "project": "/shop",
        "nodes": [{"title": "A", "content": "c", "node_type": "Service"}],
        "edges": [{"from": "A", "to": "B", "relation_type": "uses"}],
    }
    event: dict[str, JSON] = {"project": "/shop", "content": "c"}
    read = read_arguments(event, shape_of(RoutedEventInput))
    assert read == {"project_path": "/shop", "content": "c"}
