"""A time that is asked for by ``during`` is a filter: full lists of what happened then, and nothing from outside it."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

from pps.app import App
from pps.config import EmbedderSettings, Settings
from pps.core.values import ChannelName, Fact, FactDraft, Turn
from pps.ingest.drafts import RememberOptions
from pps.memory import Memory
from tests.integration.interfaces.every_tool import done
from tests.integration.interfaces.serving import ERAS, serving
from tests.integration.recall_scene import play

QUERY = "What grows among the roses behind the old greenhouse?"
DURING = "in January 2026"
SINCE, UNTIL = datetime(2026, 1, 1, tzinfo=UTC), datetime(2026, 2, 1, tzinfo=UTC)
INSIDE, OUTSIDE, LIMIT = 12, 40, 10
FILLED: Sequence[tuple[str, ChannelName]] = (
    ("default", "facts"),
    ("default", "episodes"),
    ("facts", "facts"),
    ("episodes", "episodes"),
    ("e1_only", "facts"),
)


def planted(number: int, at: datetime, text: str) -> tuple[str, RememberOptions]:
    fact = FactDraft("Mira", "PLANTED", f"bed {number}", text, valid_at=at)
    ref = f"bed {number}"
    return text, {
        "source_ref": ref,
        "session": ref,
        "occurred_at": at,
        "facts": (fact,),
        "actor": "Mira",
    }


async def fill(memory: Memory) -> None:
    """Remember the scene, beds that match the query outside January, up to its edges, and beds in it that hardly do."""
    await play(memory)
    edges = (
        SINCE - timedelta(microseconds=1),
        UNTIL,
        SINCE.replace(year=2025),
        UNTIL.replace(year=2027),
    )
    text = "Among the roses behind the old greenhouse grows bed {}."
    outside = [planted(one, edges[one % len(edges)], text.format(one)) for one in range(OUTSIDE)]
    days = [SINCE + timedelta(days=2.5 * number) for number in range(INSIDE)]
    inside = [
        planted(OUTSIDE + number, day, f"Bed {number} has moss.") for number, day in enumerate(days)
    ]
    await memory.remember_many([*outside, *inside])
    assert await memory.settled()


def is_full_of_january(times: Sequence[datetime | None]) -> bool:
    return len(times) == LIMIT and all(at is not None and SINCE <= at < UNTIL for at in times)


async def test_during_gives_full_lists_of_that_time_and_nothing_else(app: App) -> None:
    await app.create("ana")
    async with app.memory("ana") as memory:
        await fill(memory)
        for profile, channel in FILLED:
            for during in ("", DURING):
                found = await memory.recall(QUERY, profile=profile, limit=LIMIT, during=during)
                items = [hit.item for hit in found[channel]]
                times = [
                    one.occurred_at if isinstance(one, Turn) else one.valid_at
                    for one in items
                    if isinstance(one, (Turn, Fact))
                ]
                assert is_full_of_january(times) == bool(during), (profile, channel, during, times)


async def test_the_tool_takes_the_time_in_the_same_words(tmp_path: Path) -> None:
    home = tmp_path / "home"
    async with App.open(Settings(home=home, embedder=EmbedderSettings(name="hash"))) as app:
        token = (await app.create("ana")).token
        async with app.memory("ana") as memory:
            await fill(memory)

    assert token
    with serving(home) as served:
        async with served.client(token, ERAS[-1]) as client:
            for during in ("", DURING):
                said = await done(client, "recall", query=QUERY, limit=LIMIT, during=during)
                for channel, field in (("facts", "valid_at"), ("episodes", "occurred_at")):
                    hits = said["channels"][channel]["hits"]
                    times = [datetime.fromisoformat(hit[field]) for hit in hits]
                    assert is_full_of_january(times) == bool(during), (channel, during, times)
