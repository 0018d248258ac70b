"""Named queries over a squad's pool (S3-15): unseen knowledge, concepts to synthesise, tasks."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from datetime import timedelta
from typing import Annotated

from pydantic import Field

from pps.core import time
from pps.core.record_values import Record, RecordGraph
from pps.core.values import JSON
from pps.features.squad.desk import Desk
from pps.features.squad.roots import confidence_of
from pps.features.squad.squad_members import agent_id
from pps.ingest.given_input import Moment, described_time
from pps.memory import Memory
from pps.records.named_query import (
    At,
    Ground,
    Limited,
    QueryAnswer,
    QueryMatch,
    answer,
    found,
    number,
    query,
    text,
)

UNSEEN = "unseen"
SYNTHESES = "syntheses"
HEALTH = "health"
SURE = 0.7
"""Least confidence of records that are worth a look by themselves, in all squads."""


@dataclass(frozen=True, slots=True)
class Stage:
    """Statistics of the tasks of a type; rates are of tasks that ended, None if none did."""

    type: str
    total: int
    success_rate: float | None
    avg_quality: float | None


class Unseen(Limited):
    """Whose eyes."""

    agent: At = Field(description="A member's Agent; you when not given.")
    min_confidence: float = Field(default=SURE, ge=0, le=1, description="Above this confidence.")
    limit: int = Field(default=20, ge=1, le=100, description="Most answers.")


@query(UNSEEN, Unseen, "Agent")
async def unseen(ground: Ground, unseen: Unseen) -> QueryAnswer:
    """What others created and a member has not seen, the latest first."""
    web = ground.web
    me = ground.web.find(unseen.agent, "agent")
    seen = {relation.target for relation in web.out(me.id, "ACCESSED")}
    heard = {relation.target for relation in web.out(me.id, "SUBSCRIBES_TO")}
    rows: list[tuple[Record, QueryMatch]] = []
    for other in web.of_kinds("Agent"):
        for edge in web.out(other.id, "CREATED") if other.id != me.id else ():
            record = web.records[edge.target]
            sure = confidence_of(web.records[edge.target])
            if record.id not in seen and record.kind != "Task" and sure > unseen.min_confidence:
                details: dict[str, JSON] = {
                    "from": other.title,
                    "confidence": sure,
                    "subscribed": other.id in heard,
                }
                sentence = f"From {other.title}: {record.title}"
                rows.append((record, found(record, sentence, score=sure, details=details)))
    rows.sort(key=lambda row: (row[0].created_at, row[0].id), reverse=True)
    return answer(
        UNSEEN,
        f"{len(rows)} records that {me.title} has not seen.",
        [row for _, row in rows],
        unseen.limit,
    )


@query(SYNTHESES, Limited, "Concept")
async def syntheses(ground: Ground, limited: Limited) -> QueryAnswer:
    """Which concepts research discovered and an application challenged, with no synthesis since."""
    web = ground.web
    rows = list[QueryMatch]()
    for concept in web.of_kinds("Concept"):
        research = [web.records[relation.source] for relation in web.into(concept.id, "DISCOVERED")]
        updates = [web.records[relation.source] for relation in web.into(concept.id, "UPDATED")]
        for belief in (
            web.records[edge.source] for edge in web.into(concept.id, "CHALLENGED") if research
        ):
            if all(
                later.created_at <= belief.created_at
                for later in updates
                if later.kind == "Synthesis"
            ):
                sentence = f"{concept.title}: {research[0].title}, but {belief.title}"
                details: dict[str, JSON] = {
                    "type": "refinement",
                    "lessons_learned": text(belief, "lessons_learned"),
                }
                rows.append(
                    found(
                        concept,
                        sentence,
                        details=details | {"findings": text(research[0], "findings")},
                    )
                )
    return answer(SYNTHESES, f"{len(rows)} concepts to synthesise.", rows, limited.limit)


class Days(Limited):
    """How far back."""

    days: int = Field(
        default=7, ge=1, le=365, description="Of tasks that were given in so many days."
    )
    until: Annotated[Moment | None, described_time("Before then; now when not given.")] = None


@query(HEALTH, Days, "Task")
async def health(ground: Ground, days: Days) -> QueryAnswer:
    """How the tasks of each type go: how many, how many of those that ended succeeded, how good the results are."""
    by_type: defaultdict[str, list[Record]] = defaultdict(list)
    until = days.until or time.now()
    for record in ground.web.of_kinds("Task"):
        if until - timedelta(days=days.days) < record.created_at <= until:
            by_type[text(record, "type")].append(record)
    rows: list[QueryMatch] = []
    for name, tasks in sorted(by_type.items()):
        ended = [text(task, "outcome") for task in tasks if text(task, "outcome")]
        qualities = [number(task, "quality_score") for task in tasks]
        scores = [quality for quality in qualities if quality is not None]
        rate = ended.count("success") / len(ended) if ended else None
        stage = Stage(name, len(tasks), rate, sum(scores) / len(scores) if scores else None)
        went = (
            f"{rate:.0%} of {len(ended)} that ended succeeded" if rate is not None else "none ended"
        )
        rows.append(
            QueryMatch(
                "",
                "Task",
                name,
                f"{name}: {len(tasks)} tasks, {went}.",
                score=rate,
                details=asdict(stage),
            )
        )
    return answer(HEALTH, f"{len(rows)} types of tasks in {days.days} days.", rows, days.limit)


POOL_QUERIES = (unseen, syntheses, health)


def stages(answer: QueryAnswer) -> list[Stage]:
    """Return the statistics in an answer of ``health``."""
    return [
        Stage(**match.details)  # pyright: ignore[reportArgumentType] - asdict made them
        for match in answer.found
    ]


async def shown(pool: Memory) -> RecordGraph:
    """Return the pool's records that all members may read, with the pool's confidence in each.

    Records that wait for a reviewer, or were rejected, withdrawn or revoked, are left out.
    """
    graph = await pool.records.graph()
    shared = await pool.records.pool.shared()
    readable: dict[str, Record] = {}
    for id_, record in graph.records.items():
        row = shared.get(id_)
        if row is not None and row.state == "shared":
            readable[id_] = with_confidence(record, row.confidence)
        elif record.kind == "Agent":
            readable[id_] = record
    return replace(graph, records=readable)


def with_confidence(record: Record, confidence: float) -> Record:
    """Return a record of the pool with its confidence after support and opposition."""
    if "confidence" not in record.fields or record.fields["confidence"] == confidence:
        return record
    return replace(record, fields={**record.fields, "confidence": confidence})


async def ask_pool(
    desk: Desk, pool: Memory, name: str, parameters: Mapping[str, JSON]
) -> QueryAnswer:
    """Answer a named query over the records that all members may read.

    Raises:
        InvalidRequest: As in ``Asks.ask``.
    """
    own: dict[str, dict[str, JSON]] = {
        UNSEEN: {"agent": agent_id(desk.squad, desk.me.id)},
        HEALTH: {"until": time.iso(desk.now())},
    }
    asks = replace(pool.asks, queries=POOL_QUERIES)
    return await asks.ask(name, {**own.get(name, {}), **parameters}, within=await shown(pool))
