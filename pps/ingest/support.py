"""Provenance: an edited text retracts facts; a text that states a fact supports it again.

An alias of a node is lost when the only turns that gave it are forgotten.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from pps.core.text import fold
from pps.core.values import Fact, Node, NodeDraft, Turn
from pps.ingest.batch import Batch
from pps.ingest.rules import extract
from pps.isolation.client import IsolatedGraphitiClient
from pps.journal.entries import Job, JobPayload, Reading, load_payload
from pps.journal.journal import Journal
from pps.journal.tie_rows import Ties

_FACTS = 100_000
_PARAGRAPH = "\n\n"
_WORD = re.compile(r"[^\W_]+")
_SHORT = re.compile(r"['’](?:s|m|d|t|ve|re|ll)\b")
_ENDING = re.compile(r"(?<=\w\w\w)(?:ing|ed|es|s)$")
_IDLE_WORDS = """
a an the is are was were be been am has have had do does did and of in on at to for from with as
by that this now it its his her their our my i he she they we you really still also just too so
very currently called named
"""
_IDLE = frozenset(_IDLE_WORDS.split())
_MOST_MENTIONS = 2_000
"""A node that more turns mention keeps its names: looking through them would hold everything up."""


def adds_nothing(text: str, fact: Fact, names: Sequence[str]) -> bool:
    """Tell whether all words of a text are in a fact, the names of its ends or its relation."""
    known = content_words(" ".join((fact.text, fact.relation.replace("_", " "), *names)))
    return content_words(text) <= known


def content_words(text: str) -> set[str]:
    """Return the content words of a text, without their endings."""
    return {
        _ENDING.sub("", word)
        for word in _WORD.findall(_SHORT.sub("", fold(text)))
        if word not in _IDLE
    }


def taken_back(fact: Fact) -> bool:
    """Tell whether a fact is retracted: the only text that stated it was edited."""
    return (
        fact.kind == "fact" and fact.invalid_at is not None and fact.invalid_at == fact.expired_at
    )


def supports_left(
    fact: Fact, ties: Mapping[str, frozenset[str]], lost: Collection[str]
) -> tuple[str, ...]:
    """Return the episodes that still support a fact when some turns are lost; empty for none.

    Args:
        fact: The fact with its present episodes.
        ties: Turn that states the fact → the other turns that it needs for that. These turns
            support the fact only together.
        lost: Turns that are forgotten, or no longer state the fact.
    """
    tied: set[str] = set()
    intact: set[str] = set()
    for holder, needs in ties.items():
        together = {holder, *needs}
        tied |= together
        if together.isdisjoint(lost):
            intact |= together
    return tuple(
        turn
        for turn in dict.fromkeys(fact.episodes)
        if turn not in lost and (turn in intact or turn not in tied)
    )


def broken_holders(ties: Mapping[str, frozenset[str]], lost: Collection[str]) -> set[str]:
    """Return the turns that no longer state a fact because a turn that they need is lost."""
    return {
        holder
        for holder, needs in ties.items()
        if holder not in lost and not needs.isdisjoint(lost)
    }


def take_back(
    fact: Fact,
    turn: str,
    at: datetime,
    ties: Mapping[str, frozenset[str]] | None = None,
    *,
    closed_by_others: bool = False,
) -> Fact:
    """Return a fact without the support of a turn; retracted when no other turn supports it.

    Relations, and facts that had ended before ``at``, then stay as they are. A fact that other
    statements had ended (``closed_by_others``) is retracted with its present end, so that nothing
    opens it again. ``ties`` as in ``supports_left``.
    """
    if fact.kind != "fact":
        return fact
    others = supports_left(fact, ties or {}, {turn})
    if others:
        return replace(fact, episodes=others)
    ended = fact.expired_at is not None if fact.invalid_at is None else fact.invalid_at <= at
    if ended and closed_by_others and fact.invalid_at is not None:
        return replace(fact, expired_at=fact.invalid_at)
    return fact if ended else replace(fact, invalid_at=at, expired_at=at)


def said_by(fact: Fact, turn: str) -> Fact:
    """Return a fact with the support of a turn; a retracted fact is open again."""
    if taken_back(fact):
        return replace(fact, invalid_at=None, expired_at=None, episodes=(turn,))
    return replace(fact, episodes=tuple(dict.fromkeys((*fact.episodes, turn))))


async def with_days(
    facts: Sequence[Fact], client: IsolatedGraphitiClient, journal: Journal
) -> list[Fact]:
    """Return facts with a beginning: an undated fact begins with the first turn that states it.

    New beginnings are saved to the graph.
    """
    undated = [fact for fact in facts if fact.kind == "fact" and fact.valid_at is None]
    turns = await journal.turns(list({turn for fact in undated for turn in fact.episodes}))
    days = {turn.uuid: turn.occurred_at for turn in turns}
    begun: dict[str, Fact] = {}
    for fact in undated:
        first = min((days[turn] for turn in fact.episodes if turn in days), default=None)
        if first is not None and (fact.invalid_at is None or first < fact.invalid_at):
            begun[fact.uuid] = replace(fact, valid_at=first)
    if begun:
        await client.save_facts(list(begun.values()), {})
    return [begun.get(fact.uuid, fact) for fact in facts]


@dataclass(frozen=True, slots=True)
class OldWords:
    """The graph's data from the old version of an edited text.

    Attributes:
        facts: Uuids of the facts that it supports.
        mentioned: Uuids of the nodes that it mentions.
        alone: Those of them that no other episode mentions and no fact joins.
        stay: Whether a paragraph was added behind the old text, so that all in it stays valid.
        closed_by_others: Those of the facts that other statements have closed.
    """

    facts: tuple[str, ...]
    mentioned: tuple[str, ...]
    alone: tuple[str, ...]
    stay: bool
    closed_by_others: frozenset[str] = frozenset()


async def load_old_words(
    client: IsolatedGraphitiClient, journal: Journal, known: Batch, jobs: Sequence[Job]
) -> dict[str, OldWords]:
    """Return turn → its old words, for each job whose text was edited.

    The facts that the old texts support are added to the batch ``known``.
    """
    # An edit is never the first attempt of a job.
    retried = {job.turn.uuid: job.turn for job in jobs if job.attempts > 1}
    episodes = await client.episodes(list(retried)) if retried else []
    before = {episode.uuid: episode.content for episode in episodes}
    changed = [turn for turn in before if before[turn] != retried[turn].content]
    if not changed:
        return {}
    known.known_ties = await journal.ties.needing(changed)
    facts = await client.facts_of_episodes(changed)
    known.known_ties = {**known.known_ties, **await journal.ties.of_facts([f.uuid for f in facts])}
    loaded = {fact.uuid for fact in facts}
    facts += await client.facts([fact for fact in known.known_ties if fact not in loaded])
    known.stored.update((fact.uuid, fact) for fact in facts)
    mentioned = await client.mentioned_nodes(changed)
    alone = await _alone(client, mentioned)
    closings = await journal.closings.of([fact.uuid for fact in facts])
    closed = frozenset(closing.fact for closing in closings)
    old_words: dict[str, OldWords] = {}
    for turn in changed:
        supported = tuple(
            fact.uuid
            for fact in facts
            if turn in fact.episodes or _needs(known.known_ties, fact.uuid, turn)
        )
        nodes = tuple(mentioned.get(turn, ()))
        old_words[turn] = OldWords(
            supported,
            nodes,
            tuple(node for node in nodes if node in alone),
            retried[turn].content.startswith(before[turn].rstrip("\n") + _PARAGRAPH),
            closed,
        )
    return old_words


def plan_rewording(batch: Batch, job: Job, old: OldWords) -> None:
    """Plan the retractions of an edited text, after all that its new version states is planned.

    A node that only this text mentions and no fact joins keeps its mention: forgetting the text
    must find it.
    """
    turn = job.turn.uuid
    batch.reworded.add(turn)
    stated = set(batch.episodes[turn].facts)
    for uuid in () if old.stay else old.facts:
        fact = batch.fact(uuid)
        ties = batch.known_ties.get(uuid, {})
        batch.reread |= broken_holders(ties, {turn})
        if fact is None or uuid in stated:
            continue
        is_closed = uuid in old.closed_by_others
        after = take_back(fact, turn, batch.at, ties, closed_by_others=is_closed)
        if after != fact:
            batch.put_fact(after)
    batch.mention(turn, old.mentioned if old.stay else old.alone)
    read_anew = job.payload.extraction == "model"
    batch.parted += [
        (turn, node) for node in old.mentioned if read_anew or (turn, node) not in batch.mentions
    ]


def _needs(ties: Ties, fact: str, turn: str) -> bool:
    return any(turn in needs for needs in ties.get(fact, {}).values())


async def _alone(
    client: IsolatedGraphitiClient, mentioned: Mapping[str, Sequence[str]]
) -> set[str]:
    """Return the nodes that one episode mentions and no fact joins."""
    mentions = await client.episodes_of_nodes(
        list({node for nodes in mentioned.values() for node in nodes})
    )
    once = [node for node, episodes in mentions.items() if len(episodes) == 1]
    joined = {
        end
        for fact in await client.facts_of_nodes(once, _FACTS)
        for end in (fact.subject, fact.object)
    }
    return set(once) - joined


async def without_lost_names(
    client: IsolatedGraphitiClient,
    journal: Journal,
    turns: Sequence[str],
    gone: Collection[str],
    dropped: Collection[str],
) -> list[Node]:
    """Return the nodes that lose aliases when turns are forgotten, in their new form.

    An alias stays if another turn gave it or has it in its text, or if no turn gave it.

    Args:
        client: The entity's client.
        journal: The entity's journal.
        turns: The turns to forget; they must still be stored.
        gone: Nodes that are forgotten too.
        dropped: Turns that stay without the nodes and facts that were given with them.
    """
    mentioned = await client.mentioned_nodes(turns)
    ids = {node for nodes in mentioned.values() for node in nodes}.difference(gone)
    nodes = [node for node in await client.nodes(sorted(ids)) if node.aliases]
    lost_names = await _given_names(journal, turns)
    candidates = [
        node for node in nodes if any(fold(alias) in lost_names for alias in node.aliases)
    ]
    if not candidates:
        return []
    mentions = await journal.mentioning([node.uuid for node in candidates], _MOST_MENTIONS)
    changed: list[Node] = []
    for node in candidates:
        if node.uuid not in mentions:
            continue
        others = [turn for turn in mentions[node.uuid] if turn not in turns]
        other_names = await _given_names(journal, [turn for turn in others if turn not in dropped])
        texts = [fold(turn.content) for turn in await journal.turns(others)]
        aliases = tuple(
            alias
            for alias in node.aliases
            if fold(alias) not in lost_names
            or fold(alias) in other_names
            or any(fold(alias) in text for text in texts)
        )
        if aliases != node.aliases:
            changed.append(replace(node, aliases=aliases))
    return changed


def with_names_back(current: Node, before: Node) -> Node:
    """Return a node with the aliases that it had before, beside those that it has."""
    known = {fold(name) for name in (current.name, *current.aliases)}
    back = [alias for alias in before.aliases if fold(alias) not in known]
    return replace(current, aliases=(*current.aliases, *back)) if back else current


async def _given_names(journal: Journal, turns: Sequence[str]) -> set[str]:
    """Return the folded aliases from some turns: given with them, read by rules or by a command."""
    payloads: Mapping[str, JobPayload] = {
        turn: load_payload(stored) for turn, stored in (await journal.bin.given(turns)).items()
    }
    names: set[str] = set()
    for turn in await journal.turns(list(payloads)):
        names.update(
            fold(alias) for draft in _drafts(turn, payloads[turn.uuid]) for alias in draft.aliases
        )
    return names


def _drafts(turn: Turn, payload: JobPayload) -> Iterable[NodeDraft]:
    yield from payload.nodes
    yield from (payload.read or Reading()).nodes
    if payload.extraction == "rules" or payload.rules_meanwhile:
        yield from extract(turn).nodes
