"""What similarities mean is told by sessions: what unrelated pairs reach, and where a subject ends."""

from __future__ import annotations

import numpy as np
import pytest

from pps.features.topics.calibration import measured_thresholds
from pps.features.topics.topic_values import in_context

SESSIONS = [f"s{number // 10}" for number in range(100)]


def likeness(within: float, apart: float, spread: float = 0.05) -> np.ndarray:
    """Return likenesses drawn around one mean within a session and another between two."""
    chance = np.random.default_rng(27)
    names = np.array(SESSIONS)
    drawn = np.where(names[:, None] == names[None, :], within, apart) + chance.normal(
        0, spread, (100, 100)
    )
    np.fill_diagonal(drawn, 1.0)
    return ((drawn + drawn.T) / 2).astype(np.float32)


def test_high_is_what_one_unrelated_pair_in_a_hundred_reaches_and_low_what_a_session_hardly_ever_falls_below() -> (
    None
):
    found = measured_thresholds(likeness(0.6, 0.1), SESSIONS)
    assert found
    assert found.high == pytest.approx(0.1 + 2.33 * 0.05 / 2**0.5, abs=0.02)
    assert found.low == pytest.approx(0.6, abs=0.05)


def test_what_does_not_tell_sessions_apart_has_no_low_and_what_few_memories_have_no_threshold() -> (
    None
):
    blind = measured_thresholds(likeness(0.3, 0.3), SESSIONS)
    assert blind
    assert blind.low is None
    rare = likeness(0.6, 0.1)
    rare[5:, :] = rare[:, 5:] = np.nan
    assert measured_thresholds(rare, SESSIONS) is None


def test_in_context_a_line_is_read_with_those_beside_it_that_are_near_it_and_with_no_others() -> (
    None
):
    places = [(session, number % 10) for number, session in enumerate(SESSIONS)]
    raw = likeness(0.3, 0.2, 0.1)
    same = np.equal.outer(SESSIONS, SESSIONS) & ~np.eye(100, dtype=bool)
    context = in_context(raw, places, 0.0)
    apart = [
        one[same].mean() - one[~same & ~np.eye(100, dtype=bool)].mean() for one in (raw, context)
    ]
    assert apart[1] > 3 * apart[0]
    alone = in_context(raw, places, 0.99)
    assert alone[same].mean() < 0.3
    raw[0, :] = raw[:, 0] = np.nan
    assert np.isnan(in_context(raw, places, 0.0)[0]).all()
