"""Plan the drafts of a turn: resolve names to nodes; create, support and close facts.

No I/O: the functions read and change only the batch. Names resolve exactly (case, space and Unicode
folded) inside the entity; facts keep their supporting episodes; a fact that replaces others closes
them.
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
    """The statements of a turn, with names in place of ids.

    They come from the caller, from an extraction command or from the rules.
    """

    nodes: tuple[NodeDraft, ...] = ()
    facts: tuple[FactDraft, ...] = ()
    endings: tuple[EndingDraft, ...] = ()
    corrections: tuple[CorrectionDraft, ...] = ()
    retractions: tuple[RetractionDraft, ...] = ()


def plan_given(
    batch: Batch, turn: Turn, nodes: Sequence[NodeDraft], facts: Sequence[FactDraft]
) -> TurnOutcome:
    """Plan nodes and facts of a turn into the batch; return counts and what was skipped."""
    return plan_drafts(batch, turn, Drafts(tuple(nodes), tuple(facts)))


def plan_drafts(
    batch: Batch, turn: Turn, drafts: Drafts, said_before: Sequence[Turn] = ()
) -> TurnOutcome:
    """Plan all drafts of a turn into the batch; return counts and what was skipped.

    Args:
        batch: It holds what the graph knows of the drafts' names; changed in place.
        turn: The turn that states the drafts.
        drafts: The turn's drafts.
        said_before: Earlier turns of its session, newest first, which a correction may be about.
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
    """Close the fact that a retraction names; the turn's own first fact, if any, replaces it.

    None when the fact is unknown or stated by the turn itself.
    """
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
    """Return an ending with its names resolved; an unknown name gets the id of its future node."""
    keys: dict[str, None] = {}
    for name in draft.relations:
        relation = batch.relations.find(name)
        every = batch.relations.keys(relation) if relation else ()
        keys.update(dict.fromkeys((relation_key(name), *every)))
    return Ending(
        turn.uuid,
        number,
        _present_or_future_node(batch, draft.subject),
        _present_or_future_node(batch, draft.object),
        tuple(keys),
        draft.ended_at,
        draft.ended_before,
    )


def _present_or_future_node(batch: Batch, name: str) -> str:
    if not name:
        return ""
    return batch.node_named(name) or batch.new_node_id(name)


def plan_correction(
    batch: Batch,
    turn: Turn,
    draft: CorrectionDraft,
    said_before: Sequence[Turn],
    own_facts: Sequence[str],
    outcome: TurnOutcome,
) -> Fact | None:
    """Close the fact that a correction is about and plan the right one; None if it is unknown."""
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
    """Return the latest fact that a correction can be about; None when there is none or several."""
    wrong = batch.node_named(draft.instead) if draft.instead else None
    right = batch.node_named(draft.object)
    if draft.instead and wrong is None:
        return None
    same_speaker = [earlier.uuid for earlier in said_before if earlier.role == turn.role]
    for uuid in (turn.uuid, *same_speaker):
        if uuid == turn.uuid:
            facts = [fact for fact in map(batch.fact, own_facts) if fact is not None]
        else:
            facts = [
                fact
                for fact in {**batch.stored, **batch.facts}.values()
                if uuid in fact.episodes and fact.kind == "fact"
            ]
        candidates = [
            fact
            for fact in facts
            if not taken_back(fact)
            and fact.subject in batch.known
            and fact.object in batch.known
            and _value_of(fact) != right
            and (wrong is None or _value_of(fact) == wrong)
            and _may_be_corrected(batch, fact, draft.relations)
        ]
        if candidates:
            # A correction that does not name the wrong value must leave no choice of the fact.
            is_sure = len(candidates) == 1 or wrong is not None or uuid == turn.uuid
            return candidates[-1] if is_sure else None
    return None


def _value_of(fact: Fact) -> str:
    """Return the node that is the value of a fact: its object, or Karin in "Karin BOSS_OF Ana"."""
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
    """Create or enrich the node that a draft names; return its uuid.

    A record (a node of one of ``batch.kinds``) is never changed by a draft.
    """
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
    """Return the aliases that name no other node; a taken alias is reported and left alone."""
    free: list[str] = []
    for alias in draft.aliases:
        owner = batch.node_named(alias)
        if owner not in (None, uuid):
            outcome.skipped.append(Skipped(f"alias {alias!r}", "names another node already"))
        elif fold(alias) != fold(draft.name):
            free.append(alias.strip())
    return tuple(free)


def plan_fact(batch: Batch, turn: Turn, draft: FactDraft, outcome: TurnOutcome) -> Fact:
    """Create the fact that a draft states, or add the turn to its supports; close what it replaces.

    A draft restates an open fact between the same nodes with the same relation when its words add
    nothing to the fact's text, or when the relation is single-valued; the older text stays. Two
    different days of beginning make two facts. A fact without a day begins with the first turn that
    states it; a day that is named later replaces that.
    """
    subject = batch.node_named(draft.subject) or plan_node(batch, NodeDraft(draft.subject), outcome)
    object_ = batch.node_named(draft.object) or plan_node(batch, NodeDraft(draft.object), outcome)
    draft = _with_end_of_the_past(batch, draft, turn)
    text = sentence_of(draft)
    joins = (subject, draft.relation, object_)
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
        fact = Fact(
            uuid,
            subject,
            object_,
            draft.relation,
            text,
            batch.at,
            draft.kind,
            episodes=(turn.uuid,),
            valid_at=since_of(draft, turn),
            invalid_at=draft.invalid_at,
        )
    elif taken_back(fact):
        fact = replace(
            said_by(fact, turn.uuid), valid_at=since_of(draft, turn), invalid_at=draft.invalid_at
        )
    else:
        fact = _with_times_of(batch, fact, draft, turn)
    fact = batch.support(fact, turn.uuid)
    if draft.invalid_at and draft.invalid_at == fact.invalid_at:
        batch.own_ends[fact.uuid] = fact.invalid_at
    batch.put_fact(fact)
    close_replaced(batch, fact, draft.invalidates, turn, outcome)
    return batch.fact(fact.uuid) or fact


def _with_end_of_the_past(batch: Batch, draft: FactDraft, turn: Turn) -> FactDraft:
    """Return a draft with an end, if it speaks of the past and its relation is single-valued."""
    relation = batch.relations.find(draft.relation)
    if draft.invalid_at or draft.kind != "fact" or not (relation and relation.single):
        return draft
    if not speaks_of_the_past(draft.text):
        return draft
    end = end_of_the_past(draft.text, draft.valid_at, turn.occurred_at)
    return replace(draft, invalid_at=end)


def sentence_of(draft: FactDraft) -> str:
    """Return the text of a draft, or else its subject, relation and object as a sentence."""
    return (
        draft.text.strip()
        or f"{draft.subject} {draft.relation.replace('_', ' ').lower()} {draft.object}"
    )


def since_of(draft: FactDraft, turn: Turn) -> datetime | None:
    """Return when a stated fact began: the draft's day, or else the turn's.

    None (unknown) when it had already ended before the turn, and for other kinds than facts.
    """
    if draft.valid_at or draft.kind != "fact":
        return draft.valid_at
    if draft.invalid_at and draft.invalid_at <= turn.occurred_at:
        return None
    return turn.occurred_at


def _restated(batch: Batch, turn: Turn, draft: FactDraft, ends: tuple[str, str]) -> Fact | None:
    """Return the fact that a draft restates, in other words or with another day."""
    if draft.kind != "fact" or draft.invalid_at:
        return None
    for fact in batch.alike(ends[0], draft.relation, ends[1]):
        if fact.kind != "fact" or taken_back(fact):
            continue
        same_day = draft.valid_at in (None, fact.valid_at) or is_undated(batch.entity.group, fact)
        if fact.invalid_at is None:
            holds = fact.expired_at is None
        else:
            holds = fact.invalid_at > turn.occurred_at
        if not same_day or not (holds or turn.uuid in fact.episodes):
            continue
        names = [batch.known[end].name for end in ends if end in batch.known]
        if batch.relations.is_single(draft.relation):
            return fact
        if adds_nothing(sentence_of(draft), fact, names):
            return fact
    return None


def _with_times_of(batch: Batch, fact: Fact, draft: FactDraft, turn: Turn) -> Fact:
    """Return a fact with the beginning and the end that a further statement of it adds."""
    if draft.invalid_at and fact.invalid_at is None:
        fact = replace(fact, invalid_at=draft.invalid_at)
    if fact.kind != "fact" or not is_undated(batch.entity.group, fact):
        return fact
    if draft.valid_at:
        return replace(fact, valid_at=draft.valid_at)
    first = turn.occurred_at if fact.valid_at is None else min(fact.valid_at, turn.occurred_at)
    if fact.invalid_at is None or fact.invalid_at > first:
        return replace(fact, valid_at=first)
    return fact


def _ended_before(fact: Fact, draft: FactDraft, turn: Turn) -> bool:
    """Tell whether a fact has ended and the turn states anew, without a day, that it holds."""
    if fact.invalid_at is None or fact.invalid_at > turn.occurred_at:
        return False
    is_dated = draft.valid_at is not None or draft.invalid_at is not None
    return not is_dated and turn.uuid not in fact.episodes


def is_undated(group: str, fact: Fact) -> bool:
    """Tell whether a fact was stated without a day: its id shows it."""
    return fact.uuid == fact_id(group, (fact.subject, fact.relation, fact.object), fact.text, None)


def fact_id(group: str, joins: tuple[str, str, str], text: str, since: datetime | None) -> str:
    """Return the uuid5 of a fact's ends, relation, text and beginning."""
    return stable_id(group, "fact", *joins, fold(text), iso(since) if since else "")


def pair_of(name: str) -> tuple[str, str] | None:
    """Return subject and relation of a name such as ``Ana LIVES_IN``; None for other names."""
    match = _PAIR.match(name.strip())
    return (match[1], match[2]) if match else None


def close_replaced(
    batch: Batch, fact: Fact, replaced: Sequence[str], turn: Turn, outcome: TurnOutcome
) -> None:
    """Close each fact that ``replaced`` names, when the new fact begins.

    A name is an id, a text, or a subject and a relation. A fact named by subject and relation that
    began later than the new fact ends the new fact instead. A name without a fact is reported with
    the nearest facts.
    """
    since = fact.valid_at or turn.occurred_at
    for name in replaced:
        olds = _facts_of_pair(batch, name, fact)
        by_pair = bool(olds)
        if not by_pair:
            olds = _facts_with_id_or_text(batch, name, fact)
        if not olds:
            outcome.skipped.append(Skipped("invalidates", _describe_nearest(batch, fact, name)))
        # Replacing the value of a slot only states that the slot has one value: all its statements
        # decide which.
        is_slot = by_pair and batch.relations.is_single(fact.relation)
        cause = "superseded" if is_slot else "explicit"
        for old in olds:
            if by_pair and old.valid_at is not None and old.valid_at > since:
                latest = batch.fact(fact.uuid) or fact
                _end(batch, latest, old.valid_at, old, turn, cause)
                continue
            if by_pair and old.episodes == (turn.uuid,):
                continue  # stated by the turn's own old text only: it is retracted, not replaced
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


def _facts_of_pair(batch: Batch, name: str, new: Fact) -> list[Fact]:
    """Return the facts with the subject and relation in a name; a sentence in capitals has none."""
    pair = pair_of(name)
    if pair is None:
        return []
    subject_and_relation = (batch.node_named(pair[0]), pair[1])
    return [
        fact
        for fact in _others(batch, new)
        if (fact.subject, fact.relation) == subject_and_relation
        and fact.kind == "fact"
        and not taken_back(fact)
        and fact.object != new.object
    ]


def _facts_with_id_or_text(batch: Batch, name: str, new: Fact) -> list[Fact]:
    if is_uuid(name):
        return [fact for fact in _others(batch, new) if fact.uuid == name]
    wanted = _plain(name)
    return [
        fact
        for fact in _others(batch, new)
        if wanted in (_plain(fact.text), _plain(_names_and_relation(batch, fact)))
    ]


def _others(batch: Batch, new: Fact) -> list[Fact]:
    return [fact for fact in {**batch.stored, **batch.facts}.values() if fact.uuid != new.uuid]


def _describe_nearest(batch: Batch, new: Fact, name: str) -> str:
    """Return a message that no fact has a name, with the closest open facts of the subject."""
    wanted = set(_plain(name).split())

    def distance(fact: Fact) -> tuple[int, str]:
        return -len(wanted.intersection(_plain(fact.text).split())), fact.uuid

    candidates = [
        fact
        for fact in _others(batch, new)
        if fact.subject == new.subject
        and fact.kind == "fact"
        and fact.invalid_at is None
        and fact.expired_at is None
    ]
    message = "no fact of this entity has that id, text, or subject and relation"
    nearest = sorted(candidates, key=distance)[:_NEAREST]
    if not nearest:
        return message
    listed = [f"{first_line(fact.text)!r} [{fact.uuid}]" for fact in nearest]
    return f"{message}; nearest: {'; '.join(listed)}"


def _names_and_relation(batch: Batch, fact: Fact) -> str:
    subject = batch.known.get(fact.subject)
    object_ = batch.known.get(fact.object)
    if subject is None or object_ is None:
        return ""
    return f"{subject.name} {fact.relation} {object_.name}"


def _plain(text: str) -> str:
    return " ".join(_WORD.findall(fold(text)))
