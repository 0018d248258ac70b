"""A recall whose models are late, fail, or are not there: what still answers does, and the rest is said."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from pps.app import App
from pps.config import EmbedderSettings, Settings
from pps.core.errors import ModelUnavailable, StoreUnavailable
from pps.memory import Memory
from pps.models.hash import HashEmbedder
from pps.models.protocols import Fingerprint, Matrix, Reranked, Vector
from pps.recall.channel import NO_EMBEDDER
from pps.recall.profiles import Profiles
from pps.recall.request import RecallRequest
from pps.recall.search import Tuning
from tests.integration.recall_scene import engine, facts_of, play


class Broken:
    """An embedder whose server is away."""

    fingerprint = Fingerprint("some-model", 256, "server")

    def embed_query(self, text: str) -> Vector:
        raise ModelUnavailable("the embedder does not answer; try again")

    def embed_passages(self, texts: Sequence[str]) -> Matrix:
        raise ModelUnavailable("the embedder does not answer; try again")

    def split(self, text: str) -> list[str]:
        return [text]


class Counted(HashEmbedder):
    """An embedder that counts as a model of meaning, and notes which queries it embeds."""

    def __init__(self) -> None:
        super().__init__(256)
        self.queries: list[str] = []

    @property
    def fingerprint(self) -> Fingerprint:
        return Fingerprint("some-model", 256, "mean")

    def embed_query(self, text: str) -> Vector:
        self.queries.append(text)
        return super().embed_query(text)


class Backwards:
    """A reranker that prefers what stands last; it may dawdle, and not look at its deadline."""

    name = "backwards"

    def __init__(self, seconds: float = 0.0, *, heedless: bool = False) -> None:
        self.seconds = seconds
        self.heedless = heedless
        self.read: list[str] = []

    def rerank(self, query: str, passages: Sequence[str], *, deadline_s: float) -> Reranked:
        self.read.extend(passages)
        time.sleep(self.seconds if self.heedless else min(self.seconds, deadline_s))
        late = self.seconds > deadline_s and not self.heedless
        return Reranked(tuple(map(float, range(len(passages)))), complete=not late)


LATE = "cross_encoder left out: the reranker ran out of its {} ms: the fused order stands"


async def test_what_a_reranker_prefers_is_one_more_list_of_the_fusion(
    scene: Memory, tmp_path: Path
) -> None:
    plain = await engine(scene, tmp_path).recall(RecallRequest("Mira", profile="facts"))
    joined = await engine(scene, tmp_path, reranker=Backwards()).recall(
        RecallRequest("Mira", profile="facts")
    )

    weight = (
        Profiles.load(Settings(home=tmp_path))
        .get("facts")
        .channels["facts"]
        .perspectives["cross_encoder"]
    )
    before = {hit.id: hit.score for hit in plain["facts"]}
    ranks = {hit.id: hit.ranks["cross_encoder"] for hit in joined["facts"]}
    assert sorted(ranks.values()) == list(range(1, len(before) + 1))
    assert [hit.score for hit in joined["facts"]] == pytest.approx(
        [before[hit.id] + weight / (5 + ranks[hit.id]) for hit in joined["facts"]]
    )
    assert facts_of(joined) != facts_of(plain)
    assert joined.took_ms["rerank"] > 0


async def test_a_reranker_reads_the_best_thirty_and_of_a_long_turn_the_passage_that_is_meant(
    scene: Memory, tmp_path: Path
) -> None:
    filler = "The committee talked about the budget of the coming year. " * 40
    many = [f"Lighthouse {number} is painted white." for number in range(40)]
    await scene.remember_many(
        [(text, {}) for text in (*many, f"{filler}The lighthouse is red. {filler}")]
    )
    await scene.settled()
    reading = Backwards()
    await engine(scene, tmp_path, reranker=reading).recall(
        RecallRequest("Which lighthouse is red?", profile="episodes")
    )

    assert len(reading.read) == 30
    (long,) = [text for text in reading.read if "committee" in text]
    assert "The lighthouse is red." in long
    assert len(long) < 500


async def test_a_late_reranker_leaves_the_fused_order_and_says_so(
    scene: Memory, tmp_path: Path
) -> None:
    plain = await engine(scene, tmp_path).recall(RecallRequest("Mira", profile="facts"))
    slow = engine(scene, tmp_path, Tuning(rerank_deadline_s=0.05), reranker=Backwards(1.0))
    late = await slow.recall(RecallRequest("Mira", profile="facts"))

    assert facts_of(late) == facts_of(plain)
    assert late.channels["facts"].notes == (LATE.format(50),)


async def test_past_half_a_second_the_order_is_that_of_reciprocal_ranks_whatever_the_reranker_says(
    scene: Memory, tmp_path: Path
) -> None:
    by_ranks = await engine(scene, tmp_path, reranker=None).recall(
        RecallRequest("Mira", profile="facts")
    )
    for late in (Backwards(0.75), Backwards(0.75, heedless=True)):
        found = await engine(scene, tmp_path, reranker=late).recall(
            RecallRequest("Mira", profile="facts")
        )

        assert found["facts"] == by_ranks["facts"]
        assert found.channels["facts"].notes == (LATE.format(500),)
    facts = Profiles.load(Settings(home=tmp_path)).get("facts").channels["facts"]
    assert (facts.fusion, by_ranks.channels["facts"].notes) == ("rrf", ())
    assert len(by_ranks["facts"]) > 1


async def test_a_broken_embedder_is_named_and_text_still_answers(
    scene: Memory, tmp_path: Path
) -> None:
    recalled = await engine(scene, tmp_path, embedder=Broken()).recall(
        RecallRequest("Mira grows roses")
    )

    facts = recalled.channels["facts"]
    assert facts.hits[0].text == "Mira grows roses."
    assert any("dense left out: the embedder does not answer" in note for note in facts.notes)


@pytest.mark.parametrize("model", ["some-model", "all-MiniLM-L6-v2"])
async def test_a_pack_goes_by_words_and_names_while_the_embedder_is_away(
    scene: Memory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, model: str
) -> None:
    monkeypatch.setattr(Broken, "fingerprint", Fingerprint(model, 256, "mean"))
    broken = engine(scene, tmp_path, embedder=Broken())
    near = await broken.recall(
        RecallRequest("When does the bakery of Tomas open?", profile="ambient")
    )
    far = await broken.recall(
        RecallRequest("Why does my regular expression match too much?", profile="ambient")
    )

    assert near.evidence
    shown = {hit.text for hit in near["facts"] if hit.id in near.evidence.shown}
    assert "Tomas opens a bakery in Oslo." in shown
    assert "Mira grows roses." not in shown
    assert far.evidence
    assert far.evidence.level == "nothing"


async def test_what_is_left_when_no_evidence_can_be_had_is_the_answer_itself(
    scene: Memory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def away(*_: object) -> int:
        raise StoreUnavailable("the journal does not answer; try again")

    monkeypatch.setattr(type(scene.parts.journal), "count_turns", away)
    recalled = await engine(scene, tmp_path).recall(
        RecallRequest("Mira grows roses", profile="ambient")
    )

    assert recalled.evidence is None
    assert recalled["facts"][0].text == "Mira grows roses."


async def test_a_channel_in_which_nothing_works_says_why_and_is_not_empty_in_silence(
    scene: Memory, tmp_path: Path
) -> None:
    recalled = await engine(scene, tmp_path, embedder=Broken()).recall(
        RecallRequest("Mira", profile="e1_only")
    )

    assert (
        recalled.channels["facts"].error
        == "model_unavailable: the embedder does not answer; try again"
    )
    assert (recalled["facts"], recalled.notes) == ((), ())


async def test_without_an_embedder_text_and_graph_answer_and_say_so(tmp_path: Path) -> None:
    settings = Settings(home=tmp_path / "bare", embedder=EmbedderSettings(name="none"))
    async with App.open(settings) as app:
        await app.create("ana")
        async with app.memory("ana") as memory:
            await play(memory)
            recalled = await memory.recall("What does Mira drink in the kitchen?")

    assert recalled["facts"][0].text == "Mira drinks black coffee in the kitchen each morning."
    assert all(
        NO_EMBEDDER in recalled.channels[name].notes for name in ("nodes", "facts", "episodes")
    )
    assert recalled["episodes"][0].text.startswith("Mira: Black coffee")


@pytest.mark.parametrize(("profile", "queries"), [("connections", 0), ("facts", 1), ("ambient", 1)])
async def test_the_query_is_embedded_once_and_only_for_a_profile_that_goes_by_meaning(
    scene: Memory, tmp_path: Path, profile: str, queries: int
) -> None:
    embedder = Counted()
    query = "What does Mira grow?"
    recalled = await engine(scene, tmp_path, embedder=embedder).recall(
        RecallRequest(query, profile=profile)
    )
    assert facts_of(recalled)
    assert embedder.queries.count(query) == queries
