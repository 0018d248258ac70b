"""Two spellings of one name are recognised; other words are not."""

from __future__ import annotations

import pytest

from pps.recall.question import may_be_stem_of, possible_initials, spelled_alike


@pytest.mark.parametrize(
    ("name", "other"),
    [
        ("Muhammad", "Mohammed"),
        ("Akim", "Akib"),
        ("Katherine", "Catherine"),
        ("Oskar", "Oscar"),
        ("Anna", "Anne"),
        ("Zbigniew", "Zbygniew"),
    ],
)
def test_two_spellings_of_one_name_are_recognised_both_ways(name: str, other: str) -> None:
    assert spelled_alike(name, other)
    assert spelled_alike(other, name)
    assert other[0].lower() in possible_initials(name)


@pytest.mark.parametrize(
    ("name", "other"),
    [
        ("Marek", "market"),
        ("Rome", "Romans"),
        ("Jon", "Jan"),
        ("Anna", "Anna"),
        ("Berlin", "Bergen"),
    ],
)
def test_different_words_are_not_one_name(name: str, other: str) -> None:
    assert not spelled_alike(name, other)


def test_a_stem_matches_another_spelling_of_its_name() -> None:
    assert may_be_stem_of("moham", "Muhammad")
    assert may_be_stem_of("catherin", "Katherine")
    assert not may_be_stem_of("market", "Marek")
