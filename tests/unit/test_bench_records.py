"""There are enough labelled records, the same each time; the silhouette is that of the paper."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from benchmarks import records, records_data

RESULT = Path(__file__).parents[2] / "docs" / "benchmarks" / "records.json"


def test_there_are_enough_records_and_questions_in_other_words() -> None:
    every = records_data.topics()
    assert sum(len(one.questions) for one in every) >= 120
    assert sum(len(records_data.told(one, 0)) for one in every) >= 600
    assert records_data.copied_share(every) <= 0.25


def test_any_number_of_records_is_told_and_no_title_comes_twice_in_a_kind() -> None:
    some = [one for call in records_data.many(1_500) for one in call]
    assert len(some) == 1_500
    assert len({(one.kind, one.title) for one in some}) == 1_500


def test_the_silhouette_of_two_far_pairs_is_one_and_of_mixed_ones_below_naught() -> None:
    rows = np.array([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0], [0.0, 1.0]], dtype=np.float32)
    assert records._silhouette(rows, np.array([0, 0, 1, 1])) == pytest.approx(1.0)
    assert records._silhouette(rows, np.array([0, 1, 0, 1])) < 0


def test_the_page_is_what_its_figures_say() -> None:
    report = json.loads(RESULT.read_text("utf-8"))
    assert records.page(report, "records") == RESULT.with_suffix(".md").read_text("utf-8")
    assert "semantic@10" in records.text(report)
