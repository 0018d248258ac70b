"""An entity's journal for the entity itself: its turns, their results, and its jobs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Literal

from pydantic import Field, StringConstraints

from pps.core.errors import InvalidRequest
from pps.core.recalled import Successor
from pps.core.reports import JobReport
from pps.core.text import counted, one_line
from pps.core.values import Skipped
from pps.ingest.given_input import Moment, Name, described_time
from pps.journal.entries import JobState
from pps.journal.turns import SessionTurns
from pps.memory import Memory
from pps.operations.inputs import Input, Label, argument, option
from pps.operations.item_views import (
    FactView,
    Later,
    TurnView,
    fact_view,
    later_view,
    model_time,
    moment_text,
    turn_view,
)
from pps.operations.pages import (
    EMPTY,
    FOLLOWING,
    PAGE_CHARACTERS,
    as_json,
    fitting,
    json_size,
    with_next_page,
)
from pps.operations.table import READS, SETS, UPKEEP, ModelView
from pps.recall.explore import SaidTurn

_MOST_SHOWN = 2_000
_LINE = 200
_FACTS_SHOWN = 3
_SESSIONS_SHOWN = 20
"""Bounds for a model: characters of a turn and of a line, facts of a turn, sessions."""


class TurnsInput(Input):
    """Which turns."""

    session: Label | None = Field(default=None, description="Only those of this conversation.")
    query: Annotated[str, StringConstraints(max_length=400)] = Field(
        default="",
        description=("Only turns that contain each of these words, in any case; at most 20 words."),
        json_schema_extra=argument(rest=True),
    )
    near: Annotated[str, StringConstraints(max_length=64)] = Field(
        default="",
        description=(
            "Id of a turn: returns it with the turns right before and after it. Not "
            "together with the other filters."
        ),
    )
    about: Name | None = Field(
        default=None,
        description="Id or name of a node: only turns that mention it.",
        json_schema_extra=option("--about"),
    )
    since: Annotated[Moment | None, described_time("Nothing before.")] = None
    until: Annotated[Moment | None, described_time("Nothing at or after.")] = None
    cursor: Annotated[str, StringConstraints(max_length=100)] = Field(
        default="", description="'next_cursor' of the page before."
    )
    limit: int = Field(default=50, ge=1, le=200, description="Maximum turns on a page.")


class JobsInput(Input):
    """Which jobs to list."""

    state: JobState | None = Field(
        default=None,
        description=(
            "queued, running, done, failed or dropped. Default: unfinished and failed jobs."
        ),
    )
    after: int = Field(default=0, ge=0, le=1 << 60, description="Only jobs with a greater number.")
    limit: int = Field(default=100, ge=1, le=1_000, description="Maximum jobs.")


class ChosenInput(Input):
    """Which jobs: the ones named, or all that failed."""

    ids: tuple[Annotated[int, Field(ge=1)], ...] = Field(
        default=(), max_length=1_000, description="Numbers of jobs.", json_schema_extra=argument()
    )
    all: bool = Field(default=False, description="Every job that failed.")

    def chosen(self) -> list[int] | None:
        """Return the numbers; None stands for all, and has to be asked for as such."""
        if self.all == bool(self.ids):
            raise InvalidRequest(
                "ids", "must be numbers of jobs, 1 or more; or say all=true, and not both"
            )
        return None if self.all else list(self.ids)


@dataclass(frozen=True, slots=True)
class ListedTurn:
    """A turn with what was made of it: ``facts`` are the first 20 of ``facts_total``, ``record`` is a node's id.

    ``skipped`` is what was left out of what was given with it or found in it, and why.

    ``turn.content`` is at most 2,000 characters, and ``cut`` tells where it was longer: ``get`` has
    the whole. ``cursor`` continues the list after this turn.
    """

    turn: TurnView
    state: str
    facts_total: int
    facts: tuple[FactView, ...]
    cut: bool = False
    job: int | None = None
    error: str | None = None
    record: str | None = None
    skipped: tuple[Skipped, ...] = ()
    cursor: str = ""


@dataclass(frozen=True, slots=True)
class Turns:
    """A page of turns, the newest first; ``sessions`` are the latest 200, on the first page."""

    turns: tuple[ListedTurn, ...]
    sessions: tuple[SessionTurns, ...]
    next_cursor: str | None = None


@dataclass(frozen=True, slots=True)
class JobPage:
    """Jobs, oldest first; ``next`` is the last one's number when there may be more."""

    jobs: tuple[JobReport, ...]
    next: int | None = None


def turns_words(value: Turns, *, facts: int = 0) -> str:
    """Return a line a turn, with its first ``facts`` facts below it; then the sessions."""
    lines: list[str] = []
    for turn in value.turns:
        lines.append(
            f"{moment_text(turn.turn.occurred_at)} {turn.turn.actor or turn.turn.role} "
            f"({turn.turn.session}): {one_line(turn.turn.content, _LINE)} [{turn.turn.id}] "
            f"{turn.state}, {counted(turn.facts_total, 'fact')}"
            + (f", {len(turn.skipped)} left out" if turn.skipped else "")
            + (f"; {turn.turn.superseded_by.mark()}" if turn.turn.superseded_by else "")
        )
        lines += [f"  {one_line(fact.text, _LINE)} [{fact.id}]" for fact in turn.facts[:facts]]
    lines += [
        f"session {session.session}: {counted(session.turns, 'turn')}, last "
        f"{moment_text(session.last_at)}"
        for session in value.sessions
    ]
    return "\n".join(lines or [EMPTY["turns_list"]])


@dataclass(frozen=True, slots=True)
class SaidLine:
    """The beginning of a turn, at most 200 characters of it: ``get`` has the whole."""

    content: str
    id: str
    session: str
    occurred_at: str
    role: str | None = None
    actor: str | None = None
    superseded_by: Later | None = None


@dataclass(frozen=True, slots=True)
class FactSentence:
    """The beginning of a fact's sentence, at most 200 characters of it."""

    text: str
    id: str


@dataclass(frozen=True, slots=True)
class ListedLine:
    """A turn in a line, with the first three of its facts."""

    turn: SaidLine
    state: str
    facts_total: int
    facts: tuple[FactSentence, ...] | None = None
    cut: Literal[True] | None = None
    job: int | None = None
    error: str | None = None
    record: str | None = None
    left_out: int | None = None


@dataclass(frozen=True, slots=True)
class TurnLines:
    """A page of turns, the newest first.

    ``sessions`` are the latest 20 of ``sessions_total``, on the first page.
    """

    turns: tuple[ListedLine, ...]
    sessions: tuple[SessionTurns, ...] | None = None
    sessions_total: int | None = None
    next_cursor: str | None = None


def turns_for_model(value: Turns, _: Input) -> ModelView:
    """Return lines of as many turns as have room, with their results, and the next cursor."""
    sessions = value.sessions[:_SESSIONS_SHOWN]
    lines = tuple(map(_listed_line, value.turns))
    room = (
        PAGE_CHARACTERS - FOLLOWING - sum(json_size(as_json(session)) + 2 for session in sessions)
    )
    count = fitting((json_size(as_json(line)) for line in lines), room)
    next_cursor = value.next_cursor if count == len(lines) else value.turns[count - 1].cursor
    total = len(value.sessions) if len(value.sessions) > len(sessions) else None
    page = replace(value, turns=value.turns[:count], sessions=sessions, next_cursor=next_cursor)
    text = turns_words(page, facts=_FACTS_SHOWN)
    if total:
        text += f"\n… and {total - len(sessions)} more sessions"
    data = TurnLines(lines[:count], sessions or None, total, next_cursor)
    return ModelView(data, with_next_page(text, next_cursor))


def _listed_line(listed_turn: ListedTurn) -> ListedLine:
    turn = listed_turn.turn
    content = one_line(turn.content, _LINE)
    said_line = SaidLine(
        content=content,
        id=turn.id,
        session=turn.session,
        occurred_at=model_time(turn.occurred_at) or "",
        role=None if turn.actor else turn.role,
        actor=turn.actor,
        superseded_by=later_view(turn.superseded_by),
    )
    facts = tuple(
        FactSentence(one_line(fact.text, _LINE), fact.id)
        for fact in listed_turn.facts[:_FACTS_SHOWN]
    )
    return ListedLine(
        said_line,
        listed_turn.state,
        listed_turn.facts_total,
        facts or None,
        cut=True if listed_turn.cut or content.endswith("…") else None,
        job=listed_turn.job,
        error=one_line(listed_turn.error, _LINE) if listed_turn.error else None,
        record=listed_turn.record,
        left_out=len(listed_turn.skipped) or None,
    )


def jobs_words(value: JobPage) -> str:
    lines = [
        f"{job.id:>7} {job.state:<8} {job.stage:<5} tried {job.attempts}  {job.text}"
        f"{f'  ({job.error})' if job.error else ''}"
        for job in value.jobs
    ]
    return "\n".join(lines or [EMPTY["jobs_list"]])


def retried_words(retried: Sequence[int]) -> str:
    return f"{len(retried)} retried."


@UPKEEP.operation(
    "List what was said",
    turns_words,
    READS,
    command="turns",
    examples=("pps turns ana", "pps turns ana tide pier", "pps turns ana --near 1b4e28ba"),
    for_model=turns_for_model,
)
async def turns_list(memory: Memory, request: TurnsInput) -> Turns:
    """Use it to list what was said, newest first: all, with some words, or around a turn.

    To answer a question use {recall}. Returns turns, each with the state of its job, its facts and
    its record, the sessions, and a cursor for the next page.
    """
    page = await memory.graph.said(
        request.session,
        query=request.query,
        near=request.near,
        about=request.about or "",
        since=request.since,
        until=request.until,
        cursor=request.cursor,
        limit=request.limit,
    )
    listed = tuple(_listed(turn, page.successors) for turn in page.turns)
    return Turns(listed, page.sessions, page.next_cursor or None)


def jobs_for_model(value: JobPage, _: Input) -> ModelView:
    """Return as many jobs as have room, and the number of the last where more follow."""
    count = fitting(json_size(as_json(job)) for job in value.jobs)
    if count < len(value.jobs):
        value = JobPage(value.jobs[:count], value.jobs[count - 1].id)
    more = f"\nMore: after={value.next}" if value.next else ""
    return ModelView(value, jobs_words(value) + more)


@UPKEEP.operation("List this memory's jobs", jobs_words, READS, for_model=jobs_for_model)
async def jobs_list(memory: Memory, request: JobsInput) -> JobPage:
    """Use it to see which texts wait to be added to graph and indexes, which failed, and why.

    Returns jobs, oldest first: number, state, attempts, the text's beginning, and the error. It
    answers a page at a time: pass 'next' as {after} for the next.
    """
    jobs = await memory.jobs.list(request.state, after=request.after, limit=request.limit)
    return JobPage(tuple(jobs), jobs[-1].id if len(jobs) == request.limit else None)


@UPKEEP.operation("Try this memory's jobs again", retried_words, SETS, items="retried")
async def jobs_retry(memory: Memory, request: ChosenInput) -> tuple[int, ...]:
    """Use it when the cause of failed jobs is fixed.

    It queues the named jobs, or all that failed. Nothing is stored twice. Returns the numbers of
    the queued jobs.
    """
    return tuple(await memory.jobs.retry(request.chosen()))


def _listed(turn: SaidTurn, successors: Mapping[str, Successor]) -> ListedTurn:
    made = turn.outcome
    return ListedTurn(
        turn=turn_view(turn.turn, _MOST_SHOWN, successors.get(turn.turn.uuid)),
        state=made.state if made else "done",
        facts_total=turn.total,
        facts=tuple(fact_view(fact, {}, successors.get(fact.uuid)) for fact in turn.facts),
        cut=len(turn.turn.content) > _MOST_SHOWN,
        job=made.job if made else None,
        error=(made.error or None) if made else None,
        record=(made.record or None) if made else None,
        skipped=made.skipped if made else (),
        cursor=turn.cursor,
    )
