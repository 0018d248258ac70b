"""Figures of a ranked list against the turns that answer a question."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import asdict, dataclass
from statistics import fmean

FIGURES = ("R@5", "R@10", "R@20", "MRR@10", "nDCG@10", "returned")


@dataclass(frozen=True, slots=True)
class Answer:
    """What one question brought back: distinct turns, best first, and how long it took."""

    conversation: str
    question: str
    category: str
    gold: frozenset[str]
    turns: tuple[str, ...]
    took_ms: float


def figures(gold: AbstractSet[str], turns: Sequence[str]) -> dict[str, float]:
    """Return recall at 5, 10 and 20, reciprocal rank and nDCG at 10 in [0, 1], and the length of the list."""
    gains = [turn in gold for turn in turns]
    first = next((1 / rank for rank, hit in enumerate(gains[:10], start=1) if hit), 0.0)
    ideal = sum(1 / math.log2(rank + 1) for rank in range(1, min(10, len(gold)) + 1))
    found = sum(1 / math.log2(rank + 1) for rank, hit in enumerate(gains[:10], start=1) if hit)
    recalls = {f"R@{cut}": sum(gains[:cut]) / len(gold) for cut in (5, 10, 20)}
    return {**recalls, "MRR@10": first, "nDCG@10": found / ideal, "returned": float(len(turns))}


def summary(answers: Sequence[Answer]) -> dict[str, object]:
    """Return every figure in percent, over all questions, by category and by conversation, and the latency."""
    return {
        "all": _mean(answers),
        "categories": _grouped(answers, lambda answer: answer.category),
        "conversations": _grouped(answers, lambda answer: answer.conversation),
        "latency_ms": latency([answer.took_ms for answer in answers]),
    }


def latency(times_ms: Sequence[float]) -> dict[str, float]:
    """Return the median and the upper percentiles of wall times."""
    ordered = sorted(times_ms)
    cuts = {"p50": 0.5, "p95": 0.95, "p99": 0.99}
    return {name: round(ordered[min(len(ordered) - 1, int(cut * len(ordered)))], 2) for name, cut in cuts.items()}


def _grouped(answers: Sequence[Answer], key: Callable[[Answer], str]) -> dict[str, Mapping[str, float]]:
    groups = sorted({key(answer) for answer in answers})
    return {group: _mean([answer for answer in answers if key(answer) == group]) for group in groups}


def _mean(answers: Sequence[Answer]) -> dict[str, float]:
    rows = [figures(answer.gold, answer.turns) for answer in answers]
    percent = {name: round(100 * fmean(row[name] for row in rows), 2) for name in FIGURES if name != "returned"}
    return {"questions": len(answers), **percent, "returned": round(fmean(row["returned"] for row in rows), 2)}


def line(answer: Answer) -> dict[str, object]:
    """Return an answer as it is written to a file of single results."""
    return {**asdict(answer), "gold": sorted(answer.gold)}
