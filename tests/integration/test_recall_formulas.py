"""The numbers of a recall, each worked out by hand beside what a real store answers."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from uuid import uuid4

import pytest

from pps.config import EmbedderSettings, Settings
from pps.core.values import Fact, FactDraft, NodeDraft, RelationDraft
from pps.memory import Memory
from pps.recall.hits import outlined
from pps.recall.profiles import Profiles
from pps.recall.ranking import WEAK_BM25, freshness
from pps.recall.request import RecallRequest
from pps.recall.search import Tuning
from tests.graph_file import save_facts
from tests.integration.recall_scene import BLEND, ask, by_name, engine, sources, uuid_of

MOMENT = datetime(2026, 6, 1, 12, tzinfo=UTC)
CHAIN = ("harbour", "crane", "barge", "canal", "lock", "mill")


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    """The embedded store: what is computed here is read from the graph's tables, which is the same on both."""
    return Settings(home=tmp_path / "home", embedder=EmbedderSettings(name="hash"))


@pytest.fixture
async def chain(memory: Memory) -> Memory:
    """A chain of six nodes, joined by a fact and a relation in turn; two nodes beside it only share its tag."""
    tags = ("water",)
    beside = (NodeDraft("lantern oil", tags=tags), NodeDraft("lantern", tags=tags))
    facts = [
        FactDraft(one, "NEAR", other)
        for one, other in (("harbour", "crane"), ("barge", "canal"), ("lock", "mill"))
    ]
    await memory.remember(
        "The quay.",
        occurred_at=MOMENT - timedelta(days=1),
        nodes=[*(NodeDraft(name, tags=tags) for name in CHAIN), *beside],
        facts=facts,
    )
    related = [
        RelationDraft("crane", "barge", "leads_to"),
        RelationDraft("lock", "canal", "leads_to"),
    ]
    assert (await memory.records.relate(related)).edges_created == 2
    return memory


def cosine(memory: Memory, one: str, other: str) -> float:
    embedder = sources(memory).embedder
    assert embedder is not None
    return float(embedder.embed_query(one) @ embedder.embed_passages([other])[0])


async def test_hybrid_is_six_tenths_of_structure_and_four_of_meaning_two_hops_far(
    chain: Memory,
) -> None:
    anchor = await uuid_of(chain, "harbour")
    structure = {"crane": 1.0, "barge": 0.5}
    meaning = {
        name: max(0.0, cosine(chain, "lantern oil", name))
        for name in (*CHAIN, "lantern oil", "lantern")
    }
    near = {name for name, value in meaning.items() if value >= 0.65}
    assert near >= {"lantern oil"}
    assert not near & set(CHAIN)

    found = by_name((await chain.recall("lantern oil", profile="hybrid", center=anchor))["nodes"])

    assert {name: hit.score for name, hit in found.items()} == pytest.approx(
        {
            name: 0.6 * structure.get(name, 0.0) + 0.4 * meaning[name]
            for name in structure.keys() | near
        },
        abs=1e-5,
    )
    for name, hit in found.items():
        assert hit.signals.get("structural", 0.0) == structure.get(name, 0.0)
        assert hit.signals["dense"] == pytest.approx(meaning[name], abs=1e-5)
    assert list(found) == sorted(found, key=lambda name: -found[name].score)
    ways = {name: [(step.relation, step.name) for step in hit.path] for name, hit in found.items()}
    assert ways == {
        "crane": [("NEAR", "crane")],
        "barge": [("NEAR", "crane"), ("leads_to", "barge")],
        **{name: [] for name in near},
    }


async def test_hybrid_goes_four_hops_when_told_and_shows_ten_unless_told(chain: Memory) -> None:
    anchor = await uuid_of(chain, "harbour")
    options = {"profile": "hybrid", "center": anchor, "min_similarity": 1.0}
    far = by_name((await chain.recall("quay", max_hops=4, **options))["nodes"])
    assert {name: hit.signals["structural"] for name, hit in far.items()} == pytest.approx(
        {"crane": 1.0, "barge": 0.5, "canal": 1 / 3, "lock": 0.25}
    )

    berths = [FactDraft("harbour", "HAS", f"berth {number}") for number in range(14)]
    await chain.remember("Berths.", facts=berths, occurred_at=MOMENT)
    assert [
        len((await chain.recall("quay", **options, **more))["nodes"])
        for more in ({}, {"limit": 12})
    ] == [10, 12]


async def test_the_graph_signal_is_one_over_one_and_the_hops_up_to_four_over_facts_and_relations(
    chain: Memory,
) -> None:
    anchor = await uuid_of(chain, "harbour")

    hits = by_name(
        (await chain.recall("the quay", profile="blended", center=anchor, limit=20))["nodes"]
    )

    assert {
        name: hits[name].signals.get("near_center") for name in (*CHAIN, "lantern", "lantern oil")
    } == {
        "harbour": 1.0,
        "crane": 1 / 2,
        "barge": 1 / 3,
        "canal": 1 / 4,
        "lock": 1 / 5,
        "mill": None,
        "lantern": None,
        "lantern oil": None,
    }


async def test_the_tag_signal_is_the_share_of_the_tags_that_are_asked_for(memory: Memory) -> None:
    tags = {"plain": (), "one": ("red",), "two": ("Red", "blue"), "other": ("green", "red")}
    await memory.remember(
        "Cups.", nodes=[NodeDraft(f"cup {name}", tags=had) for name, had in tags.items()]
    )

    hits = by_name((await memory.recall("cup #red #blue", profile="blended"))["nodes"])

    assert {name: hits[f"cup {name}"].signals.get("tags") for name in tags} == {
        "plain": None,
        "one": 0.5,
        "two": 1.0,
        "other": 0.5,
    }


async def test_the_recency_signal_falls_from_one_to_nothing_over_four_weeks(memory: Memory) -> None:
    ages_d = (0, 7, 14, 28, 40)
    for age_d in ages_d:
        at = MOMENT - timedelta(days=age_d)
        fact = FactDraft(
            "Tomas", "VISITED", f"city {age_d}", f"Tomas visited city {age_d}.", valid_at=at
        )
        await memory.remember(f"Off to city {age_d}.", facts=[fact], occurred_at=at)

    facts = (await memory.recall("Tomas visited a city", profile="blended", as_of=MOMENT))["facts"]

    assert {hit.text: hit.signals["recency"] for hit in facts} == pytest.approx(
        {
            f"Tomas visited city {age_d}.": signal
            for age_d, signal in zip(ages_d, (1, 0.75, 0.5, 0, 0), strict=True)
        }
    )
    nodes = (await memory.recall("city 7", profile="blended", as_of=MOMENT))["nodes"]
    assert by_name(nodes)["city 7"].signals["recency"] == pytest.approx(0.75, abs=0.001)


async def test_one_weak_hit_of_the_full_text_is_not_a_full_signal(memory: Memory) -> None:
    await memory.remember("Things.", nodes=[NodeDraft("cup"), NodeDraft("plate")])

    cup = by_name(
        (await memory.recall("a cup of something else entirely", profile="blended"))["nodes"]
    )["cup"]

    [weak] = await sources(memory).indexes.text_search("nodes", "cup", 5, None)
    assert 0 < weak.score < WEAK_BM25
    assert cup.signals["bm25"] == pytest.approx(weak.score / WEAK_BM25)
    assert cup.signals["bm25"] < 1


async def test_the_blend_is_the_weighted_mean_of_its_five_signals_with_any_weights(
    chain: Memory,
) -> None:
    anchor = await uuid_of(chain, "crane")
    every = {"dense": 1.0, "bm25": 2.0, "near_center": 3.0, "tags": 4.0, "recency": 5.0}
    for weights in ({}, {"dense": 0.0}, every, {"tags": 0.7}):
        asked = {"profile": "blended", "center": anchor, "weights": weights}

        hits = (
            await chain.recall("the crane at the harbour #water", channels=("nodes",), **asked)
        )["nodes"]

        used = {name: weight for name, weight in {**BLEND, **weights}.items() if weight}
        assert set(by_name(hits)["crane"].signals) == set(used)
        for hit in hits:
            mean = sum(weight * hit.signals.get(name, 0.0) for name, weight in used.items()) / sum(
                used.values()
            )
            assert hit.score == pytest.approx(mean)
        assert [hit.score for hit in hits] == sorted((hit.score for hit in hits), reverse=True)


async def travels(memory: Memory, ages_d: Sequence[int]) -> None:
    for age_d in ages_d:
        at = MOMENT - timedelta(days=age_d)
        text = f"Tomas travels to town {age_d} by train."
        fact = FactDraft("Tomas", "TRAVELS", f"town {age_d}", text, valid_at=at)
        await memory.remember(f"Off to town {age_d}.", facts=[fact], occurred_at=at)


async def test_ambient_recall_damps_facts_by_a_half_life_of_fourteen_days_and_nothing_else_does(
    memory: Memory, tmp_path: Path
) -> None:
    await travels(memory, (0, 14, 28, 140))
    usual, undamped = (
        engine(memory, tmp_path),
        engine(memory, tmp_path, Tuning(freshness_weight=0.0)),
    )

    async def ratios(profile: str) -> dict[str, float]:
        request = RecallRequest(
            "Tomas travels by train", profile=profile, as_of=MOMENT, channels=("facts",)
        )
        plain = {hit.text: hit.score for hit in (await undamped.recall(request))["facts"]}
        return {
            hit.text: hit.score / plain[hit.text] for hit in (await usual.recall(request))["facts"]
        }

    assert await ratios("ambient") == pytest.approx(
        {
            f"Tomas travels to town {age_d} by train.": 0.7 + 0.3 * 2 ** (-age_d / 14)
            for age_d in (0, 14, 28, 140)
        }
    )
    others = [
        one.name for one in Profiles.load(Settings(home=tmp_path)).all() if "facts" in one.channels
    ]
    assert len(others) > 5
    for profile in (*others, "EDGE_HYBRID_SEARCH_RRF"):
        if profile != "ambient":
            assert set((await ratios(profile)).values()) == {1.0}, profile


async def test_undated_facts_are_neutral(memory: Memory) -> None:
    await memory.remember(
        "They met.", facts=[FactDraft("Tomas", "KNOWS", "Mira")], occurred_at=MOMENT
    )
    ends = [await uuid_of(memory, name) for name in ("tomas", "mira")]
    ages_d = (0, 14, 28, None)
    facts = [
        Fact(
            str(uuid4()),
            *ends,
            "MET",
            "They met.",
            MOMENT,
            valid_at=None if age is None else MOMENT - timedelta(age),
        )
        for age in ages_d
    ]
    asked = ask(memory, "they met", as_of=MOMENT)
    await asked.sources.client.save_facts(facts, {})
    await save_facts(asked.sources.journal, facts)
    ids = [fact.uuid for fact in facts]

    factors = await freshness(asked, await outlined(asked, "facts", ids))
    assert [factors[one] for one in ids] == pytest.approx([1.0, 0.85, 0.775, 0.85])
    assert await freshness(asked, await outlined(asked, "facts", ids[3:])) == {ids[3]: 1.0}


async def test_a_pair_is_one_whichever_way_round_and_what_is_passed_over_fills_the_list(
    memory: Memory,
) -> None:
    told = [
        FactDraft("Mira", "TOLD", "Tomas", f"Mira told Tomas about bread {number}.")
        for number in range(2)
    ]
    heard = [
        FactDraft("Tomas", "TOLD", "Mira", f"Tomas told Mira about bread {number}.")
        for number in range(2)
    ]
    others = [FactDraft("Mira", "BAKES", "bread"), FactDraft("Tomas", "EATS", "bread")]
    await memory.remember("About bread.", facts=[*told, *heard, *others], occurred_at=MOMENT)

    hits = (
        await memory.recall("who told whom about bread", profile="ambient", channels=("facts",))
    )["facts"]

    pairs = [frozenset(hit.names or ()) for hit in hits]
    assert set(pairs[:3]) == {
        frozenset(pair) for pair in (("Mira", "Tomas"), ("Mira", "bread"), ("Tomas", "bread"))
    }
    assert pairs[3:] == [frozenset(("Mira", "Tomas"))] * 3
    few = (
        await memory.recall(
            "who told whom about bread", profile="ambient", limit=3, channels=("facts",)
        )
    )["facts"]
    assert [hit.id for hit in few] == [hit.id for hit in hits[:3]]
