"""Which names may be of one thing though they are written differently, and which are two for sure."""

from __future__ import annotations

import pytest

from pps.ingest.duplicates import alike, name_key


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("U.S.A.", "USA"),
        ("Next.js", "NextJS"),
        ("my-app", "my_app"),
        ("my app", "MyApp"),
        ("OpenAI, Inc.", "OpenAI"),
        ("Siemens AG", "Siemens"),
        ("Acme Co., Ltd.", "Acme"),
        ("Dr. Lindqvist", "Lindqvist"),
        ("Prof. Dr. Ana Lima", "Ana Lima"),
        ("O'Neill", "O’Neill"),
        ("Jean-Luc", "Jean Luc"),
        ("Mrs. Ruiz", "Ruiz"),
        ("A-12 b", "A12b"),
        ("São Paulo", "Sao Paulo"),
        ("Café Zoë", "Cafe Zoe"),
        ("Acme GmbH & Co. KG", "Acme"),
        ("Barnes and Co.", "Barnes"),
        ("Ana Silva, PhD", "Ana Silva"),
        ("Lindqvist, Dr.", "Lindqvist"),
    ],
)
def test_names_that_are_alike_are_a_pair(first: str, second: str) -> None:
    assert alike([("a", first), ("b", second)]) == [("a", "b")]


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("Jon", "John"),
        ("SR-052", "SR-053"),
        ("SR-05 2", "SR-052"),
        ("1.1.0", "11.0"),
        ("Python 3.1", "Python 31"),
        ("Mr Ruiz", "Mrs Ruiz"),
        ("C#", "C++"),
        ("C", "C."),
        ("Dr.", "Dr"),
        ("Co", "Co."),
        ("Ana Lima", "Ana Lima 2"),
        ("Ana", "Anna"),
        ("node 1", "node 2"),
        ("かきく", "がきく"),
        ("мой дом", "мои дом"),
        ("Boston, MA", "Boston"),
        ("Ruiz, Mr.", "Mrs. Ruiz"),
        ("Johnson & Johnson", "Johnson"),
        ("John Smith Jr.", "John Smith Sr."),
    ],
)
def test_names_that_differ_in_a_letter_or_digit_are_two(first: str, second: str) -> None:
    assert alike([("a", first), ("b", second)]) == []


def test_the_older_of_several_stands_first_in_each_pair() -> None:
    names = [("a", "USA"), ("a", "America"), ("b", "U.S.A."), ("c", "U S A")]
    assert alike(names) == [("a", "b"), ("a", "c")]


def test_nothing_is_left_of_a_name_of_signs() -> None:
    assert name_key("...") == ("", "")
