"""What a turn states, and which part of a long text is shown."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from pps.core.values import AnchorPassage, Turn
from pps.recall.channel_profile import ChannelProfile, Substance
from pps.recall.question import PASSAGE_FROM, most_like, passage_of
from pps.recall.ranking import of_turns, stated_words, substance

AT = datetime(2026, 1, 1, tzinfo=UTC)


def turn(text: str, *, role: str = "user", actor: str = "") -> Turn:
    return Turn("t", 1, role, text, "s", AT, AT, actor)


def factor(
    text: str, query: str, *, role: str = "user", actor: str = "", **settings: float
) -> float:
    profile = ChannelProfile.model_validate({"perspectives": {"bm25": 1.0}, **settings})
    return of_turns(query, {"t": turn(text, role=role, actor=actor)}, profile)["t"]


def test_idle_words_and_questions_of_ten_words_tell_nothing() -> None:
    assert stated_words(turn("What did you do? And then?")) == 0
    assert stated_words(turn("We went to Rome. And you?")) == 2
    assert stated_words(turn("Ana: We’ve been there, Ana!", actor="Ana")) == 1
    asked = "I moved the quarterly report to the new folder before lunch today, could you have a look at it?"
    assert stated_words(turn(asked)) == 3


def test_text_without_spaces_counts_by_characters() -> None:
    assert stated_words(turn("我们在厨房喝咖啡。")) == pytest.approx(4.0)
    assert stated_words(turn("你喝咖啡吗？")) == 0


def test_substance_grows_from_the_floor_with_what_is_stated() -> None:
    shape = Substance(floor=0.4, words=20)
    factors = [substance(turn("word " * size), shape) for size in range(0, 60, 10)]

    assert substance(turn("Really?"), shape) == pytest.approx(0.4)
    assert substance(turn("word " * 200), shape) == pytest.approx(1.0, abs=1e-3)
    assert factors == sorted(set(factors))


def test_substance_damps_nothing_that_says_something_and_is_near_in_meaning() -> None:
    profile = ChannelProfile.model_validate({"perspectives": {"dense": 1.0}, "substance": {}})
    said = {
        "note": turn("shoe size 38, wide fit"),
        "question": turn("What size is it?"),
        "nothing": turn("Really?"),
    }
    near = of_turns("What size shoes should I buy?", said, profile, nearest=said.keys())
    far = of_turns("What size shoes should I buy?", said, profile)
    assert near["note"] == 1.0 > far["note"]
    assert near["question"] == far["question"] < 1
    assert near["nothing"] == far["nothing"] < 1


def test_what_no_user_said_counts_less_and_who_is_named_counts_more() -> None:
    assert factor("Roses like lime.", "roses", role="assistant", assistant=0.5) == 0.5
    assert factor("Roses like lime.", "roses", assistant=0.5) == 1.0
    assert (
        factor("I like roses.", "What does Mira’s garden have?", actor="Mira Vale", speaker=1.2)
        == 1.2
    )
    assert (
        factor("I like roses.", "What does the gardener like?", actor="The Gardener", speaker=1.2)
        == 1.0
    )
    assert factor("I like roses.", "What does anybody like?", speaker=1.2) == 1.0


@pytest.mark.parametrize(
    "query", ["How should I date it?", "Can you help me with the letter?", "Write the letter."]
)
def test_a_standing_instruction_counts_more_where_it_is_asked_how_to_act(query: str) -> None:
    assert (
        factor("Ana: Please always write the day first.", query, actor="Ana", standing=1.5) == 1.5
    )
    assert factor("Fine. Never sign for me alone.", query, standing=1.5) == 1.5
    assert factor("I always wanted a dog. Never mind.", query, standing=1.5) == 1.0
    assert factor("Always write the day first.", "What did Ana write?", standing=1.5) == 1.0


def test_a_short_text_needs_no_passage() -> None:
    assert passage_of("tea", "Ana drinks tea.") == ""


def test_a_long_text_shows_the_passage_that_matches() -> None:
    text = (
        "Filler sentence about nothing at all. " * 60
        + "The kettle is copper. "
        + "More of the same filler here. " * 60
    )
    passage = passage_of("Is the kettle copper?", text)

    assert "The kettle is copper." in passage
    assert len(passage) <= PASSAGE_FROM


def test_the_best_passage_is_found_without_spaces_between_words() -> None:
    passages = [
        AnchorPassage("a", at, "", text, AT)
        for at, text in enumerate(["昨天下雨了", "早上在厨房喝咖啡"])
    ]

    assert most_like("喝咖啡", passages).part == 1
