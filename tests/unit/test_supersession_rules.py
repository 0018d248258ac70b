"""The state of one slot, as a function of its statements: the last one wins, in any order, and what is of the past."""

from __future__ import annotations

import random
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pps.core.ids import stable_id
from pps.core.relation_table import RelationRule
from pps.core.values import Fact
from pps.ingest.supersession import (
    FactStatement,
    Order,
    OrderedEnding,
    Stated,
    closed,
    closings_of_slot,
    end_of_the_past,
    runs_of_slot,
    speaks_of_the_past,
)
from pps.journal.closing_rows import Ending

LIVES_IN = RelationRule("LIVES_IN", "Person", "Place", single=True)
START = datetime(2026, 3, 1, 9, tzinfo=UTC)
NOW = START + timedelta(days=400)
DAY = timedelta(days=1)

days = st.lists(st.tuples(st.sampled_from("ABC"), st.integers(0, 200)), min_size=1, max_size=8)


def stated(place: str, *on: int) -> Stated:
    """Return a fact of a place, stated on days after the start."""
    said = tuple(
        FactStatement(
            f"turn {day} {place}", Order(START + day * DAY, 10 * day + "ABC".index(place))
        )
        for day in sorted(on)
    )
    fact = Fact(
        stable_id("g", place),
        "mira",
        place,
        "LIVES_IN",
        f"Mira lives in {place}.",
        NOW,
        episodes=tuple(one.turn for one in said),
        valid_at=said[0].order.at,
    )
    return Stated(fact, said)


def slot(told: list[tuple[str, int]]) -> list[Stated]:
    by_place: dict[str, set[int]] = {}
    for place, day in told:
        by_place.setdefault(place, set()).add(day)
    return [stated(place, *on) for place, on in by_place.items()]


@given(days, st.randoms())
def test_the_last_value_holds_alone_in_any_order(
    told: list[tuple[str, int]], chance: random.Random
) -> None:
    facts = slot(told)
    expected = closings_of_slot(facts, [], LIVES_IN, NOW)
    latest = {max(told, key=lambda place_and_day: place_and_day[::-1])[0]}
    open_ = {one.fact.object for one in facts if expected[one.fact.uuid] is None}
    assert open_ == latest
    shuffled = facts[:]
    chance.shuffle(shuffled)
    assert closings_of_slot(shuffled, [], LIVES_IN, NOW) == expected


@given(days)
def test_closing_twice_changes_nothing_more_and_opening_brings_the_fact_back(
    told: list[tuple[str, int]],
) -> None:
    facts = slot(told)
    for one in facts:
        closing = closings_of_slot(facts, [], LIVES_IN, NOW)[one.fact.uuid]
        after = closed(one.fact, closing, None)
        assert closed(after, closing, None) == after
        assert closed(after, None, None) == one.fact
        assert after.valid_at is not None
        assert after.invalid_at is None or after.valid_at <= after.invalid_at


@given(days)
def test_runs_hold_every_statement_once_and_none_spans_another_value(
    told: list[tuple[str, int]],
) -> None:
    facts = slot(told)
    for one in facts:
        runs = runs_of_slot(facts, LIVES_IN).get(one.fact.uuid, [one.statements])
        assert [said for run in runs for said in run] == list(one.statements)
        others = [said.order for other in facts if other is not one for said in other.statements]
        for run in runs:
            assert not any(run[0].order < order < run[-1].order for order in others)


def test_an_ending_closes_what_was_said_before_it_and_not_what_was_said_after() -> None:
    ending = OrderedEnding(
        Ending("turn 5", 0, "mira", "", ("livesin",)), Order(START + 5 * DAY, 55)
    )
    before, after = stated("A", 1), stated("A", 1, 9)
    assert closings_of_slot([after], [ending], LIVES_IN, NOW) == {after.fact.uuid: None}
    closing = closings_of_slot([before], [ending], LIVES_IN, NOW)[before.fact.uuid]
    assert closing is not None
    assert (closing.cause, closing.at, closing.by_turn) == ("ended", START + 5 * DAY, "turn 5")


def test_a_fact_with_an_end_of_its_own_keeps_it_and_still_takes_the_place_of_another() -> None:
    rome, oslo = stated("A", 1), replace(stated("B", 5), own_end=START + 300 * DAY)
    closings = closings_of_slot([rome, oslo], [], LIVES_IN, NOW)
    assert closings[oslo.fact.uuid] is None
    closing = closings[rome.fact.uuid]
    assert closing is not None
    assert closing.at == START + 5 * DAY


@pytest.mark.parametrize(
    ("text", "is_past"),
    [
        ("In 2019 I lived in Rome.", True),
        ("I used to live in Rome.", True),
        ("Mira worked at Bosch from 2019 to 2021.", True),
        ("She was living in Leith.", True),
        ("Ana's previous employer was Globex.", True),
        ("Globex is Ana's former employer.", True),
        ("Bob was her ex-husband by then.", True),
        ("Ana works at the former Siemens plant.", False),
        ("My editor was Vim.", False),
        ("I moved to Milan in March.", False),
        ("I have lived in Rome since 2019.", False),
        ("I've worked at Bosch for years.", False),
        ("I lived in Rome and live there again.", False),
        ("The wedding was moved to 21 June.", False),
        ("I was promoted to manager.", False),
        ("Mira lives in Rome.", False),
    ],
)
def test_words_of_the_past_are_told_from_words_of_a_change(text: str, is_past: bool) -> None:
    assert speaks_of_the_past(text) == is_past


def test_what_was_in_a_year_ended_with_it_and_what_used_to_be_when_it_was_said() -> None:
    since = datetime(2019, 1, 1, tzinfo=UTC)
    assert end_of_the_past("In 2019 I lived in Rome.", since, START) == since.replace(year=2020)
    assert end_of_the_past("I used to live in Rome.", None, START) == START
