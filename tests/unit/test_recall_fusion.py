"""Joining lists: reciprocal ranks, weighted sums, and the reasons that are kept."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pps.recall.hits import ranks_of, signals_of
from pps.recall.ranking import WEAK_BM25, best_of, fused, in_order, summed, textual, unanimous
from pps.recall.search import Scored


def entries(*ids: str, signal: float = 1.0) -> list[Scored]:
    return [Scored(one, 1.0 / rank, signal) for rank, one in enumerate(ids, 1)]


def test_each_list_adds_its_weight_over_k_plus_rank() -> None:
    scores = fused({"a": entries("x", "y"), "b": entries("y")}, {"a": 1.0, "b": 0.5}, k=5)

    assert scores == pytest.approx({"y": 1 / 7 + 0.5 / 6, "x": 1 / 6})
    assert list(scores) == ["y", "x"]


def test_an_item_of_two_lists_beats_the_first_of_one() -> None:
    scores = fused({"a": entries("x", "y"), "b": entries("z", "y")}, {"a": 1, "b": 1}, k=5)

    assert next(iter(scores)) == "y"


def test_ties_keep_the_order_of_the_lists_whatever_the_ids_are() -> None:
    assert list(fused({"a": entries("x"), "b": entries("y")}, {"a": 1, "b": 1}, k=5)) == ["x", "y"]
    assert list(fused({"a": entries("y"), "b": entries("x")}, {"a": 1, "b": 1}, k=5)) == ["y", "x"]


def test_equal_values_of_a_list_share_the_mean_of_their_ranks_whatever_their_order() -> None:
    first, tied = Scored("x", 3.0, 1.0), [Scored("y", 2.0, 1.0), Scored("z", 2.0, 1.0)]

    for order in (tied, tied[::-1]):
        scores = fused({"a": [first, *order, Scored("v", 1.0, 1.0)]}, {"a": 1.0}, k=5)
        assert scores == pytest.approx({"x": 1 / 6, "y": 1 / 7.5, "z": 1 / 7.5, "v": 1 / 9})


@given(
    st.lists(st.lists(st.sampled_from("abcdefgh"), unique=True, max_size=8), min_size=1, max_size=4)
)
def test_fusion_keeps_every_id_once_and_none_else(lists: list[list[str]]) -> None:
    named = {str(at): entries(*ids) for at, ids in enumerate(lists)}
    scores = fused(named, dict.fromkeys(named, 1.0), k=5)

    assert set(scores) == {one for ids in lists for one in ids}
    assert list(scores.values()) == sorted(scores.values(), reverse=True)


def test_a_sum_weighs_signals_and_renormalises_over_those_that_apply() -> None:
    lists = {
        "dense": [Scored("x", 0.9, 0.9)],
        "bm25": [Scored("x", 12.0, 0.5), Scored("y", 12.0, 1.0)],
        "tags": [],
    }
    scores = summed(lists, {"dense": 0.4, "bm25": 0.3, "tags": 0.3})

    assert scores == pytest.approx({"x": (0.4 * 0.9 + 0.3 * 0.5) / 0.7, "y": 0.3 / 0.7})


def test_a_sum_of_signals_stays_in_the_unit_interval() -> None:
    lists = {name: entries("x", "y", signal=1.0) for name in ("a", "b")}

    assert summed(lists, {"a": 3.0, "b": 9.0}) == pytest.approx({"x": 1.0, "y": 1.0})


SIGNALS = st.dictionaries(st.sampled_from("uvwxyz"), st.floats(0, 1), max_size=6)


@given(
    st.lists(st.tuples(SIGNALS, st.floats(0.01, 100)), min_size=1, max_size=5), st.floats(0.01, 100)
)
def test_a_weighted_sum_is_a_mean_that_only_the_relation_of_weights_decides(
    parts: list[tuple[dict[str, float], float]], factor: float
) -> None:
    lists = {
        str(at): [Scored(one, signal, signal) for one, signal in part.items()]
        for at, (part, _) in enumerate(parts)
    }
    weights = {str(at): weight for at, (_, weight) in enumerate(parts)}
    scores = summed(lists, weights)

    assert set(scores) == {one for part, _ in parts for one in part}
    assert all(0 <= score <= 1 + 1e-9 for score in scores.values())
    assert summed(
        lists, {name: weight * factor for name, weight in weights.items()}
    ) == pytest.approx(scores)
    assert summed({**lists, "silent": []}, {**weights, "silent": 5.0}) == scores


def test_ranks_and_signals_say_why() -> None:
    lists = {"a": entries("x", "y"), "b": entries("y", signal=0.25)}

    assert ranks_of(lists, {"x", "y"}) == {"x": {"a": 1}, "y": {"a": 2, "b": 1}}
    assert signals_of(lists, {"y"})["y"] == {"a": 1.0, "b": 0.25}


def test_one_weak_match_is_not_a_full_signal() -> None:
    weak = textual([Scored("x", 2.0, 0.0)])
    strong = textual([Scored("x", 20.0, 0.0), Scored("y", 5.0, 0.0)])

    assert weak[0].signal == pytest.approx(2.0 / WEAK_BM25)
    assert [one.signal for one in strong] == [1.0, 0.25]


def test_the_best_of_several_lists_keeps_the_better_score_of_an_id() -> None:
    found = best_of([[Scored("x", 1.0, 1), Scored("y", 0.5, 1)], [Scored("y", 2.0, 1)]], 5)

    assert [(one.id, one.score) for one in found] == [("y", 2.0), ("x", 1.0)]


def test_an_ordered_list_drops_repeats_and_stops_at_its_depth() -> None:
    assert [one.id for one in in_order(["b", "a", "b", "c"], 2)] == ["b", "a"]


def test_what_every_list_that_says_something_ranks_first_is_unanimous() -> None:
    one, other = (
        [Scored(name, -float(rank), 0.0) for rank, name in enumerate(names)]
        for names in ("abc", "ac")
    )
    tied = [Scored("a", 1.0, 0.0), Scored("c", 1.0, 0.0), Scored("b", 0.5, 0.0)]

    assert unanimous([one, other, [], tied], "abc") == {"a"}
    assert unanimous([tied], "abc") == {"a", "c"}
    assert unanimous([one, other], "bc") == set()
    assert unanimous([one, [Scored("x", 1.0, 0.0)]], "bc") == {"b"}, "what is gone does not count"
    assert unanimous([], "abc") == unanimous([[]], "abc") == set()
