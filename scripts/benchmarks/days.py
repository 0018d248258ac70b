"""Questions about a time alone, scored by days: the share of the ten turns shown whose day is meant."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC
from statistics import fmean
from typing import Any

from benchmarks.data import Conversation, Question
from benchmarks.quality import CUT, Progress
from pps.core.errors import PPSError
from pps.core.values import Turn
from pps.memory import Memory
from pps.recall.request import MAX_QUERY


@dataclass(frozen=True, slots=True)
class DayAnswer:
    """What one question about a time brought back.

    Attributes:
        shown: How many turns came back, at most ten.
        inside: Those of them whose day (UTC) is meant.
        error: Why the question could not be asked; it then counts as one that showed nothing.
    """

    conversation: str
    question: str
    category: str
    shown: int = 0
    inside: int = 0
    error: str = ""

    def precision(self) -> float:
        """Return P@10 in [0, 1]: 0 where nothing came back."""
        return self.inside / self.shown if self.shown else 0.0


async def ask_days(
    memory: Memory, conversation: Conversation, profile: str, progress: Progress
) -> list[DayAnswer]:
    """Ask every question about a time alone."""
    questions = conversation.timed()
    answers: list[DayAnswer] = []
    for question in questions:
        answers.append(await _answer(memory, conversation.name, question, profile))
        progress(f"asking {conversation.name} for times", len(answers), len(questions))
    return answers


async def _answer(memory: Memory, name: str, question: Question, profile: str) -> DayAnswer:
    try:
        recalled = await memory.recall(question.text[:MAX_QUERY], profile=profile, limit=CUT)
    except PPSError as error:
        problem = f"{error.code}: {error.message}"
        return DayAnswer(name, question.id, question.category, error=problem)
    channel = recalled.channels["episodes"]
    turns = [hit.item for hit in channel.hits if isinstance(hit.item, Turn)]
    days = [turn.occurred_at.astimezone(UTC).date().isoformat() for turn in turns]
    inside = sum(day in question.days for day in days)
    error = channel.error or ""
    return DayAnswer(name, question.id, question.category, len(turns), inside, error)


def day_figures(answers: Sequence[DayAnswer]) -> dict[str, Any]:
    """Return P@10 in percent over all questions and by category, and how many came back empty."""
    categories = sorted({answer.category for answer in answers})
    return {
        "all": _percent(answers),
        "categories": {
            category: _percent([answer for answer in answers if answer.category == category])
            for category in categories
        },
    }


def _percent(answers: Sequence[DayAnswer]) -> Mapping[str, Any]:
    return {
        "questions": len(answers),
        "P@10": round(100 * fmean(answer.precision() for answer in answers), 2),
        "empty": sum(answer.shown == 0 for answer in answers),
        "failed": sum(bool(answer.error) for answer in answers),
    }
