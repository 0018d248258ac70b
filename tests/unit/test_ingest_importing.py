"""JSON lines: each message once, unknown names and bad lines refused with file, line and field."""

from __future__ import annotations

import hashlib
import json
from datetime import UTC, datetime
from pathlib import Path

import pytest

from pps.core.errors import InvalidRequest
from pps.ingest.importing.formats import read_lines


def write(folder: Path, *lines: object) -> Path:
    path = folder / "talk.jsonl"
    path.write_text(
        "\n".join(line if isinstance(line, str) else json.dumps(line) for line in lines),
        encoding="utf-8",
    )
    return path


def test_lines_become_what_remember_takes(tmp_path: Path) -> None:
    fact = {"subject": "Mira", "relation": "LIVES_IN", "object": "Tarn", "valid_at": "2026-01-05"}
    path = write(
        tmp_path,
        {"content": "hi", "session": "s1", "facts": [fact]},
        "",
        {"content": "yo", "source_ref": "r2"},
    )
    (first, one), (second, two) = read_lines(path)
    assert (first, second) == ("hi", "yo")
    digest = hashlib.sha256(path.read_bytes().split(b"\n")[0]).hexdigest()[:12]
    assert (one.get("source_ref"), two.get("source_ref")) == (f"talk.jsonl:1:{digest}", "r2")
    assert next(iter(one.get("facts", ()))).valid_at == datetime(2026, 1, 5, tzinfo=UTC)


@pytest.mark.parametrize(
    ("line", "names"),
    [
        ("{", "talk.jsonl:1"),
        ({"content": "x", "mood": "good"}, "talk.jsonl:1: mood"),
        ({"role": "user"}, "talk.jsonl:1: content"),
        ({"content": "x", "facts": [{"subject": "a"}]}, "talk.jsonl:1: facts.0.relation"),
        ({"content": "x", "occurred_at": "soon"}, "talk.jsonl:1: occurred_at"),
    ],
)
def test_a_bad_line_is_named(tmp_path: Path, line: object, names: str) -> None:
    with pytest.raises(InvalidRequest) as caught:
        list(read_lines(write(tmp_path, line)))
    assert caught.value.field == names
