"""What is softly forgotten is shown by nothing that reads, and is nobody else's to see, to restore or to erase."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from pps.app import App
from pps.core.errors import NotFound
from pps.core.values import FactDraft, NodeDraft
from pps.operations.calls import Caller, Calls
from pps.operations.catalog import operations_for
from pps.records.saving import RecordGiven, RelationGiven
from tests.isolation.house import House, everything, outcome
from tests.isolation.test_verbs import ARGUMENTS

if TYPE_CHECKING:
    from pathlib import Path

    from pps.config import Settings
    from pps.memory import Memory

pytestmark = pytest.mark.timeout(300)
WORD, HIDDEN = "kanariesoft", "quetzalkoatl"
"""Both are in all that is told; only the first is ever asked for."""
FOR_IT = {"forgotten", "restore_forgotten", "edits", "undo"}
"""The operations that are about what was forgotten."""


def filled(value: Any, ids: dict[str, str]) -> Any:
    if isinstance(value, dict):
        return {key: filled(one, ids) for key, one in value.items()}
    if isinstance(value, list):
        return [filled(one, ids) for one in value]
    return value.format(**ids) if isinstance(value, str) else value


async def test_no_operation_that_reads_shows_what_is_softly_forgotten(
    settings: Settings, tmp_path: Path
) -> None:
    """Whatever the table holds is asked: with a word of it, with every id of it, and for everything there is."""
    async with App.open(settings) as app:
        await app.create("ana", packs=["constitution"])
        async with app.memory("ana") as memory:
            ids, named = await told(memory)
            gone = await memory.forget(named, dry_run=False, soft=True, why=f"No {HIDDEN}.")
            ids["binned"] = gone.restorable_as
        calls = Calls(app)
        for name, operation in operations_for("entity").items():
            if operation.hints.read_only and name not in FOR_IT:
                for arguments in ARGUMENTS[name]:
                    asked = filled(arguments, ids)
                    answer = str(await outcome(calls.answer(Caller.of_entity("ana"), name, asked)))
                    assert HIDDEN not in answer, (name, asked)
                    assert not [
                        one for one in ids.values() if one in answer and one not in str(asked)
                    ], (name, asked)
        async with app.memory("ana") as memory:
            for profile in ("default", "ambient", "hybrid", "semantic", "facts", "nodes"):
                found = await memory.recall(f"{WORD} bird seed", profile=profile, limit=10)
                assert HIDDEN not in str(found), profile
            assert (
                HIDDEN
                not in (await memory.ambient_recall(f"{WORD} bird seed", mode="startup")).text
            )
            for read in (
                memory.get([ids["turn"]]),
                memory.forget([ids["turn"]], soft=True, dry_run=False),
            ):
                with pytest.raises(NotFound):
                    await read
            await memory.documents.export(tmp_path / "out.jsonl")
            assert HIDDEN not in (tmp_path / "out.jsonl").read_text()
            await memory.forgetting.restore(gone.restorable_as)
            assert await memory.get([ids["turn"], ids["fact"], ids["node"], ids["record"]])
            assert [hit for hit in (await memory.recall(WORD))["episodes"] if HIDDEN in hit.text]


async def told(memory: Memory) -> tuple[dict[str, str], list[str]]:
    """Tell a memory something of every kind; return ids of it, and those by which all of it is forgotten."""
    both = f"{WORD} {HIDDEN}"
    bird = FactDraft("Ana", "KEEPS", f"Bird {both}", text=f"Ana keeps a {both}.")
    node = NodeDraft(f"Bird {both}", kind="Bird", summary=both)
    one = await memory.remember(
        f"The {both} sings. #{HIDDEN}", session="s", nodes=[node], facts=[bird]
    )
    await memory.remember(
        "Ana drinks coffee.", session="s", facts=[FactDraft("Ana", "DRINKS", "Coffee")]
    )
    goal = RecordGiven(
        "Goal", f"Teach the {both}", both, fields={"target": both, "deadline": "2027-01-01"}
    )
    task = RecordGiven(
        "Task", f"Buy seed for {both}", both, relations=(RelationGiven("SERVES", goal.title),)
    )
    saved = (await memory.records.save([goal, task])).records
    await memory.records.update(one.turn_id, content=f"The {both} sings loud. #{HIDDEN}")
    note = await memory.records.add_event(f"Heard {both}.", title=f"Note {both}")
    anchor = await memory.anchor_save(f"On {both}", f"# {both}\n\nSeed and water.")
    await memory.anchor_save(f"On {both}", f"# {both}\n\nWater.", slug=anchor.slug)
    await memory.settled()
    fact = next(found for found in (await memory.timeline(limit=100)).facts if HIDDEN in found.text)
    goal_id, task_id = (found.record.id for found in saved)
    ids = {
        "mark": WORD,
        "turn": one.turn_id,
        "fact": fact.uuid,
        "node": fact.object,
        "slug": anchor.slug,
        "edited": anchor.slug,
        "corrected": one.turn_id,
    }
    ids |= {"record": goal_id, "relation": saved[1].relations[0]}
    return ids, [one.turn_id, note.turn_id, goal_id, task_id, anchor.slug]


async def test_another_can_neither_see_nor_restore_nor_purge_what_one_forgot(house: House) -> None:
    one, other, _ = house.all
    before = await everything(other)
    nobody = "5b3c1a52-0000-4000-8000-000000000000"
    [held] = await other.memory.forgetting.list()
    assert held.id == other.binned
    assert house.seen(one, await one.memory.forgetting.list()) == []
    for id_ in (other.binned, other.binned[:8]):
        theirs = [
            await outcome(one.memory.forgetting.get(id_)),
            await outcome(one.memory.forgetting.restore(id_)),
            await outcome(one.memory.forget([id_], dry_run=False)),
            await outcome(one.memory.forget([id_], dry_run=False, soft=True)),
        ]
        nobodys = [
            await outcome(one.memory.forgetting.get(nobody)),
            await outcome(one.memory.forgetting.restore(nobody)),
            await outcome(one.memory.forget([nobody], dry_run=False)),
            await outcome(one.memory.forget([nobody], dry_run=False, soft=True)),
        ]
        assert theirs == nobodys
    assert await everything(other) == before
    assert await one.memory.forgetting.names([other.node, other.record, other.mark]) == []
    coffee = await one.memory.forget(["Coffee"])
    mentions = coffee.mentions
    assert mentions is not None
    assert mentions.turns
    assert house.seen(one, (coffee, mentions)) == []
    await other.memory.forgetting.restore(other.binned)
    assert (await other.memory.recall("Moot", limit=5))["episodes"][0].text.startswith("user: Moot")
