"""The table of relations: the shipped file, what an installation changes in it, and mistakes in that."""

from __future__ import annotations

from pathlib import Path

import pytest

from pps.config.relation_files import load_relations, shipped_relations
from pps.core.errors import ConfigError


def test_the_shipped_table_is_used_without_a_file_of_ones_own(tmp_path: Path) -> None:
    assert load_relations(tmp_path) is shipped_relations()
    assert load_relations(tmp_path / "absent") is shipped_relations()


@pytest.mark.parametrize(
    "name", ["LIVES_IN", "lives in", "livesIn", "Lives-In", "RESIDES_IN", "residesIn"]
)
def test_spellings_and_other_names_are_one_relation(name: str) -> None:
    relation = shipped_relations().find(name)
    assert relation is not None
    assert relation.name == "LIVES_IN"
    assert relation.single


def test_a_name_of_many_meanings_counts_only_between_the_right_kinds() -> None:
    relations = shipped_relations()
    assert relations.find("MOVED_TO") is None
    assert relations.find("MOVED_TO", "Person", "Thing") is None
    assert relations.find("MOVED_TO", "Thing", "Place") is None
    moved = relations.find("moved_to", "Person", "City")
    assert moved is not None
    assert moved.name == "LIVES_IN"


@pytest.mark.parametrize("name", ["LIKES", "HAS", "KNOWS", "SPEAKS", "WAS_SEEN_WITH", "MOVED_TO"])
def test_relations_that_are_not_single_or_not_listed_close_nothing(name: str) -> None:
    assert not shipped_relations().is_single(name)


def test_each_topic_is_a_slot_of_its_own() -> None:
    relations = shipped_relations()
    editor = relations.find("FAVOURITE_EDITOR")
    assert editor is not None
    assert editor.single
    assert relations.find("has favorite editor") == editor
    assert relations.find("FAVOURITE_FOOD") != editor
    assert not relations.is_single("FAVOURITE")
    assert {"favouriteeditor", "hasfavoriteeditor"} <= set(relations.keys(editor))


def test_an_installation_adds_and_changes_relations(tmp_path: Path) -> None:
    (tmp_path / "relations.toml").write_text(
        """
[WORKS_AT]
single = false

[LIVES_IN]
also = ["WOHNT_IN"]

[PLAYS_FOR]
subject = "Person"
object = "Club"
single = true
also = ["EMPLOYED_BY"]
"""
    )
    relations = load_relations(tmp_path)
    assert not relations.is_single("WORKS_FOR")
    assert relations.by_name["WORKS_AT"].object == "Organisation"
    assert relations.is_single("wohnt in")
    assert relations.is_single("RESIDES_IN")
    taken = relations.find("employed by")
    assert taken is not None
    assert taken.name == "PLAYS_FOR"
    assert not shipped_relations().find("WOHNT_IN")


@pytest.mark.parametrize(
    ("text", "line", "problem"),
    [
        ("[LIVES_IN]\nsingle = maybe\n", 2, "not valid TOML"),
        ("\n[LIVES_IN]\nsingle = 'yes'\n", 3, "LIVES_IN.single"),
        ("[LIVES_IN]\nunique = true\n", 2, "LIVES_IN.unique: unknown key"),
        ("[LIVES_IN]\nsubject = 'a person'\n", 2, "LIVES_IN.subject"),
        ("[lives_in]\nsingle = true\n", 1, "lives_in: a relation's name has capitals"),
        ("single = true\n", 1, "single: a relation's name has capitals"),
        ("[PLAYS_FOR]\nalso = [\n  'X_OF',\n  '---',\n]\n", 4, "has no letter"),
        ("[A]\ntopics = ['FAVOURITE']\n", 2, "must be a name's beginning and a '*'"),
        ("[A]\nalso = ['PLAYS']\n[B]\nalso = ['plays']\n", 4, "stands for A already"),
    ],
)
def test_a_mistake_names_the_file_the_line_and_the_problem(
    tmp_path: Path, text: str, line: int, problem: str
) -> None:
    path = tmp_path / "relations.toml"
    path.write_text(text)
    with pytest.raises(ConfigError) as error:
        load_relations(tmp_path)
    assert error.value.message.startswith(f"{path}:{line}: ")
    assert problem in error.value.message
    assert "\n" not in error.value.message
