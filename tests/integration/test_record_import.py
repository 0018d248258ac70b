"""Records from CSV and JSON: every mistake by row and field, nothing kept of a file with one, twice is as once."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pps.app import App
from pps.config import Settings
from pps.core.record_values import RecordQuery
from pps.entities.routing import owner as owner_router
from pps.operations.calls import Calls, owner

GOALS = """title,summary,horizon,deadline,tags,SERVES
Run a marathon,In spring,year,2027-04-11,health;running,A long life
Learn Portuguese,To talk with Inês,year,,,A long life
"""


class Importing:
    """One entity, and imports into it."""

    def __init__(self, app: App, name: str, folder: Path) -> None:
        self.app, self.name, self.folder = app, name, folder

    async def imported(self, name: str, text: str, actor: str = "", **more: Any) -> dict[str, Any]:
        (self.folder / name).write_text(text, encoding="utf-8")
        paths: Any = [str(self.folder / name)]
        asked = {"entity": self.name, "paths": paths, "format": "records", **more}
        caller = replace(owner(owner_router()), actor=actor)
        return (await Calls(self.app).answer(caller, "import", asked)).data

    async def titles(self) -> set[str]:
        async with self.app.memory(self.name) as memory:
            return {
                one.title for one in (await memory.records.list(RecordQuery(limit=500))).records
            }


@pytest.fixture
async def ana(tmp_path: Path) -> AsyncIterator[Importing]:
    async with App.open(Settings(home=tmp_path / "home")) as app:
        await app.create("ana", packs=["constitution"])
        yield Importing(app, "ana", tmp_path)


async def test_a_table_of_goals_is_tried_then_kept_and_a_second_time_adds_nothing(
    ana: Importing,
) -> None:
    visions = json.dumps(
        [
            {
                "kind": "Vision",
                "title": "A long life",
                "summary": "Well",
                "fields": {"horizon": "10y"},
            }
        ]
    )
    assert (await ana.imported("visions.json", visions))["records"]["created"] == 1
    tried = await ana.imported("goals.csv", GOALS, kind="Goal", dry_run=True)
    assert (tried["records"]["created"], tried["records"]["kept"], tried["stored"]) == (2, False, 0)
    assert await ana.titles() == {"A long life"}
    kept = await ana.imported("goals.csv", GOALS, kind="Goal")
    assert (kept["records"]["created"], kept["records"]["kept"], kept["stored"]) == (2, True, 2)
    async with ana.app.memory(ana.name) as memory:
        page = await memory.records.list(RecordQuery(kinds=("Goal",), order=("title",)))
        run = page.records[1]
        assert (run.title, run.fields["deadline"], run.tags) == (
            "Run a marathon",
            "2027-04-11",
            ("health", "running"),
        )
        assert [one.type for one in await memory.records.relations([run.id])] == ["SERVES"]
    again = await ana.imported("goals.csv", GOALS, kind="Goal")
    assert (again["records"]["unchanged"], again["stored"]) == (2, 0)
    changed = await ana.imported("goals.csv", GOALS.replace("In spring", "In autumn"), kind="Goal")
    assert (changed["records"]["changed"], changed["records"]["unchanged"]) == (1, 1)


async def test_each_mistake_is_named_by_row_and_field_and_nothing_is_kept_unless_asked(
    ana: Importing,
) -> None:
    rows = [
        {"kind": "Goal", "title": "Good", "summary": "Fine"},
        {"kind": "Goal", "title": "Bad horizon", "summary": "x", "horizon": "eon"},
        {"kind": "Gaol", "title": "No kind", "summary": "x"},
        {"kind": "Goal", "title": "No such field", "summary": "x", "dedline": "2027-01-01"},
        {"kind": "Goal", "title": "Long", "summary": "x" * 2_001},
        {"kind": "Goal", "title": "To nobody", "summary": "x", "SERVES": "Nobody"},
        {"kind": "Task", "title": "Done at once", "summary": "x", "state": "done"},
        "no record",
    ]
    found = await ana.imported("mixed.json", json.dumps(rows))
    told = {one["what"]: one["why"] for one in found["records"]["mistakes"]}
    assert {name.split(":")[0] for name in told} == {
        f"mixed.json record {number}" for number in range(2, 9)
    }
    for place, word in (
        ("record 2: Goal.horizon", "year"),
        ("record 3: kind", "'Gaol' is no kind"),
        ("record 4: Goal.dedline", "did you mean 'deadline'"),
        ("record 5: summary", "2000"),
        ("record 6: relations[0].target", "no record"),
        ("record 7: Task.state", "record_move"),
    ):
        assert word in told[f"mixed.json {place}"], (place, told)
    assert (found["stored"], found["unreadable_count"], await ana.titles()) == (0, 7, set())
    kept = await ana.imported("mixed.json", json.dumps(rows), skip=True)
    assert (kept["stored"], kept["unreadable_count"], await ana.titles()) == (1, 7, {"Good"})


async def test_hundreds_go_in_batches_with_relations_among_them_and_cells_are_typed(
    ana: Importing,
) -> None:
    lines = ["kind,title,summary,effort_hours,statement,ENFORCED_BY,trigger,response"]
    lines += [f"Principle,P{n},Rule,,Be {n},G{n},," for n in range(105)]
    lines += [f"Guardrail,G{n},Line,,,,t,r" for n in range(105)]
    lines += ["Task,T,Do it,2.5,,,,"]
    done = await ana.imported("all.csv", "\n".join(lines))
    assert (done["records"]["created"], done["unreadable_count"], done["settled"]) == (211, 0, True)
    async with ana.app.memory(ana.name) as memory:
        assert len((await memory.records.graph()).relations) == 105
        [task] = (await memory.records.list(RecordQuery(kinds=("Task",)))).records
        assert task.fields["effort_hours"] == 2.5


async def test_an_import_writes_what_its_actor_may(ana: Importing) -> None:
    found = await ana.imported("goals.csv", GOALS, actor="execute", kind="Goal")
    [*said] = {one["why"] for one in found["records"]["mistakes"]}
    assert said == ["'execute' may not write Goal; it may write tactics, execution, track"]
    with pytest.raises(Exception, match="neither CSV nor JSON"):
        await ana.imported("goals.json", "[{")
