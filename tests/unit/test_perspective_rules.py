"""The rules that perspectives keep, whatever is set: the thirteen, and what none may do (S4-01, S4-04, S4-17)."""

from __future__ import annotations

import pytest

from pps.config import shipped
from pps.config.spaces import spaces
from pps.recall.perspectives import PERSPECTIVES
from pps.recall.profiles import Profile, Profiles
from pps.recall.question import routes_of
from pps.recall.ranking import led
from pps.recall.search import Scored

SHIPPED = {
    one.name.removesuffix(".toml"): one.read_text("utf-8")
    for one in shipped("config/profiles").iterdir()
}


def profiles() -> list[Profile]:
    return [one for one in Profiles(SHIPPED).all() if not one.recipe]


def test_the_thirteen_have_their_categories_and_weights() -> None:
    weights = {name: space.topic_weight for name, space in spaces().items()}

    assert {name for name, weight in weights.items() if weight == 1} == {
        "E1",
        "E5",
        "E6",
        "E7",
        "E10",
        "E12",
        "E13",
    }
    assert {name for name, weight in weights.items() if weight == 0.5} == {"E8", "E9", "E11"}
    assert {name for name, space in spaces().items() if space.category == "temporal"} == {
        "E2",
        "E3",
        "E4",
    }
    assert sum(weights.values()) == 8.5


def test_each_of_the_thirteen_is_a_perspective_of_its_name() -> None:
    assert {space.perspective for space in spaces().values()} <= PERSPECTIVES.keys()


def test_what_is_temporal_counts_for_no_topic_and_brings_no_candidates() -> None:
    for space in spaces().values():
        if space.category == "temporal":
            one = PERSPECTIVES[space.perspective]
            assert (space.topic_weight, space.thresholds, one.retrieve, one.alike) == (
                0,
                {},
                None,
                None,
            )


def test_late_interaction_finds_nothing_and_expansion_orders_nothing() -> None:
    assert PERSPECTIVES["late"].retrieve is None
    assert PERSPECTIVES["expand"].recall_only
    assert PERSPECTIVES["expand"].rerank is None


def test_weighted_sums_are_for_blended_and_hybrid_alone() -> None:
    summed = {
        one.name
        for one in profiles()
        if any(each.fusion == "sum" for each in one.channels.values())
    }

    assert summed == {"blended", "hybrid", "semantic"}  # the last is a sum of one


@pytest.mark.parametrize("name", ["e1_only", "multi_space", "pipeline"])
def test_every_strategy_begins_with_meaning(name: str) -> None:
    [profile] = [one for one in profiles() if one.name == name]

    assert all(
        "dense" in profile.channels[channel].perspectives for channel in ("facts", "episodes")
    )


def test_sure_meaning_is_refined_by_the_others_and_weak_meaning_broadened() -> None:
    weights = {"dense": 1.0, "bm25": 1.0}

    def given(best: float, words: int = 3) -> float:
        return led(
            {"dense": [Scored("a", best, best)], "bm25": [Scored("b", 9.0, 1.0)]}, weights, words
        )["bm25"]

    assert (given(0.81), given(0.6), given(0.39)) == (0.5, 1.0, 2.0)
    assert given(0.6, words=6) == 0.5  # one strong word of six says little
    assert led({"dense": [Scored("a", 0.1, 0.1)]}, weights, 3)["dense"] == 1.0


@pytest.mark.parametrize(
    ("query", "kind"),
    [
        ("Why did the deploy fail?", "cause"),
        ("What did the frost cause?", "cause"),
        ("What did the outage lead to?", "cause"),
        ("where is parseConfig defined", "code"),
        ("what does read_rows() return", "code"),
        ("what were we trying to reach with the cache", "intent"),
        ('who said "never on Fridays"', "exact"),
    ],
)
def test_a_query_tells_which_perspective_is_made_for_it(query: str, kind: str) -> None:
    assert routes_of(query, []) == {kind}
    assert routes_of("Who keeps bees?", ["Bees"]) == {"named"}
    assert routes_of("Who keeps bees?", []) == set()
