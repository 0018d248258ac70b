"""What a member keeps, asks and thinks: its own memory beside the pool, never merged."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from pps.core.errors import InvalidRequest, NotFound
from pps.core.record_values import Record, RecordQuery, Relation
from pps.core.values import JSON
from pps.journal.pool_rows import PoolCite, Shared, Uses, counted
from pps.memory import Memory
from pps.records.finding import RecordSearch
from pps.records.ranks import Ranking, RankRequest, cut, ranking
from pps.records.records import Join
from pps.records.saving import RecordGiven, RelationGiven
from pps.squad.agents import saw
from pps.squad.desk import Desk
from pps.squad.pool_queries import shown
from pps.squad.roots import confidence_of
from pps.squad.sharing import PRIVATE, PROPOSAL, SharedCopy, share

NEAR = 0.85
"""Cosine from which two beliefs are said to be one (the seed's)."""
_OWN = frozenset(("Experience", "AgentState", PROPOSAL))
"""What is not shared by itself, however sure; a proposal goes by ``proposal_submit``."""
_FOUND, _EXPERIENCES, _REFLECTIONS, _NEIGHBOURS = 50, 50, 5, 50


@dataclass(frozen=True, slots=True)
class Knowledge:
    """Something to keep.

    Attributes:
        kind: Of the squad's pack.
        content: Becomes the summary, 1 to 2,000 characters; title: its first words when empty.
        fields: The kind's own, beside confidence and domain.
        cites: Ids of one's own facts, turns and records, and of the pool's, that it rests on.
        relations: To records of one's own or of the pool.
        supersedes: A belief of one's own that it takes the place of.
        private: It never crosses.
        at_once: It is shared when it is sure enough; else only by ``share``.
    """

    content: str
    kind: str = "Experience"
    title: str = ""
    confidence: float | None = None
    domain: str = ""
    fields: Mapping[str, JSON] = field(default_factory=dict[str, JSON])
    cites: tuple[str, ...] = ()
    relations: tuple[RelationGiven, ...] = ()
    supersedes: str = ""
    private: bool = False
    tags: tuple[str, ...] = ()
    at_once: bool = True


@dataclass(frozen=True, slots=True)
class Kept:
    """What became of it: the record, its copy when it was shared, and one's own beliefs that say nearly the same."""

    record: Record
    copy: SharedCopy | None = None
    near: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Line:
    """A record that answers: of one's own, or of the pool, then with whose it is and what it rests on."""

    record: Record
    confidence: float
    score: float
    shared: Shared | None = None
    roots: int = 0
    uses: Uses | None = None
    withdrawn: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Joined:
    """A relation between two records that a member may read."""

    source: str
    type: str
    target: str


@dataclass(frozen=True, slots=True)
class Whole:
    """A record, what it rests on and what it is joined to; of both what a member may read alone."""

    line: Line
    cites: tuple[str, ...]
    joined: tuple[Joined, ...]


@dataclass(frozen=True, slots=True)
class Worksheet:
    """What there is to reflect on, the latest first; ``kept`` is what a language model drew from it."""

    experiences: tuple[Record, ...]
    related: tuple[Record, ...]
    reflections: tuple[Record, ...]
    beliefs: tuple[Record, ...]
    kept: tuple[Kept, ...] = ()

    def parts(self) -> tuple[tuple[Record, ...], ...]:
        return self.experiences, self.related, self.reflections, self.beliefs


async def store(desk: Desk, given: Knowledge) -> Kept:
    """Keep something in a member's own memory; sure enough and not private, it is shared at once.

    Raises:
        InvalidRequest: A field breaks a bound of its kind; what it cites is nothing of this member's or the pool's.
        NotFound: What it supersedes is none of this member's beliefs.
    """
    spec = desk.memory.kinds.kind(given.kind)
    if given.supersedes and spec.name != "Belief":
        raise InvalidRequest("supersedes", "is for beliefs")
    named = [*given.cites, *(one.target for one in given.relations)]
    async with desk.pool() as pool:
        shared = {
            id_
            for id_, one in (await pool.records.pool.shared(named)).items()
            if one.state == "shared"
        }
    of_pool = [PoolCite(one) for one in given.cites if one in shared]
    of_pool += [
        PoolCite(one.target, one.type, one.properties)
        for one in given.relations
        if one.target in shared
    ]
    for one in given.relations:
        if one.target in shared:
            await _check_relation(desk, spec.name, one)
    said: dict[str, JSON] = {"confidence": given.confidence, "domain": given.domain or None}
    fields = {
        **given.fields,
        **{name: one for name, one in said.items() if one is not None and name in spec.fields},
    }
    if spec.name == "Belief":
        fields.setdefault("source_type", "experience")
    near = await _near(desk.memory, given) if spec.name == "Belief" else ()
    record = RecordGiven(
        spec.name,
        given.title or " ".join(given.content.split())[:120],
        given.content,
        fields=fields,
        tags=(*given.tags, PRIVATE) if given.private else given.tags,
        cites=tuple(one for one in given.cites if one not in shared) or None,
        relations=tuple(one for one in given.relations if one.target not in shared),
    )
    if given.supersedes:
        await desk.memory.records.get([given.supersedes])
    kept = (await desk.memory.records.save([record])).records[0].record
    await desk.memory.records.pool.put_cites(kept.id, of_pool)
    if given.supersedes:
        await _supersede(desk, given.supersedes, kept.id)
    sure = (
        given.at_once
        and given.confidence is not None
        and given.confidence >= desk.rules.pool.share_from
    )
    copy = (
        await share(desk, kept.id) if sure and not given.private and spec.name not in _OWN else None
    )
    if copy and of_pool:
        async with desk.pool() as pool:
            await saw(desk, pool, [one.id for one in of_pool], applied=True)
    return Kept(kept, copy, near)


async def query(
    desk: Desk,
    topic: str,
    *,
    min_confidence: float,
    include_shared: bool,
    kinds: Sequence[str],
    limit: int,
) -> tuple[list[Line], list[Line]]:
    """Return what a member knows of a topic, and what the pool does, each best first; the pool's are marked as seen."""
    own = await _found(desk.memory, topic, kinds, min_confidence, limit)
    pooled = await desk.memory.records.pool.cites([one.record.id for one in own])
    own = [_with_gone(one, pooled.get(one.record.id, ())) for one in own]
    if not include_shared:
        return own, []
    async with desk.pool() as pool:
        found = await _provenance(pool, await _found(pool, topic, kinds, 0.0, limit))
        lines = [one for one in found if _is_open(one) and one.confidence >= min_confidence]
        await saw(desk, pool, [one.record.id for one in lines])
    return own, lines


async def whole(desk: Desk, ids: Sequence[str]) -> list[Whole]:
    """Return records whole, a member's own before the pool's, which are marked as seen.

    What waits in the pool is there for reviewers and its author alone. Raises NotFound when one is not there.
    """
    records = desk.memory.records
    own = {one.id: one for one in (await records.find(ids)).values()}
    async with desk.pool() as pool:
        there = {one.id: one for one in (await pool.records.find(ids)).values()}
        found = [Line(one, confidence_of(one), 1.0) for one in there.values()]
        lines = [
            one
            for one in await _provenance(pool, found)
            if one.record.kind == "Agent"
            or _is_open(one)
            or (one.shared and (desk.is_reviewer or one.shared.member == desk.me.id))
        ]
        if len(own) + len(lines) < len(set(ids)):
            raise NotFound()
        pooled = [one.record.id for one in lines]
        graph, cites = await shown(pool), await pool.records.cites(pooled)
        joined = [
            one
            for one in graph.relations
            if one.source in graph.records and one.target in graph.records
        ]
        answers = [
            _whole(
                one,
                [cite.id for cite in cites.get(one.record.id, ()) if cite.id in graph.records],
                joined,
            )
            for one in lines
        ]
        await saw(desk, pool, [one.record.id for one in lines if _is_open(one)])
    cites, of_pool, joined = (
        await records.cites([*own]),
        await records.pool.cites([*own]),
        await records.relations([*own]),
    )
    for id_, one in own.items():
        rests = [*cites.get(id_, ()), *of_pool.get(id_, ())]
        line = _with_gone(Line(one, confidence_of(one), 1.0), of_pool.get(id_, ()))
        answers.insert(0, _whole(line, [cite.id for cite in rests if not cite.gone], joined))
    return answers


def _whole(line: Line, cites: Sequence[str], joined: Sequence[Relation]) -> Whole:
    ends = [one for one in joined if line.record.id in (one.source, one.target)]
    return Whole(
        line, tuple(cites), tuple(Joined(one.source, one.type, one.target) for one in ends)
    )


async def _provenance(pool: Memory, found: Sequence[Line]) -> list[Line]:
    """Return lines of the pool with whose they are, how sure, and what they rest on."""
    rows, ids = pool.records.pool, [one.record.id for one in found]
    shared, roots, uses = await rows.shared(ids), await rows.roots(ids), await rows.uses(ids)
    return [
        replace(
            one,
            confidence=whose.confidence if whose else one.confidence,
            shared=whose,
            roots=len(counted(roots.get(id_, ()))),
            uses=uses.get(id_),
        )
        for one in found
        for id_ in [one.record.id]
        for whose in [shared.get(id_)]
    ]


def _is_open(line: Line) -> bool:
    """Tell whether all members may read a record of the pool."""
    return line.shared is not None and line.shared.state == "shared"


async def beliefs(desk: Desk, domain: str, least: float) -> tuple[list[Record], list[Record]]:
    """Return the beliefs that are held, the surest first: a member's own, and what others share (then seen)."""
    async with desk.pool() as pool:
        shared = await pool.records.pool.shared()
        there = (await pool.records.graph()).records
        others = [
            id_ for id_, one in shared.items() if one.state == "shared" and one.member != desk.me.id
        ]
        seen = _held([there[id_] for id_ in others if id_ in there], domain, least)
        await saw(desk, pool, [one.id for one in seen])
    own = (await desk.memory.records.graph()).records
    return _held([*own.values()], domain, least), seen


def _held(records: Sequence[Record], domain: str, least: float) -> list[Record]:
    held = [
        one
        for one in records
        if one.kind == "Belief" and one.state == "active" and confidence_of(one) >= least
    ]
    wanted = [one for one in held if domain in ("", one.fields.get("domain"))]
    return sorted(wanted, key=confidence_of, reverse=True)


async def ranked(desk: Desk, asked: RankRequest) -> Ranking:
    """Return the records that the squad shares by their relations in the pool; what waits there is not among them."""
    async with desk.pool() as pool:
        graph, shared = await pool.records.graph(), await pool.records.pool.shared()
        kinds = frozenset(pool.kinds.kind(name).name for name in asked.kinds)
    held = {
        id_: one
        for id_, one in graph.records.items()
        if id_ in shared and shared[id_].state == "shared"
    }
    return cut(
        await asyncio.to_thread(ranking, replace(graph, records=held), asked, kinds or None),
        asked.limit,
    )


async def worksheet(desk: Desk) -> Worksheet:
    """Return a member's recent experiences, what is two hops around them, its last reflections and open beliefs."""
    records = desk.memory.records
    experiences = await _latest(desk.memory, "Experience", _EXPERIENCES)
    graph = await records.graph()
    near = {one.id for one in experiences}
    for _ in range(2):
        near |= {
            end
            for one in graph.relations
            if {one.source, one.target} & near
            for end in (one.source, one.target)
        }
    seen = {one.id for one in experiences}
    related = [graph.records[one] for one in near - seen if one in graph.records][:_NEIGHBOURS]
    beliefs = [
        one for one in await _latest(desk.memory, "Belief", _NEIGHBOURS) if one.state == "active"
    ]
    reflections = await _latest(desk.memory, "Reflection", _REFLECTIONS)
    return Worksheet(tuple(experiences), tuple(related), tuple(reflections), tuple(beliefs))


async def _latest(memory: Memory, kind: str, limit: int) -> list[Record]:
    page = await memory.records.list(
        RecordQuery(kinds=(kind,), order=("-created_at",), limit=limit)
    )
    return list(page.records)


async def _found(
    memory: Memory, topic: str, kinds: Sequence[str], least: float, limit: int
) -> list[Line]:
    found = await memory.finding.search(
        RecordSearch(topic, types=tuple(kinds), top_k=_FOUND, min_similarity=-1.0)
    )
    scores = {one.node.uuid: one.score for one in found.results}
    records = await memory.records.find(scores)
    lines = [
        Line(records[id_], confidence_of(records[id_]), score)
        for id_, score in scores.items()
        if id_ in records
    ]
    return [one for one in lines if one.confidence >= least and one.record.state != "superseded"][
        :limit
    ]


async def _near(memory: Memory, given: Knowledge) -> tuple[str, ...]:
    wanted = RecordSearch(given.content, types=("Belief",), top_k=5, min_similarity=NEAR)
    found = await memory.finding.search(wanted)
    return tuple(one.node.uuid for one in found.results if one.node.uuid != given.supersedes)


def _with_gone(line: Line, cites: Sequence[PoolCite]) -> Line:
    gone = tuple(one.id for one in cites if one.gone)
    return Line(line.record, line.confidence, line.score, withdrawn=gone)


async def _supersede(desk: Desk, old: str, new: str) -> None:
    """Let a belief take another's place, which is kept as it was: in the member's memory, and in the pool."""
    await desk.memory.records.move(old, "superseded", expected="active", why=f"superseded by {new}")
    await desk.memory.records.join([Join(old, RelationGiven("EVOLVED_INTO", new))])
    async with desk.pool() as pool:
        mine = await pool.records.pool.copies(desk.me.id, [old])
        if old in mine:
            await pool.records.by(desk.me.id).move(
                mine[old], "superseded", expected="active", why="superseded"
            )


async def _check_relation(desk: Desk, kind: str, relation: RelationGiven) -> None:
    """Raise InvalidRequest unless the pack joins a kind to a record of the pool so."""
    async with desk.pool() as pool:
        [target] = await pool.records.get([relation.target])
    desk.memory.kinds.relation(relation.type, kind, target.kind)
