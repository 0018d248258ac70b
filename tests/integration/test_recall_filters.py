"""Filters apply before ranking in every perspective: whatever else matches better, a filtered list is full."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import pytest

from pps.app import App
from pps.core.time import iso, now
from pps.core.values import ChannelName, Fact, FactDraft, Node, NodeDraft, Turn
from pps.ingest.drafts import RememberOptions
from pps.journal.filters import ItemFilter
from pps.memory import Memory
from pps.recall.hits import fetch
from pps.recall.perspectives import PERSPECTIVES
from pps.recall.profiles import restrictions
from tests.integration.recall_scene import ask, uuid_of

LAMPS, JARS, DEPTH = 80, 40, 6
QUERY = "Mira keeps an old brass lamp, not a jar, in the hall in the last two weeks"
CUE = f'Why? {QUERY} (see keep_lamp) jarr lammp "a jar" "old brass lamp"'
FINDERS: Mapping[ChannelName, tuple[str, ...]] = {
    "nodes": ("bm25", "dense", "dense_names", "structural", "supports"),
    "facts": ("bm25", "dense", "supports", "when"),
    "episodes": (
        "bm25",
        "bm25_windows",
        "dense",
        "dense_windows",
        "intent",
        "latest",
        "supports",
        "when",
    ),
}
"""Which perspectives bring something of each channel for the query; ``named`` brings what a query names."""
CUED = ("cause", "code", "colbert", "expand", "near", "phrase", "trigrams")
"""Those that bring something where a query or a text gives a cue for it."""


@dataclass(frozen=True)
class Hall:
    """A memory with many lamps that match the query, and a few jars that hardly do; ``cut`` lies between them."""

    memory: Memory
    cut: datetime
    center: str

    @property
    def filters(self) -> Mapping[str, ItemFilter]:
        """Filters by the tool's names for them; ``until`` lets the lamps through, every other the jars."""
        return {
            "node_types": ItemFilter(kinds=("Goal", "note")),
            "layers": ItemFilter(layers=("vision",)),
            "status": ItemFilter(statuses=("active", "draft")),
            "tags": ItemFilter(tags=("rare",)),
            "relation_types": ItemFilter(relations=("SOLD",)),
            "source_types": ItemFilter(sources=("diary",)),
            "since": ItemFilter(since=self.cut),
            "until": ItemFilter(until=self.cut),
        }


def thing(
    name: str, kind: str, source: str, at: datetime, text: str
) -> tuple[str, RememberOptions]:
    tag, relation, status = (
        ("common", "KEEPS", "archived") if kind == "Lamp" else ("rare", "SOLD", "active")
    )
    options: RememberOptions = {
        "source": source,
        "source_ref": name,
        "session": source,
        "occurred_at": at,
        "kind": "turn" if kind == "Lamp" else "note",
        "tags": (tag,),
        "nodes": (NodeDraft(name, kind, tags=(tag,), attributes={"status": status}),),
        "facts": (FactDraft("Mira", relation, name, text, valid_at=at),),
    }
    return f"{text} She said so.", options


@pytest.fixture
async def hall(app: App) -> AsyncIterator[Hall]:
    await app.create("ana")
    async with app.memory("ana") as memory:
        before = now() - timedelta(days=3)
        lamps = [
            (f"old brass lamp {at}", f"Mira keeps old brass lamp {at} in the hall.")
            for at in range(LAMPS)
        ]
        await memory.remember_many(
            [thing(name, "Lamp", "chat", before, text) for name, text in lamps]
        )
        assert await memory.settled()
        cut = now()
        jars = [(f"jar {at}", f"Mira sold a jar {at} of plums.") for at in range(JARS)]
        await memory.remember_many(
            [thing(name, "Goal", "diary", now(), text) for name, text in jars]
        )
        assert await memory.settled()
        yield Hall(memory, cut, await uuid_of(memory, "Mira"))


def about(item: object) -> str:
    """Return what an item is about: ``jar``, ``lamp``, or its name."""
    if isinstance(item, Node):
        return next((word for word in ("jar", "lamp") if word in item.name), item.name)
    text = item.content if isinstance(item, Turn) else item.text if isinstance(item, Fact) else ""
    return next(word for word in ("jar", "lamp") if word in text)


async def brought(
    hall: Hall, name: str, channel: ChannelName, query: str, wanted: ItemFilter
) -> list[str]:
    """Return what a perspective's first ``DEPTH`` are about."""
    asked = ask(hall.memory, query, filters=wanted, center=hall.center)
    find = PERSPECTIVES[name].retrieve
    assert find is not None
    entries = await find(asked, channel, DEPTH)
    return [
        about(item) for item in (await fetch(asked, channel, [one.id for one in entries])).values()
    ]


def is_full(found: list[str], word: str, channel: ChannelName) -> bool:
    """Tell whether a list is full and of one thing; a node may also be Mira, whom the same turns and facts name."""
    besides = found.count("Mira") if channel == "nodes" else 0
    return besides <= 1 and found.count(word) + besides == len(found) == DEPTH


async def test_every_perspective_fills_its_list_with_what_each_filter_lets_through(
    hall: Hall,
) -> None:
    finders = {name for name, one in PERSPECTIVES.items() if one.finds}
    assert {name for names in FINDERS.values() for name in names} | {"named", *CUED} == finders
    for channel, names in FINDERS.items():
        for name in names:
            anything = await brought(hall, name, channel, QUERY, ItemFilter())
            assert (set(anything) == {"jar"}) == (name == "latest"), (channel, name, anything)
            for which, wanted in hall.filters.items():
                found = await brought(hall, name, channel, QUERY, wanted)
                assert is_full(found, "lamp" if which == "until" else "jar", channel), (
                    channel,
                    name,
                    which,
                    found,
                )


async def test_what_needs_a_cue_brings_only_what_each_filter_lets_through(hall: Hall) -> None:
    seen: set[str] = set()
    for which, wanted in hall.filters.items():
        word = "lamp" if which == "until" else "jar"
        for name in CUED:
            for channel in FINDERS:
                found = await brought(hall, name, channel, CUE, wanted)
                assert set(found) <= {word, "Mira"}, (channel, name, which, found)
                assert name != "near" or is_full(found, word, channel), (channel, which, found)
                seen |= {name} if found else set()
    assert {"near", "expand", "phrase", "trigrams"} <= seen


async def test_of_things_called_by_name_those_are_found_that_each_filter_lets_through(
    hall: Hall,
) -> None:
    query = "old brass lamp 1, old brass lamp 2, old brass lamp 3, jar 4, jar 5"
    for which, wanted in hall.filters.items():
        found = await brought(hall, "named", "nodes", query, wanted)
        assert found == (["lamp"] * 3 if which == "until" else ["jar"] * 2), (which, found)


async def test_every_channel_of_a_recall_is_full_under_each_filter(hall: Hall) -> None:
    for profile in ("default", "ambient", "blended", "contextual", "e1_only", "semantic"):
        for which, wanted in hall.filters.items():
            recalled = await hall.memory.recall(
                QUERY, profile=profile, limit=DEPTH, filters=wanted, min_similarity=-1
            )

            filled = [channel for channel in FINDERS if channel in recalled.channels]
            assert filled
            for channel in filled:
                found = [about(hit.item) for hit in recalled[channel]]
                assert is_full(found, "lamp" if which == "until" else "jar", channel), (
                    profile,
                    which,
                    found,
                )


def write_profile(app: App, name: str, extends: str, wanted: ItemFilter) -> None:
    """Write a profile of the user's own that lets through what a filter does."""
    folder = app.settings.home / "profiles"
    folder.mkdir(exist_ok=True)
    lines = (
        f"{key} = {iso(one) if isinstance(one, datetime) else list(one)}"
        for key, one in restrictions(wanted).items()
    )
    text = "\n".join(['description = "d"', f'extends = "{extends}"', "[filters]", *lines])
    (folder / f"{name}.toml").write_text(text)


async def test_what_a_profile_lets_through_fills_every_channel_as_the_same_filter_does(
    app: App, hall: Hall
) -> None:
    for which, wanted in hall.filters.items():
        write_profile(app, which, "default", wanted)
        recalled = await hall.memory.recall(QUERY, profile=which, limit=DEPTH)
        same = await hall.memory.recall(QUERY, limit=DEPTH, filters=wanted)

        for channel in FINDERS:
            found = [about(hit.item) for hit in recalled[channel]]
            assert is_full(found, "lamp" if which == "until" else "jar", channel), (
                which,
                channel,
                found,
            )
            assert [hit.id for hit in recalled[channel]] == [hit.id for hit in same[channel]], (
                which,
                channel,
            )
        assert recalled["anchors"] == same["anchors"] == ()


async def test_a_profiles_filters_and_the_requests_must_both_hold(app: App, hall: Hall) -> None:
    both = await hall.memory.remember(
        "An old brass jar lamp.", tags=["rare", "common"], source_ref="both"
    )
    assert await hall.memory.settled()
    write_profile(app, "rare", "default", ItemFilter(tags=("rare",)))
    write_profile(app, "rare-blended", "blended", ItemFilter(tags=("rare",)))

    async def found(wanted: ItemFilter, **options: Any) -> dict[ChannelName, list[str]]:
        recalled = await hall.memory.recall(
            QUERY, profile="rare", limit=DEPTH, filters=wanted, **options
        )
        return {
            name: [hit.id for hit in channel.hits] for name, channel in recalled.channels.items()
        }

    common = await found(ItemFilter(tags=("common",)))
    assert common == {"nodes": [], "facts": [], "episodes": [both.turn_id], "anchors": []}
    before = await found(ItemFilter(until=hall.cut))
    assert not any(before.values())
    # Facts must hold at the moment that is asked about, whoever of the two says the rest.
    assert (await found(ItemFilter(), as_of=hall.cut))["facts"] == []
    assert len((await found(ItemFilter(kinds=("Goal",))))["facts"]) == DEPTH

    routed = await hall.memory.recall(
        "What did Mira sell?", profile="rare", channels="auto", limit=DEPTH
    )
    assert routed.profile == "facts"
    assert {about(hit.item) for hit in routed["facts"]} == {"jar"}
    blended = await hall.memory.recall(
        QUERY, profile="rare-blended", channels=("nodes",), limit=DEPTH
    )
    assert {hit.signals["tags"] for hit in blended["nodes"]} == {1.0}
