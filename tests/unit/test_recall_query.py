"""Queries: condensed when long, routed by kind."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pps.core.text import is_question
from pps.recall.question import (
    MAX_QUERY_CHARS,
    asks_now,
    beyond_names,
    condensed,
    content_words,
    kind_of,
)


def test_a_short_query_stays_as_it_is() -> None:
    assert condensed("  What does Ana drink?\n") == "What does Ana drink?"


@given(st.text(max_size=5000))
def test_a_condensed_query_is_within_its_bound(text: str) -> None:
    assert len(condensed(text)) <= MAX_QUERY_CHARS


def test_a_long_paste_keeps_its_question_and_both_ends() -> None:
    paste = "\n".join(f"line {number} of a log file that nobody reads." for number in range(400))
    query = condensed(
        f"The build fails since Monday.\n{paste}\nWhy did we pin the compiler?\n{paste}\nPlease help."
    )

    assert "The build fails since Monday." in query
    assert "Why did we pin the compiler?" in query
    assert query.endswith("Please help.")
    assert query.index("Monday") < query.index("compiler")


def test_one_endless_word_is_cut() -> None:
    assert condensed("x" * 20_000)


@pytest.mark.parametrize("text", ["Where?", "本当ですか？", "أين؟", 'He said "why?"'])
def test_a_question_is_known_in_any_script(text: str) -> None:
    assert is_question(text)


@pytest.mark.parametrize(
    "query",
    ["When did Ana move to Rome?", "what did we decide", "Who drinks tea?", "list the pets"],
)
def test_a_question_is_factual(query: str) -> None:
    assert kind_of(query, ["Ana", "Rome"]) == "factual"


@pytest.mark.parametrize(
    "query",
    [
        "Ana",
        "who is Ana?",
        "tell me about Ana Lima",
        "What do you know about ana's",
        "tell me about ana’s",
        "Anas",
    ],
)
def test_a_name_and_little_else_is_navigational(query: str) -> None:
    assert kind_of(query, ["Ana Lima", "Ana"]) == "navigational"


@pytest.mark.parametrize(
    "query", ["We sat in the kitchen and Ana made coffee.", "refactoring the parser today"]
)
def test_a_text_that_tells_is_contextual(query: str) -> None:
    assert kind_of(query, ["Ana"]) == "contextual"


def test_a_query_without_names_is_never_navigational() -> None:
    assert kind_of("who is it?", []) == "factual"


def test_words_beyond_names_are_what_is_asked() -> None:
    assert beyond_names("When did Ana Lima move to Rome?", ["Ana Lima"]) == ["move", "rome"]


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ("Where is the EpiPen?", "EpiPen?"),
        ("How many children does Melanie have?", "many children Melanie"),
        ("Did you say that she’s moved? Where to?", "say moved?"),
        ("What did Will say to May about The Who?", "Will say May The Who?"),
        ("Who?", "Who?"),
        ("what is it", "what is it"),
        ("咖啡 在哪里", "咖啡 在哪里"),
        ("deploy the server", "deploy server"),
    ],
)
def test_words_that_only_ask_are_not_what_a_query_is_about(query: str, words: str) -> None:
    assert content_words(query) == words


@given(st.text(max_size=400))
def test_something_of_every_query_is_left(query: str) -> None:
    words = content_words(query)

    assert bool(words.strip()) == bool(query.strip())
    assert set(words.split()) <= set(query.split())


def test_a_question_is_about_now_unless_it_names_another_time() -> None:
    for query in (
        "What does he do for a living?",
        "Where's the car parked?",
        "Which floor is the office on?",
    ):
        assert asks_now(query)
    for query in (
        "What did he do?",
        "Where was it in May?",
        "Where is it in May 2024?",
        "He works.",
        "Ever been there?",
    ):
        assert not asks_now(query)
