"""Answers in a transcript: each once, however the file grows, is cut or is written anew."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pps.core.errors import InvalidRequest
from pps.ingest.transcripts import (
    TranscriptCursor,
    TranscriptReading,
    load,
    mark,
    read_new,
    with_ahead,
)

AT = datetime(2026, 3, 1, 9, 0, tzinfo=UTC)


def line(number: int, text: str, **fields: Any) -> bytes:
    said = {"role": "assistant", "id": f"m{number}", "content": [{"type": "text", "text": text}]}
    at = (AT + timedelta(seconds=number)).isoformat()
    entry = {
        "type": "assistant",
        "uuid": f"u{number}",
        "timestamp": at,
        "sessionId": "s",
        "message": said,
    }
    return json.dumps({**entry, **fields}).encode() + b"\n"


def reading(path: Path, **options: Any) -> TranscriptReading:
    return TranscriptReading(str(path), "s", AT, **options)


@settings(max_examples=30, deadline=None)
@given(
    texts=st.lists(st.text(st.characters(codec="utf-8"), min_size=1).filter(str.strip), max_size=8),
    cuts=st.lists(st.floats(0, 1), max_size=6),
)
def test_however_a_file_grows_each_answer_comes_once(
    texts: list[str], cuts: list[float], tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.mktemp("grows") / "s.jsonl"
    whole = b"".join(line(number, text) for number, text in enumerate(texts))
    cursor = TranscriptCursor(0, "", AT)
    found: list[str] = []
    for end in [*sorted(round(cut * len(whole)) for cut in cuts), len(whole)]:
        path.write_bytes(whole[:end])
        new, cursor = read_new(reading(path), load(cursor.dump()))
        found += [one.ref for one in new]
    assert found == [
        f"u{number}" for number, text in enumerate(texts) if text.replace("\0", "").strip()
    ]
    assert cursor.offset == len(whole)


@settings(max_examples=30, deadline=None)
@given(st.binary(max_size=400))
def test_any_bytes_are_read_without_an_error(
    tmp_path_factory: pytest.TempPathFactory, raw: bytes
) -> None:
    path = tmp_path_factory.mktemp("any") / "s.jsonl"
    path.write_bytes(raw)
    assert read_new(reading(path), TranscriptCursor(0, "", AT))[0] == []


def test_lines_of_one_message_are_one_answer(tmp_path: Path) -> None:
    path = tmp_path / "s.jsonl"
    one = line(1, "First half.")
    two = line(1, "Second half.", uuid="u1b")
    path.write_bytes(one + two + line(2, "Another."))
    new, _ = read_new(reading(path), TranscriptCursor(0, "", AT))
    assert [(one.ref, one.text) for one in new] == [
        ("u1", "First half.\n\nSecond half."),
        ("u2", "Another."),
    ]


def test_without_a_cursor_only_the_answers_to_the_last_prompt_are_new(tmp_path: Path) -> None:
    path = tmp_path / "s.jsonl"
    prompt = json.dumps(
        {"type": "user", "sessionId": "s", "message": {"role": "user", "content": "Now?"}}
    ).encode()
    result = {
        "type": "user",
        "message": {"role": "user", "content": [{"type": "tool_result", "content": "x"}]},
    }
    path.write_bytes(
        line(1, "Old.") + prompt + b"\n" + line(2, "New.") + json.dumps(result).encode() + b"\n"
    )
    new, cursor = read_new(reading(path), None)
    assert [one.text for one in new] == ["New."]
    path.write_bytes(b"{}\n" + path.read_bytes())
    again, _ = read_new(reading(path), cursor)
    assert [one.text for one in again] == ["New."]  # the journal knows its id


def test_what_was_said_before_a_mark_is_never_taken(tmp_path: Path) -> None:
    path = tmp_path / "s.jsonl"
    path.write_bytes(line(-60, "Before."))
    cursor = mark(reading(path))
    assert read_new(reading(path), cursor)[0] == []
    path.write_bytes(b"{}\n" + line(-60, "Before.") + line(5, "After."))
    assert [one.text for one in read_new(reading(path), cursor)[0]] == ["After."]


def test_a_late_event_is_answered_though_a_later_one_has_moved_the_cursor_past_it(
    tmp_path: Path,
) -> None:
    """A session that goes on marks the end of its file before the spool gives what was said while no server ran."""
    path = tmp_path / "s.jsonl"
    prompt = {"type": "user", "sessionId": "s", "message": {"role": "user", "content": "Now?"}}
    asked = json.dumps(prompt).encode() + b"\n"
    told = line(-90, "Of an earlier prompt.") + asked + line(-60, "I count.") + line(-59, "Five.")
    for grown in (b"", asked + line(5, "Later.")):
        path.write_bytes(told + grown)
        cursor = mark(reading(path))
        new, moved = read_new(reading(path, upto=len(told)), cursor)
        assert [answer.text for answer in new] == ["I count.", "Five."]
        assert moved == cursor
    stored = with_ahead(cursor, "Five.")
    new, moved = read_new(reading(path, upto=len(told)), stored)
    assert [answer.text for answer in new] == ["I count."]
    assert (moved.offset, moved.ahead) == (cursor.offset, ("u-59",))


def test_an_answer_stored_ahead_of_its_line_is_known_by_its_words(tmp_path: Path) -> None:
    path = tmp_path / "s.jsonl"
    path.write_bytes(b"")
    cursor = with_ahead(mark(reading(path)), "Two  words.\n")
    path.write_bytes(line(1, "Two words.") + line(2, "Two words."))
    new, moved = read_new(reading(path), cursor)
    assert new == []
    assert moved.ahead == ("u1", "u2")
    assert read_new(reading(path), replace(moved, offset=0, tail="")) == ([], moved)


def test_only_this_session_in_its_own_folders_is_taken_and_no_further_than_asked(
    tmp_path: Path,
) -> None:
    path = tmp_path / "s.jsonl"
    mine, other = line(1, "Mine.", cwd="/mine"), line(2, "Elsewhere.", cwd="/theirs")
    path.write_bytes(
        mine + other + line(3, "Another session.", sessionId="t") + line(4, "Later.", cwd="/mine")
    )
    upto = len(mine + other) + 10
    new, cursor = read_new(
        reading(path, upto=upto, is_ours=lambda cwd: cwd == "/mine"), TranscriptCursor(0, "", AT)
    )
    assert [one.text for one in new] == ["Mine."]
    assert cursor.offset == len(mine + other)


@pytest.mark.parametrize(
    "path", ["", "relative.jsonl", "/etc/passwd", "/x\0.jsonl", "~user/x.jsonl"]
)
def test_what_cannot_be_a_transcript_is_refused(path: str) -> None:
    with pytest.raises(InvalidRequest):
        read_new(TranscriptReading(path, "s", AT), None)


def test_a_pipe_or_a_folder_of_that_name_is_empty(tmp_path: Path) -> None:
    import os

    os.mkfifo(tmp_path / "pipe.jsonl")
    (tmp_path / "folder.jsonl").mkdir()
    for name in ("pipe", "folder", "missing"):
        assert read_new(reading(tmp_path / f"{name}.jsonl"), None)[0] == []


@pytest.mark.parametrize("text", [None, "", "[]", "{}", "[1, 2]", '["a", 1, "b", 3]'])
def test_a_cursor_that_cannot_be_read_is_none(text: str | None) -> None:
    cursor = load(text)
    assert cursor is None or isinstance(cursor.offset, int)
