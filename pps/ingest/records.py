"""Records: a text with a title, a kind, tags, a parent and links becomes a node with typed relations.

Pure: reads and changes only the batch. A record's id is made of its source turn, so that planning it again
changes the same node; a plain node of its name, which facts or links of others made, becomes the record.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from pps.core.ids import is_uuid, stable_id
from pps.core.text import fold
from pps.core.values import JSON, Fact, Node, RecordDraft, Skipped, Turn
from pps.ingest.batch import Batch, TurnOutcome
from pps.ingest.steps import summary_of, title_of

REFERENCES, CHILD_OF = "references", "child_of"
FROM_TEXT = "ingestion"
"""Who a relation is ``created_by`` when a text's own links or parent made it."""
_PLAIN = "Thing"


@dataclass(frozen=True, slots=True)
class Relation:
    """A typed edge to be made between two nodes by id."""

    source: str
    target: str
    relation_type: str
    weight: float = 1.0
    created_by: str = FROM_TEXT


def record_id(group: str, turn: str) -> str:
    """Return the uuid of the record that a turn is the source of, unless it became a node that was there."""
    return stable_id(group, "record", turn)


def plan_record(batch: Batch, turn: Turn, draft: RecordDraft, links: Sequence[str], outcome: TurnOutcome) -> str:
    """Plan a turn's record with its parent and links into the batch; return its uuid."""
    uuid = batch.records.get(turn.uuid) or _place(batch, turn, draft)
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
    """Plan the links of a turn that is no record: it mentions the nodes of those titles."""
    for title in links:
        target = batch.node_named(title)
        if target is None:
            outcome.skipped.append(_waits(title))
        else:
            batch.mention(turn.uuid, [target])


def plan_relation(batch: Batch, relation: Relation, turn: Turn | None = None) -> tuple[str, bool]:
    """Plan a relation between two known nodes; return its uuid and whether it did not hold before."""
    uuid = stable_id(batch.entity.group, "relation", relation.source, relation.relation_type, relation.target)
    known = batch.fact(uuid)
    holds = known is not None and known.invalid_at is None
    maker = known.attributes.get("created_by", relation.created_by) if known and holds else relation.created_by
    attributes: dict[str, JSON] = {"weight": relation.weight, "created_by": maker}
    since = turn.occurred_at if turn else batch.at
    text = f"{_name(batch, relation.source)} {_words(relation.relation_type)} {_name(batch, relation.target)}"
    fact = Fact(
        uuid=uuid,
        subject=relation.source,
        object=relation.target,
        relation=relation.relation_type,
        text=text,
        created_at=known.created_at if known else batch.at,
        kind="relation",
        episodes=known.episodes if known else (),
        valid_at=known.valid_at if known and holds else since,
        attributes=attributes,
    )
    fact = batch.support(fact, turn.uuid) if turn else fact
    if fact != known:
        batch.put_fact(fact)
    return uuid, not holds


def _place(batch: Batch, turn: Turn, draft: RecordDraft) -> str:
    """Return the uuid of a new record: that of a plain node of its title, else one of its own."""
    own = record_id(batch.entity.group, turn.uuid)
    named = batch.node_named(draft.title or title_of(turn.content))
    if own in batch.known or named is None or named in batch.record_nodes:
        return own
    return named if batch.known[named].kind == _PLAIN else own


def _node(batch: Batch, known: Node | None, uuid: str, title: str, turn: Turn, draft: RecordDraft) -> Node:
    before: dict[str, JSON] = dict(known.attributes) if known else {}
    # A plain node that becomes a record keeps its tags; a record has those of its text.
    others = known.tags if known and uuid not in batch.record_nodes else ()
    tags = tuple(dict.fromkeys((*others, *turn.tags)))
    source: dict[str, JSON] = {"source": turn.source, **({"source_ref": turn.source_ref} if turn.source_ref else {})}
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


def _plan_links(batch: Batch, turn: Turn, uuid: str, links: Sequence[str], outcome: TurnOutcome) -> set[str]:
    targets: set[str] = set()
    for title in links:
        target = batch.node_named(title)
        if target is None:
            outcome.skipped.append(_waits(title))
        elif target != uuid and target not in targets:
            targets.add(target)
            _, new = plan_relation(batch, Relation(uuid, target, REFERENCES), turn)
            outcome.edges += new
    return targets


def _plan_parent(batch: Batch, turn: Turn, uuid: str, parent: str, outcome: TurnOutcome) -> None:
    if not parent:
        return
    target = parent if is_uuid(parent) and parent in batch.known else batch.node_named(parent)
    if target is None or target == uuid:
        outcome.skipped.append(Skipped("parent", "no other record of this memory has that id or title"))
        return
    _, new = plan_relation(batch, Relation(uuid, target, CHILD_OF), turn)
    outcome.edges += new


def _close_dropped(batch: Batch, turn: Turn, uuid: str, targets: set[str]) -> None:
    """End the references that this text made before and makes no more."""
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


def _name(batch: Batch, uuid: str) -> str:
    return batch.known[uuid].name if uuid in batch.known else ""


def _words(relation_type: str) -> str:
    return fold(relation_type.replace("_", " "))
