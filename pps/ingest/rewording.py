"""Texts that were changed since the graph knew them: what only their old words say is planned to hold no more.

That a text was changed is seen by its episode, which has its old words until all that hung on them is put right:
a change that was cut short is planned anew. What is mentioned is then read anew: without Graphiti's mentions, the
mark of a reading that is done, a model is asked again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pps.core.values import Turn
from pps.ingest.batch import Batch
from pps.ingest.support import take_back
from pps.isolation.client import IsolatedGraphitiClient
from pps.journal.values import Job

_FACTS = 100_000
_PARAGRAPH = "\n\n"


@dataclass(frozen=True, slots=True)
class OldWords:
    """What the graph has of a text from before it was changed.

    Attributes:
        facts: Uuids of the facts that it supports.
        mentioned: Uuids of the nodes that it mentions; alone: those that nothing else mentions and no fact joins.
        stay: Whether the old words are the beginning of the new ones: a paragraph was added, and they hold on.
    """

    facts: tuple[str, ...]
    mentioned: tuple[str, ...]
    alone: tuple[str, ...]
    stay: bool


async def load_old_words(client: IsolatedGraphitiClient, known: Batch, jobs: Sequence[Job]) -> dict[str, OldWords]:
    """Return turn → its old words, for each job whose text was changed; add the facts that it supports to a batch."""
    again = {job.turn.uuid: job.turn for job in jobs if job.attempts > 1}  # a change is never a job's first start
    before = {one.uuid: one.content for one in await client.episodes(list(again))} if again else {}
    changed = [turn for turn in before if before[turn] != again[turn].content]
    if not changed:
        return {}
    facts = await client.facts_of_episodes(changed)
    known.stored.update((fact.uuid, fact) for fact in facts)
    mentioned = await client.mentioned_nodes(changed)
    alone = await _alone(client, mentioned)
    return {
        turn: OldWords(
            tuple(fact.uuid for fact in facts if turn in fact.episodes),
            tuple(mentioned.get(turn, ())),
            tuple(node for node in mentioned.get(turn, ()) if node in alone),
            _goes_on(before[turn], again[turn]),
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
        if fact and uuid not in said and (after := take_back(fact, turn, batch.at)) != fact:
            batch.put_fact(after)
    batch.mention(turn, old.mentioned if old.stay else old.alone)
    read_anew = job.payload.extraction == "model"
    batch.parted += [(turn, node) for node in old.mentioned if read_anew or (turn, node) not in batch.mentions]


async def _alone(client: IsolatedGraphitiClient, mentioned: Mapping[str, Sequence[str]]) -> set[str]:
    """Return the nodes that are mentioned by one episode and that no fact joins."""
    mentions = await client.episodes_of_nodes(list({node for nodes in mentioned.values() for node in nodes}))
    once = [node for node, episodes in mentions.items() if len(episodes) == 1]
    joined = {end for fact in await client.facts_of_nodes(once, _FACTS) for end in (fact.subject, fact.object)}
    return set(once) - joined


def _goes_on(before: str, turn: Turn) -> bool:
    return turn.content.startswith(before.rstrip("\n") + _PARAGRAPH)
