"""``scripts/bench quality``: reads the JSON lines, writes by the public verbs, prints one JSON."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from pps.bench.scores import figures

EPISODES = [
    ("e1", "conv_a", 1, "Caroline: What did you paint?"),
    ("e2", "conv_a", 1, "Melanie: A sunrise over the lake."),
    ("e3", "conv_a", 2, "Caroline: I adopted a kitten called Oscar."),
    ("e4", "conv_b", 1, "Jon: The bakery closes on Monday."),
]


def rows(folder: Path, name: str, entries: list[dict[str, object]]) -> None:
    (folder / f"{name}.jsonl").write_text("".join(json.dumps(entry) + "\n" for entry in entries))


@pytest.fixture
def data(tmp_path: Path) -> Path:
    folder = tmp_path / "data"
    folder.mkdir()
    rows(
        folder,
        "episodes",
        [
            {
                "uuid": uuid,
                "group_id": group,
                "session": session,
                "content": content,
                "valid_at": f"2023-05-0{session}T13:56:00+00:00",
            }
            for uuid, group, session, content in EPISODES
        ],
    )
    rows(
        folder,
        "queries",
        [
            {
                "qid": "q1",
                "group_id": "conv_a",
                "query": "What did Melanie paint?",
                "category": 4,
                "gold_episodes": ["e2"],
            },
            {"qid": "q2", "group_id": "conv_a", "query": "Who is Oscar?", "category": 1, "gold_episodes": ["e3"]},
            {"qid": "q3", "group_id": "conv_a", "query": "Unanswered?", "category": 5, "gold_episodes": []},
            {"qid": "q4", "group_id": "conv_b", "query": "When is it closed?", "category": 4, "gold_episodes": ["e4"]},
        ],
    )
    return folder


def with_facts(folder: Path) -> None:
    rows(
        folder,
        "nodes",
        [
            {"uuid": "n1", "group_id": "conv_a", "name": "Melanie", "labels": ["Entity", "Person"], "summary": ""},
            {"uuid": "n2", "group_id": "conv_a", "name": "lake", "labels": ["Entity", "Thing"], "summary": ""},
        ],
    )
    fact = {"group_id": "conv_a", "name": "OBSERVED", "source_node_uuid": "n1", "target_node_uuid": "n2"}
    rows(
        folder,
        "edges",
        [
            {**fact, "uuid": "f1", "fact": "Melanie painted a lake.", "episodes": ["e2"], "valid_at": "2023-05-01"},
            {**fact, "uuid": "f2", "fact": "Melanie swims.", "episodes": [], "valid_at": "2023-05-01"},
        ],
    )


def bench(*arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PPS_EMBEDDER__NAME": "hash"}
    command = [sys.executable, "-m", "pps.bench", *arguments]
    return subprocess.run(command, capture_output=True, text=True, env=environment, timeout=110, check=False)


def test_every_figure_is_printed_by_category_and_by_conversation(data: Path, tmp_path: Path) -> None:
    with_facts(data)
    answers = tmp_path / "answers.jsonl"
    run = bench("quality", "--data", str(data), "--answers", str(answers))

    assert run.returncode == 0, run.stderr
    report = json.loads(run.stdout)
    found = report["profiles"]["default"]
    assert found["all"]["questions"] == 3
    assert report["questions_without_answer"] == 1
    assert set(found["categories"]) == {"1", "4"}
    assert set(found["conversations"]) == {"conv_a", "conv_b"}
    assert {"R@5", "R@10", "R@20", "MRR@10", "nDCG@10", "returned"} <= set(found["all"])
    assert found["all"]["R@10"] == 100.0
    assert [one["facts"] for one in report["written"]] == [1, 0]
    assert [one["unsupported_facts"] for one in report["written"]] == [1, 0]
    lines = [json.loads(line) for line in answers.read_text().splitlines()]
    assert {line["question"] for line in lines} == {"q1", "q2", "q4"}


def test_edges_may_be_absent_and_ablation_leaves_each_perspective_out(data: Path) -> None:
    run = bench("quality", "--data", str(data), "--profile", "episodes", "--ablate")

    assert run.returncode == 0, run.stderr
    names = set(json.loads(run.stdout)["profiles"])
    assert names == {
        "episodes",
        *(
            f"episodes-without-{one}"
            for one in ("bm25", "bm25_windows", "dense", "dense_windows", "supports", "substance")
        ),
    }


@pytest.mark.parametrize(("arguments", "says"), [((), "PPS_BENCH_DATA"), (("--data", "/nowhere"), "missing")])
def test_missing_data_is_one_clear_line(arguments: tuple[str, ...], says: str) -> None:
    run = bench("quality", *arguments)

    assert run.returncode == 2
    assert run.stdout == ""
    assert len(run.stderr.strip().splitlines()) == 1
    assert says in run.stderr


def test_figures_are_those_of_the_definitions() -> None:
    found = figures({"a", "b"}, ["x", "a", *"cdefg", "b"])

    assert found["R@5"] == 0.5
    assert found["R@10"] == 1.0
    assert found["MRR@10"] == 0.5
    assert found["nDCG@10"] == pytest.approx((1 / 1.5849625 + 1 / 3.169925) / (1 + 1 / 1.5849625))
    assert found["returned"] == 8
