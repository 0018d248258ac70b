"""``pps.connect``: a program beside the running server, with the methods of ``Memory``."""

from __future__ import annotations

import pytest

import pps
from pps.core.errors import InvalidRequest, NotFound, UnknownEntity
from pps.core.values import FactDraft, NodeDraft
from tests.integration.interfaces.serving import Served
from tests.squads import write_squad


async def test_a_program_remembers_and_recalls_while_a_server_runs(served: Served) -> None:
    served.create("priya")
    async with pps.connect("priya", home=served.home) as memory:
        fact = FactDraft("Priya", "MOVED_TO", "Tarn", text="Priya moved to Tarn.")
        receipt = await memory.remember(
            "Priya moved to Tarn in March.", nodes=[NodeDraft("Priya")], facts=[fact]
        )
        assert receipt.state in ("done", "accepted")
        found = await memory.recall("where does Priya live?")
        assert [hit.text for hit in found["facts"]] == ["Priya moved to Tarn."]
        [item] = await memory.get([receipt.turn_id])
        assert item.content == "Priya moved to Tarn in March."
        await memory.anchor_save("Bread", "# Bread\n\nRye.")
        assert [one.slug for one in await memory.anchor_list()] == ["bread"]
        assert (await memory.stats()).turns == 1
        assert (await memory.forget([receipt.turn_id])).turns == (receipt.turn_id,)
        assert (await memory.add_event(content="The lamp is lit.", title="Lamp")).title == "Lamp"
        with pytest.raises(NotFound):
            await memory.get(["1b4e28ba-2fa1-5d2b-883f-0016d3cca427"])
        with pytest.raises(InvalidRequest, match="did you mean 'occurred_at'"):
            await memory.remember("x", ocurred_at="2026-01-01")
        assert (await memory.costs(7)).tokens_today == 0
        with pytest.raises(TypeError, match="takes 1 positional"):
            await memory.costs(7, 8)
        with pytest.raises(AttributeError, match="nonesuch"):
            await memory.nonesuch()


async def test_who_connects_to_nobody_is_told_at_once(served: Served) -> None:
    with pytest.raises(UnknownEntity, match="nobody"):
        async with pps.connect("nobody", home=served.home):
            pass


async def test_a_program_works_as_a_squads_member_through_the_server(served: Served) -> None:
    write_squad(served.home, "trio")
    served.link.call("squad_create", "", {"name": "team", "file": "trio"})
    async with pps.connect_member("team", "main", home=served.home) as kublai:
        await kublai.add_experience("The user asked for a comparison.", type="request")
        kept = await kublai.store("Short answers are better.", type="Belief", confidence=0.8)
        assert kept.copy.state == "shared"
        assert [belief.title for belief in await kublai.get_beliefs(min_confidence=0.7)] == [
            "Short answers are better."
        ]
        assert len((await kublai.reflect()).experiences) == 1
    async with pps.connect_member("team", "jochi", home=served.home) as jochi:
        assert [belief.content for belief in await jochi.get_beliefs()] == [
            "Short answers are better."
        ]
        assert (await jochi.memory_query(topic="short answers")).own == ()
    with pytest.raises(NotFound):
        async with pps.connect_member("team", "nobody", home=served.home):
            pass
