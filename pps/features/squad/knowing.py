"""Knowledge of a squad's member: storing, querying and reflecting.

The member's own memory and the squad's pool are searched side by side and never merged.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import json
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from pps.app import App
from pps.context.lines import Line as PackLine
from pps.context.lines import bullet
from pps.core.errors import InvalidRequest, NotFound
from pps.core.ids import EntityId
from pps.core.record_values import Record, RecordQuery, Relation
from pps.core.text import content_hash, fold
from pps.core.values import JSON
from pps.features.squad.desk import Desk, rules_of
from pps.features.squad.pool_queries import shown
from pps.features.squad.roots import PRIVATE, confidence_of, rests_on_private
from pps.features.squad.sharing import PROPOSAL, SharedCopy, share
from pps.features.squad.squad_members import record_id_of, saw
from pps.ingest.linking import relation_id
from pps.ingest.support import content_words
from pps.journal.pool_rows import PoolCite, PoolRecord, Stance, Uses, count_roots, put_cites
from pps.journal.record_rows import RecordRows
from pps.memory import Memory
from pps.recall.floor import least_similarity
from pps.records.finding import SEMANTIC_LEAST, RecordSearch
from pps.records.ranks import Ranking, RankRequest, cut, ranking
from pps.records.saving import RecordGiven, RelationGiven, Saved

NEAR = 0.85
"""Cosine from which on two beliefs are reported as nearly the same."""
NEAR_COPY = 0.8
"""Share of words in common that makes records with equal numbers and negations near-copies."""
_NEVER_AUTOMATIC = frozenset(("Experience", "AgentState", PROPOSAL))
"""Kinds that are never shared automatically; proposals are shared by ``proposal_submit``."""
_CANDIDATES = 50
_EXPERIENCES = 50
_REFLECTIONS = 5
_NEIGHBOURS = 50
_REPEATS = 100
_WORD = re.compile(r"[^\W_]+")
_CHANGING_WORDS = """
no not never none nothing nobody neither nor without cannot isn t doesn don didn won wasn weren
aren hasn haven hadn can couldn shouldn wouldn
only unless except until if hardly barely rarely seldom almost
nicht nichts nie niemals niemand kein keine keinen keinem keiner ohne nur
ne pas jamais aucun aucune rien sans sauf personne
nunca jamás sin nada nadie ninguno ninguna salvo
non mai senza nessuno nessuna niente
não sem nenhum nenhuma ninguém
niet niets nooit niemand geen zonder
"""
_CHANGING = frozenset(_CHANGING_WORDS.split())
"""Words that change what a sentence states, in the languages of ``config/topics.toml``."""
_FEWEST_COMPARED_WORDS = 5
"""Texts with fewer words than this are near-copies only if their titles are equal too."""


@dataclass(frozen=True, slots=True)
class Knowledge:
    """A record that a member stores with ``memory_store``.

    Attributes:
        content: The record's summary, 1 to 2,000 characters.
        kind: A kind of the squad's pack.
        title: The first words of the content if empty.
        confidence: 0 to 1; None for kinds without it.
        domain: The subject area.
        fields: Further fields of the kind.
        cites: Ids of sources: the member's own facts, turns and records, or records of the pool.
        relations: To the member's own records or to records of the pool.
        supersedes: Id of a belief of the member that this one replaces.
        private: It is never shared.
        at_once: Share it at once if its confidence suffices; otherwise only ``share`` does.
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
class StoredKnowledge:
    """The result of storing a record.

    Attributes:
        copy: Its copy in the pool if it was shared.
        near: Ids of the member's beliefs that say nearly the same.
        repeat: An equal record was stored before; it is returned and nothing was added.
        warnings: Relations that were stored in the opposite direction, with the reason.
    """

    record: Record
    copy: SharedCopy | None = None
    near: tuple[str, ...] = ()
    repeat: bool = False
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Opposition:
    """A shared record that challenges or contradicts another."""

    id: str
    member: str
    confidence: float
    relation: str


@dataclass(frozen=True, slots=True)
class KnowledgeLine:
    """A record that answers a query: the member's own, or the pool's with its provenance.

    Attributes:
        confidence: The author's; for a record of the pool, the pool's.
        score: Relevance to the query; comparable within one list only.
        shared: Its row in the pool; None for the member's own records.
        roots: Number of independent sources.
        uses: How often members saw and applied it.
        withdrawn: Ids of sources that were removed from the pool.
        opposed: Shared records that challenge or contradict it.
        copies: Near-copies that this line represents, as ``member:id``.
    """

    record: Record
    confidence: float
    score: float
    shared: PoolRecord | None = None
    roots: int = 0
    uses: Uses | None = None
    withdrawn: tuple[str, ...] = ()
    opposed: tuple[Opposition, ...] = ()
    copies: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class KnowledgeAnswer:
    """Answers to a query from the member's own memory and from the pool.

    Attributes:
        own: The member's own records, best first.
        pool: Records of the pool, best first.
        held_back: Author → lines left out so that no author fills more than a third.
    """

    own: list[KnowledgeLine]
    pool: list[KnowledgeLine]
    held_back: Mapping[str, int] = field(default_factory=dict[str, int])


@dataclass(frozen=True, slots=True)
class ReadableRelation:
    """A relation between two records that a member may read."""

    source: str
    type: str
    target: str


@dataclass(frozen=True, slots=True)
class Whole:
    """A record with its sources and relations, limited to those that the member may read."""

    line: KnowledgeLine
    cites: tuple[str, ...]
    joined: tuple[ReadableRelation, ...]


@dataclass(frozen=True, slots=True)
class Worksheet:
    """Records to reflect on, the latest first.

    Attributes:
        related: Records within two relations of the experiences.
        kept: Beliefs that a language model derived, already stored.
    """

    experiences: tuple[Record, ...]
    related: tuple[Record, ...]
    reflections: tuple[Record, ...]
    beliefs: tuple[Record, ...]
    kept: tuple[StoredKnowledge, ...] = ()

    def parts(self) -> tuple[tuple[Record, ...], ...]:
        return self.experiences, self.related, self.reflections, self.beliefs


async def store(desk: Desk, knowledge: Knowledge) -> StoredKnowledge:
    """Store a new record in a member's own memory, and share it if its confidence suffices.

    No existing record is changed: an equal title makes a second record, and an exact repeat (all
    arguments equal, the first record unchanged since) is reported and adds nothing. A belief is
    replaced only by ``supersedes``. Record, citations and superseding are one transaction.

    Raises:
        InvalidRequest: A field breaks a bound of its kind, or a citation belongs neither to this
            member nor to the pool.
        NotFound: ``supersedes`` is not a record of this member.
        StoreConflict: ``supersedes`` is no longer active.
    """
    spec = desk.memory.kinds.kind(knowledge.kind)
    if knowledge.supersedes and spec.name != "Belief":
        raise InvalidRequest("supersedes", "is for beliefs")
    of_pool = await _pool_citations(desk, spec.name, knowledge)
    pool_ids = {cite.id for cite in of_pool}
    own_cites = tuple(id_ for id_ in knowledge.cites if id_ not in pool_ids)
    reference, existing = await _reference(desk, knowledge)
    near = await _similar_beliefs(desk.memory, knowledge) if spec.name == "Belief" else ()
    warnings: tuple[str, ...] = ()
    if existing:
        record = existing
        if knowledge.supersedes:
            await _supersede_copy(desk, knowledge.supersedes)
    else:
        if knowledge.supersedes:
            [old] = await desk.memory.records.get([knowledge.supersedes])
            knowledge = replace(knowledge, supersedes=old.id)
        saved = await _save_new(desk, knowledge, reference, own_cites, of_pool)
        record = saved.record
        warnings = saved.warnings
        if knowledge.supersedes:
            await _supersede_copy(desk, knowledge.supersedes)
    copy = await _share_if_sure(desk, knowledge, record)
    if copy and of_pool:
        async with desk.pool() as pool:
            await saw(desk, pool, [cite.id for cite in of_pool], applied=True)
    return StoredKnowledge(
        record,
        copy,
        near=tuple(id_ for id_ in near if id_ != record.id),
        repeat=existing is not None,
        warnings=warnings,
    )


async def _pool_citations(desk: Desk, kind: str, knowledge: Knowledge) -> list[PoolCite]:
    """Return the citations of and relations to records of the pool, checked against the pack."""
    named = [*knowledge.cites, *(relation.target for relation in knowledge.relations)]
    async with desk.pool() as pool:
        rows = await pool.records.pool.shared(named)
        readable = {id_ for id_, shared in rows.items() if shared.state == "shared"}
        for relation in knowledge.relations:
            if relation.target in readable:
                [target] = await pool.records.get([relation.target])
                desk.memory.kinds.relation(relation.type, kind, target.kind)
    citations = [PoolCite(id_) for id_ in knowledge.cites if id_ in readable]
    return citations + [
        PoolCite(relation.target, relation.type, relation.properties)
        for relation in knowledge.relations
        if relation.target in readable
    ]


async def _reference(desk: Desk, knowledge: Knowledge) -> tuple[str, Record | None]:
    """Return the reference to store the knowledge under, and the record stored there already.

    The reference is a keyed digest of all arguments, so an exact repeat, or a call retried after a
    crash, finds its record. If that record was superseded, archived or changed since, the next
    number of the series is used.
    """
    stated = json.dumps(
        [
            knowledge.kind,
            knowledge.title,
            content_hash(knowledge.content),
            knowledge.confidence,
            knowledge.domain,
            dict(knowledge.fields),
            sorted(knowledge.cites),
            sorted(
                [r.type, r.target, json.dumps(dict(r.properties), sort_keys=True)]
                for r in knowledge.relations
            ),
            knowledge.supersedes,
            knowledge.private,
            sorted(knowledge.tags),
        ],
        sort_keys=True,
        ensure_ascii=False,
    )
    digest = hmac.new(desk.squad.key, stated.encode(), hashlib.sha256).hexdigest()[:32]
    reference = ""
    for number in range(_REPEATS):
        reference = f"memory_store:{digest}:{number}"
        id_ = record_id_of(desk.me.entity.group, reference)
        record = (await desk.memory.records.find([id_])).get(id_)
        if record is None:
            return reference, None
        if record.version == 1 and record.state not in ("superseded", "archived"):
            return reference, record
    raise InvalidRequest("content", f"was stored and replaced {_REPEATS} times; say what is new")


async def _save_new(
    desk: Desk,
    knowledge: Knowledge,
    reference: str,
    own_cites: tuple[str, ...],
    of_pool: Sequence[PoolCite],
) -> Saved:
    spec = desk.memory.kinds.kind(knowledge.kind)
    stated: dict[str, JSON] = {
        "confidence": knowledge.confidence,
        "domain": knowledge.domain or None,
    }
    fields = dict(knowledge.fields)
    fields |= {
        name: value for name, value in stated.items() if value is not None and name in spec.fields
    }
    if spec.name == "Belief":
        fields.setdefault("source_type", "experience")
    pool_ids = {cite.id for cite in of_pool}
    draft = RecordGiven(
        spec.name,
        knowledge.title or " ".join(knowledge.content.split())[:120],
        knowledge.content,
        fields=fields,
        tags=(*knowledge.tags, PRIVATE) if knowledge.private else knowledge.tags,
        cites=own_cites or None,
        relations=tuple(
            relation for relation in knowledge.relations if relation.target not in pool_ids
        ),
        ref=reference,
    )
    records = desk.memory.records

    def complete(rows: RecordRows, saved: Sequence[Saved]) -> None:
        new = saved[0]
        if new.change != "created":  # the same call ran twice at once
            return
        rows.beside(lambda db: put_cites(db, new.record.id, of_pool))
        if knowledge.supersedes:
            records.moving(
                knowledge.supersedes,
                "superseded",
                expected="active",
                why=f"superseded by {new.record.id}",
            )(rows, saved)
            old = knowledge.supersedes
            id_ = relation_id(desk.me.entity.group, old, "EVOLVED_INTO", new.record.id)
            rows.relate(Relation(id_, old, "EVOLVED_INTO", new.record.id, desk.now()))

    return (await records.by("", complete).save([draft])).records[0]


async def _share_if_sure(desk: Desk, knowledge: Knowledge, record: Record) -> SharedCopy | None:
    sure = (
        knowledge.at_once
        and knowledge.confidence is not None
        and knowledge.confidence >= desk.rules.pool.share_from
    )
    if not sure or knowledge.private or record.kind in _NEVER_AUTOMATIC:
        return None
    if await rests_on_private(desk.memory, record):
        return None
    return await share(desk, record.id)


async def _supersede_copy(desk: Desk, old: str) -> None:
    """Supersede the pool's copy of a superseded belief; repeating this changes nothing."""
    async with desk.pool() as pool:
        copies = await pool.records.pool.copies(desk.me.id, [old])
        if old not in copies:
            return
        for copy in await pool.records.get([copies[old]]):
            if copy.state == "active":
                await pool.records.by(desk.me.id).move(
                    copy.id, "superseded", expected="active", why="superseded"
                )


async def query(
    desk: Desk,
    topic: str,
    *,
    min_confidence: float,
    include_shared: bool,
    kinds: Sequence[str],
    limit: int,
) -> KnowledgeAnswer:
    """Search a topic in the member's memory and in the pool; return both lists, best first.

    Near-copies in the pool are folded into one line. If several authors have matching records, no
    author fills more than a third of the pool's lines. The lines returned count as seen.
    """
    own = await _search(desk.memory, topic, kinds)
    own = [line for line in own if line.confidence >= min_confidence][:limit]
    pooled = await desk.memory.records.pool.cites([line.record.id for line in own])
    own = [_mark_withdrawn(line, pooled.get(line.record.id, ())) for line in own]
    if not include_shared:
        return KnowledgeAnswer(own, [])
    listed = {line.record.id for line in own}
    async with desk.pool() as pool:
        candidates = await _provenance(pool, await _search(pool, topic, kinds))
        readable = [
            line
            for line in candidates
            if _is_open(line)
            and line.confidence >= min_confidence
            and not (
                line.shared and line.shared.member == desk.me.id and line.shared.origin in listed
            )
        ]
        lines, held_back = balanced(fold_copies(readable), limit)
        await saw(desk, pool, [line.record.id for line in lines])
    return KnowledgeAnswer(own, lines, held_back)


def fold_copies(lines: Sequence[KnowledgeLine]) -> list[KnowledgeLine]:
    """Fold near-copies into one line, the most confident, at the rank of the best.

    Two records are near-copies if one has nearly all words of the other in the same order, and both
    have the same numbers and negations: "it is safe" folds neither with "it is not safe" nor with
    "it is unsafe".
    """
    groups: list[list[KnowledgeLine]] = []
    for line in lines:
        group = next((group for group in groups if _near_copies(group[0], line)), None)
        if group is None:
            groups.append([line])
        else:
            group.append(line)
    folded: list[KnowledgeLine] = []
    for group in groups:
        most_confident = max(group, key=lambda line: line.confidence)
        copies = tuple(
            f"{line.shared.member if line.shared else ''}:{line.record.id}"
            for line in group
            if line is not most_confident
        )
        folded.append(replace(most_confident, copies=copies))
    return folded


def _near_copies(first: KnowledgeLine, second: KnowledgeLine) -> bool:
    if first.record.kind != second.record.kind or first.opposed or second.opposed:
        return False
    words: list[list[str]] = [
        _WORD.findall(fold(line.record.summary or line.record.title)) for line in (first, second)
    ]
    shorter, longer = sorted(words, key=len)
    if len(shorter) < _FEWEST_COMPARED_WORDS and (
        fold(first.record.title) != fold(second.record.title)
    ):
        return False
    if _decisive_words(set(shorter)) != _decisive_words(set(longer)):
        return False
    rest = iter(longer)  # `in` consumes it, so the words must come in the same order
    in_order = all(word in rest for word in shorter)
    return in_order and len(set(shorter)) >= NEAR_COPY * len(set(longer))


def _decisive_words(words: set[str]) -> set[str]:
    """Return the negations and numbers, any of which changes what a sentence states."""
    return {word for word in words if word in _CHANGING or any(map(str.isdigit, word))}


def balanced(
    lines: Sequence[KnowledgeLine], limit: int
) -> tuple[list[KnowledgeLine], dict[str, int]]:
    """Select at most ``limit`` lines, best first, so that no author fills more than a third.

    An author gets at least one line, and at most half as many as all other authors together. A
    single author is not limited.

    Args:
        lines: Best first.
        limit: Number of lines returned at most.

    Returns:
        The lines, and by author the number of lines left out.
    """
    counts = Counter(line.shared.member if line.shared else "" for line in lines)
    total = sum(counts.values())
    caps = {
        author: limit if len(counts) == 1 else max(1, min(limit // 3, (total - count) // 2))
        for author, count in counts.items()
    }
    used: Counter[str] = Counter()
    held_back: Counter[str] = Counter()
    selected: list[KnowledgeLine] = []
    for line in lines:
        author = line.shared.member if line.shared else ""
        if used[author] >= caps[author]:
            held_back[author] += 1
        elif len(selected) < limit:
            used[author] += 1
            selected.append(line)
    return selected, dict(held_back)


async def shared_lines(
    app: App, entity: EntityId, text: str, limit: int
) -> list[tuple[str, PackLine]]:
    """Return what an entity's squad shares about a text, as ids and lines of a context pack.

    The list is empty if the entity is in no squad or the squad's file switches these lines off. The
    entity's own records are left out, and so are records below ``share_from``: what others doubt
    is no advice.
    """
    membership = await asyncio.to_thread(app.registry.squads.of_member, entity.name)
    if membership is None or not rules_of(membership[0]).pool.unasked:
        return []
    squad, me = membership
    least = rules_of(squad).pool.share_from
    async with app.memory(squad.pool, pool=True) as pool:
        candidates = await _provenance(pool, await _search(pool, text, ()))
    others = [
        line
        for line in candidates
        if line.shared
        and line.shared.state == "shared"
        and line.shared.member != me.id
        and line.confidence >= least
        and line.record.kind != "Task"
    ]
    lines, _ = balanced(fold_copies(others), limit)
    return [(line.record.id, _pack_line(line)) for line in lines]


def _pack_line(line: KnowledgeLine) -> PackLine:
    record = line.record
    member = line.shared.member if line.shared else ""
    opposed = (
        f"; opposed by {', '.join(each.member for each in line.opposed)}" if line.opposed else ""
    )
    text = f"{record.kind} of {member}, confidence {line.confidence:.2f}{opposed}: {record.summary}"
    return PackLine(bullet(text, record.id), fold(record.summary))


async def whole(desk: Desk, ids: Sequence[str]) -> list[Whole]:
    """Return records in full, the member's own before those of the pool.

    Records of the pool count as seen. A copy that waits for review is readable for reviewers and
    its author only.

    Raises:
        NotFound: One of the records does not exist or is not readable.
    """
    records = desk.memory.records
    own = {record.id: record for record in (await records.find(ids)).values()}
    async with desk.pool() as pool:
        shared_records = {record.id: record for record in (await pool.records.find(ids)).values()}
        knowledge_lines = [
            KnowledgeLine(record, confidence_of(record), 1.0) for record in shared_records.values()
        ]
        lines = [
            line
            for line in await _provenance(pool, knowledge_lines)
            if line.record.kind == "Agent"
            or _is_open(line)
            or (line.shared and (desk.is_reviewer or line.shared.member == desk.me.id))
        ]
        if len(own) + len(lines) < len(set(ids)):
            raise NotFound()
        pooled = [line.record.id for line in lines]
        graph = await shown(pool)
        cites = await pool.records.cites(pooled)
        joined = [
            relation
            for relation in graph.relations
            if relation.source in graph.records and relation.target in graph.records
        ]
        answers: list[Whole] = []
        for line in lines:
            pool_cites = cites.get(line.record.id, ())
            readable = [cite.id for cite in pool_cites if cite.id in graph.records]
            answers.append(_whole(line, readable, joined))
        await saw(desk, pool, [line.record.id for line in lines if _is_open(line)])
    cites = await records.cites([*own])
    of_pool = await records.pool.cites([*own])
    joined = await records.relations([*own])
    for id_, record in own.items():
        sources = [*cites.get(id_, ()), *of_pool.get(id_, ())]
        line = _mark_withdrawn(
            KnowledgeLine(record, confidence_of(record), 1.0), of_pool.get(id_, ())
        )
        answers.insert(0, _whole(line, [cite.id for cite in sources if not cite.gone], joined))
    return answers


def _whole(line: KnowledgeLine, cites: Sequence[str], joined: Sequence[Relation]) -> Whole:
    ends = [relation for relation in joined if line.record.id in (relation.source, relation.target)]
    return Whole(
        line,
        tuple(cites),
        tuple(ReadableRelation(end.source, end.type, end.target) for end in ends),
    )


async def _provenance(pool: Memory, lines: Sequence[KnowledgeLine]) -> list[KnowledgeLine]:
    """Complete lines of the pool with author, confidence, sources, uses and opposition."""
    rows = pool.records.pool
    ids = [line.record.id for line in lines]
    shared = await rows.shared(ids)
    roots = await rows.roots(ids)
    uses = await rows.uses(ids)
    stances = await rows.stances(ids)
    cites = await pool.records.cites(ids)
    against = [stance for listed in stances.values() for stance in listed if stance.opposes]
    opponents = await rows.shared([stance.record for stance in against])
    complete: list[KnowledgeLine] = []
    for line in lines:
        id_ = line.record.id
        own_row = shared.get(id_)
        complete.append(
            replace(
                line,
                confidence=own_row.confidence if own_row else line.confidence,
                shared=own_row,
                roots=count_roots(root.digest for root in roots.get(id_, ())),
                uses=uses.get(id_),
                withdrawn=tuple(cite.id for cite in cites.get(id_, ()) if cite.gone),
                opposed=_opposition(stances.get(id_, ()), opponents),
            )
        )
    return complete


def _opposition(
    stances: Sequence[Stance], shared: Mapping[str, PoolRecord]
) -> tuple[Opposition, ...]:
    return tuple(
        Opposition(
            stance.record,
            shared[stance.record].member,
            shared[stance.record].own_confidence,
            stance.relation,
        )
        for stance in stances
        if stance.opposes and stance.record in shared
    )


def _is_open(line: KnowledgeLine) -> bool:
    """Return whether all members may read a record of the pool."""
    return line.shared is not None and line.shared.state == "shared"


async def beliefs(desk: Desk, domain: str, least: float) -> tuple[list[Record], list[Record]]:
    """Return the member's own active beliefs and those that others share, the surest first.

    Those of others count as seen.

    Args:
        desk: The member's.
        domain: Only beliefs of this domain, regardless of case; all if empty.
        least: The least confidence, 0 to 1.
    """
    async with desk.pool() as pool:
        shared = await pool.records.pool.shared()
        readable = (await shown(pool)).records
        others = [
            record
            for id_, record in readable.items()
            if id_ in shared and shared[id_].member != desk.me.id
        ]
        seen = _active_beliefs(others, domain, least)
        await saw(desk, pool, [record.id for record in seen])
    own = (await desk.memory.records.graph()).records
    return _active_beliefs([*own.values()], domain, least), seen


def _active_beliefs(records: Sequence[Record], domain: str, least: float) -> list[Record]:
    active = [
        record
        for record in records
        if record.kind == "Belief" and record.state == "active" and confidence_of(record) >= least
    ]
    wanted = domain.strip().casefold()
    matching = [
        record
        for record in active
        if not wanted or str(record.fields.get("domain") or "").strip().casefold() == wanted
    ]
    return sorted(matching, key=confidence_of, reverse=True)


async def ranked(desk: Desk, request: RankRequest) -> Ranking:
    """Rank the records that the squad shares by their relations in the pool.

    Copies that wait for review are left out.
    """
    async with desk.pool() as pool:
        graph = await pool.records.graph()
        shared = await pool.records.pool.shared()
        kinds = frozenset(pool.kinds.kind(name).name for name in request.kinds)
    held = {
        id_: record
        for id_, record in graph.records.items()
        if id_ in shared and shared[id_].state == "shared"
    }
    return cut(
        await asyncio.to_thread(ranking, replace(graph, records=held), request, kinds or None),
        request.limit,
    )


async def worksheet(desk: Desk) -> Worksheet:
    """Return a member's recent experiences and related records, last reflections and beliefs."""
    records = desk.memory.records
    experiences = await _latest(desk.memory, "Experience", _EXPERIENCES)
    graph = await records.graph()
    near = {experience.id for experience in experiences}
    for _ in range(2):
        reached: set[str] = set()
        for relation in graph.relations:
            ends = {relation.source, relation.target}
            if ends & near:
                reached |= ends
        near |= reached
    seen = {experience.id for experience in experiences}
    related = [graph.records[id_] for id_ in near - seen if id_ in graph.records][:_NEIGHBOURS]
    beliefs = [
        belief
        for belief in await _latest(desk.memory, "Belief", _NEIGHBOURS)
        if belief.state == "active"
    ]
    reflections = await _latest(desk.memory, "Reflection", _REFLECTIONS)
    return Worksheet(tuple(experiences), tuple(related), tuple(reflections), tuple(beliefs))


async def _latest(memory: Memory, kind: str, limit: int) -> list[Record]:
    page = await memory.records.list(
        RecordQuery(kinds=(kind,), order=("-created_at",), limit=limit)
    )
    return list(page.records)


async def _search(memory: Memory, topic: str, kinds: Sequence[str]) -> list[KnowledgeLine]:
    """Return the records about a topic, best first, without superseded ones.

    A record is about it if its vector is within the embedder's threshold for records, or if it has
    at least half of the topic's content words.
    """
    answer = await memory.finding.search(
        RecordSearch(topic, kinds=tuple(kinds), limit=_CANDIDATES, min_similarity=-1.0)
    )
    results = {result.node.uuid: result for result in answer.results}
    records = await memory.records.find(results)
    threshold = least_similarity(memory.finding.model) or SEMANTIC_LEAST
    wanted = content_words(topic)
    lines: list[KnowledgeLine] = []
    for id_, result in results.items():
        record = records.get(id_)
        if record is None or record.state == "superseded":
            continue
        shared_words = wanted & content_words(_text_of(record))
        if result.semantic >= threshold or (wanted and 2 * len(shared_words) >= len(wanted)):
            lines.append(KnowledgeLine(record, confidence_of(record), result.score))
    return lines


def _text_of(record: Record) -> str:
    """Return a record's title, summary and text fields, separated by spaces."""
    texts = [record.title, record.summary]
    for value in record.fields.values():
        values = value if isinstance(value, list | tuple) else [value]
        texts += [item for item in values if isinstance(item, str)]
    return " ".join(texts)


async def _similar_beliefs(memory: Memory, knowledge: Knowledge) -> tuple[str, ...]:
    wanted = RecordSearch(knowledge.content, kinds=("Belief",), limit=5, min_similarity=NEAR)
    near = await memory.finding.search(wanted)
    return tuple(
        result.node.uuid for result in near.results if result.node.uuid != knowledge.supersedes
    )


def _mark_withdrawn(line: KnowledgeLine, cites: Sequence[PoolCite]) -> KnowledgeLine:
    return replace(line, withdrawn=tuple(cite.id for cite in cites if cite.gone))
