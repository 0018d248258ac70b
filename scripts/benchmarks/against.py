"""The other ways to search the same memories, in the same run with the same embedder."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence

from benchmarks.data import Conversation, Question
from benchmarks.plain import PlainRankings
from benchmarks.quality import CUT, LONG_CUT, Progress, Written
from benchmarks.scores import Answer
from benchmarks.stock import StockGraphiti
from pps.config import Settings
from pps.core.errors import InvalidRequest
from pps.entities.registry import Registry
from pps.models.protocols import Embedder

GRAPHITI = "graphiti"
SYSTEMS = (GRAPHITI, *PlainRankings.NAMES)


def systems(asked: str) -> tuple[str, ...]:
    """Return the names in a list that is separated by commas; ``all`` is every one.

    Raises:
        InvalidRequest: One of them is unknown.
    """
    names = tuple(dict.fromkeys(name.strip() for name in asked.split(",") if name.strip()))
    if unknown := [name for name in names if name not in (*SYSTEMS, "all")]:
        raise InvalidRequest("against", f"{unknown[0]!r} is none of {', '.join(SYSTEMS)}, all")
    return SYSTEMS if "all" in names else names


def ask_plain(
    conversation: Conversation, embedder: Embedder, progress: Progress
) -> dict[str, list[Answer]]:
    """Rank every question's turns by each plain ranking."""
    answers: dict[str, list[Answer]] = {name: [] for name in PlainRankings.NAMES}
    questions = conversation.scored()
    rankings = PlainRankings(conversation, embedder) if questions and conversation.turns else None
    for number, question in enumerate(questions, start=1):
        ranked = rankings.rank(question.text, LONG_CUT) if rankings else {}
        for name, found in answers.items():
            one = ranked.get(name)
            found.append(
                _answer(
                    conversation.name,
                    question,
                    one.turns if one else (),
                    one.took_ms if one else None,
                )
            )
        progress(f"asking {conversation.name} by plain rankings", number, len(questions))
    return answers


async def ask_graphiti(
    settings: Settings,
    conversation: Conversation,
    written: Written,
    embedder: Embedder,
    progress: Progress,
) -> list[Answer]:
    """Ask stock Graphiti over the graph that PPS wrote; a fact counts as the turns that support it.

    The memory has to be closed.
    """
    entry = await asyncio.to_thread(Registry(settings.home).get, written.entity)
    questions = conversation.scored()
    answers: list[Answer] = []
    stock = await StockGraphiti.open(settings, entry, embedder)
    try:
        for question in questions:
            started = time.perf_counter()
            asked = question.text.strip()
            facts = await stock.facts(asked, entry.entity.group, LONG_CUT) if asked else []
            took_ms = (time.perf_counter() - started) * 1000
            turns = written.of_data(turn for _, episodes in facts for turn in episodes)
            answers.append(_answer(conversation.name, question, turns, took_ms))
            progress(f"asking {conversation.name} by {GRAPHITI}", len(answers), len(questions))
    finally:
        await stock.close()
    return answers


def _answer(
    conversation: str, question: Question, turns: Sequence[str], took_ms: float | None
) -> Answer:
    ranked = tuple(turns)
    took = None if took_ms is None else round(took_ms, 3)
    return Answer(
        conversation,
        question.id,
        question.category,
        question.gold,
        ranked[:CUT],
        ranked[:LONG_CUT],
        took,
    )
