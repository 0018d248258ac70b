"""Tools of a squad's members: storing, querying, reflecting, sharing and withdrawing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Annotated

from pydantic import Field, JsonValue, StringConstraints

from pps.core.record_values import Record
from pps.core.text import counted
from pps.features.squad import knowing, sharing
from pps.features.squad.agent import reflect
from pps.features.squad.desk import Desk, identify
from pps.features.squad.roots import confidence_of
from pps.features.squad.sharing import WithdrawnRecord
from pps.ingest.given_input import Name, Tag
from pps.journal.pool_rows import PoolRecord
from pps.operations.inputs import Input, Label, Labels, Names, Nothing, also, options
from pps.operations.table import ADDS, ERASES, SETS, SQUAD
from pps.records.saving import RelationGiven

Share = Annotated[float, Field(ge=0, le=1)]


class SquadRelation(Input):
    """A relation to another record."""

    type: Label = Field(
        description="Such as VALIDATED, CHALLENGED or BASED_ON; the pack squad has them."
    )
    target: Name = Field(description="Id or title of a record of yours or of the pool.")
    properties: dict[str, JsonValue] = Field(
        default={}, max_length=20, description="Such as reason or changes."
    )


class StoreInput(Input):
    """Something to keep."""

    content: Annotated[str, StringConstraints(min_length=1, max_length=2_000)] = Field(
        description="Content."
    )
    type: Label = Field(
        default="Experience",
        description=(
            "Experience, Belief, Reflection, or the type of your work: Research, Concept, "
            "Analysis, Insight, …"
        ),
    )
    title: Annotated[str, StringConstraints(max_length=160)] = Field(
        default="", description="Title. Default: the first words of the content."
    )
    confidence: Share | None = Field(
        default=None, description="How sure you are, 0 to 1. From 0.7 on the record is shared."
    )
    domain: Annotated[str, StringConstraints(max_length=100)] = Field(
        default="", description="Subject area, such as security."
    )
    fields: dict[str, JsonValue] = Field(
        default={}, max_length=50, description="Other fields of the type, by name."
    )
    cites: tuple[Name, ...] = Field(
        default=(),
        max_length=100,
        description=(
            "What it rests on: ids of your turns, facts and records or of the pool's, or "
            "titles of records."
        ),
    )
    relations: tuple[SquadRelation, ...] = Field(
        default=(), max_length=50, description="Relations to your records or the pool's."
    )
    supersedes: Name | None = Field(
        default=None,
        description="Id or title of a belief of yours that this one replaces. The old belief is "
        "kept.",
    )
    private: bool = Field(default=False, description="True keeps it in your own memory only.")
    tags: tuple[Tag, ...] = Field(
        default=(), max_length=20, description="Tags; 'web' for what you read on the web."
    )


class QueryInput(Input):
    """A question to your own memory and the pool."""

    topic: Annotated[str, StringConstraints(min_length=1, max_length=2_000)] = Field(
        description="Subject of the question."
    )
    min_confidence: Share = Field(default=0.0, description="Minimum confidence of the results.")
    include_shared: bool = Field(default=True, description="True searches the pool too.")
    kinds: Labels = Field(default=(), description="Only these types, such as Belief.")
    limit: int = Field(default=10, ge=1, le=50, description="Maximum results in each list.")


class ShareInput(Input):
    """A record to share."""

    id: Name = Field(
        description="Id or title of a record of your own.", json_schema_extra=also("knowledgeId")
    )


class RevokeInput(Input):
    """What is to be taken back."""

    ids: Names = Field(
        description=(
            "Ids or titles of your records or of their copies in the pool. A reviewer may "
            "name any record in the pool."
        )
    )
    dry_run: bool = Field(default=True, description="True only lists what would be withdrawn.")
    reason: Annotated[str, StringConstraints(max_length=2_000)] = Field(
        default="",
        description="Reason. Required when a reviewer withdraws another member's record.",
    )
    undo: bool = Field(
        default=False, description="True restores what a reviewer withdrew from the pool."
    )


@dataclass(frozen=True, slots=True)
class OpposedBy:
    """A shared record that challenges or contradicts another."""

    id: str
    member: str
    confidence: float
    relation: str


@dataclass(frozen=True, slots=True)
class KnownRecordView:
    """A record; one of the pool says whose it is, what it rests on, who saw it and who opposes it.

    Attributes:
        confidence: The author's own; in the pool raised by independent support, lowered by
            opposition.
        withdrawn: Ids that it rests on and that were taken out of the pool.
        opposed_by: Records that challenge or contradict it.
        copies: Near-copies that this line stands for, as ``member:id``.
    """

    id: str
    type: str
    title: str
    content: str
    confidence: float
    created_at: datetime
    state: str = ""
    domain: str = ""
    shared_by: str | None = None
    shared_at: datetime | None = None
    roots: int | None = None
    trust: str | None = None
    accessed_by: tuple[str, ...] = ()
    applied_by: tuple[str, ...] = ()
    withdrawn: tuple[str, ...] = ()
    opposed_by: tuple[OpposedBy, ...] = ()
    copies: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class CopyView:
    """A copy in the pool; ``told`` hear of it. One that waits is seen by reviewers alone."""

    id: str
    origin: str
    state: str
    confidence: float
    roots: int
    trust: str
    told: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class KeptView:
    """What was kept; ``near`` has beliefs of your own that say nearly the same.

    Attributes:
        repeat: The same was stored before: this is that record, and nothing was added.
        warnings: Relations that were kept the other way round, and why.
    """

    id: str
    type: str
    title: str
    version: int
    repeat: bool = False
    copy: CopyView | None = None
    near: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class KnowledgeView:
    """What you know, and what the pool has.

    Two lists, each best first, whose scores do not compare.

    Attributes:
        held_back: Author → lines left out of the pool's so that no author fills more than a third.
    """

    own: tuple[KnownRecordView, ...]
    pool: tuple[KnownRecordView, ...]
    held_back: Mapping[str, int] = field(default_factory=dict[str, int])


@dataclass(frozen=True, slots=True)
class WithdrawnView:
    """What goes out of the pool, and what stays with another confidence, by id.

    Attributes:
        records: What goes, with its title and owner.
        shown: ``undo`` showed it again.
    """

    withdrawn: tuple[str, ...]
    weaker: dict[str, float]
    dry_run: bool
    records: tuple[WithdrawnRecord, ...] = ()
    shown: bool = False


@dataclass(frozen=True, slots=True)
class WorksheetView:
    """What there is to reflect on, and what to do with it.

    ``kept`` has the beliefs that a language model wrote.
    """

    experiences: tuple[KnownRecordView, ...]
    related: tuple[KnownRecordView, ...]
    reflections: tuple[KnownRecordView, ...]
    beliefs: tuple[KnownRecordView, ...]
    task: str
    kept: tuple[KeptView, ...] = ()


def known(record: Record, confidence: float | None = None) -> KnownRecordView:
    """Return a record as a member is shown it."""
    sure = confidence if confidence is not None else confidence_of(record)
    domain = record.fields.get("domain")
    domain_name = domain if isinstance(domain, str) else ""
    return KnownRecordView(
        record.id,
        record.kind,
        record.title,
        record.summary,
        sure,
        record.created_at,
        record.state,
        domain_name,
    )


def line_view(line: knowing.KnowledgeLine) -> KnownRecordView:
    base = replace(known(line.record, line.confidence), withdrawn=line.withdrawn)
    if line.shared is None:
        return base
    return replace(
        base,
        shared_by=line.shared.member,
        shared_at=line.shared.at,
        roots=line.roots,
        trust=line.shared.trust,
        accessed_by=line.uses.accessed if line.uses else (),
        applied_by=line.uses.applied if line.uses else (),
        opposed_by=tuple(
            OpposedBy(each.id, each.member, each.confidence, each.relation) for each in line.opposed
        ),
        copies=line.copies,
    )


def of_pool(record: Record, shared: Mapping[str, PoolRecord]) -> KnownRecordView:
    copy = shared.get(record.id)
    base = known(record, copy.confidence if copy else None)
    return (
        replace(base, shared_by=copy.member, shared_at=copy.at, trust=copy.trust) if copy else base
    )


def _copy_view(copy: sharing.SharedCopy) -> CopyView:
    of = copy.shared
    return CopyView(
        copy.record.id, of.origin, of.state, of.confidence, copy.roots, of.trust, copy.told
    )


def said(line: KnownRecordView) -> str:
    """Return a record as one line of text, with its provenance and what stands against it."""
    provenance = f"{line.shared_by} {line.shared_at:%Y-%m-%d}, " if line.shared_by else ""
    roots = f", {counted(line.roots, 'root')}" if line.roots is not None else ""
    withdrawn = (
        f"; rests on {counted(len(line.withdrawn), 'record')} that was withdrawn"
        if line.withdrawn
        else ""
    )
    opposed = "".join(
        f"; {each.relation} by {each.member} ({each.confidence:.2f}, id {each.id[:8]})"
        for each in line.opposed_by
    )
    copies = f"; said alike {len(line.copies)} more times" if line.copies else ""
    details = f"{provenance}confidence {line.confidence:.2f}{roots}{withdrawn}{opposed}{copies}"
    return f"{line.id[:8]} {line.type} ({details}) {line.title}: {line.content}"


def _answers_text(value: KnowledgeView) -> str:
    own = "\n".join(map(said, value.own)) or "nothing"
    pool = "\n".join(map(said, value.pool)) or "nothing"
    left_out = ", ".join(f"{count} of {author}" for author, count in value.held_back.items())
    note = f"\n(left out so that no author fills more than a third: {left_out})" if left_out else ""
    return f"Your own:\n{own}\n\nThe pool:\n{pool}{note}"


def _kept_text(value: KeptView) -> str:
    copy = f"\n{_copy_text(value.copy)}" if value.copy else ""
    near = (
        f"\nNearly the same: {', '.join(value.near)}; give 'supersedes' to take its place"
        if value.near
        else ""
    )
    how = "was kept before" if value.repeat else "kept"
    warnings = "".join(f"\n{warning}" for warning in value.warnings)
    return f"{value.type} {how}: {value.title} (id {value.id}){copy}{near}{warnings}"


_COPY_STATES = {
    "shared": "Shared",
    "waiting": "Waits for a reviewer",
    "needs_revision": "Needs a revision",
}


def _copy_text(value: CopyView) -> str:
    text = f"; told: {', '.join(value.told)}" if value.told else ""
    how = _COPY_STATES.get(value.state, value.state)
    return (
        f"{how} as {value.id}: confidence {value.confidence:.2f}, {counted(value.roots, 'root')}, "
        f"{value.trust}{text}"
    )


def _withdrawn_text(value: WithdrawnView) -> str:
    would = "would be" if value.dry_run else "is"
    done = f"{would} shown again" if value.shown else f"{would} withdrawn"
    lines = [
        f"{record.owner}'s {record.kind} {record.title} (id {record.id}) {done}"
        for record in value.records
    ]
    lines += [
        f"{id_} stays with confidence {confidence:.2f}" for id_, confidence in value.weaker.items()
    ]
    return "\n".join(lines) or f"Nothing {done}"


def _worksheet_text(value: WorksheetView) -> str:
    parts = ("experiences", "related", "reflections", "beliefs")
    lines = [
        f"{part}:\n" + ("\n".join(map(said, getattr(value, part))) or "none") for part in parts
    ]
    return "\n\n".join((*lines, value.task, *map(_kept_text, value.kept)))


@SQUAD.operation("Store knowledge", _kept_text, ADDS)
async def memory_store(desk: Desk, request: StoreInput) -> KeptView:
    """Use it to store an experience, a belief or a result of your work in your own memory.

    It always makes a new record, whatever its title; an exact repetition is reported. A changed
    belief names the old one in {supersedes}. With confidence 0.7 or more, and not private, the
    record is shared with the squad at once (experiences never are), or waits for a reviewer.
    Returns its id, its copy in the pool, and beliefs that say nearly the same.
    """
    relations: list[RelationGiven] = []
    for number, relation in enumerate(request.relations):
        path = f"relations.{number}.target"
        [target] = await identify(desk, [relation.target], "own", "pool", path=path)
        relations.append(RelationGiven(relation.type, target, relation.properties))
    superseded = [request.supersedes] if request.supersedes else []
    knowledge = knowing.Knowledge(
        **options(request, "type", "relations", "supersedes", "cites"),
        kind=request.type,
        relations=tuple(relations),
        cites=tuple(await identify(desk, request.cites, "own", "pool", path="cites")),
        supersedes="".join(await identify(desk, superseded, "own", path="supersedes")),
    )
    return _kept_view(await knowing.store(desk, knowledge))


def _kept_view(stored: knowing.StoredKnowledge) -> KeptView:
    record = stored.record
    return KeptView(
        record.id,
        record.kind,
        record.title,
        record.version,
        stored.repeat,
        _copy_view(stored.copy) if stored.copy else None,
        stored.near,
        stored.warnings,
    )


@SQUAD.operation("Query knowledge", _answers_text, SETS)
async def memory_query(desk: Desk, request: QueryInput) -> KnowledgeView:
    """Use it before you work on something.

    Returns two lists: what you know of it, and what the squad shares. Each shared record has who
    shared it and when, its confidence, its number of independent sources (roots) and who opposes
    it. Near-copies are one line, and no author fills more than a third. The squad notes that you
    saw them.
    """
    answer = await knowing.query(
        desk,
        request.topic,
        min_confidence=request.min_confidence,
        include_shared=request.include_shared,
        kinds=request.kinds,
        limit=request.limit,
    )
    return KnowledgeView(
        tuple(map(line_view, answer.own)), tuple(map(line_view, answer.pool)), answer.held_back
    )


@SQUAD.operation("Reflect", _worksheet_text, ADDS)
async def memory_reflect(desk: Desk, _: Nothing) -> WorksheetView:
    """Use it from time to time.

    Returns your recent experiences, what is related to them, your last reflections and beliefs.
    Find what holds beyond the single case and store it with {memory_store} as Belief, with what it
    rests on in 'cites'; a changed belief names the old one in 'supersedes'. If the server has a
    language model, 'kept' lists the beliefs that it wrote into your own memory: check them, and
    share them with {memory_share}.
    """
    reflection = await reflect(desk)
    task = (
        "Check the beliefs in 'kept', which a language model wrote: correct one with memory_store "
        "and supersedes, share what holds with memory_share."
        if reflection.kept
        else "Keep what follows with memory_store: each belief as type Belief with confidence, "
        "domain and cites; what you thought as type Reflection. A belief that replaces one above "
        "names it in supersedes."
    )
    seen, near, thought, held = (tuple(map(known, part)) for part in reflection.parts())
    return WorksheetView(seen, near, thought, held, task, tuple(map(_kept_view, reflection.kept)))


@SQUAD.operation("Share a record", _copy_text, ADDS)
async def memory_share(desk: Desk, request: ShareInput) -> CopyView:
    """Use it to copy one of your records into the squad's pool, or to update the copy.

    A private record is refused. Returns the copy's id and confidence, and which members are
    notified.
    """
    [id_] = await identify(desk, [request.id], "own", path="id")
    return _copy_view(await sharing.share(desk, id_))


@SQUAD.operation("Withdraw a shared record", _withdrawn_text, ERASES)
async def memory_revoke(desk: Desk, request: RevokeInput) -> WithdrawnView:
    """Use it to remove your copies from the pool, with what rests on them alone.

    Records with other sources stay. A reviewer may also withdraw another member's record, with a
    reason that its author gets; undo=true restores it. By default it is a dry run: show what it
    returns, and only then call again with {dry_run=false}.
    """
    ids = await identify(desk, request.ids, "own", "pool")
    withdrawn = await sharing.revoke(
        desk, ids, dry_run=request.dry_run, reason=request.reason, undo=request.undo
    )
    return WithdrawnView(
        withdrawn.gone, dict(withdrawn.weaker), withdrawn.dry_run, withdrawn.records, request.undo
    )
