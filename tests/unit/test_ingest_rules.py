"""Rules extraction: deterministic, offline, rather silent than wrong, safe on any script."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pps.core.values import Turn
from pps.ingest.rules import extract
from pps.ingest.steps import links_in, tags_in

AT = datetime(2026, 3, 1, tzinfo=UTC)


def said(text: str, actor: str = "Mira") -> Turn:
    return Turn("00000000-0000-5000-8000-000000000000", 1, "user", text, "s", AT, AT, actor=actor)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("I live in Tarn now.", ("Mira", "LIVES_IN", "Tarn now")),
        ("Priya works at Lumen Labs.", ("Priya", "WORKS_AT", "Lumen Labs")),
        ("Theo adopted a grey cat, finally!", ("Theo", "HAS", "grey cat")),
        ("I love coffee in the morning", ("Mira", "LIKES", "coffee")),
    ],
)
def test_a_plain_sentence_gives_one_fact(text: str, expected: tuple[str, str, str]) -> None:
    (fact,) = extract(said(text)).facts
    assert (fact.subject, fact.relation, fact.object) == expected


@pytest.mark.parametrize("text", ["It is a mess.", "They live in fear", "Does Priya live in Tarn?", "", "   "])
def test_what_names_nobody_gives_no_fact(text: str) -> None:
    assert extract(said(text)).facts == ()


def test_first_person_without_an_actor_gives_no_fact() -> None:
    assert extract(said("I live in Tarn.", actor="")).facts == ()


def test_proper_nouns_inside_a_sentence_become_nodes_and_its_first_word_does_not() -> None:
    found = extract(said("Yesterday we met Priya Raman near Café Lumen."))
    assert [node.name for node in found.nodes] == ["Priya Raman", "Café Lumen"]


def test_code_is_not_read() -> None:
    found = extract(said("see ```python\nfrom Priya import Tarn  #nope\n``` and `the Theo`"))
    assert found.nodes == ()
    assert tags_in("`#code` but #Real and #naïve-1") == ("real", "naïve-1")


def test_links_keep_their_title_and_drop_their_label() -> None:
    assert links_in("see [[Tarn Bridge|the bridge]] and [[茶]] and [[ ]]") == ("Tarn Bridge", "茶")


@given(st.text(max_size=400))
def test_any_text_is_safe_and_gives_the_same_twice(text: str) -> None:
    assert extract(said(text)) == extract(said(text))
