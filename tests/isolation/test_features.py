"""Features of other distributions: their rows are one entity's alone, and ``pps verify-isolation`` attacks them."""

from __future__ import annotations

import uuid
from pathlib import Path
from typing import Any

import pytest

from pps.config import Settings
from pps.core.errors import InvalidRequest, NotFound
from pps.operations.maintenance import VerifyInput, verify_isolation
from pps.proof.by_feature import with_features
from pps.proof.verify import verify
from tests.third_party import SOURCE, add_to_path, ask, feature_settings, install, listed, opened

SECRET = "zanzibar-4711"


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return feature_settings(tmp_path / "home")


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = install(tmp_path / "site")
    add_to_path(folder, monkeypatch)
    return folder


async def test_another_entity_reaches_none_of_its_rows(settings: Settings, package: Path) -> None:
    async with opened(settings) as (app, calls):
        made = await ask(calls, "ben", "deadline_add", text=SECRET)
        assert await listed(calls, "ana") == []
        told: list[str] = []
        for id_ in (made["id"], str(uuid.uuid4())):
            with pytest.raises(NotFound) as caught:
                await ask(calls, "ana", "deadline_drop", id=id_)
            told.append(caught.value.message.replace(id_, "ID"))
        assert told[0] == told[1]
        async with app.memory("ana") as ana, app.memory("ben") as ben:
            turn = (await ben.remember("deadline: of Ben")).turn_id
            with pytest.raises(NotFound):
                await ana.tables("deadlines").insert("entries", {"text": "x"}, sources=[turn])
            with pytest.raises(NotFound):
                await ana.forget([made["id"]], dry_run=False)
        assert await listed(calls, "ben") == ["of Ben", SECRET]


async def test_tables_are_reached_by_declared_names_alone(
    settings: Settings, package: Path
) -> None:
    async with opened(settings) as (app, _), app.memory("ana") as memory:
        tables = memory.tables("deadlines")
        for table in ("turns", "entries; DROP TABLE turns", "feature_deadlines__entries"):
            with pytest.raises(InvalidRequest, match="declares no"):
                await tables.select(table)
        with pytest.raises(InvalidRequest, match="declares no"):
            await tables.select("entries", {"content": "x"})
        with pytest.raises(InvalidRequest, match="must be of the type text"):
            await tables.insert("entries", {"text": 5})
        key = "sk-ant-api03-" + "Ab3dEf9hIj" * 9 + "Zz-AAAAAA"
        id_ = await tables.insert("entries", {"text": f"send {key} on Friday"})
        assert key not in str((await tables.get("entries", id_))["text"])
        kept: list[Any] = []
        await tables.change(kept.append)
        with pytest.raises(InvalidRequest, match="after their transaction"):
            kept[0].select("entries")


async def test_verify_isolation_attacks_its_operations(settings: Settings, package: Path) -> None:
    async with opened(settings) as (app, _):
        report = await verify_isolation.act(app, VerifyInput(operations=20), None)
        assert report.ok, report
        assert report.operations["feature"] >= 2


async def test_verify_isolation_finds_a_feature_that_leaks(
    settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same feature, but its list is one for all entities of the process."""
    honest = 'rows = await memory.tables("deadlines").select("entries", order_by="text")'
    leaky = SOURCE.read_text("utf-8").replace(
        honest, f"{honest}\n    _ALL.extend(rows)\n    rows = _ALL"
    )
    leaky = leaky.replace('MARK = "deadline:"', 'MARK = "deadline:"\n_ALL: list = []')
    leaky = leaky.replace(
        'plants=(Attack("deadline_add", {"text": "{mark}"}),)',
        'plants=(Attack("deadline_add", {"text": "{mark}"}), Attack("deadline_list"))',
    )
    add_to_path(install(tmp_path / "site", source=leaky), monkeypatch)
    settings.home.mkdir(parents=True, exist_ok=True)
    report = await with_features(await verify(settings, operations=1), settings)
    assert not report.ok
    assert {one.operation for one in report.leaks} == {"feature: deadlines.deadline_list"}


async def test_switching_a_feature_off_leaves_the_rows_of_each_to_each(
    settings: Settings, package: Path
) -> None:
    async with opened(settings) as (app, calls), app.memory("ana"):
        await ask(calls, "ana", "deadline_add", text="of Ana")
        await ask(calls, "ben", "deadline_add", text=SECRET)
        await app.switch_feature("deadlines", on=False)
        await app.switch_feature("deadlines", on=True)
        assert (await listed(calls, "ana"), await listed(calls, "ben")) == (["of Ana"], [SECRET])
