"""What the journal takes and gives: drafts, jobs, changes and filters, and their JSON."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal, TypeAlias, cast

import orjson

from pps.core.time import iso, parse
from pps.core.values import JSON, Chunk, FactDraft, FactKind, ItemKind, NodeDraft, RecordDraft, Skipped, Turn

Extraction: TypeAlias = Literal["given", "rules", "command", "model", "none"]
JobState: TypeAlias = Literal["queued", "running", "done", "failed", "dropped"]
_ATTRIBUTES = '"attributes":{"'
Stage: TypeAlias = Literal["save", "read"]
"""What a job waits for: its turn is saved with what was given; a model reads what is saved."""


@dataclass(frozen=True, slots=True)
class TurnDraft:
    """A message as it arrives; bounds are checked by ``turns.prepare``.

    Attributes:
        content: 1 to 65,536 characters, not only white space; stored in NFC, line breaks kept.
        role: ``user``, ``assistant``, ``system`` or ``tool``.
        source_ref: The message's own id at its source; empty when it has none.
        occurred_at: Event time, aware; None is the moment of receipt.
        chunk: Which part of a document it is; its path has 1 to 1,000 characters.
        title: A title that was given with it: equal texts under two titles are two. Not stored with the turn.
    """

    content: str
    role: str = "user"
    actor: str = ""
    session: str = "default"
    source: str = "api"
    source_ref: str = ""
    occurred_at: datetime | None = None
    kind: str = "turn"
    tags: tuple[str, ...] = ()
    chunk: Chunk | None = None
    title: str = ""


@dataclass(frozen=True, slots=True)
class Reading:
    """What a command found in a turn, and why it left some of its answer out, a reason each."""

    nodes: tuple[NodeDraft, ...] = ()
    facts: tuple[FactDraft, ...] = ()
    dropped: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class JobPayload:
    """What the write path still has to do with a turn, as the caller gave it.

    Attributes:
        record: Set when the turn is the source of a record.
        links: The titles that its text links to.
        read: Set once a command has read the turn; it counts like what was given.
    """

    nodes: tuple[NodeDraft, ...] = ()
    facts: tuple[FactDraft, ...] = ()
    extraction: Extraction = "given"
    record: RecordDraft | None = None
    links: tuple[str, ...] = ()
    read: Reading | None = None


@dataclass(frozen=True, slots=True)
class Appended:
    """An acknowledgement: the turn is on disk. A duplicate carries the first turn and its job."""

    turn: Turn
    job_id: int
    duplicate: bool


@dataclass(frozen=True, slots=True)
class JobResult:
    """What a job made: counts of this turn alone; ``record`` is the node that the turn is the source of."""

    nodes: int = 0
    facts: int = 0
    edges: int = 0
    tags: tuple[str, ...] = ()
    skipped: tuple[Skipped, ...] = ()
    record: str = ""
    title: str = ""


@dataclass(frozen=True, slots=True)
class Readings:
    """What a command has made of some turns: those it has read, what it found and left out, and what still waits."""

    read: int
    facts: int
    dropped: int
    waiting: int


@dataclass(frozen=True, slots=True)
class Charge:
    """What models took for something: tokens in and out, and micro-dollars (1,000,000 are one dollar)."""

    tokens_in: int = 0
    tokens_out: int = 0
    cost_micros: int = 0


@dataclass(frozen=True, slots=True)
class Job:
    """The work of one turn.

    Attributes:
        stage: What comes next, or what failed.
        attempts: How often it was started, crashes included; failures: how often in a row that ended badly.
        code, error: Of the last failure, empty when there was none since it was queued.
        queued_at: When its turn was acknowledged, or it was given another chance.
        next_at: Not tried before; None is at once.
        first_failed_at: Since when it fails; None when it does not.
    """

    id: int
    turn: Turn
    payload: JobPayload
    state: JobState
    stage: Stage = "save"
    attempts: int = 0
    failures: int = 0
    code: str = ""
    error: str = ""
    queued_at: datetime | None = None
    next_at: datetime | None = None
    first_failed_at: datetime | None = None
    result: JobResult | None = None


@dataclass(frozen=True, slots=True)
class Attempt:
    """One start of a job that came to an end: ``outcome`` is ``done``, ``again`` or ``failed``."""

    stage: Stage
    outcome: str
    began_at: datetime
    ended_at: datetime
    code: str
    error: str
    charge: Charge


@dataclass(frozen=True, slots=True)
class QueueState:
    """How a queue stands.

    Attributes:
        counts: Jobs by state.
        oldest_at: Since when the oldest unfinished job waits; None when nothing waits.
        moved_at: When a job last came to an end, well or badly for good; None when none ever did.
        attempts, failed: Attempts that ended since the moment asked about, and those of them that failed.
        charge: What those attempts took.
        tried, failing: The jobs of the latest 2,000 of those attempts, and those whose last one failed.
    """

    counts: Mapping[JobState, int]
    oldest_at: datetime | None
    moved_at: datetime | None
    attempts: int
    failed: int
    charge: Charge
    tried: int = 0
    failing: int = 0


@dataclass(frozen=True, slots=True)
class Change:
    """Something whose derived index entries must be made anew from the truth (or removed)."""

    kind: ItemKind
    id: str


@dataclass(frozen=True, slots=True)
class DirtyChange:
    """A change that waits in the outbox; ``seq`` is what ``clear_dirty`` takes."""

    seq: int
    change: Change


@dataclass(frozen=True, slots=True)
class ItemFilter:
    """Which items a recall may see. Values of one field are alternatives; fields add up.

    Attributes:
        kinds: A node's kind, an episode's kind; a fact's own kind or that of one of its ends.
        tags: Any of them on the item; a fact has those of its ends and of its supporting turns.
        sources, sessions, roles: Of the turn; a fact has those of its supporting turns, a node those
            of its facts (and its own ``source`` attribute).
        relations: Names of edges; a node is at an end of such a fact that holds, a turn supports one.
        layers: Names of ``LAYERS``, each for the kinds of nodes in it.
        statuses: A node's ``status`` attribute. Where layers are given too, one node must have both. A fact has them
            of one of its ends, a turn of the node that it records or of its facts' ends.
        since, until: Half-open; an episode's event time, a fact's ``valid_at`` (else ``created_at``),
            a node's ``created_at``.
        as_of: World time. Facts: ``valid_at <= t < invalid_at`` (unknown ends are open) and not expired by
            then; None means now. Turns: said by then; None means all.
    """

    kinds: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    sources: tuple[str, ...] = ()
    relations: tuple[str, ...] = ()
    since: datetime | None = None
    until: datetime | None = None
    as_of: datetime | None = None
    sessions: tuple[str, ...] = ()
    roles: tuple[str, ...] = ()
    layers: tuple[str, ...] = ()
    statuses: tuple[str, ...] = ()


def dump_payload(payload: JobPayload) -> str:
    """Return a payload as JSON; raises ValueError or TypeError when an attribute has no JSON form."""
    data: dict[str, object] = {
        "extraction": payload.extraction,
        "nodes": [_node_json(node) for node in payload.nodes],
        "facts": [_fact_json(fact) for fact in payload.facts],
        "record": None if payload.record is None else _record_json(payload.record),
        "links": list(payload.links),
    }
    if payload.read is not None:
        data["read"] = {
            "nodes": [_node_json(node) for node in payload.read.nodes],
            "facts": [_fact_json(fact) for fact in payload.read.facts],
            "dropped": list(payload.read.dropped),
        }
    if payload.nodes or payload.record:
        return _dump(data)
    try:
        return orjson.dumps(data).decode()  # texts alone, thousands of them: five times as fast
    except TypeError:
        return _dump(data)


def load_payload(text: str) -> JobPayload:
    """Return the payload that ``dump_payload`` wrote."""
    # A user's own numbers may be of any length, which only json reads.
    data = _object(json.loads(text) if _ATTRIBUTES in text else orjson.loads(text))
    return JobPayload(
        nodes=tuple(_load_node(_object(item)) for item in _list(data["nodes"])),
        facts=tuple(_load_fact(_object(item)) for item in _list(data["facts"])),
        extraction=cast("Extraction", data["extraction"]),
        record=None if data["record"] is None else _load_record(_object(data["record"])),
        links=_strings(data["links"]),
        read=_load_reading(_object(data["read"])) if "read" in data else None,
    )


def _load_reading(data: Mapping[str, JSON]) -> Reading:
    return Reading(
        tuple(_load_node(_object(item)) for item in _list(data["nodes"])),
        tuple(_load_fact(_object(item)) for item in _list(data["facts"])),
        _strings(data["dropped"]),
    )


def dump_result(result: JobResult) -> str:
    """Return a job's result as JSON."""
    return _dump(
        {
            "nodes": result.nodes,
            "facts": result.facts,
            "edges": result.edges,
            "tags": list(result.tags),
            "skipped": [[item.what, item.why] for item in result.skipped],
            "record": result.record,
            "title": result.title,
        }
    )


def load_result(text: str) -> JobResult:
    """Return the result that ``dump_result`` wrote."""
    data = _object(json.loads(text))
    pairs = (_strings(item) for item in _list(data["skipped"]))
    return JobResult(
        nodes=cast("int", data["nodes"]),
        facts=cast("int", data["facts"]),
        edges=cast("int", data["edges"]),
        tags=_strings(data["tags"]),
        skipped=tuple(Skipped(what, why) for what, why in pairs),
        record=_text(data["record"]),
        title=_text(data["title"]),
    )


def _dump(data: Mapping[str, object]) -> str:
    return json.dumps(data, ensure_ascii=False, separators=(",", ":"), allow_nan=False)


def _node_json(node: NodeDraft) -> dict[str, object]:
    return {
        "name": node.name,
        "kind": node.kind,
        "summary": node.summary,
        "aliases": list(node.aliases),
        "tags": list(node.tags),
        "attributes": dict(node.attributes),
    }


def _load_node(data: Mapping[str, JSON]) -> NodeDraft:
    return NodeDraft(
        name=_text(data["name"]),
        kind=_text(data["kind"]),
        summary=_text(data["summary"]),
        aliases=_strings(data["aliases"]),
        tags=_strings(data["tags"]),
        attributes=_object(data["attributes"]),
    )


def _record_json(record: RecordDraft) -> dict[str, object]:
    return {
        "title": record.title,
        "kind": record.kind,
        "parent": record.parent,
        "attributes": dict(record.attributes),
    }


def _load_record(data: Mapping[str, JSON]) -> RecordDraft:
    return RecordDraft(
        title=_text(data["title"]),
        kind=_text(data["kind"]),
        parent=_text(data["parent"]),
        attributes=_object(data["attributes"]),
    )


def _fact_json(fact: FactDraft) -> dict[str, object]:
    return {
        "subject": fact.subject,
        "relation": fact.relation,
        "object": fact.object,
        "text": fact.text,
        "valid_at": None if fact.valid_at is None else iso(fact.valid_at),
        "invalid_at": None if fact.invalid_at is None else iso(fact.invalid_at),
        "invalidates": list(fact.invalidates),
        "kind": fact.kind,
    }


def _load_fact(data: Mapping[str, JSON]) -> FactDraft:
    return FactDraft(
        subject=_text(data["subject"]),
        relation=_text(data["relation"]),
        object=_text(data["object"]),
        text=_text(data["text"]),
        valid_at=_time(data["valid_at"]),
        invalid_at=_time(data["invalid_at"]),
        invalidates=_strings(data["invalidates"]),
        kind=cast("FactKind", data["kind"]),
    )


def _time(value: JSON) -> datetime | None:
    return None if value is None else parse(_text(value))


def _text(value: JSON) -> str:
    return cast("str", value)


def _list(value: JSON) -> Sequence[JSON]:
    return cast("Sequence[JSON]", value)


def _object(value: JSON) -> Mapping[str, JSON]:
    return cast("Mapping[str, JSON]", value)


def _strings(value: JSON) -> tuple[str, ...]:
    return tuple(cast("Sequence[str]", value))
