"""Cutting text by script."""

from __future__ import annotations

import sys
import unicodedata
import uuid

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tantivy import TextAnalyzerBuilder, Tokenizer

from pps.index.terms import halves, owner_of, split


@pytest.mark.parametrize(
    ("text", "words", "runs"),
    [
        ("plain ASCII text", "plain ASCII text", ()),
        ("Ünïcode wörds", "Ünïcode wörds", ()),
        ("don't say \u2018no\u2019_yet; 3.5\u00a0km", "don t say  no  yet  3 5 km", ()),
        ("我喜欢咖啡", " ", ("我喜欢咖啡",)),
        ("买 iPhone 充电器!", "  iPhone   ", ("买", "充电器")),
        ("コーヒーを飲む", " ", ("コーヒーを飲む",)),
        ("ｺｰﾋｰ", " ", ("コーヒー",)),
        ("กาแฟร้อน", " ", ("กาแฟร้อน",)),
        ("커피를 마셨다", "   ", ("커피를", "마셨다")),
        ("ກາເຟ ကော်ဖီ កាហ្វេ", "     ", ("ກາເຟ", "ကော်ဖီ", "កាហ្វេ")),
        ("party 🎉🎂", "party   ", ("🎉", "🎂")),
        ("हिन्दी עברית русский", "हिन्दी עברית русский", ()),
    ],
)
def test_scripts_without_spaces_are_told_from_words(
    text: str, words: str, runs: tuple[str, ...]
) -> None:
    cut = split(text)
    assert (cut.words, cut.runs) == (words, runs)


def test_a_run_gives_its_pairs_and_its_characters() -> None:
    cut = split("喝咖啡 茶 のむ")
    assert list(cut.pairs()) == ["喝咖", "咖啡", "のむ"]
    assert list(cut.characters()) == list("喝咖啡茶のむ")
    assert list(cut.lone()) == ["茶"]
    assert list(cut.han()) == ["喝", "咖", "啡"]


@given(st.text(st.characters()))
def test_any_text_can_be_cut_and_written(text: str) -> None:
    cut = split(text)
    cut.words.encode()
    assert all(run and not run.isspace() for run in cut.runs)


@given(st.text("咖啡กาแฟ ab", min_size=1))
def test_no_character_that_carries_meaning_is_lost(text: str) -> None:
    cut = split(text)
    assert set("".join((cut.words, *cut.runs))) - {" "} == set(text) - {" "}


@given(st.text(st.characters(exclude_categories=["Cs", "Cn"])))
def test_words_are_runs_of_letters_marks_and_numbers_of_any_script(text: str) -> None:
    by_class = TextAnalyzerBuilder(Tokenizer.regex(r"[\p{L}\p{M}\p{N}]+")).build()
    by_space = TextAnalyzerBuilder(Tokenizer.whitespace()).build()
    cut = split(text)
    assert by_space.analyze(cut.words) == by_class.analyze(cut.words)
    meant = {
        one for one in unicodedata.normalize("NFKC", text) if unicodedata.category(one)[0] in "LMN"
    }
    assert meant <= set("".join((cut.words, *cut.runs)))


def test_a_letter_that_is_newer_than_this_python_is_a_letter() -> None:
    assert split("a\u0378b").words == "a\u0378b"


def test_no_text_fills_the_memory_with_its_characters() -> None:
    every = "".join(chr(point) for point in range(0x110000) if not 0xD800 <= point < 0xE000)
    before = sys.getallocatedblocks()
    for at in range(0, len(every), 50_000):
        split(every[at : at + 50_000])
    assert sys.getallocatedblocks() - before < 50_000  # all of them would be a million


@given(st.uuids())
def test_an_owner_that_is_a_uuid_is_two_numbers_and_back(owner: uuid.UUID) -> None:
    found = halves(str(owner))
    assert found is not None
    assert all(-(2**63) <= half < 2**63 for half in found)
    assert owner_of(*found) == str(owner)


@pytest.mark.parametrize(
    "owner",
    ["", "kitchen", "1B4E28BA-2FA1-5D2B-883F-0016D3CCA427", "1b4e28ba2fa15d2b883f0016d3cca427"],
)
def test_an_owner_that_is_no_uuid_has_no_halves(owner: str) -> None:
    assert halves(owner) is None
