"""What a fact owes to the texts that say it: a changed text takes it back, one that says it lets it hold."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from pps.core.text import fold
from pps.core.values import Fact, Turn
from pps.ingest.batch import Batch
from pps.isolation.client import IsolatedGraphitiClient
from pps.journal.entries import Job
from pps.journal.journal import Journal
from pps.journal.tie_rows import Ties

_FACTS = 100_000
_PARAGRAPH = "\n\n"
_WORD = re.compile(r"[^\W_]+")
_SHORT = re.compile(r"['’](?:s|m|d|t|ve|re|ll)\b")
_ENDING = re.compile(r"(?<=\w\w\w)(?:ing|ed|es|s)$")
_IDLE_WORDS = """
a an the is are was were be been am has have had do does did and of in on at to for from with as by that this now it
its his her their our my i he she they we you really still also just too so very currently
called named
"""
_IDLE = frozenset(_IDLE_WORDS.split())


def adds_nothing(text: str, fact: Fact, names: Sequence[str]) -> bool:
    """Tell whether a statement has no word that is not in a fact, in the names of its ends or in its relation."""
    known = content_words(" ".join((fact.text, fact.relation.replace("_", " "), *names)))
    return content_words(text) <= known


def content_words(text: str) -> set[str]:
    """Return the words of a text that carry meaning, without their endings."""
    return {
        _ENDING.sub("", word)
        for word in _WORD.findall(_SHORT.sub("", fold(text)))
        if word not in _IDLE
    }


def taken_back(fact: Fact) -> bool:
    """Tell whether a fact ended because the one text that said it was changed."""
    return (
        fact.kind == "fact" and fact.invalid_at is not None and fact.invalid_at == fact.expired_at
    )


def supports_left(
    fact: Fact, ties: Mapping[str, frozenset[str]], lost: Collection[str]
) -> tuple[str, ...]:
    """Return the episodes that still support a fact when some turns are lost; empty when none does.

    Args:
        fact: As it was.
        ties: Turn that holds the fact → the other turns that it needs for that. Such a turn supports it only as long
            as all of them are there, and they do only with it.
        lost: Turns that are forgotten, or say something else.
    """
    together = [{holder, *needs} for holder, needs in ties.items()]
    whole = [turns for turns in together if turns.isdisjoint(lost)]
    tied = set[str]().union(*together)
    kept = set[str]().union(*whole)
    return tuple(
        one
        for one in dict.fromkeys(fact.episodes)
        if one not in lost and (one in kept or one not in tied)
    )


def broken_holders(ties: Mapping[str, frozenset[str]], lost: Collection[str]) -> set[str]:
    """Return the turns that hold a fact no more since they need one of those that are lost."""
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
    """Return a fact as it is once a text says it no more: without that support, or ended when nothing else says it.

    Relations, and facts that had ended before ``at``, stay as they are when nothing else supports them; one that other
    statements had ended (``closed_by_others``) keeps its end and is taken back: nothing opens it again. ``ties`` as
    ``supports_left``.
    """
    if fact.kind != "fact":
        return fact
    if others := supports_left(fact, ties or {}, {turn}):
        return replace(fact, episodes=others)
    ended = fact.expired_at is not None if fact.invalid_at is None else fact.invalid_at <= at
    if ended and closed_by_others and fact.invalid_at is not None:
        return replace(fact, expired_at=fact.invalid_at)
    return fact if ended else replace(fact, invalid_at=at, expired_at=at)


def said_by(fact: Fact, turn: str) -> Fact:
    """Return a fact as it is once a text says it: supported by that text, once, and no longer taken back."""
    if taken_back(fact):
        return replace(fact, invalid_at=None, expired_at=None, episodes=(turn,))
    return replace(fact, episodes=tuple(dict.fromkeys((*fact.episodes, turn))))


async def with_days(
    facts: Sequence[Fact], client: IsolatedGraphitiClient, journal: Journal
) -> list[Fact]:
    """Return facts of the graph, those without a day from the first text that says them on; the graph has it then."""
    undated = [fact for fact in facts if fact.kind == "fact" and fact.valid_at is None]
    said = await journal.turns(list({turn for fact in undated for turn in fact.episodes}))
    days = {turn.uuid: turn.occurred_at for turn in said}
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
    """What the graph has of a text from before it was changed.

    Attributes:
        facts: Uuids of the facts that it supports.
        mentioned: Uuids of the nodes that it mentions; alone: those that nothing else mentions and no fact joins.
        stay: Whether the old words are the beginning of the new ones: a paragraph was added, and they hold on.
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
    """Return turn → its old words, for each job whose text was changed; add the facts that it supports to a batch."""
    again = {
        job.turn.uuid: job.turn for job in jobs if job.attempts > 1
    }  # a change is never a job's first start
    before = {one.uuid: one.content for one in await client.episodes(list(again))} if again else {}
    changed = [turn for turn in before if before[turn] != again[turn].content]
    if not changed:
        return {}
    known.known_ties = await journal.ties.needing(changed)
    facts = await client.facts_of_episodes(changed)
    known.known_ties = {**known.known_ties, **await journal.ties.of_facts([f.uuid for f in facts])}
    tied = [fact for fact in known.known_ties if fact not in {known.uuid for known in facts}]
    facts += await client.facts(tied)
    known.stored.update((fact.uuid, fact) for fact in facts)
    mentioned = await client.mentioned_nodes(changed)
    alone = await _alone(client, mentioned)
    closed = {one.fact for one in await journal.closings.of([fact.uuid for fact in facts])}
    return {
        turn: OldWords(
            tuple(
                fact.uuid
                for fact in facts
                if turn in fact.episodes or _needs(known.known_ties, fact.uuid, turn)
            ),
            tuple(mentioned.get(turn, ())),
            tuple(node for node in mentioned.get(turn, ()) if node in alone),
            _goes_on(before[turn], again[turn]),
            frozenset(closed),
        )
        for turn in changed
    }


def plan_rewording(batch: Batch, job: Job, old: OldWords) -> None:
    """Plan what becomes of a text's old words, once all that its new ones say is planned.

    A node that nothing else mentions and no fact joins keeps its mention: forgetting the text must find it.
    """
    turn = job.turn.uuid
    batch.reworded.add(turn)
    said = set(batch.episodes[turn].facts)
    for uuid in () if old.stay else old.facts:
        fact = batch.fact(uuid)
        ties = batch.known_ties.get(uuid, {})
        batch.reread |= broken_holders(ties, {turn})
        if fact is None or uuid in said:
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
    """Return the nodes that are mentioned by one episode and that no fact joins."""
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


def _goes_on(before: str, turn: Turn) -> bool:
    return turn.content.startswith(before.rstrip("\n") + _PARAGRAPH)
