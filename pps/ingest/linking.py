"""Plan the records, links and relations of an entity's jobs into a batch of graph changes.

A ``[[link]]`` stays with its turn for good. When a node with the linked name appears, each text
that links to it gets its relation (of a record) or its mention (of any other turn), in whatever
order they came.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import datetime

from pps.core.ids import is_uuid, stable_id
from pps.core.record_values import Record
from pps.core.text import fold, summary_of, title_of
from pps.core.time import now
from pps.core.values import JSON, Fact, Node, RecordDraft, RelationDraft, Skipped, Turn
from pps.ingest.batch import Batch, TurnOutcome
from pps.ingest.drafts import TYPED_SOURCE
from pps.isolation.client import IsolatedGraphitiClient
from pps.journal.entries import Job
from pps.journal.journal import Journal
from pps.journal.record_rows import Pending
from pps.store.graph_rows import RECORD_SOURCE

REFERENCES = "references"
CHILD_OF = "child_of"
FROM_TEXT = "ingestion"
"""The ``created_by`` of a relation that a text's links or parent made."""
PERSON = "person"
"""The ``created_by`` of a relation without an actor."""
_PLAIN = "Thing"
_RELATIONS_OF_A_RECORD = 2_000


def record_id(group: str, turn: str) -> str:
    """Return the uuid of the node of a turn's record, unless the record became an existing node."""
    return stable_id(group, "record", turn)


def plan_record(
    batch: Batch, turn: Turn, draft: RecordDraft, links: Sequence[str], outcome: TurnOutcome
) -> str:
    """Plan a turn's record with its parent and links into the batch; return its uuid."""
    uuid = batch.records.get(turn.uuid) or _record_uuid(batch, turn, draft)
    known = batch.known.get(uuid)
    if known is None:
        outcome.nodes += 1
    title = draft.title or (known.name if known else title_of(turn.content))
    node = _node(batch, known, uuid, title, turn, draft)
    if node != known:
        batch.put_node(node)
    batch.records[turn.uuid] = uuid
    batch.record_nodes.add(uuid)
    batch.mention(turn.uuid, [uuid])
    targets = _plan_links(batch, turn, uuid, links, outcome)
    _close_dropped(batch, turn, uuid, targets)
    _plan_parent(batch, turn, uuid, draft.parent, outcome)
    outcome.record = uuid
    outcome.title = title
    return uuid


def plan_mentions(batch: Batch, turn: Turn, links: Sequence[str], outcome: TurnOutcome) -> None:
    """Plan the links of a turn that is no record: it mentions the nodes with those titles."""
    for title in links:
        target = batch.node_named(title)
        if target is None:
            outcome.skipped.append(_waits(title))
        else:
            batch.mention(turn.uuid, [target])


def plan_relation(batch: Batch, relation: RelationDraft, turn: Turn) -> tuple[str, bool]:
    """Plan a text's relation between two known nodes, by id; return its uuid and whether it is new.

    A relation that has ended and holds again is new.
    """
    uuid = relation_id(batch.entity.group, relation.source, relation.relation_type, relation.target)
    known = batch.fact(uuid)
    holds = known is not None and known.invalid_at is None
    fact = batch.support(_fact(batch, uuid, relation, turn.occurred_at, FROM_TEXT), turn.uuid)
    if fact != known:
        batch.put_fact(fact)
    return uuid, not holds


def plan_made(batch: Batch, made: Pending) -> None:
    """Plan a relation that a request made, as the journal has it; one that ended is closed."""
    relation = made.relation
    if not {relation.source, relation.target} <= batch.known.keys():
        return
    weight = relation.properties.get("weight")
    draft = RelationDraft(
        relation.source,
        relation.target,
        relation.type,
        float(weight) if isinstance(weight, int | float) else 1.0,
        {name: value for name, value in relation.properties.items() if name != "weight"},
    )
    known = batch.fact(relation.id)
    fact = _fact(batch, relation.id, draft, relation.created_at, relation.actor or PERSON)
    if made.ended_at:
        fact = replace(fact, invalid_at=made.ended_at, expired_at=made.ended_at)
    if fact != known:
        batch.put_fact(fact)


def relation_id(group: str, source: str, relation: str, target: str) -> str:
    """Return the uuid of a relation's fact, stable for the same arguments."""
    return stable_id(group, "relation", source, relation, target)


def _fact(batch: Batch, uuid: str, relation: RelationDraft, since: datetime, maker: str) -> Fact:
    """Return a relation as a fact; one that holds keeps its ``valid_at`` and ``created_by``."""
    known = batch.fact(uuid)
    holds = known is not None and known.invalid_at is None
    properties: dict[str, JSON] = {"properties": relation.properties} if relation.properties else {}
    names = [
        batch.known[end].name if end in batch.known else ""
        for end in (relation.source, relation.target)
    ]
    return Fact(
        uuid=uuid,
        subject=relation.source,
        object=relation.target,
        relation=relation.relation_type,
        text=f"{names[0]} {fold(relation.relation_type.replace('_', ' '))} {names[1]}",
        created_at=known.created_at if known else batch.at,
        kind="relation",
        episodes=known.episodes if known else (),
        valid_at=known.valid_at if known and holds else since,
        attributes={
            "weight": relation.weight,
            "created_by": known.attributes.get("created_by", maker) if known and holds else maker,
            **properties,
        },
    )


def _record_uuid(batch: Batch, turn: Turn, draft: RecordDraft) -> str:
    """Return the uuid of a new record: that of a plain node with its title, else its own."""
    own = record_id(batch.entity.group, turn.uuid)
    if draft.pack:
        return own
    named = batch.node_named(draft.title or title_of(turn.content))
    if own in batch.known or named is None or named in batch.record_nodes:
        return own
    return named if batch.known[named].kind == _PLAIN else own


def draft_of(record: Record) -> RecordDraft:
    """Return the draft of a record whose kind a pack defines, for the payload of its turn."""
    return RecordDraft(
        record.title,
        record.kind,
        "",
        record.fields,
        record.pack,
        record.summary,
        record.status,
        record.state,
    )


def typed_node(known: Node, tags: tuple[str, ...], draft: RecordDraft) -> Node:
    """Return the node of a record whose kind a pack defines; aliases come from the known node."""
    state: dict[str, JSON] = {"state": draft.state} if draft.state else {}
    # A kind may have its own field `source`, which stays readable; then the filter reads the mark.
    mark = RECORD_SOURCE if "source" in draft.attributes else "source"
    return replace(
        known,
        name=draft.title,
        kind=draft.kind,
        summary=draft.summary,
        tags=tags,
        attributes={**draft.attributes, "status": draft.status, **state, mark: TYPED_SOURCE},
    )


def _node(
    batch: Batch, known: Node | None, uuid: str, title: str, turn: Turn, draft: RecordDraft
) -> Node:
    if draft.pack:
        return typed_node(known or Node(uuid, title, batch.at), turn.tags, draft)
    before: dict[str, JSON] = dict(known.attributes) if known else {}
    # A plain node that becomes a record keeps its tags; a record has those of its text.
    others = known.tags if known and uuid not in batch.record_nodes else ()
    tags = tuple(dict.fromkeys((*others, *turn.tags)))
    source: dict[str, JSON] = {
        "source": turn.source,
        **({"source_ref": turn.source_ref} if turn.source_ref else {}),
    }
    return Node(
        uuid=uuid,
        name=title,
        created_at=known.created_at if known else batch.at,
        kind=draft.kind,
        summary=summary_of(turn.content),
        aliases=known.aliases if known else (),
        tags=tags,
        attributes={**before, **draft.attributes, **source},
    )


def _plan_links(
    batch: Batch, turn: Turn, uuid: str, links: Sequence[str], outcome: TurnOutcome
) -> set[str]:
    targets: set[str] = set()
    for title in links:
        target = batch.node_named(title)
        if target is None:
            outcome.skipped.append(_waits(title))
        elif target != uuid and target not in targets:
            targets.add(target)
            _, new = plan_relation(batch, RelationDraft(uuid, target, REFERENCES), turn)
            outcome.edges += new
    return targets


def _plan_parent(batch: Batch, turn: Turn, uuid: str, parent: str, outcome: TurnOutcome) -> None:
    if not parent:
        return
    target = parent if is_uuid(parent) and parent in batch.known else batch.node_named(parent)
    if target is None or target == uuid:
        outcome.skipped.append(
            Skipped("parent", "no other record of this memory has that id or title")
        )
        return
    _, new = plan_relation(batch, RelationDraft(uuid, target, CHILD_OF), turn)
    outcome.edges += new


def _close_dropped(batch: Batch, turn: Turn, uuid: str, targets: set[str]) -> None:
    """Close the references of a text's earlier version that its present one does not make."""
    for fact in [*batch.stored.values()]:
        latest = batch.fact(fact.uuid) or fact
        if (
            latest.subject == uuid
            and latest.relation == REFERENCES
            and latest.attributes.get("created_by") == FROM_TEXT
            and latest.invalid_at is None
            and latest.episodes == (turn.uuid,)
            and latest.object not in targets
        ):
            batch.put_fact(replace(latest, invalid_at=batch.at, expired_at=batch.at))


def _waits(title: str) -> Skipped:
    return Skipped(f"[[{title}]]", "nothing has that title yet; it is linked when it appears")


class Linker:
    """Plans records and links into the pipeline's batches."""

    def __init__(self, client: IsolatedGraphitiClient, journal: Journal) -> None:
        self._entity = client.entity
        self._client = client
        self._journal = journal

    def names(self, jobs: Iterable[Job]) -> list[str]:
        """Return the titles, links and parents of the jobs that may be names of nodes."""
        names: list[str] = []
        for job in jobs:
            names += job.payload.links
            record = job.payload.record
            if record:
                names.append(record.title or title_of(job.turn.content))
                if not is_uuid(record.parent):
                    names.append(record.parent)
        return [name for name in names if fold(name)]

    def ids(self, jobs: Iterable[Job]) -> list[str]:
        """Return the uuids of the nodes that the jobs' records, and their parents, may have."""
        records = [job for job in jobs if job.payload.record]
        own = [record_id(self._entity.group, job.turn.uuid) for job in records]
        parents = [job.payload.record.parent for job in records if job.payload.record]
        return own + [parent for parent in parents if is_uuid(parent)]

    async def load(self, known: Batch, jobs: Sequence[Job]) -> None:
        """Load the jobs' records, their relations and the uuids of known records into a batch."""
        turns = [job.turn.uuid for job in jobs if job.payload.record]
        if not turns:
            return
        records = await self._journal.records.of_turns(turns)
        missing = [node for node in records.values() if node not in known.known]
        known.known.update((node.uuid, node) for node in await self._client.nodes(missing))
        known.records = {turn: node for turn, node in records.items() if node in known.known}
        known.record_nodes = set(await self._journal.records.of_nodes(list(known.known)))
        if known.records:
            nodes = list(known.records.values())
            facts = await self._client.facts_of_nodes(nodes, _RELATIONS_OF_A_RECORD)
            known.stored.update((fact.uuid, fact) for fact in facts if fact.kind == "relation")

    def plan(self, batch: Batch, job: Job, outcome: TurnOutcome) -> None:
        """Plan a job's record, or the mentions by its links."""
        payload = job.payload
        if payload.record:
            plan_record(batch, job.turn, payload.record, payload.links, outcome)
        elif payload.links:
            plan_mentions(batch, job.turn, payload.links, outcome)
        if payload.record or payload.links:
            batch.links[job.turn.uuid] = payload.links

    async def is_linked_to(self, batch: Batch) -> bool:
        """Tell whether any text, of the batch or before, links to a name that the batch adds."""
        if not batch.fresh:
            return False
        own = {fold(title) for titles in batch.links.values() for title in titles}
        return not own.isdisjoint(batch.fresh) or bool(
            await self._journal.records.linking(list(batch.fresh))
        )

    async def waiting(self, fresh: Iterable[str]) -> Batch | None:
        """Return a batch with what texts say that link to these folded names; None without any.

        It has the relations that are missing, and the mentions, also those that exist.
        """
        rows = await self._journal.records.linking(list(fresh))
        if not rows:
            return None
        linking_turns = await self._journal.turns([turn for _, turn in rows])
        turns = {turn.uuid: turn for turn in linking_turns}
        batch = await self._load_links(rows, turns)
        for folded, uuid in rows:
            source = batch.records.get(uuid)
            target = batch.names.get(folded)
            if source is None and target is not None:
                batch.mention(uuid, [target])
            elif source is not None and target is not None and source != target:
                plan_relation(batch, RelationDraft(source, target, REFERENCES), turns[uuid])
        return batch if batch.facts or batch.mentions else None

    async def _load_links(self, rows: Sequence[tuple[str, str]], turns: dict[str, Turn]) -> Batch:
        """Return a batch with the nodes of the names, the linking records, and their relations."""
        batch = Batch(self._entity, now())
        names = await self._journal.resolve([folded for folded, _ in rows])
        records = await self._journal.records.of_turns(list(turns))
        nodes = await self._client.nodes(list(dict.fromkeys([*names.values(), *records.values()])))
        batch.known = {node.uuid: node for node in nodes}
        batch.names = {folded: uuid for folded, uuid in names.items() if uuid in batch.known}
        batch.records = {turn: node for turn, node in records.items() if node in batch.known}
        both = [
            (turn, name) for name, turn in rows if turn in batch.records and name in batch.names
        ]
        pairs = [(batch.records[turn], batch.names[name]) for turn, name in both]
        if pairs:
            stored = await self._client.facts_between(list(dict.fromkeys(pairs)))
            batch.stored = {fact.uuid: fact for fact in stored}
        return batch
