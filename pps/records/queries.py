"""Named queries over the pack ``constitution`` (S0-10): goals, tasks, decisions, metrics."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Annotated

from pydantic import Field

from pps.core import time
from pps.core.errors import InvalidRequest
from pps.core.record_values import Record, Relation
from pps.core.text import counted
from pps.core.values import JSON
from pps.ingest.given_input import Input, Moment, described_time
from pps.records.named_query import (
    At,
    Ground,
    Limited,
    QueryAnswer,
    QueryMatch,
    QueryStep,
    Web,
    alive,
    answer,
    found,
    number,
    query,
    step,
    strength,
    text,
    way,
)

_LADDER = 5
_SERIES = 100
_WINDOW = timedelta(days=7)
_WEAK = 3
"""Most records that are shown although none is similar enough."""
_MEASURED = timedelta(days=30)
_LEAST = "Least likeness by meaning, with 'about'; the embedder's own threshold when not given."


class OfGoal(Limited):
    """A goal."""

    id: At = Field(description="The goal: id or title.")


@query("strategies", OfGoal, "Strategy")
async def strategies(ground: Ground, request: OfGoal) -> QueryAnswer:
    """Which active strategies a goal has, those for what it rests on too, each with its initiatives.

    Template of S0: ``(strategy)-[:ALIGNS_WITH|SERVES*1..2]->(goal)``, the latest changed first.
    """
    web = ground.web
    goal = of_kind(ground.web, request.id, "Goal")
    ways: dict[str, list[QueryStep]] = {}
    ends = [(goal, list[QueryStep]())]
    for _ in range(2):
        ends = [
            (goal, [step(relation, end, forward=True), *path])
            for end, path in ends
            for relation, goal in _before(web, end, "ALIGNS_WITH", "SERVES")
            if alive(goal)
        ]
        for strategy, path in ends:
            if strategy.kind == "Strategy":
                ways.setdefault(strategy.id, path)
    rows: list[QueryMatch] = []
    for strategy in sorted(
        (web.records[record] for record in ways),
        key=lambda way: (way.updated_at, way.id),
        reverse=True,
    ):
        held = [web.records[it.target] for it in web.out(strategy.id, "SUPPORTED_BY")]
        initiatives = [it for it in held if it.kind == "Initiative" and it.status == "active"]
        rest = (
            f"; it is carried by {_listed(initiatives)}"
            if initiatives
            else "; no active initiative carries it"
        )
        rows.append(
            found(
                strategy,
                way(strategy, ways[strategy.id]) + rest,
                ways[strategy.id],
                details={"initiatives": _brief(initiatives)},
            )
        )
    return answer(
        "strategies", f"{len(rows)} active strategies for “{goal.title}”.", rows, request.limit
    )


class TimeWindow(Limited):
    """A stretch of time, half-open."""

    since: Annotated[Moment | None, described_time("From then on; today when not given.")] = None
    until: Annotated[
        Moment | None, described_time("Before then; seven days later when not given.")
    ] = None
    states: tuple[str, ...] = Field(
        default=("todo", "in_progress"), description="Of the tasks; empty for any."
    )
    limit: int = Field(default=50, ge=1, le=500, description="Most answers.")


@query("tasks", TimeWindow, "Task")
async def tasks(ground: Ground, request: TimeWindow) -> QueryAnswer:
    """Which tasks fall due in a window of time, the earliest first, of one day the most urgent (p0) first."""
    today = datetime.now(ground.zone).replace(hour=0, minute=0, second=0, microsecond=0)
    since = request.since or today
    until = request.until or time.later(since, _WINDOW)
    check_window(since, until)
    rows: list[tuple[datetime, str, QueryMatch]] = []
    for record in ground.web.of_kinds("Task"):
        due = moment(record, "due_date")
        if (
            due
            and time.begins_within(due, since, until)
            and (not request.states or record.state in request.states)
        ):
            urgency = text(record, "priority") or "p9"
            hours = number(record, "effort_hours")
            effort = "" if hours is None else f", {hours:g} h"
            rank = f" ({urgency})" if urgency != "p9" else ""
            sentence = (
                f"“{record.title}”{rank} is due {due.date()}, "
                f"{record.state.replace('_', ' ')}{effort}."
            )
            details: dict[str, JSON] = {
                "due_date": str(due.date()),
                "state": record.state,
                "effort_hours": hours,
            }
            rows.append((due, urgency, found(record, sentence, details=details)))
    rows.sort(key=lambda row: (row[0], row[1], row[2].id))
    hours = sum(float(str(row[2].details["effort_hours"] or 0)) for row in rows)
    sentence = (
        f"{counted(len(rows), 'task')} from {since.date()} up to {until.date()}, {hours:g} h in "
        "all."
    )
    return answer("tasks", sentence, [row[2] for row in rows], request.limit)


class About(Limited):
    """What is talked about."""

    about: str = Field(min_length=1, max_length=8_000, description="What it is about, in words.")
    min_similarity: float | None = Field(default=None, ge=-1, le=1, description=_LEAST)


@query("related_decisions", About, "Decision")
async def related_decisions(ground: Ground, request: About) -> QueryAnswer:
    """Which active decisions, tasks and actions are about what is talked about, the nearest first."""
    near = await ground.similar(request.about, ("Decision", "Task", "Action"), 50)
    nearest = _nearest(ground, near, request.min_similarity)
    rows = [
        found(
            decision,
            f"{nearest.mark}{decision.kind} “{decision.title}”: {decision.summary}",
            score=score,
        )
        for decision, score in nearest.records
    ]
    return answer(
        "related_decisions",
        f"{len(rows)} decisions, tasks and actions are near.{nearest.note}",
        rows,
        request.limit,
    )


class Precedent(Limited):
    """Which decisions, and how well they must have paid."""

    about: str = Field(
        default="",
        max_length=8_000,
        description="What they are about, in words; all when not given.",
    )
    min_similarity: float | None = Field(default=None, ge=-1, le=1, description=_LEAST)
    min_roi: float | None = Field(default=None, description="Least roi.total.")
    since: Annotated[Moment | None, described_time("Only those decided then or later.")] = None


@query("precedent", Precedent, "Decision")
async def precedent(ground: Ground, request: Precedent) -> QueryAnswer:
    """Which earlier decisions are like one that is to be made, with what they paid (roi) and led to; the best first."""
    web = ground.web
    nearest = _Nearest([(record, 0.0) for record in web.of_kinds("Decision")])
    if request.about:
        near = await ground.similar(request.about, ("Decision",), 50)
        nearest = _nearest(ground, near, request.min_similarity)
    rows: list[tuple[float, float, QueryMatch]] = []
    for decision, score in nearest.records:
        roi = number(decision, "roi", "total")
        decided = moment(decision, "decided_at") or decision.created_at
        paid = request.min_roi is None or (roi is not None and roi >= request.min_roi)
        if decision.status != "active" or not paid or (request.since and decided < request.since):
            continue
        led = [web.records[it.target] for it in web.out(decision.id, "LEADS_TO")]
        outcomes = [
            it
            for it in led
            if it.state == "done" or (it.kind == "Metric" and it.status == "active")
        ]
        came = (
            f" and led to {_listed(outcomes)}"
            if outcomes
            else "; nothing is known to have come of it"
        )
        sentence = (
            f"{nearest.mark}“{decision.title}”, decided {decided.date()}, {_paid(roi)}{came}."
        )
        details: dict[str, JSON] = {
            "roi": decision.fields.get("roi"),
            "decided_at": time.iso(decided),
            "outcomes": _brief(outcomes),
        }
        rows.append(
            (
                float("-inf") if roi is None else roi,
                score,
                found(decision, sentence, score=score or None, details=details),
            )
        )
    rows.sort(key=lambda row: (-row[0], -row[1], row[2].id))
    sentence = (
        counted(len(rows), "decision")
        + (f" of roi {request.min_roi:g} or more" if request.min_roi is not None else "")
        + "."
    )
    return answer("precedent", sentence + nearest.note, [row[2] for row in rows], request.limit)


class Measured(Limited):
    """Which metrics, and when they were measured."""

    ids: tuple[At, ...] = Field(
        default=(), max_length=100, description="Metrics: ids or titles; all when not given."
    )
    since: Annotated[
        Moment | None, described_time("From then on; 30 days before 'until' when not given.")
    ] = None
    until: Annotated[Moment | None, described_time("Before then; now when not given.")] = None
    limit: int = Field(default=50, ge=1, le=500, description="Most metrics.")


@query("metrics", Measured, "Metric")
async def metrics(ground: Ground, request: Measured) -> QueryAnswer:
    """How metrics went in a window of time: count, mean, least, most and course of what was observed."""
    web = ground.web
    until = request.until or time.now()
    since = request.since or time.later(until, -_MEASURED)
    check_window(since, until)
    named = [of_kind(web, id_, "Metric", "ids") for id_ in request.ids]
    rows: list[QueryMatch] = []
    for metric in named or sorted(
        web.of_kinds("Metric"), key=lambda of_kind: (of_kind.title, of_kind.id)
    ):
        series = sorted(_measured(web, metric, since, until))
        if not series and not named:
            continue
        rows.append(_course(metric, series))
    return answer(
        "metrics",
        f"{counted(len(rows), 'metric')} from {since.date()} up to {until.date()}.",
        rows,
        request.limit,
    )


class Insights(Limited):
    """Which insights."""

    about: str = Field(
        default="",
        max_length=8_000,
        description="What they are about, in words; all when not given.",
    )
    min_similarity: float | None = Field(default=None, ge=-1, le=1, description=_LEAST)
    min_confidence: float = Field(default=0.6, ge=0, le=1, description="Least confidence.")


@query("insights", Insights, "Insight", "Pattern")
async def insights(ground: Ground, request: Insights) -> QueryAnswer:
    """Which insights and patterns there are, with the evidence for each; the most certain first."""
    web = ground.web
    kinds = ("Insight", "Pattern")
    nearest = _Nearest([(record, 0.0) for record in web.of_kinds(*kinds)])
    if request.about:
        near = await ground.similar(request.about, kinds, 50)
        nearest = _nearest(ground, near, request.min_similarity)
    rows: list[tuple[float, float, QueryMatch]] = []
    for insight, score in nearest.records:
        confidence = number(insight, "confidence")
        if insight.status != "active" or confidence is None or confidence < request.min_confidence:
            continue
        proofs = {it.target: strength(it) for it in web.out(insight.id, "SUPPORTED_BY")}
        proofs |= {it.source: strength(it) for it in web.into(insight.id, "VALIDATES")}
        evidence = [web.records[it] for it in sorted(proofs, key=lambda it: (-proofs[it], it))]
        ground_for = (
            f"rests on {_listed(evidence)}" if evidence else "rests on no evidence that is kept"
        )
        sentence = f"{nearest.mark}“{insight.title}” ({confidence:g} sure) {ground_for}."
        rows.append(
            (
                confidence,
                score,
                found(
                    insight, sentence, score=score or None, details={"evidence": _brief(evidence)}
                ),
            )
        )
    rows.sort(key=lambda row: (-row[0], -row[1], row[2].id))
    return answer(
        "insights",
        f"{len(rows)} insights and patterns.{nearest.note}",
        [row[2] for row in rows],
        request.limit,
    )


class Ladder(Input):
    """A goal."""

    id: At = Field(description="The goal: id or title.")
    max_hops: int = Field(default=_LADDER, ge=1, le=_LADDER, description="Most steps up.")


@query("goal_ladder", Ladder, "Goal")
async def goal_ladder(ground: Ground, request: Ladder) -> QueryAnswer:
    """Which goals and visions a goal serves, rung by rung: the longest way up, of active ones, at most 5 steps."""
    goal = of_kind(ground.web, request.id, "Goal")
    path = max(
        _ladders(ground.web, goal, (goal.id,), request.max_hops),
        key=lambda steps: (
            len(steps),
            sum(1.0 if step.weight is None else step.weight for step in steps),
        ),
    )
    rungs = [found(goal, f"“{goal.title}” is where it begins.")]
    for at, rung in enumerate(path, 1):
        weight = "" if rung.weight is None else f" (weight {rung.weight:g})"
        sentence = f"step {at}: over {rung.relation}{weight} to “{rung.title}” ({rung.kind})."
        rungs.append(found(ground.web.records[rung.id], sentence, path[:at]))
    sentence = way(goal, path) if path else f"“{goal.title}” serves nothing further up."
    return answer("goal_ladder", sentence, rungs, len(rungs))


def of_kind(web: Web, named: str, kind: str, argument: str = "id") -> Record:
    """Return the record that is named; InvalidRequest when it is of another kind."""
    record = web.find(named, argument)
    if record.kind != kind:
        raise InvalidRequest(argument, f"“{record.title}” is of kind {record.kind}; give a {kind}")
    return record


def moment(record: Record, name: str) -> datetime | None:
    """Return a field that is a date or a time; None where it has none."""
    value = text(record, name)
    return time.parse(value, name) if value else None


def check_window(since: datetime, until: datetime) -> None:
    if since >= until:
        raise InvalidRequest("until", "must be later than 'since'")


def _ladders(
    web: Web, at: Record, seen: tuple[str, ...], left: int
) -> Iterator[tuple[QueryStep, ...]]:
    """Yield every way up from a record, the empty one too."""
    yield ()
    if not left:
        return
    for relation in sorted(
        web.out(at.id, "SUPPORTED_BY", "SERVES", "ALIGNS_WITH"), key=lambda relation: relation.id
    ):
        up = web.records[relation.target]
        if up.kind in ("Goal", "Vision") and up.status == "active" and up.id not in seen:
            for rest in _ladders(web, up, (*seen, up.id), left - 1):
                yield (step(relation, up, forward=True), *rest)


def _before(web: Web, end: Record, *names: str) -> Iterator[tuple[Relation, Record]]:
    for relation in web.into(end.id, *names):
        yield relation, web.records[relation.source]


@dataclass(frozen=True, slots=True)
class _Nearest:
    """Live records by similarity, the nearest first; ``note`` says what to think of weak ones."""

    records: Sequence[tuple[Record, float]]
    note: str = ""
    mark: str = ""


def _nearest(ground: Ground, near: Mapping[str, float], least: float | None) -> _Nearest:
    """Return the live records that are similar enough.

    If there are none, return the best three, marked as weak, unless the caller gave ``least``.
    """
    records = ground.web.records
    live = [
        (records[id_], score)
        for id_, score in near.items()
        if id_ in records and alive(records[id_])
    ]
    live.sort(key=lambda row: (-row[1], row[0].id))
    threshold = ground.least if least is None else least
    enough = [row for row in live if row[1] >= threshold]
    if enough or not live:
        return _Nearest(enough)
    best = f"The nearest is {live[0][1]:.2f} alike, below min_similarity {threshold:.2f}"
    if least is not None:
        return _Nearest((), f" {best}.")
    return _Nearest(live[:_WEAK], f" {best}: those shown are weak.", "(weak) ")


def _measured(
    web: Web, metric: Record, since: datetime, until: datetime
) -> Iterator[tuple[datetime, float]]:
    for relation in web.into(metric.id, "TRACKS"):
        record = web.records[relation.source]
        at = moment(record, "observed_at") or record.created_at
        value = number(record, "value")
        if value is not None and since <= at < until:
            yield at, value


def _course(metric: Record, series: list[tuple[datetime, float]]) -> QueryMatch:
    unit = text(metric, "unit")
    wanted = text(metric, "direction")
    if not series:
        return found(
            metric,
            f"“{metric.title}” was not observed in that time.",
            details={"count": 0, "unit": unit},
        )
    values = [value for _, value in series]
    change = values[-1] - values[0]
    mean = sum(values) / len(values)
    went = "up" if change > 0 else "down" if change < 0 else "stable"
    as_wanted = "" if not wanted else ", as wanted" if went == wanted else f", wanted {wanted}"
    sentence = (
        f"“{metric.title}”: {len(values)} observations, mean {mean:g} {unit}, {min(values):g} to "
        f"{max(values):g}; "
        f"{values[0]:g} → {values[-1]:g}, {went}{as_wanted}."
    )
    recent: list[JSON] = [[time.iso(at), value] for at, value in series[-_SERIES:]]
    details: dict[str, JSON] = {
        "count": len(values),
        "mean": mean,
        "min": min(values),
        "max": max(values),
    }
    details |= {
        "first": values[0],
        "last": values[-1],
        "unit": unit,
        "direction": went,
        "series": recent,
    }
    return found(metric, sentence, details=details)


def _paid(roi: float | None) -> str:
    return "roi unknown" if roi is None else f"paid {roi:g}"


def _listed(records: list[Record]) -> str:
    return ", ".join(f"“{record.title}”" for record in records)


def _brief(records: list[Record]) -> list[JSON]:
    return [
        {
            "id": record.id,
            "kind": record.kind,
            "title": record.title,
            "status": record.status,
            "state": record.state,
        }
        for record in records
    ]


NAMED = (strategies, tasks, related_decisions, precedent, metrics, insights, goal_ladder)
