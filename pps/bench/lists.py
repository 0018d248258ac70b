"""What each perspective says of each question, asked once and kept, so that weights are tried without asking again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import groupby
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from pps.bench.ablation import write_profile
from pps.bench.data import Conversation, Question
from pps.bench.quality import Progress, Written
from pps.config import Settings
from pps.core.recalled import Hit
from pps.core.values import Turn
from pps.journal.values import ItemFilter
from pps.memory import Memory
from pps.recall.damping import substance
from pps.recall.perspectives import PERSPECTIVES
from pps.recall.profiles import ChannelProfile
from pps.recall.query import is_question

_POOL = 50
"""Candidates that the engine reads for ten results: what lies farther down is not damped and not shown."""
_MOST = 100

Floats: TypeAlias = "NDArray[np.float64]"


@dataclass(frozen=True, slots=True)
class Weights:
    """How the lists of a channel are joined: ``k`` and a weight for each perspective, in the lists' order."""

    k: float
    of: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Lists:
    """Every question's candidates, padded to one size. Q questions, C candidates, P perspectives.

    Attributes:
        ranks: (Q, C, P); infinite where a perspective does not name the candidate.
        factors: (Q, C); what a candidate's score is multiplied by.
        gold: (Q, C); whether it answers.
        golden: (Q,); how many turns answer.
        conversations: (Q,); by name.
    """

    ranks: Floats
    factors: Floats
    gold: NDArray[np.bool_]
    golden: NDArray[np.int64]
    conversations: tuple[str, ...]

    def of(self, wanted: Sequence[bool]) -> Lists:
        """Return some of the questions."""
        kept = np.asarray(wanted)
        names = tuple(name for name, keep in zip(self.conversations, wanted, strict=True) if keep)
        return Lists(self.ranks[kept], self.factors[kept], self.gold[kept], self.golden[kept], names)

    def figures(self, weights: Weights) -> Floats:
        """Return R@5, R@10 and MRR@10 of each question in [0, 1], shape (Q, 3)."""
        fused = (np.asarray(weights.of) / (weights.k + self.ranks)).sum(axis=2)
        pool = np.argsort(-fused, axis=1, kind="stable")[:, :_POOL]
        scores = np.take_along_axis(fused * self.factors, pool, axis=1)
        best = np.take_along_axis(pool, np.argsort(-scores, axis=1, kind="stable")[:, :10], axis=1)
        gains = np.take_along_axis(self.gold, best, axis=1)
        first = np.where(gains.any(axis=1), 1 / (1 + gains.argmax(axis=1)), 0.0)
        return np.stack([gains[:, :5].sum(axis=1) / self.golden, gains.sum(axis=1) / self.golden, first], axis=1)


def tunable(channel: ChannelProfile) -> tuple[str, ...]:
    """Return the perspectives that bring lists of their own; those that only weigh depend on the weights."""
    return tuple(name for name in channel.perspectives if PERSPECTIVES[name].finds)


def single_profiles(settings: Settings, names: Sequence[str], filters: ItemFilter) -> None:
    """Write a profile for each perspective alone, with what all of them let through."""
    for name in names:
        write_profile(settings, _alone(name), {"perspectives": {name: 1.0}, "k": 0}, filters=filters)


@dataclass(slots=True)
class Asked:
    """One question's lists: (id, rank) by perspective, and the turns' factors."""

    question: Question
    conversation: str
    said: list[list[tuple[str, float]]]
    factors: Mapping[str, float]


async def ask_lists(
    memory: Memory, conversation: Conversation, written: Written, channel: ChannelProfile, progress: Progress
) -> list[Asked]:
    """Ask every question of each perspective alone."""
    names = tunable(channel)
    questions = conversation.scored()
    answering = after_questions(conversation, written) if channel.answers > 1 else frozenset[str]()
    asked: list[Asked] = []
    for question in questions:
        hits = [await _hits(memory, question.text, name) for name in names]
        turns = {hit.id: hit.item for found in hits for hit in found if isinstance(hit.item, Turn)}
        damped = substance(turns, channel.substance) if channel.substance else {}
        factors = {written.ids[one]: damped.get(one, 1.0) for one in turns if one in written.ids}
        factors.update((one, factors[one] * channel.answers) for one in answering & factors.keys())
        said = [[(written.ids[one], rank) for one, rank in ranked(found, channel.depth)] for found in hits]
        asked.append(Asked(question, conversation.name, said, factors))
        progress(f"asking {conversation.name} of each perspective", len(asked), len(questions))
    return asked


def after_questions(conversation: Conversation, written: Written) -> frozenset[str]:
    """Return the turns of the data that follow a question in their session, in the order that the journal has them."""
    kept, before = frozenset(written.ids.values()), dict[str, str]()
    found: set[str] = set()
    undated = datetime.max.replace(tzinfo=UTC)  # the moment of receipt: after all that the data date
    for turn in sorted(conversation.turns.values(), key=lambda one: one.at or undated):
        if turn.id in kept:
            if is_question(before.get(turn.session, "")):
                found.add(turn.id)
            before[turn.session] = turn.content
    return frozenset(found)


def ranked(hits: Sequence[Hit], depth: int) -> list[tuple[str, float]]:
    """Return (id, rank) of a list cut to a depth; equal scores share the mean of their ranks, as in the engine."""
    found: list[tuple[str, float]] = []
    for _, tied in groupby(hits[:depth], key=lambda hit: hit.score):
        group = list(tied)
        found += [(hit.id, len(found) + (len(group) + 1) / 2) for hit in group]
    return found


def gathered(asked: Sequence[Asked]) -> Lists:
    """Return the lists of all questions as arrays."""
    candidates = [list(dict.fromkeys(turn for one in each.said for turn, _ in one)) for each in asked]
    width, perspectives = max((10, *map(len, candidates))), len(asked[0].said) if asked else 0
    ranks = np.full((len(asked), width, perspectives), np.inf)
    factors, gold = np.ones((len(asked), width)), np.zeros((len(asked), width), dtype=bool)
    for row, (each, turns) in enumerate(zip(asked, candidates, strict=True)):
        at = {turn: number for number, turn in enumerate(turns)}
        for column, entries in enumerate(each.said):
            for turn, rank in entries:
                ranks[row, at[turn], column] = rank
        factors[row, : len(turns)] = [each.factors.get(turn, 1.0) for turn in turns]
        gold[row, : len(turns)] = [turn in each.question.gold for turn in turns]
    golden = np.asarray([len(each.question.gold) for each in asked], dtype=np.int64)
    return Lists(ranks, factors, gold, golden, tuple(each.conversation for each in asked))


async def _hits(memory: Memory, query: str, name: str) -> Sequence[Hit]:
    if not query.strip():
        return ()
    return (await memory.recall(query, profile=_alone(name), channels=("episodes",), limit=_MOST))["episodes"]


def _alone(name: str) -> str:
    return f"only-{name}"
