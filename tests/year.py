"""A person's year in the pack ``constitution``, made by hand, and records and relations as values for tests."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta

from pps.config.packs import shipped_pack
from pps.core.kinds import Kinds
from pps.core.record_values import (
    Cite,
    Record,
    RecordGraph,
    RecordPage,
    RecordQuery,
    Relation,
    Transition,
)
from pps.core.values import JSON, Fact, Matrix
from pps.records.named_query import Ground, QueryAnswer, Web

WHEN = datetime(2026, 3, 1, 9, tzinfo=UTC)
CONSTITUTION = Kinds([shipped_pack("constitution")])


def record(name: str, kind: str, title: str = "", **more: object) -> Record:
    """Return a record; keywords that are no attributes of one are its fields."""
    known = {one: more.pop(one) for one in list(more) if one in Record.__slots__}
    given: dict[str, object] = {
        "summary": f"{title or name}.",
        "created_at": WHEN,
        "updated_at": WHEN,
        **known,
    }
    fields: dict[str, JSON] = dict(more.items())  # type: ignore[misc]
    return Record(id=name, kind=kind, title=title or name, fields=fields, **given)  # type: ignore[arg-type]


def relation(source: str, type_: str, target: str, weight: float | None = None) -> Relation:
    properties: Mapping[str, JSON] = {} if weight is None else {"weight": weight}
    return Relation(f"{source} {type_} {target}", source, type_, target, WHEN, properties)


def graph(records: Sequence[Record], relations: Sequence[Relation], stamp: int = 1) -> RecordGraph:
    return RecordGraph({one.id: one for one in records}, tuple(relations), stamp)


@dataclass
class Shelf:
    """Records in a test's hand, read as the journal's are."""

    now: RecordGraph
    before: Mapping[str, Sequence[Record]] = field(default_factory=dict[str, Sequence[Record]])

    async def list(self, query: RecordQuery) -> RecordPage:
        raise NotImplementedError

    async def get(self, ids: Sequence[str]) -> Sequence[Record]:
        return [self.now.records[one] for one in ids]

    async def graph(self) -> RecordGraph:
        return self.now

    async def cites(self, ids: Sequence[str]) -> dict[str, tuple[Cite, ...]]:
        return {}

    async def transitions(self, record: str) -> Sequence[Transition]:
        return []

    async def versions(self, record: str) -> Sequence[Record]:
        return [*self.before.get(record, ()), self.now.records[record]]


Ask = Callable[..., Awaitable[QueryAnswer]]


def ground(
    shelf: Shelf,
    kinds: Kinds = CONSTITUTION,
    near: Mapping[str, float] | None = None,
    vectors: Matrix | None = None,
    facts: Sequence[Fact] = (),
) -> Ground:
    """Return what queries read of a shelf; ``near`` is what is like any text, ``vectors`` what any texts embed to."""

    async def similar(text: str, kinds: Sequence[str], limit: int) -> Mapping[str, float]:
        return {
            one: score
            for one, score in (near or {}).items()
            if shelf.now.records[one].kind in kinds
        }

    async def embed(texts: Sequence[str]) -> Matrix | None:
        return vectors

    async def held() -> Sequence[Fact]:
        return facts

    return Ground(Web(shelf.now), kinds, shelf, similar, embed, held)


def year() -> RecordGraph:
    """Return values, a vision, goals, strategies, projects, tasks, decisions, metrics, insights and their relations."""
    records = [
        record("honesty", "Value", "Honesty"),
        record("learning", "Value", "Learning"),
        record("candour", "Principle", "Say what is so", statement="Say what is so"),
        record("harbour", "Vision", "A house by the harbour"),
        record("savings", "Goal", "Save for the house", deadline="2026-12-31", horizon="year"),
        record("spend", "Goal", "Spend less", horizon="year"),
        record("old", "Goal", "Win the lottery", status="archived"),
        record("thesis", "Goal", "Finish the thesis", deadline="2026-06-30"),
        record("writing", "Strategy", "Write each morning", updated_at=WHEN + timedelta(days=2)),
        record("leave", "Strategy", "Take leave in May", updated_at=WHEN + timedelta(days=1)),
        record("dropped", "Strategy", "Write by night", status="archived"),
        record("mornings", "Initiative", "Mornings"),
        record("book", "Project", "The thesis as a book"),
        record(
            "chapter",
            "Task",
            "Write chapter two",
            state="todo",
            priority="p1",
            effort_hours=6,
            due_date="2026-03-03",
        ),
        record(
            "figures",
            "Task",
            "Draw the figures",
            state="todo",
            priority="p0",
            effort_hours=2,
            due_date="2026-03-03",
        ),
        record("proofs", "Task", "Read the proofs", state="in_progress", due_date="2026-03-02"),
        record("bill", "Task", "Pay the bill", state="done", due_date="2026-03-02"),
        record("later", "Task", "Hand it in", state="todo", due_date="2026-03-08"),
        record(
            "desk", "Decision", "Rent a desk", roi={"total": 0.7}, decided_at="2026-01-10T09:00:00Z"
        ),
        record(
            "car", "Decision", "Buy a car", roi={"total": -0.4}, decided_at="2026-02-10T09:00:00Z"
        ),
        record(
            "bike",
            "Decision",
            "Buy a bicycle",
            roi={"total": 0.9},
            decided_at="2025-02-10T09:00:00Z",
        ),
        record("open", "Decision", "Move in June"),
        record("pages", "Metric", "Pages written", unit="pages", direction="up"),
        record("day1", "Observation", "Day one", observed_at="2026-02-20T20:00:00Z", value=2),
        record("day2", "Observation", "Day two", observed_at="2026-02-21T20:00:00Z", value=6),
        record("day9", "Observation", "Long ago", observed_at="2025-02-21T20:00:00Z", value=100),
        record("early", "Insight", "Mornings are for writing", confidence=0.9),
        record("guess", "Insight", "Tea helps", confidence=0.3),
        record("log", "Evidence", "The log of pages"),
        record("diary", "Evidence", "The diary"),
    ]
    relations = [
        relation("honesty", "SUPPORTED_BY", "candour", 0.8),
        relation("savings", "SERVES", "harbour"),
        relation("spend", "SUPPORTED_BY", "savings", 0.5),
        relation("thesis", "ALIGNS_WITH", "learning", 0.8),
        relation("thesis", "SUPPORTED_BY", "old", 1.0),
        relation("writing", "SERVES", "thesis", 0.9),
        relation("leave", "ALIGNS_WITH", "thesis"),
        relation("dropped", "SERVES", "thesis", 0.2),
        relation("writing", "SUPPORTED_BY", "mornings"),
        relation("book", "DELIVERS", "writing"),
        relation("book", "HAS_TASK", "chapter"),
        relation("book", "HAS_TASK", "figures"),
        relation("chapter", "SERVES", "thesis"),
        relation("desk", "SERVES", "thesis"),
        relation("desk", "LEADS_TO", "bill"),
        relation("desk", "LEADS_TO", "later"),
        relation("bike", "LEADS_TO", "pages"),
        relation("day1", "TRACKS", "pages"),
        relation("day2", "TRACKS", "pages"),
        relation("day9", "TRACKS", "pages"),
        relation("log", "VALIDATES", "early"),
        relation("early", "SUPPORTED_BY", "diary"),
        relation("early", "APPLIED_TO", "thesis"),
    ]
    return graph(records, relations)


def changed(one: Record, **more: object) -> Record:
    """Return a record with some of its attributes and fields changed."""
    known = {name: more.pop(name) for name in list(more) if name in Record.__slots__}
    return replace(one, fields={**one.fields, **more}, **known)  # type: ignore[arg-type, dict-item]
