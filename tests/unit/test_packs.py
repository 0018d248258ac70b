"""Packs of kinds: what their files say, every mistake in them, and the models that check records."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from pps.config.pack_reading import read_pack
from pps.config.packs import load_packs, packs_together, shipped_pack
from pps.core.errors import ConfigError, InvalidRequest
from pps.core.kinds import FieldSpec, Kinds
from pps.core.values import JSON
from pps.operations.catalog import operations_for
from pps.operations.inventory import diagram
from pps.operations.pack_files import known_operations
from pps.operations.pack_tools import PackTools
from pps.operations.table import AnyOperation
from pps.records.asks import QUERIES
from pps.records.kind_models import KindModels

ROOT = Path(__file__).parents[2]
PACK = shipped_pack("constitution")
MODELS = KindModels(Kinds([PACK]))
BARE = {"title": "A title", "summary": "A summary"}
EVENTS = Kinds([shipped_pack("events")])
UUID = "1b4e28ba-2fa1-5d2b-883f-0016d3cca427"

# Of each kind its required fields, then the others, as the origin's schema lists them.
FIELDS = {
    "foundation": """
        Value: - | priority        Principle: statement | rationale     Guardrail: trigger response | severity
        Human: - | email role timezone              AI: - | model capabilities
        Partnership: partner | criticality scope    Policy: statement | scope     Context: scope | timeframe
        Core: pillar | scope       Relationship: counterpart | nature since""",
    "vision": """
        Vision: - | horizon narrative
        Business: business_model | stage revenue equity team markets competitors
        Goal: - | horizon target deadline completion_status deliverables success_criteria
        Season: start_date end_date | theme""",
    "strategy": """
        Strategy: - | narrative timebox     Objective: timeframe | success_criteria
        KeyResult: metric target | baseline     Initiative: - | impact owner
        Milestone: success_criteria | deadline owner completed_at success_evidence blocked_reason
        Risk: probability impact | mitigation""",
    "tactics": "Project: - | phase owner   Area: - | domain   System: - | scope owner   Process: - | cadence owner",
    "execution": """
        Decision: - | decided_at roi    Task: - | priority effort_hours due_date owner
        TimeBlock: start end | calendar_ref     WorkSession: start end | notes     Action: verb | context""",
    "track": """
        Metric: unit | direction cadence    Observation: observed_at | source value
        Event: occurred_at | category       Signal: - | strength channel""",
    "mind": """
        Insight: confidence | insight_type source_ref      Pattern: pattern | confidence
        Evidence: - | evidence_type source_ref     Source: uri | retrieved_at     Note: content | -""",
}
ENUMS = """
    Value.priority core supporting exploratory; Guardrail.severity low medium high
    Partnership.criticality low medium high; Vision.horizon 1y 3y 5y 10y lifetime custom
    Business.stage ideation mvp growth scale; Goal.horizon week month quarter year custom
    Goal.completion_status successfully_completed partially_completed abandoned superseded
    Initiative.impact low medium high; Risk.impact low medium high; Project.phase ideation design build launch scale
    Task.priority p0 p1 p2 p3; Metric.direction up down stable; Signal.strength low medium high
    Evidence.evidence_type quantitative qualitative anecdotal
"""
RIGHT: dict[str, JSON] = {
    "text": "Some words",
    "number": 0.5,
    "integer": 3,
    "bool": True,
    "date": "2026-03-01",
    "datetime": "2026-03-01T09:00:00Z",
    "duration": "PT2H30M",
    "json": {"total": 1.5},
    "ref": UUID,
}
WRONG: dict[str, tuple[JSON, ...]] = {
    "text": (1, ["x"], "a\0b"),
    "number": ("one", True),
    "integer": (1.5, "one", True),
    "bool": (1, "yes"),
    "date": ("2026-13-01", "soon", 20260301),
    "datetime": ("2026-03-41T09:00:00", "noon", 7),
    "duration": ("two hours",),
    "json": ({"other": 1}, {"total": "much"}),
    "ref": ("Ana", 1),
    "list": (1, [1], ["x"] * 51),
    "enum": ("none of them", 1),
}


def _table() -> dict[str, tuple[str, set[str], set[str]]]:
    found: dict[str, tuple[str, set[str], set[str]]] = {}
    for layer, text in FIELDS.items():
        for kind, must, may in re.findall(
            r"(\w+): ([\w -]+?) \| ([\w -]+?)(?=\s+\w+:|\s*$)", " ".join(text.split())
        ):
            found[kind] = (layer, set(must.split()) - {"-"}, set(may.split()) - {"-"})
    return found


def _right(spec: FieldSpec) -> JSON:
    if spec.type == "enum":
        return spec.enum[0]
    return [_right(spec.of) if spec.of else "x"] if spec.type == "list" else RIGHT[spec.type]


def test_the_constitution_has_seven_layers_with_their_loads_and_budgets() -> None:
    assert [(one.name, one.load, one.budget_tokens) for one in PACK.layers] == [
        ("foundation", "always", 15_000),
        ("vision", "always", 8_000),
        ("strategy", "on_demand", 0),
        ("tactics", "on_demand", 0),
        ("execution", "by_time", 0),
        ("track", "aggregate", 0),
        ("mind", "on_demand", 0),
    ]
    assert sum(one.budget_tokens for one in PACK.layers) + 2_000 <= 25_000
    assert {kind: spec.layer for kind, spec in PACK.kinds.items()} == {
        kind: one[0] for kind, one in _table().items()
    }


@pytest.mark.parametrize(("kind", "row"), _table().items(), ids=list(_table()))
def test_a_kind_takes_its_fields_and_refuses_all_else(
    kind: str, row: tuple[str, set[str], set[str]]
) -> None:
    _, must, may = row
    spec = PACK.kinds[kind]
    assert {name for name, one in spec.fields.items() if one.required} == must
    assert set(spec.fields) == must | may
    whole: dict[str, JSON] = {**BARE, **{name: _right(one) for name, one in spec.fields.items()}}
    kept = MODELS.check(kind, whole)
    assert set(kept) == {*whole, "status", "tags"}
    assert MODELS.check(kind, kept) == kept, "what was kept is no longer taken"
    for name in must | {"title", "summary"}:
        with pytest.raises(InvalidRequest, match=rf"^{kind}\.{name}: is required"):
            MODELS.check(kind, {key: value for key, value in whole.items() if key != name})
    for name, one in spec.fields.items():
        for wrong in (*WRONG[one.type], *_beyond(one)):
            with pytest.raises(InvalidRequest, match=rf"^{kind}\.{name}"):
                MODELS.check(kind, {**whole, name: wrong})
    with pytest.raises(InvalidRequest, match=rf"^{kind}\.colour: no such field"):
        MODELS.check(kind, {**whole, "colour": "red"})


def _beyond(spec: FieldSpec) -> list[JSON]:
    """Return values just past a field's bounds."""
    if spec.type == "text":
        return ["x" * (int(spec.max or 4_000) + 1)]
    if spec.type == "number":
        return [value for value in (spec.min and spec.min - 1, spec.max and spec.max + 1) if value]
    return []


def test_every_value_of_an_enum_is_taken() -> None:
    said = {
        one.split()[0]: one.split()[1:]
        for line in ENUMS.strip().splitlines()
        for one in line.split(";")
    }
    found = {
        f"{kind.name}.{name}": list(spec.enum)
        for kind in PACK.kinds.values()
        for name, spec in kind.fields.items()
        if spec.type == "enum"
    }
    assert found == said
    for path, values in said.items():
        kind, _, name = path.partition(".")
        whole = {key: _right(spec) for key, spec in PACK.kinds[kind].fields.items()}
        for value in values:
            assert MODELS.check(kind, {**BARE, **whole, name: value})[name] == value


@pytest.mark.parametrize(
    ("field", "wrong", "said"),
    [
        ("title", "x" * 161, "at most 160 characters"),
        ("title", "  ", "white space"),
        ("summary", "x" * 2_001, "at most 2,000 characters"),
        ("description", "x" * 4_001, "at most 4,000 characters"),
        ("status", "gone", "one of draft, active, archived, deprecated"),
        ("tags", ["t"] * 21, "at most 20 items"),
        ("metadata", {"a": ["b"]}, "valid"),
        ("provenance", {"module": "sleep"}, "one of discuss, plan, execute, mind"),
        ("provenance", {"confidence": 2}, "at most 1"),
        ("provenance", {"notes": "x" * 501}, "at most 500 characters"),
    ],
)
def test_what_every_record_has_is_bounded(field: str, wrong: JSON, said: str) -> None:
    with pytest.raises(InvalidRequest, match=rf"^Goal\.{field}.*{said}"):
        MODELS.check("Goal", {**BARE, field: wrong})


def test_names_in_camel_case_and_times_in_any_zone_are_kept_in_one_form() -> None:
    kept = MODELS.check(
        "Milestone", {**BARE, "successCriteria": "Done", "completedAt": "2026-03-01T10:00:00+01:00"}
    )
    assert (kept["success_criteria"], kept["completed_at"]) == (
        "Done",
        "2026-03-01T09:00:00.000000Z",
    )
    with pytest.raises(InvalidRequest, match="given twice"):
        MODELS.check("Task", {**BARE, "dueDate": "2026-03-01", "due_date": "2026-03-01"})
    with pytest.raises(InvalidRequest, match="did you mean 'due_date'"):
        MODELS.check("Task", {**BARE, "dueDat": "2026-03-01"})


def test_every_relation_takes_its_properties_between_its_pairs_alone() -> None:
    kinds = Kinds([PACK])
    assert len({one.name for one in PACK.relations}) == 43
    for one in PACK.relations:
        whole = {name: _right(spec) for name, spec in one.fields.items()}
        assert MODELS.check_relation(one.name, one.source, one.target, whole) == whole
        for name, spec in one.fields.items():
            for wrong in (*WRONG[spec.type], *_beyond(spec)):
                with pytest.raises(InvalidRequest, match=rf"^{one.name}\.{name}"):
                    MODELS.check_relation(one.name, one.source, one.target, {**whole, name: wrong})
            if spec.required:
                with pytest.raises(InvalidRequest, match="is required"):
                    MODELS.check_relation(one.name, one.source, one.target, {})
    for name in {one.name for one in PACK.relations}:
        with pytest.raises(InvalidRequest, match="does not join"):
            kinds.relation(name, "Signal", "Signal")


def test_who_may_write_what() -> None:
    kinds = Kinds([PACK])
    for actor, may, may_not in (
        ("discuss", ("Value", "Goal"), ("Task", "Note", "Strategy")),
        ("plan", ("Strategy", "Project"), ("Task", "TimeBlock", "WorkSession", "Action", "Value")),
        ("execute", ("Project", "Task", "Metric"), ("Value", "Goal", "Note")),
        ("mind", ("Metric", "Note"), ("Value", "Task")),
        ("stranger", (), ("Note",)),
        ("", ("Value", "Task", "Note"), ()),
    ):
        for kind in may:
            kinds.check_write(actor, kind)
        for kind in may_not:
            with pytest.raises(InvalidRequest, match="may not write"):
                kinds.check_write(actor, kind)


def test_how_soon_each_kind_is_embedded() -> None:
    by: dict[str, set[str]] = {}
    for kind in PACK.kinds.values():
        by.setdefault(kind.priority, set()).add(kind.name)
    assert (
        by["P0"]
        == {"Value", "Principle", "Guardrail"}
        == {one.name for one in PACK.kinds.values() if one.describe}
    )
    assert by["P1"] == {"Vision", "Goal", "Strategy", "Objective"}
    assert {"Decision", "Insight", "Pattern"} <= by["P2"]
    assert {"Task", "Action", "Initiative", "Risk"} <= by["P3"]
    assert {"Evidence", "Source", "Note"} <= by["P4"]
    assert by["none"] == {"Human", "AI", "TimeBlock", "WorkSession", "Metric"}


def test_the_shipped_packs_are_without_mistakes_and_call_operations_that_there_are() -> None:
    for file in sorted((ROOT / "config" / "packs").glob("*.toml")):
        assert read_pack(file.read_text("utf-8"), file.stem, known_operations())[1] == ()


def refused(one: AnyOperation) -> str:
    """Return what is wrong with a call that gives nothing."""
    try:
        one.parse({})
    except InvalidRequest as error:
        return error.message
    return ""


def test_each_tool_of_the_constitution_gives_its_operation_what_it_takes() -> None:
    tools = PackTools(operations_for("entity")).of(Kinds([PACK]))
    rows = {name: one for name, one in tools.items() if one.toolset == "constitution"}
    assert len(rows) == len(PACK.tools) == 31
    wrong = {name: refused(one) for name, one in rows.items()}
    assert {name: why for name, why in wrong.items() if why and "required" not in why} == {}
    asked = {str(one.fixed["query"]) for one in PACK.tools if one.operation == "record_ask"}
    assert asked <= {one.name for one in QUERIES}


MISTAKES = """\
name = "Garden"
version = 0
colour = "green"

[layers.Ground]
load = "sometimes"

[lifecycles.growth]
start = "seed"
moves = { seed = ["tree"], lost = [] }
others = [["tree", "seed"]]

[kinds.plant]
layer = "grond"
lifecycle = "grwth"
embed = ["titel"]
priority = "P9"

[kinds.Bed]
layr = "Ground"

[kinds.Tree]
embed = [
    "title",
    "hieght",
]
fields.height = { type = "metres" }
fields.Age = { type = "number", min = 5, max = 1 }
fields.title = { max = 10 }
fields.kin = { type = "ref", kind = "Tre" }
fields.wood = { type = "enum" }
fields.notes = { type = "list", enum = ["a"] }

[[relations.STANDS_IN]]
pairs = [
    ["Tree", "Bad"],
]

[[relations.STANDS_IN]]
fields.since = { type = "date", requird = true }

[authority.gardener]
write = ["cellar"]

[tools."garden list"]
operation = "record_lst"

[tools."plants.list"]
operation = "record_list"
fixed = { kindes = ["Tree"] }
"""


def test_a_file_with_20_mistakes_is_told_all_20_with_their_lines() -> None:
    pack, mistakes = read_pack(MISTAKES, "garden", {"record_list": ["kinds"]})
    assert pack is None
    found = {(one.line, one.where) for one in mistakes}
    lines = MISTAKES.splitlines()
    for where, text in (
        ("name", 'name = "Garden"'),
        ("version", "version = 0"),
        ("colour", "colour"),
        ("layers.Ground", "[layers.Ground]"),
        ("layers.Ground.load", "load ="),
        ("lifecycles.growth.moves", "moves ="),
        ("lifecycles.growth.others", "others ="),
        ("kinds.plant", "[kinds.plant]"),
        ("kinds.plant.priority", "priority ="),
        ("kinds.Bed.layr", "layr ="),
        ("kinds.Tree.embed", '    "hieght"'),
        ("kinds.Tree.fields.height.type", "fields.height"),
        ("kinds.Tree.fields.Age", "fields.Age"),
        ("kinds.Tree.fields.Age.min", "fields.Age"),
        ("kinds.Tree.fields.title", "fields.title"),
        ("kinds.Tree.fields.kin.kind", "fields.kin"),
        ("kinds.Tree.fields.wood.enum", "fields.wood"),
        ("kinds.Tree.fields.notes.enum", "fields.notes"),
        ("relations.STANDS_IN.0.pairs", '    ["Tree", "Bad"]'),
        (
            "relations.STANDS_IN.1.pairs",
            next(one for one in lines[::-1] if one == "[[relations.STANDS_IN]]"),
        ),
        ("relations.STANDS_IN.1.fields.since.requird", "fields.since"),
        ("authority.gardener.write", "write ="),
        ("tools.garden list", '[tools."garden list"]'),
        ("tools.garden list.operation", "operation ="),
        ("tools.plants.list.fixed.kindes", "fixed ="),
    ):
        at = {number for number, line in enumerate(lines, 1) if line.startswith(text)}
        assert any((line, where) in found for line in at), (where, at, mistakes)
    assert "did you mean 'layer'" in str(mistakes)
    assert "did you mean 'Tree'" in str(mistakes)
    assert "did you mean 'record_list'" in str(mistakes)


def test_the_mistakes_of_a_kind_hide_none_of_its_others() -> None:
    text = 'name = "a"\nversion = 1\n[kinds.B]\nlayer = "x"\nlifecycle = "y"\nembed = ["z"]\n'
    assert [one.line for one in read_pack(text)[1]] == [4, 5, 6]


@pytest.mark.parametrize(
    "text", ["name = ", 'name = "a"\nversion = 1\n[kinds]\n[kinds]\n', "a = 1\n\n\nb"]
)
def test_what_is_no_toml_is_told_with_its_line(text: str) -> None:
    pack, (mistake,) = read_pack(text)
    assert pack is None
    assert (
        mistake.line == (1, 4, 4)[len(text.splitlines()) // 2 if len(text.splitlines()) < 4 else 1]
    )
    assert "not valid TOML" in mistake.problem


def test_the_documented_pack_is_right() -> None:
    (text,) = re.findall(
        r"```toml\n(name = \"garden\"\n.*?)```",
        (ROOT / "docs" / "records.md").read_text("utf-8"),
        re.S,
    )
    pack, mistakes = read_pack(text, "garden", known_operations())
    assert mistakes == ()
    assert pack is not None
    assert pack.kinds["Plant"].lifecycle is not None
    assert pack.kinds["Plant"].lifecycle.others == (("growing", "harvested"),)


@pytest.mark.parametrize(
    ("source", "kind", "role"),
    [
        ("whisper", "voice", "user"),
        ("screenpipe", "ambient", "tool"),
        ("mcp", "agent", "assistant"),
        ("editor", "manual", "user"),
        ("telegram", "manual", "user"),
    ],
)
def test_the_pack_of_events_says_of_which_kind_the_texts_of_a_source_are(
    source: str, kind: str, role: str
) -> None:
    for spelling in (source, source.upper(), f" {source} "):
        assert EVENTS.of_source(spelling) == kind
    assert EVENTS.role_of(kind) == role


def test_a_kind_that_no_open_pack_has_has_the_role_of_a_person() -> None:
    assert EVENTS.role_of("summary") == "user"
    assert Kinds([PACK]).role_of("Event") == "user"


def test_an_open_pack_of_ones_own_is_asked_before_the_pack_of_events(tmp_path: Path) -> None:
    (tmp_path / "packs").mkdir()
    (tmp_path / "packs" / "house.toml").write_text(
        'name = "house"\nversion = 1\nopen = true\n'
        '[kinds.sensor]\nsources = ["Thermostat", "mcp"]\nrole = "tool"\n'
    )
    kinds = Kinds(load_packs(tmp_path, ["house"]))
    assert {source: kinds.of_source(source) for source in ("thermostat", "mcp", "post")} == {
        "thermostat": "sensor",
        "mcp": "sensor",
        "post": "manual",
    }
    assert kinds.role_of("sensor") == "tool"
    assert "sensor" not in kinds, "a kind of an open pack takes any fields"


def test_without_an_open_pack_a_text_needs_a_kind() -> None:
    with pytest.raises(InvalidRequest, match=r"^kind: no pack has a kind for texts of this source"):
        Kinds([PACK]).of_source("mcp")


def test_sources_belong_to_one_kind_of_an_open_pack() -> None:
    text = (
        'name = "house"\nversion = 1\nopen = true\n'
        '[kinds.sensor]\nsources = ["mcp"]\n[kinds.robot]\nsources = ["MCP"]\nrole = "boss"\n'
    )
    assert [(one.line, one.where) for one in read_pack(text)[1]] == [
        (8, "kinds.robot.role"),
    ]
    right_role = text.replace("boss", "tool")
    assert [str(one) for one in read_pack(right_role)[1]] == [
        "line 7: kinds.robot.sources: 'mcp' is named twice in this pack"
    ]
    typed = right_role.replace("open = true\n", "").replace("sensor", "Sensor")
    assert {(one.where, one.problem) for one in read_pack(typed.replace("robot", "Robot"))[1]} >= {
        ("kinds.Sensor.sources", "only a kind of an open pack has it"),
        ("kinds.Robot.sources", "only a kind of an open pack has it"),
        ("kinds.Robot.role", "only a kind of an open pack has it"),
    }


def test_a_diagram_shows_every_kind_and_every_pair() -> None:
    drawn = diagram(PACK)
    assert drawn.startswith("classDiagram\n  namespace foundation {")
    for kind in PACK.kinds:
        assert re.search(rf"^ +class {kind}\b", drawn, re.M)
    for one in PACK.relations:
        assert re.search(rf"^  {one.source} --> {one.target} : .*\b{one.name}\b", drawn, re.M)


def test_own_packs_lie_beside_the_settings_and_take_no_shipped_name(tmp_path: Path) -> None:
    (tmp_path / "packs").mkdir()
    (tmp_path / "packs" / "garden.toml").write_text('name = "garden"\nversion = 1\n[kinds.Plant]\n')
    assert "Plant" in Kinds(load_packs(tmp_path, ["garden", "constitution"]))
    (tmp_path / "packs" / "weeds.toml").write_text('name = "weeds"\nversion = 1\n[kinds.Goal]\n')
    with pytest.raises(InvalidRequest, match="constitution and weeds both have the kind Goal"):
        packs_together(tmp_path, ["constitution", "weeds"])
    with pytest.raises(ConfigError, match="both have the kind Goal"):
        load_packs(tmp_path, ["constitution", "weeds"])
    with pytest.raises(ConfigError, match=r"there are constitution, .*garden, weeds; take it out"):
        load_packs(tmp_path, ["gone"])
    (tmp_path / "packs" / "garden.toml").write_text('name = "garden"\nversion = 2\n[kinds.plant]\n')
    with pytest.raises(
        ConfigError, match=r"the pack garden: line 3: kinds\.plant: .* lists every mistake"
    ):
        load_packs(tmp_path, ["garden"])
    (tmp_path / "packs" / "events.toml").write_text('name = "events"\nversion = 1\n[kinds.X]\n')
    with pytest.raises(ConfigError, match="name of a shipped pack"):
        load_packs(tmp_path, [])
