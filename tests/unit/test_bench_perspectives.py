"""The coding project's memories and questions, and what is said of a perspective's gain."""

from __future__ import annotations

from collections import Counter
from typing import Any

from benchmarks import perspectives
from benchmarks.causes import HALVES, read_causes, topics
from benchmarks.scores import Answer


def test_the_coding_project_has_what_the_page_says() -> None:
    (memory,) = read_causes()
    assert (len(memory.turns), len(topics()), len(memory.questions), memory.notes) == (
        300,
        12,
        144,
        {},
    )
    kinds = Counter(one.category for one in memory.questions)
    assert kinds.keys() == {"meaning", "cause", "code", "term", "named", "intent", "connection"}
    assert min(kinds.values()) >= 12
    assert all(one.gold and one.gold <= memory.turns.keys() for one in memory.questions)
    halves = Counter(one.id.partition(":")[0] for one in memory.questions)
    assert halves == dict.fromkeys(HALVES, 72)
    days = {turn.at.date() for turn in memory.turns.values() if turn.at}
    assert (max(days) - min(days)).days >= 28


def test_it_is_the_same_each_time_and_a_session_keeps_to_one_topic() -> None:
    (first,), (second,) = read_causes(), read_causes()
    assert first == second
    for turn in first.turns.values():
        assert turn.session.rpartition(" ")[0] == turn.id.rpartition(" ")[0]


def test_connections_stand_on_facts_and_each_name_is_a_node_where_it_is_said() -> None:
    (memory,) = read_causes()
    assert sum(len(turn.facts) for turn in memory.turns.values()) == 25
    for topic in topics():
        for one, text in topic.memories.items():
            named = {name for name, *_ in topic.nodes if name in text}
            assert named <= {draft.name for draft in memory.turns[one].nodes.values()}


def answers(rank: int) -> list[Answer]:
    turns = tuple(f"t{number}" for number in range(1, 11))
    return [Answer("c", "dev: 1", "cause", frozenset((f"t{rank}",)), turns, took_ms=4.0)]


def test_a_perspective_pays_where_the_profile_loses_without_it_or_gains_with_it() -> None:
    data: dict[str, Any] = {"profiles": {"default": perspectives.row(answers(2))}, "variants": []}
    for way, name, rank in (
        ("without", "bm25", 4),
        ("with", "late", 1),
        ("with", "code", 2),
        ("without", "dense", 1),
    ):
        data["variants"].append(
            {"way": way, "perspective": name, **perspectives.row(answers(rank))}
        )
    report = {"profile": "default", "data": {"causes": data}}
    assert [perspectives.pays(report, name) for name in ("bm25", "late", "code", "dense")] == [
        ["causes"],
        ["causes"],
        [],
        [],
    ]
    assert perspectives.gains(report, "causes", "bm25") == {
        "way": "without",
        "R@10": 0.0,
        "MRR@10": 25.0,
        "p50_ms": 0,
    }
    assert perspectives.gains(report, "causes", "near") is None
