"""Looking through a memory without a question: turns by words and around one, names by kind, a hub to its end."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from typing import Any, cast

import pytest

from pps.app import App
from pps.core.errors import InvalidRequest, NotFound
from pps.core.values import FactDraft, NodeDraft
from pps.memory import Memory
from pps.operations.calls import Caller, Calls

_AT = datetime(2026, 3, 1, 9, tzinfo=UTC)
_NOBODY = "00000000-0000-4000-8000-000000000000"
_HUB = 23


@pytest.fixture
async def memory(app: App) -> AsyncIterator[Memory]:
    await app.create("ana")
    async with app.memory("ana") as memory:
        texts = ["Der Fluß steigt.", "The RIVER rises.", "Boats wait.", "The river falls again."]
        for number, text in enumerate(texts):
            at = _AT + timedelta(minutes=number)
            await memory.remember(text, session="talk", occurred_at=at)
        nodes = [NodeDraft("Élan", "Person", aliases=("Moose",)), NodeDraft("Harbour", "Place")]
        members = [FactDraft(f"boat {number:02}", "BERTHS_AT", "Harbour") for number in range(_HUB)]
        await memory.remember(
            "Élan keeps the harbour.", session="other", nodes=nodes, facts=members, occurred_at=_AT
        )
        yield memory


@pytest.mark.parametrize(
    ("query", "texts"),
    [
        ("river", ["The river falls again.", "The RIVER rises."]),
        ("RIVER again", ["The river falls again."]),
        ("again river", ["The river falls again."]),
        ("FLUSS", ["Der Fluß steigt."]),
        ("100% _", []),
    ],
)
async def test_turns_are_found_by_all_of_some_words(
    memory: Memory, query: str, texts: list[str]
) -> None:
    assert [one.turn.content for one in (await memory.graph.said(query=query)).turns] == texts


async def test_turns_are_found_by_the_node_that_they_mention_and_by_time(memory: Memory) -> None:
    def texts(page: object) -> list[str]:
        return [one.turn.content for one in cast("Any", page).turns]

    assert texts(await memory.graph.said(about="Moose")) == ["Élan keeps the harbour."]
    assert texts(await memory.graph.said(about="harbour", query="river")) == []
    since, until = _AT + timedelta(minutes=1), _AT + timedelta(minutes=3)
    assert texts(await memory.graph.said(since=since, until=until)) == [
        "Boats wait.",
        "The RIVER rises.",
    ]
    assert texts(await memory.graph.said(since=since, query="river", limit=1)) == [
        "The river falls again."
    ]
    with pytest.raises(NotFound):
        await memory.graph.said(about=_NOBODY)
    with pytest.raises(InvalidRequest, match="near"):
        await memory.graph.said(near=_NOBODY, since=since)


async def test_what_is_found_by_words_goes_on_at_the_cursor_and_within_a_session(
    memory: Memory,
) -> None:
    first = await memory.graph.said(query="river", limit=1)
    second = await memory.graph.said(query="river", limit=1, cursor=first.next_cursor)
    assert [one.turn.content for one in (*first.turns, *second.turns)] == [
        "The river falls again.",
        "The RIVER rises.",
    ]
    assert (await memory.graph.said("other", query="river")).turns == ()
    with pytest.raises(InvalidRequest, match="at most 20 words"):
        await memory.graph.said(query=" ".join(map(str, range(21))))


async def test_a_turn_is_shown_with_what_was_said_before_and_after_it(memory: Memory) -> None:
    [river] = (await memory.graph.said(query="rises")).turns
    near = await memory.graph.said(near=river.turn.uuid[:8], limit=3)
    texts = [one.turn.content for one in near.turns]
    assert texts == ["Boats wait.", "The RIVER rises.", "Der Fluß steigt."]
    assert (near.sessions, near.next_cursor) == ((), "")
    node = await memory.graph.find("Harbour")
    for absent in (_NOBODY, node):
        with pytest.raises(NotFound):
            await memory.graph.said(near=absent)
    others: list[dict[str, Any]] = [{"query": "river"}, {"session": "talk"}, {"cursor": "1.1"}]
    for more in others:
        with pytest.raises(InvalidRequest, match="near"):
            await memory.graph.said(near=river.turn.uuid, **more)


async def test_names_are_listed_by_kind_and_by_a_part_of_a_name_or_alias(memory: Memory) -> None:
    page = await memory.graph.nodes("place")
    assert [(node.name, page.facts[node.uuid]) for node in page.nodes] == [("Harbour", _HUB)]
    assert (page.kinds["Person"], page.kinds["Thing"]) == (1, _HUB)
    for part in ("moos", "ÉLA", "élan"):
        found = await memory.graph.nodes(query=part)
        assert [node.name for node in found.nodes] == ["Élan"]
    assert (await memory.graph.nodes(query="%")).nodes == ()
    names: list[str] = []
    cursor = ""
    while True:
        page = await memory.graph.nodes("Thing", limit=7, cursor=cursor)
        names += [node.name for node in page.nodes]
        cursor = page.next_cursor
        if not cursor:
            break
    assert names == [f"boat {number:02}" for number in range(_HUB)]
    for wrong in ("boat 03", _NOBODY):
        with pytest.raises(InvalidRequest, match="cursor"):
            await memory.graph.nodes(cursor=wrong)


async def test_a_hub_is_walked_to_its_end_page_by_page(app: App, memory: Memory) -> None:
    calls = Calls(app)
    ask = Caller.of_entity(memory.entity)
    given: dict[str, Any] = {"id": "Harbour", "limit": 5}
    seen: list[str] = []
    facts: list[str] = []
    while True:
        page = cast("dict[str, Any]", (await calls.answer(ask, "graph_around", given)).data)
        seen += [node["name"] for node in page["nodes"]]
        facts += [fact["id"] for fact in page["facts"]]
        if not page["more"]:
            break
        given = {**given, "cursor": page["next_cursor"]}
    assert seen[0] == "Harbour"
    assert sorted(seen[1:]) == [f"boat {number:02}" for number in range(_HUB)]
    assert len(set(facts)) == len(facts) == _HUB
    assert "next_cursor" not in page
    for cursor in ("-1", "x", "1000000"):
        with pytest.raises(InvalidRequest, match="cursor"):
            await calls.answer(ask, "graph_around", {"id": "Harbour", "cursor": cursor})
