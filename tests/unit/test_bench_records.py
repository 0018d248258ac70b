"""There are enough labelled records in other words than the questions', and foundations and relations to time."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from benchmarks import records, records_data, records_found
from benchmarks.records_found import Asked
from pps.recall.floor import least_similarity

RESULT = Path(__file__).parents[2] / "docs" / "benchmarks" / "records.json"


def test_there_are_enough_records_and_questions_in_other_words() -> None:
    every = records_data.topics()
    assert sum(len(one.questions) for one in every) >= 120
    assert sum(len(records_data.told(one, 0)) for one in every) >= 600
    assert records_data.copied_share(every) <= 0.05
    assert all(len(one.answers) == len(one.questions) and all(one.answers) for one in every)


def test_any_number_of_records_is_told_and_no_title_comes_twice_in_a_kind() -> None:
    some = [one for call in records_data.many(1_500) for one in call]
    assert len(some) == 1_500
    assert len({(one.kind, one.title) for one in some}) == 1_500
    assert sum(len(one.relations) for one in some) == 4_500
    assert len({one.kind for one in some if one.kind in records_data.FOUNDATION}) == len(
        records_data.FOUNDATION
    )


def test_what_a_threshold_shows_is_right_or_wrong_and_precision_is_of_the_first_that_could_be_right() -> (
    None
):
    asked = [
        Asked("a", (("x", 0.6), ("y", 0.5), ("z", 0.2)), frozenset("xz")),
        Asked("b", (("z", 0.3),), frozenset("x")),
    ]
    assert [one.at() for one in asked] == [0.5, 0.0]
    assert records_found.shown_by(asked, 0.4) == {
        "shown": 1.0,
        "false_positives": 0.5,
        "recall": 0.333,
        "answered": 0.5,
    }
    assert records_found.f1(asked, 0.55) == pytest.approx(2 / 4)


def test_the_threshold_in_use_is_the_one_that_the_page_chose() -> None:
    precision = json.loads(RESULT.read_text("utf-8"))["precision"]
    assert precision["calibration"]["chosen"] == least_similarity(precision["model"])


def test_the_silhouette_of_two_far_pairs_is_one_and_of_mixed_ones_below_naught() -> None:
    rows = np.array([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0], [0.0, 1.0]], dtype=np.float32)
    assert records_found.silhouette(rows, np.array([0, 0, 1, 1])) == pytest.approx(1.0)
    assert records_found.silhouette(rows, np.array([0, 1, 0, 1])) < 0


def test_the_page_is_what_its_figures_say() -> None:
    report = json.loads(RESULT.read_text("utf-8"))
    assert records.page(report, "records") == RESULT.with_suffix(".md").read_text("utf-8")
    assert "semantic@10" in records.text(report)
