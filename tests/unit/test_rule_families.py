"""Families of statements: examples hold, changes are read, and no tool is a place."""

from __future__ import annotations

import importlib
import re
from dataclasses import replace
from pathlib import Path

import pytest

from pps.core.values import CorrectionDraft
from pps.ingest.rule_families import FAMILIES, SLOTS, Family
from pps.ingest.rules import extract
from tests.labelled_sentences import ends_of, labelled_sentence, states_of, user_turn


@pytest.mark.parametrize(
    ("family", "example"),
    [(family, example) for family in FAMILIES for example in family.examples],
    ids=lambda value: value.name if isinstance(value, Family) else "",
)
def test_each_example_of_a_family_gives_what_it_says(family: Family, example: str) -> None:
    sentence, labels = labelled_sentence(example)
    found = extract(user_turn(sentence))
    assert states_of(found) == labels.states
    assert ends_of(found, labels) == labels.ends


def test_a_family_that_opens_facts_reads_their_changes_or_they_last() -> None:
    for family in FAMILIES:
        assert family.examples, family.name
        assert not family.opens or family.lasting or family.changes or family.closes, family.name


@pytest.mark.parametrize(
    "text",
    [
        "We moved to Kubernetes last month.",
        "We moved to Rust for the parser.",
        "I moved to the platform team.",
        "I moved to Marketing in May.",
        "I moved to Team Falcon.",
        "We moved to a monorepo.",
        "We moved to Zustand.",
        "I'm in marketing.",
        "I live in Vim.",
        "State lives in Redux.",
        "Our data lives in Snowflake.",
        "My team moved to Scala.",
        "We moved to GraphQL, and it was worth it.",
    ],
)
def test_products_languages_teams_and_departments_are_no_places(text: str) -> None:
    found = extract(user_turn(text))
    relations = {fact.relation for fact in found.facts}
    ended = {relation for ending in found.endings for relation in ending.relations}
    assert "LIVES_IN" not in relations | ended
    assert "WORKS_AT" not in relations | ended


@pytest.mark.parametrize(
    ("text", "organisation"),
    [
        ("I work at St. Olaf Hospital.", "St. Olaf Hospital"),
        ("I work at St. Mary's.", "St. Mary's"),
        ("I work at Ernst & Young.", "Ernst & Young"),
        ("I work for the Ministry of Education.", "Ministry of Education"),
    ],
)
def test_an_organisation_is_named_whole(text: str, organisation: str) -> None:
    assert [fact.object for fact in extract(user_turn(text)).facts] == [organisation]


@pytest.mark.parametrize(
    "text",
    [
        "NEVER skip this.** Run the full suite before merging.",
        "## Rules\n\n- **ALWAYS** run the tests.\n- Never push to main.",
        "You are a senior engineer. Always write idiomatic Go.",
        "| name | city |\n| --- | --- |\n| Maria | lives in Rome |\nAlways keep the header.",
        "IMPORTANT: NEVER commit secrets.",
    ],
)
def test_pasted_documents_and_prompts_state_nothing(text: str) -> None:
    found = extract(user_turn(text))
    assert (found.facts, found.endings) == ((), ())


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Actually no, it's Turin.", CorrectionDraft("Turin", relations=("LIVES_IN", "FROM"))),
        (
            "I meant Tuesday, not Monday",
            CorrectionDraft(
                "Tuesday", instead="Monday", relations=("HAPPENS_ON", "BORN_ON", "DUE_ON")
            ),
        ),
        ("No, sorry, 5 pm.", CorrectionDraft("5 pm", relations=("STARTS_AT",))),
        ("Actually no, it's blue.", CorrectionDraft("blue", relations=("FAVOURITE_*",))),
        ("Sorry, I meant cortado.", CorrectionDraft("cortado")),
        (
            "Wait, no: she works at Ericsson.",
            CorrectionDraft("Ericsson", relations=("WORKS_AT",)),
        ),
        ("No, he lives in Cork.", CorrectionDraft("Cork", relations=("LIVES_IN",))),
        (
            "Sorry, I meant in the garage.",
            CorrectionDraft("in the garage", relations=("KEPT_AT",)),
        ),
    ],
)
def test_a_correction_names_what_is_right(text: str, expected: CorrectionDraft) -> None:
    found = extract(user_turn(text))
    assert found.corrections == (replace(expected, text=text),)
    assert found.facts == ()


@pytest.mark.parametrize(
    "text",
    [
        "Actually it's fine.",
        "No, that's wrong.",
        "Oh no, Jon!",
        "No worries.",
        "I meant the other file.",
        "I meant well.",
        "Sorry, I meant to say hello.",
        "Actually no, it's raining.",
        "No, it's broken.",
        "Wait, that's great!",
        "No, make it quick.",
        "No, it's a bug.",
        "No, that's  .",
        "I meant  , not Monday",
    ],
)
def test_what_puts_nothing_right_is_no_correction(text: str) -> None:
    assert extract(user_turn(text)).corrections == ()


def test_a_correction_in_the_same_turn_changes_the_fact_before_it() -> None:
    found = extract(user_turn("I live in Milan. Actually no, it's Turin."))
    assert [(fact.relation, fact.object) for fact in found.facts] == [("LIVES_IN", "Turin")]
    assert "Milan" not in {node.name for node in found.nodes}
    assert found.corrections == ()


def test_a_correction_of_whom_somebody_has_changes_the_person_and_not_the_owner() -> None:
    found = extract(user_turn("My boss is Karin. Sorry, I meant Katrin."))
    assert [(fact.subject, fact.relation, fact.object) for fact in found.facts] == [
        ("Katrin", "BOSS_OF", "User")
    ]


@pytest.mark.parametrize("text", ["My boss is Scottish.", "My partner is Italian."])
def test_where_somebody_is_from_is_no_name(text: str) -> None:
    assert extract(user_turn(text)).facts == ()


def test_a_thing_is_known_by_both_of_its_names_and_a_possession_by_what_its_owner_calls_it() -> (
    None
):
    found = extract(
        user_turn("The budget for the kitchen is 12,000 euros. I have a red Fiat Panda.")
    )
    aliases = {node.name: node.aliases for node in found.nodes}
    assert aliases["budget for the kitchen"] == ("kitchen budget",)
    assert "User's Panda" in aliases["red Fiat Panda"]
    ended = {ending.object for ending in extract(user_turn("I sold the Panda.")).endings}
    assert ended == {"Panda", "User's Panda"}


def test_an_occupation_does_not_name_the_employer_that_is_a_fact_of_its_own() -> None:
    facts = extract(user_turn("I'm a data analyst at Tesco.")).facts
    assert {fact.relation: fact.text for fact in facts} == {
        "WORKS_AS": "I'm a data analyst.",
        "WORKS_AT": "I'm a data analyst at Tesco.",
    }


@pytest.mark.parametrize(
    "hostile",
    [
        "I have a " + "a-" * 140,
        "Aa " * 95,
        "I am " + "Aa & " * 55,
        "I use " + "a, and " * 40,
        "my " + "a " * 140 + "is 5 euros",
        "We moved the " + "launch from " * 22 + "to",
        "Actually no, " + "no, " * 60 + "it's",
        "my number is " + "1 " * 130,
        "I switched from " + "A to " * 55,
        "| " * 145,
    ],
)
@pytest.mark.timeout(120)
def test_no_sentence_takes_long_to_read(hostile: str) -> None:
    text = (hostile[:299] + "\n") * 200
    extract(user_turn(text))


def test_the_table_of_the_docs_says_what_rules_read() -> None:
    page = (Path(__file__).parents[2] / "docs" / "ingestion.md").read_text(encoding="utf-8")
    table = page.partition("| a turn says | facts | ends |\n| --- | --- | --- |\n")[2]
    rows = [row.split("|")[1:-1] for row in table.partition("\n\n")[0].splitlines()]
    assert len(rows) >= 25
    for cells in rows:
        sentence, facts, ends = (cell.strip() for cell in cells)
        found = extract(user_turn(sentence))
        read = {f"{fact.subject} {fact.relation} {fact.object}" for fact in found.facts}
        assert read == set(filter(None, facts.split(", "))), sentence
        if ends:
            assert found.endings, sentence
        elif not facts:
            assert not found.endings, sentence


def test_every_slot_is_read_and_every_template_names_slots_of_its_phrasing() -> None:
    re2 = importlib.import_module("re2")
    always = {"me", "*", "plan"}
    for family in FAMILIES:
        for phrasing in (*family.opens, *family.changes, *family.closes):
            slots = set(re.findall(r"<(\w+)>", phrasing.words))
            for slot in slots - {"who", "me"}:
                assert slot.removeprefix("old_").removeprefix("gone_") in SLOTS, phrasing
            named = slots | ({"who"} if "me" in slots else set()) | always
            for template in (*phrasing.states, *phrasing.ends):
                subject, relation, object_ = template.split()
                assert {subject, object_} <= named, phrasing
                assert relation == "*" or relation.isupper() or "topic" in slots, phrasing
            assert not phrasing.rivals or phrasing.rivals in slots
            re2.compile(re.sub(r"(?<!\?P)<\w+>", ".+?", phrasing.words))
