"""The engine on real stores: channels apart, full lists, damping, routing, failures that are said."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from pps.app import App
from pps.core.errors import InvalidRequest, NotFound
from pps.core.time import now
from pps.core.values import ChannelName, Fact, FactDraft, Node
from pps.isolation.client import IsolatedGraphitiClient
from pps.journal.filters import ItemFilter
from pps.memory import Memory
from pps.recall import channel
from pps.recall.channel import Lists, find
from pps.recall.channel_profile import ChannelProfile
from pps.recall.request import RecallRequest
from pps.recall.search import Search, Tuning
from tests.integration.recall_scene import START, engine, facts_of, play, sources, uuid_of


async def remember_facts(memory: Memory, facts: Sequence[FactDraft]) -> None:
    at = START + timedelta(days=1)
    await memory.remember("A list of things.", facts=facts, occurred_at=at, session="list")


async def test_channels_stand_apart_and_say_why_each_hit_is_there(scene: Memory) -> None:
    recalled = await scene.recall("What does Mira drink in the kitchen?")

    assert list(recalled.channels) == ["nodes", "facts", "episodes", "anchors"]
    best = recalled["facts"][0]
    assert best.text == "Mira drinks black coffee in the kitchen each morning."
    assert best.names == ("Mira", "coffee")
    assert best.ranks["bm25"] == 1
    assert {type(hit.item).__name__ for hit in recalled["nodes"]} == {"Node"}
    assert [hit.score for hit in recalled["facts"]] == sorted(
        (hit.score for hit in recalled["facts"]), reverse=True
    )


async def test_the_parts_of_the_time_are_told(scene: Memory) -> None:
    took = (await scene.recall("What does Mira drink?")).took_ms

    assert set(took) == {"embed", "retrieve", "fetch", "rerank", "total"}
    assert took["total"] >= max(took["embed"], took["retrieve"], took["fetch"]) > 0


async def test_no_list_is_longer_than_the_limit_and_each_is_full_when_matches_exist(
    scene: Memory,
) -> None:
    for limit in (1, 3, 5):
        recalled = await scene.recall("Mira and Tomas", limit=limit, channels=("facts", "episodes"))
        assert [len(recalled[name]) for name in ("facts", "episodes")] == [limit, limit]


async def test_a_query_of_any_length_and_script_is_answered(scene: Memory) -> None:
    paste = "Traceback (most recent call last): nothing to see here. " * 400
    recalled = await scene.recall(f"{paste} What does Mira drink? {paste}")

    assert "Mira drinks black coffee in the kitchen each morning." in facts_of(recalled)[:3]
    for query in ("咖啡", '"-tea AND (NOT', "☕", "* OR *"):
        assert all(not channel.error for channel in (await scene.recall(query)).channels.values())


@pytest.mark.parametrize(
    ("query", "profile", "channels"),
    [
        ("What does Mira drink?", "facts", ["facts"]),
        ("Mira", "nodes", ["nodes"]),
        ("We sat in the kitchen for an hour.", "contextual", ["facts"]),
    ],
)
async def test_auto_routes_by_the_kind_of_query(
    scene: Memory, query: str, profile: str, channels: list[str]
) -> None:
    recalled = await scene.recall(query, channels="auto")

    assert (recalled.profile, list(recalled.channels)) == (profile, channels)
    assert all(recalled.channels[name].hits for name in recalled.channels)


async def test_the_bound_of_the_profile_that_a_query_is_routed_to_holds(
    scene: Memory, tmp_path: Path
) -> None:
    (tmp_path / "profiles").mkdir()
    (tmp_path / "profiles" / "contextual.toml").write_text(
        'description = "d"\nextends = "facts"\nmax_limit = 10'
    )
    request = RecallRequest("We sat in the kitchen for an hour.", limit=11, channels="auto")
    routing = engine(scene, tmp_path)

    with pytest.raises(InvalidRequest, match="10 with profile 'contextual'"):
        await routing.recall(request)
    assert (await routing.recall(replace(request, limit=10))).profile == "contextual"


async def test_only_the_channels_asked_for_are_filled(scene: Memory) -> None:
    assert list((await scene.recall("Mira", channels=("episodes", "nodes"))).channels) == [
        "episodes",
        "nodes",
    ]
    with pytest.raises(InvalidRequest, match="fills"):
        await scene.recall("Mira", profile="facts", channels=("nodes",))
    with pytest.raises(InvalidRequest, match="profile"):
        await scene.recall("Mira", profile="nothing")


async def test_a_centre_reorders_the_nodes_and_must_be_this_entitys(
    app: App, scene: Memory
) -> None:
    ids = {name: await uuid_of(scene, name) for name in ("Tomas", "Mira")}
    nearest = {
        name: (await scene.recall("roses and the bakery", profile="blended", center=uuid))["nodes"][
            0
        ]
        for name, uuid in ids.items()
    }
    assert {name: hit.text.split(":")[0] for name, hit in nearest.items()} == {
        "Tomas": "bakery",
        "Mira": "roses",
    }
    await app.create("bo")
    async with app.memory("bo") as other:
        with pytest.raises(NotFound):
            await other.recall("roses", center=ids["Mira"])


async def test_as_of_is_world_time(scene: Memory) -> None:
    tea = FactDraft(
        "Mira",
        "DRINKS",
        "tea",
        "Mira drinks green tea.",
        valid_at=START + timedelta(days=40),
        invalidates=("Mira drinks black coffee in the kitchen each morning.",),
    )
    await scene.remember("Tea now.", facts=[tea], occurred_at=START + timedelta(days=40))

    coffee = "Mira drinks black coffee in the kitchen each morning."
    present = facts_of(await scene.recall("What does Mira drink?"))
    before = facts_of(await scene.recall("What does Mira drink?", as_of=START + timedelta(days=10)))
    earlier = facts_of(
        await scene.recall("What does Mira drink?", as_of=START - timedelta(days=10))
    )
    assert "Mira drinks green tea." in present
    assert coffee not in present
    assert coffee in before
    assert "Mira drinks green tea." not in before
    assert earlier == []


async def test_filters_apply_before_ranking_and_lists_stay_full(scene: Memory) -> None:
    await remember_facts(
        scene,
        [
            FactDraft("Mira", "LIKES", f"thing {at}", f"Mira likes coffee thing {at}.")
            for at in range(150)
        ],
    )
    kept = ItemFilter(relations=("GROWS",))
    assert facts_of(await scene.recall("coffee thing", filters=kept)) == ["Mira grows roses."]

    diary = await scene.recall(
        "coffee", filters=ItemFilter(sources=("diary",)), channels=("episodes",)
    )
    assert [hit.text for hit in diary["episodes"]] == [
        "Mira: Green tea these days, coffee keeps me awake."
    ]

    early = ItemFilter(until=START + timedelta(days=1))
    turns = (await scene.recall("roses bakery tea coffee", filters=early, channels=("episodes",)))[
        "episodes"
    ]
    assert {hit.item.session for hit in turns} == {"s1"}


async def test_one_fact_a_pair_is_shown_and_the_rest_fills_what_stays_empty(scene: Memory) -> None:
    await remember_facts(
        scene,
        [
            FactDraft("Mira", "SAID", "Tomas", f"Mira told Tomas story {at} about bread.")
            for at in range(8)
        ],
    )
    recalled = await scene.recall(
        "a story about bread", profile="ambient", limit=5, channels=("facts",)
    )

    pairs = [frozenset(hit.names or ()) for hit in recalled["facts"]]
    assert len(pairs) == 5
    assert len(set(pairs)) == 5
    many = await scene.recall(
        "a story about bread", profile="ambient", limit=10, channels=("facts",)
    )
    assert len(many["facts"]) == 10


async def test_what_was_found_is_ordered_whole_before_anything_is_asked_again(
    scene: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    await remember_facts(
        scene,
        [
            FactDraft("Mira", "SAID", "Tomas", f"Mira told Tomas a story about bread {at}.")
            for at in range(26)
        ],
    )
    depths = list[int]()

    async def noted(ask: Search, name: ChannelName, profile: ChannelProfile, depth: int) -> Lists:
        depths.append(depth)
        return await find(ask, name, profile, depth)

    monkeypatch.setattr(channel, "find", noted)
    few = await scene.recall("a story about bread", profile="ambient", limit=3, channels=("facts",))
    assert len({frozenset(hit.names or ()) for hit in few["facts"]}) == 3
    assert len(depths) == 1

    many = await scene.recall(
        "a story about bread", profile="ambient", limit=10, channels=("facts",)
    )
    assert len(many["facts"]) == 10
    assert len(depths) == 3
    assert depths[2] > depths[1]


async def test_fresh_facts_win_in_ambient_recall_only(scene: Memory, tmp_path: Path) -> None:
    for day, place in ((-200, "Rome"), (0, "Bern")):
        at = now() + timedelta(days=day)
        await scene.remember(
            f"Off to {place}.",
            facts=[
                FactDraft(
                    "Tomas", "TRAVELS", place, f"Tomas travels to {place} by train.", valid_at=at
                )
            ],
            occurred_at=at,
        )
    query = "Tomas travels to Rome or Bern by train"
    ambient = engine(scene, tmp_path, Tuning(freshness_weight=0.9))
    fresh = await ambient.recall(RecallRequest(query, profile="ambient", channels=("facts",)))
    plain = await ambient.recall(RecallRequest(query, profile="default", channels=("facts",)))

    ratio = {hit.text: hit.score for hit in fresh["facts"]}
    usual = {hit.text: hit.score for hit in plain["facts"]}
    damped = {text: ratio[text] / usual[text] for text in ratio if "travels" in text}
    assert damped["Tomas travels to Bern by train."] == pytest.approx(1.0, abs=0.01)
    assert damped["Tomas travels to Rome by train."] == pytest.approx(0.1, abs=0.01)


async def test_undated_facts_get_the_usual_factor(scene: Memory, tmp_path: Path) -> None:
    ambient = engine(scene, tmp_path)
    await scene.remember(
        "Undated.",
        facts=[FactDraft("Tomas", "OWNS", "van", "Tomas owns a van.")],
        occurred_at=now(),
    )
    hits = (
        await ambient.recall(
            RecallRequest("Tomas owns a van", profile="ambient", channels=("facts",))
        )
    )["facts"]

    assert hits[0].text == "Tomas owns a van."


async def test_what_a_session_was_shown_is_damped_for_that_session(
    scene: Memory, tmp_path: Path
) -> None:
    tuned = engine(scene, tmp_path, Tuning(novelty_weight=0.9))
    first = (
        await tuned.recall(
            RecallRequest("Mira", profile="ambient", session="x", channels=("facts",))
        )
    )["facts"]
    await scene.parts.journal.given.record("x", "turn", 1, [first[0].id])

    again = (
        await tuned.recall(
            RecallRequest("Mira", profile="ambient", session="x", channels=("facts",))
        )
    )["facts"]
    other = (
        await tuned.recall(
            RecallRequest("Mira", profile="ambient", session="y", channels=("facts",))
        )
    )["facts"]
    assert again[-1].id == first[0].id
    assert {hit.id for hit in again} == {hit.id for hit in first}
    assert [hit.id for hit in other] == [hit.id for hit in first]


async def test_mmr_shows_different_facts_first(scene: Memory) -> None:
    await remember_facts(
        scene,
        [
            FactDraft("Mira", "LIKES", f"jam {at}", f"Mira likes plum jam number {at}.")
            for at in range(6)
        ],
    )
    plain = facts_of(await scene.recall("Mira likes plum jam and roses", profile="facts", limit=4))
    spread = facts_of(
        await scene.recall("Mira likes plum jam and roses", profile="diverse", limit=4)
    )

    assert sum("jam" in text for text in spread) < sum("jam" in text for text in plain)


async def test_graphitis_recipes_are_profiles_too(scene: Memory) -> None:
    edges = await scene.recall("Mira grows roses", profile="EDGE_HYBRID_SEARCH_RRF")
    nodes = await scene.recall("Mira", profile="NODE_HYBRID_SEARCH_NODE_DISTANCE")

    assert list(edges.channels) == ["facts"]
    assert edges["facts"][0].text == "Mira grows roses."
    assert isinstance(edges["facts"][0].item, Fact)
    assert list(nodes.channels) == ["nodes"]
    assert nodes["nodes"][0].text.startswith("Mira")


async def test_a_blended_hit_carries_its_breakdown(scene: Memory) -> None:
    mira = await uuid_of(scene, "Mira")
    best = (await scene.recall("coffee", profile="blended", center=mira))["nodes"][0]

    assert best.text == "coffee"
    assert set(best.signals) >= {"dense", "bm25", "near_center", "recency"}
    assert best.signals["near_center"] == 0.5
    assert all(0 <= signal <= 1 for signal in best.signals.values())
    assert 0 < best.score <= 1


async def test_recall_is_unchanged_when_other_entities_are_added(app: App, scene: Memory) -> None:
    before = await scene.recall("What does Mira drink?")
    for number in range(3):
        await app.create(f"other_{number}")
        async with app.memory(f"other_{number}") as other:
            await play(other)
    after = await scene.recall("What does Mira drink?")

    for name in before.channels:
        assert [replace(hit) for hit in after[name]] == list(before[name])


async def test_a_fact_that_is_forgotten_stops_raising_its_turn(scene: Memory) -> None:
    query = "each morning she is in the kitchen"
    fact = (await scene.recall(query, channels=("facts",)))["facts"][0]
    await scene.forget([fact.id], dry_run=False)
    recalled = await scene.recall(query, channels=("episodes", "facts"))

    assert fact.text not in facts_of(recalled)
    assert all(
        "supports" not in hit.ranks for hit in recalled["episodes"] if "coffee" in hit.text.lower()
    )


async def test_without_a_centre_the_node_channel_falls_back_to_plain_fusion(
    scene: Memory, tmp_path: Path
) -> None:
    bare = await engine(scene, tmp_path, self_node=None).recall(
        RecallRequest("coffee and roses", profile="nodes")
    )
    # The own node knows nobody yet.
    alone = await scene.recall("coffee and roses", profile="nodes", limit=10)

    order = [
        [hit.text for hit in recalled["nodes"] if hit.text != "Ana"] for recalled in (bare, alone)
    ]
    assert order[0] == order[1]
    assert all("near_center" not in hit.ranks for hit in bare["nodes"])


async def test_an_anchor_is_one_hit_with_the_passage_that_matched(scene: Memory) -> None:
    filler = "\n\n".join(
        f"Paragraph {at} is about the weather and the road to the sea." for at in range(60)
    )
    await scene.anchor_save(
        "Kitchen", f"{filler}\n\nThe copper kettle hangs by the window.\n\n{filler}"
    )
    await scene.anchor_save("厨房", "早上在厨房喝咖啡，猫在窗边睡觉。")

    hits = (await scene.recall("where does the copper kettle hang?"))["anchors"]
    assert [hit.id.split("#")[0] for hit in hits].count("kitchen") == 1
    assert "copper kettle" in hits[0].text
    assert hits[0].id != "kitchen#0"
    assert (await scene.recall("喝咖啡"))["anchors"][0].item.title == "厨房"


async def test_a_recall_that_is_given_up_leaves_nothing_behind(scene: Memory) -> None:
    recalling = asyncio.ensure_future(scene.recall("What does Mira drink?"))
    await asyncio.sleep(0)
    recalling.cancel()
    with pytest.raises(asyncio.CancelledError):
        await recalling

    assert facts_of(await scene.recall("What does Mira drink?"))


async def test_many_recalls_at_once_do_not_mix(scene: Memory) -> None:
    queries = ["What does Mira drink?", "Who grows roses?", "Tomas", "the bakery in Oslo"]
    alone = [await scene.recall(query) for query in queries]
    together = await asyncio.gather(*(scene.recall(query) for query in queries * 4))

    for at, recalled in enumerate(together):
        assert recalled.channels == alone[at % len(queries)].channels


async def test_what_is_ranked_is_not_read_from_the_graph_only_what_is_shown(
    scene: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    client, read = type(sources(scene).client), list[str]()
    facts, nodes = client.facts, client.nodes

    async def noted_facts(self: IsolatedGraphitiClient, uuids: Sequence[str]) -> list[Fact]:
        read.extend(uuids)
        return await facts(self, uuids)

    async def noted_nodes(self: IsolatedGraphitiClient, uuids: Sequence[str]) -> list[Node]:
        read.extend(uuids)
        return await nodes(self, uuids)

    monkeypatch.setattr(client, "facts", noted_facts)
    monkeypatch.setattr(client, "nodes", noted_nodes)

    recalled = await scene.recall("coffee, roses, the flat and the bakery", limit=2)

    assert len(recalled["facts"]) == len(recalled["nodes"]) == 2
    assert sorted(read) == sorted(hit.id for name in ("facts", "nodes") for hit in recalled[name])


@pytest.mark.parametrize("profile", ["default", "ambient"])
async def test_a_fact_whose_row_is_gone_takes_no_place(scene: Memory, profile: str) -> None:
    texts = ("Mira grows white roses.", "Mira grows old roses.", "Mira grows roses and beans.")
    await remember_facts(scene, [FactDraft("Mira", "GROWS", "roses", text) for text in texts])
    limit = 1 if profile == "default" else 3
    gone = (await scene.recall("Mira grows roses", profile=profile, limit=limit))["facts"][0]
    await sources(scene).client.delete_facts([gone.id])  # behind the indexes' back

    left = (await scene.recall("Mira grows roses", profile=profile, limit=limit))["facts"]

    assert len(left) == limit
    assert gone.id not in {hit.id for hit in left}
    assert any(hit.names == ("Mira", "roses") for hit in left)  # another fact of the same pair
