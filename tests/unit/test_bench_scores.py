"""Figures of a benchmark are those of the definitions, and nothing to score is no figure."""

from __future__ import annotations

from datetime import UTC, datetime
from types import SimpleNamespace

import pytest

from benchmarks.data import Conversation, Said
from benchmarks.plain import Bm25, PlainRankings
from benchmarks.profile_file import profile_toml
from benchmarks.report import markdown
from benchmarks.scores import Answer, figures, mean, ratios, summary
from pps.journal.filters import ItemFilter
from pps.models.hash import HashEmbedder
from pps.models.protocols import Vector
from pps.recall.profiles import Profiles


class Slow(HashEmbedder):
    """Moves a clock for each query, and counts them."""

    TAKES_S = 0.25

    def __init__(self) -> None:
        super().__init__(64)
        self.asked = 0

    def embed_query(self, text: str) -> Vector:
        self.asked += 1
        return super().embed_query(text)

    def clock(self) -> float:
        return self.asked * self.TAKES_S


def test_figures_are_those_of_the_definitions() -> None:
    found = figures({"a", "b"}, ["x", "a", *"cdefg", "b"])

    assert found["R@5"] == 0.5
    assert found["R@10"] == 1.0
    assert found["MRR@10"] == 0.5
    assert found["nDCG@10"] == pytest.approx((1 / 1.5849625 + 1 / 3.169925) / (1 + 1 / 1.5849625))
    assert found["returned"] == 8


def test_only_recall_at_20_looks_at_the_longer_list() -> None:
    ten, twenty = [f"x{n}" for n in range(10)], [*(f"y{n}" for n in range(9)), "a"]

    found = figures({"a"}, ten, twenty)

    assert (found["R@10"], found["MRR@10"], found["R@20"]) == (0.0, 0.0, 1.0)


def test_a_report_of_no_question_has_no_figures_and_does_not_fail() -> None:
    found = summary([])

    assert found["all"] == {
        "questions": 0,
        **dict.fromkeys(("R@5", "R@10", "R@20", "MRR@10", "nDCG@10", "returned")),
    }
    assert ratios(mean([]), mean([]))["R@10"] is None


def test_the_latency_is_of_what_was_asked_and_unknown_where_nothing_was() -> None:
    asked = Answer("a", "1", "x", frozenset("g"), ("g",), took_ms=5.0)
    failed = Answer("a", "2", "x", frozenset("g"), (), error="invalid_request: query")

    assert summary([asked, failed])["latency_ms"] == {"p50": 5.0, "p95": 5.0, "p99": 5.0}
    assert summary([failed])["latency_ms"] == {"p50": None, "p95": None, "p99": None}


def test_means_are_of_questions_not_of_groups() -> None:
    answers = [
        Answer("a", "1", "x", frozenset("g"), ("g",)),
        Answer("a", "2", "x", frozenset("g"), ("h",)),
        Answer("b", "3", "y", frozenset("g"), ("g",)),
    ]

    found = summary(answers)

    assert found["all"]["R@10"] == 66.67  # type: ignore[index]
    assert found["conversations"]["a"]["R@10"] == 50.0  # type: ignore[index]
    assert found["categories"]["y"]["R@10"] == 100.0  # type: ignore[index]


def test_each_plain_ranking_is_timed_by_itself_with_the_embedding_that_it_needs(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    turns = [Said(one, f"The {one} leaves at nine.", session=one) for one in ("ferry", "bus")]
    conversation = Conversation("c", {turn.id: turn for turn in turns})
    embedder = Slow()
    monkeypatch.setattr("benchmarks.plain.time", SimpleNamespace(perf_counter=embedder.clock))

    found = PlainRankings(conversation, embedder).rank("When does the ferry leave?", 5)

    assert {name: one.turns[0] for name, one in found.items()} == dict.fromkeys(
        PlainRankings.NAMES, "ferry"
    )
    assert embedder.asked == 2
    assert found["bm25"].took_ms == 0
    assert found["dense"].took_ms == found["four-lists"].took_ms == Slow.TAKES_S * 1000


def test_words_that_nothing_shares_find_nothing() -> None:
    texts = Bm25(["the ferry leaves at nine", "a blue stone"])

    assert [number for number, _ in texts.rank("When does the ferry leave?", 5)] == [0]
    assert texts.rank("the of and", 5) == texts.rank("zebra", 5) == []
    assert Bm25([]).rank("ferry", 5) == Bm25(["", "the"]).rank("ferry", 5) == []


def test_a_written_profile_reads_as_what_it_was_written_from() -> None:
    shipped = {
        "perspectives": {"bm25": 1.0, "dense": 0.5},
        "k": 7.0,
        "substance": {"floor": 0.3, "words": 9.0},
    }

    found = Profiles({"own": profile_toml('a "quoted" name', shipped)}).get("own")

    assert found.channels["episodes"].model_dump(exclude_defaults=True) == shipped
    assert found.description == 'a "quoted" name'
    assert found.filters == ItemFilter()


def test_a_written_profile_lets_through_what_it_was_written_from() -> None:
    wanted = ItemFilter(
        tags=("a'b",), roles=("user",), since=datetime(2026, 1, 1, 8, 30, tzinfo=UTC)
    )

    text = profile_toml("d", {"perspectives": {"bm25": 1.0}}, "facts", wanted)

    assert Profiles({"own": text}).get("own").filters == wanted


def test_a_page_shows_what_is_unknown_as_a_dash() -> None:
    report = {
        "title": "T",
        "command": "c",
        "version": "0",
        "machine": {"cores": 2, "processor": "p", "python": "3"},
        "store": "embedded",
        "embedder": "hash",
        "reranker": "none",
        "data": [{"turns": 1, "facts": 0, "questions": 0, "questions_without_answer": 0}],
        "profiles": {"default": summary([])},
        "against": {},
        "scored": {},
        "ratios": {},
        "ablation": [],
    }

    assert "| pps | – | – | – | – | – | – |" in markdown(report, "t")
