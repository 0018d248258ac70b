"""Weights are chosen on some conversations and judged on the one that was held out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, cast

import numpy as np
import pytest

from benchmarks.choosing import better_on_most, cross_validated, means, search, written
from benchmarks.data import Question
from benchmarks.lists import Asked, Lists, Weights, gathered, ranked
from pps.core.errors import InvalidRequest
from pps.core.recalled import Hit
from pps.recall.ranking import fused
from pps.recall.search import Scored

PROFILE = """# Why it is so.
description = "d"

[channels.episodes]
distinct = true
[channels.episodes.perspectives]
good = 1.0 # said here
bad = 1.0

[channels.anchors]
[channels.anchors.perspectives]
good = 1.0
"""


@dataclass(frozen=True)
class _Hit:
    id: str
    score: float


def asked(
    conversation: str, number: int, good: list[str], bad: list[str], gold: str, data: str = "data"
) -> Asked:
    said = [
        [(one, float(rank)) for rank, one in enumerate(entries, start=1)] for entries in (good, bad)
    ]
    return Asked(
        Question(f"{conversation}{number}", "?", "1", frozenset({gold})),
        data,
        conversation,
        said,
        {},
    )


def two_perspectives(conversations: tuple[str, ...]) -> Lists:
    """One list has what answers first; the other has only what does not, and first what the one has second."""
    return gathered(
        [
            asked(name, number, ["g", "x"], ["x", "y"], "g")
            for name in conversations
            for number in range(4)
        ]
    )


def test_joining_again_is_what_the_engine_does() -> None:
    rng = np.random.default_rng(4)
    for _ in range(20):
        lists = {
            name: [Scored(f"t{one}", float(-one), 0.0) for one in rng.permutation(30)[:12]]
            for name in ("a", "b")
        }
        order = {
            name: [Scored(one.id, -rank, 0.0) for rank, one in enumerate(said)]
            for name, said in lists.items()
        }
        expected = list(fused(order, {"a": 0.5, "b": 2.0}, k=7))
        for cut in (5, 10):
            gold = expected[cut - 1]
            said = [
                [(one.id, float(rank)) for rank, one in enumerate(order[name], start=1)]
                for name in ("a", "b")
            ]
            question = Asked(Question("q", "?", "1", frozenset({gold})), "d", "c", said, {})
            found = gathered([question]).figures(Weights(7, (0.5, 2.0)))[0]
            assert found.tolist() == pytest.approx([float(cut == 5), 1.0, 1 / cut])


def test_equal_scores_share_their_mean_rank_within_the_depth() -> None:
    hits = cast("Any", [_Hit("a", 3), _Hit("b", 2), _Hit("c", 2), _Hit("d", 2), _Hit("e", 1)])

    assert ranked(cast("list[Hit]", hits), 4) == [("a", 1), ("b", 3), ("c", 3), ("d", 3)]


def test_what_damps_a_turn_counts() -> None:
    one = asked("c", 1, ["x", "g"], ["y", "g"], "g")
    damped = Asked(
        one.question, one.data, one.conversation, one.said, {"x": 0.1, "y": 0.1, "g": 1.0}
    )

    assert gathered([one]).figures(Weights(5, (1, 0.1)))[0][2] == 0.5
    assert gathered([damped]).figures(Weights(5, (1, 0.1)))[0][2] == 1.0


def test_what_every_list_ranks_first_stays_first_whatever_damps_it() -> None:
    one = asked("c", 1, ["g", "x"], ["g", "x"], "g")
    damped = Asked(one.question, one.data, one.conversation, one.said, {"x": 1.0, "g": 0.1})

    assert gathered([damped]).figures(Weights(5, (1, 1)))[0][2] == 1.0
    assert gathered([damped]).figures(Weights(5, (0, 1)))[0][2] == 1.0


def test_a_search_finds_the_list_that_answers_and_leaves_what_gains_nothing() -> None:
    lists = two_perspectives(("a", "b"))
    start = Weights(5.0, (1.0, 1.0))

    chosen = search(lists, start)

    assert sum(means(lists, chosen)) > sum(means(lists, start))
    assert chosen.of[0] > chosen.of[1]
    assert search(lists, chosen) == chosen


def test_each_conversation_is_judged_by_what_the_others_chose() -> None:
    told: list[tuple[int, int]] = []
    lists = two_perspectives(("a", "b", "c"))

    held_out = cross_validated(
        lists, Weights(5.0, (1.0, 1.0)), lambda _, done, total: told.append((done, total))
    )

    assert [(one.name, one.questions) for one in held_out] == [("a", 4), ("b", 4), ("c", 4)]
    assert all(one.gain > 0 for one in held_out)
    assert better_on_most(held_out)
    assert told == [(1, 3), (2, 3), (3, 3)]
    assert (
        cross_validated(two_perspectives(("a",)), Weights(5.0, (1.0, 1.0)), lambda *_: None) == []
    )
    assert not better_on_most([])


def test_sets_weigh_the_same_and_are_held_out_whole() -> None:
    many = [
        asked(f"m{number % 2}", number, ["g", "x"], ["x", "y"], "g", "many") for number in range(30)
    ]
    few = [asked("f", number, ["x", "y"], ["g", "x"], "g", "few") for number in range(2)]
    lists = gathered([*many, *few])

    assert means(lists, Weights(1.0, (1.0, 0.0)))[2] == pytest.approx(200 / 3), (
        "the few weigh as much as the many"
    )
    found = cross_validated(lists, Weights(1.0, (1.0, 1.0)), lambda *_: None)
    assert [(one.name, one.questions) for one in found] == [("many", 30), ("few", 2)]


def test_a_profile_is_changed_in_its_episodes_alone() -> None:
    changed = written(PROFILE, 10.0, {"good": 2.0, "bad": 0.25})

    assert changed == PROFILE.replace("distinct = true\n", "distinct = true\nk = 10\n").replace(
        "good = 1.0 # said here\nbad = 1.0", "good = 2.0\nbad = 0.25"
    )
    assert written(changed, 20.0, {"good": 1.0, "bad": 1.0}).count("\nk = ") == 1
    with pytest.raises(InvalidRequest, match=r"channels\.episodes"):
        written("[channels.episodes]\nperspectives = { good = 1.0 }\n", 10.0, {"good": 2.0})
