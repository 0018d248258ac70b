"""A changed text is read again inside its entity alone: its neighbours say the same and keep what they know."""

from __future__ import annotations

import json
from datetime import UTC, datetime

import pytest

from pps.app import App
from pps.config import ExtractorSettings, Settings
from pps.core.errors import NotFound
from pps.memory import Memory
from tests.model_server import model_server

WHEN = datetime(2026, 4, 1, 9, tzinfo=UTC)
NAMES = ("ana", "ana_2")
TEXT = "Ana lives in Lisbon. Ben knows Ana."


async def everything(memory: Memory, turn: str) -> object:
    """Return all that may change with a text: graph, mentions, versions, and what is found."""
    client = memory.parts.client
    return (
        await client.scan_nodes("", 100),
        await client.scan_facts("", 100),
        await client.scan_episodes("", 100),
        await client.mentioned_nodes([turn]),
        await memory.records.history(turn),
        [hit.id for hit in (await memory.recall("Ana Lisbon Porto"))["facts"]],
    )


@pytest.mark.timeout(300)
@pytest.mark.parametrize("mode", ["model", "rules"])
async def test_a_changed_text_is_read_among_its_own_alone(settings: Settings, mode: str) -> None:
    with model_server() as server:
        found = {
            "mode": mode,
            "provider": "compatible",
            "model": "m",
            "base_url": server.base_url,
            "timeout_s": 20,
        }
        extractor = ExtractorSettings.model_validate(found)
        async with App.open(settings.model_copy(update={"extractor": extractor})) as app:
            for name in NAMES:
                await app.create(name)
            async with app.memory(NAMES[0]) as one, app.memory(NAMES[1]) as other:
                mine, theirs = [
                    (await memory.remember(TEXT, occurred_at=WHEN)).turn_id
                    for memory in (one, other)
                ]
                await other.remember("Ana owns Kanarie.", occurred_at=WHEN)
                before = await everything(other, theirs)
                server.asked.clear()
                for content in ("Ana lives in Porto.", TEXT):
                    assert (await one.records.update(mine, content=content)).state == "done"
                assert (await one.records.append(mine, "Ana likes Coffee.")).state == "done"
                assert bool(server.asked) == (mode == "model")
                said = json.dumps([asked.body for asked in server.asked])
                assert [
                    mark for mark in ("Kanarie", other.entity.group, theirs) if mark in said
                ] == []
                known = {item.uuid for item in await one.parts.client.scan_facts("", 100)}
                assert known.isdisjoint(
                    fact.uuid for fact in await other.parts.client.scan_facts("", 100)
                )
                with pytest.raises(NotFound):
                    await one.records.update(theirs, content="Mine.")
                with pytest.raises(NotFound):
                    await one.records.append(theirs, "Mine.")
                assert await everything(other, theirs) == before
