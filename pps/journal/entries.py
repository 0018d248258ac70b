"""Values of the journal: turn drafts, jobs, changes; and the JSON of jobs."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Annotated, Literal, TypeAlias, TypeVar, cast

from pydantic import BeforeValidator, TypeAdapter, ValidationError

from pps.core.bounds import (
    EXTRACTIONS,
    MAX_TAGS,
    check_attributes,
    check_choice,
    check_drafts,
    is_text,
)
from pps.core.errors import InvalidRequest, StoreError
from pps.core.text import fold
from pps.core.values import (
    Chunk,
    CorrectionDraft,
    EndingDraft,
    FactDraft,
    ItemKind,
    NodeDraft,
    RecordDraft,
    RetractionDraft,
    Skipped,
    Turn,
)


def _skipped(value: object) -> object:
    """Return what results of before 2026-11 have, a list of two, as the fields that it stands for.

    Readings of before 2026-12 have reasons alone.
    """
    if isinstance(value, str):
        return {"what": "", "why": value}
    if isinstance(value, list):
        return dict(zip(("what", "why"), cast("list[object]", value), strict=True))
    return value


_AnyFact = TypeVar("_AnyFact", bound=FactDraft)
Extraction: TypeAlias = Literal["given", "rules", "command", "model", "none"]
JobState: TypeAlias = Literal["queued", "running", "done", "failed", "dropped"]
Stage: TypeAlias = Literal["save", "read"]
"""What a job waits for: its turn is saved with what was given; a model reads what is saved."""


@dataclass(frozen=True, slots=True)
class TurnDraft:
    """A message as it arrives; bounds are checked by ``turns.prepared``.

    Attributes:
        content: 1 to 65,536 characters, not only white space; stored in NFC, line breaks kept.
        role: ``user``, ``assistant``, ``system`` or ``tool``.
        source_ref: The message's own id at its source; empty when it has none.
        occurred_at: Event time, aware; None is the moment of receipt. A date alone is a
            ``CoarseTime``.
        chunk: Which part of a document it is; its path has 1 to 1,000 characters.
        title: A title that was given with it: equal texts under two titles are two. Not stored with
            the turn.
        importance: 0 to 1, as whoever says it thinks.
        utc_offset_s: Seconds east of UTC of the clock that the event was noted by; None is that of
            ``occurred_at``, and of the entity's zone where that says none.
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
    importance: float = 0.5
    utc_offset_s: int | None = None


@dataclass(frozen=True, slots=True)
class ReadFact(FactDraft):
    """A fact that a command found in a turn.

    Attributes:
        cites: Other turns of the entity that state it together with that turn: none of them does
            alone.
        uses: Turns whose words its sentence has besides, such as the one that says the speaker's
            name. When one of ``cites`` or ``uses`` is forgotten or changed, the fact goes, and its
            turn is read again.
    """

    cites: tuple[str, ...] = ()
    uses: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Reading:
    """What a command found in a turn, and what of its answer was left out, with the reason."""

    nodes: tuple[NodeDraft, ...] = ()
    facts: tuple[ReadFact, ...] = ()
    dropped: tuple[Annotated[Skipped, BeforeValidator(_skipped)], ...] = ()
    endings: tuple[EndingDraft, ...] = ()


@dataclass(frozen=True, slots=True)
class JobPayload:
    """What the write path still has to do with a turn, as the caller gave it.

    Attributes:
        record: Set when the turn is the source of a record.
        links: The titles that its text links to.
        read: Set once a command has read the turn; it counts like what was given.
        endings, corrections: Given with the turn, as facts are; what rules read is not in the
            payload.
        retractions: Of a turn that corrects facts by their ids.
        rules_meanwhile: Rules read the turn too, for the command could not be asked when it was its
            turn.
    """

    nodes: tuple[NodeDraft, ...] = ()
    facts: tuple[FactDraft, ...] = ()
    extraction: Extraction = "given"
    record: RecordDraft | None = None
    links: tuple[str, ...] = ()
    read: Reading | None = None
    endings: tuple[EndingDraft, ...] = ()
    corrections: tuple[CorrectionDraft, ...] = ()
    rules_meanwhile: bool = False
    retractions: tuple[RetractionDraft, ...] = ()


@dataclass(frozen=True, slots=True)
class Appended:
    """An acknowledgement: the turn is on disk. A duplicate carries the first turn and its job."""

    turn: Turn
    job_id: int
    duplicate: bool


@dataclass(frozen=True, slots=True)
class JobResult:
    """The result of a job, for its turn alone; ``record`` is the node whose source is the turn."""

    nodes: int = 0
    facts: int = 0
    edges: int = 0
    tags: tuple[str, ...] = ()
    skipped: tuple[Annotated[Skipped, BeforeValidator(_skipped)], ...] = ()
    record: str = ""
    title: str = ""


@dataclass(frozen=True, slots=True)
class Readings:
    """Counts of what a command has read: turns, facts, left-out items, and waiting jobs."""

    read: int
    facts: int
    dropped: int
    waiting: int


MICROS = 1_000_000
"""Micro-dollars that are one dollar."""


@dataclass(frozen=True, slots=True)
class Charge:
    """What models took for something: tokens in and out, and micro-dollars."""

    tokens_in: int = 0
    tokens_out: int = 0
    cost_micros: int = 0


@dataclass(frozen=True, slots=True)
class Job:
    """The work of one turn.

    Attributes:
        stage: What comes next, or what failed.
        attempts: How often it was started, crashes included; failures: how often in a row that
            ended badly.
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
class QueueState:
    """How a queue stands.

    Attributes:
        counts: Jobs by state.
        oldest_at: Since when the oldest unfinished job waits; None when nothing waits.
        moved_at: When a job last came to an end, well or badly for good; None when none ever did.
        attempts, failed: Attempts that ended since the moment asked about, and those of them that
            failed.
        charge: What those attempts took.
        tried, failing: The jobs of the latest 2,000 of those attempts, and those whose last one
            failed.
    """

    counts: Mapping[JobState, int]
    oldest_at: datetime | None
    moved_at: datetime | None
    attempts: int
    failed: int
    charge: Charge
    tried: int = 0
    failing: int = 0


GraphKind: TypeAlias = Literal["graph_node", "graph_fact", "graph_episode"]
"""Kinds of log entries about rows of the graph; an episode is read with what it mentions."""
GRAPH_KINDS: tuple[GraphKind, ...] = ("graph_node", "graph_fact", "graph_episode")


@dataclass(frozen=True, slots=True)
class Change:
    """Something that followers of the change log read again where it is true.

    Attributes:
        kind: An ``ItemKind`` is for the indexes; a ``GraphKind`` is for a copy of the graph, and
            indexes pass it over.
    """

    kind: ItemKind | GraphKind
    id: str


_MAX_TAG = 100
_PAYLOAD = TypeAdapter(JobPayload)
_RESULT = TypeAdapter(JobResult)


def clean_tags(tags: Iterable[str]) -> tuple[str, ...]:
    """Return tags folded, without blanks and repetitions, in the order given."""
    folded = tuple(dict.fromkeys(tag for tag in map(fold, tags) if tag))
    if len(folded) > MAX_TAGS:
        raise InvalidRequest("tags", f"at most {MAX_TAGS}, got {len(folded)}")
    if any(len(tag) > _MAX_TAG or not is_text(tag) for tag in folded):
        raise InvalidRequest("tags", f"each must be 1 to {_MAX_TAG} characters of valid Unicode")
    return folded


def prepare_payload(payload: JobPayload) -> str:
    """Return a payload as JSON after checking it: before it is acknowledged, not after.

    Raises:
        InvalidRequest: A bound is broken; the field and the bound are named.
    """
    check_choice("extraction", payload.extraction, EXTRACTIONS)
    check_drafts(payload.nodes, payload.facts)
    if payload.record:
        check_attributes("metadata", payload.record.attributes)
    for node in payload.nodes:
        clean_tags(node.tags)
    return dump_payload(payload)


def dump_payload(payload: JobPayload) -> str:
    """Return a payload as JSON; what no command has read has no ``read``: SQL asks for that."""
    read = payload.read and replace(
        payload.read,
        facts=_facts_in_utc(payload.read.facts),
        endings=_endings_in_utc(payload.read.endings),
    )
    payload = replace(
        payload,
        facts=_facts_in_utc(payload.facts),
        endings=_endings_in_utc(payload.endings),
        read=read,
        retractions=tuple(
            replace(retraction, ended_at=_in_utc(retraction.ended_at))
            for retraction in payload.retractions
        ),
    )
    optional = ("endings", "corrections", "read", "rules_meanwhile", "retractions")
    absent = {name for name in optional if not getattr(payload, name)}
    return _PAYLOAD.dump_json(payload, exclude=absent).decode()


def _facts_in_utc(facts: Iterable[_AnyFact]) -> tuple[_AnyFact, ...]:
    """Return facts with times in UTC: JSON has no seconds in offsets, as Berlin had in 1880."""
    return tuple(
        replace(fact, valid_at=_in_utc(fact.valid_at), invalid_at=_in_utc(fact.invalid_at))
        for fact in facts
    )


def _endings_in_utc(endings: Iterable[EndingDraft]) -> tuple[EndingDraft, ...]:
    return tuple(
        replace(
            ending,
            ended_at=_in_utc(ending.ended_at),
            ended_before=_in_utc(ending.ended_before),
        )
        for ending in endings
    )


def _in_utc(moment: datetime | None) -> datetime | None:
    return moment and moment.astimezone(UTC)


def without_needing(payload: JobPayload, lost: Collection[str]) -> JobPayload:
    """Return a payload without the read facts that need a lost turn: they may hold its words."""
    if payload.read is None:
        return payload
    remaining = tuple(
        fact for fact in payload.read.facts if {*fact.cites, *fact.uses}.isdisjoint(lost)
    )
    return replace(payload, read=replace(payload.read, facts=remaining))


def load_payload(text: str) -> JobPayload:
    try:
        return _PAYLOAD.validate_json(text)
    except ValidationError as error:
        raise StoreError(
            "what was given with a turn cannot be read; memory.db is damaged"
        ) from error


def dump_result(result: JobResult) -> str:
    return _RESULT.dump_json(result).decode()


def load_result(text: str) -> JobResult:
    return _RESULT.validate_json(text)
