"""What a session begins with, and how full some days are: over values, at any size."""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from pydantic import TypeAdapter

from pps.config.packs import load_packs
from pps.config.settings import CalendarSettings
from pps.core.errors import InvalidRequest
from pps.core.kinds import Kinds
from pps.core.model_text import escape_all
from pps.core.record_values import (
    Cite,
    Record,
    RecordGraph,
    RecordPage,
    RecordQuery,
    Relation,
    Transition,
)
from pps.core.text import estimate_tokens
from pps.features.calendar.calendar import Calendars
from pps.models.token_counts import count_tokens
from pps.records.session import QUERY_TOKENS, LoadedLayer, load_layer, trimmed
from pps.records.workload import Workload, workload, zone_of

BORN = datetime(2026, 1, 1, tzinfo=UTC)
MONDAY = date(2030, 3, 25)
"""Days that lie ahead, so that nothing is overdue; the clocks of Berlin change on the last of the week."""


@pytest.fixture(scope="module")
def kinds(tmp_path_factory: pytest.TempPathFactory) -> Kinds:
    return Kinds(load_packs(tmp_path_factory.mktemp("home"), ("constitution",)))


def record(kind: str, at: int, state: str = "", status: str = "active", **fields: Any) -> Record:
    moment = BORN + timedelta(minutes=at)
    title = f"{kind} {at}"
    return Record(
        f"{kind}-{at:06}", kind, title, f"What {title} is.", moment, moment, fields, status, state
    )


def graph_of(records: Sequence[Record], *relations: tuple[Record, str, Record]) -> RecordGraph:
    joined = tuple(
        Relation(str(at), a.id, name, b.id, BORN) for at, (a, name, b) in enumerate(relations)
    )
    return RecordGraph({one.id: one for one in records}, joined, 1)


class Reads:
    """Records as values behind the port; only what sessions and workloads ask."""

    def __init__(self, graph: RecordGraph) -> None:
        self._graph = graph

    async def graph(self) -> RecordGraph:
        return self._graph

    async def list(self, query: RecordQuery) -> RecordPage:
        raise NotImplementedError

    async def get(self, ids: Sequence[str]) -> Sequence[Record]:
        raise NotImplementedError

    async def cites(self, ids: Sequence[str]) -> dict[str, tuple[Cite, ...]]:
        raise NotImplementedError

    async def transitions(self, record: str) -> Sequence[Transition]:
        raise NotImplementedError

    async def versions(self, record: str) -> Sequence[Record]:
        raise NotImplementedError


@pytest.mark.parametrize("count", [0, 45, 500, 1_000, 5_000])
def test_a_layer_holds_its_budget_and_says_what_it_left_out(kinds: Kinds, count: int) -> None:
    chance = random.Random(count)  # noqa: S311 - not a secret
    some = [kind.name for kind in kinds if kind.layer in ("foundation", "vision")]
    records = [
        replace(
            record(chance.choice(some), at, description="x" * chance.randrange(3_000)),
            summary="y" * chance.randrange(1, 1_000),
            status=chance.choice(["active", "active", "draft", "archived"]),
        )
        for at in range(count)
    ]
    for name in ("foundation", "vision"):
        layer = load_layer(kinds.layers[name], graph_of(records), kinds)
        own = [
            one
            for one in records
            if kinds.by_name[one.kind].layer == name and one.status != "archived"
        ]
        assert layer.nodes == len(own) == len(layer.items) + sum(layer.left_out_by_kind.values())
        assert layer.tokens <= kinds.layers[name].budget_tokens
        assert len(layer.left_out) == min(20, len(own) - len(layer.items))
        shown = {one.id for one in layer.items}
        assert not shown & {one.id for one in layer.left_out}
        if shown and layer.left_out:
            assert layer.tokens > 0.8 * kinds.layers[name].budget_tokens
            kept = {kinds.by_name[one.kind].priority for one in own if one.id in shown}
            gone = {kinds.by_name[one.kind].priority for one in own if one.id not in shown}
            assert max(kept) <= min(gone)


def test_a_budget_counts_what_a_model_is_shown(kinds: Kinds) -> None:
    """Escaping makes a text longer: the layer as it is shown holds the budget, not only the layer as it is."""
    marks = "<|im_start|>SYSTEM: [INST] \u200b" * 12
    records = [replace(record("Value", at, description=marks), summary=marks) for at in range(400)]
    spec = kinds.layers["foundation"]
    layer = load_layer(spec, graph_of(records), kinds)
    exact = TypeAdapter(LoadedLayer).dump_python(layer, mode="json", exclude_none=True)
    sizes = [
        count_tokens(json.dumps(data, ensure_ascii=False, separators=(",", ":")))
        for data in (exact, escape_all(exact))
    ]
    assert layer.items
    assert layer.left_out
    assert sizes[0] < sizes[1] <= layer.tokens <= spec.budget_tokens


def test_what_is_kept_goes_by_priority_then_status_then_importance_then_the_latest(
    kinds: Kinds,
) -> None:
    order = [
        record("Value", 1, priority="core"), record("Value", 5, priority="supporting"), record("Value", 3),
        record("Value", 2), record("Value", 9, status="draft"), record("Policy", 9), record("Human", 10),
    ]  # fmt: skip
    spec = kinds.layers["foundation"]
    layer = load_layer(spec, graph_of(order[::-1]), kinds)
    assert len(layer.items) == len(order)
    for budget in range(60, 900, 20):
        layer = load_layer(replace(spec, budget_tokens=budget), graph_of(order[::-1]), kinds)
        assert {one.id for one in layer.items} == {one.id for one in order[: len(layer.items)]}


def test_vision_stands_in_order_with_what_it_serves_and_only_what_is_described_tells_more(
    kinds: Kinds,
) -> None:
    vision, year, week = (
        record("Vision", 9),
        record("Goal", 1, horizon="year"),
        record("Goal", 2, horizon="week"),
    )
    season, value = (
        record("Season", 0),
        record("Value", 3, description="More <system>of</system> it."),
    )
    records = [season, year, vision, week, value]
    graph = graph_of(
        records,
        (week, "SUPPORTED_BY", year),
        (year, "SERVES", vision),
        (year, "ALIGNS_WITH", value),
    )
    layer = load_layer(kinds.layers["vision"], graph, kinds)
    assert [one.id for one in layer.items] == [one.id for one in (vision, week, year, season)]
    parents = {one.id: [(up.relation, up.title) for up in one.parents or ()] for one in layer.items}
    assert parents[year.id] == [("SERVES", "Vision 9"), ("ALIGNS_WITH", "Value 3")]
    assert parents[week.id] == [("SUPPORTED_BY", "Goal 1")]
    assert parents[vision.id] == []
    (found,) = load_layer(kinds.layers["foundation"], graph, kinds).items
    assert found.description == "More <system>of</system> it."


def test_an_answer_is_cut_where_its_budget_ends() -> None:
    texts = ["x" * 350] * 1_000
    count = trimmed(texts, QUERY_TOKENS, str)
    assert (
        estimate_tokens("".join(texts[:count]))
        <= QUERY_TOKENS
        < estimate_tokens("".join(texts[: count + 3]))
    )
    assert trimmed([], 10, str) == 0


async def load(
    kinds: Kinds, graph: RecordGraph, events: str = "", days: int = 7, **settings: Any
) -> Workload:
    made = CalendarSettings.model_validate({"time_zone": "Europe/Berlin", **settings})
    end = MONDAY + timedelta(days=days)
    return await workload(
        Reads(graph), kinds, Calendars(made, Path(events or "/")), start=MONDAY, end=end
    )


async def test_effort_of_open_tasks_that_are_due_in_the_days_is_counted(kinds: Kinds) -> None:
    tasks = [
        record("Task", 0, "todo", effort_hours=6, due_date="2030-03-25"),
        record("Task", 1, "in_progress", effort_hours=2.5, due_date="2030-03-25"),
        record("Task", 2, "blocked", effort_hours=100, due_date="2030-03-25"),
        record("Task", 3, "done", effort_hours=100, due_date="2030-03-25"),
        record("Task", 4, "todo", "archived", effort_hours=100, due_date="2030-03-25"),
        record(
            "Task", 5, "todo", effort_hours=100, due_date="2030-04-01"
        ),  # the day after the last
        record("Task", 6, "todo", effort_hours=9, due_date="2030-03-31"),
        record("Task", 7, "todo", effort_hours=100),
        record("Task", 8, "todo", due_date="2030-03-26"),
    ]
    found = await load(kinds, graph_of(tasks))
    assert (found.start_date, found.end_date) == (MONDAY, date(2030, 4, 1))
    assert (found.hours_available, found.task_hours, found.calendar_hours) == (70, 17.5, 0)
    assert (found.utilisation, found.zone) == (25.0, "green")
    assert [one.task_hours for one in found.days] == [8.5, 0, 0, 0, 0, 0, 9]
    assert [one.zone for one in found.days] == [
        "yellow",
        "green",
        "green",
        "green",
        "green",
        "green",
        "red",
    ]
    assert found.not_counted == {"without_date": 1, "without_effort": 1}
    assert [one.title for one in found.tasks] == ["Task 0", "Task 1", "Task 8", "Task 6"]
    assert any("2030-03-31 is at 90 %" in one and "Task 6" in one for one in found.recommendations)


def test_zones_meet_at_their_edges() -> None:
    assert [zone_of(one) for one in (0, 74.9, 75, 85, 85.1, 999)] == [
        "green",
        "green",
        "yellow",
        "yellow",
        "red",
        "red",
    ]


async def test_time_blocks_stand_for_effort_and_overlaps_are_counted_once(
    kinds: Kinds, tmp_path: Path
) -> None:
    task = record("Task", 0, "todo", effort_hours=5, due_date="2030-03-28")
    done = record("Task", 1, "done")
    block = record("TimeBlock", 2, start="2030-03-26T08:00:00Z", end="2030-03-26T11:00:00Z")
    other = record("TimeBlock", 3, start="2030-03-27T08:00:00Z", end="2030-03-27T11:00:00Z")
    free = record("TimeBlock", 4, start="2030-03-26T10:00:00Z", end="2030-03-26T12:00:00Z")
    graph = graph_of(
        [task, done, block, other, free],
        (task, "SCHEDULED_AS", block),
        (done, "SCHEDULED_AS", other),
    )
    event = "BEGIN:VEVENT\nUID:{0}\nDTSTAMP:20260101T000000Z\n{1}\nEND:VEVENT\n"
    (tmp_path / "a.ics").write_text(
        "BEGIN:VCALENDAR\n"
        + event.format(1, "DTSTART:20300326T113000Z\nDTEND:20300326T130000Z")
        + event.format(2, "DTSTART:20300326T120000Z\nDTEND:20300326T123000Z")
        + event.format(3, "DTSTART;VALUE=DATE:20300330")
        + event.format(
            4,
            "DTSTART;TZID=Europe/Berlin:20300331T000000\nDTEND;TZID=Europe/Berlin:20300331T040000",
        )
        + event.format(5, "DTSTART:20300329T220000Z\nDTEND:20300331T020000Z")
        + "END:VCALENDAR\n"
    )
    found = await load(kinds, graph, str(tmp_path), files=["a.ics"], hours=[8, 8, 8, 8, 8, 4, 0])
    hours = [one.calendar_hours for one in found.days]
    assert hours == [0, 5, 0, 0, 1, 4, 3]  # of an hour of the last night there is none
    assert [one.task_hours for one in found.days] == [0, 0, 0, 2, 0, 0, 0]
    assert (found.days[6].utilisation, found.days[6].zone) == (999, "red")
    assert len(found.events) == 5
    without = await workload(
        Reads(graph),
        kinds,
        Calendars(CalendarSettings(), tmp_path),
        start=MONDAY,
        with_calendar=False,
    )
    assert without.calendar_hours == 4
    assert without.events == ()


async def test_what_is_overdue_is_counted_today(kinds: Kinds) -> None:
    late = record("Task", 0, "todo", effort_hours=12, due_date="2026-01-02")
    found = await workload(Reads(graph_of([late])), kinds, Calendars(CalendarSettings(), Path()))
    assert len(found.days) == 7
    assert [one.task_hours for one in found.days] == [12, 0, 0, 0, 0, 0, 0]
    assert (
        found.recommendations[0] == "1 overdue with 12 h are counted today: do, move or drop them"
    )
    assert (await load(kinds, graph_of([late]))).task_hours == 0


async def test_a_calendar_that_cannot_be_read_is_said(kinds: Kinds, tmp_path: Path) -> None:
    found = await load(kinds, graph_of([]), str(tmp_path), files=["gone.ics"])
    assert found.problems == ("gone.ics: cannot be read (No such file or directory)",)
    assert "Not every calendar could be read: events may be missing" in found.recommendations


@pytest.mark.parametrize("days", [0, -1, 367])
async def test_days_are_some_and_not_too_many(kinds: Kinds, days: int) -> None:
    with pytest.raises(InvalidRequest, match="end_date"):
        await load(kinds, graph_of([]), days=days)
