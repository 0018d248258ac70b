"""Given extraction: names resolve exactly, facts keep their supports, replaced facts end."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from pps.core.ids import EntityId, stable_id
from pps.core.values import FactDraft, NodeDraft, Turn
from pps.ingest.batch import Batch
from pps.ingest.given import plan_given

ENTITY = EntityId("ana", "ent_" + "a" * 26)
OTHER = EntityId("bob", "ent_" + "b" * 26)
START = datetime(2026, 3, 1, 9, tzinfo=UTC)

names = st.text(st.characters(codec="utf-8", exclude_categories=["Cs", "Cc"]), min_size=1, max_size=12).filter(
    str.strip
)
drafts = st.builds(FactDraft, subject=names, relation=st.sampled_from(["KNOWS", "LIVES_IN"]), object=names)


def batch(entity: EntityId = ENTITY) -> Batch:
    return Batch(entity, START + timedelta(days=90))


def turn(number: int = 1, at: datetime = START) -> Turn:
    uuid = stable_id(ENTITY.group, "turn", str(number))
    return Turn(uuid, number, "user", f"turn {number}", "s", at, at)


def test_names_that_differ_in_case_space_and_unicode_form_are_one_node() -> None:
    made = batch()
    outcome = plan_given(made, turn(), [NodeDraft("Café  Lumen"), NodeDraft("CAFE\u0301 lumen")], [])
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
    plan_given(made, turn(1), [], [FactDraft("Priya", "LIVES_IN", "Tarn", text="Priya lives in Tarn.")])
    new = FactDraft("Priya", "LIVES_IN", "Oslo", valid_at=moved, invalidates=("priya LIVES in tarn.",))
    outcome = plan_given(made, turn(2, moved), [], [new])
    old = next(fact for fact in made.facts.values() if "Tarn" in fact.text)
    assert old.invalid_at == moved
    assert old.expired_at == made.at
    assert not outcome.skipped


def test_a_fact_that_will_end_is_believed_until_then() -> None:
    made = batch()
    tomorrow = made.at + timedelta(days=1)
    plan_given(made, turn(1), [], [FactDraft("Priya", "LIVES_IN", "Tarn", text="Priya lives in Tarn.")])
    new = FactDraft("Priya", "LIVES_IN", "Oslo", valid_at=tomorrow, invalidates=("Priya lives in Tarn.",))
    plan_given(made, turn(2), [], [new])
    old = next(fact for fact in made.facts.values() if "Tarn" in fact.text)
    assert (old.invalid_at, old.expired_at) == (tomorrow, None)


def test_replacing_a_fact_that_is_not_there_is_reported() -> None:
    outcome = plan_given(batch(), turn(), [], [FactDraft("A", "IS", "B", invalidates=("no such fact",))])
    assert [skipped.what for skipped in outcome.skipped] == ["invalidates"]


def test_a_statement_that_holds_again_after_its_end_is_a_new_fact() -> None:
    made = batch()
    tea = FactDraft("Mira", "LIKES", "tea", text="Mira likes tea.")
    plan_given(made, turn(1), [], [tea])
    later = START + timedelta(days=1)
    plan_given(made, turn(2, later), [], [FactDraft("Mira", "LIKES", "coffee", invalidates=("Mira likes tea.",))])
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
