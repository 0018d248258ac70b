"""The arithmetic of confidence: independent votes, support, opposition, roots."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pps.journal.pool_rows import Vote, count_roots, independent, weighed

shares = st.floats(0, 1)
votes = st.lists(
    st.builds(Vote, shares, st.frozensets(st.sampled_from("abcdef"), min_size=1)), max_size=8
)


def vote(confidence: float, *ends: str) -> Vote:
    return Vote(confidence, frozenset(ends))


def test_votes_that_share_a_source_or_an_author_count_once() -> None:
    counting = independent([vote(0.5, "a", "x"), vote(0.9, "b", "x"), vote(0.7, "c", "y")])
    assert [each.confidence for each in counting] == [0.9, 0.7]
    assert independent([vote(0.9, "a")], {"a"}) == []


@pytest.mark.parametrize(
    ("own", "support", "opposition", "expected"),
    [
        (0.75, [], [], 0.75),
        (0.75, [vote(0.75, "b")], [], 0.9375),
        (0.75, [vote(0.75, "a")], [], 0.75),
        (0.9, [vote(0.9, "b"), vote(0.9, "c")], [], 0.99),
        (1.0, [vote(0.9, "b")], [], 1.0),
        (0.8, [], [vote(0.9, "b")], 0.44),
        (0.8, [], [vote(0.9, "b"), vote(0.9, "b")], 0.44),
    ],
)
def test_the_formula(
    own: float, support: list[Vote], opposition: list[Vote], expected: float
) -> None:
    assert weighed(own, {"a"}, support, opposition) == pytest.approx(expected)


@given(own=shares, support=votes, opposition=votes)
def test_support_never_lowers_and_opposition_takes_half_at_most(
    own: float, support: list[Vote], opposition: list[Vote]
) -> None:
    supported = weighed(own, {"a"}, support, [])
    assert round(own, 4) <= supported <= 1
    opposed = weighed(own, {"a"}, support, opposition)
    assert supported / 2 - 0.0002 <= opposed <= supported


def test_roots_are_counted_once_a_source_and_once_a_members_word() -> None:
    assert count_roots(["mail:ana", "mail:ben", "meter:ana"]) == 2
    assert count_roots(["mail:ana", "meter:ana"]) == 1
    assert count_roots(["heard1", "heard2"]) == 2
    assert count_roots([]) == 0
