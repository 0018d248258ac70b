"""A fact and the texts that say it: taken back, kept by others, and holding again."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from pps.core.values import Fact
from pps.ingest.index_docs import holds
from pps.ingest.support import said_by, take_back, taken_back

_NOW = datetime(2026, 5, 1, tzinfo=UTC)
_DAY = timedelta(days=1)
_FACT = Fact(
    "f", "ana", "lisbon", "LIVES_IN", "Ana lives in Lisbon", _NOW - 9 * _DAY, episodes=("one",)
)


@pytest.mark.parametrize("until", [None, _NOW + _DAY])
def test_a_fact_that_one_text_said_is_taken_back_and_keeps_the_text(until: datetime | None) -> None:
    after = take_back(replace(_FACT, invalid_at=until), "one", _NOW)
    assert (after.invalid_at, after.expired_at, after.episodes) == (_NOW, _NOW, ("one",))
    assert taken_back(after)
    assert not holds(after, _NOW)
    assert take_back(after, "one", _NOW + _DAY) == after, "once"
    assert said_by(after, "one") == _FACT
    assert said_by(replace(after, episodes=("one", "two")), "two") == replace(
        _FACT, episodes=("two",)
    )


def test_a_fact_that_others_say_too_loses_the_text_alone() -> None:
    shared = replace(_FACT, episodes=("two", "one", "two"))
    assert take_back(shared, "one", _NOW) == replace(_FACT, episodes=("two",))
    assert said_by(shared, "one") == replace(_FACT, episodes=("two", "one"))


@pytest.mark.parametrize(
    "fact",
    [
        replace(_FACT, invalid_at=_NOW - _DAY),
        replace(_FACT, expired_at=_NOW - _DAY),
        replace(_FACT, invalid_at=_NOW - 2 * _DAY, expired_at=_NOW - _DAY),
        replace(_FACT, kind="relation"),
    ],
)
def test_what_had_ended_and_what_is_a_relation_stays_as_it_is(fact: Fact) -> None:
    assert take_back(fact, "one", _NOW) == fact
    assert not taken_back(fact)
    assert said_by(fact, "one") == fact
