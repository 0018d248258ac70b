"""Each perspective by itself, on real stores: what it finds, and in what order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from uuid import uuid4

import numpy as np
import pytest

from pps.core.values import ChannelName, Episode, Fact, Node, Turn
from pps.journal.filters import ItemFilter
from pps.memory import Memory
from pps.models.protocols import Reranked
from pps.recall.hits import fetch, outlined, times_of
from pps.recall.perspectives import PERSPECTIVES
from pps.recall.search import Scored, Search
from tests.graph_file import save_facts
from tests.integration.recall_scene import START, ask, uuid_of


async def found(asked: Search, name: str, channel: ChannelName, depth: int = 10) -> list[str]:
    """Return the texts that a finding perspective brings, in its order."""
    find = PERSPECTIVES[name].retrieve
    assert find is not None
    return await texts(asked, channel, await find(asked, channel, depth))


async def weighed(
    asked: Search, name: str, channel: ChannelName, query: str = ""
) -> list[tuple[str, float]]:
    """Return text and signal of what a weighing perspective says of everything that BM25 finds."""
    weigh, find = PERSPECTIVES[name].rerank, PERSPECTIVES["bm25"].retrieve
    assert weigh is not None
    assert find is not None
    items = await outlined(asked, channel, [one.id for one in await find(asked, channel, 50)])
    opinion = await weigh(asked, channel, items)
    return list(
        zip(await texts(asked, channel, opinion), [one.signal for one in opinion], strict=True)
    )


async def texts(asked: Search, channel: ChannelName, scored: Sequence[Scored]) -> list[str]:
    items = await fetch(asked, channel, [one.id for one in scored])
    return [_text(item) for item in items.values()]


def _text(item: object) -> str:
    if isinstance(item, Fact):
        return item.text
    return item.name if isinstance(item, Node) else item.content if isinstance(item, Turn) else ""


async def test_bm25_finds_shared_words(scene: Memory) -> None:
    assert (await found(ask(scene, "who grows roses?"), "bm25", "facts"))[0] == "Mira grows roses."
    assert (await found(ask(scene, "Tarn"), "bm25", "nodes")) == ["Tarn"]


async def test_dense_finds_what_is_near_and_ranks_everything(scene: Memory) -> None:
    order = await found(ask(scene, "Mira grows roses"), "dense", "facts")

    assert order[0] == "Mira grows roses."
    assert len(order) == 5


async def test_dense_names_ranks_nodes_by_their_names_whatever_a_record_says(scene: Memory) -> None:
    await scene.records.add_event("Oslo is far.", title="Distance", source="notes")

    order = await found(ask(scene, "Distance"), "dense_names", "nodes")

    assert order[0] == "Distance"
    assert await found(ask(scene, "Distance"), "dense_names", "facts") == []


async def test_bm25_over_windows_finds_the_answer_to_a_question_that_was_asked(
    scene: Memory,
) -> None:
    asked = ask(scene, "what does she drink in the morning")

    order = await found(asked, "bm25_windows", "episodes")
    assert "Black coffee, always, while the kitchen is still quiet." in order[:3]
    assert await found(asked, "bm25_windows", "facts") == []


async def test_dense_over_windows_ranks_turns_with_their_surroundings(scene: Memory) -> None:
    asked = ask(scene, "What do you drink in the morning?")

    assert (
        "Black coffee, always, while the kitchen is still quiet."
        in (await found(asked, "dense_windows", "episodes"))[:3]
    )
    assert await found(asked, "dense_windows", "nodes") == []


async def test_supports_let_a_fact_vote_for_its_turns_and_nodes_and_a_turn_for_its_facts(
    scene: Memory,
) -> None:
    asked = ask(scene, "Mira drinks black coffee in the kitchen each morning.")

    assert (await found(asked, "supports", "episodes"))[
        0
    ] == "Black coffee, always, while the kitchen is still quiet."
    assert set((await found(asked, "supports", "nodes"))[:2]) == {"Mira", "coffee"}
    assert "Tomas opens a bakery in Oslo." in await found(
        ask(scene, "opens in May"), "supports", "facts"
    )


async def test_named_finds_the_nodes_that_a_query_calls_by_name_or_alias(scene: Memory) -> None:
    assert set(await found(ask(scene, "did mirabel call TOMAS?"), "named", "nodes")) == {
        "Mira",
        "Tomas",
    }
    assert await found(ask(scene, "nobody in particular"), "named", "nodes") == []


async def test_named_brings_a_persons_facts_only_when_nothing_else_is_asked(scene: Memory) -> None:
    assert set(await found(ask(scene, "tell me about Tomas"), "named", "facts")) == {
        "Tomas sold his flat in Tarn.",
        "Tomas opens a bakery in Oslo.",
    }
    assert await found(ask(scene, "when did Tomas sell the flat?"), "named", "facts") == []


async def test_near_the_centre_is_nearer_first(scene: Memory) -> None:
    mira = await uuid_of(scene, "Mira")
    asked = ask(scene, "coffee roses bakery Oslo Mira Tomas", center=mira)

    signals = dict(await weighed(asked, "near_center", "nodes"))
    assert signals["Mira"] == 1.0
    assert signals["coffee"] == signals["roses"] == 0.5
    assert "Oslo" not in signals


async def test_structural_finds_what_is_within_reach_of_the_anchor_nearer_first(
    scene: Memory,
) -> None:
    tomas = await uuid_of(scene, "Tomas")
    find, score = PERSPECTIVES["structural"].retrieve, PERSPECTIVES["structural"].score
    assert find is not None
    assert score is not None
    asked = ask(scene, "the bakery", center=tomas)

    entries = await find(asked, "nodes", 10)

    named = await texts(asked, "nodes", entries)
    assert named == [
        "bakery",
        "Tarn",
        "Oslo",
    ]  # of the two that are one hop away, what is meant comes first
    assert [(one.score, one.signal) for one in entries] == [(-1.0, 1.0), (-1.0, 1.0), (-2.0, 0.5)]
    assert await find(asked, "nodes", 1) == entries[:1]
    assert await score(asked, "nodes", {entries[2].id, tomas}) == [entries[2]]
    assert (
        await find(ask(scene, "the bakery", center=tomas, max_hops=1), "nodes", 10) == entries[:2]
    )
    assert (await find(asked, "facts", 10), await score(asked, "facts", {tomas})) == ([], [])
    assert (
        await found(ask(scene, "the bakery"), "structural", "nodes") == []
    )  # nobody is joined to the own node


def test_each_perspective_has_a_test_of_its_own_here() -> None:
    told = "".join(
        Path(__file__).with_name(one).read_text("utf-8")
        for one in (
            Path(__file__).name,
            "test_perspective_data.py",
            "test_token_states.py",
            "test_recall_words.py",
        )
    )
    assert [name for name in PERSPECTIVES if told.count(f'"{name}"') == 0] == []


class Longest:
    """A reranker that likes long texts."""

    name = "longest"

    def rerank(self, query: str, passages: Sequence[str], *, deadline_s: float) -> Reranked:
        return Reranked(tuple(float(len(one)) for one in passages), complete=True)

    def close(self) -> None:
        """It holds nothing."""


async def test_a_cross_encoder_orders_what_others_found_and_without_one_nothing_is_said(
    scene: Memory,
) -> None:
    asked = ask(scene, "Mira Tomas")
    assert await weighed(asked, "cross_encoder", "facts") == []

    asked = ask(scene, "Mira Tomas")
    asked.sources = replace(asked.sources, reranker=Longest())
    order = await weighed(asked, "cross_encoder", "facts")
    assert [len(text) for text, _ in order] == sorted(
        (len(text) for text, _ in order), reverse=True
    )
    assert (order[0][1], order[-1][1]) == (1.0, 0.0)


async def test_near_the_named_prefers_facts_that_touch_a_named_node(scene: Memory) -> None:
    order = [
        text
        for text, _ in await weighed(
            ask(scene, "Tomas and the roses in Oslo"), "near_named", "facts"
        )
    ]

    assert {"Tomas opens a bakery in Oslo.", "Mira grows roses."} <= set(order)
    assert await weighed(ask(scene, "flat sold"), "near_named", "facts") == []


async def test_recency_is_latest_first_and_falls_in_a_straight_line(scene: Memory) -> None:
    asked = ask(scene, "coffee tea roses flat bakery", as_of=START + timedelta(days=41))

    order = await weighed(asked, "recency", "episodes")
    assert order[0][0] == "Green tea these days, coffee keeps me awake."
    assert order[0][1] == pytest.approx(1 - 1 / 28, abs=0.01)
    assert [signal for _, signal in order] == sorted((signal for _, signal in order), reverse=True)
    assert order[-1][1] == 0.0


async def test_recency_takes_a_facts_age_from_its_latest_support(scene: Memory) -> None:
    asked = ask(scene, "Tomas Mira", as_of=START + timedelta(days=21))

    assert (await weighed(asked, "recency", "facts"))[0][0].startswith("Tomas")


async def test_a_facts_age_counts_supports_that_only_the_graph_knows(scene: Memory) -> None:
    asked = ask(scene, "Mira grows roses")
    (fact,) = [
        hit.item
        for hit in (await scene.recall("Mira grows roses"))["facts"]
        if hit.text == "Mira grows roses."
    ]
    assert isinstance(fact, Fact)
    told = [
        Episode(
            str(uuid4()),
            "episode",
            "Roses.",
            START + timedelta(days=day),
            START,
            facts=(fact.uuid,),
        )
        for day in (100, 50)
    ]
    grown = replace(fact, episodes=(*fact.episodes, *(one.uuid for one in told)))
    await asked.sources.client.save_episodes(told)
    await asked.sources.client.save_facts([grown], {})
    await save_facts(asked.sources.journal, [grown])

    times = await times_of(asked, await outlined(asked, "facts", [fact.uuid]))

    assert times == {fact.uuid: START + timedelta(days=100)}


async def test_tags_give_the_share_of_the_tags_asked_for(scene: Memory) -> None:
    order = dict(await weighed(ask(scene, "#food #garden coffee roses tea"), "tags", "episodes"))

    assert order["Green tea these days, coffee keeps me awake."] == 0.5
    assert order["The roses came back after the frost."] == 0.5
    assert "We sold the flat in Tarn last week." not in order


async def test_tags_of_the_filter_count_too(scene: Memory) -> None:
    asked = ask(scene, "coffee", filters=ItemFilter(tags=("food",)))

    assert {signal for _, signal in await weighed(asked, "tags", "episodes")} == {1.0}


async def test_mentions_put_facts_with_more_supports_first(scene: Memory) -> None:
    again = (await scene.recall("Mira grows roses", limit=1))["facts"]
    await scene.remember(
        "Roses again, all over.",
        facts=[_again(again[0].item)],
        occurred_at=START + timedelta(days=50),
    )
    order = await weighed(ask(scene, "Mira Tomas roses flat"), "mentions", "facts")

    assert order[0] == ("Mira grows roses.", 1.0)
    assert order[1][1] == 0.5


async def test_latest_are_the_turns_said_last_that_the_filters_let_through(scene: Memory) -> None:
    assert (await found(ask(scene, "anything"), "latest", "turns", 2))[0].startswith("Green tea")
    filtered = ask(scene, "anything", filters=ItemFilter(sessions=("s1",)))
    assert await found(filtered, "latest", "turns", 2) == [
        "I would never get up for that.",
        "Black coffee, always, while the kitchen is still quiet.",
    ]


async def test_when_finds_turns_and_facts_of_the_time_that_is_named(scene: Memory) -> None:
    june = START + timedelta(days=150)

    asked = ask(scene, "What did they say on 8 January?", as_of=june)
    assert set(await found(asked, "when", "episodes")) == {
        "The roses came back after the frost.",
        "Lovely.",
    }
    asked = ask(scene, "Did anybody open a shop last winter?", as_of=june)
    assert (await found(asked, "when", "facts"))[0] == "Tomas opens a bakery in Oslo."
    asked = ask(
        scene, "What about roses in January?", as_of=june, filters=ItemFilter(sessions=("s3",))
    )
    assert len(await found(asked, "when", "episodes")) == 2
    for query, channel in (("What about the roses?", "episodes"), ("roses in January", "nodes")):
        assert await found(ask(scene, query, as_of=june), "when", channel) == []


async def test_a_time_after_all_that_was_said_is_read_against_the_latest_turn(
    scene: Memory,
) -> None:
    asked = ask(scene, "What did we say yesterday?")

    assert [span.start for span in await asked.named_spans()] == [
        (START + timedelta(days=39)).replace(hour=0)
    ]
    assert await found(asked, "when", "episodes") == [
        "Green tea these days, coffee keeps me awake."
    ]


@pytest.mark.parametrize("name", [name for name, one in PERSPECTIVES.items() if one.finds])
async def test_every_finder_honours_the_filters_and_its_depth(scene: Memory, name: str) -> None:
    channels: tuple[ChannelName, ...] = ("nodes", "facts", "episodes", "turns")
    nothing = ItemFilter(sessions=("nowhere",), kinds=("Nothing",))
    for channel in channels:
        find = PERSPECTIVES[name].retrieve
        assert find is not None
        assert await find(ask(scene, "Mira and Tomas", filters=nothing), channel, 5) == []
        entries = await find(ask(scene, "Mira and Tomas"), channel, 2)
        assert len(entries) <= 2
        assert len({one.id for one in entries}) == len(entries)


def _again(item: object):
    from pps.core.values import FactDraft

    assert isinstance(item, Fact)
    return FactDraft("Mira", item.relation, "roses", item.text, valid_at=item.valid_at)


async def test_sequence_puts_the_neighbours_of_the_best_hit_first_and_leaves_other_sessions_out(
    scene: Memory,
) -> None:
    weigh = PERSPECTIVES["sequence"].rerank
    assert weigh is not None
    asked = ask(scene, "coffee")
    turns = {one.content: one for one in await scene.parts.journal.recent(20)}
    best = next(one for text, one in turns.items() if text.startswith("Black coffee"))
    rest = [one for one in turns.values() if one is not best]

    opinion = await weigh(asked, "turns", {one.uuid: one for one in (best, *rest)})

    assert [one.signal for one in opinion] == [1.0, 0.5, 0.5]
    sessions = {one.uuid: one.session for one in turns.values()}
    assert {sessions[one.id] for one in opinion} == {best.session}


async def test_period_puts_the_same_hour_of_the_week_first(scene: Memory) -> None:
    weigh = PERSPECTIVES["period"].rerank
    assert weigh is not None
    turns = {one.uuid: one for one in await scene.parts.journal.recent(20)}
    asked = ask(scene, "coffee", as_of=START + timedelta(days=70))

    opinion = await weigh(asked, "turns", turns)

    assert turns[opinion[0].id].occurred_at.weekday() == START.weekday()
    assert opinion[0].signal > 0.98
    assert turns[opinion[-1].id].occurred_at.weekday() == (START + timedelta(days=3)).weekday()


async def test_near_finds_what_the_graph_ties_to_a_named_thing_one_way_or_both(
    scene: Memory,
) -> None:
    asked = ask(scene, "Mira")

    assert set(await found(asked, "near", "nodes")) == {"coffee", "roses"}
    assert len(await found(asked, "near", "facts")) == 2
    assert "The roses came back after the frost." in await found(asked, "near", "episodes")
    asked.request = replace(asked.request, connections="target")
    assert await found(asked, "near", "facts") == []
    assert await found(ask(scene, "nobody"), "near", "facts") == []


async def test_sequence_and_period_order_by_place_in_the_session_and_hour_of_the_week(
    scene: Memory,
) -> None:
    asked = ask(scene, "roses garden frost lovely")

    turns = await weighed(asked, "sequence", "episodes")
    assert turns[0][1] == 1.0
    assert all(0 < signal <= 1 for _, signal in await weighed(asked, "period", "episodes"))


async def test_intent_moves_meaning_by_a_fifth_at_most(scene: Memory) -> None:
    asked = ask(scene, "What do you drink in the morning?")
    intent, dense = PERSPECTIVES["intent"].retrieve, PERSPECTIVES["dense"].retrieve
    assert intent is not None
    assert dense is not None
    own = {one.id: one.score for one in await dense(asked, "episodes", 50)}

    for one in await intent(asked, "episodes", 50):
        if own.get(one.id):
            assert 0.8 - 1e-6 <= one.score / own[one.id] <= 1.2 + 1e-6


async def test_what_only_expansion_finds_comes_last(scene: Memory) -> None:
    told = await scene.recall(
        "Who grows roses?", channels=["facts"], weights={"expand": 5.0, "bm25": 1.0}
    )
    plain = await scene.recall("Who grows roses?", channels=["facts"])

    assert told["facts"][0].id == plain["facts"][0].id


async def test_late_interaction_orders_by_words_where_the_model_has_vectors_of_tokens(
    scene: Memory,
) -> None:
    assert all(
        0 <= signal <= 1
        for _, signal in await weighed(ask(scene, "roses and frost"), "late", "episodes")
    )


async def test_likeness_is_symmetric_and_not_a_number_where_one_has_nothing_to_compare(
    scene: Memory,
) -> None:
    sources = ask(scene, "x").sources
    turns = [one.uuid for one in await sources.journal.recent(8)]
    for name, one in PERSPECTIVES.items():
        if one.alike is not None:
            likeness = await one.alike(sources, [*turns, str(uuid4())])
            assert likeness.shape == (9, 9), name
            assert np.array_equal(likeness, likeness.T, equal_nan=True), name
            assert np.isnan(likeness[-1, :-1]).all(), name
