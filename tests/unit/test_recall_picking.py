"""Choosing among ranked facts."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import numpy as np
import pytest

from pps.config.relation_files import shipped_relations
from pps.core.values import Episode, Fact, Turn
from pps.journal.links import FactOutline, NodeOutline
from pps.recall.question import grams
from pps.recall.ranking import diverse, latest_first, one_of_each_pair, one_of_each_text

AT = datetime(2026, 1, 1, tzinfo=UTC)


def unit(*values: float) -> np.ndarray:
    vector = np.array(values, dtype=np.float32)
    return vector / np.linalg.norm(vector)


def test_a_pair_is_unordered_and_its_best_fact_stays() -> None:
    items = {
        str(at): FactOutline(one, other)
        for at, (one, other) in enumerate(("ab", "ba", "ac", "ab"), 1)
    }

    assert one_of_each_pair(["1", "2", "3", "4"], items) == (["1", "3"], ["2", "4"])


def test_things_that_are_not_facts_are_never_passed_over() -> None:
    items = {one: NodeOutline(one, AT) for one in ("1", "2")}

    assert one_of_each_pair(["1", "2"], items) == (["1", "2"], [])


def test_what_is_said_again_or_asked_again_is_passed_over() -> None:
    said = ["What is  the word?", "The word is lantern.", "Yes.", "the WORD is lantern.", "Yes."]
    items = {str(at): Episode(str(at), "turn", text, AT, AT) for at, text in enumerate(said)}

    assert one_of_each_text(list(items), items, "what is the word?") == (
        ["1", "2"],
        ["0", "3", "4"],
    )
    assert one_of_each_text(list(items), items, "the word is lantern.") == (
        ["0", "1", "2"],
        ["3", "4"],
    )


def test_mmr_takes_the_different_one_before_the_repeat() -> None:
    vectors = {"best": unit(1, 0.02, 0), "twin": unit(1, 0, 0), "other": unit(0.7, 0, 0.7)}

    assert diverse(["best", "twin", "other"], unit(1, 0, 0.4), vectors, balance=0.5, limit=2) == [
        "twin",
        "other",
    ]


def test_mmr_at_one_half_takes_what_differs_and_a_little_above_it_what_is_nearer() -> None:
    vectors = {"best": unit(1, 0.1, 0), "near": unit(1, 0.2, 0), "apart": unit(0.5, 0, 0.866)}

    orders = {
        at: diverse(list(vectors), unit(1, 0, 0), vectors, balance=at, limit=3) for at in (0.5, 0.6)
    }
    assert orders == {0.5: ["best", "apart", "near"], 0.6: ["best", "near", "apart"]}


def test_mmr_with_all_weight_on_relevance_is_the_order_of_similarity() -> None:
    vectors = {"far": unit(0, 1), "near": unit(1, 0), "middle": unit(1, 1)}

    assert diverse(["far", "near", "middle"], unit(1, 0), vectors, balance=1.0, limit=3) == [
        "near",
        "middle",
        "far",
    ]


def test_mmr_appends_what_has_no_vector() -> None:
    assert diverse(["x", "y", "z"], unit(1, 0), {"z": unit(1, 0)}, balance=0.5, limit=3) == [
        "z",
        "x",
        "y",
    ]
    assert diverse(["x", "y"], unit(1, 0), {}, balance=0.5, limit=1) == ["x"]


def said(words: str, day: int, actor: str = "") -> Turn:
    return Turn(words, day, "user", words, "s", AT + timedelta(days=day), AT, actor)


def latest(
    query: str,
    *items: Turn | Fact,
    times: dict[str, datetime] | None = None,
    scores: dict[str, float] | None = None,
) -> list[str]:
    found = {one.uuid: one for one in items}
    known = (
        {one.uuid: one.occurred_at for one in items if isinstance(one, Turn)}
        if times is None
        else times
    )
    return latest_first(
        list(found),
        found,
        known,
        scores or dict.fromkeys(found, 1.0),
        grams(query),
        shipped_relations(),
    )


def test_the_latest_of_several_statements_takes_the_place_of_the_first() -> None:
    old, tea, new = (
        said("I work as a florist.", 1),
        said("I drink tea.", 2),
        said("I work as a bus driver now.", 3),
    )

    assert latest("work living", old, tea, new) == [new.uuid, old.uuid, tea.uuid]
    assert latest("work living", new, old, tea) == [new.uuid, old.uuid, tea.uuid]
    assert latest("florist work", old, tea, new) == [old.uuid, tea.uuid, new.uuid], (
        "it was asked for itself"
    )
    assert latest("work", old, tea, new, times={}) == [old.uuid, tea.uuid, new.uuid]


def test_others_words_and_little_in_common_are_no_later_statement() -> None:
    mine = said("I work as a florist.", 1, "Ana")

    assert latest("work", mine, said("I work as a driver.", 2, "Ben"))[0] == mine.uuid
    assert (
        latest("work", mine, said("Work was dull and long on this grey day.", 2, "Ana"))[0]
        == mine.uuid
    )


def test_facts_of_one_subject_and_relation_state_one_thing() -> None:
    facts = [
        Fact(one, subject, place, "LIVES_IN", f"{subject} lives in {place}.", AT)
        for one, subject, place in (
            ("1", "Nora", "Bergen"),
            ("2", "Ola", "Oslo"),
            ("3", "Nora", "Malaga"),
        )
    ]
    times = {one.uuid: AT + timedelta(days=at) for at, one in enumerate(facts)}

    assert latest("Nora live", *facts, times=times) == ["3", "1", "2"]
    assert latest("Nora live Bergen", *facts, times=times) == ["1", "2", "3"]


def test_the_latest_does_not_take_the_place_of_what_fits_much_better() -> None:
    violin, kiln = said("I own a violin.", 1), said("I own a kiln.", 2)
    scores = {violin.uuid: 1.0, kiln.uuid: 0.5}
    assert latest("instrument own", violin, kiln, scores=scores) == [violin.uuid, kiln.uuid]
    scores = {violin.uuid: 1.0, kiln.uuid: 0.9}
    assert latest("instrument own", violin, kiln, scores=scores) == [kiln.uuid, violin.uuid]


@pytest.mark.parametrize("relation", ["LIKES", "SAYS"])
def test_of_what_a_subject_may_have_several_the_latest_is_not_put_first(relation: str) -> None:
    facts = [
        Fact("1", "Nora", "rock", relation, "Nora listens to rock.", AT),
        Fact("2", "Nora", "soup", relation, "Onion soup is her favourite dish.", AT),
    ]
    times = {fact.uuid: AT + timedelta(days=day) for day, fact in enumerate(facts)}
    assert latest("music", *facts, times=times) == ["1", "2"]
