"""The steps of the write path as pure functions: idempotent, nothing of a text is lost, any script."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pps.core.bounds import MAX_TAGS, check_tags, is_tag, tag_of
from pps.core.text import (
    MAX_SUMMARY,
    MAX_TITLE,
    content_hash,
    fold,
    normalise,
    summary_of,
    title_of,
)
from pps.ingest.drafts import Automatic, links_in, tags_in

TEXT = st.text(max_size=400)
WORDS = st.text(st.characters(categories=["L", "M", "Nd"]), min_size=1, max_size=20)


@given(TEXT)
def test_normalising_twice_changes_nothing_more_and_keeps_every_line(text: str) -> None:
    once = normalise(text)
    assert normalise(once) == once
    assert once.count("\n") == text.replace("\r\n", "\n").replace("\r", "\n").count("\n")
    assert unicodedata.normalize("NFD", once) == unicodedata.normalize(
        "NFD", text.replace("\r\n", "\n").replace("\r", "\n")
    )


@given(st.lists(WORDS, min_size=1, max_size=8), st.sampled_from([" ", "  ", "\n", "\t \r\n"]))
def test_the_hash_alone_folds_white_space(words: list[str], gap: str) -> None:
    assert content_hash(gap.join(words)) == content_hash(" ".join(words))
    assert content_hash(" ".join(words)) != content_hash(" ".join([*words, "more"]))


@pytest.mark.parametrize(
    ("text", "tags"),
    [
        ("#Tea and #tea, #naïve-1 #a_b", ("tea", "naïve-1", "a_b")),
        ("#1st #_x # #-y C#sharp a/#b &#38; ##c", ()),
        (
            "#हिन्दी #தமிழ் #ไทย #中文 #عربى #ελληνικά",
            ("हिन्दी", "தமிழ்", "ไทย", "中文", "عربى", "ελληνικά"),
        ),
        ("`#code` ```\n#block\n``` # Heading", ()),
        ("(#in) [#too], #end.", ("in", "too", "end")),
        ("#" + "x" * 65 + " #" + "y" * 64, ("y" * 64,)),
    ],
)
def test_tags_of_any_script_are_found_lower_case_and_once(text: str, tags: tuple[str, ...]) -> None:
    assert tags_in(text) == tags


@given(TEXT)
def test_what_is_found_as_a_tag_is_one_that_may_be_given_and_finding_it_again_changes_nothing(
    text: str,
) -> None:
    found = tags_in(text)
    assert len(set(found)) == len(found)
    assert all(map(is_tag, found))
    assert check_tags(found[:50]) == found[:50]
    assert tags_in(" ".join(f"#{tag}" for tag in found)) == found
    assert tuple(map(tag_of, found)) == found


@given(st.lists(WORDS, max_size=60).map(tuple), st.lists(WORDS.filter(is_tag), max_size=60))
def test_tags_are_merged_once_each_given_ones_first_and_as_many_as_there_is_room_for(
    given_tags: tuple[str, ...], found: list[str]
) -> None:
    text = " ".join(f"#{tag}" for tag in found)
    every = tuple(dict.fromkeys(given_tags + tags_in(text)))
    assert Automatic().tags_of(given_tags, text) == every[:MAX_TAGS]
    assert (
        Automatic(tags=False).tags_of(given_tags, text)
        == tuple(dict.fromkeys(given_tags))[:MAX_TAGS]
    )


@given(st.lists(WORDS, max_size=6))
def test_links_are_found_in_order_once_in_any_case(titles: list[str]) -> None:
    titles = [
        one for one in titles if fold(one.upper()) == fold(one)
    ]  # the dotless i has another capital
    text = " and ".join(f"[[{title}]] [[ {title.upper()} |shown]]" for title in titles)
    found = links_in(text)
    assert [fold(one) for one in found] == list(
        dict.fromkeys(fold(one) for one in titles if fold(one))
    )
    assert links_in(" ".join(f"[[{one}]]" for one in found)) == found


def test_links_in_code_and_blank_ones_are_none() -> None:
    assert links_in("`[[a]]` [[ ]] [[b\nc]] [[[d]]] ```[[e]]```") == ("d",)


@pytest.mark.parametrize(
    ("text", "summary"),
    [
        ("One. Two.", "One."),
        ("Dr. Smith paid 3.50 e.g. for tea! Then left.", "Dr. Smith paid 3.50 e.g. for tea!"),
        ("第一句。第二句。", "第一句。"),
        ("क्या हाल है? ठीक। और", "क्या हाल है?"),
        ("no end at all", "no end at all"),
        ("A heading\n\nand a text. More.", "A heading"),
        ("two\nlines. More.", "two lines."),
        ("x" * 201, "x" * 200 + "…"),
        ("x" * 199 + ". y", "x" * 199 + "."),
    ],
)
def test_the_summary_is_the_first_sentence_or_its_first_200_characters(
    text: str, summary: str
) -> None:
    assert summary_of(text) == summary


@given(TEXT)
def test_summary_and_title_are_short_one_line_and_made_of_the_text(text: str) -> None:
    summary, title = summary_of(text), title_of(text)
    assert len(summary) <= MAX_SUMMARY + 1
    assert len(title) <= MAX_TITLE
    folded = " ".join(text.split())
    assert summary.removesuffix("…") in folded
    assert folded.startswith(title)
    assert summary_of(summary.removesuffix("…")) in summary
    assert title_of(title) == title
    assert bool(title) == bool(folded)


def test_a_cut_does_not_tear_an_accent_from_its_letter() -> None:
    assert title_of("a" * 79 + "e\u0301" * 5) == "a" * 79
    assert summary_of("b" * 199 + "क\u0940" * 9) == "b" * 199 + "…"


@pytest.mark.parametrize(
    ("text", "summary"),
    [
        ("This is about topic 0. The next one is not.", "This is about topic 0."),
        ("We sold 12. Nobody knows why.", "We sold 12."),
        ("It costs 0.5 cents. Not more.", "It costs 0.5 cents."),
        ("1. Buy milk. 2. Drink it.", "1. Buy milk."),
        ("Wir kommen am 3. Mai. Dann gehen wir.", "Wir kommen am 3. Mai."),
        ("He came on the 3. of May. Then he left.", "He came on the 3. of May."),
    ],
)
def test_a_number_ends_a_sentence_unless_it_counts_or_is_a_third(text: str, summary: str) -> None:
    assert summary_of(text) == summary
