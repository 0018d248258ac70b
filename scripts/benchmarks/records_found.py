"""How precisely records are found: by meaning and by name, with a threshold that is chosen on other questions."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from benchmarks import records_data
from benchmarks.quality import Progress
from benchmarks.records_data import Topic
from pps.core.kinds import Kinds
from pps.ingest.record_vectors import embedding_text
from pps.memory import Memory
from pps.models.protocols import Matrix
from pps.recall.floor import least_similarity
from pps.records.finding import HYBRID_LEAST, SEMANTIC_LEAST, FoundRecord, RecordSearch

TOP = 10
CALIBRATION, SEED = 1 / 3, 25
"""Share of the topics whose questions choose the threshold, and what draws them."""
STEPS = tuple(round(0.01 * step, 2) for step in range(10, 71))
_FAR = 20_000
_WEIGHED = (0.3, 0.7)
"""Weights of structure and meaning that the second row of ``hybrid`` is asked with."""


@dataclass(frozen=True, slots=True)
class Asked:
    """A question, what was found (ids with cosines, the best first), and which ids are right."""

    topic: str
    found: tuple[tuple[str, float], ...]
    right: frozenset[str]

    def at(self, most: int = TOP) -> float:
        """Return the share of right ones among the first min(``most``, right)."""
        first = min(most, len(self.right))
        return sum(one in self.right for one, _ in self.found[:first]) / first


async def precision(memory: Memory, named: Memory, progress: Progress) -> dict[str, Any]:
    """Return what is found by meaning in ``memory``, and in ``named``, where each record says its area."""
    every = records_data.topics()
    ids = await _told(memory, every, named=False, progress=progress)
    areas = await _told(named, every, named=True, progress=progress)
    meant = await _questions(memory, every, ids)
    chance = random.Random(SEED)  # noqa: S311 - drawn alike each time
    drawn = chance.sample([one.name for one in every], round(len(every) * CALIBRATION))
    first = [one for one in meant if one.topic in drawn]
    rest = [one for one in meant if one.topic not in drawn]
    chosen = max(STEPS, key=lambda least: f1(first, least))
    told_areas = await _questions(named, every, areas)
    by_name = [
        Asked(
            one.name,
            await _found(named, RecordSearch(one.name, min_similarity=-1)),
            frozenset(areas[one.name]),
        )
        for one in every
    ]
    used = least_similarity(memory.finding.model) or SEMANTIC_LEAST
    leasts = sorted({chosen, used, HYBRID_LEAST, SEMANTIC_LEAST, 0.2, 0.3, 0.4, 0.5, 0.6})
    return {
        "records": sum(map(len, ids.values())),
        "topics": len(every),
        "questions": len(meant),
        "model": memory.finding.model,
        "copied_words": round(records_data.copied_share(every), 3),
        "calibration": {
            "topics": len(drawn),
            "questions": len(first),
            "chosen": chosen,
            "used": used,
        },
        "meaning": {
            "semantic_at_10": _mean(meant),
            "semantic_at_1": _mean(meant, 1),
            "topic_at_10": _mean(
                [Asked(one.topic, one.found, frozenset(ids[one.topic])) for one in meant]
            ),
            **await _anchored(memory, every, ids),
            "thresholds": {f"{one:g}": shown_by(rest, one) for one in leasts},
        },
        "name": {
            "semantic_at_10": _mean(by_name),
            "semantic_at_1": _mean(by_name, 1),
            "thresholds": {f"{one:g}": shown_by(by_name, one) for one in leasts},
        },
        "areas_told": {
            "copied_words": round(records_data.copied_share(every, named=True), 3),
            "semantic_at_10": _mean(told_areas),
            "topic_at_10": _mean(
                [Asked(one.topic, one.found, frozenset(areas[one.topic])) for one in told_areas]
            ),
        },
        **await asyncio.to_thread(_similarities, memory, every),
    }


async def _told(
    memory: Memory, every: Sequence[Topic], *, named: bool, progress: Progress
) -> dict[str, list[str]]:
    """Write the topics; return the ids of each, two for every record, in their order."""
    ids: dict[str, list[str]] = {}
    for at, topic in enumerate(every):
        given = records_data.told(topic, 0, every[(at + 1) % len(every)], named=named)
        saved = (await memory.records.save(given, wait="journal")).records
        ids[topic.name] = [one.record.id for one in saved[: 2 * len(topic.records)]]
        progress("topics by name" if named else "topics by meaning", at + 1, len(every))
    await memory.settled(_FAR)
    return ids


async def _questions(
    memory: Memory, every: Sequence[Topic], ids: dict[str, list[str]]
) -> list[Asked]:
    return [
        Asked(topic.name, await _found(memory, RecordSearch(question, min_similarity=-1)), right)
        for topic in every
        for question, right in _right(topic, ids[topic.name])
    ]


def _right(topic: Topic, own: Sequence[str]) -> list[tuple[str, frozenset[str]]]:
    """Return each question with the ids of the records that answer it."""
    return [
        (question, frozenset(one for at, one in enumerate(own) if at // 2 in numbers))
        for question, numbers in zip(topic.questions, topic.answers, strict=True)
    ]


async def _anchored(
    memory: Memory, every: Sequence[Topic], ids: dict[str, list[str]]
) -> dict[str, Any]:
    """Return precision with the topic's goal as anchor, which is no answer then: by the seed's weights and by others.

    ``semantic_but_anchor`` is the same questions and answers by meaning alone. ``near_wrong`` is which share of the
    wrong ones came by nearness.
    """
    with_weights: dict[tuple[float, float], list[Asked]] = {(0.6, 0.4): [], _WEIGHED: []}
    alone: list[Asked] = []
    near, wrong = 0, 0
    for topic in every:
        own = ids[topic.name]
        for question, answers in _right(topic, own):
            right = answers - {own[0]}
            told = await _found(memory, RecordSearch(question, min_similarity=-1, limit=TOP + 1))
            alone.append(
                Asked(topic.name, tuple(one for one in told if one[0] != own[0])[:TOP], right)
            )
            for weights, asked in with_weights.items():
                search = RecordSearch(
                    question,
                    min_similarity=-1,
                    anchor_node_id=own[0],
                    structural_weight=weights[0],
                    semantic_weight=weights[1],
                )
                found = (await memory.finding.search(search)).results
                asked.append(Asked(topic.name, _cosines(found), right))
                if weights == (0.6, 0.4):
                    missed = [one for one in found[: len(right)] if one.node.uuid not in right]
                    near, wrong = (
                        near + sum(one.structural > 0 for one in missed),
                        wrong + len(missed),
                    )
    seed, others = with_weights.values()
    return {
        "hybrid_at_10": _mean(seed),
        "hybrid_weighed_at_10": _mean(others),
        "semantic_but_anchor_at_10": _mean(alone),
        "near_wrong": round(near / max(1, wrong), 3),
    }


async def _found(memory: Memory, wanted: RecordSearch) -> tuple[tuple[str, float], ...]:
    return _cosines((await memory.finding.search(wanted)).results)


def _cosines(found: Sequence[FoundRecord]) -> tuple[tuple[str, float], ...]:
    return tuple((one.node.uuid, one.semantic) for one in found)


def _mean(asked: Sequence[Asked], most: int = TOP) -> float:
    return round(sum(one.at(most) for one in asked) / len(asked), 3)


def _counts(asked: Sequence[Asked], least: float) -> tuple[int, int, int, int]:
    """Return how many of the ten best are shown, how many of those are right, could be, and questions with one."""
    shown = [[one in each.right for one, cosine in each.found if cosine >= least] for each in asked]
    could = sum(min(TOP, len(one.right)) for one in asked)
    return sum(map(len, shown)), sum(map(sum, shown)), could, sum(any(one) for one in shown)


def f1(asked: Sequence[Asked], least: float) -> float:
    shown, right, could, _ = _counts(asked, least)
    return 2 * right / (shown + could)


def shown_by(asked: Sequence[Asked], least: float) -> dict[str, float]:
    """Return what a threshold lets through of the ten best: how many a question, and how many of those are wrong."""
    shown, right, could, answered = _counts(asked, least)
    return {
        "shown": round(shown / len(asked), 2),
        "false_positives": round(1 - right / shown, 3) if shown else 0.0,
        "recall": round(right / could, 3),
        "answered": round(answered / len(asked), 3),
    }


def _similarities(memory: Memory, every: Sequence[Topic]) -> dict[str, Any]:
    """Return cosines of duplicates and of unrelated records, and the silhouette of the topics."""
    embedder = memory.finding.embedder
    if embedder is None:
        return {}
    text = partial(_text, memory.kinds)
    pairs = records_data.duplicates()
    first = embedder.embed_passages([text("Task", *one) for one, _ in pairs])
    again = embedder.embed_passages([text("Task", *other) for _, other in pairs])
    twice = np.sum(first * again, axis=1)
    given = [(at, one) for at, topic in enumerate(every) for one in records_data.told(topic, 0)]
    rows = embedder.embed_passages(
        [text(one.kind, one.title or "", one.summary or "") for _, one in given]
    )
    labels = np.array([at for at, _ in given])
    cosines = rows @ rows.T
    apart = cosines[labels[:, None] < labels[None, :]]
    whole = labels[:: len(records_data.AS_IT_IS) * 2]
    own = embedder.embed_passages([text("Task", *one) for topic in every for one in topic.records])
    return {
        "duplicates": {
            "median": _round(np.median(twice)),
            "above_0_9": _round((twice > 0.9).mean()),
        },
        "unrelated": {
            "median": _round(np.median(apart)),
            "below_0_4": _round((apart < 0.4).mean()),
        },
        "silhouette": _round(silhouette(rows, labels)),
        "silhouette_as_it_is": _round(
            silhouette(own, np.repeat(whole, len(records_data.AS_IT_IS)))
        ),
    }


def silhouette(rows: Matrix, labels: np.ndarray) -> float:
    """Return the mean silhouette of rows by cosine distance. Source: Rousseeuw 1987."""
    distances = 1 - rows @ rows.T
    members = labels[None, :] == np.unique(labels)[:, None]
    sums = distances @ members.T
    sizes = members.sum(axis=1)
    own = np.searchsorted(np.unique(labels), labels)
    at = np.arange(len(labels))
    inside = sums[at, own] / np.maximum(1, sizes[own] - 1)
    means = sums / sizes
    means[at, own] = np.inf
    outside = means.min(axis=1)
    return float(((outside - inside) / np.maximum(inside, outside)).mean())


def _text(kinds: Kinds, kind: str, title: str, summary: str) -> str:
    return embedding_text(kinds.kind(kind), title, summary, {})


def _round(value: Any) -> float:
    return round(float(value), 3)
