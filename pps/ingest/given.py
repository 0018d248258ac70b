"""*given* extraction: nodes and facts that the calling agent passes are resolved and planned.

Pure: reads and changes only the batch. Names resolve exactly (case, space and Unicode folded) inside
the entity; facts keep their supporting episodes; a fact that replaces others closes them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

from pps.core.ids import is_uuid, stable_id
from pps.core.text import fold
from pps.core.time import iso
from pps.core.values import Fact, FactDraft, Node, NodeDraft, Skipped, Turn
from pps.ingest.batch import Batch, TurnOutcome
from pps.ingest.support import said_by, taken_back


def plan_given(batch: Batch, turn: Turn, nodes: Sequence[NodeDraft], facts: Sequence[FactDraft]) -> TurnOutcome:
    """Plan one turn's nodes and facts into the batch and say what became of them."""
    outcome = TurnOutcome()
    mentioned = [plan_node(batch, draft, outcome) for draft in nodes]
    supported: list[str] = []
    for draft in facts:
        fact = plan_fact(batch, turn, draft, outcome)
        supported.append(fact.uuid)
        mentioned += [fact.subject, fact.object]
    batch.mention(turn.uuid, mentioned)
    batch.put_episode(turn, supported)
    return outcome


def plan_node(batch: Batch, draft: NodeDraft, outcome: TurnOutcome) -> str:
    """Make or enrich the node that a draft names; return its uuid."""
    uuid = batch.node_named(draft.name)
    if uuid is None:
        uuid = batch.new_node_id(draft.name)
        outcome.nodes += 1
        aliases = _free_aliases(batch, uuid, draft, outcome)
        batch.put_node(_new_node(batch, uuid, draft, aliases))
        return uuid
    known = batch.known[uuid]
    aliases = _free_aliases(batch, uuid, draft, outcome)
    changed = _enriched(known, draft, aliases)
    if changed != known:
        batch.put_node(changed)
    return uuid


def _new_node(batch: Batch, uuid: str, draft: NodeDraft, aliases: tuple[str, ...]) -> Node:
    return Node(
        uuid=uuid,
        name=draft.name.strip(),
        created_at=batch.at,
        kind=draft.kind,
        summary=draft.summary,
        aliases=aliases,
        tags=draft.tags,
        attributes=draft.attributes,
    )


def _enriched(known: Node, draft: NodeDraft, aliases: tuple[str, ...]) -> Node:
    return replace(
        known,
        kind=draft.kind if known.kind == "Thing" else known.kind,
        summary=draft.summary or known.summary,
        aliases=tuple(dict.fromkeys((*known.aliases, *aliases))),
        tags=tuple(dict.fromkeys((*known.tags, *draft.tags))),
        attributes={**known.attributes, **draft.attributes},
    )


def _free_aliases(batch: Batch, uuid: str, draft: NodeDraft, outcome: TurnOutcome) -> tuple[str, ...]:
    """Return the aliases that name nothing else; a taken one is reported, never stolen."""
    free: list[str] = []
    for alias in draft.aliases:
        owner = batch.node_named(alias)
        if owner not in (None, uuid):
            outcome.skipped.append(Skipped(f"alias {alias!r}", "names another node already"))
        elif fold(alias) != fold(draft.name):
            free.append(alias.strip())
    return tuple(free)


def plan_fact(batch: Batch, turn: Turn, draft: FactDraft, outcome: TurnOutcome) -> Fact:
    """Make the fact that a draft states, or add this turn to its supports; close what it replaces."""
    subject = batch.node_named(draft.subject) or plan_node(batch, NodeDraft(draft.subject), outcome)
    object_ = batch.node_named(draft.object) or plan_node(batch, NodeDraft(draft.object), outcome)
    text = said(draft)
    uuid = fact_id(batch, draft, subject, object_, text)
    fact = batch.fact(uuid)
    if fact and _ended_before(fact, draft, turn):
        draft = replace(draft, valid_at=turn.occurred_at)
        uuid = fact_id(batch, draft, subject, object_, text)
        fact = batch.fact(uuid)
    if fact is None or taken_back(fact):
        outcome.facts += draft.kind == "fact"
        outcome.edges += 1
    if fact is None:
        fact = _new_fact(batch, draft, (uuid, subject, object_, turn.uuid), text)
    elif taken_back(fact):
        fact = replace(said_by(fact, turn.uuid), invalid_at=draft.invalid_at)
    elif draft.invalid_at and fact.invalid_at is None:
        fact = replace(fact, invalid_at=draft.invalid_at)
    fact = batch.support(fact, turn.uuid)
    batch.put_fact(fact)
    close_replaced(batch, fact, draft.invalidates, fact.valid_at or turn.occurred_at, outcome)
    return fact


def said(draft: FactDraft) -> str:
    """Return the sentence of a fact: its own, or subject, relation and object."""
    return draft.text.strip() or f"{draft.subject} {draft.relation.replace('_', ' ').lower()} {draft.object}"


def _ended_before(fact: Fact, draft: FactDraft, turn: Turn) -> bool:
    """Tell whether an undated statement is made anew of a fact that has ended: it holds again."""
    ended = fact.invalid_at is not None and fact.invalid_at <= turn.occurred_at
    return ended and draft.valid_at is None and draft.invalid_at is None and turn.uuid not in fact.episodes


def fact_id(batch: Batch, draft: FactDraft, subject: str, object_: str, text: str) -> str:
    """Return the uuid5 of what a fact says and since when: the same statement is one fact."""
    since = iso(draft.valid_at) if draft.valid_at else ""
    return stable_id(batch.entity.group, "fact", subject, draft.relation, object_, fold(text), since)


def _new_fact(batch: Batch, draft: FactDraft, ids: tuple[str, str, str, str], text: str) -> Fact:
    """Return a fact; ``ids`` are its own, those of its ends and that of the turn that states it."""
    return Fact(
        uuid=ids[0],
        subject=ids[1],
        object=ids[2],
        relation=draft.relation,
        text=text,
        created_at=batch.at,
        kind=draft.kind,
        episodes=(ids[3],),
        valid_at=draft.valid_at,
        invalid_at=draft.invalid_at,
    )


def close_replaced(batch: Batch, fact: Fact, replaced: Sequence[str], since: datetime, outcome: TurnOutcome) -> None:
    """Close each fact that is named by uuid or by its text, at the moment the new one begins."""
    for name in replaced:
        olds = [old for old in _named_facts(batch, name) if old.uuid != fact.uuid]
        if not olds:
            outcome.skipped.append(Skipped("invalidates", "no fact of this entity has that id or text"))
        for old in olds:
            end = max(since, old.valid_at) if old.valid_at else since
            if old.invalid_at is None or old.invalid_at > end:
                expired_at = batch.at if end <= batch.at else old.expired_at
                batch.put_fact(replace(old, invalid_at=end, expired_at=expired_at))


def _named_facts(batch: Batch, name: str) -> list[Fact]:
    if is_uuid(name):
        fact = batch.fact(name)
        return [fact] if fact else []
    wanted = fold(name)
    latest = {**batch.stored, **batch.facts}
    return [fact for fact in latest.values() if fold(fact.text) == wanted]
