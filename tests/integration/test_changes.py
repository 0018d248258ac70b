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


async def test_changes_are_paired_before_they_are_cut_and_come_newest_first(app: App) -> None:
    await app.create("ana")
    async with app.memory("ana") as memory:
        for number in range(30):
            text = f"Ana lives in town {number}."
            fact = FactDraft("Ana", "LIVES_IN", f"town {number}", text=text)
            await memory.remember(text, facts=[fact], occurred_at=_AT + number * _DAY)
        since, until = _AT, _AT + 40 * _DAY
        whole = await memory.graph.changes(since, until)
        # The first fact is told of where it is replaced.
        assert (whole.total, len(whole.replaced), len(whole.opened)) == (29, 29, 0)
        assert whole.replaced[0][1].text == "Ana lives in town 29."
        seen: list[str] = []
        cursor = ""
        while True:
            page = await memory.graph.changes(since, until, limit=7, cursor=cursor)
            assert page.total == 29
            assert not page.closed, "no page parts a fact from its successor"
            seen += [new.text for _, new in page.replaced]
            if not page.more:
                break
            cursor = page.next_cursor
        assert seen == [f"Ana lives in town {number}." for number in reversed(range(1, 30))]
        with pytest.raises(InvalidRequest, match="cursor"):
            await memory.graph.changes(since, until, cursor="7")


async def test_a_histogram_counts_each_fact_in_its_bin(app: App) -> None:
    await app.create("ana")
    async with app.memory("ana") as memory:
        empty = await memory.graph.histogram()
        assert (empty.since, empty.bins) == (None, ())
        facts = [
            FactDraft("Ana", "SAW", f"film {number}", valid_at=_AT + number * _DAY)
            for number in range(10)
        ]
        ended = FactDraft("Ana", "HAD", "flu", valid_at=_AT, invalid_at=_AT + 3 * _DAY)
        await memory.remember("Films.", facts=[*facts, ended], occurred_at=_AT)
        spread = await memory.graph.histogram(10)
        assert (spread.dated, spread.undated) == (11, 0)
        assert [bin_.began for bin_ in spread.bins] == [2, *[1] * 9]
        assert [bin_.ended for bin_ in spread.bins] == [0, 0, 0, 1, *[0] * 6]
        far = FactDraft("Ana", "BORN_IN", "Rome", valid_at=datetime(1970, 1, 2, tzinfo=UTC))
        await memory.remember("Ana was born in Rome.", facts=[far], occurred_at=_AT)
        spread = await memory.graph.histogram(10)
        assert spread.since is not None
        assert spread.since.year == 2026
        with pytest.raises(InvalidRequest, match="bins"):
            await memory.graph.histogram(0)
