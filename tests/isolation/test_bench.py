"""A benchmark works in throw-away entities: it finds and changes nothing of the memories of an installation."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest

from benchmarks import lookups, records_data
from benchmarks import scale as scaling
from benchmarks.commands import Wanted, quality
from benchmarks.hooks import HooksWanted, hooks
from benchmarks.measuring import Plan
from benchmarks.perspectives import PerspectivesWanted, perspectives
from benchmarks.records import RecordsWanted, records
from benchmarks.reranking import RerankWanted, reranking
from benchmarks.squad import squad
from benchmarks.timeline import TimelineWanted, timeline
from benchmarks.tune import TuneWanted, tune
from pps.app import App
from pps.config import EmbedderSettings, Settings
from tests.sampling import sized
from tests.tiny_models import TINY

PATIENT = {"PPS_RERANKER__DEADLINE_MS": "60000"}
OWN = "Ana keeps the violet key under the blue stone."


def digest(folder: Path) -> dict[str, str]:
    return {
        str(file.relative_to(folder)): hashlib.sha256(file.read_bytes()).hexdigest()
        for file in sorted(folder.rglob("*"))
        if file.is_file()
    }


def write_data(folder: Path) -> None:
    folder.mkdir()
    turn = {
        "uuid": "e1",
        "group_id": "ana",
        "content": "Ben: The ferry leaves at nine.",
        "valid_at": "2024-01-01",
    }
    asked = {
        "qid": "q1",
        "group_id": "ana",
        "query": "Where is the violet key?",
        "gold_episodes": ["e1"],
    }
    (folder / "episodes.jsonl").write_text(json.dumps(turn) + "\n")
    (folder / "queries.jsonl").write_text(json.dumps({**asked, "category": 1}) + "\n")


@pytest.fixture
async def environment(settings: Settings, tmp_path: Path) -> dict[str, str]:
    """An installation with a memory of its own, and data of a benchmark that asks about it."""
    async with App.open(settings) as app:
        await app.create("ana")
        async with app.memory("ana") as memory:
            await memory.remember(OWN)
    write_data(tmp_path / "data")
    env = {
        "PPS_HOME": str(settings.home),
        "PPS_EMBEDDER__NAME": "hash",
        "PPS_STORE": settings.store,
    }
    env["PPS_BENCH_DATA"] = str(tmp_path / "data")
    if settings.store == "postgresql":
        database = settings.postgresql
        env["PPS_POSTGRESQL__URL"] = database.url.get_secret_value()
        env["PPS_POSTGRESQL__OWNER_URL"] = database.owner_url.get_secret_value()
    if settings.store == "neo4j":
        neo4j = settings.neo4j
        env |= {"NEO4J_URI": neo4j.uri, "NEO4J_USER": neo4j.user, "NEO4J_DATABASE": neo4j.database}
        env["NEO4J_PASSWORD"] = neo4j.password.get_secret_value()
    return env


async def still_as_it_was(settings: Settings) -> bool:
    async with App.open(settings) as app:
        names = [entry.entity.name for entry in app.registry.list()]
        async with app.memory("ana") as memory:
            stats = await memory.stats()
            found = (await memory.recall("violet key"))["episodes"]
        return (names, stats.turns, found[0].text.endswith(OWN)) == (["ana"], 1, True)


async def test_bench_quality_sees_and_changes_nothing_of_the_memories_that_are_there(
    settings: Settings, environment: dict[str, str], tmp_path: Path
) -> None:
    before, answers = digest(settings.home), tmp_path / "answers.jsonl"

    beside = "bm25" if settings.store == "embedded" else "graphiti"  # which is not measured there
    found = await quality(
        Wanted(plan=Plan(against=(beside,)), answers=answers), environment, lambda *_: None
    )

    assert found["data"][0]["turns"] == 1
    lines = [json.loads(line) for line in answers.read_text().splitlines()]
    assert {turn for line in lines for turn in line["turns"]} <= {"e1"}
    assert digest(settings.home) == before
    assert await still_as_it_was(settings)


async def test_bench_tune_sees_and_changes_nothing_of_the_memories_that_are_there(
    settings: Settings, environment: dict[str, str], tmp_path: Path
) -> None:
    before = digest(settings.home)

    found = await tune(TuneWanted(data=(str(tmp_path / "data"),) * 2), environment, lambda *_: None)

    # The one question is about what only the other memory knows: its one turn is all there is to find.
    assert found["now"]["R@10"] == found["check"]["asked"]["R@10"] == 100.0
    assert (found["recommended"], found["written"]) == (False, None)
    assert digest(settings.home) == before
    assert await still_as_it_was(settings)


async def test_bench_perspectives_sees_and_changes_nothing_of_the_memories_that_are_there(
    settings: Settings, environment: dict[str, str]
) -> None:
    before = digest(settings.home)

    found = await perspectives(PerspectivesWanted((), "default"), environment, lambda *_: None)

    assert found["data"]["data"]["turns"] == 1
    assert all(one["R@10"] == 100.0 for one in found["data"]["data"]["profiles"].values())
    assert digest(settings.home) == before
    assert await still_as_it_was(settings)


async def test_bench_scale_sees_and_changes_nothing_of_the_memories_that_are_there(
    tmp_path: Path,
) -> None:
    home = tmp_path / "home"
    settings = Settings(home=home, embedder=EmbedderSettings(name="hash"))
    async with App.open(settings) as app:
        await app.create("import_turns_alone")  # the name that the benchmark gives one of its own
        async with app.memory("import_turns_alone") as memory:
            await memory.remember(OWN)
    before = digest(home)
    env = {"PPS_HOME": str(home), "PPS_EMBEDDER__NAME": "hash"}
    plan = scaling.Plan(only=("import",), turns=20)
    found = await scaling.scale(plan, "embedded", env, lambda *_: None)
    assert found["import"]["turns_alone"]["texts"] > 20
    assert digest(home) == before


async def test_bench_hooks_sees_and_changes_nothing_of_the_memories_that_are_there(
    settings: Settings, environment: dict[str, str]
) -> None:
    before = digest(settings.home)

    found = await hooks(HooksWanted(facts=8, prompts=2), environment, lambda *_: None)

    assert (found["facts"], found["given"]) == (8, 2)
    assert digest(settings.home) == before
    assert await still_as_it_was(settings)


async def test_bench_timeline_sees_and_changes_nothing_of_the_memories_that_are_there(
    settings: Settings, environment: dict[str, str]
) -> None:
    before = digest(settings.home)

    found = await timeline(TimelineWanted(generated=60, questions=20), environment, lambda *_: None)

    assert (found["events"], found["questions"], found["exact"]) == (60, 20, 20)
    assert digest(settings.home) == before
    assert await still_as_it_was(settings)


async def test_bench_records_sees_and_changes_nothing_of_the_memories_that_are_there(
    settings: Settings, environment: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    before = digest(settings.home)
    topics = records_data.topics()
    monkeypatch.setattr(records_data, "topics", lambda: topics[: sized(4, len(topics))])

    found = await records(RecordsWanted(sizes=(45,), calls=2), environment, lambda *_: None)

    assert "45" in json.dumps(found)
    assert digest(settings.home) == before
    assert await still_as_it_was(settings)


@pytest.mark.torch
async def test_bench_rerank_sees_and_changes_nothing_of_the_memories_that_are_there(
    settings: Settings, environment: dict[str, str]
) -> None:
    before = digest(settings.home)

    found = await reranking(
        RerankWanted(facts=8, calls=2, shape=TINY), {**environment, **PATIENT}, lambda *_: None
    )

    assert (found["facts"], found["candidates"], found["fell_back"]) == (8, 30, 0)
    assert digest(settings.home) == before
    assert await still_as_it_was(settings)


async def test_bench_squad_sees_and_changes_nothing_of_the_memories_that_are_there(
    settings: Settings, environment: dict[str, str]
) -> None:
    before = digest(settings.home)

    found = await squad(environment, None, lambda *_: None, flows=("second",))

    assert sum(one["ways"]["PPS"]["found"] for one in found["tasks"]) >= 2
    assert digest(settings.home) == before
    assert await still_as_it_was(settings)


async def test_bench_lookups_sees_and_changes_nothing_of_the_memories_that_are_there(
    settings: Settings, environment: dict[str, str]
) -> None:
    before = digest(settings.home)

    found = await lookups.large(60, environment, None, lambda *_: None, calls=1)

    asked = found["perspectives"]
    assert len(asked) == 12
    assert all(asked[name]["found"] for name in ("dense", "bm25", "code", "trigrams"))
    assert found["bytes_a_turn"]["vectors"] > found["bytes_a_turn"]["trigrams"] > 0
    assert "| vectors and period | 1 |" in lookups.page(found, "lookups")
    assert digest(settings.home) == before
    assert await still_as_it_was(settings)
