"""What a prompt wants, what a turn states and whether it only asks: labelled prompts, half of them held out."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from pps.index.prompts import (
    about_the_person,
    asks_what_was_asked,
    only_asks,
    prompt_kind,
    statements_of,
)

LIFE = Path(__file__).parents[1] / "life"
LABELLED = [line.split("\t") for line in (LIFE / "prompts.tsv").read_text().splitlines()]
"""Kind, ``dev`` or ``held`` (never looked at while the cues were chosen), prompt."""
NEEDLESS = [line.replace("\\n", "\n") for line in (LIFE / "needless.txt").read_text().splitlines()]

PREFERENCES = (
    "I have a severe tree nut allergy.",
    "I'm vegetarian.",
    "I really dislike hotels without a proper vegan menu.",
    "I can't stand horror films.",
    "I prefer window seats, since I get nauseous on the aisle.",
    "My favourite tea is a smoky lapsang.",
    "Due to a fear of heights I avoid cable cars.",
    "I don't eat pork.",
    "I suffer from migraines.",
    "Ich bin allergisch gegen Haselnüsse.",
)
INSTRUCTIONS = (
    "Always format dates as 2026-01-31.",
    "From now on answer in German.",
    "I'm allergic to walnuts, so please never put them into a recipe for me.",
    "Whenever you book something, ask me first.",
    "Please call me Jo.",
    "Ab jetzt antworte bitte immer auf Deutsch.",
)
PLAIN = (
    "The landlord only answers letters, never emails.",
    "Redis is only used for sessions, never for queues.",
    "We moved production to eu-west-1 last month.",
    "Never mind, I found it.",
    "Do I like olives?",
    "Could you always sort by date?",
    "The key to the cellar hangs behind the fuse box.",
    "Explain big-O notation to a beginner, please.",
)


def share_right(kind: str) -> float:
    labelled = [(label, text) for label, use, text in LABELLED if use == kind]
    assert len(labelled) >= 75
    return sum(prompt_kind(text) == label for label, text in labelled) / len(labelled)


def test_kinds_of_prompts_are_told_on_those_that_the_cues_were_chosen_by_and_on_others() -> None:
    assert len({text for _, _, text in LABELLED}) == len(LABELLED) >= 150
    assert share_right("dev") >= 0.95
    assert share_right("held") >= 0.9


def test_no_held_out_prompt_that_needs_an_answer_is_taken_for_an_idle_one() -> None:
    taken = [text for label, _, text in LABELLED if label != "idle" and prompt_kind(text) == "idle"]
    assert taken == [
        "Translate this sentence into French."
    ]  # "this" is in the talk, not in a memory


def test_prompts_that_need_nothing_ask_neither_advice_nor_give_instructions() -> None:
    kinds = [prompt_kind(text) for text in NEEDLESS]
    assert not {"advice", "instruction"} & set(kinds)
    assert sum(kind in ("idle", "task") for kind in kinds) >= 0.9 * len(kinds)


@pytest.mark.parametrize(
    ("prompt", "kind"),
    [
        ("Danke, das reicht für heute!", "idle"),
        ("Das war's, schönen Abend noch", "idle"),
        ("nice work :)", "idle"),
        ("yep, ship it", "idle"),
        ("merci beaucoup", "idle"),
        ("I'm back", "idle"),
        ("I'm back from Rome", "statement"),
        ("ship it to Bonn", "statement"),
        ("Das reicht nicht für die Miete", "statement"),
        ("then what did Priya say", "question"),
    ],
)
def test_small_talk_ends_where_something_is_said(prompt: str, kind: str) -> None:
    assert prompt_kind(prompt) == kind


@pytest.mark.parametrize(
    ("question", "statement"),
    [
        ("who am I?", "identity"),
        ("Who am I", "identity"),
        ("so, what's my name?", "identity"),
        ("What do I do?", "identity"),
        ("what do I need to do?", "todo"),
        ("What’s on my list?", "todo"),
    ],
)
def test_a_question_about_the_person_is_answered_by_what_they_said_of_themselves(
    question: str, statement: str
) -> None:
    about = about_the_person(question)
    assert about is not None
    assert about.statement == statement
    assert prompt_kind(question) == "question"


def test_other_questions_are_looked_for_by_their_own_words() -> None:
    for question in ("who is Ana?", "what do I do about the boiler?", "what's my sister's name?"):
        assert about_the_person(question) is None


def kinds_of(texts: Sequence[str], kind: str) -> list[bool]:
    return [kind in statements_of(text) for text in texts]


def test_preferences_and_instructions_are_told_from_each_other_and_from_what_is_neither() -> None:
    assert all(kinds_of(PREFERENCES, "preference"))
    assert all(kinds_of(INSTRUCTIONS, "instruction"))
    assert not any(kinds_of(PREFERENCES, "instruction"))
    for kind in ("preference", "instruction"):
        assert not any(kinds_of(PLAIN, kind))


def test_who_somebody_is_and_what_they_have_to_do_is_told() -> None:
    assert "identity" in statements_of("My name is Sam and I live in Rome")
    assert "identity" in statements_of("I'm a platform engineer at Lumen Pay.")
    assert "identity" not in statements_of("I'm a bit tired.")
    assert "todo" in statements_of("I have to renew my passport in June.")
    assert "todo" in statements_of("The postmortem is due on Friday.")
    assert "todo" not in statements_of("I renewed my passport.")


@pytest.mark.parametrize(
    "text",
    [
        "Where is the spare key?",
        "where is the spare key",
        "Hi! Do you know where the spare key is? Thanks!",
        "Tell me where the spare key is.",
        "Kannst du mir sagen, wo der Schlüssel ist?",
        "¿Dónde está la llave?",
        "钥匙在哪里？",
    ],
)
def test_a_text_that_only_asks_is_told(text: str) -> None:
    assert only_asks(text)


@pytest.mark.parametrize(
    "text",
    [
        "The spare key is under the flower pot.",
        "The spare key is gone. Where could it be?",
        "thanks!",
        "I wonder about the key.",
        "Where there is smoke, there is fire.",
        "",
    ],
)
def test_a_text_that_tells_something_does_not_only_ask(text: str) -> None:
    assert not only_asks(text)


def test_asking_for_questions_is_told() -> None:
    for query in (
        "What did I ask about the key?",
        "Have I ever asked you about Rome?",
        "my open questions",
    ):
        assert asks_what_was_asked(query), query
    for query in ("Where is the key?", "What did I say about the key?", "Who answers the phone?"):
        assert not asks_what_was_asked(query), query


@pytest.mark.parametrize(
    "text",
    [
        "I'm in a wheelchair.",
        "I carry an EpiPen because of bee stings.",
        "I'm Muslim and don't drink.",
        "I get seasick easily.",
        "Heights terrify me.",
        "My knees are bad.",
        "I have high blood pressure.",
        "I quit drinking two years ago.",
        "We keep kosher.",
        "I work nights.",
        "Not a fan of jazz.",
        "I can't swim.",
        "My wife is vegetarian.",
        "The kids can't have nuts.",
        "Lena has a severe shellfish allergy.",
        "User prefers dark mode.",
    ],
)
def test_health_and_limits_are_preferences_of_the_person_and_of_those_around_them(
    text: str,
) -> None:
    assert "preference" in statements_of(text)


@pytest.mark.parametrize(
    "text",
    [
        "Use British spelling.",
        "Don't use em dashes.",
        "No emojis, please.",
        "Stop apologising.",
        "Answer me in French.",
        "In your answers, cite sources.",
        "You should always ask before deleting.",
        "Make sure to always run the linter.",
    ],
)
def test_how_the_assistant_is_to_work_is_an_instruction(text: str) -> None:
    assert "instruction" in statements_of(text)


@pytest.mark.parametrize(
    "text",
    [
        "My sister is a nurse in Leeds.",
        "The user is logged out after ten minutes.",
        "I can't afford to lose this data.",
        "My dog loves the park.",
        "I get up at six tomorrow for the flight.",
        "Use single quotes in this file.",
        "In your code there is a bug on line 4.",
        "Every test should pass before we merge.",
        "You should never see this error.",
        "Stop asking the server for the token twice.",
        "I want all tests to pass.",
    ],
)
def test_what_holds_for_the_moment_is_neither(text: str) -> None:
    assert not statements_of(text) & {"preference", "instruction"}
