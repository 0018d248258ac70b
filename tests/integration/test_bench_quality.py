"""``scripts/bench quality``: reads the JSON lines, writes by the public verbs, prints one JSON."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks.ablation import write_profile
from benchmarks.against import systems
from benchmarks.commands import Wanted, quality
from benchmarks.measuring import Plan
from benchmarks.plain import library
from benchmarks.quality import write
from benchmarks.reading import read
from benchmarks.report import markdown
from pps.app import App
from pps.config import shipped
from pps.core.errors import ConfigError, InvalidRequest, PPSError

SCRIPTS = Path(__file__).parents[2] / "scripts"
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
            {
                "qid": "q2",
                "group_id": "conv_a",
                "query": "Who is Oscar?",
                "category": 1,
                "gold_episodes": ["e3"],
            },
            {
                "qid": "q3",
                "group_id": "conv_a",
                "query": "Unanswered?",
                "category": 5,
                "gold_episodes": [],
            },
            {
                "qid": "q4",
                "group_id": "conv_b",
                "query": "When is it closed?",
                "category": 4,
                "gold_episodes": ["e4"],
            },
        ],
    )
    return folder


def with_facts(folder: Path) -> None:
    rows(
        folder,
        "nodes",
        [
            {
                "uuid": "n1",
                "group_id": "conv_a",
                "name": "Melanie",
                "labels": ["Entity", "Person"],
                "summary": "",
            },
            {
                "uuid": "n2",
                "group_id": "conv_a",
                "name": "lake",
                "labels": ["Entity", "Thing"],
                "summary": "",
            },
        ],
    )
    fact = {
        "group_id": "conv_a",
        "name": "OBSERVED",
        "source_node_uuid": "n1",
        "target_node_uuid": "n2",
    }
    rows(
        folder,
        "edges",
        [
            {
                **fact,
                "uuid": "f1",
                "fact": "Melanie painted a lake.",
                "episodes": ["e2"],
                "valid_at": "2023-05-01",
            },
            {
                **fact,
                "uuid": "f2",
                "fact": "Melanie swims.",
                "episodes": [],
                "valid_at": "2023-05-01",
            },
        ],
    )


def bench(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "benchmarks", *arguments]
    env = {**os.environ, "PPS_EMBEDDER__NAME": "hash", "PYTHONPATH": str(SCRIPTS), **environment}
    return subprocess.run(
        command, capture_output=True, text=True, env=env, timeout=110, check=False
    )


def script_beside_a_stand_in_of_setup(folder: Path) -> Path:
    """Return scripts/bench as it is, in a folder where setting up does nothing but say what it was asked for."""
    (folder / "scripts").mkdir()
    setup = folder / "scripts" / "setup"
    setup.write_text('#!/bin/sh\necho "set up: $1"\n')
    setup.chmod(0o755)
    (folder / "scripts" / "benchmarks").symlink_to(SCRIPTS / "benchmarks")
    (folder / ".venv").symlink_to(sys.prefix)
    return Path(shutil.copy(SCRIPTS / "bench", folder / "scripts"))


def test_every_figure_is_printed_by_category_and_by_conversation(
    data: Path, tmp_path: Path
) -> None:
    with_facts(data)
    answers, out = tmp_path / "answers.jsonl", tmp_path / "out"
    more = ("--against", "all", "--ablation", "--answers", str(answers), "--out", str(out))
    script, env = (
        script_beside_a_stand_in_of_setup(tmp_path),
        {**os.environ, "PPS_EMBEDDER__NAME": "hash"},
    )
    run = subprocess.run(
        [script, "quality", "--data", str(data), *more],
        capture_output=True,
        text=True,
        env={**env, "PPS_SET": "dev"},
        check=False,
    )

    assert run.returncode == 0, run.stderr
    assert run.stderr.startswith("set up: dev\n")
    report = json.loads(run.stdout)
    found = report["profiles"]["default"]
    assert found["all"]["questions"] == 3
    assert [one["questions_without_answer"] for one in report["data"]] == [1, 0]
    assert set(found["categories"]) == {"1", "4"}
    assert set(found["conversations"]) == {"conv_a", "conv_b"}
    assert {"R@5", "R@10", "R@20", "MRR@10", "nDCG@10", "returned"} <= set(found["all"])
    assert found["all"]["R@10"] == 100.0
    assert [one["facts_in_graph"] for one in report["data"]] == [1, 0]
    assert report["data"][0]["nodes_in_graph"] - report["data"][1]["nodes_in_graph"] == 2
    assert [one["left_out"] for one in report["data"]] == [
        {"facts that stand on no turn left out": 1},
        {},
    ]
    assert (
        set(report["against"])
        == set(report["ratios"])
        == {"graphiti", "bm25", "dense", "four-lists"}
    )
    assert report["against"]["graphiti"]["conversations"]["conv_b"]["returned"] == 0
    for one in (found, *report["against"].values()):
        assert 0 < one["latency_ms"]["p50"] <= one["latency_ms"]["p99"]
    assert {"bm25", "dense"} <= {one["left_out"] for one in report["ablation"]}
    lines = [json.loads(line) for line in answers.read_text().splitlines()]
    assert {(line["profile"], line["question"]) for line in lines} == {
        (name, question)
        for name in ("default", *report["against"])
        for question in ("q1", "q2", "q4")
    }
    assert [
        line["turns"] for line in lines if (line["profile"], line["question"]) == ("graphiti", "q1")
    ] == [["e2"]]
    assert sorted(file.name for file in out.iterdir()) == [
        "quality.json",
        "quality.md",
        "quality.png",
    ]
    assert json.loads((out / "quality.json").read_text()) == report
    assert str(tmp_path) not in (out / "quality.md").read_text()


def test_edges_may_be_absent_and_a_table_is_what_people_see(data: Path) -> None:
    run = bench("quality", "--table", "--profile", "episodes", PPS_BENCH_DATA=str(data))

    assert run.returncode == 0, run.stderr
    assert run.stdout.splitlines()[0].split() == ["R@5", "R@10", "R@20", "MRR@10", "nDCG@10"]
    assert run.stdout.splitlines()[1].split()[0] == "pps"
    assert "user's own" not in run.stdout
    assert "writing conv_a: 3" in run.stderr


async def test_nodes_and_what_mentions_them_are_written_where_there_are_no_edges(
    app: App, data: Path, tmp_path: Path
) -> None:
    with_facts(data)
    (data / "edges.jsonl").unlink()
    pairs = (("e2", "n1"), ("e2", "n2"), ("e3", "n1"))
    mentions = [
        {"group_id": "conv_a", "source_node_uuid": turn, "target_node_uuid": one}
        for turn, one in pairs
    ]
    rows(data, "mentions", mentions)
    conversation = read(data)[0]
    write_profile(app.settings, "near", {"perspectives": {"bm25": 1.0, "near_center": 1.0}})

    written = await write(app, conversation, "bench", lambda *_: None)

    assert (written.turns, written.facts, conversation.notes) == (3, 0, {})
    async with app.memory("bench") as memory:
        alone = await app.create("alone")
        async with app.memory(alone.entity.name) as other:
            assert written.nodes - (await other.stats()).nodes == 2
        await memory.documents.export(tmp_path / "out.jsonl")
        bare = await memory.recall("Melanie", profile="semantic", min_similarity=-1.0)
        center = next(hit for hit in bare["nodes"] if hit.text == "Melanie")
        near = (await memory.recall("paint sunrise kitten", profile="near", center=center.id))[
            "episodes"
        ]
    lines = [json.loads(line) for line in (tmp_path / "out.jsonl").read_text().splitlines()]
    assert [[one["name"] for one in line.get("nodes", ())] for line in lines] == [
        [],
        ["Melanie", "lake"],
        [],
    ]
    assert {written.ids[hit.id]: "near_center" in hit.ranks for hit in near} == {
        "e1": False,
        "e2": True,
        "e3": True,
    }


def test_a_report_says_whose_each_profile_is(data: Path, tmp_path: Path) -> None:
    home, asked = (
        tmp_path / "home",
        ("quality", "--data", str(data), "--profile", "ambient", "--profile", "e1_only"),
    )
    (home / "profiles").mkdir(parents=True)
    shutil.copy(Path(str(shipped("config/profiles") / "default.toml")), home / "profiles")

    told = bench(*asked, PPS_HOME=str(home))
    shown = bench(*asked, "--table", PPS_HOME=str(home))

    assert told.returncode == shown.returncode == 0, told.stderr
    report = json.loads(told.stdout)
    assert report["origins"] == {"ambient": "shipped", "default": "yours", "e1_only": "shipped"}
    said = "Measured with profiles of the user's own: default."
    assert said in shown.stdout.splitlines()
    assert said in markdown(report, "quality").splitlines()


async def test_what_cannot_be_asked_or_written_is_told_and_ends_nothing(data: Path) -> None:
    asked = {
        "qid": "q9",
        "group_id": "conv_a",
        "query": " ",
        "category": None,
        "gold_episodes": ["e1"],
    }
    with (data / "queries.jsonl").open("a") as file:
        file.write(json.dumps(asked) + "\n")
    odd = {"uuid": "e9", "group_id": "conv_a", "content": "Hello.", "session": "a\0b"}
    with (data / "episodes.jsonl").open("a") as file:
        file.write(json.dumps(odd) + "\n")

    env = {**os.environ, "PPS_EMBEDDER__NAME": "hash"}
    report = await quality(
        Wanted(data=str(data), plan=Plan(against=("bm25",))), env, lambda *_: None
    )

    found = report["profiles"]["default"]
    assert found["failed"] == 1
    assert report["data"][0]["left_out"] == {"turns that the memory refused": 1}
    assert found["conversations"]["conv_a"]["R@10"] > 0
    assert found["first_error"].startswith("q9: invalid_request: query")
    assert (
        found["categories"]["none"]["R@10"]
        == report["against"]["bm25"]["categories"]["none"]["R@10"]
        == 0
    )


def test_no_data_is_one_clear_line() -> None:
    run = bench("quality")

    assert run.returncode == 2
    assert run.stdout == ""
    assert len(run.stderr.strip().splitlines()) == 1
    assert "PPS_BENCH_DATA" in run.stderr


@pytest.mark.parametrize(
    ("wanted", "says"),
    [
        (Wanted(data="/nowhere"), "missing"),
        (Wanted(data="DATA", plan=Plan(profiles=("facts",))), "episodes channel"),
        (Wanted(data="DATA", plan=Plan(profiles=("nonsense",))), "profile"),
        (Wanted(data="DATA", store="oracle"), "embedded, neo4j"),
    ],
)
async def test_what_cannot_be_measured_is_refused_before_anything_is_written(
    data: Path, wanted: Wanted, says: str
) -> None:
    asked = replace(wanted, data=str(data) if wanted.data == "DATA" else wanted.data)
    told: list[str] = []

    with pytest.raises(PPSError, match=says):
        await quality(asked, os.environ, lambda what, _done, _total: told.append(what))
    assert told == []


def test_a_system_that_nobody_knows_is_refused() -> None:
    assert systems("bm25, graphiti,bm25") == ("bm25", "graphiti")
    with pytest.raises(InvalidRequest, match="graphiti"):
        systems("google")


def test_a_library_of_the_extra_that_is_missing_is_named_with_its_extra() -> None:
    with pytest.raises(ConfigError, match=r"pip install 'pps\[bench\]'"):
        library("no_such_library")


async def test_questions_about_a_time_alone_are_scored_by_days(data: Path) -> None:
    asked = {"group_id": "conv_a", "category": "dates", "gold_episodes": ["e3"]}
    with (data / "queries.jsonl").open("a") as queries:
        for qid, query, day in (
            ("t1", "What did we talk about on May 2nd 2023?", "2023-05-02"),
            ("t2", "What did we discuss in our first session?", "2023-05-01"),
            ("t3", "What did we discuss in our first session?", "2023-05-02"),
        ):
            row = {**asked, "qid": qid, "query": query, "days": [day]}
            queries.write(json.dumps(row) + "\n")
        content = {"qid": "c1", "query": "In May, which kitten?", "category": "content"}
        queries.write(json.dumps({**asked, **content, "days": ["2023-05-02"]}) + "\n")
    conversations = {one.name: one for one in read(data)}
    assert [one.id for one in conversations["conv_a"].timed()] == ["t1", "t2", "t3"]
    assert "c1" in {one.id for one in conversations["conv_a"].scored()}
    assert "t1" not in {one.id for one in conversations["conv_a"].scored()}
    env = {**os.environ, "PPS_HOME": str(data / "home"), "PPS_EMBEDDER__NAME": "hash"}
    found = await quality(Wanted(str(data)), env, lambda *_: None)
    assert found["times"]["default"]["all"] == {
        "questions": 3,
        "P@10": 66.67,
        "empty": 0,
        "failed": 0,
    }
    assert "## P@10 of questions about a time alone" in markdown(found, "quality")


async def test_packs_are_scored_by_what_they_hold_and_for_whom_they_are_silent(data: Path) -> None:
    found = await quality(Wanted(str(data), Plan(packs=True)), os.environ, lambda *_: None)
    packs = found["packs"]
    assert packs["packs"] == sum(
        one["questions"] - one["questions_without_answer"] for one in found["data"]
    )
    assert 0 <= packs["right"] <= 100 - packs["empty"]
    assert packs["tokens_given"] is None or packs["tokens_given"] >= packs["tokens"]
    assert 0 <= packs["others_silent"] <= 100
    assert "## Packs of prompts, percent" in markdown(found, "quality")
    assert "--packs" in found["command"]
