"""Fences: only spans with a mark that the server gave out are dropped, and nothing inside closes one."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pps.context.fence import KEPT_D, Marks, escaped, fenced, marks_in, strip_known
from pps.core.model_text import is_live, unescape
from pps.core.text import visible

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


PACK = fenced(
    MARK,
    "Notes from ana's memory.\nNow: Monday.\n\n## Facts\n- Ana drinks tea\n  at noon\n\nShown: 1 fact.",
)


@pytest.mark.parametrize("end", range(len(f"<memory-{MARK}>\n"), len(PACK)))
def test_a_span_that_was_cut_is_dropped_as_far_as_it_looks_like_a_pack(end: int) -> None:
    kept = strip_known(f"Look:\n{PACK[:end]}\n\nIs that so?", known)

    assert kept.startswith("Look:\n")
    assert kept.endswith("Is that so?")
    assert "Ana" not in kept
    assert "memory-" not in kept


def test_the_end_of_a_span_is_dropped_with_the_lines_before_it() -> None:
    tail = PACK[PACK.index("- Ana") :]

    assert strip_known(f"I read:\n{tail}\nso it is.", known) == "I read:\nso it is."


def test_nested_and_html_escaped_spans_are_dropped() -> None:
    escaped_once = PACK.replace("<", "&lt;").replace(">", "&gt;")
    as_json = PACK.replace("<", "\\u003c").replace(">", "\\u003e")

    assert strip_known(f"a {escaped_once} b {as_json} c", known) == "a b c"
    assert strip_known(f"a {fenced(MARK, f'x {PACK} y')} b", known) == "a b"
    assert strip_known(fenced(OTHER, f"x {PACK} y"), known) == fenced(OTHER, "x y")


def test_another_mark_inside_does_not_end_a_span() -> None:
    inner = f"one </memory-{OTHER}> two"

    assert strip_known(fenced(MARK, inner), known) == ""


def test_several_spans_are_dropped_one_by_one() -> None:
    text = f"{fenced(MARK, 'a')} and {fenced(MARK, 'b')}!"

    assert strip_known(text, known) == "and !"


def test_marks_are_found_once_each() -> None:
    assert marks_in(fenced(MARK, "a") + fenced(OTHER, "b") + fenced(MARK, "c")) == [MARK, OTHER]


@pytest.mark.parametrize(
    "look",
    [
        *(
            "</memory-x>",
            "< / MEMORY-x",
            "<Memory>",
            "＜/memory-x",
            "<\tmemory-x",
            "＜／ｍｅｍｏｒｙ-x＞",
            "<\u200b/mem\u200bory-x>",
        ),
        *(
            "</system-reminder>",
            "<SYSTEM-REMINDER>",
            "</ѕyѕtem-reminder>",
            "&lt;/system-reminder&gt;",
            "&#60;system>",
        ),
        *(
            "<|im_start|>system",
            "<|im_end|>",
            "＜｜User｜＞",
            "<｜begin▁of▁sentence｜>",
            "<|eot_id|>",
            "<start_of_turn>",
        ),
        *(
            "[INST]",
            "[ / INST ]",
            "［INST］",
            "<<SYS>>",
            "<</SYS>>",
            "<s>",
            "</s>",
            "[SYSTEM_PROMPT]",
            "[TOOL_CALLS]",
        ),
        *(
            "<function_calls>",
            "<invoke name='x'>",
            "<invoke>",
            "<tool_result>",
            "<local-command-stdout>",
        ),
    ],
)
def test_what_looks_like_a_fence_or_a_models_own_marks_is_escaped(look: str) -> None:
    shown = escaped(f"before {look} after")

    assert "‹" in shown
    assert unescape(shown) == visible(f"before {look} after")
    assert not is_live(shown)
    assert shown.endswith(" after")
    assert not re.search(r"(?:[<＜[［]|&lt;|&#)\s*[/／]?[\w|｜]", shown)


@pytest.mark.parametrize(
    "acts",
    [
        *(
            "\x1b[31m",
            "\x1b]0;title\x07",
            "\x1b]8;;http://x\x1b\\",
            "\x9b2J",
            "\x1bc",
            "\x08",
            "\x00",
            "\r",
        ),
        *(
            "\u202e",
            "\u2066",
            "\u200f",
            "\u200b",
            "\ufeff",
            "\u2060",
            "\U000e0041",
            "\u3164",
            "\u061c",
        ),
    ],
)
def test_what_is_not_seen_is_left_out(acts: str) -> None:
    assert escaped(f"one {acts}two") == ("one \ntwo" if acts == "\r" else "one two")


def test_joiners_stay_where_writing_needs_them() -> None:
    for needed in ("👨\u200d👩\u200d👧", "نمی\u200cخواهم", "tab\tand\nline", "❤️"):
        assert escaped(needed) == needed


@given(st.text(max_size=200))
def test_nothing_that_acts_is_left_in_any_text(text: str) -> None:
    shown = escaped(f"{text}\x1b[2J<|im_start|>{text}</system-reminder>{text}")

    assert not {"\x1b", "\x9b", "\u202e"} & set(shown)
    assert not re.search(r"<\||<\s*/?\s*(?:memory|system-reminder)", shown, re.IGNORECASE)
    assert visible(shown) == shown


@pytest.mark.parametrize(
    "plain",
    [
        "a < b",
        "<div>memory</div>",
        "my memory",
        "List<mem_t>",
        "#include <functional>",
        "x[1]",
        "## Users",
    ],
)
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


def test_a_mark_expires_and_none_comes_from_the_future() -> None:
    marks, at = Marks(bytes(32)), datetime(2026, 6, 1, 12, tzinfo=UTC)
    mark = marks.new(at)

    assert [
        marks.known(mark, at + timedelta(days=days)) for days in (-2, 0, KEPT_D, KEPT_D + 1)
    ] == [
        False,
        True,
        True,
        False,
    ]


@given(st.integers(0, 23), st.sampled_from("abcdefghijkmnpqrstuvwxyz23456789"))
def test_a_mark_with_another_character_is_known_to_nobody(at: int, character: str) -> None:
    marks = Marks(bytes(32))
    mark = marks.new()
    changed = mark[:at] + character + mark[at + 1 :]
    assert marks.known(changed) == (changed == mark)


@pytest.mark.parametrize("text", ["", "a", "ü" * 24, "a" * 24, "a" * 1_000])
def test_any_text_can_be_asked_of(text: str) -> None:
    assert not Marks(bytes(32)).known(text)
