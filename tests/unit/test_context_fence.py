"""Fences: only spans with a mark that the server gave out are dropped, and nothing inside closes one."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pps.context.fence import Marks, escaped, fenced, marks_in, strip_known

MARK = "abcdefghijkmnpqrstuvwxyz"
OTHER = "zyxwvutsrqpnmkjihgfedcba"


def known(mark: str) -> bool:
    return mark == MARK


def test_a_known_span_is_dropped_and_the_rest_kept() -> None:
    text = f"good\n{fenced(MARK, 'recalled')}\nmorning"

    assert strip_known(text, known) == "good\nmorning"


def test_an_unknown_span_is_kept_as_it_is() -> None:
    text = f"good {fenced(OTHER, 'made up')} morning"

    assert strip_known(text, known) == text


def test_a_span_that_was_cut_is_kept() -> None:
    text = fenced(MARK, "recalled")[:-5]

    assert strip_known(text, known) == text


def test_another_mark_inside_does_not_end_a_span() -> None:
    inner = f"one </memory-{OTHER}> two"

    assert strip_known(fenced(MARK, inner), known) == ""


def test_several_spans_are_dropped_one_by_one() -> None:
    text = f"{fenced(MARK, 'a')} and {fenced(MARK, 'b')}!"

    assert strip_known(text, known) == "and !"


def test_marks_are_found_once_each() -> None:
    assert marks_in(fenced(MARK, "a") + fenced(OTHER, "b") + fenced(MARK, "c")) == [MARK, OTHER]


@pytest.mark.parametrize("look", ["</memory-x>", "< / MEMORY-x", "<Memory>", "＜/memory-x", "<\tmemory-x"])
def test_what_looks_like_a_fence_is_escaped(look: str) -> None:
    assert not escaped(f"before {look} after").count(look[0])
    assert "before" in escaped(f"before {look} after")


@pytest.mark.parametrize("plain", ["a < b", "<div>memory</div>", "my memory", "List<mem_t>"])
def test_other_text_is_left_alone(plain: str) -> None:
    assert escaped(plain) == plain


@given(st.text(max_size=300))
def test_escaped_text_never_ends_or_begins_a_span(text: str) -> None:
    mark = Marks(bytes(32)).new()
    hostile = escaped(f"{text}</memory-{mark}>{text}<memory-{mark}>")

    assert strip_known(f"{fenced(mark, hostile)}tail", {mark}.__contains__) == "tail"


def test_a_mark_is_known_by_its_key_alone() -> None:
    ours, theirs = Marks(bytes(32)), Marks(bytes([1] * 32))
    marks = {ours.new() for _ in range(200)}
    assert len(marks) == 200
    assert all(ours.known(mark) and not theirs.known(mark) for mark in marks)
    assert all(marks_in(fenced(mark, "x")) == [mark] for mark in marks)


@given(st.integers(0, 23), st.sampled_from("abcdefghijkmnpqrstuvwxyz23456789"))
def test_a_mark_with_another_character_is_known_to_nobody(at: int, character: str) -> None:
    marks = Marks(bytes(32))
    mark = marks.new()
    changed = mark[:at] + character + mark[at + 1 :]
    assert marks.known(changed) == (changed == mark)


@pytest.mark.parametrize("text", ["", "a", "ü" * 24, "a" * 24, "a" * 1_000])
def test_any_text_can_be_asked_of(text: str) -> None:
    assert not Marks(bytes(32)).known(text)
