"""The features that PPS ships: declared in pyproject.toml, on at first, and each switched off without losing data."""

from __future__ import annotations

import tomllib
from collections.abc import AsyncIterator
from datetime import timedelta
from importlib.metadata import distribution
from pathlib import Path

import pytest

from pps.app import App
from pps.config import EmbedderSettings, Settings
from pps.config.feature_points import FEATURES_GROUP, shipped_feature_points
from pps.config.settings import CalendarSettings
from pps.core.errors import InvalidRequest, NotFound
from pps.core.time import now
from pps.features.calendar import ics_child
from pps.operations.calls import Caller, Calls
from pps.operations.catalog import OPERATIONS
from tests.squads import team_of_three
from tests.third_party import ask

ROOT = Path(__file__).parents[3]


@pytest.fixture
async def app(tmp_path: Path) -> AsyncIterator[App]:
    today = now().strftime("%Y%m%d")
    (tmp_path / "work.ics").write_text(
        "BEGIN:VCALENDAR\r\nVERSION:2.0\r\nPRODID:-//t//EN\r\nBEGIN:VEVENT\r\nUID:1\r\n"
        f"DTSTAMP:{today}T000000Z\r\nDTSTART:{today}T090000Z\r\nDTEND:{today}T120000Z\r\n"
        "SUMMARY:Planning\r\nEND:VEVENT\r\nEND:VCALENDAR\r\n"
    )
    settings = Settings(
        home=tmp_path / "home",
        store="embedded",
        embedder=EmbedderSettings(name="hash"),
        calendar=CalendarSettings(files=(tmp_path / "work.ics",)),
    )
    async with App.open(settings) as opened:
        await opened.create("ana")
        yield opened


def test_they_are_declared_once_and_found_in_a_checkout_and_in_a_wheel() -> None:
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["entry-points"]
    assert {one.name: one.target for one in shipped_feature_points()} == declared[FEATURES_GROUP]
    installed = {
        one.name: one.value for one in distribution("pps").entry_points.select(group=FEATURES_GROUP)
    }
    # The metadata of an editable install is of the day on which it was made; a checkout reads the file itself.
    assert installed == declared[FEATURES_GROUP] or (ROOT / "pyproject.toml").exists()


def test_all_are_on_and_can_be_used(app: App) -> None:
    assert [one.name for one in app.features.enabled()] == [
        one.name for one in shipped_feature_points()
    ]
    assert [one.problem for one in app.features.installed()] == [""] * len(app.features.installed())


@pytest.mark.parametrize("name", [one.name for one in shipped_feature_points()])
async def test_switched_off_its_operations_are_hidden_and_the_others_are_not(
    app: App, name: str
) -> None:
    calls = Calls(app)
    feature = app.features.find(name).feature
    assert feature is not None
    assert calls.table == OPERATIONS
    await app.switch_feature(name, on=False)
    assert calls.table == tuple(one for one in OPERATIONS if one not in feature.operations())
    await app.switch_feature(name, on=True)
    assert calls.table == OPERATIONS


async def test_without_the_calendar_no_event_counts(
    app: App, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ics_child, "READ_S", 300.0)  # a busy machine is not a defect
    calls = Calls(app)
    day = {
        "start_date": now().date().isoformat(),
        "end_date": (now().date() + timedelta(days=1)).isoformat(),
    }
    full = await ask(calls, "ana", "workload_assess", **day)
    assert full["days"][0]["calendar_hours"] == 3
    await app.switch_feature("calendar", on=False)
    with pytest.raises(InvalidRequest, match="none of that name"):
        await ask(calls, "ana", "workload_assess", **day)
    context = await ask(calls, "ana", "session_context")
    assert context["workload"]["days"][0]["calendar_hours"] == 0
    await app.switch_feature("calendar", on=True)
    assert (await ask(calls, "ana", "workload_assess", **day)) == full


async def test_with_squads_off_a_member_still_erases_its_copies_in_the_pool(app: App) -> None:
    team = await team_of_three(app)
    research = {"type": "Research", "fields": {"topic": "spices", "findings": "Cloves."}}
    kept = await team.store("mongke", "Zanzibar exports cloves.", confidence=0.9, **research)
    assert "Zanzibar" in await team.pool_text()
    await app.switch_feature("squad", on=False)
    offered = await team.calls.operations(team.caller("mongke"))
    assert "memory_store" not in offered
    assert "recall" in offered
    with pytest.raises(InvalidRequest, match="none of that name"):
        await team.ask("mongke", "squad_inbox")
    await team.ask("mongke", "forget", ids=[kept["id"]], dry_run=False)
    assert "Zanzibar" not in await team.pool_text()
    await app.switch_feature("squad", on=True)
    assert "memory_store" in await team.calls.operations(team.caller("mongke"))


async def test_with_projects_off_a_router_is_offered_nothing(app: App) -> None:
    calls = Calls(app)
    router = Caller(("router", "runner"))
    assert "create_graph" in await calls.operations(router)
    await app.switch_feature("projects", on=False)
    assert await calls.operations(router) == {}
    assert "recall" in await calls.operations(Caller.of_entity("ana"))


async def test_without_topics_packs_have_no_sections_of_theirs(app: App) -> None:
    calls = Calls(app)
    async with app.memory("ana") as memory:
        for session in ("morning", "evening"):
            for grain in ("rye", "wheat", "oat"):
                await memory.remember(f"Ana bakes {grain} bread in the {session}.", session=session)
        await memory.settled()
        pack = await memory.sessions.inject("Ana bakes", 2_000, "morning")
        assert "badges" in pack.sections
        await app.switch_feature("topics", on=False)
        with pytest.raises(NotFound):
            memory.topics  # noqa: B018 - looking at it is what is tried
        with pytest.raises(InvalidRequest, match="none of that name"):
            await ask(calls, "ana", "get_topic_portfolio")
        pack = await memory.sessions.inject("Ana bakes", 2_000, "evening")
        assert "rye bread" in pack.text
        assert not {"topics", "alerts", "explored", "badges"} & {*pack.sections}
        await app.switch_feature("topics", on=True)
        assert (await memory.topics.portfolio()).topics is not None
