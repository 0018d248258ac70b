"""The timeline through the tool, on both stores: every event in its place, page by page, none twice, none missing."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from mcp.client.client import Client

from tests.integration.interfaces.every_tool import done, refused
from tests.integration.interfaces.serving import ERAS, Served
from tests.sampling import sample

pytestmark = pytest.mark.parametrize(
    "era", sample(ERAS, 1, "timeline")
)  # every tool in each era: test_mcp_http

START = datetime(2024, 3, 1, tzinfo=UTC)
PAGES = (1, 4, 7, 60)
_DAY = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class Event:
    """Something that holds since ``since``, and until ``until`` where that is known."""

    text: str
    relation: str
    since: datetime | None
    until: datetime | None

    def began(self) -> datetime:
        """Return since when it holds by what was told."""
        return self.since or SAID

    def fact(self) -> dict[str, str]:
        """Return the event as ``remember`` takes it."""
        times = {"valid_at": self.since, "invalid_at": self.until}
        said = {
            "subject": "Theo",
            "relation": self.relation,
            "object": self.text.split()[-1],
            "text": self.text,
        }
        return said | {name: at.isoformat() for name, at in times.items() if at}


def _event(number: int) -> Event:
    """Return the event of a number: four begin at once, some hold for a day; one in nine has no time.

    What has no time holds from the text that says it on, which is told at ``SAID``.
    """
    since = None if number % 9 == 8 else START + (number * 5 % 11) * _DAY
    until = since + _DAY if since and number % 3 else None
    relation = "VISITED" if number % 2 else "PAINTED"
    return Event(f"Theo {relation.lower()} place{number}", relation, since, until)


EVENTS = [_event(number) for number in range(44)]
SAID = START + 60 * _DAY
MIDDLE, LATER = START + 4 * _DAY, START + 7 * _DAY


def holding(moment: datetime) -> list[Event]:
    return [
        one for one in EVENTS if one.began() <= moment and (not one.until or moment < one.until)
    ]


def begun(
    events: list[Event], after: datetime | None = None, before: datetime | None = None
) -> list[Event]:
    return [
        one
        for one in events
        if (not after or after <= one.began()) and (not before or one.began() < before)
    ]


ASKED: list[tuple[dict[str, Any], list[Event]]] = [
    ({}, EVENTS),
    ({"id": "Theo"}, EVENTS),
    ({"as_of": MIDDLE}, holding(MIDDLE)),
    ({"as_of": MIDDLE + _DAY / 2}, holding(MIDDLE + _DAY / 2)),
    ({"after": MIDDLE}, begun(EVENTS, after=MIDDLE)),
    ({"before": MIDDLE}, begun(EVENTS, before=MIDDLE)),
    ({"after": MIDDLE, "before": LATER}, begun(EVENTS, MIDDLE, LATER)),
    ({"as_of": LATER, "after": MIDDLE, "before": LATER}, begun(holding(LATER), MIDDLE, LATER)),
    (
        {"after": LATER, "relation": "PAINTED"},
        [one for one in begun(EVENTS, LATER) if one.relation == "PAINTED"],
    ),
    ({"as_of": SAID - _DAY}, holding(SAID - _DAY)),
    ({"as_of": SAID}, holding(SAID)),
    ({"after": LATER, "before": MIDDLE}, []),
]


@contextlib.asynccontextmanager
async def filled(either: Served, era: str) -> AsyncIterator[Client]:
    """Connect to an entity that holds all events; it may hold them already."""
    async with either.client(either.create(f"traveller_{ERAS.index(era)}"), era) as client:
        facts = [one.fact() for one in EVENTS]
        await done(
            client,
            "remember",
            content="Theo's travels.",
            source_ref="1",
            facts=facts,
            occurred_at=SAID.isoformat(),
        )
        while (await done(client, "stats"))["unfinished_jobs"]:  # noqa: ASYNC110 - another process works
            await asyncio.sleep(0.05)
        yield client


async def paged(client: Client, limit: int, options: dict[str, Any]) -> list[dict[str, Any]]:
    """Return all facts, by pages that go from cursor to cursor; only the last page may be short."""
    said = {
        name: one.isoformat() if isinstance(one, datetime) else one for name, one in options.items()
    }
    facts: list[dict[str, Any]] = []
    cursor = ""
    for _ in range(len(EVENTS) // limit + 2):
        page = await done(client, "timeline", limit=limit, cursor=cursor, **said)
        facts += page["facts"]
        cursor = page["next_cursor"]
        if not cursor:
            return facts
        assert len(page["facts"]) == limit
    raise AssertionError("the cursors lead nowhere")


async def test_pages_hold_every_event_that_is_asked_for_once_and_in_order(
    either: Served, era: str
) -> None:
    async with filled(either, era) as client:
        for options, wanted in sample(ASKED, 8, era):
            whole = await paged(client, 1000, options)

            assert sorted(fact["text"] for fact in whole) == sorted(one.text for one in wanted), (
                options
            )
            times = [fact["valid_at"] for fact in whole]
            assert times == sorted(times)
            for limit in sample(PAGES, 1, str(options)):
                assert await paged(client, limit, options) == whole, (limit, options)


async def test_an_event_holds_from_its_first_instant_to_just_before_its_last(
    either: Served, era: str
) -> None:
    event = next(one for one in EVENTS if one.since and one.until)
    assert event.since
    instant = timedelta(milliseconds=1)
    async with filled(either, era) as client:
        for moment, holds in (
            (event.since - instant, False),
            (event.since, True),
            (event.since + _DAY - instant, True),
            (event.since + _DAY, False),
        ):
            found = await paged(client, 7, {"as_of": moment})
            assert (event.text in [fact["text"] for fact in found]) is holds, moment


async def test_a_cursor_that_is_none_and_a_page_too_long_are_refused_by_name(
    either: Served, era: str
) -> None:
    async with filled(either, era) as client:
        for wrong, field in (
            ({"cursor": "nonsense"}, "cursor"),
            ({"limit": 0}, "limit"),
            ({"limit": 1001}, "limit"),
        ):
            said = await refused(client, "timeline", **wrong)
            assert field in said
            assert "\n" not in said
        assert "not_found" in await refused(client, "timeline", id="Nobody")
