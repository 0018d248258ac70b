"""A pack of kinds belongs to the entity that it was enabled for."""

from __future__ import annotations

from typing import TYPE_CHECKING
from uuid import uuid4

import pytest

from pps.app import App
from pps.core.errors import InvalidRequest
from pps.core.values import JSON, NodeDraft
from pps.records.saving import RecordGiven

if TYPE_CHECKING:
    from pps.config import Settings


async def test_a_pack_of_one_is_unknown_to_another(settings: Settings) -> None:
    async with App.open(settings) as app:
        await app.create("ana")
        await app.create("bea", packs=["constitution"])
        async with app.memory("ana") as ana, app.memory("bea") as bea:
            assert "Goal" in bea.kinds
            assert [pack.name for pack in ana.kinds.packs] == ["events"]
            with pytest.raises(InvalidRequest, match="there are none"):
                ana.kinds.kind("Goal")
        await app.enable_pack("ana", "constitution")
        async with app.memory("ana") as ana:
            assert "Goal" in ana.kinds


async def test_a_field_that_leads_to_a_foreign_id_leads_nowhere(settings: Settings) -> None:
    """Each ref of each kind: a record or node of another is refused as nobody's id is, and nothing is kept."""
    async with App.open(settings) as app:
        for name in ("ana", "bea"):
            await app.create(name, packs=["squad"])
        async with app.memory("ana") as ana, app.memory("bea") as bea:
            own = bea.kinds.kind("Task").fields.values()
            filled: dict[str, JSON] = {
                one.name: (*one.enum, "a text")[0] for one in own if one.required
            }
            task = (
                (await bea.records.save([RecordGiven("Task", "Theirs", "Bea's.", fields=filled)]))
                .records[0]
                .record
            )
            said = await bea.remember("A thing.", nodes=[NodeDraft("Their thing")])
            [thing] = (await bea.parts.client.mentioned_nodes([said.turn_id]))[said.turn_id]
            refs = [
                (kind.name, one.name, one.type == "list")
                for kind in ana.kinds
                for one in kind.fields.values()
                if "ref" in (one.type, one.of.type if one.of else "")
            ]
            assert refs
            for kind, field, many in refs:
                told: set[str] = set()
                for foreign in (task.id, task.turn, task.title, thing, "Their thing", str(uuid4())):
                    value: JSON = [foreign] if many else foreign
                    with pytest.raises(InvalidRequest) as refused:
                        await ana.records.save(
                            [RecordGiven(kind, "Mine", "A.", fields={field: value})]
                        )
                    told.add(str(refused.value).replace("id or title", "id"))
                assert len(told) == 1, (kind, field, told)
                assert field in told.pop()
            assert (await ana.stats()).turns == 0
