"""Names that are spelled otherwise are one; other words are not."""

from __future__ import annotations

import pytest

from pps.recall.spellings import initials, may_be_stem_of, spelled_alike


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Muhammad", "Mohammed"),
        ("Akim", "Akib"),
        ("Katherine", "Catherine"),
        ("Oskar", "Oscar"),
        ("Anna", "Anne"),
        ("Zbigniew", "Zbygniew"),
    ],
)
def test_names_spelled_otherwise_are_one_either_way(one: str, other: str) -> None:
    assert spelled_alike(one, other)
    assert spelled_alike(other, one)
    assert other[0].lower() in initials(one)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Marek", "market"),
        ("Rome", "Romans"),
        ("Jon", "Jan"),
        ("Anna", "Anna"),
        ("Berlin", "Bergen"),
    ],
)
def test_other_words_are_not(one: str, other: str) -> None:
    assert not spelled_alike(one, other)


def test_a_stem_is_told_for_a_term_of_a_name() -> None:
    assert may_be_stem_of("moham", "Muhammad")
    assert may_be_stem_of("catherin", "Katherine")
    assert not may_be_stem_of("market", "Marek")
