"""Which questions are about a time alone, and which sessions a text names."""

from __future__ import annotations

import pytest

from pps.recall.named_time import SessionReference, asks_only_for_a_time, session_references


@pytest.mark.parametrize(
    "question",
    [
        "What did we talk about on March 4th?",
        "What did we discuss last month?",
        "What did we chat about three days ago?",
        "What did we talk about between May 8th and May 30th?",
        "What did we discuss in our fourth session?",
        "What did we discuss 3 sessions ago?",
        "what happened yesterday",
        "Recap last week",
        "What did we chat about over this last week?",
        "What did we discuss earlier this morning?",
        "What did we talk about in our twenty-first session?",
        "Was haben wir gestern besprochen?",
    ],
)
def test_a_question_that_names_only_a_time_is_about_that_time_alone(question: str) -> None:
    assert asks_only_for_a_time(question)


@pytest.mark.parametrize(
    "text",
    [
        "What did we decide last month?",
        "What did I say about wine in May?",
        "In the first session, what sport did Matt join?",
        "What should I do today?",
        "What will happen tomorrow?",
        "See you tomorrow!",
        "We talked yesterday.",
        "What did we talk about?",
        "What did we talk about last month? " + "And then? " * 40,
        "",
    ],
)
def test_a_text_that_names_more_or_asks_nothing_is_not(text: str) -> None:
    assert not asks_only_for_a_time(text)


@pytest.mark.parametrize(
    ("text", "number", "from_end"),
    [
        ("our fourth session", 4, False),
        ("the 12th conversation", 12, False),
        ("our thirty second session", 32, False),
        ("session 7", 7, False),
        ("3 sessions ago", 3, True),
        ("two conversations ago", 2, True),
        ("a few sessions ago", 3, True),
        ("our last session", 1, True),
        ("the session before last", 2, True),
    ],
)
def test_a_session_is_named_by_its_place(text: str, number: int, from_end: bool) -> None:
    [reference] = session_references(f"What was said in {text}?")
    assert (reference.number, reference.from_end) == (number, from_end)


def test_several_sessions_are_told_in_order_and_none_twice() -> None:
    text = "the first session and session 3"
    assert session_references(text) == [
        SessionReference(1, False, 4, 17),
        SessionReference(3, False, 22, 31),
    ]
    assert session_references("session 0, the session") == []
