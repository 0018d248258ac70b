"""Named queries: their parameters, the data that they read, and their answers."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, tzinfo
from typing import Annotated, Any, Literal, TypeAlias, cast

from pydantic import Field, StringConstraints, ValidationError

from pps.config import problems
from pps.core import time
from pps.core.argument_reading import read_arguments
from pps.core.errors import InvalidRequest, NotFound
from pps.core.ids import is_uuid
from pps.core.json_shapes import shape_of
from pps.core.kinds import Kinds
from pps.core.record_values import Record, RecordGraph, Relation
from pps.core.text import fold
from pps.core.values import JSON, Fact, Matrix
from pps.ingest.given_input import ZONE, Input
from pps.records.records import Records

LIVE = ("draft", "active")
"""Statuses of records that count: archived and deprecated ones neither give nor get support."""
Outcome: TypeAlias = Literal["good", "bad"]
LEAST = 0.7
"""Likeness that is enough where config/floor.toml has no threshold of the model."""
_SHORT_ID = 8


@dataclass(frozen=True, slots=True)
class QueryStep:
    """One relation gone over.

    Attributes:
        forward: It points to the record that is reached; else it was gone over from its end to its
            beginning.
        id, kind, title: Of the record that is reached.
        weight: Its ``weight`` or ``strength``; None where it has none, which counts as 1.
    """

    relation: str
    forward: bool
    id: str
    kind: str
    title: str
    weight: float | None = None


@dataclass(frozen=True, slots=True)
class QueryMatch:
    """A record that answers.

    Attributes:
        said: A sentence on why it is here, for a model or a person.
        path: The way from the record that was asked about.
        details: Figures and texts by name, as JSON.
    """

    id: str
    kind: str
    title: str
    said: str
    path: tuple[QueryStep, ...] = ()
    score: float | None = None
    details: Mapping[str, JSON] = field(default_factory=dict[str, JSON])


@dataclass(frozen=True, slots=True)
class QueryAnswer:
    """The answer of a named query.

    Attributes:
        said: A summary in one sentence.
        total: Number of matches before the limit.
    """

    query: str
    said: str
    found: tuple[QueryMatch, ...]
    total: int


class Web:
    """Records and their relations by their ends."""

    def __init__(self, graph: RecordGraph) -> None:
        self.graph = graph
        self.records: Mapping[str, Record] = graph.records
        self._out: dict[str, list[Relation]] = defaultdict(list)
        self._into: dict[str, list[Relation]] = defaultdict(list)
        for relation in graph.relations:
            if relation.source in graph.records and relation.target in graph.records:
                self._out[relation.source].append(relation)
                self._into[relation.target].append(relation)
        self._titles: dict[str, list[str]] = defaultdict(list)
        for record in graph.records.values():
            self._titles[fold(record.title)].append(record.id)

    def out(self, record: str, *names: str) -> list[Relation]:
        """Return the relations that begin at a record, of some names or of any."""
        return [
            relation
            for relation in self._out.get(record, ())
            if not names or relation.type in names
        ]

    def into(self, record: str, *names: str) -> list[Relation]:
        """Return the relations that end at a record, of some names or of any."""
        return [
            relation
            for relation in self._into.get(record, ())
            if not names or relation.type in names
        ]

    def steps(self, record: str) -> list[tuple[Relation, Record, bool]]:
        """Return each relation of a record with the other end, and whether it points there."""
        ahead = [(relation, self.records[relation.target], True) for relation in self.out(record)]
        return ahead + [
            (relation, self.records[relation.source], False) for relation in self.into(record)
        ]

    def of_kinds(self, *kinds: str, live: bool = True) -> list[Record]:
        """Return the records of some kinds (of none given: all), by id."""
        return sorted(
            (
                record
                for record in self.records.values()
                if (not kinds or record.kind in kinds) and (not live or alive(record))
            ),
            key=lambda record: record.id,
        )

    def find(self, named: str, argument: str = "id") -> Record:
        """Return the record of an id, of its first 8 or more characters, or of a title.

        Raises:
            NotFound: There is none here; a foreign one reads the same.
            InvalidRequest: The title or the beginning is that of several.
        """
        if named in self.records:
            return self.records[named]
        ids = [] if is_uuid(named) else self._titles.get(fold(named), [])
        if not ids and len(named) >= _SHORT_ID and not is_uuid(named):
            ids = [record for record in self.records if record.startswith(named)]
        if len(ids) > 1:
            raise InvalidRequest(argument, f"{len(ids)} records are called so; give the id of one")
        if not ids:
            raise NotFound(argument)
        return self.records[ids[0]]


@dataclass(frozen=True, slots=True)
class Ground:
    """What queries read of one entity.

    Attributes:
        similar: A text, kinds, a limit → record → likeness by meaning, 0 to 1.
        embed: Texts → one unit vector each; None where no model is set.
        facts: The facts that hold, so many at most.
        least: Likeness from which a record has to do with a text, of the model that is set.
        zone: The entity's: whose "today" it is, and of times without one.
    """

    web: Web
    kinds: Kinds
    reads: Records
    similar: Callable[[str, Sequence[str], int], Awaitable[Mapping[str, float]]]
    embed: Callable[[Sequence[str]], Awaitable[Matrix | None]]
    facts: Callable[[], Awaitable[Sequence[Fact]]]
    least: float = LEAST
    zone: tzinfo = UTC


At = Annotated[str, StringConstraints(min_length=1, max_length=500)]
"""A record: its id, the first 8 characters of it, or its title."""


class Limited(Input):
    """How many answers."""

    limit: int = Field(default=10, ge=1, le=100, description="Most answers.")


@dataclass(frozen=True, slots=True)
class Query:
    """A named query.

    Attributes:
        about: What it answers, in a line.
        given: Its parameters.
        kinds: It is about these, so an entity must have one of them; empty for any entity.
    """

    name: str
    about: str
    given: type[Input]
    kinds: tuple[str, ...]
    act: Callable[[Ground, Any], Awaitable[QueryAnswer]]

    async def ask(self, ground: Ground, parameters: Mapping[str, JSON]) -> QueryAnswer:
        """Answer the query.

        Raises:
            InvalidRequest: A parameter is wrong, or the entity lacks the kinds; both are named.
        """
        if self.kinds and not any(kind in ground.kinds for kind in self.kinds):
            named = " and ".join(self.kinds)
            raise InvalidRequest(
                "query",
                f"{self.name!r} is about {named}; no pack of this memory has them: `pps pack "
                "enable` adds one",
            )
        request = self.read(parameters, ground.zone)
        times = {
            name: time.in_zone(value, ground.zone, name)
            for name, value in request
            if isinstance(value, datetime)
        }
        return await self.act(ground, request.model_copy(update=times))

    def read(self, parameters: Mapping[str, JSON], zone: tzinfo) -> Input:
        """Return the checked parameters; times without a zone are in ``zone``.

        Raises:
            InvalidRequest: A parameter is wrong; it is named.
        """
        try:
            arguments = read_arguments(parameters, shape_of(self.given))
            return self.given.model_validate_json(json.dumps(arguments), context={ZONE: zone})
        except ValidationError as error:
            mistakes = problems(error, self.given)
            sentence = "; ".join(mistake.text for mistake in mistakes)
            known = ", ".join(self.given.model_fields)
            raise InvalidRequest("parameters", f"{sentence}; {self.name!r} takes {known}") from None


def query(
    name: str, given: type[Input], *kinds: str
) -> Callable[[Callable[[Ground, Any], Awaitable[QueryAnswer]]], Query]:
    """Return a decorator that makes a function a query.

    The first line of its docstring says what it answers.
    """

    def made(act: Callable[[Ground, Any], Awaitable[QueryAnswer]]) -> Query:
        return Query(name, (act.__doc__ or "").strip().splitlines()[0], given, kinds, act)

    return made


def strength(relation: Relation) -> float:
    """Return how strong a relation is, 0 to 1: its ``weight``, else its ``strength``, else 1."""
    weight = weight_of(relation)
    return 1.0 if weight is None else weight


def weight_of(relation: Relation) -> float | None:
    for name in ("weight", "strength"):
        value = relation.properties.get(name)
        if isinstance(value, int | float):
            return min(max(float(value), 0.0), 1.0)
    return None


def alive(record: Record) -> bool:
    return record.status in LIVE


def step(relation: Relation, reached: Record, *, forward: bool) -> QueryStep:
    return QueryStep(
        relation.type, forward, reached.id, reached.kind, reached.title, weight_of(relation)
    )


def found(
    record: Record,
    sentence: str,
    path: Iterable[QueryStep] = (),
    score: float | None = None,
    details: Mapping[str, JSON] | None = None,
) -> QueryMatch:
    """Return a record as an answer; a score is rounded to what a reader can use."""
    rounded = None if score is None else round(score, 4)
    return QueryMatch(
        record.id, record.kind, record.title, sentence, tuple(path), rounded, details or {}
    )


def answer(name: str, sentence: str, ranked: Sequence[QueryMatch], limit: int) -> QueryAnswer:
    return QueryAnswer(name, sentence, tuple(ranked[:limit]), len(ranked))


def way(start: Record, path: Sequence[QueryStep]) -> str:
    """Return a path as text: “Write” (Task) —SERVES→ “Finish” (Goal) —ALIGNS_WITH 0.8→ …."""
    return path_words(start.title, start.kind, path)


def path_words(title: str, kind: str, path: Sequence[QueryStep]) -> str:
    """Return a path from a record of a title and kind as text; as ``way``."""
    parts = [f"“{title}” ({kind})"]
    for step in path:
        weight = "" if step.weight is None else f" {step.weight:g}"
        arrow = f"—{step.relation}{weight}→" if step.forward else f"←{step.relation}{weight}—"
        parts.append(f"{arrow} “{step.title}” ({step.kind})")
    return " ".join(parts)


def number(record: Record, name: str, *within: str) -> float | None:
    """Return a field that is a number, or one within a field that is JSON."""
    value: Any = record.fields.get(name)
    for key in within:
        value = cast("Mapping[str, Any]", value).get(key) if isinstance(value, Mapping) else None
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


def text(record: Record, name: str) -> str:
    value = record.fields.get(name)
    return value if isinstance(value, str) else ""


def outcome(record: Record, at: datetime | None = None) -> Outcome | None:
    """Return how a record turned out; None while that is open.

    A goal by its completion (one whose deadline passed by ``at`` without any failed), a decision by
    its roi, a task when it is done.
    """
    if record.kind == "Goal":
        ends: dict[str, Outcome] = {"successfully_completed": "good", "abandoned": "bad"}
        status = text(record, "completion_status")
        deadline = text(record, "deadline")
        if status or not deadline or at is None:
            return ends.get(status)
        due = time.parse(deadline)
        if time.precision_of(due) in ("month", "year"):
            due = time.interval(due)[1]
        return "bad" if due < at else None
    if record.kind == "Decision":
        paid = number(record, "roi", "total")
        return None if not paid else "good" if paid > 0 else "bad"
    return "good" if record.kind == "Task" and record.state == "done" else None
