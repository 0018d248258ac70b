"""A pack of one's own: its records, its layers in filters, and what becomes of records when it changes."""

from __future__ import annotations

from pathlib import Path

import pytest

from pps.app import App
from pps.config import Settings
from pps.core.errors import ConfigError, InvalidRequest
from pps.core.packs import Kinds
from pps.core.records import RecordQuery
from pps.journal.filters import ItemFilter
from pps.operations.maintenance import doctor
from pps.operations.schema import schema_inventory
from pps.records.saving import RecordGiven

FIRST = """
name = "garden"
version = 1
[layers.ground]
load = "always"
[lifecycles.growth]
start = "seed"
moves = { seed = ["grown"], grown = [] }
[kinds.Plant]
layer = "ground"
lifecycle = "growth"
fields.light = { enum = ["sun", "shade"] }
fields.colour = {}
[kinds.Tool]
fields.maker = {}
"""
CHANGED = """
name = "garden"
version = 2
[layers.ground]
[kinds.Plant]
layer = "ground"
fields.light = { enum = ["sun", "dark"] }
fields.height = { type = "number", required = true }
"""
GROWS_AGAIN = FIRST.replace("seed", "sown").replace("version = 1", "version = 3")


def put(home: Path, text: str) -> None:
    (home / "packs").mkdir(parents=True, exist_ok=True)
    (home / "packs" / "garden.toml").write_text(text)


async def test_a_changed_pack_keeps_old_records_and_doctor_names_what_no_longer_fits(tmp_path: Path) -> None:
    settings = Settings(home=tmp_path / "home")
    put(settings.home, FIRST)
    async with App.open(settings) as app:
        await app.create("ana", packs=["garden"])
        async with app.memory("ana") as memory:
            given = [
                RecordGiven("Plant", "Fern", "Grows by the wall.", fields={"light": "shade"}),
                RecordGiven("Plant", "Rose", "Grows by the gate.", fields={"light": "sun", "colour": "red"}),
                RecordGiven("Tool", "Spade", "Digs.", fields={"maker": "Ida"}),
            ]
            fern, rose, spade = [one.record for one in (await memory.records.save(given)).records]
            assert (fern.state, fern.pack, fern.pack_version) == ("seed", "garden", 1)
            found = await memory.recall("wall gate", filters=ItemFilter(layers=("ground",)))
            assert {hit.item.uuid for hit in found["nodes"]} == {fern.id, rose.id}
            with pytest.raises(InvalidRequest, match=r"filters\.layers: 'vision' is no layer .*; there are ground"):
                await memory.recall("wall", filters=ItemFilter(layers=("vision",)))
        answer = await doctor.answer(app, doctor.parse({"entity": "ana"}))
        assert not any("no longer fit" in note for note in answer.data["notes"])
    put(settings.home, CHANGED)
    async with App.open(settings) as app:
        async with app.memory("ana") as memory:
            page = await memory.records.list(RecordQuery())
            kept = {one.title: one for one in page.records}
            assert {"Fern": kept["Fern"].fields, "Spade": kept["Spade"].fields} == {
                "Fern": {"light": "shade"},
                "Spade": {"maker": "Ida"},
            }
            assert kept["Fern"].state == "seed"
            assert [one.id for one in await memory.records.get([spade.id])] == [spade.id]
            schema = (await schema_inventory.answer(memory, schema_inventory.parse({}))).data
            assert [(one["name"], one["count"]) for one in schema["kinds"]] == [("Plant", 2)]
            misfits = await memory.records.misfits()
            assert set(misfits) == {fern.id, rose.id, spade.id}
            assert misfits[spade.id] == "Tool: no kind of this memory's packs any more"
            changed = RecordGiven("Plant", "Rose", fields={"height": 2, "colour": None})
            (saved,) = (await memory.records.save([changed])).records
            assert (saved.record.id, saved.record.version, saved.record.pack_version) == (rose.id, 2, 2)
            assert set(await memory.records.misfits()) == {fern.id, spade.id}
        answer = await doctor.answer(app, doctor.parse({"entity": "ana"}))
        (note,) = (one for one in answer.data["notes"] if "no longer fit" in one)
        assert note.startswith("2 records no longer fit the packs")
        assert fern.id[:8] in note
    put(settings.home, GROWS_AGAIN)
    async with App.open(settings) as app, app.memory("ana") as memory:
        assert (await memory.records.misfits())[fern.id] == "Plant: seed is no state of its life cycle"
        with pytest.raises(InvalidRequest, match="sown may follow, not 'grown'"):
            await memory.records.move(fern.id, "grown")
        assert (await memory.records.move(fern.id, "sown")).records[0].record.state == "sown"
        assert set(await memory.records.misfits()) == {rose.id}


async def test_a_pack_that_cannot_be_read_is_named_when_its_memory_is_opened(tmp_path: Path) -> None:
    settings = Settings(home=tmp_path / "home")
    put(settings.home, FIRST)
    async with App.open(settings) as app:
        await app.create("ana", packs=["garden"])
        await app.create("bea")
        async with app.memory("bea") as memory:
            assert memory.kinds.packs[-1].name == "events"
            assert isinstance(memory.kinds, Kinds)
    put(settings.home, FIRST.replace("[kinds.Tool]", "[kinds.tool]"))
    async with App.open(settings) as app:
        with pytest.raises(
            ConfigError, match=r"the pack garden: line 14: kinds\.tool: .*`pps pack check .*garden.toml`"
        ):
            async with app.memory("ana"):
                pass
        async with app.memory("bea") as memory:
            assert "Plant" not in memory.kinds
