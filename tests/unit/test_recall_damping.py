"""What a turn states, and which part of a long text is shown."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from pps.core.values import AnchorPassage, Turn
from pps.recall.damping import stated_words, substance
from pps.recall.passages import LONG, most_like, passage_of
from pps.recall.profiles import Substance

AT = datetime(2026, 1, 1, tzinfo=UTC)


def turn(text: str) -> Turn:
    return Turn("t", 1, "user", text, "s", AT, AT)


def test_questions_state_nothing() -> None:
    assert stated_words("What did you do? And then?") == 0
    assert stated_words("We went to Rome. And you?") == 4


def test_text_without_spaces_counts_by_characters() -> None:
    assert stated_words("我们在厨房喝咖啡。") == pytest.approx(4.0)
    assert stated_words("你喝咖啡吗？") == 0


def test_substance_falls_to_the_floor_for_a_bare_question() -> None:
    shape = Substance(floor=0.4, words=20)

    assert substance({"t": turn("Really?")}, shape)["t"] == pytest.approx(0.4)
    assert substance({"t": turn("word " * 200)}, shape)["t"] == pytest.approx(1.0, abs=1e-3)


def test_substance_grows_with_what_is_stated() -> None:
    shape = Substance(floor=0.4, words=20)
    factors = [substance({"t": turn("word " * size)}, shape)["t"] for size in range(0, 60, 10)]

    assert factors == sorted(factors)
    assert len(set(factors)) == len(factors)


def test_a_short_text_needs_no_passage() -> None:
    assert passage_of("tea", "Ana drinks tea.") == ""


def test_a_long_text_shows_the_passage_that_matches() -> None:
    text = (
        "Filler sentence about nothing at all. " * 60 + "The kettle is copper. " + "More of the same filler here. " * 60
    )
    passage = passage_of("Is the kettle copper?", text)

    assert "The kettle is copper." in passage
    assert len(passage) <= LONG


def test_the_best_passage_is_found_without_spaces_between_words() -> None:
    passages = [AnchorPassage("a", at, "", text, AT) for at, text in enumerate(["昨天下雨了", "早上在厨房喝咖啡"])]

    assert most_like("喝咖啡", passages).part == 1
