"""Time words: what they cover, against a reference; and words that only look like them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pps.core.time import Grain, Span, months_on, unit
from pps.core.time_reading import MOST, names_time, phrases, read_time, read_times

THURSDAY = datetime(2023, 6, 15, 12, tzinfo=UTC)
MOMENTS = st.integers(-70 * 366 * 86_400, 200 * 366 * 86_400).map(
    lambda second: datetime(1970, 1, 1, tzinfo=UTC) + timedelta(seconds=second)
)

_WORDS = """
in on since before between and last next this the of early end 3 31 12th 2023 1999 two few couple ago week months
years decade spring fall weekend may march 5. february monday gestern vor mai hace dos 2023年5月 昨日 2023-02-30
"""
WORDS = _WORDS.split()


def read(text: str) -> list[tuple[str, str]]:
    """Return the first and the last day (not in it any more) of each span that a text names."""
    days: list[tuple[str, str]] = []
    for span in read_times(text, THURSDAY):
        ends = (span.start, span.end)
        days.append(tuple("" if end is None else end.date().isoformat() for end in ends))  # pyright: ignore[reportArgumentType]
    return days


@pytest.mark.parametrize(
    ("text", "first", "after"),
    [
        ("What did we do last spring?", "2023-03-01", "2023-06-01"),
        ("where did Ana live last summer", "2022-06-01", "2022-09-01"),
        ("the winter of 2021 was hard; what happened in winter 2021?", "2021-12-01", "2022-03-01"),
        ("in the fall", "2022-09-01", "2022-12-01"),
        ("this winter", "2022-12-01", "2023-03-01"),
        ("next summer", "2024-06-01", "2024-09-01"),
        ("What happened in May 2023?", "2023-05-01", "2023-06-01"),
        ("what was planned in August", "2022-08-01", "2022-09-01"),
        ("last May", "2023-05-01", "2023-06-01"),
        ("in early May", "2023-05-01", "2023-05-11"),
        ("at the end of 2021", "2021-09-01", "2022-01-01"),
        ("what did I say yesterday?", "2023-06-14", "2023-06-15"),
        ("the day before yesterday", "2023-06-13", "2023-06-14"),
        ("last night", "2023-06-14", "2023-06-15"),
        ("this morning", "2023-06-15", "2023-06-16"),
        ("two weeks ago", "2023-05-29", "2023-06-05"),
        ("a few days ago", "2023-06-12", "2023-06-13"),
        ("a couple of months ago", "2023-04-01", "2023-05-01"),
        ("10 years ago", "2013-01-01", "2014-01-01"),
        ("over the last two weeks", "2023-06-01", "2023-06-15"),
        ("in the past year", "2022-06-15", "2023-06-15"),
        ("What did Ana do on 3 March?", "2023-03-03", "2023-03-04"),
        ("August 13", "2022-08-13", "2022-08-14"),
        ("on the 12 May, 2022", "2022-05-12", "2022-05-13"),
        ("2023-05-07", "2023-05-07", "2023-05-08"),
        ("7.5.2023", "2023-05-07", "2023-05-08"),
        ("Who called last Tuesday?", "2023-06-13", "2023-06-14"),
        ("on Sunday", "2023-06-11", "2023-06-12"),
        ("last week", "2023-06-05", "2023-06-12"),
        ("last weekend", "2023-06-10", "2023-06-12"),
        ("this weekend", "2023-06-17", "2023-06-19"),
        ("the last week of May", "2023-05-25", "2023-06-01"),
        ("the second week of June", "2023-06-08", "2023-06-15"),
        ("in 2021", "2021-01-01", "2022-01-01"),
        ("last decade", "2010-01-01", "2020-01-01"),
        ("since March 2023", "2023-03-01", "2023-06-15"),
        ("before 2020", "", "2020-01-01"),
        ("between March and May 2023", "2023-03-01", "2023-06-01"),
        ("from 2019 to 2021", "2019-01-01", "2022-01-01"),
        ("between 3 March and 5 April", "2023-03-03", "2023-04-06"),
    ],
)
def test_time_words_cover_what_they_name(text: str, first: str, after: str) -> None:
    assert read(text)[0] == (first, after)


@pytest.mark.parametrize(
    ("text", "first", "after"),
    [
        ("Was haben wir gestern gemacht?", "2023-06-14", "2023-06-15"),
        ("Was geschah vor zwei Wochen?", "2023-05-29", "2023-06-05"),
        ("Wo waren wir im Mai 2023?", "2023-05-01", "2023-06-01"),
        ("am 3. März", "2023-03-03", "2023-03-04"),
        ("il y a deux semaines", "2023-05-29", "2023-06-05"),
        ("le 3 mars 2023", "2023-03-03", "2023-03-04"),
        ("¿Qué hicimos ayer?", "2023-06-14", "2023-06-15"),
        ("el 3 de marzo de 2023", "2023-03-03", "2023-03-04"),
        ("che cosa hai fatto ieri?", "2023-06-14", "2023-06-15"),
        ("o que fizemos ontem?", "2023-06-14", "2023-06-15"),
        ("wat deden we gisteren", "2023-06-14", "2023-06-15"),
        ("昨日は何をしましたか", "2023-06-14", "2023-06-15"),
        ("2023年5月に何があった", "2023-05-01", "2023-06-01"),
        ("昨天做了什么", "2023-06-14", "2023-06-15"),
        ("어제 뭐 했어", "2023-06-14", "2023-06-15"),
    ],
)
def test_other_languages_are_read(text: str, first: str, after: str) -> None:
    assert read(text) == [(first, after)]


@pytest.mark.parametrize(
    "text",
    [
        "May I ask a second question?",
        "You may march in the second row",
        "We had to march for hours",
        "this may be wrong",
        "2000 people came, 1984 of them early",
        "She will fall in spring water",
        "What does April like about June?",
        "the number 5 bus at 10:30",
        "version 3.11.2",
        "Sun and Sat are names of files",
        "31 February",
        "",
    ],
)
def test_what_only_looks_like_a_time_is_left_alone(text: str) -> None:
    assert read(text) == []


def test_words_without_a_time_are_not_looked_at_twice() -> None:
    assert not names_time("What does Ana like about the kitchen?")
    assert names_time("What did Ana like in 2021?")


def test_of_phrases_over_each_other_the_longest_counts() -> None:
    assert [one.text for one in phrases("Where were we in May 2023 and last week?")] == [
        "may 2023",
        "last week",
    ]


def test_one_span_is_read_and_two_are_not_one() -> None:
    span = read_time("last spring", THURSDAY)

    assert span is not None
    assert span.grain == "season"
    assert read_time("last spring or last week", THURSDAY) is None
    assert read_time("whenever", THURSDAY) is None


@given(
    st.one_of(st.text(max_size=300), st.lists(st.sampled_from(WORDS), max_size=8).map(" ".join)),
    MOMENTS,
)
def test_any_text_is_read_without_an_error(text: str, reference: datetime) -> None:
    spans = read_times(text, reference)

    assert len(spans) <= MOST
    assert all(span.start is None or span.end is None or span.start <= span.end for span in spans)


@given(MOMENTS, st.sampled_from(["day", "week", "month", "season", "year", "decade"]))
def test_a_moment_lies_in_its_own_unit(moment: datetime, grain: Grain) -> None:
    span = unit(moment, grain)

    assert span.start is not None
    assert span.end is not None
    assert span.start <= moment < span.end
    assert span.nearness(moment) == 1.0
    assert unit(span.end, grain).start == span.end


@given(MOMENTS, MOMENTS)
def test_nearness_is_one_inside_falls_over_the_margin_and_is_nothing_beyond(
    one: datetime, other: datetime
) -> None:
    span = Span(min(one, other), max(one, other) + timedelta(days=1), "stretch")
    assert span.start is not None
    assert span.end is not None
    first, beyond = span.bounds()

    assert span.nearness(span.start) == 1.0
    assert span.nearness(span.end + span.margin() / 2) == pytest.approx(0.5)
    assert span.nearness(first - timedelta(seconds=1)) == span.nearness(beyond) == 0.0


@given(MOMENTS, st.integers(-2000, 2000))
def test_months_on_and_back_is_the_same_month(moment: datetime, months: int) -> None:
    there = months_on(moment, months)

    assert (there.year * 12 + there.month) - (moment.year * 12 + moment.month) == months
    assert there.day <= moment.day
