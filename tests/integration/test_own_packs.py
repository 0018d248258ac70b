"""A pack of one's own: its records, its layers in filters, and what becomes of records when it changes."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

import pytest

from pps.app import App
from pps.config import Settings
from pps.core.errors import ConfigError, InvalidRequest
from pps.core.kinds import Kinds
from pps.core.record_values import RecordQuery
from pps.core.values import JSON
from pps.journal.filters import ItemFilter
from pps.operations.catalog import operations_for
from pps.operations.inventory import schema_inventory
from pps.operations.maintenance import doctor
from pps.operations.pack_tools import PackTools
from pps.records.saving import RecordGiven, RelationGiven

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


async def test_a_changed_pack_keeps_old_records_and_doctor_names_what_no_longer_fits(
    tmp_path: Path,
) -> None:
    settings = Settings(home=tmp_path / "home")
    put(settings.home, FIRST)
    async with App.open(settings) as app:
        await app.create("ana", packs=["garden"])
        async with app.memory("ana") as memory:
            given = [
                RecordGiven("Plant", "Fern", "Grows by the wall.", fields={"light": "shade"}),
                RecordGiven(
                    "Plant", "Rose", "Grows by the gate.", fields={"light": "sun", "colour": "red"}
                ),
                RecordGiven("Tool", "Spade", "Digs.", fields={"maker": "Ida"}),
            ]
            fern, rose, spade = [one.record for one in (await memory.records.save(given)).records]
            assert (fern.state, fern.pack, fern.pack_version) == ("seed", "garden", 1)
            found = await memory.recall("wall gate", filters=ItemFilter(layers=("ground",)))
            assert {hit.item.uuid for hit in found["nodes"]} == {fern.id, rose.id}
            with pytest.raises(
                InvalidRequest, match=r"filters\.layers: 'vision' is no layer .*; there are ground"
            ):
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
            assert (saved.record.id, saved.record.version, saved.record.pack_version) == (
                rose.id,
                2,
                2,
            )
            assert set(await memory.records.misfits()) == {fern.id, spade.id}
        answer = await doctor.answer(app, doctor.parse({"entity": "ana"}))
        (note,) = (one for one in answer.data["notes"] if "no longer fit" in one)
        assert note.startswith("2 records no longer fit the packs")
        assert fern.id[:8] in note
    put(settings.home, GROWS_AGAIN)
    async with App.open(settings) as app, app.memory("ana") as memory:
        assert (await memory.records.misfits())[
            fern.id
        ] == "Plant: seed is no state of its life cycle"
        with pytest.raises(InvalidRequest, match="sown may follow, not 'grown'"):
            await memory.records.move(fern.id, "grown")
        assert (await memory.records.move(fern.id, "sown")).records[0].record.state == "sown"
        assert set(await memory.records.misfits()) == {rose.id}


async def test_a_pack_that_cannot_be_read_is_named_when_its_memory_is_opened(
    tmp_path: Path,
) -> None:
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
            ConfigError,
            match=r"the pack garden: line 14: kinds\.tool: .*`pps pack check .*garden.toml`",
        ):
            async with app.memory("ana"):
                pass
        async with app.memory("bea") as memory:
            assert "Plant" not in memory.kinds


async def test_the_origins_lists_are_short_and_the_vision_is_shown_with_what_it_serves(
    tmp_path: Path,
) -> None:
    async with App.open(Settings(home=tmp_path / "home")) as app:
        await app.create("ana", packs=["constitution"])
        async with app.memory("ana") as memory:
            said: dict[str, JSON] = {"description": "At length.", "metadata": {"a": 1}}
            await memory.records.save(
                [
                    RecordGiven(
                        "Value", "Honesty", "Say what is so.", fields={**said, "priority": "core"}
                    ),
                    RecordGiven(
                        "Core", "Roots", "Where I am from.", fields={**said, "pillar": "Home"}
                    ),
                    RecordGiven("Season", "Spring", "It grows.", fields={**_SPRING}),
                    RecordGiven(
                        "Goal", "Run", "Far.", fields={"horizon": "year"}, relations=(_SERVES,)
                    ),
                    RecordGiven(
                        "Goal",
                        "Walk",
                        "Near.",
                        fields={**said, "horizon": "week"},
                        status="archived",
                    ),
                    RecordGiven(
                        "Goal",
                        "Read",
                        "Much.",
                        fields={**said, "horizon": "month", "target": "12 books"},
                    ),
                    RecordGiven("Vision", "A long life", "In health.", fields={"horizon": "10y"}),
                ]
            )
            tools = PackTools(operations_for("entity")).of(memory.kinds)
            lists: list[list[dict[str, Any]]] = []
            for name in ("foundation_list_v2", "vision_list_v2"):
                answer = await tools[name].answer(memory, tools[name].parse({}))
                lists.append(cast("Any", answer.data["items"]))
        foundation, vision = lists
        assert [(one["title"], one.get("fields")) for one in foundation] == [
            ("Honesty", {"description": "At length."}),
            ("Roots", None),
        ]
        assert [one["title"] for one in vision] == ["A long life", "Read", "Run", "Spring"]
        run = vision[2]
        assert [(one["relation"], one["title"]) for one in run["parents"]] == [
            ("SERVES", "A long life")
        ]
        assert vision[1]["fields"] == {
            "description": "At length.",
            "horizon": "month",
            "target": "12 books",
        }


_SPRING: dict[str, JSON] = {"start_date": "2026-03-01", "end_date": "2026-05-31"}
_SERVES = RelationGiven("SERVES", "A long life")


async def test_an_open_pack_says_of_which_kind_a_text_is_and_who_speaks(tmp_path: Path) -> None:
    settings = Settings(home=tmp_path / "home")
    put(
        settings.home,
        'name = "garden"\nversion = 1\nopen = true\n'
        '[kinds.sensor]\nsources = ["thermostat"]\nrole = "tool"\n',
    )
    async with App.open(settings) as app:
        await app.create("ana", packs=["garden"])
        async with app.memory("ana") as memory:
            read = await memory.records.add_event("It is cold in the shed.", source="thermostat")
            noted = await memory.records.add_event("Close the shed.", source="editor")
            given = await memory.records.add_event(
                "The shed is shut.", source="thermostat", kind="note"
            )
            receipts = (read, noted, given)
            nodes = {
                node.uuid: node.kind
                for node in await memory.parts.client.nodes([one.node_id for one in receipts])
            }
            turns = await memory.records.texts([one.node_id for one in receipts])
        assert [nodes[one.node_id] for one in receipts] == ["sensor", "manual", "note"]
        assert [turns[one.node_id].role for one in receipts] == ["tool", "user", "user"]
