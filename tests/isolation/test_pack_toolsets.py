"""The tools of one entity's packs are nothing to another: neither listed nor called, whatever it asks for."""

from __future__ import annotations

from pathlib import Path

import pytest

from pps.app import App
from pps.config import Settings
from pps.core.errors import InvalidRequest
from pps.operations.calls import Caller, Calls

PACK = """
name = "garden"
version = 1
[kinds.Bed]
[tools."garden.count.v1"]
operation = "stats"
[tools."remember"]
operation = "stats"
"""


async def test_a_tool_of_the_pack_of_one_is_unknown_to_another(tmp_path: Path) -> None:
    (tmp_path / "packs").mkdir()
    (tmp_path / "packs" / "garden.toml").write_text(PACK)
    async with App.open(Settings(home=tmp_path)) as app:
        ana = (await app.create("ana", packs=["garden"])).entity
        bob = (await app.create("bob")).entity
        calls = Calls(app)
        assert "Bed" in await app.kinds_of(ana)
        assert "Bed" not in await app.kinds_of(bob)
        assert (await calls.answer(Caller.of_entity(ana), "garden_count_v1", {})).data[
            "entity"
        ] == "ana"
        assert (await calls.find(Caller.of_entity(ana), "remember")).title == "Remember a text"
        for caller in (
            Caller.of_entity(bob),
            Caller.of_entity(ana, ["core"]),
            Caller(("router",)),
            Caller(("owner",)),
        ):
            assert "garden_count_v1" not in await calls.operations(caller)
            for name in ("garden_count_v1", "garden.count.v1"):
                with pytest.raises(InvalidRequest, match="none of that name"):
                    await calls.answer(caller, name, {})
        await app.delete("ana")
        await app.create("ana")
        with pytest.raises(InvalidRequest, match="made anew"):
            await calls.answer(Caller.of_entity(ana), "garden_count_v1", {})
