"""Choosing among ranked facts."""

from __future__ import annotations

from datetime import UTC, datetime

import numpy as np

from pps.core.values import Episode
from pps.journal.links import FactOutline, NodeOutline
from pps.recall.picking import diverse, one_of_each_pair, one_of_each_text

AT = datetime(2026, 1, 1, tzinfo=UTC)


def unit(*values: float) -> np.ndarray:
    vector = np.array(values, dtype=np.float32)
    return vector / np.linalg.norm(vector)


def test_a_pair_is_unordered_and_its_best_fact_stays() -> None:
    items = {str(at): FactOutline(one, other) for at, (one, other) in enumerate(("ab", "ba", "ac", "ab"), 1)}

    assert one_of_each_pair(["1", "2", "3", "4"], items) == (["1", "3"], ["2", "4"])


def test_things_that_are_not_facts_are_never_passed_over() -> None:
    items = {one: NodeOutline(one, AT) for one in ("1", "2")}

    assert one_of_each_pair(["1", "2"], items) == (["1", "2"], [])


def test_what_is_said_again_or_asked_again_is_passed_over() -> None:
    said = ["What is  the word?", "The word is lantern.", "Yes.", "the WORD is lantern.", "Yes."]
    items = {str(at): Episode(str(at), "turn", text, AT, AT) for at, text in enumerate(said)}

    assert one_of_each_text(list(items), items, "what is the word?") == (["1", "2"], ["0", "3", "4"])
    assert one_of_each_text(list(items), items, "the word is lantern.") == (["0", "1", "2"], ["3", "4"])


def test_mmr_takes_the_different_one_before_the_repeat() -> None:
    vectors = {"best": unit(1, 0.02, 0), "twin": unit(1, 0, 0), "other": unit(0.7, 0, 0.7)}

    assert diverse(["best", "twin", "other"], unit(1, 0, 0.4), vectors, balance=0.5, limit=2) == ["twin", "other"]


def test_mmr_at_one_half_takes_what_differs_and_a_little_above_it_what_is_nearer() -> None:
    vectors = {"best": unit(1, 0.1, 0), "near": unit(1, 0.2, 0), "apart": unit(0.5, 0, 0.866)}

    orders = {at: diverse(list(vectors), unit(1, 0, 0), vectors, balance=at, limit=3) for at in (0.5, 0.6)}
    assert orders == {0.5: ["best", "apart", "near"], 0.6: ["best", "near", "apart"]}


def test_mmr_with_all_weight_on_relevance_is_the_order_of_similarity() -> None:
    vectors = {"far": unit(0, 1), "near": unit(1, 0), "middle": unit(1, 1)}

    assert diverse(["far", "near", "middle"], unit(1, 0), vectors, balance=1.0, limit=3) == ["near", "middle", "far"]


def test_mmr_appends_what_has_no_vector() -> None:
    assert diverse(["x", "y", "z"], unit(1, 0), {"z": unit(1, 0)}, balance=0.5, limit=3) == ["z", "x", "y"]
    assert diverse(["x", "y"], unit(1, 0), {}, balance=0.5, limit=1) == ["x"]
