"""A data folder that an earlier version wrote (commit 00d652a) opens with everything in it.

``tests/fixtures/home_00d652a.tar.xz`` is that version's ``$PPS_HOME`` after a clean stop: all settings written out, the
entities ``ana`` (turns, facts that changed, records with versions, a merge, anchors, a forgotten turn, a watched
folder), ``shop`` (most of its vectors in Chroma's own files) and ``old`` (archived), a route, a router and tokens.
"""

from __future__ import annotations

import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

from pps.app import App
from pps.config import Settings, load
from pps.core.record_values import RecordQuery
from pps.entities.tokens import Bounds
from pps.memory import Memory
from pps.operations.calls import Caller, Calls
from pps.server import stop
from tests.integration.interfaces.serving import clean_env
from tests.waiting import PATIENCE_S

PACKED = Path(__file__).parents[1] / "fixtures" / "home_00d652a.tar.xz"
LIGHT_OUT = "a832504c-5e8e-58cf-82d8-f5634e690451"
PRIYA = "f25d4c9a-b662-5973-b421-1f5dce2e3c15"


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "home"
    with tarfile.open(PACKED) as packed:
        packed.extractall(folder, filter="data")
    monkeypatch.setenv("PPS_HOME", str(folder))
    return folder


@pytest.fixture
def old_settings(home: Path) -> Settings:
    return load()


def test_its_settings_are_read(old_settings: Settings) -> None:
    assert old_settings.recall.budget_tokens == 1800
    assert old_settings.vectors.in_memory == 200_000
    assert old_settings.jobs.queue_entity == 15_000
    assert old_settings.embedder.name == "minilm"


async def test_all_that_the_registry_held_is_there(old_settings: Settings, home: Path) -> None:
    async with App.open(old_settings) as app:
        assert [entry.entity.name for entry in app.registry.list()] == ["ana", "shop"]
        owner = app.registry.entity_of_token((home / "ana.token").read_text().strip())
        assert owner is not None
        assert owner.name == "ana"
        assert app.registry.bounds_of_token((home / "ana.token").read_text().strip()) == Bounds(
            None, ""
        )
        token = app.registry.issue_token("ana", ["core"], "plan")
        assert app.registry.bounds_of_token(token) == Bounds(frozenset(["core"]), "plan")
        (route,) = app.registry.routes.list()
        assert (route.path, route.entity.name) == ("/tmp/pps-old-home/shop", "shop")  # noqa: S108 - where it was made
        (watched,) = app.registry.watched.list()
        assert watched.entity.name == "ana"
        (router,) = app.registry.routers.list()
        assert router.label == "fixture"


async def test_an_entity_has_all_that_it_knew(old_settings: Settings) -> None:
    async with App.open(old_settings) as app, app.memory("ana") as memory:
        assert await memory.parts.worker.saved(PATIENCE_S)
        stats = await memory.stats()
        assert (stats.turns, stats.nodes, stats.facts, stats.episodes, stats.anchors) == (
            10,
            10,
            7,
            10,
            2,
        )
        assert stats.vector_indexed == {
            "facts": 4, "past_facts": 1, "nodes": 10, "records": 2, "episodes": 10, "windows": 10, "anchors": 2,
        }  # fmt: skip
        assert stats.text_indexed == {**stats.vector_indexed, "records": 0}
        await check_found(memory)
        await check_changed(memory)


async def check_found(memory: Memory) -> None:
    meant = await memory.recall(
        "who comes to care for plants in the cold season?", channels=("episodes",)
    )
    assert "gardener" in meant["episodes"][0].text
    worded = await memory.recall("Siemens", channels=("facts",))
    assert "Tomas" in worded["facts"][0].text
    anchors = await memory.anchor_search("how is sourdough baked?")
    assert anchors[0].id.startswith("rye-loaf#")
    watched = await memory.recall("When did the bees swarm?", channels=("episodes",))
    assert "ninth of June" in watched["episodes"][0].text
    gone = await memory.recall("locker code forgettable-4711")
    assert not any("4711" in hit.text for channel in gone.channels.values() for hit in channel.hits)


async def check_changed(memory: Memory) -> None:
    timeline = await memory.timeline(id="Priya Nair", relation="LIVES_IN")
    assert [fact.text for fact in timeline.facts] == [
        "Priya Nair lives in Lowgate.",
        "Priya Nair lives in Tarn.",
    ]
    assert timeline.facts[0].invalid_at is not None
    versions = await memory.records.history(LIGHT_OUT)
    assert [one.version.number for one in versions] == [3, 2, 1]
    assert "repaired at noon" in versions[0].version.content
    (light,) = await memory.records.get([LIGHT_OUT], titled=True)
    assert (light.title, light.kind, light.version) == ("Light out", "voice", 3)
    assert (light.fields, light.tags) == ({"place": "pier 3"}, ("maintenance",))
    page = await memory.records.list(RecordQuery(kinds=("voice", "ambient", "agent", "manual")))
    assert page.records == (light,)
    (merge,) = await memory.records.merging.merges()
    assert (merge.keep, merge.state) == (PRIYA, "applied")


async def test_vectors_that_were_in_chromas_files_are_found(old_settings: Settings) -> None:
    async with App.open(old_settings) as app, app.memory("shop") as memory:
        stats = await memory.stats()
        assert (stats.turns, stats.vector_indexed["episodes"], stats.vector_indexed["windows"]) == (
            7,
            7,
            7,
        )
        found = await memory.recall("When is the checkout shut?", channels=("episodes",))
        assert "till closes at six" in found["episodes"][0].text
    data = old_settings.home / "entities" / "shop" / "data"
    assert (data / "vectors.db").exists()
    assert not list((data / "chroma").iterdir())


async def test_an_archived_entity_comes_back(old_settings: Settings) -> None:
    async with App.open(old_settings) as app:
        await app.archive("old", undo=True)
        async with app.memory("old") as memory:
            found = await memory.recall("fire in a grain building", channels=("episodes",))
            assert found["episodes"][0].text.endswith("The old mill burned down in 1911.")


def test_doctor_finds_nothing_wrong(home: Path) -> None:
    try:
        for command in (["recall", "ana", "bread"], ["recall", "shop", "jam"], ["doctor"]):
            done = subprocess.run(
                [sys.executable, "-m", "pps", *command],
                env=clean_env(home, PPS_EMBEDDER__NAME="minilm"),
                capture_output=True,
                text=True,
                timeout=120,
                check=False,
            )
            assert done.returncode == 0, done.stdout + done.stderr
        assert all(line.startswith("ok ") for line in done.stdout.splitlines()), done.stdout
    finally:
        stop(home)


@pytest.mark.parametrize(
    "zone",
    [
        "America/Los_Angeles",
        "America/New_York",
        "Europe/Berlin",
        "Asia/Kathmandu",
        "Pacific/Kiritimati",
    ],
)
async def test_its_dates_are_the_same_in_every_zone(home: Path, zone: str) -> None:
    """What it kept as midnight in UTC was a date, and is one; its entities have the zone that is set."""
    settings = load(env={"PPS_HOME": str(home), "PPS_TIME_ZONE": zone})
    async with App.open(settings) as app:
        calls, ana = Calls(app), Caller.of_entity("ana")
        told = await calls.answer(ana, "timeline", {})
        assert told.time_zone == zone
        for line in (
            "Priya Nair lives in Lowgate. (2024-05-01 to 2026-03-02)",
            "Priya Nair lives in Tarn. (since 2026-03-02)",
            "P. Nair signed the flour contract. (since 2026-04-01)",
        ):
            assert line in told.text
        day = {"after": "2026-03-02", "before": "2026-03-03"}
        (moved,) = (await calls.answer(ana, "timeline", day)).data["facts"]  # pyright: ignore
        assert moved["text"] == "Priya Nair lives in Tarn."  # pyright: ignore
        assert moved["valid_at"] == "2026-03-02T00:00:00Z"  # pyright: ignore
        assert moved["valid_at_precision"] == "day"  # pyright: ignore
        for as_of, lives_in in (("2026-03-01T23:59", "Lowgate"), ("2026-03-02T00:00", "Tarn")):
            held = await calls.answer(ana, "timeline", {"as_of": as_of, "relation": "LIVES_IN"})
            texts = [one["text"] for one in held.data["facts"]]  # pyright: ignore
            assert f"Priya Nair lives in {lives_in}." in texts
            assert len([one for one in texts if "Priya" in one]) == 1  # pyright: ignore
