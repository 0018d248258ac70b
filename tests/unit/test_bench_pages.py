"""The reports of times as files and as text: what stands in them, and that nothing is written without a plot."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from benchmarks import pages
from benchmarks.times_report import HOOKS, RERANK, TIMELINE, Times
from pps.core.errors import ConfigError

_P = {"p50": 1.5, "p95": 20.25, "p99": 30.0}
_COMMON: dict[str, Any] = {
    "command": "scripts/bench this",
    "version": "1.2.3",
    "machine": {
        "cores": 2,
        "memory_gib": 8.0,
        "processor": "a chip",
        "python": "3.12.1",
        "load_1_min": 0.25,
    },
    "facts": 4000,
}
REPORTS: list[tuple[Times, dict[str, Any]]] = [
    (
        HOOKS,
        {
            "title": "Hooks: waiting",
            "prompts": 30,
            "start_ms": _P,
            "round_trip_ms": _P,
            "process_ms": _P,
        },
    ),
    (
        RERANK,
        {
            "title": "A cross-encoder: its cost",
            "candidates": 20,
            "model": "a model",
            "limit_ms": 500,
            "fell_back": 3,
            "by_ranks_ms": {**_P, "calls": 9},
            "cross_encoder_ms": {**_P, "calls": 9},
            "of_that_the_cross_encoder_ms": {**_P, "calls": 9},
        },
    ),
    (
        TIMELINE,
        {
            "title": "Timeline: events",
            "exact": 9,
            "questions": 10,
            "events": 500,
            "data": "some",
            "pages": 77,
            "facts_read": 1234,
            "write_s": 2.5,
            "page_ms": {**_P, "calls": 10},
            "wrong": ["this one"],
        },
    ),
]
SAID = {
    "Hooks: waiting": "4,000 facts, 30 prompts",
    "A cross-encoder: its cost": "the order by ranks stands: 3 times",
    "Timeline: events": "9 of 10 answers exact",
}


@pytest.mark.parametrize(("times", "own"), REPORTS, ids=[own["title"] for _, own in REPORTS])
def test_a_report_of_times_is_kept_as_json_page_and_plot(
    tmp_path: Path, times: Times, own: dict[str, Any]
) -> None:
    report = {**_COMMON, **own}
    files = times.save(report, tmp_path / "new" / "folder", "it")
    assert [file.name for file in files] == ["it.json", "it.md", "it.png"]
    assert json.loads(files[0].read_text("utf-8")) == report
    page = files[1].read_text("utf-8")
    for told in (
        own["title"],
        "scripts/bench this",
        "2 cores (a chip)",
        "![",
        "(it.png)",
        SAID[own["title"]],
        "20.25",
    ):
        assert told in page
    assert files[2].read_bytes().startswith(b"\x89PNG")
    shown = times.text(report)
    assert SAID[own["title"]] in shown
    assert all(f"{label} " in shown for label in times.rows.values())
    assert "calls" not in page + shown


def test_nothing_is_kept_when_there_is_no_plot(tmp_path: Path) -> None:
    def draw(*_: object) -> None:
        raise ConfigError("no matplotlib here")

    with pytest.raises(ConfigError):
        pages.save(_COMMON, tmp_path, "it", lambda *_: "page", draw)
    assert list(tmp_path.iterdir()) == []
