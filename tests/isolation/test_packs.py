"""A pack of kinds belongs to the entity that it was enabled for."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pps.app import App
from pps.core.errors import InvalidRequest

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
