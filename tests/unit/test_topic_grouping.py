"""Topics are groups that several perspectives agree on; ids stay with members; importance never falls to nothing."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import numpy as np
import pytest

from pps.features.topics.topic_tools import portfolio_words, stability_words
from pps.features.topics.topic_values import (
    Portfolio,
    Stability,
    Topic,
    churn,
    entropy,
    groups,
    importance,
    kept_ids,
    shared_clusters,
)

AT = datetime(2026, 3, 1, tzinfo=UTC)


def blocks(*sizes: int, within: float = 0.9, between: float = 0.05) -> np.ndarray:
    """Return a likeness of groups of these sizes."""
    owner = np.repeat(np.arange(len(sizes)), sizes)
    likeness = np.where(owner[:, None] == owner[None, :], within, between).astype(np.float32)
    np.fill_diagonal(likeness, 1.0)
    return likeness


def test_clusters_are_found_where_pairs_are_alike_and_what_lacks_a_feature_is_in_none() -> None:
    likeness = blocks(4, 4)
    likeness[0, :] = likeness[:, 0] = np.nan
    shared = shared_clusters(likeness, 0.3)
    assert not shared[0].any()
    assert shared[1:4, 1:4].all()
    assert shared[4:, 4:].all()
    assert not shared[:4, 4:].any()


def test_one_subject_alone_is_one_cluster_and_unlike_things_are_none_however_lonely() -> None:
    assert shared_clusters(blocks(3), 0.3).all()
    assert not shared_clusters(blocks(1, 1, 1), 0.3)[0, 1]
    assert not shared_clusters(blocks(2), 0.3).any()


def test_a_topic_needs_three_members_and_enough_spaces() -> None:
    three, enough = blocks(3, 2, within=1.0, between=0.0), np.float32(2.5)
    assert [one.members for one in groups(three * enough, 2.5)] == [(0, 1, 2)]
    assert groups(three * np.float32(2.4), 2.5) == []
    [found] = groups(three * np.float32(4.0), 2.5)
    assert found.agreements == (4.0, 4.0, 4.0)


def test_ids_stay_with_the_most_of_their_members_and_no_two_have_one() -> None:
    old = {"a": {"1", "2", "3", "4"}, "b": {"5", "6", "7"}}
    assert kept_ids([{"5", "6", "8"}, {"1", "2", "3", "9"}, {"x", "y", "z"}], old) == {
        0: "b",
        1: "a",
    }
    assert kept_ids([{"1", "2"}, {"3", "4"}], {"a": {"1", "2", "3", "4"}}) == {0: "a"}


def test_churn_and_entropy_are_shares() -> None:
    assert churn({1, 2, 3}, {2, 3, 4}) == 0.5
    assert churn(set(), set()) == 0.0
    assert entropy([3]) is None
    assert entropy([5, 5]) == pytest.approx(1.0)
    assert 0 < (entropy([9, 1]) or 0) < 0.5


def test_importance_grows_with_showings_by_less_and_less_and_halves_in_45_days() -> None:
    def of(shown: int, days: float = 0.0) -> float:
        return importance(shown, AT, AT + timedelta(days=days))

    assert of(0) == 0.5
    assert of(1) - of(0) > of(11) - of(10) > 0
    assert of(10**9) < 0.5 * 3.2
    assert of(3, 45) == pytest.approx(of(3) / 2)
    assert of(0, 365) > 0
    assert importance(0, AT, AT - timedelta(days=1)) == 0.5


def test_what_is_not_known_of_topics_is_said_with_the_reason_and_what_to_do() -> None:
    bread = Topic("t1", "Rye bread", (), (), 3, 1.0, "emerging", 0.0, ())
    boats = replace(bread, id="t2", name="Boats")
    empty = portfolio_words(Portfolio((), AT))
    once = portfolio_words(Portfolio((bread,), AT))
    again = portfolio_words(Portfolio((bread, boats), AT, churn=0.25, entropy=1.0))

    assert "at least three memories" in empty
    assert "pps detect NAME" in empty
    assert "unknown" not in once
    assert "takes two detections" in once
    assert "pps detect NAME" in once
    assert "takes two topics" in once
    assert "25% of the memberships changed since the earlier detection." in again
    stability = stability_words(
        Stability(24, 3, 2, {"emerging": 2}, False, churn=0.25, entropy=1.0)
    )
    assert "25% of the memberships changed from the first snapshot to the last." in stability
    assert "evenness of 1.00 of 1" in again
