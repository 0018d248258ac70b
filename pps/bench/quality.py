"""How well recall finds the turns that answer a question, through the public verbs."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from pps.app import App
from pps.bench.data import Conversation, Question, Said
from pps.bench.scores import Answer
from pps.core.values import Turn
from pps.ingest.drafts import RememberOptions
from pps.memory import Memory

_BATCH = 200
_LIMIT = 20
Progress = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Written:
    """What was written into one entity, and how fast."""

    conversation: str
    turns: int
    facts: int
    unsupported_facts: int
    seconds: float


async def write(app: App, conversation: Conversation, progress: Progress) -> Written:
    """Remember a conversation in an entity of its own and wait until graph and indexes have it."""
    started = time.perf_counter()
    name = entity_name(conversation.name)
    await app.create(name)
    turns = list(conversation.turns.values())
    async with app.memory(name) as memory:
        for start in range(0, len(turns), _BATCH):
            await memory.remember_many([_drafted(turn) for turn in turns[start : start + _BATCH]])
        await memory.settled()
        stats = await memory.stats()
    seconds = time.perf_counter() - started
    progress(f"{conversation.name}: {stats.turns} turns, {stats.facts} facts in {seconds:.1f} s")
    return Written(conversation.name, stats.turns, stats.facts, conversation.unsupported, seconds)


async def ask(app: App, conversation: Conversation, profile: str) -> list[Answer]:
    """Ask every question that has an answer; return the episodes channel's best turns of each."""
    async with app.memory(entity_name(conversation.name)) as memory:
        asked = [one for one in conversation.questions if one.gold]
        return [await _answer(memory, conversation.name, question, profile) for question in asked]


async def _answer(memory: Memory, name: str, question: Question, profile: str) -> Answer:
    started = time.perf_counter()
    # Ranks do not depend on the limit below 25: the first ten of twenty are the ten best.
    recalled = await memory.recall(question.text, profile=profile, limit=_LIMIT)
    took_ms = (time.perf_counter() - started) * 1000
    channel = recalled.channels["episodes"]
    if channel.error:
        raise RuntimeError(f"{question.id}: the episodes channel failed: {channel.error}")
    turns = [hit.item.source_ref for hit in channel.hits if isinstance(hit.item, Turn)]
    return Answer(name, question.id, question.category, question.gold, tuple(dict.fromkeys(turns)), took_ms)


def entity_name(conversation: str) -> str:
    """Return a conversation's name as one that an entity may have."""
    return ("bench_" + re.sub(r"[^a-z0-9]+", "_", conversation.lower()))[:40]


def without_answers(conversations: Sequence[Conversation]) -> int:
    """Return how many questions name no turn and are not scored."""
    return sum(not question.gold for one in conversations for question in one.questions)


def _drafted(turn: Said) -> tuple[str, RememberOptions]:
    options: RememberOptions = {
        "actor": turn.actor,
        "session": turn.session,
        "source": "bench",
        "source_ref": turn.id,
        "occurred_at": turn.at,
        "nodes": tuple(turn.nodes.values()),
        "facts": tuple(turn.facts),
        "extraction": "given",
    }
    return turn.content, options
