"""Figures of a ranked list against the turns that answer a question."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import asdict, dataclass
from statistics import fmean
from typing import TypeAlias

FIGURES = ("R@5", "R@10", "R@20", "MRR@10", "nDCG@10")
"""In percent, beside ``returned``: how many turns came back."""

Figures: TypeAlias = "dict[str, float | int | None]"


@dataclass(frozen=True, slots=True)
class Answer:
    """What one question brought back.

    Attributes:
        turns: Distinct ids, best first: the ten that are scored at 5 and at 10.
        more: The same of a recall of twenty, for R@20 alone.
        took_ms: Wall time of the recall of ten; None where nothing was asked.
        error: Why the question could not be asked; it then counts as one that found nothing.
    """

    conversation: str
    question: str
    category: str
    gold: frozenset[str]
    turns: tuple[str, ...]
    more: tuple[str, ...] = ()
    took_ms: float | None = None
    error: str = ""


def figures(
    gold: AbstractSet[str], turns: Sequence[str], more: Sequence[str] = ()
) -> dict[str, float]:
    """Return recall at 5, 10 and 20, reciprocal rank and nDCG at 10 in [0, 1], and the length of the list.

    Args:
        gold: The ids that answer; at least one.
        turns: Distinct ids, best first.
        more: The longer list that R@20 is read from; ``turns`` where there is none.

    Source: binary gains; nDCG of Järvelin and Kekäläinen 2002 with ``1 / log2(rank + 1)``.
    """
    gains = [turn in gold for turn in turns[:10]]
    first = next((1 / rank for rank, hit in enumerate(gains, start=1) if hit), 0.0)
    ideal = sum(1 / math.log2(rank + 1) for rank in range(1, min(10, len(gold)) + 1))
    found = sum(1 / math.log2(rank + 1) for rank, hit in enumerate(gains, start=1) if hit)
    return {
        "R@5": sum(gains[:5]) / len(gold),
        "R@10": sum(gains) / len(gold),
        "R@20": len(gold & set((more or turns)[:20])) / len(gold),
        "MRR@10": first,
        "nDCG@10": found / ideal,
        "returned": float(len(turns)),
    }


def summary(answers: Sequence[Answer]) -> dict[str, object]:
    """Return every figure in percent, over all questions, by category and by conversation, and the latency.

    A question that could not be asked counts in the figures, and not in the latency.
    """
    return {
        "all": mean(answers),
        "categories": _grouped(answers, lambda answer: answer.category),
        "conversations": _grouped(answers, lambda answer: answer.conversation),
        "latency_ms": latency([answer.took_ms for answer in answers if answer.took_ms is not None]),
        "failed": sum(bool(answer.error) for answer in answers),
        "first_error": next((f"{one.question}: {one.error}" for one in answers if one.error), None),
    }


def mean(answers: Sequence[Answer]) -> Figures:
    """Return the mean of each figure in percent; None for each when no question is scored."""
    rows = [figures(answer.gold, answer.turns, answer.more) for answer in answers]
    percent = {
        name: round(100 * fmean(row[name] for row in rows), 2) if rows else None for name in FIGURES
    }
    returned = round(fmean(row["returned"] for row in rows), 2) if rows else None
    return {"questions": len(rows), **percent, "returned": returned}


def latency(times_ms: Sequence[float]) -> dict[str, float | None]:
    """Return the median and the upper percentiles of wall times; None for each where there are none."""
    ordered = sorted(times_ms)
    cuts = {"p50": 0.5, "p95": 0.95, "p99": 0.99}
    return {
        name: round(ordered[min(len(ordered) - 1, int(cut * len(ordered)))], 2) if ordered else None
        for name, cut in cuts.items()
    }


def ratios(
    ours: Mapping[str, float | int | None], theirs: Mapping[str, float | int | None]
) -> Figures:
    """Return ours over theirs, figure by figure; None where theirs is 0 or either is unknown."""
    found: Figures = {}
    for name in FIGURES:
        mine, other = ours.get(name), theirs.get(name)
        found[name] = round(mine / other, 3) if mine is not None and other else None
    return found


def line(answer: Answer) -> dict[str, object]:
    """Return an answer as it is written to a file of single results."""
    return {**asdict(answer), "gold": sorted(answer.gold)}


def _grouped(answers: Sequence[Answer], key: Callable[[Answer], str]) -> dict[str, Figures]:
    groups = sorted({key(answer) for answer in answers})
    return {group: mean([answer for answer in answers if key(answer) == group]) for group in groups}
