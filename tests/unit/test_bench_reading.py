"""Data of a benchmark come from strangers: odd lines are put within bounds and counted, or refused by their line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from benchmarks.reading import data_path, read
from pps.core.bounds import MAX_CONTENT, check_drafts
from pps.core.errors import ConfigError, InvalidRequest


def write(folder: Path, **files: list[dict[str, Any]]) -> Path:
    folder.mkdir(exist_ok=True)
    for name, rows in files.items():
        (folder / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return folder


def test_a_bare_episode_and_a_bare_query_are_enough(tmp_path: Path) -> None:
    folder = write(
        tmp_path,
        episodes=[{"uuid": "a", "content": "Tea at four."}],
        queries=[{"query": "When is tea?"}],
    )

    (found,) = read(folder)

    assert found.turns["a"].content == "Tea at four."
    assert found.turns["a"].at is None
    assert [(one.text, one.category, one.gold) for one in found.questions] == [
        ("When is tea?", "none", frozenset())
    ]
    assert found.scored() == []


def test_gold_may_be_given_by_the_turns_own_names(tmp_path: Path) -> None:
    turns = [{"uuid": "a", "group_id": "g", "content": "x", "dia_id": "D1:1"}]
    asked = [
        {"qid": "q", "group_id": "g", "query": "?", "category": 2, "gold_dia_ids": ["D1:1", "D9:9"]}
    ]

    (found,) = read(write(tmp_path, episodes=turns, queries=asked))

    assert found.questions[0].gold == {"a", "D9:9"}
    assert found.notes == {"gold turns that the data lack": 1}


def test_texts_beyond_the_bounds_are_cut_and_blank_ones_left_out_and_both_are_counted(
    tmp_path: Path,
) -> None:
    turns = [
        {"uuid": "long", "content": "x" * (MAX_CONTENT + 5)},
        {"uuid": "blank", "content": " \n"},
        {"uuid": "odd", "content": "a\0b \ud800"},
        {"uuid": "odd", "content": "said again"},
    ]

    (found,) = read(write(tmp_path, episodes=turns, queries=[]))

    assert len(found.turns["long"].content) == MAX_CONTENT
    assert found.turns["odd"].content == "said again"
    assert found.notes == {
        "turns cut to the longest text": 1,
        "blank turns left out": 1,
        "turns of an id that was there before": 1,
    }


def test_documents_have_no_speaker_and_no_neighbours(tmp_path: Path) -> None:
    turns = [{"uuid": one, "source": "text", "content": f"Paris: city {one}"} for one in ("a", "b")]

    (found,) = read(write(tmp_path, episodes=turns, queries=[]))

    assert [(turn.actor, turn.session) for turn in found.turns.values()] == [("", "a"), ("", "b")]


def test_odd_facts_keep_within_what_may_be_remembered(tmp_path: Path) -> None:
    edge = {"source_node_uuid": "n1", "target_node_uuid": "gone", "episodes": ["a"]}
    edges = [
        {
            **edge,
            "name": "is-in / of",
            "fact": "f",
            "valid_at": "2024-02-01",
            "invalid_at": "2024-01-01T00:00:00",
        },
        {**edge, "name": "???", "fact": None, "episodes": ["a", "a", "absent"]},
        {**edge, "name": "LOST", "episodes": []},
    ]
    nodes = [
        {
            "uuid": "n1",
            "name": "  " + "n" * 900,
            "labels": ["Entity", "Odd kind!"],
            "summary": "s" * 9000,
        }
    ]

    folder = write(
        tmp_path, episodes=[{"uuid": "a", "content": "x"}], queries=[], nodes=nodes, edges=edges
    )
    (found,) = read(folder)

    turn = found.turns["a"]
    check_drafts(tuple(turn.nodes.values()), tuple(turn.facts))
    assert [fact.relation for fact in turn.facts] == ["is_in_of", "RELATED_TO"]
    assert turn.facts[0].invalid_at is None
    assert found.notes == {"facts that stand on no turn left out": 1}


def test_more_facts_than_a_call_may_carry_are_left_out_and_counted(tmp_path: Path) -> None:
    edges = [
        {
            "name": "R",
            "fact": f"fact {n}",
            "source_node_uuid": "s",
            "target_node_uuid": "t",
            "episodes": ["a"],
        }
        for n in range(503)
    ]

    (found,) = read(
        write(tmp_path, episodes=[{"uuid": "a", "content": "x"}], queries=[], edges=edges)
    )

    assert len(found.turns["a"].facts) == 500
    assert found.notes == {"facts beyond what one turn may carry left out": 3}


def test_questions_of_a_group_without_turns_are_kept(tmp_path: Path) -> None:
    turns = [
        {"uuid": "a", "group_id": "one", "content": "x"},
        {"uuid": "b", "group_id": "two", "content": "y"},
    ]
    asked = [{"qid": "q", "group_id": "three", "query": "?", "gold_episodes": ["a"]}]

    found = read(write(tmp_path, episodes=turns, queries=asked))

    assert [(one.name, len(one.turns), len(one.questions)) for one in found] == [
        ("one", 1, 0),
        ("two", 1, 0),
        ("three", 0, 1),
    ]


@pytest.mark.parametrize(
    ("episodes", "says"),
    [
        ("{", r"episodes\.jsonl:1 is not JSON"),
        ("[]", r"episodes\.jsonl:1 is not a JSON object"),
        ('{"content": "x"}', r"episodes\.jsonl:1 has no 'uuid'"),
        (
            '{"uuid": "a", "content": "x", "valid_at": "noon"}',
            r"episodes\.jsonl:1: 'valid_at' is not an ISO 8601",
        ),
        ("\n\n", r"episodes\.jsonl is empty"),
    ],
)
def test_a_line_that_cannot_be_understood_is_refused_by_its_place(
    tmp_path: Path, episodes: str, says: str
) -> None:
    folder = write(tmp_path, queries=[])
    (folder / "episodes.jsonl").write_text(episodes)

    with pytest.raises(InvalidRequest, match=says):
        read(folder)


def test_a_file_is_read_as_musique_and_passages_that_questions_share_are_kept_once(
    tmp_path: Path,
) -> None:
    shared = {"title": "Aro", "paragraph_text": "A river.", "is_supporting": True}
    other = {"title": "Bel", "paragraph_text": "A town.", "is_supporting": False}
    file = tmp_path / "musique.json"
    file.write_text(
        json.dumps(
            [
                {"id": "2hop__1_2", "question": "Which river?", "paragraphs": [shared, other]},
                {
                    "id": "3hop1__3",
                    "question": "Which town?",
                    "paragraphs": [{**other, "is_supporting": True}, shared],
                },
            ]
        )
    )

    (found,) = read(file)

    assert sorted(turn.content for turn in found.turns.values()) == [
        "Aro: A river.",
        "Bel: A town.",
    ]
    assert [(one.category, len(one.gold)) for one in found.questions] == [("2hop", 1), ("3hop1", 2)]
    assert len({turn.session for turn in found.turns.values()}) == 2


@pytest.mark.parametrize(
    ("content", "says"), [("nonsense", "not a JSON file"), ('[{"qa": []}]', "no 'paragraphs'")]
)
def test_a_file_of_another_kind_is_refused(tmp_path: Path, content: str, says: str) -> None:
    (tmp_path / "data.json").write_text(content)

    with pytest.raises(InvalidRequest, match=says):
        read(tmp_path / "data.json")


def test_where_the_data_are_is_given_or_in_the_environment_or_asked_for() -> None:
    assert data_path("x", {"PPS_BENCH_DATA": "y"}) == Path("x")
    assert data_path("", {"PPS_BENCH_DATA": "y"}) == Path("y")
    with pytest.raises(ConfigError, match=r"--data DIR or set PPS_BENCH_DATA"):
        data_path(None, {})


def test_a_node_lies_on_the_turns_that_mention_it_and_what_lies_on_none_is_counted(
    tmp_path: Path,
) -> None:
    turns = [{"uuid": one, "group_id": "g", "content": "x"} for one in ("a", "b")]
    nodes = [
        {"uuid": one, "group_id": "g", "name": one.upper(), "labels": ["Entity", "Person"]}
        for one in "mno"
    ]
    mentions = [
        {"group_id": "g", "source_node_uuid": turn, "target_node_uuid": one}
        for turn, one in (
            ("a", "m"),
            ("a", "m"),
            ("b", "m"),
            ("b", "n"),
            ("b", "gone"),
            ("gone", "m"),
        )
    ]

    (found,) = read(write(tmp_path, episodes=turns, queries=[], nodes=nodes, mentions=mentions))

    assert {
        turn.id: [one.name for one in turn.nodes.values()] for turn in found.turns.values()
    } == {
        "a": ["M"],
        "b": ["M", "N"],
    }
    assert {one.kind for one in found.turns["b"].nodes.values()} == {"Person"}
    assert found.notes == {
        "mentions of a turn or a node that the data lack left out": 2,
        "nodes that stand on no turn left out": 1,
    }


def test_facts_come_before_mentions_where_a_turn_cannot_carry_all_nodes(tmp_path: Path) -> None:
    nodes = [{"uuid": f"n{number}", "name": f"node {number}"} for number in range(203)]
    edge = {
        "source_node_uuid": "n201",
        "target_node_uuid": "n202",
        "fact": "201 is 202",
        "episodes": ["a"],
    }
    mentions = [{"source_node_uuid": "a", "target_node_uuid": one["uuid"]} for one in nodes]
    episodes = [{"uuid": "a", "content": "x"}]

    folder = write(
        tmp_path, episodes=episodes, queries=[], nodes=nodes, edges=[edge], mentions=mentions
    )
    (found,) = read(folder)

    turn = found.turns["a"]
    check_drafts(tuple(turn.nodes.values()), tuple(turn.facts))
    assert (len(turn.nodes), len(turn.facts)) == (200, 1)
    assert {"n201", "n202"} <= turn.nodes.keys()
    assert found.notes == {
        "nodes beyond what one turn may carry left out": 3,
        "nodes that stand on no turn left out": 3,
    }
