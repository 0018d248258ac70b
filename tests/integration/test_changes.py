"""S2-05, S2-06: what began, ended and was replaced between two moments, of a node or of all."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from pps.app import App
from pps.core.errors import InvalidRequest, NotFound
from pps.core.values import FactDraft

_AT = datetime(2026, 3, 1, 9, tzinfo=UTC)
_DAY = timedelta(days=1)


async def test_what_changed_between_two_moments_is_told_once(app: App) -> None:
    await app.create("ana")
    async with app.memory("ana") as memory:
        told = [
            FactDraft("Ana", "LIVES_IN", "Lisbon", text="Ana lives in Lisbon.", valid_at=_AT),
            FactDraft(
                "Ana",
                "OWNS",
                "boat",
                text="Ana owns a boat.",
                valid_at=_AT,
                invalid_at=_AT + 9 * _DAY,
            ),
        ]
        await memory.remember("Ana lives in Lisbon and owns a boat.", facts=told, occurred_at=_AT)
        moved = FactDraft(
            "Ana", "LIVES_IN", "Porto", text="Ana lives in Porto.", invalidates=("Ana LIVES_IN",)
        )
        keeps = FactDraft("Ben", "KEEPS", "bees", text="Ben keeps bees.")
        await memory.remember(
            "Ana has moved to Porto. Ben keeps bees.",
            facts=[moved, keeps],
            occurred_at=_AT + 5 * _DAY,
        )

        async def between(
            since: datetime, until: datetime, about: str = ""
        ) -> tuple[list[str], list[str], list[str]]:
            found = await memory.graph.changes(since, until, id=about)
            pairs = [f"{old.text} {new.text}" for old, new in found.replaced]
            return (
                sorted(one.text for one in found.opened),
                [one.text for one in found.closed],
                pairs,
            )

        both = ["Ana lives in Lisbon.", "Ana owns a boat."]
        replaced = ["Ana lives in Lisbon. Ana lives in Porto."]
        assert await between(_AT, _AT + _DAY) == (both, [], [])
        assert await between(_AT + _DAY, _AT + 6 * _DAY) == (["Ben keeps bees."], [], replaced)
        assert await between(_AT + _DAY, _AT + 6 * _DAY, "Ana") == ([], [], replaced)
        assert await between(_AT + 6 * _DAY, _AT + 10 * _DAY) == ([], ["Ana owns a boat."], [])
        # Half open: what happens at the end is not among it, what happens at the beginning is.
        assert await between(_AT - _DAY, _AT) == ([], [], [])
        assert await between(_AT + 9 * _DAY, _AT + 10 * _DAY) == ([], ["Ana owns a boat."], [])
        assert await between(_AT + 8 * _DAY, _AT + 9 * _DAY) == ([], [], [])
        assert (await memory.graph.changes(_AT, _AT + _DAY, limit=1)).more

        async def around(as_of: datetime | None) -> list[str]:
            [ana] = [one.subject for one in (await memory.timeline(id="Ana", limit=1)).facts]
            return sorted(one.text for one in (await memory.graph.around(ana, as_of=as_of)).facts)

        assert await around(_AT - _DAY) == []
        assert await around(_AT + _DAY) == both
        assert await around(_AT + 5 * _DAY) == ["Ana lives in Porto.", "Ana owns a boat."]
        assert await around(None) == ["Ana lives in Porto."]
        with pytest.raises(InvalidRequest, match="until"):
            await memory.graph.changes(_AT, _AT)
        with pytest.raises(NotFound):
            await memory.graph.changes(_AT, _AT + _DAY, id="nobody")
