"""How well recall finds the turns that answer a question: writing and asking, through the public verbs alone."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from benchmarks.data import Conversation, Question, Said
from benchmarks.scores import Answer
from pps.app import App
from pps.core.errors import InvalidRequest, PPSError
from pps.core.recalled import Channel
from pps.core.values import Turn
from pps.ingest.drafts import RememberOptions
from pps.memory import Memory
from pps.recall.request import MAX_QUERY

CUT, LONG_CUT = 10, 20
_BATCH = 200


class Progress(Protocol):
    """Told how far a long step is."""

    def __call__(self, what: str, done: int, total: int) -> None:
        """Take what is done and how much of it, out of how much."""
        ...


@dataclass(frozen=True, slots=True)
class Written:
    """One conversation as it lies in an entity of its own.

    Attributes:
        entity: The entity's name.
        ids: The data's id of each turn, by the turn's uuid.
    """

    conversation: str
    entity: str
    turns: int
    facts: int
    nodes: int
    seconds: float
    ids: Mapping[str, str]

    def of_data(self, uuids: Iterable[str]) -> tuple[str, ...]:
        """Return the data's ids of turns, each once, in order."""
        return tuple(dict.fromkeys(self.ids[one] for one in uuids if one in self.ids))


async def write(app: App, conversation: Conversation, entity: str, progress: Progress) -> Written:
    """Remember a conversation in a new entity and wait until graph and indexes have it."""
    started = time.perf_counter()
    await app.create(entity)
    turns = list(conversation.turns.values())
    ids: dict[str, str] = {}
    async with app.memory(entity) as memory:
        for start in range(0, len(turns), _BATCH):
            batch = turns[start : start + _BATCH]
            ids.update(await _remembered(memory, conversation, batch, start))
            await memory.settled()
            progress(f"writing {conversation.name}", start + len(batch), len(turns))
        stats = await memory.stats()
    seconds = round(time.perf_counter() - started, 2)
    return Written(conversation.name, entity, stats.turns, stats.facts, stats.nodes, seconds, ids)


async def _remembered(
    memory: Memory, conversation: Conversation, turns: Sequence[Said], first: int
) -> dict[str, str]:
    """Return the data's ids by the turns' uuids; a turn that the memory refuses is left out and counted."""
    drafts = [_drafted(turn, first + number) for number, turn in enumerate(turns)]
    try:
        receipts = await memory.remember_many(drafts)
    except InvalidRequest:
        if len(turns) == 1:
            conversation.note("turns that the memory refused")
            return {}
        alone = [
            await _remembered(memory, conversation, [turn], first + number)
            for number, turn in enumerate(turns)
        ]
        return {uuid: one for found in alone for uuid, one in found.items()}
    return {receipt.turn_id: turn.id for receipt, turn in zip(receipts, turns, strict=True)}


@dataclass(frozen=True, slots=True)
class Asking:
    """How questions are asked.

    Attributes:
        profile: A profile's name.
        long: Also ask for twenty, which R@20 needs; ranks may depend on how many are asked for.
    """

    profile: str
    long: bool = True


async def ask(
    memory: Memory, conversation: Conversation, written: Written, asking: Asking, progress: Progress
) -> list[Answer]:
    """Ask every question that has an answer; return the episodes channel's best turns of each."""
    questions = conversation.scored()
    answers: list[Answer] = []
    for question in questions:
        answers.append(await _answer(memory, question, written, asking))
        progress(f"asking {conversation.name} by {asking.profile}", len(answers), len(questions))
    return answers


async def _answer(memory: Memory, question: Question, written: Written, asking: Asking) -> Answer:
    """Ask one question. One that cannot be asked has its error told, and counts as one that found nothing."""
    nothing = Answer(written.conversation, question.id, question.category, question.gold, ())
    try:
        started = time.perf_counter()
        best = await _episodes(memory, question.text, asking.profile, CUT)
        took_ms = (time.perf_counter() - started) * 1000
        more = (
            await _episodes(memory, question.text, asking.profile, LONG_CUT) if asking.long else ()
        )
    except PPSError as error:
        return replace(nothing, error=f"{error.code}: {error.message}")
    return replace(
        nothing, turns=written.of_data(best), more=written.of_data(more), took_ms=round(took_ms, 3)
    )


async def _episodes(memory: Memory, query: str, profile: str, limit: int) -> Sequence[str]:
    recalled = await memory.recall(query[:MAX_QUERY], profile=profile, limit=limit)
    channel: Channel = recalled.channels["episodes"]
    if channel.error:
        raise PPSError(f"the episodes channel failed: {channel.error}")
    return [hit.item.uuid for hit in channel.hits if isinstance(hit.item, Turn)]


def _drafted(turn: Said, number: int) -> tuple[str, RememberOptions]:
    options: RememberOptions = {
        "actor": turn.actor,
        "role": turn.role,
        "session": turn.session,
        "source": "bench",
        # The data's own id may be longer than a reference is allowed to be.
        "source_ref": str(number),
        "occurred_at": turn.at,
        "nodes": tuple(turn.nodes.values()),
        "facts": tuple(turn.facts),
        "extraction": "given",
    }
    return turn.content, options
