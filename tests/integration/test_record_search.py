"""Records found by meaning and by nearness to an anchor, with a real model; indexes' state; drift."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Literal

import numpy as np
import pytest

from pps.app import App
from pps.config import EmbedderSettings, Settings
from pps.core.errors import InvalidRequest, ModelUnavailable, NotFound
from pps.core.time import now
from pps.core.values import JSON
from pps.ingest import record_vectors as drifting
from pps.memory import Memory
from pps.models.protocols import Matrix
from pps.operations.record_search import RecordHits, drift, record_search
from pps.records.finding import RecordSearch, cut_at_gap
from pps.records.records import Join
from pps.records.saving import RecordGiven, RelationGiven

RECORDS: tuple[tuple[str, str, str, dict[str, JSON]], ...] = (
    (
        "Goal",
        "Run the city marathon",
        "Forty-two kilometres through town before the first frost.",
        {},
    ),
    (
        "Insight",
        "Coffee after four ruins my sleep",
        "Whenever I drink an espresso late, I lie awake.",
        {"confidence": 0.8},
    ),
    (
        "Insight",
        "The choir lifts my mood",
        "On Thursdays after singing everything weighs less.",
        {"confidence": 0.6},
    ),
    ("Task", "Buy trail shoes", "The old pair has no profile left.", {}),
    ("Decision", "No screens in the bedroom", "The phone charges in the hall from now on.", {}),
)


class Scene:
    def __init__(self, app: App, memory: Memory, ids: dict[str, str]) -> None:
        self.app, self.memory, self.ids = app, memory, ids

    async def search(self, query: str, **given: JSON) -> RecordHits:
        return await record_search.act(self.memory, record_search.parse({"query": query, **given}))


async def made(home: Path) -> dict[str, str]:
    async with App.open(Settings(home=home)) as app:
        await app.create("ana", packs=("constitution",))
        async with app.memory("ana") as memory:
            saved = await memory.records.save(
                [RecordGiven(*one, fields=fields) for *one, fields in RECORDS]
            )
            await memory.remember("Espresso is what Ana orders in the harbour café.")
            await memory.records.join(
                [
                    Join("Buy trail shoes", RelationGiven("SERVES", "Run the city marathon")),
                    Join(
                        "Coffee after four ruins my sleep",
                        RelationGiven("TRIGGERS", "No screens in the bedroom"),
                    ),
                ]
            )
            await memory.settled()
            return {one.record.title: one.record.id for one in saved.records}


@pytest.fixture(scope="module")
def found_home(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, str]]:
    """A home with the records, made once."""
    home = tmp_path_factory.mktemp("found") / "home"
    return home, asyncio.run(made(home))


@asynccontextmanager
async def opened(
    found_home: tuple[Path, dict[str, str]], home: Path, drift: Literal["off", "scheduled"] = "off"
) -> AsyncGenerator[Scene]:
    made, ids = found_home
    shutil.copytree(made, home)
    settings = Settings(home=home, embedder=EmbedderSettings(drift=drift))
    async with App.open(settings) as app, app.memory("ana") as memory:
        yield Scene(app, memory, ids)


@pytest.fixture
async def scene(found_home: tuple[Path, dict[str, str]], tmp_path: Path) -> AsyncGenerator[Scene]:
    async with opened(found_home, tmp_path / "home") as scene:
        yield scene


async def test_what_answers_by_meaning_is_found_with_the_models_own_threshold(scene: Scene) -> None:
    found = await scene.search("what keeps me from resting at night?")
    assert found.results[0].title == "Coffee after four ruins my sleep"
    assert found.min_similarity == 0.22
    assert all(one.score == one.semantic >= 0.22 and one.path is None for one in found.results)
    assert found.stats.total_results == len(found.results)
    assert found.stats.avg_score == pytest.approx(
        sum(one.score for one in found.results) / len(found.results), abs=1e-4
    )
    assert found.stats.token_estimate > 0
    first = found.results[0]
    assert (first.type, first.layer, first.status) == ("Insight", "mind", "active")
    assert first.summary == "Whenever I drink an espresso late, I lie awake."


async def test_layers_and_types_bound_a_search_and_what_is_no_record_is_not_found(
    scene: Scene,
) -> None:
    everything = await scene.search("espresso", min_similarity=-1, limit=50)
    assert {one.id for one in everything.results} == set(scene.ids.values())
    minds = await scene.search("espresso", min_similarity=-1, layers=["mind"])
    assert {one.type for one in minds.results} == {"Insight"}
    with pytest.raises(InvalidRequest, match="no kind of this memory's packs"):
        await scene.search("espresso", kinds=["Person"])
    with pytest.raises(InvalidRequest, match="no layer"):
        await scene.search("espresso", layers=["cellar"])
    with pytest.raises(InvalidRequest, match="none of them lies"):
        await scene.search("espresso", layers=["vision"], kinds=["Task"])


async def test_nothing_near_is_nothing_and_its_average_is_null(scene: Scene) -> None:
    found = await scene.search("TypeError: cannot read properties of undefined", min_similarity=0.7)
    assert (found.results, found.stats.total_results, found.stats.avg_score) == ((), 0, None)
    assert "0.70" in record_search.words(found)


async def test_with_an_anchor_nearness_counts_and_the_way_is_told(scene: Scene) -> None:
    goal = scene.ids["Run the city marathon"]
    found = await scene.search(
        "new equipment for my feet", anchor_node_id=goal, include_relationships=True
    )
    first = found.results[0]
    assert first.title == "Buy trail shoes"
    assert first.structural == 1.0
    assert first.score == pytest.approx(0.6 * 1.0 + 0.4 * first.semantic, abs=1e-3)
    assert [(step.relation, step.name) for step in first.path or ()] == [
        ("SERVES", "Buy trail shoes")
    ]
    assert [one.type for one in first.relationships or ()] == ["SERVES"]
    assert goal not in {one.id for one in found.results}
    meaning = await scene.search(
        "sleep", anchor_node_id=goal, structural_weight=0, semantic_weight=1
    )
    assert meaning.results[0].title == "Coffee after four ruins my sleep"
    with pytest.raises(NotFound):
        await scene.search("sleep", anchor_node_id="00000000-0000-4000-8000-000000000000")


@pytest.mark.parametrize("anchor", ["Run the city marathon", ""])
async def test_archived_records_and_the_anchor_itself_are_left_out_unless_asked_for(
    scene: Scene, anchor: str
) -> None:
    old = RecordGiven(
        "Insight", "Espresso at night", "Coffee late costs sleep.", fields={"confidence": 0.5}
    )
    draft = RecordGiven(
        "Insight", "Tea at night", "Tea late costs sleep.", fields={"confidence": 0.5}
    )
    saved = await scene.memory.records.save([old, draft])
    gone, there = (one.record.id for one in saved.records)
    await scene.memory.records.save(
        [RecordGiven(id=gone, status="archived"), RecordGiven(id=there, status="draft")]
    )
    await scene.memory.settled()
    more: dict[str, JSON] = {"anchor_node_id": anchor} if anchor else {}
    found = await scene.search("what I drink late costs sleep", top_k=50, min_similarity=-1, **more)
    ids = {one.id for one in found.results}
    assert there in ids
    assert gone not in ids
    assert not anchor or scene.ids[anchor] not in ids
    found = await scene.search(
        "what I drink late costs sleep", top_k=50, min_similarity=-1, status=["archived"], **more
    )
    assert [one.id for one in found.results] == [gone]


async def test_at_most_the_five_best_are_shown_cut_at_the_largest_gap_and_weak_ones_say_so(
    scene: Scene,
) -> None:
    places = ("kitchen", "hall", "cellar", "attic", "study", "garage", "porch")
    lamps = [
        RecordGiven(
            "Note", f"A lamp for the {place}", "A brass lamp.", fields={"content": "Brass."}
        )
        for place in places
    ]
    await scene.memory.records.save(lamps)
    await scene.memory.settled()
    found = await scene.search("a brass lamp for a room")
    assert 1 <= len(found.results) <= 5
    assert all(one.title.startswith("A lamp") for one in found.results)
    assert not any(one.weak for one in found.results)
    every = await scene.search("a brass lamp for a room", top_k=50, min_similarity=-1)
    scores = [one.score for one in every.results]
    assert len(scores) == len(lamps) + len(scene.ids)
    shown = len(found.results)
    assert shown == min(5, cut_at_gap(scores[:5]))
    weak = await scene.search("who repairs bicycles in the town?")
    assert all(one.weak for one in weak.results)
    assert all("(weak)" in line for line in record_search.words(weak).splitlines() if "  " in line)


def test_falling_scores_are_cut_at_their_largest_clear_gap() -> None:
    assert cut_at_gap([0.9, 0.88, 0.5, 0.48, 0.47]) == 2
    assert cut_at_gap([0.9, 0.7, 0.4]) == 2
    assert cut_at_gap([0.9, 0.4]) == 1
    assert cut_at_gap([0.5, 0.49, 0.45, 0.44]) == 4  # none is clear
    assert cut_at_gap([0.5]) == 1
    assert cut_at_gap([]) == 0


async def test_a_memory_without_a_pack_says_how_it_gets_one(tmp_path: Path) -> None:
    async with App.open(Settings(home=tmp_path)) as app:
        await app.create("ben")
        async with app.memory("ben") as memory:
            with pytest.raises(InvalidRequest, match="pps pack enable"):
                await memory.finding.search(RecordSearch("tea"))


async def test_one_index_is_made_anew_without_the_other(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = await scene.memory.finding.index_status()
    assert before.text["nodes"] == before.vectors["nodes"] >= len(RECORDS)
    assert (before.lag, before.vectors_waiting, before.vectors_failed) == (0, 0, 0)
    with monkeypatch.context() as patch:
        patch.setattr(scene.memory.parts.indexer.records.embedder, "embed_passages", _away)
        await scene.app.reindex("ana", which="text")  # no model is asked
    assert await scene.memory.finding.index_status() == before
    assert before.fields > 0
    assert (await scene.app.reindex("ana", which="fields")).keys() == {"fields"}
    await scene.app.reindex("ana", which="vectors")
    async with scene.app.memory("ana") as memory:
        await memory.settled()
        assert await memory.finding.index_status() == before
    found = await scene.search("what keeps me from resting at night?")
    assert found.results[0].title == "Coffee after four ruins my sleep"


async def test_drift_is_a_change_of_the_cosine_above_a_tenth(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert (await scene.memory.finding.drift()).drifted == ()
    assert (await scene.memory.finding.drift()).compared == len(RECORDS)
    assert (await scene.memory.finding.drift(["P1"])).compared == 1
    _turned(scene, monkeypatch)
    report = await scene.memory.finding.drift()
    assert report.total == len(RECORDS)
    assert all(one.change > 0.1 for one in report.drifted)
    assert "5 records compared, 5 changed" in drift.words(report)


async def test_a_schedule_looks_weekly_and_monthly_and_doctor_tells(
    found_home: tuple[Path, dict[str, str]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with opened(found_home, tmp_path / "off") as scene:
        assert await scene.memory.parts.indexer.drift.step() is None  # off by default
    async with (
        opened(found_home, tmp_path / "on", "scheduled") as scene,
        scene.memory.parts.worker.held(),
    ):
        memory = scene.memory
        await _looked(memory)
        assert not [one for one in (await memory.health()).notes if "drifted" in one]
        moment, (weekly, monthly) = now(), (every for _, every in drifting.EVERY)
        with monkeypatch.context() as patch:
            _turned(scene, patch)
            assert not await _looked(memory)
            patch.setattr(drifting, "now", lambda: moment + monthly)
            assert await _looked(memory)
            notes = (await memory.health()).notes
            assert any(
                "the vectors of 1 records have drifted (such as Run the city marathon)" in one
                for one in notes
            )
            assert any(
                "the vectors of 4 records" in one and "pps drift ana" in one for one in notes
            )
        monkeypatch.setattr(drifting, "now", lambda: moment + monthly + weekly)
        assert await _looked(memory)
        [note] = [one for one in (await memory.health()).notes if "drifted" in one]
        assert "the vectors of 4 records" in note


async def _looked(memory: Memory) -> int:
    """Look at all that is due; return in how many steps."""
    steps = 0
    while await memory.parts.indexer.drift.step() is not None:
        steps += 1
    return steps


def _turned(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the model make other vectors of the same words."""
    embedder = scene.memory.parts.indexer.records.embedder
    assert embedder is not None
    embed = embedder.embed_passages

    def other(texts: Sequence[str]) -> Matrix:
        return np.ascontiguousarray(embed(texts)[:, ::-1])

    monkeypatch.setattr(embedder, "embed_passages", other)


def _away(texts: Sequence[str]) -> Matrix:
    raise ModelUnavailable("away")
