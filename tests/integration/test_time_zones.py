"""Time is the person's: entities of five zones in one process, at the edges of a day and in the nights of a clock change."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest

from pps.app import App
from pps.config import Settings
from pps.core.errors import ConfigError, InvalidRequest
from pps.core.time import CoarseTime, coarse, coarse_text, plain, precision_of
from pps.core.values import JSON, FactDraft, Turn
from pps.entities.own import own_settings
from pps.entities.routing import Router
from pps.ingest.importing.run import Wanted
from pps.journal.filters import ItemFilter
from pps.memory import Memory
from pps.operations.calls import Caller, Calls
from tests.waiting import PATIENCE_S

ZONES = {
    "ana": "America/Los_Angeles",
    "ben": "America/New_York",
    "cleo": "Europe/Berlin",
    "dev": "Asia/Kathmandu",
    "emi": "Pacific/Kiritimati",
}


@pytest.fixture
async def house(app: App) -> App:
    """Five entities, each in a zone of its own, open in one process."""
    for name, zone in ZONES.items():
        await app.create(name, time_zone=zone)
    return app


async def ask(
    app: App, name: str, operation: str, **arguments: JSON
) -> tuple[Mapping[str, JSON], str]:
    """Do an operation as an entity's client over the wire does; return its data and its text."""
    answer = await Calls(app).answer(Caller.of_entity(name), operation, arguments)
    return answer.data, answer.text


async def facts(app: App, name: str, **options: JSON) -> dict[str, tuple[str, str | None]]:
    """Return the text of each fact of a timeline → its time and precision."""
    data, _ = await ask(app, name, "timeline", **options)
    return {one["text"]: (one["valid_at"], one.get("valid_at_precision")) for one in data["facts"]}  # pyright: ignore


@pytest.mark.parametrize("clock", ["00:05", "08:00", "23:55"])
async def test_relative_words_of_turns_are_days_of_each_entity(house: App, clock: str) -> None:
    for name, zone in ZONES.items():
        at = datetime.fromisoformat(f"2026-06-01T{clock}").replace(tzinfo=ZoneInfo(zone))
        for text in ("I moved to Austin yesterday.", "I started working at Acme last month."):
            await ask(
                house, name, "remember", content=text, occurred_at=at.astimezone(UTC).isoformat()
            )
        dated = await facts(house, name)
        assert dated["I moved to Austin yesterday."] == ("2026-05-31T00:00:00Z", "day"), zone
        assert dated["I started working at Acme last month."] == ("2026-05-01T00:00:00Z", "month")


@pytest.mark.parametrize("name", ZONES)
async def test_a_time_without_a_zone_is_the_entitys_in_every_operation(
    house: App, name: str
) -> None:
    zone = ZoneInfo(ZONES[name])
    local = datetime(2026, 6, 1, 21, 30)  # noqa: DTZ001 - on purpose
    instant = local.replace(tzinfo=zone).astimezone(UTC)
    receipt, _ = await ask(
        house,
        name,
        "remember",
        content="The roof leaks.",
        occurred_at="2026-06-01T21:30",
        facts=[
            {"subject": "Roof", "relation": "IS", "object": "leaky", "valid_at": "2026-06-01T20:00"}
        ],
    )
    async with house.memory(name) as memory:
        told = await memory.remember("The gutter is new.", occurred_at=local)
        facts = [FactDraft("Gutter", "IS", "new", valid_at=local)]
        await memory.remember("The gutter is new, I said.", facts=facts)
        for turn in await memory.get([str(receipt["turn_id"]), told.turn_id]):
            assert isinstance(turn, Turn)
            assert (turn.occurred_at, turn.utc_offset_s) == (instant, None)
        found = await memory.recall(
            "gutter", filters=ItemFilter(since=local, until=local + timedelta(minutes=1))
        )
        assert found["episodes"]
        assert (await memory.timeline(as_of=local - timedelta(hours=2))).facts == ()
        (roof,) = (await memory.timeline(as_of=local - timedelta(hours=1))).facts
        assert roof.valid_at == instant - timedelta(minutes=90)


@pytest.mark.parametrize("name", ZONES)
async def test_during_finds_what_is_shown_on_that_day_and_nothing_else(
    house: App, name: str
) -> None:
    for clock in ("2026-03-09T23:59", "2026-03-10T00:00", "2026-03-10T23:30", "2026-03-11T00:00"):
        await ask(house, name, "remember", content=f"Note of {clock}.", occurred_at=clock)
    await ask(house, name, "remember", content="Note of a date.", occurred_at="2026-03-10")
    for asked in (
        {"during": "March 10 2026"},
        {"during": "2026-03-10"},
        {"filters": {"since": "2026-03-10", "until": "2026-03-11"}},
        {"filters": {"since": "2026-03-10T00:00", "until": "2026-03-11T00:00"}},
    ):
        data, text = await ask(house, name, "recall", query="note", channels=["episodes"], **asked)  # pyright: ignore
        hits = data["channels"]["episodes"]["hits"]  # pyright: ignore
        assert sorted(one["text"].removeprefix("user: ") for one in hits) == [  # pyright: ignore
            "Note of 2026-03-10T00:00.",
            "Note of 2026-03-10T23:30.",
            "Note of a date.",
        ], asked
        for shown in ("2026-03-10 00:00)", "2026-03-10 23:30)", " 2026-03-10)"):
            assert shown in text


@pytest.mark.parametrize(
    ("name", "day"),
    [
        ("cleo", "2026-03-29"),
        ("cleo", "2026-10-25"),
        ("ben", "2026-03-08"),
        ("ben", "2026-11-01"),
    ],
)
async def test_the_day_of_a_clock_change_is_whole(house: App, name: str, day: str) -> None:
    zone, first = ZoneInfo(ZONES[name]), date.fromisoformat(day)
    midnight = datetime.combine(first, datetime.min.time(), zone)
    after = datetime.combine(first + timedelta(days=1), datetime.min.time(), zone).astimezone(UTC)
    moments = {
        "before": midnight.astimezone(UTC) - timedelta(seconds=1),
        "first": midnight.astimezone(UTC),
        "last": after - timedelta(seconds=1),
        "after": after,
    }
    for text, at in moments.items():
        await ask(house, name, "remember", content=f"Note {text}.", occurred_at=at.isoformat())
    data, _ = await ask(house, name, "recall", query="note", channels=["episodes"], during=day)
    hits = data["channels"]["episodes"]["hits"]  # pyright: ignore
    assert sorted(one["text"].removeprefix("user: ") for one in hits) == [
        "Note first.",
        "Note last.",
    ]  # pyright: ignore


@pytest.mark.parametrize("name", ZONES)
async def test_what_begins_today_holds_from_midnight_of_the_person(house: App, name: str) -> None:
    now = datetime.now(ZoneInfo(ZONES[name]))
    if (
        now.date() != (now + timedelta(minutes=5)).date()
    ):  # pragma: no cover - the test ran at midnight
        now += timedelta(minutes=5)
    async with house.memory(name) as memory:
        await memory.remember("I moved to Oslo today.", occurred_at=now)
        (fact,) = (await memory.timeline()).facts
        assert fact.valid_at == plain(coarse(now.date()))
        assert [one.uuid for one in (await memory.timeline(as_of=now)).facts] == [fact.uuid]
        found = await memory.recall("Oslo", filters=ItemFilter(relations=("LIVES_IN",)))
        assert [one.id for one in found["facts"]] == [fact.uuid]
        yesterday = now - timedelta(days=1)
        assert (await memory.timeline(as_of=yesterday)).facts == ()


@pytest.mark.parametrize("name", ZONES)
async def test_a_pack_states_the_persons_time_and_days(house: App, name: str) -> None:
    zone = ZoneInfo(ZONES[name])
    await ask(
        house, name, "remember", content="The kettle is blue.", occurred_at="2026-06-01T23:50"
    )
    for number in range(12):  # a pack of little has no clock
        text = f"Of the kettles that were looked at in the end, number {number} was by far the loudest."
        await ask(house, name, "remember", content=text, occurred_at="2026-05-30T12:00")
    before = datetime.now(zone)
    async with house.memory(name) as memory:
        pack = await memory.ambient_recall("kettle", mode="startup")
    after = datetime.now(zone)
    stated = {
        f"Now: {at:%A %Y-%m-%d %H:%M} in {zone.key} (UTC{at.isoformat()[-6:]})."
        for at in (before, after)
    }
    assert any(one in pack.text for one in stated), pack.text
    assert "2026-06-01 user: The kettle is blue." in pack.text


async def test_a_dates_day_is_the_same_on_every_surface_and_in_every_zone(house: App) -> None:
    for name in ZONES:
        await ask(
            house,
            name,
            "remember",
            content="Wedding.",
            occurred_at="2026-06-21",
            facts=[
                {"subject": "Wedding", "relation": "ON", "object": "a day", "text": "Day.", "valid_at": "2026-06-21"},
                {"subject": "Wedding", "relation": "IN", "object": "June", "text": "Month.", "valid_at": "2026-06"},
                {"subject": "Wedding", "relation": "IN", "object": "2026", "text": "Year.", "valid_at": "2026"},
            ],
        )  # fmt: skip
        assert await facts(house, name) == {
            "Day.": ("2026-06-21T00:00:00Z", "day"),
            "Month.": ("2026-06-01T00:00:00Z", "month"),
            "Year.": ("2026-01-01T00:00:00Z", "year"),
        }
        _, text = await ask(house, name, "timeline")
        assert "Day. (since 2026-06-21) [" in text
        assert "Month. (since 2026-06) [" in text
        assert "Year. (since 2026) [" in text
        async with house.memory(name) as memory:
            pack = await memory.ambient_recall("wedding", mode="startup")
            assert "2026-06-21 user: Wedding." in pack.text
            assert "Month. (since 2026-06)" in pack.text


async def test_an_instant_at_midnight_in_utc_stays_an_instant(house: App) -> None:
    """It is 05:45 in Kathmandu."""
    at = "2026-06-21T00:00:00Z"
    fact = {"subject": "Bus", "relation": "LEFT", "object": "Stop", "text": "Gone.", "valid_at": at}
    await ask(house, "dev", "remember", content="The bus left.", occurred_at=at, facts=[fact])
    assert await facts(house, "dev") == {"Gone.": (at, None)}
    async with house.memory("dev") as memory:
        (turn,) = (await memory.graph.said()).turns
        assert precision_of(turn.turn.occurred_at) == "instant"
        (read,) = (await memory.timeline()).facts
        assert read.valid_at is not None
        assert precision_of(read.valid_at) == "instant"


async def test_the_offset_of_a_turn_is_kept_and_read(house: App) -> None:
    """21:30 on 1 June in Chicago is 2 June in Kiritimati."""
    said = "2026-06-01T21:30:00-05:00"
    receipt, _ = await ask(
        house, "emi", "remember", content="I moved to Austin yesterday.", occurred_at=said
    )
    assert await facts(house, "emi") == {
        "I moved to Austin yesterday.": ("2026-05-31T00:00:00Z", "day")
    }
    data, _ = await ask(house, "emi", "get", ids=[receipt["turn_id"]])
    (turn,) = data["items"]  # pyright: ignore
    assert (turn["occurred_at"], turn["utc_offset_s"]) == ("2026-06-02T02:30:00Z", -18_000)  # pyright: ignore


async def test_no_zone_reaches_another_entity(house: App) -> None:
    """The same calls, one entity's between another's: each gets its own day, and a change of one moves no other."""
    at = "2026-06-01T09:00:00Z"  # 1 June in Los Angeles at 2 in the morning, and in Kiritimati at 23:00
    for name in ZONES:
        await ask(house, name, "remember", content="I moved to Austin today.", occurred_at=at)
    late = "2026-06-01T11:00:00Z"  # 2 June in Kiritimati alone
    for name in reversed(ZONES):
        await ask(house, name, "remember", content="I moved to Bonn today.", occurred_at=late)
    for name, zone in ZONES.items():
        dated = await facts(house, name)
        assert dated["I moved to Austin today."][0][:10] == "2026-06-01", zone
        day = "2026-06-02" if name == "emi" else "2026-06-01"
        assert dated["I moved to Bonn today."][0][:10] == day, zone
        data, _ = await ask(
            house, name, "recall", query="moved", channels=["episodes"], during="2026-06-02"
        )
        hits = data["channels"]["episodes"]["hits"]  # pyright: ignore
        assert len(hits) == (1 if name == "emi" else 0), zone


async def test_an_export_keeps_offsets_and_precisions(house: App, tmp_path: Path) -> None:
    file = tmp_path / "out.jsonl"
    texts = {
        "Offset.": "2026-06-01T21:30:00-05:00",
        "Date.": "2026-06-01",
        "Midnight.": "2026-06-01T00:00:00Z",
        "Local.": "2026-06-01T12:00",
    }
    for text, at in texts.items():
        fact = {
            "subject": text,
            "relation": "IS",
            "object": "said",
            "text": f"Of {text}",
            "valid_at": at,
        }
        month = {
            "subject": text,
            "relation": "IN",
            "object": "June",
            "text": f"In {text}",
            "valid_at": "2026-06",
        }
        await ask(house, "cleo", "remember", content=text, occurred_at=at, facts=[fact, month])
    async with house.memory("cleo") as source, house.memory("emi") as target:
        await source.documents.export(file)
        lines = [json.loads(line) for line in file.read_text().splitlines()]
        said = {line["content"]: line["occurred_at"] for line in lines if line.get("session")}
        assert said["Offset."] == "2026-06-01T21:30:00.000000-05:00"
        assert said["Date."] == "2026-06-01"
        await target.documents.import_files(Wanted([file]))
        assert await target.settled(PATIENCE_S)
        told = [one.turn for one in (await target.graph.said()).turns]
        kept = {
            one.content: (one.occurred_at, precision_of(one.occurred_at), one.utc_offset_s)
            for one in told
        }
        known = [one.turn for one in (await source.graph.said()).turns]
        assert kept == {
            one.content: (one.occurred_at, precision_of(one.occurred_at), one.utc_offset_s)
            for one in known
        }
        assert await facts(house, "emi") == await facts(house, "cleo")


async def test_an_export_of_before_precisions_keeps_its_dates(house: App, tmp_path: Path) -> None:
    file = tmp_path / "old.jsonl"
    old = {
        "content": "Old.",
        "occurred_at": "2026-06-01T00:00:00.000000Z",
        "facts": [
            {
                "subject": "A",
                "relation": "IS",
                "object": "B",
                "valid_at": "2026-05-01T00:00:00.000000Z",
            }
        ],
    }
    file.write_text(json.dumps(old))
    async with house.memory("ana") as memory:
        await memory.documents.import_files(Wanted([file]))
        assert await memory.settled(PATIENCE_S)
        (said,) = (await memory.graph.said()).turns
        assert coarse_text(said.turn.occurred_at) == "2026-06-01"
        (fact,) = (await memory.timeline()).facts
        assert isinstance(fact.valid_at, CoarseTime)


async def test_precisions_outlive_forgetting_and_a_new_graph(house: App) -> None:
    async with house.memory("ana") as memory:
        drafts = [FactDraft("A", "IS", "B", "In May.", valid_at=coarse(date(2026, 5, 1), "month"))]
        receipt = await memory.remember("Said.", facts=drafts, occurred_at=coarse(date(2026, 6, 1)))
        gone = await memory.forgetting.forget([receipt.turn_id], dry_run=False, soft=True)
        assert gone
        (entry,) = await memory.forgetting.list()
        await memory.forgetting.restore(entry.id)
        (turn,) = await memory.get([receipt.turn_id])
        assert isinstance(turn, Turn)
        assert coarse_text(turn.occurred_at) == "2026-06-01"
        (fact,) = (await memory.timeline()).facts
        assert coarse_text(fact.valid_at or turn.occurred_at) == "2026-05"


async def test_the_zone_of_a_new_entity_is_written_down(app: App) -> None:
    await app.create("ana", time_zone="Asia/Tokyo")
    await app.create("ben")
    folders = {name: app.registry.get(name).folder for name in ("ana", "ben")}
    assert own_settings(folders["ana"]).time_zone == "Asia/Tokyo"
    assert own_settings(folders["ben"]).time_zone is None
    async with app.memory("ana") as ana, app.memory("ben") as ben:
        assert str(ana.zone) == "Asia/Tokyo"
        assert ben.zone is UTC


@pytest.mark.parametrize(
    ("wrong", "near"),
    [
        ("Europe/Berlyn", "Europe/Berlin"),
        ("berlin", "Europe/Berlin"),
        ("asia/tokyo", "Asia/Tokyo"),
        ("America/Los Angeles", "America/Los_Angeles"),
        ("Kathmandu", "Asia/Kathmandu"),
    ],
)
async def test_an_unknown_zone_names_the_field_and_the_nearest(
    app: App, wrong: str, near: str
) -> None:
    with pytest.raises(InvalidRequest, match=rf"time_zone: .*did you mean '{near}'") as caught:
        await app.create("ana", time_zone=wrong)
    assert caught.value.field == "time_zone"
    assert app.registry.list() == []


async def test_a_wrong_zone_in_the_file_of_an_entity_is_named(app: App) -> None:
    folder = (await app.create("ana", time_zone="Asia/Tokyo")).folder
    await app.close_all()
    card = folder / "entity.toml"
    card.write_text(card.read_text().replace("Asia/Tokyo", "Asia/Tokio"))
    with pytest.raises(ConfigError, match=r"time_zone: .*did you mean 'Asia/Tokyo'"):
        async with app.memory("ana"):
            pass


async def test_the_setting_holds_where_an_entity_names_none(tmp_path: Path) -> None:
    settings = Settings.model_validate(
        {"home": tmp_path / "home", "embedder": {"name": "hash"}, "time_zone": "Asia/Kathmandu"}
    )
    async with App.open(settings) as app:
        folder = (await app.create("ana")).folder
        assert own_settings(folder).time_zone == "Asia/Kathmandu", (
            "a later setting does not move it"
        )
        await app.close_all()
        card = folder / "entity.toml"
        card.write_text(card.read_text().replace("time_zone = ", "# time_zone = "))
        async with app.memory("ana") as memory:
            assert str(memory.zone) == "Asia/Kathmandu"


async def test_the_calendar_falls_back_on_the_entitys_zone(app: App) -> None:
    folder = (await app.create("ana", time_zone="Asia/Tokyo")).folder
    async with app.memory("ana") as memory:
        assert zone_of_workload(memory) == "Asia/Tokyo"
    await app.close_all()
    card = folder / "entity.toml"
    card.write_text(card.read_text() + '\n[calendar]\ntime_zone = "UTC"\n')
    async with app.memory("ana") as memory:
        assert zone_of_workload(memory) == "UTC", "what somebody set stays"


def zone_of_workload(memory: Memory) -> str:
    return memory.layers.calendars.zone.key


async def test_a_project_reads_times_in_the_zone_of_its_own_entity(
    app: App, tmp_path: Path
) -> None:
    """The tool does not know whose memory it is until it has found it: its times stay as they were given."""
    folder = tmp_path / "site"
    folder.mkdir()
    await app.create("ana", time_zone="Pacific/Kiritimati")
    app.registry.routes.add(str(folder), "ana")
    caller = Caller.of_router(Router("test", (str(tmp_path),), may_create=True))
    event = {"project_path": str(folder), "content": "The gate is green.", "title": "Gate"}
    await Calls(app).answer(caller, "add_event", {**event, "timestamp": "2026-06-02T00:30"})
    for since, titles in (("2026-06-02T00:00", ["Gate"]), ("2026-06-02T01:00", [])):
        asked = {"project": str(folder), "query": "gate", "filters": {"since": since}}
        answer = await Calls(app).answer(caller, "search_nodes", asked)  # pyright: ignore
        assert [one["title"] for one in answer.data["results"]] == titles  # pyright: ignore
