"""Given extraction: names resolve exactly, facts keep their supports, replaced facts end."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pps.core.ids import EntityId, stable_id
from pps.core.values import FactDraft, NodeDraft, Turn
from pps.ingest.batch import Batch
from pps.ingest.given_input import FactInput
from pps.ingest.statements import plan_given

ENTITY = EntityId("ana", "ent_" + "a" * 26)
OTHER = EntityId("bob", "ent_" + "b" * 26)
START = datetime(2026, 3, 1, 9, tzinfo=UTC)

names = st.text(
    st.characters(codec="utf-8", exclude_categories=["Cs", "Cc"]), min_size=1, max_size=12
).filter(str.strip)
drafts = st.builds(
    FactDraft, subject=names, relation=st.sampled_from(["KNOWS", "LIVES_IN"]), object=names
)


def batch(entity: EntityId = ENTITY) -> Batch:
    return Batch(entity, START + timedelta(days=90))


def turn(number: int = 1, at: datetime = START) -> Turn:
    uuid = stable_id(ENTITY.group, "turn", str(number))
    return Turn(uuid, number, "user", f"turn {number}", "s", at, at)


def test_names_that_differ_in_case_space_and_unicode_form_are_one_node() -> None:
    made = batch()
    outcome = plan_given(
        made, turn(), [NodeDraft("Café  Lumen"), NodeDraft("CAFE\u0301 lumen")], []
    )
    assert outcome.nodes == 1
    assert [node.name for node in made.nodes.values()] == ["Café  Lumen"]


def test_an_alias_resolves_to_its_node() -> None:
    made = batch()
    plan_given(made, turn(1), [NodeDraft("Priya Raman", kind="Person", aliases=("Pri",))], [])
    plan_given(made, turn(2), [], [FactDraft("pri", "LIVES_IN", "Tarn")])
    assert {node.name for node in made.nodes.values()} == {"Priya Raman", "Tarn"}


def test_a_taken_alias_is_reported_and_not_stolen() -> None:
    made = batch()
    outcome = plan_given(made, turn(), [NodeDraft("Pri"), NodeDraft("Priya", aliases=("Pri",))], [])
    assert [skipped.what for skipped in outcome.skipped] == ["alias 'Pri'"]
    assert made.node_named("pri") != made.node_named("priya")


def test_the_same_fact_told_twice_is_one_fact_with_two_supports() -> None:
    made = batch()
    told = FactDraft("Priya", "LIVES_IN", "Tarn", text="Priya lives in Tarn.")
    first = plan_given(made, turn(1), [], [told])
    second = plan_given(made, turn(2), [], [told])
    (fact,) = made.facts.values()
    assert fact.episodes == (turn(1).uuid, turn(2).uuid)
    assert (first.facts, second.facts) == (1, 0)


def test_a_fact_that_replaces_another_by_its_text_ends_it_where_it_begins() -> None:
    made = batch()
    moved = START + timedelta(days=3)
    plan_given(
        made, turn(1), [], [FactDraft("Priya", "LIVES_IN", "Tarn", text="Priya lives in Tarn.")]
    )
    new = FactDraft(
        "Priya", "LIVES_IN", "Oslo", valid_at=moved, invalidates=("priya LIVES in tarn.",)
    )
    outcome = plan_given(made, turn(2, moved), [], [new])
    old = next(fact for fact in made.facts.values() if "Tarn" in fact.text)
    assert old.invalid_at == moved
    assert old.expired_at == made.at
    assert not outcome.skipped


def test_a_fact_that_will_end_is_believed_until_then() -> None:
    made = batch()
    tomorrow = made.at + timedelta(days=1)
    plan_given(
        made, turn(1), [], [FactDraft("Priya", "LIVES_IN", "Tarn", text="Priya lives in Tarn.")]
    )
    new = FactDraft(
        "Priya", "LIVES_IN", "Oslo", valid_at=tomorrow, invalidates=("Priya lives in Tarn.",)
    )
    plan_given(made, turn(2), [], [new])
    old = next(fact for fact in made.facts.values() if "Tarn" in fact.text)
    assert (old.invalid_at, old.expired_at) == (tomorrow, None)


def test_replacing_a_fact_that_is_not_there_is_reported() -> None:
    made = batch()
    plan_given(made, turn(1), [], [FactDraft("A", "LIKES", "green tea", text="A likes green tea.")])
    plan_given(made, turn(1), [], [FactDraft("A", "LIKES", "jazz", text="A likes jazz.")])
    plan_given(made, turn(1), [], [FactDraft("B", "LIKES", "tea", text="B likes tea.")])
    outcome = plan_given(
        made, turn(2), [], [FactDraft("A", "LIKES", "coffee", invalidates=("A likes tea",))]
    )
    (skipped,) = outcome.skipped
    tea = next(uuid for uuid, fact in made.facts.items() if "green" in fact.text)
    assert skipped.what == "invalidates"
    assert f"nearest: 'A likes green tea.' [{tea}]; 'A likes jazz.'" in skipped.why
    assert "B likes" not in skipped.why


@pytest.mark.parametrize(
    "named",
    [
        "PRIYA lives in Tarn",
        "priya, lives in tarn!",
        "Priya LIVES_IN",
        "Pri LIVES_IN",
        "Priya LIVES_IN Tarn",
    ],
)
def test_a_replaced_fact_is_named_by_its_words_or_by_what_it_joins(named: str) -> None:
    made = batch()
    nodes = [NodeDraft("Priya", aliases=("Pri",))]
    plan_given(
        made, turn(1), nodes, [FactDraft("Priya", "LIVES_IN", "Tarn", text="Priya lives in Tarn.")]
    )
    moved = START + timedelta(days=3)
    outcome = plan_given(
        made, turn(2, moved), [], [FactDraft("Priya", "LIVES_IN", "Oslo", invalidates=(named,))]
    )
    old = next(fact for fact in made.facts.values() if "Tarn" in fact.text)
    assert (old.invalid_at, outcome.skipped) == (moved, [])


def test_what_was_told_late_of_an_earlier_time_ends_where_the_later_began() -> None:
    made = batch()
    later = START + timedelta(days=30)
    pair = ("Priya LIVES_IN",)
    plan_given(made, turn(2, later), [], [FactDraft("Priya", "LIVES_IN", "Oslo", invalidates=pair)])
    outcome = plan_given(
        made, turn(1), [], [FactDraft("Priya", "LIVES_IN", "Tarn", invalidates=pair)]
    )
    ends = {fact.text: (fact.valid_at, fact.invalid_at) for fact in made.facts.values()}
    assert ends == {"Priya lives in Oslo": (later, None), "Priya lives in Tarn": (START, later)}
    assert not outcome.skipped


def test_a_statement_in_other_words_is_the_same_open_fact_and_keeps_the_older_ones() -> None:
    made = batch()
    plan_given(
        made, turn(1), [], [FactDraft("Priya", "LIVES_IN", "Tarn", text="Priya lives in Tarn.")]
    )
    again = plan_given(
        made,
        turn(2),
        [],
        [FactDraft("Priya", "LIVES_IN", "Tarn", text="Priya is at home in Tarn.")],
    )
    (fact,) = made.facts.values()
    assert (fact.text, fact.episodes, again.facts) == (
        "Priya lives in Tarn.",
        (turn(1).uuid, turn(2).uuid),
        0,
    )


def test_what_a_statement_adds_to_one_of_the_same_nodes_is_a_fact_of_its_own() -> None:
    made = batch()
    said = [
        "Mira grows roses.",
        "Mira is growing roses",
        "Mira grows old roses.",
        "Mira grows 12 roses.",
        "Roses, Mira!",
    ]
    for number, text in enumerate(said, start=1):
        plan_given(made, turn(number), [], [FactDraft("Mira", "GROWS", "roses", text=text)])
    assert {fact.text: len(fact.episodes) for fact in made.facts.values()} == {
        said[0]: 3,
        said[2]: 1,
        said[3]: 1,
    }


def test_a_day_that_is_told_later_counts_and_two_days_that_differ_are_two_facts() -> None:
    made = batch()
    days = [START - timedelta(days=9), START + timedelta(days=9)]
    for number, since in enumerate([None, days[0]], start=1):
        plan_given(made, turn(number), [], [FactDraft("Priya", "LIVES_IN", "Tarn", valid_at=since)])
    assert [fact.valid_at for fact in made.facts.values()] == [days[0]]
    for number, since in enumerate([*days, None], start=3):
        plan_given(made, turn(number), [], [FactDraft("Priya", "VISITS", "Oslo", valid_at=since)])
    visits = {
        fact.valid_at: len(fact.episodes)
        for fact in made.facts.values()
        if fact.relation == "VISITS"
    }
    assert visits == {days[0]: 2, days[1]: 1}


def test_a_fact_without_a_day_holds_from_the_first_turn_that_says_it() -> None:
    made = batch()
    tea = FactDraft("Mira", "LIKES", "tea")
    plan_given(made, turn(2, START + timedelta(days=2)), [], [tea])
    plan_given(made, turn(1), [], [tea])
    plan_given(made, turn(3, START + timedelta(days=3)), [], [tea])
    assert [fact.valid_at for fact in made.facts.values()] == [START]
    plan_given(
        made,
        turn(4),
        [],
        [FactDraft("Mira", "LIVED_IN", "Rome", invalid_at=START - timedelta(days=1))],
    )
    assert [fact.valid_at for fact in made.facts.values() if fact.relation == "LIVED_IN"] == [None]


def test_a_statement_that_holds_again_after_its_end_is_a_new_fact() -> None:
    made = batch()
    tea = FactDraft("Mira", "LIKES", "tea", text="Mira likes tea.")
    plan_given(made, turn(1), [], [tea])
    later = START + timedelta(days=1)
    plan_given(
        made,
        turn(2, later),
        [],
        [FactDraft("Mira", "LIKES", "coffee", invalidates=("Mira likes tea.",))],
    )
    again = START + timedelta(days=2)
    plan_given(made, turn(3, again), [], [tea])
    held = [fact for fact in made.facts.values() if fact.text == "Mira likes tea."]
    assert sorted(fact.invalid_at is None for fact in held) == [False, True]
    assert next(fact for fact in held if fact.invalid_at is None).valid_at == again


@given(st.lists(drafts, max_size=6))
def test_planning_a_turn_again_changes_nothing(facts: list[FactDraft]) -> None:
    made = batch()
    plan_given(made, turn(), [], facts)
    nodes, stored = dict(made.nodes), dict(made.facts)
    outcome = plan_given(made, turn(), [], facts)
    assert (outcome.nodes, outcome.edges) == (0, 0)
    assert (made.nodes, made.facts) == (nodes, stored)


@given(st.lists(drafts, min_size=1, max_size=6))
def test_two_entities_never_mint_the_same_id_for_the_same_words(facts: list[FactDraft]) -> None:
    mine, theirs = batch(), batch(OTHER)
    plan_given(mine, turn(), [], facts)
    plan_given(theirs, turn(), [], facts)
    assert not set(mine.nodes) & set(theirs.nodes)
    assert not set(mine.facts) & set(theirs.facts)


def test_a_pair_of_subject_and_relation_is_taken_for_its_text() -> None:
    given = {
        "subject": "Ana",
        "relation": "LIVES_IN",
        "object": "Oslo",
        "invalidates": [["Ana", "LIVES_IN"], "x"],
    }
    assert FactInput.model_validate_json(json.dumps(given)).draft().invalidates == (
        "Ana LIVES_IN",
        "x",
    )
