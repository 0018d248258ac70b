"""What each perspective says of each question, asked once and kept, so that weights are tried without asking again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import compress, groupby
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from benchmarks.ablation import write_profile
from benchmarks.data import Question
from benchmarks.quality import Written
from pps.config import Settings
from pps.core.recalled import Hit
from pps.core.values import Turn, words_of
from pps.index.prompts import asks_what_was_asked, only_asks
from pps.journal.filters import ItemFilter
from pps.memory import Memory
from pps.recall.channel_profile import ChannelProfile
from pps.recall.perspectives import PERSPECTIVES
from pps.recall.ranking import NEAREST, of_turns

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
        sets: (Q,); the data that it is of, by name.
    """

    ranks: Floats
    factors: Floats
    gold: NDArray[np.bool_]
    golden: NDArray[np.int64]
    conversations: tuple[str, ...]
    sets: tuple[str, ...]

    def of(self, wanted: Sequence[bool]) -> Lists:
        """Return some of the questions."""
        kept = np.asarray(wanted)
        names, sets = (tuple(compress(one, wanted)) for one in (self.conversations, self.sets))
        return Lists(
            self.ranks[kept], self.factors[kept], self.gold[kept], self.golden[kept], names, sets
        )

    def parts(self) -> tuple[str, ...]:
        """Return what is held out in turn, a question each: its set, or its conversation where there is but one set."""
        return self.sets if len(set(self.sets)) > 1 else self.conversations

    def figures(self, weights: Weights) -> Floats:
        """Return R@5, R@10 and MRR@10 of each question in [0, 1], shape (Q, 3)."""
        fused = (np.asarray(weights.of) / (weights.k + self.ranks)).sum(axis=2)
        pool = np.argsort(-fused, axis=1, kind="stable")[:, :_POOL]
        ahead = fused.max() * self.factors.max() * self.unanimous(weights)
        scores = np.take_along_axis(fused * self.factors + ahead, pool, axis=1)
        best = np.take_along_axis(pool, np.argsort(-scores, axis=1, kind="stable")[:, :10], axis=1)
        gains = np.take_along_axis(self.gold, best, axis=1)
        first = np.where(gains.any(axis=1), 1 / (1 + gains.argmax(axis=1)), 0.0)
        return np.stack(
            [gains[:, :5].sum(axis=1) / self.golden, gains.sum(axis=1) / self.golden, first], axis=1
        )

    def unanimous(self, weights: Weights) -> NDArray[np.bool_]:
        """Return which candidates every list that says anything ranks first, shape (Q, C)."""
        ranks = self.ranks[:, :, np.asarray(weights.of) > 0]
        best = ranks.min(axis=1, keepdims=True)
        return ((ranks == best) | np.isinf(best)).all(axis=2) & np.isfinite(ranks).any(axis=2)


def tunable(channel: ChannelProfile) -> tuple[str, ...]:
    """Return the perspectives that bring lists of their own; those that only weigh depend on the weights."""
    return tuple(name for name in channel.perspectives if PERSPECTIVES[name].finds)


def single_profiles(settings: Settings, names: Sequence[str], filters: ItemFilter) -> None:
    """Write a profile for each perspective alone, with what all of them let through."""
    for name in names:
        write_profile(
            settings, _alone(name), {"perspectives": {name: 1.0}, "k": 0}, filters=filters
        )


@dataclass(slots=True)
class Asked:
    """One question's lists: (id, rank) by perspective, and the turns' factors."""

    question: Question
    data: str
    conversation: str
    said: list[list[tuple[str, float]]]
    factors: Mapping[str, float]


async def ask_lists(
    memory: Memory,
    data: str,
    written: Written,
    questions: Sequence[Question],
    channel: ChannelProfile,
) -> list[Asked]:
    """Ask every question of each perspective alone; what only asks has no rank where the channel puts it last."""
    names = tunable(channel)
    asked: list[Asked] = []
    for question in questions:
        statements = channel.statements_first and not asks_what_was_asked(question.text)
        hits = [await _hits(memory, question.text, name) for name in names]
        if statements:
            hits = [[hit for hit in found if not _only_asks(hit)] for found in hits]
        turns = {hit.id: hit.item for found in hits for hit in found if isinstance(hit.item, Turn)}
        near = hits[names.index("dense")][:NEAREST] if "dense" in names else ()
        damped = of_turns(question.text, turns, channel, {hit.id for hit in near})
        factors = {written.ids[one]: factor for one, factor in damped.items() if one in written.ids}
        said = [
            [(written.ids[one], rank) for one, rank in ranked(found, channel.depth)]
            for found in hits
        ]
        asked.append(Asked(question, data, written.conversation, said, factors))
    return asked


def _only_asks(hit: Hit) -> bool:
    return isinstance(hit.item, Turn) and only_asks(words_of(hit.item))


def ranked(hits: Sequence[Hit], depth: int) -> list[tuple[str, float]]:
    """Return (id, rank) of a list cut to a depth; equal scores share the mean of their ranks, as in the engine."""
    found: list[tuple[str, float]] = []
    for _, tied in groupby(hits[:depth], key=lambda hit: hit.score):
        group = list(tied)
        found += [(hit.id, len(found) + (len(group) + 1) / 2) for hit in group]
    return found


def gathered(asked: Sequence[Asked]) -> Lists:
    """Return the lists of all questions as arrays."""
    candidates = [
        list(dict.fromkeys(turn for one in each.said for turn, _ in one)) for each in asked
    ]
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
    names, sets = tuple(each.conversation for each in asked), tuple(each.data for each in asked)
    return Lists(ranks, factors, gold, golden, names, sets)


async def _hits(memory: Memory, query: str, name: str) -> Sequence[Hit]:
    if not query.strip():
        return ()
    return (await memory.recall(query, profile=_alone(name), channels=("episodes",), limit=_MOST))[
        "episodes"
    ]


def _alone(name: str) -> str:
    return f"only-{name}"
