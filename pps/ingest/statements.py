"""*given* extraction: nodes and facts that the calling agent passes are resolved and planned.

Pure: reads and changes only the batch. Names resolve exactly (case, space and Unicode folded) inside
the entity; facts keep their supporting episodes; a fact that replaces others closes them.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from pps.core.ids import is_uuid, stable_id
from pps.core.relation_table import relation_key
from pps.core.text import first_line, fold
from pps.core.time import iso
from pps.core.values import (
    Closing,
    ClosingCause,
    CorrectionDraft,
    EndingDraft,
    Fact,
    FactDraft,
    Node,
    NodeDraft,
    RetractionDraft,
    Skipped,
    Turn,
)
from pps.ingest.batch import Batch, TurnOutcome
from pps.ingest.corrections import may_mean
from pps.ingest.relations import VALUE_IS_SUBJECT
from pps.ingest.supersession import BEFORE_EVERYTHING, end_of_the_past, speaks_of_the_past
from pps.ingest.support import adds_nothing, said_by, taken_back
from pps.journal.closing_rows import Ending
from pps.journal.entries import ReadFact

_NEAREST = 3
_PAIR = re.compile(r"^(.{1,500}\S)\s+([A-Z][A-Z0-9_]*)$")
_WORD = re.compile(r"[^\W_]+")


@dataclass(frozen=True, slots=True)
class Drafts:
    """What a turn states, by names: given with it, found by a command or read by rules."""

    nodes: tuple[NodeDraft, ...] = ()
    facts: tuple[FactDraft, ...] = ()
    endings: tuple[EndingDraft, ...] = ()
    corrections: tuple[CorrectionDraft, ...] = ()
    retractions: tuple[RetractionDraft, ...] = ()


def plan_given(
    batch: Batch, turn: Turn, nodes: Sequence[NodeDraft], facts: Sequence[FactDraft]
) -> TurnOutcome:
    """Plan one turn's nodes and facts into the batch and say what became of them."""
    return plan_drafts(batch, turn, Drafts(tuple(nodes), tuple(facts)))


def plan_drafts(
    batch: Batch, turn: Turn, drafts: Drafts, said_before: Sequence[Turn] = ()
) -> TurnOutcome:
    """Plan what one turn states into the batch and say what became of it.

    ``said_before`` are the turns of its session before it, newest first, that a correction may be about.
    """
    outcome = TurnOutcome()
    mentioned = [plan_node(batch, draft, outcome) for draft in drafts.nodes]
    supported: list[str] = []
    for draft in drafts.facts:
        fact = plan_fact(batch, turn, draft, outcome)
        if isinstance(draft, ReadFact) and (draft.cites or draft.uses):
            fact = batch.tie(fact, turn, draft.cites, draft.uses)
        supported.append(fact.uuid)
        mentioned += [fact.subject, fact.object]
    for correction in drafts.corrections:
        fact = plan_correction(batch, turn, correction, said_before, supported, outcome)
        batch.corrections[turn.uuid] = batch.corrections.get(turn.uuid, True) and fact is not None
        if fact is not None:
            supported.append(fact.uuid)
            mentioned += [fact.subject, fact.object]
    for retraction in drafts.retractions:
        retracted = plan_retraction(batch, turn, retraction, supported, outcome)
        if retracted is not None:
            mentioned += [retracted.subject, retracted.object]
    batch.mention(turn.uuid, mentioned)
    batch.put_episode(turn, supported)
    batch.endings[turn.uuid] = [
        plan_ending(batch, turn, number, draft) for number, draft in enumerate(drafts.endings)
    ]
    return outcome


def plan_retraction(
    batch: Batch,
    turn: Turn,
    draft: RetractionDraft,
    own_facts: Sequence[str],
    outcome: TurnOutcome,
) -> Fact | None:
    """Close the fact that a retraction names, in favour of the turn's own first fact; None when it is not known."""
    fact = batch.fact(draft.fact)
    if fact is None:
        outcome.skipped.append(Skipped("retraction", f"no fact has the id {draft.fact}"))
        return None
    if draft.fact in own_facts:
        outcome.skipped.append(Skipped("retraction", "the same turn states this fact"))
        return None
    end = draft.ended_at or fact.valid_at or BEFORE_EVERYTHING
    by_fact = own_facts[0] if own_facts else ""
    closing = Closing(fact.uuid, by_fact, turn.uuid, "explicit", end, batch.at)
    batch.closings.setdefault(fact.uuid, []).append(closing)
    return fact


def plan_ending(batch: Batch, turn: Turn, number: int, draft: EndingDraft) -> Ending:
    """Return an ending with its names resolved; a name that is not known stands for the node that it will be."""
    subject, object_ = (
        (batch.node_named(name) or batch.new_node_id(name)) if name else ""
        for name in (draft.subject, draft.object)
    )
    keys: dict[str, None] = {}
    for name in draft.relations:
        relation = batch.relations.find(name)
        every = batch.relations.keys(relation) if relation else ()
        keys.update(dict.fromkeys((relation_key(name), *every)))
    return Ending(
        turn.uuid,
        number,
        subject,
        object_,
        tuple(keys),
        draft.ended_at,
        draft.ended_before,
    )


def plan_correction(
    batch: Batch,
    turn: Turn,
    draft: CorrectionDraft,
    said_before: Sequence[Turn],
    own_facts: Sequence[str],
    outcome: TurnOutcome,
) -> Fact | None:
    """Put right the fact that a correction is about; None when no such fact is known."""
    wrong = _corrected(batch, turn, draft, said_before, own_facts)
    if wrong is None:
        outcome.skipped.append(Skipped("correction", "nothing before it in the session is meant"))
        return None
    subject = batch.known[wrong.subject].name
    object_ = draft.object
    if wrong.relation in VALUE_IS_SUBJECT:
        subject = draft.object
        object_ = batch.known[wrong.object].name
    right = FactDraft(subject, wrong.relation, object_, draft.text, wrong.valid_at)
    fact = plan_fact(batch, turn, right, outcome)
    _end(batch, wrong, wrong.valid_at or turn.occurred_at, fact, turn, "corrected")
    return fact


def _corrected(
    batch: Batch,
    turn: Turn,
    draft: CorrectionDraft,
    said_before: Sequence[Turn],
    own_facts: Sequence[str],
) -> Fact | None:
    """Return the last fact before a correction that it can be about."""
    wrong = batch.node_named(draft.instead) if draft.instead else None
    right = batch.node_named(draft.object)
    if draft.instead and wrong is None:
        return None
    stating = [turn.uuid, *(one.uuid for one in said_before if one.role == turn.role)]
    for uuid in stating:
        if uuid == turn.uuid:
            facts = [fact for one in own_facts if (fact := batch.fact(one))]
        else:
            facts = [
                fact
                for fact in {**batch.stored, **batch.facts}.values()
                if uuid in fact.episodes and fact.kind == "fact"
            ]
        meant = [
            fact
            for fact in facts
            if not taken_back(fact)
            and fact.subject in batch.known
            and fact.object in batch.known
            and _value_of(fact) != right
            and (wrong is None or _value_of(fact) == wrong)
            and _may_be_corrected(batch, fact, draft.relations)
        ]
        if meant:
            # A correction that names neither the relation nor what was wrong means the one fact of its kind.
            is_sure = len(meant) == 1 or wrong is not None or uuid == turn.uuid
            return meant[-1] if is_sure else None
    return None


def _value_of(fact: Fact) -> str:
    """Return the node that a fact tells of the other: of "Karin BOSS_OF Ana" it is Karin."""
    return fact.subject if fact.relation in VALUE_IS_SUBJECT else fact.object


def _may_be_corrected(batch: Batch, fact: Fact, relations: Sequence[str]) -> bool:
    relation = batch.relation_of(fact)
    if relations:
        keys = [relation_key(fact.relation)]
        if relation is not None:
            keys += batch.relations.keys(relation)
        return may_mean(relations, keys)
    return relation is not None and relation.single


def plan_node(batch: Batch, draft: NodeDraft, outcome: TurnOutcome) -> str:
    """Make or enrich the node that a draft names; return its uuid. Records of packs' kinds are named, not changed."""
    uuid = batch.node_named(draft.name)
    if draft.kind in batch.kinds:
        outcome.skipped.append(
            Skipped(draft.name, f"a reading makes no {draft.kind}: record_save does")
        )
        draft = replace(draft, kind="Thing")
    if uuid is None:
        uuid = batch.new_node_id(draft.name)
        outcome.nodes += 1
        aliases = _free_aliases(batch, uuid, draft, outcome)
        name = draft.name.strip()
        batch.put_node(
            Node(
                uuid,
                name,
                batch.at,
                draft.kind,
                draft.summary,
                aliases,
                draft.tags,
                draft.attributes,
            )
        )
        return uuid
    known = batch.known[uuid]
    aliases = _free_aliases(batch, uuid, draft, outcome)
    if known.kind in batch.kinds and (draft.summary or draft.tags or draft.attributes):
        outcome.skipped.append(
            Skipped(draft.name, f"is a {known.kind}: only record_save changes what it says")
        )
    if known.kind in batch.kinds:
        draft = NodeDraft(draft.name)
    changed = replace(
        known,
        kind=draft.kind if known.kind == "Thing" else known.kind,
        summary=draft.summary or known.summary,
        aliases=tuple(dict.fromkeys((*known.aliases, *aliases))),
        tags=tuple(dict.fromkeys((*known.tags, *draft.tags))),
        attributes={**known.attributes, **draft.attributes},
    )
    if changed != known:
        batch.put_node(changed)
    return uuid


def _free_aliases(
    batch: Batch, uuid: str, draft: NodeDraft, outcome: TurnOutcome
) -> tuple[str, ...]:
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
    """Make the fact that a draft states, or add this turn to its supports; close what it replaces.

    A statement is one with the open fact that joins the same nodes in the same way when its words add nothing to it, or
    when a subject has only one such relation at a time; the older words stay. Not if both name a day on which it began,
    and not the same. One without a day holds from the first
    turn that says it; a day that is named later counts from then on.
    """
    subject = batch.node_named(draft.subject) or plan_node(batch, NodeDraft(draft.subject), outcome)
    object_ = batch.node_named(draft.object) or plan_node(batch, NodeDraft(draft.object), outcome)
    draft = _with_end_of_the_past(batch, draft, turn)
    text = said(draft)
    joins = subject, draft.relation, object_
    uuid = fact_id(batch.entity.group, joins, text, draft.valid_at)
    fact = batch.fact(uuid) or _restated(batch, turn, draft, (subject, object_))
    if fact and _ended_before(fact, draft, turn):
        draft = replace(draft, valid_at=turn.occurred_at)
        uuid = fact_id(batch.entity.group, joins, text, draft.valid_at)
        fact = batch.fact(uuid)
    if fact is None or taken_back(fact):
        outcome.facts += draft.kind == "fact"
        outcome.edges += 1
    if fact is None:
        times = since_of(draft, turn), draft.invalid_at
        fact = Fact(
            uuid, subject, object_, draft.relation, text, batch.at, draft.kind, (turn.uuid,), *times
        )
    elif taken_back(fact):
        fact = replace(
            said_by(fact, turn.uuid), valid_at=since_of(draft, turn), invalid_at=draft.invalid_at
        )
    else:
        fact = _said_again(batch, fact, draft, turn)
    fact = batch.support(fact, turn.uuid)
    if draft.invalid_at and draft.invalid_at == fact.invalid_at:
        batch.own_ends[fact.uuid] = fact.invalid_at
    batch.put_fact(fact)
    close_replaced(batch, fact, draft.invalidates, turn, outcome)
    return batch.fact(fact.uuid) or fact


def _with_end_of_the_past(batch: Batch, draft: FactDraft, turn: Turn) -> FactDraft:
    """Return a statement of what was, in a single-valued relation, with an end; others as they are."""
    relation = batch.relations.find(draft.relation)
    if draft.invalid_at or draft.kind != "fact" or not (relation and relation.single):
        return draft
    if not speaks_of_the_past(draft.text):
        return draft
    end = end_of_the_past(draft.text, draft.valid_at, turn.occurred_at)
    return replace(draft, invalid_at=end)


def said(draft: FactDraft) -> str:
    """Return the sentence of a fact: its own, or subject, relation and object."""
    return (
        draft.text.strip()
        or f"{draft.subject} {draft.relation.replace('_', ' ').lower()} {draft.object}"
    )


def since_of(draft: FactDraft, turn: Turn) -> datetime | None:
    """Return since when a statement holds: its day, else the turn's; unknown of what had ended by then."""
    if (
        draft.valid_at
        or draft.kind != "fact"
        or (draft.invalid_at and draft.invalid_at <= turn.occurred_at)
    ):
        return draft.valid_at
    return turn.occurred_at


def _restated(batch: Batch, turn: Turn, draft: FactDraft, ends: tuple[str, str]) -> Fact | None:
    """Return the fact that a statement says once more, in other words or of another day."""
    if draft.kind != "fact" or draft.invalid_at:
        return None
    for fact in batch.alike(ends[0], draft.relation, ends[1]):
        same_day = draft.valid_at in (None, fact.valid_at) or is_undated(batch.entity.group, fact)
        holds = (
            fact.expired_at is None
            if fact.invalid_at is None
            else fact.invalid_at > turn.occurred_at
        )
        if not (
            fact.kind == "fact" and same_day and (holds or turn.uuid in fact.episodes)
        ) or taken_back(fact):
            continue
        names = [batch.known[end].name for end in ends if end in batch.known]
        if batch.relations.is_single(draft.relation) or adds_nothing(said(draft), fact, names):
            return fact
    return None


def _said_again(batch: Batch, fact: Fact, draft: FactDraft, turn: Turn) -> Fact:
    """Return a fact with what a statement of it adds: when it began, when it ended."""
    if draft.invalid_at and fact.invalid_at is None:
        fact = replace(fact, invalid_at=draft.invalid_at)
    if fact.kind != "fact" or not is_undated(batch.entity.group, fact):
        return fact
    first = turn.occurred_at if fact.valid_at is None else min(fact.valid_at, turn.occurred_at)
    since = draft.valid_at or (
        first if fact.invalid_at is None or fact.invalid_at > first else fact.valid_at
    )
    return replace(fact, valid_at=since)


def _ended_before(fact: Fact, draft: FactDraft, turn: Turn) -> bool:
    """Tell whether an undated statement is made anew of a fact that has ended: it holds again."""
    ended = fact.invalid_at is not None and fact.invalid_at <= turn.occurred_at
    return (
        ended
        and draft.valid_at is None
        and draft.invalid_at is None
        and turn.uuid not in fact.episodes
    )


def is_undated(group: str, fact: Fact) -> bool:
    """Tell whether a fact was stated without a day: its id shows it."""
    return fact.uuid == fact_id(group, (fact.subject, fact.relation, fact.object), fact.text, None)


def fact_id(group: str, joins: tuple[str, str, str], text: str, since: datetime | None) -> str:
    """Return the uuid5 of what a fact says and since when: the same statement is one fact."""
    return stable_id(group, "fact", *joins, fold(text), iso(since) if since else "")


def pair_of(name: str) -> tuple[str, str] | None:
    """Return subject and relation of a name such as ``Ana LIVES_IN``; None for an id or a sentence."""
    match = _PAIR.match(name.strip())
    return (match[1], match[2]) if match else None


def close_replaced(
    batch: Batch, fact: Fact, replaced: Sequence[str], turn: Turn, outcome: TurnOutcome
) -> None:
    """Close each fact that is named, at the moment the new one begins.

    What is named by subject and relation is what held then: where it began later than the new fact, the new one ends
    there. Nothing that is named is reported with what is nearest to it.
    """
    since = fact.valid_at or turn.occurred_at
    for name in replaced:
        olds = _named_by_pair(batch, name, fact)
        pair = bool(olds)
        olds = olds or _named(batch, name, fact)
        if not olds:
            outcome.skipped.append(Skipped("invalidates", _nothing(batch, fact, name)))
        # Who replaces what held in a slot says no more than that the slot has one value: all its statements decide.
        cause = "superseded" if pair and batch.relations.is_single(fact.relation) else "explicit"
        for old in olds:
            if pair and old.valid_at is not None and old.valid_at > since:
                latest = batch.fact(fact.uuid) or fact
                _end(batch, latest, old.valid_at, old, turn, cause)
            elif not (
                pair and old.episodes == (turn.uuid,)
            ):  # what a changed text says no more is taken back
                end = max(since, old.valid_at) if old.valid_at else since
                _end(batch, old, end, fact, turn, cause)


def _end(
    batch: Batch, fact: Fact, end: datetime, by: Fact, turn: Turn, cause: ClosingCause
) -> None:
    """Close a fact in favour of another, unless it ends earlier."""
    if fact.invalid_at is not None and fact.invalid_at < end:
        return
    expired_at = batch.at if end <= batch.at else fact.expired_at
    if fact.invalid_at is None or fact.invalid_at > end:
        batch.put_fact(replace(fact, invalid_at=end, expired_at=expired_at))
    closing = Closing(fact.uuid, by.uuid, turn.uuid, cause, end, batch.at)
    batch.closings.setdefault(fact.uuid, []).append(closing)


def _named_by_pair(batch: Batch, name: str, new: Fact) -> list[Fact]:
    """Return the facts that subject and relation stand for; a sentence may end in capitals too, and stands for none."""
    pair = pair_of(name)
    subject = batch.node_named(pair[0]) if pair else None
    mine = [
        one
        for one in _others(batch, new)
        if pair and (one.subject, one.relation) == (subject, pair[1])
    ]
    return [
        one
        for one in mine
        if one.kind == "fact" and not taken_back(one) and one.object != new.object
    ]


def _named(batch: Batch, name: str, new: Fact) -> list[Fact]:
    if is_uuid(name):
        return [fact for fact in _others(batch, new) if fact.uuid == name]
    wanted = _plain(name)
    return [
        fact
        for fact in _others(batch, new)
        if wanted in (_plain(fact.text), _plain(_joined(batch, fact)))
    ]


def _others(batch: Batch, new: Fact) -> list[Fact]:
    return [fact for fact in {**batch.stored, **batch.facts}.values() if fact.uuid != new.uuid]


def _nothing(batch: Batch, fact: Fact, name: str) -> str:
    """Return that nothing is named so, and the open facts of the subject that come nearest."""
    wanted = set(_plain(name).split())
    latest = {**batch.stored, **batch.facts}.values()
    open_ = [
        one
        for one in latest
        if one.subject == fact.subject and one.kind == "fact" and one.uuid != fact.uuid
    ]
    open_ = [one for one in open_ if one.invalid_at is None and one.expired_at is None]
    near = sorted(open_, key=lambda one: (-len(wanted & set(_plain(one.text).split())), one.uuid))[
        :_NEAREST
    ]
    said = "no fact of this entity has that id, text, or subject and relation"
    if not near:
        return said
    return f"{said}; nearest: " + "; ".join(
        f"{first_line(one.text)!r} [{one.uuid}]" for one in near
    )


def _joined(batch: Batch, fact: Fact) -> str:
    ends = (batch.known.get(fact.subject), batch.known.get(fact.object))
    return " ".join((ends[0].name, fact.relation, ends[1].name)) if ends[0] and ends[1] else ""


def _plain(text: str) -> str:
    return " ".join(_WORD.findall(fold(text)))
