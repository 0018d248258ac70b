"""The shipped sample: two conversations that share their names and contradict each other."""

from __future__ import annotations

import json
import re
import unicodedata
from datetime import datetime
from functools import cache
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from pps.config import shipped
from pps.config.packs import shipped_pack
from pps.core.kinds import Kinds
from pps.core.time import parse
from pps.features.calendar.ics import read_ics
from pps.ingest.importing.formats import read_lines
from pps.journal.entries import JobPayload, TurnDraft, prepare_payload
from pps.journal.turns import prepare
from pps.records.kind_models import KindModels

ENTITIES = ("mira", "theo")
SHARED = {
    "Priya", "Omar", "Wren", "Juniper", "Kestrel", "Haven", "Tarn", "Café Lumen", "Lantern Bridge", "Quill Street",
    "Inês", "Lin Xiaoyu", "Mr. Okafor",
}  # fmt: skip
Row = dict[str, Any]


@cache
def rows(name: str) -> list[Row]:
    text = shipped("config/sample").joinpath(name, "turns.jsonl").read_text(encoding="utf-8")
    return [json.loads(line) for line in text.splitlines()]


def facts(name: str) -> list[Row]:
    return [fact for row in rows(name) for fact in row.get("facts", [])]


def named(name: str) -> set[str]:
    nodes = {node["name"] for row in rows(name) for node in row.get("nodes", [])}
    return nodes | {fact[end] for fact in facts(name) for end in ("subject", "object")}


def anchors(name: str) -> dict[str, str]:
    folder = shipped("config/sample").joinpath(name, "anchors")
    return {entry.name: entry.read_text(encoding="utf-8") for entry in folder.iterdir()}


@cache
def questions(name: str) -> list[Row]:
    text = shipped("config/sample").joinpath("questions.json").read_text(encoding="utf-8")
    return json.loads(text)[name]


@pytest.mark.parametrize("name", ENTITIES)
def test_a_conversation_is_long_and_lasts_for_weeks(name: str) -> None:
    times = [parse(row["occurred_at"]) for row in rows(name)]
    assert len(rows(name)) >= 150
    assert times == sorted(set(times))
    assert (times[-1] - times[0]).days >= 42
    assert len({row["session"] for row in rows(name)}) >= 20
    assert all(row["occurred_at"].endswith("Z") for row in rows(name))
    assert len({row["source_ref"] for row in rows(name)}) == len(rows(name))


@pytest.mark.parametrize("name", ENTITIES)
def test_turns_alternate_and_only_some_carry_what_was_given(name: str) -> None:
    for before, after in zip(rows(name), rows(name)[1:], strict=False):
        assert before["session"] != after["session"] or before["role"] != after["role"]
    actors = {(row["role"], row["actor"]) for row in rows(name)}
    assert len(actors) == 2
    assert ("assistant", name) in actors
    giving = [row for row in rows(name) if row.get("facts") or row.get("nodes")]
    assert 30 <= len(giving) <= len(rows(name)) / 2


@pytest.mark.parametrize("name", ENTITIES)
def test_every_line_is_taken_by_the_importer_and_the_journal(name: str) -> None:
    path = shipped("config/sample").joinpath(name, "turns.jsonl")
    lines = list(read_lines(path))  # pyright: ignore[reportArgumentType] - a real path in a checkout
    assert len(lines) == len(rows(name))
    for content, options in lines:
        kept = prepare("ent_" + "a" * 26, TurnDraft(content, session=options.get("session", "")))
        assert kept.draft.content == content
        payload = JobPayload(tuple(options.get("nodes", ())), tuple(options.get("facts", ())))
        assert prepare_payload(payload)


@pytest.mark.parametrize("name", ENTITIES)
def test_facts_are_many_said_in_sentences_and_change(name: str) -> None:
    given = facts(name)
    assert len(given) >= 60
    assert len({fact["text"] for fact in given}) == len(given)
    assert all(len(fact["text"]) >= 12 for fact in given)
    assert sum(bool(fact.get("invalidates")) for fact in given) >= 8
    assert sum("valid_at" in fact for fact in given) >= 40


@pytest.mark.parametrize("name", ENTITIES)
def test_what_a_fact_replaces_was_said_before_and_began_before(name: str) -> None:
    known: dict[str, Row] = {}
    for row in rows(name):
        for fact in row.get("facts", []):
            for text in fact.get("invalidates", []):
                assert text in known, text
                if "valid_at" in known[text]:
                    assert known[text]["valid_at"] < fact["valid_at"]
        known |= {fact["text"]: fact for fact in row.get("facts", [])}


def test_the_same_names_are_in_both() -> None:
    for name in ENTITIES:
        assert named(name) >= SHARED
    assert len(named("mira") & named("theo")) >= len(SHARED)


def test_nothing_that_one_says_is_said_by_the_other() -> None:
    mira, theo = ({fact["text"] for fact in facts(name)} for name in ENTITIES)
    assert not mira & theo
    said = [{row["content"] for row in rows(name) if len(row["content"]) > 8} for name in ENTITIES]
    assert not said[0] & said[1]
    assert not anchors("mira").keys() & anchors("theo").keys()


@pytest.mark.parametrize("shared", sorted(SHARED))
def test_what_is_shared_by_name_is_contradicted_by_facts(shared: str) -> None:
    about = [
        {fact["text"] for fact in facts(name) if shared in (fact["subject"], fact["object"])}
        for name in ENTITIES
    ]
    assert all(about)
    assert not about[0] & about[1]


@pytest.mark.parametrize("name", ENTITIES)
def test_texts_hold_code_markdown_and_many_scripts(name: str) -> None:
    text = "\n".join(row["content"] for row in rows(name))
    assert "```" in text
    assert re.search(r"^- ", text, re.MULTILINE)
    scripts = {unicodedata.name(char, "?").split(" ")[0] for char in text if ord(char) > 0x24F}
    assert scripts >= {"CJK", "ARABIC", "DEVANAGARI", "HIRAGANA"}
    assert any(unicodedata.category(char) == "So" for char in text)


@pytest.mark.parametrize("name", ENTITIES)
def test_the_kitchen_on_saturday_morning_is_in_the_facts(name: str) -> None:
    words = [
        fact["text"]
        for fact in facts(name)
        if "kitchen" in fact["text"] and "Saturday" in fact["text"] and "Haven" in fact["text"]
    ]
    drinks = {drink for drink in ("coffee", "tea", "cocoa") if any(drink in text for text in words)}
    assert len(words) >= (4 if name == "mira" else 1)
    assert drinks


@pytest.mark.parametrize("name", ENTITIES)
def test_twelve_anchors_are_short_pictures_with_a_title(name: str) -> None:
    assert len(anchors(name)) == 12
    for file, text in anchors(name).items():
        assert re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*\.md", file)
        assert text.startswith("# ")
        assert 60 <= len(text.split()) <= 200


@pytest.mark.parametrize("name", ENTITIES)
def test_questions_name_what_is_there(name: str) -> None:
    assert len(questions(name)) >= 12
    references = {row["source_ref"] for row in rows(name)}
    texts = {fact["text"] for fact in facts(name)}
    for question in questions(name):
        assert set(question["turns"]) <= references
        assert question["turns"]
        assert set(question["facts"]) <= texts
        assert {f"{anchor}.md" for anchor in question["anchors"]} <= anchors(name).keys()
        assert set(question["nodes"]) <= named(name)


@pytest.mark.parametrize(("name", "other"), [("mira", "theo"), ("theo", "mira")])
def test_what_must_never_be_recalled_is_known_to_the_other_alone(name: str, other: str) -> None:
    everything = {
        one: json.dumps(rows(one), ensure_ascii=False) + "".join(anchors(one).values())
        for one in ENTITIES
    }
    for question in questions(name):
        assert question["never"]
        for word in question["never"]:
            assert word in everything[other], word
            assert word not in everything[name], word


@pytest.mark.parametrize("name", ENTITIES)
def test_an_expected_fact_holds_at_the_moment_asked(name: str) -> None:
    for question in questions(name):
        moment = question.get("as_of", "2026-03-20T00:00:00Z")
        for text in question["facts"]:
            (fact,) = (one for one in facts(name) if one["text"] == text)
            ends = [one["valid_at"] for one in facts(name) if text in one.get("invalidates", [])]
            assert fact.get("valid_at", "") <= moment
            assert all(end > moment for end in ends), text


def year() -> dict[str, list[Row]]:
    return json.loads(
        shipped("config/sample/iris").joinpath("records.json").read_text(encoding="utf-8")
    )


def test_a_year_of_records_is_what_the_pack_allows() -> None:
    kinds = Kinds([shipped_pack("constitution")])
    models = KindModels(kinds)
    of = {one["title"]: one["kind"] for one in year()["records"]}
    assert len(of) == len(year()["records"]) >= 60
    assert {kinds.by_name[kind].layer for kind in of.values()} == set(kinds.layers)
    for one in year()["records"]:
        models.check(
            one["kind"], {"title": one["title"], "summary": one["summary"], **one.get("fields", {})}
        )
        for relation in one.get("relations", []):
            properties = relation.get("properties", {})
            models.check_relation(relation["type"], one["kind"], of[relation["target"]], properties)
    assert all(of[move["title"]] == move["kind"] for move in year()["moves"])


def test_the_year_has_what_the_questions_of_a_year_need() -> None:
    records = year()["records"]
    decisions = [one for one in records if one["kind"] == "Decision"]
    assert len(decisions) >= 5
    assert all("roi" in one["fields"] for one in decisions)
    assert (
        sum(
            one["fields"].get("completion_status") == "abandoned"
            for one in records
            if one["kind"] == "Goal"
        )
        >= 2
    )
    assert sum(one["kind"] == "Observation" for one in records) >= 15


def test_the_week_of_the_calendar_holds_what_it_shows() -> None:
    zone = ZoneInfo("Europe/Oslo")
    text = shipped("config/sample/iris").joinpath("week.ics").read_text(encoding="utf-8")
    agenda = read_ics(
        text,
        "week.ics",
        datetime(2026, 3, 16, tzinfo=zone),
        datetime(2026, 3, 23, tzinfo=zone),
        zone,
    )
    assert agenda.problems == ()
    assert [one.title for one in agenda.events] == [
        "Swim", "Evening at the archive", "Swim", "Visit of the librarian of Haven", "Swim", "Archive, moved to Friday",
        "Course: a book in a day",
    ]  # fmt: skip
