"""The named queries on a year made by hand: each answer is what a reader of the graph would say."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import numpy as np
import pytest

from pps.core.errors import InvalidRequest, NotFound
from pps.core.kinds import NO_KINDS
from pps.core.values import Fact
from pps.records.asks import QUERIES
from pps.records.named_query import QueryAnswer, QueryMatch
from tests.year import WHEN, Shelf, changed, graph, ground, record, relation, year

BY_NAME = {one.name: one for one in QUERIES}


async def ask(
    name: str, shelf: Shelf | None = None, near: dict[str, float] | None = None, **given: object
) -> QueryAnswer:
    return await BY_NAME[name].ask(ground(shelf or Shelf(year()), near=near), given)  # type: ignore[arg-type]


def ids(asked: QueryAnswer) -> list[str]:
    return [one.id for one in asked.found]


def told(asked: QueryAnswer, id_: str) -> QueryMatch:
    return next(one for one in asked.found if one.id == id_)


async def test_strategies_of_a_goal_come_latest_first_with_their_active_initiatives() -> None:
    asked = await ask("strategies", id="Finish the thesis")
    assert ids(asked) == ["writing", "leave"]
    assert asked.found[0].details["initiatives"] == [
        {
            "id": "mornings",
            "kind": "Initiative",
            "title": "Mornings",
            "status": "active",
            "state": "",
        }
    ]
    assert (
        "—SERVES 0.9→ “Finish the thesis” (Goal); it is carried by “Mornings”"
        in asked.found[0].said
    )


async def test_a_strategy_of_a_goal_below_counts_with_its_way() -> None:
    more = year()
    shelf = Shelf(
        graph(
            [*more.records.values()],
            [*more.relations, relation("thesis", "ALIGNS_WITH", "savings", 0.4)],
        )
    )
    asked = await ask("strategies", shelf, id="savings")
    assert {one.id: [it.relation for it in one.path] for one in asked.found} == {
        "writing": ["SERVES", "ALIGNS_WITH"],
        "leave": ["ALIGNS_WITH", "ALIGNS_WITH"],
    }


async def test_tasks_of_a_window_are_open_ones_by_day_then_urgency() -> None:
    asked = await ask("tasks", since="2026-03-01", until="2026-03-08")
    assert ids(asked) == ["proofs", "figures", "chapter"]
    assert asked.said == "3 tasks from 2026-03-01 up to 2026-03-08, 8 h in all."
    assert ids(await ask("tasks", since="2026-03-01", until="2026-03-09", states=["done"])) == [
        "bill"
    ]


async def test_related_decisions_are_near_enough_and_the_nearest_first() -> None:
    asked = await ask(
        "related_decisions",
        near={"desk": 0.7, "car": 0.9, "bike": 0.1, "early": 1.0},
        about="where to work",
    )
    assert ids(asked) == ["car", "desk"]


async def test_precedent_says_what_decisions_paid_and_led_to() -> None:
    asked = await ask("precedent", min_roi=0.5)
    assert ids(asked) == ["bike", "desk"]
    assert (
        told(asked, "desk").said
        == "“Rent a desk”, decided 2026-01-10, paid 0.7 and led to “Pay the bill”."
    )
    assert ids(await ask("precedent", since="2026-01-01")) == ["desk", "car", "open"]
    assert ids(await ask("precedent", near={"car": 0.8, "desk": 0.3}, about="a vehicle")) == ["car"]


async def test_the_threshold_is_the_models_own_and_what_it_hides_is_said() -> None:
    near, about = {"car": 0.4, "desk": 0.2}, "a vehicle"
    known = replace(ground(Shelf(year()), near=near), least=0.3)
    assert ids(await BY_NAME["precedent"].ask(known, {"about": about})) == ["car"]
    asked = await ask("precedent", near=near, about=about)
    assert asked.said == (
        "2 decisions. The nearest is 0.40 alike, below min_similarity 0.70: those shown are weak."
    )
    assert all(shown.said.startswith("(weak) ") for shown in asked.found)
    strict = await ask("precedent", near=near, about=about, min_similarity=0.6)
    assert strict.said == "0 decisions. The nearest is 0.40 alike, below min_similarity 0.60."


async def test_metrics_are_aggregated_over_what_tracks_them() -> None:
    asked = await ask("metrics", since="2026-02-01", until="2026-03-01")
    [pages] = asked.found
    assert {
        name: pages.details[name]
        for name in ("count", "mean", "min", "max", "first", "last", "direction")
    } == {
        "count": 2,
        "mean": 4.0,
        "min": 2.0,
        "max": 6.0,
        "first": 2.0,
        "last": 6.0,
        "direction": "up",
    }
    assert "up, as wanted" in pages.said
    [none] = (await ask("metrics", ids=["pages"], since="2024-01-01", until="2024-02-01")).found
    assert none.details["count"] == 0


async def test_insights_come_with_their_evidence() -> None:
    [one] = (await ask("insights")).found
    assert (
        one.said
        == "“Mornings are for writing” (0.9 sure) rests on “The diary”, “The log of pages”."
    )


async def test_a_goal_ladder_is_the_longest_way_up_over_what_is_active() -> None:
    asked = await ask("goal_ladder", id="spend")
    assert ids(asked) == ["spend", "savings", "harbour"]
    assert asked.said.endswith(
        "—SUPPORTED_BY 0.5→ “Save for the house” (Goal) —SERVES→ “A house by the harbour” (Vision)"
    )
    assert ids(await ask("goal_ladder", id="thesis")) == ["thesis"]
    many = [record(f"g{n}", "Goal") for n in range(9)]
    up = [relation(f"g{n}", "SUPPORTED_BY", f"g{n + 1}", 1) for n in range(8)]
    circle = Shelf(graph(many, [*up, relation("g8", "SUPPORTED_BY", "g0", 1)]))
    assert ids(await ask("goal_ladder", circle, id="g0")) == ["g0", "g1", "g2", "g3", "g4", "g5"]


async def test_expand_goes_so_many_hops_over_the_relations_that_are_asked_for() -> None:
    asked = await ask("expand", id="book", max_hops=1)
    assert set(ids(asked)) == {"writing", "chapter", "figures"}
    asked = await ask("expand", id="book", relations=["HAS_TASK", "SERVES"], kinds=["Goal"])
    assert [(one.id, [it.relation for it in one.path]) for one in asked.found] == [
        ("thesis", ["HAS_TASK", "SERVES"])
    ]


async def test_bridge_returns_the_shortest_ways_with_strong_relations_first() -> None:
    asked = await ask("bridge", id="book", target="Learning")
    assert [[it.id for it in one.path] for one in asked.found][:2] == [
        ["chapter", "thesis", "learning"],
        ["writing", "thesis", "learning"],
    ]
    assert asked.found[0].path[0].forward
    assert asked.found[0].path[-1].weight == 0.8
    assert (await ask("bridge", id="book", target="harbour")).total == 0


async def test_why_leads_up_to_values_and_visions_over_the_strongest_chain() -> None:
    asked = await ask("why", id="figures")
    [learning] = asked.found
    assert [it.id for it in learning.path] == ["book", "writing", "thesis", "learning"]
    assert [it.forward for it in learning.path] == [False, True, True, True]
    assert learning.score == 0.72
    assert "←HAS_TASK— “The thesis as a book” (Project) —DELIVERS→" in learning.said
    assert ids(await ask("why", id="spend")) == ["harbour"]
    assert (await ask("why", id="guess")).said == "“Tea helps” leads up to no value and no vision."


async def test_counterfactual_names_what_loses_its_reason_and_what_loses_support() -> None:
    asked = await ask("counterfactual", id="writing")
    lost = {one.id: one.details["loses"] for one in asked.found}
    assert lost == {
        "mornings": "its reason",
        "figures": "its reason",
        "book": "its reason",
        "thesis": "some support",
    }
    alone = await ask("counterfactual", id="candour")
    assert {one.id: one.details["loses"] for one in alone.found} == {"honesty": "all support"}


async def test_analogy_goes_by_the_shape_of_the_surroundings() -> None:
    them = [
        record(f"{side}{n}", kind)
        for side in "ab"
        for n, kind in enumerate(("Goal", "Strategy", "Task", "Risk"))
    ]
    shape = [("1", "SERVES", "0"), ("2", "SERVES", "0"), ("1", "CONTAINS", "3")]
    relations = [relation(side + a, type_, side + b) for side in "ab" for a, type_, b in shape]
    shelf = Shelf(
        graph(
            [*them, record("c0", "Goal"), record("c1", "Task")],
            [*relations, relation("c1", "SERVES", "c0")],
        )
    )
    asked = await ask("analogy", shelf, id="a0")
    assert [(one.id, one.score) for one in asked.found] == [("b0", 1.0), ("c0", 0.25)]
    assert (await ask("analogy", shelf, id="a0", succeeded=True)).total == 0


async def test_evolution_tells_each_change_of_a_record() -> None:
    goal = year().records["thesis"]
    later = WHEN + timedelta(days=9)
    now = changed(
        goal, version=2, deadline="2026-09-30", status="archived", updated_at=later, actor="plan"
    )
    asked = await ask("evolution", Shelf(graph([now], []), {"thesis": [goal]}), id="thesis")
    assert [one.details["version"] for one in asked.found] == [1, 2]
    assert asked.found[1].said == (
        "version 2, 2026-03-10, by plan: status active → archived; deadline 2026-06-30 → 2026-09-30."
    )


async def test_drift_alerts_name_what_changed_its_meaning_or_status() -> None:
    then = WHEN - timedelta(days=200)
    was = [changed(record(name, "Value"), updated_at=then) for name in ("a", "b", "c")]
    now = [changed(one, version=2, updated_at=WHEN, summary=f"{one.title} anew.") for one in was]
    shelf = Shelf(
        graph([now[0], now[1], changed(now[2], status="deprecated")], []),
        {one.id: [one] for one in was},
    )
    vectors = np.array([[1, 0], [0.6, 0.8], [1, 0], [1, 0], [1, 0], [1, 0]], dtype=np.float32)
    asked = await BY_NAME["drift_alerts"].ask(
        ground(shelf, vectors=vectors), {"since": "2026-01-01"}
    )
    assert [(one.id, one.score) for one in asked.found] == [("a", 0.4), ("c", 0.0)]
    by_words = await BY_NAME["drift_alerts"].ask(
        ground(shelf), {"since": "2026-01-01", "layers": ["vision"]}
    )
    assert by_words.total == 0


async def test_recurring_finds_what_failed_goals_have_in_common() -> None:
    failed = [
        record(f"f{n}", "Goal", horizon="month", completion_status="abandoned", tags=("alone",))
        for n in range(3)
    ]
    reached = [
        record(f"s{n}", "Goal", horizon="year", completion_status="successfully_completed")
        for n in range(3)
    ]
    missed = record("m", "Goal", horizon="month", deadline="2020-01-01")
    plan = record("plan", "Strategy")
    relations = [relation("plan", "SERVES", f"s{n}", 1) for n in range(3)]
    asked = await ask("recurring", Shelf(graph([*failed, *reached, missed, plan], relations)))
    top = asked.found[0]
    assert top.title.startswith("horizon = month")
    assert top.details["records"] == ["f0", "f1", "f2", "m"]
    assert top.details["rate"] == 1.0
    assert any("tag alone" in one.title for one in asked.found)


async def test_recurring_finds_what_decisions_and_strategies_that_paid_have_in_common() -> None:
    paid = [record(f"p{n}", "Decision", roi={"total": 1}, tags=("slept over",)) for n in range(2)]
    lost = [record(f"l{n}", "Decision", roi={"total": -1}) for n in range(2)]
    asked = await ask("recurring", Shelf(graph([*paid, *lost], [])), what="decisions_paid")
    assert [one.title for one in asked.found] == ["tag slept over"]
    goals = [
        record("won", "Goal", completion_status="successfully_completed"),
        record("not", "Goal", completion_status="abandoned"),
    ]
    ways = [record(f"w{n}", "Strategy", tags=("small",)) for n in range(2)] + [
        record("w9", "Strategy")
    ]
    ends = [
        relation("w0", "SERVES", "won"),
        relation("w1", "SERVES", "won"),
        relation("w9", "SERVES", "not"),
    ]
    asked = await ask("recurring", Shelf(graph([*goals, *ways], ends)), what="strategies_paid")
    assert any("tag small" in one.title for one in asked.found)


async def test_contradictions_are_found_among_facts_and_records() -> None:
    facts = [
        Fact("f1", "ana", "lisbon", "LIVES_IN", "Ana lives in Lisbon.", WHEN),
        Fact("f2", "ana", "porto", "LIVES_IN", "Ana lives in Porto.", WHEN),
        Fact("f3", "ana", "meat", "SAID", "Ana does not eat any meat.", WHEN),
    ]
    records = [
        record("meat", "Policy", "Eats meat", statement="Ana does eat any meat"),
        record("p1", "Milestone", "Print", deadline="2026-05-01"),
        record("p2", "Milestone", "print", deadline="2026-06-01"),
        record("goal", "Goal", deadline="2026-02-01"),
        record("task", "Task", state="todo", due_date="2026-03-01"),
        record("gone", "Goal", status="archived"),
        record("still", "Task", state="todo"),
        record("x", "Project"),
        record("y", "Project"),
    ]
    relations = [
        relation("task", "SERVES", "goal"),
        relation("still", "SERVES", "gone"),
        relation("x", "DEPENDS_ON", "y"),
        relation("y", "DEPENDS_ON", "x"),
    ]
    shelf = Shelf(graph(records, relations))
    asked = await BY_NAME["contradictions"].ask(ground(shelf, facts=facts), {})
    assert sorted(
        (str(one.details["how"]), one.id, str(one.details["other"])) for one in asked.found
    ) == [
        ("circle", "x", "y"),
        ("dates", "task", "goal"),
        ("opposite", "f3", "meat"),
        ("over", "still", "gone"),
        ("same name", "p1", "p2"),
        ("two values", "f1", "f2"),
    ]


@pytest.mark.parametrize("name", sorted(BY_NAME))
async def test_a_query_that_names_a_record_knows_no_foreign_one(name: str) -> None:
    fields = BY_NAME[name].given.model_fields
    for field in {"id", "target"} & set(fields):
        given = dict.fromkeys({"id", "target"} & set(fields), "thesis") | {
            field: "1b4e28ba-2fa1-5d2b-883f-0016d3cca427"
        }
        with pytest.raises(NotFound, match=f"^{field} not found$"):
            await ask(name, **given)


async def test_what_is_asked_wrongly_is_named() -> None:
    with pytest.raises(InvalidRequest, match=r"'why' is about Value and Vision; no pack"):
        await BY_NAME["why"].ask(ground(Shelf(year()), NO_KINDS), {"id": "thesis"})
    with pytest.raises(
        InvalidRequest, match=r"^parameters: limit: input should be .*; 'analogy' takes limit, id"
    ):
        await ask("analogy", id="thesis", limit=0)
    with pytest.raises(InvalidRequest, match="is of kind Task; give a Goal"):
        await ask("goal_ladder", id="chapter")
    with pytest.raises(InvalidRequest, match="must be later than 'since'"):
        await ask("tasks", since="2026-03-01", until="2026-03-01")
    twins = Shelf(graph([record("a", "Goal", "Rest"), record("b", "Task", "rest")], []))
    with pytest.raises(InvalidRequest, match="2 records are called so"):
        await ask("expand", twins, id="Rest")
