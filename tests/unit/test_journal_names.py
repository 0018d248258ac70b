"""Names inside texts: units of every script, and names too plain to be found by chance."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pps.journal.names import is_meant, is_plain, units


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Café LUMEN", ["cafe", "lumen"]),
        ("cafe\u0301", ["cafe"]),
        ("O'Brien's node.js", ["o", "brien", "s", "node", "js"]),
        ("C++ and C#", ["c", "+", "+", "and", "c", "#"]),
        ("snake_case-name", ["snake", "case", "name"]),
        ("我在Lumen喝咖啡", ["我", "在", "lumen", "喝", "咖", "啡"]),
        ("민수가 왔다", ["민", "수", "가", "왔", "다"]),
        ("प्रिया ने", ["प्रिया", "ने"]),
        ("ليلى، قالت", ["ليلى", "قالت"]),
        ("می\u200cخواهم", ["میخواهم"]),
        ("กาแฟ", ["ก", "า", "แ", "ฟ"]),
        ("ＡＢＣ　ﬁne", ["abc", "fine"]),
        ("ja🐱x ❤️", ["ja", "🐱", "x", "❤"]),
        ("…!? — ×", []),
        ("", []),
    ],
)
def test_a_text_falls_into_units_of_its_scripts(text: str, expected: list[str]) -> None:
    assert units(text) == expected


@given(st.text(), st.text())
def test_units_of_two_texts_side_by_side_are_the_units_of_each(one: str, other: str) -> None:
    assert units(f"{one} {other}") == units(one) + units(other)


@given(st.text())
def test_units_are_never_blank(text: str) -> None:
    assert all(unit.strip() for unit in units(text))


@pytest.mark.parametrize(
    "name", ["a", "X", "茶", "7", "+", "the", "It", "The Who", "de la", "Will", ""]
)
def test_one_character_and_stop_words_alone_are_plain(name: str) -> None:
    assert is_plain(units(name))


@pytest.mark.parametrize("name", ["Bo", "🐱", "the Lumen", "红茶", "C++", "42", "ليلى"])
def test_other_names_are_not_plain(name: str) -> None:
    assert not is_plain(units(name))


@pytest.mark.parametrize(
    ("name", "text", "meant"),
    [
        ("Will", "what did Will say?", True),
        ("Will", "Will you come?", False),
        ("Will", "Yes. Will you come?", False),
        ("Will", "will you come?", False),
        ("Will", "goodWill", False),
        ("US", "does she live in the US now", True),
        ("US", "US", True),
        ("US", "tell us more", False),
        ("it", "it", True),
        ("it", "is it so", False),
        ("X", "what about X?", False),
        ("X", "x", True),
        ("茶", "喝茶", False),
        ("茶", "茶", True),
    ],
)
def test_a_plain_name_is_found_only_where_it_is_meant(name: str, text: str, meant: bool) -> None:
    assert is_meant(name, text) is meant
