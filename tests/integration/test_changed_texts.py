"""A text that is changed is read again: what only its old words say holds no more, what others say too stays."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from pps.app import App
from pps.config import ExtractorSettings, Settings
from pps.core.errors import StoreUnavailable
from pps.core.values import Fact, NodeDraft
from pps.ingest.write_path import Pipeline
from pps.isolation.client import IsolatedGraphitiClient
from pps.journal.journal import Journal
from pps.journal.links import holds
from pps.memory import Memory
from tests.model_server import ModelServer, memory_read_by, model_server, reading_by

_WHEN = datetime(2026, 3, 1, 9, tzinfo=UTC)
_LISBON, _PORTO, _BEN = "Ana lives in Lisbon", "Ana lives in Porto", "Ben knows Ana"


@pytest.fixture
def server() -> Iterator[ModelServer]:
    with model_server(retry_after="0") as running:
        yield running


@pytest.fixture(params=["model", "rules"])
async def both(
    request: pytest.FixtureRequest, settings: Settings, server: ModelServer
) -> AsyncIterator[App]:
    """Two entities whose texts are read in either way."""
    mode = request.param
    extractor = reading_by(server.base_url) if mode == "model" else ExtractorSettings(mode="rules")
    async with App.open(settings.model_copy(update={"extractor": extractor})) as app:
        await app.create("ana")
        await app.create("ben")
        yield app


@pytest.fixture
async def memory(both: App) -> AsyncIterator[Memory]:
    async with both.memory("ana") as opened:
        yield opened


@pytest.fixture
async def thinking(settings: Settings, server: ModelServer) -> AsyncIterator[Memory]:
    """An entity whose texts a model reads."""
    async with memory_read_by(settings, server) as opened:
        yield opened


async def every_fact(memory: Memory) -> list[Fact]:
    return await memory.parts.client.scan_facts("", 100)


async def current(memory: Memory) -> list[str]:
    """Return what holds by the graph, sorted; what a recall finds must be the same."""
    moment = datetime.now(UTC)
    known = sorted(
        fact.text.rstrip(".") for fact in await every_fact(memory) if holds(fact, moment)
    )
    recalled = (await memory.recall("Ana Ben lives knows Lisbon Porto", limit=100))["facts"]
    assert (
        sorted(hit.item.text.rstrip(".") for hit in recalled if isinstance(hit.item, Fact)) == known
    )
    return known


async def names(memory: Memory) -> list[str]:
    return sorted(node.name for node in await memory.parts.client.scan_nodes("", 100))


async def test_an_updated_text_is_read_again_and_what_only_its_old_words_said_holds_no_more(
    both: App,
) -> None:
    async with both.memory("ana") as memory, both.memory("ben") as neighbour:
        mine, theirs = [
            await one.remember(f"{_LISBON}. {_BEN}.", occurred_at=_WHEN)
            for one in (memory, neighbour)
        ]
        untouched = await every_fact(neighbour)
        for version, (text, expected) in enumerate(
            [
                (f"{_PORTO}. {_BEN}.", [_PORTO, _BEN]),
                (f"{_LISBON}. {_BEN}.", [_LISBON, _BEN]),
                ("Nothing to see here.", []),
                (f"{_PORTO}.", [_PORTO]),
            ],
            start=2,
        ):
            receipt = await memory.records.update(mine.turn_id, content=text)
            assert (receipt.state, receipt.version) == ("done", version)
            assert await current(memory) == expected
        assert sorted({fact.text.rstrip(".") for fact in await every_fact(memory)}) == [
            _LISBON,
            _PORTO,
            _BEN,
        ]
        texts = [entry.version.content for entry in await memory.records.history(mine.turn_id)]
        assert texts[0] == f"{_PORTO}."
        assert texts[-1] == f"{_LISBON}. {_BEN}."
        assert await every_fact(neighbour) == untouched
        assert await current(neighbour) == [_LISBON, _BEN]
        assert len(await neighbour.records.history(theirs.turn_id)) == 1
        assert (await memory.ledger()).problems == ()


async def test_an_appended_text_is_read_again_and_what_it_said_goes_on(memory: Memory) -> None:
    told = await memory.remember(f"{_LISBON}.", occurred_at=_WHEN)
    (before,) = await every_fact(memory)
    await memory.records.append(told.turn_id, f"{_BEN}.")
    assert await current(memory) == [_LISBON, _BEN]
    await memory.records.append(told.turn_id, "Ana knows Zoe.")
    assert await current(memory) == ["Ana knows Zoe", _LISBON, _BEN]
    assert before in await every_fact(memory)


async def test_what_another_text_says_too_stays_and_loses_this_support(memory: Memory) -> None:
    first = await memory.remember(f"{_LISBON}.", occurred_at=_WHEN)
    second = await memory.remember(
        f"Good morning!\n{_LISBON}.", occurred_at=_WHEN + timedelta(days=1)
    )
    assert [set(fact.episodes) for fact in await every_fact(memory)] == [
        {first.turn_id, second.turn_id}
    ]
    await memory.records.update(first.turn_id, content="Good evening!")
    assert await current(memory) == [_LISBON]
    assert [fact.episodes for fact in await every_fact(memory)] == [(second.turn_id,)]
    await memory.records.update(second.turn_id, content="Good night!")
    assert await current(memory) == []
    assert await memory.parts.indexes.text_search("episodes", "Lisbon", 10) == [], (
        "no text is found by it any more"
    )


async def test_what_was_taken_back_holds_again_when_another_text_says_it(memory: Memory) -> None:
    first = await memory.remember(f"{_LISBON}.", occurred_at=_WHEN)
    await memory.records.update(first.turn_id, content="Good evening!")
    second = await memory.remember(
        f"Good morning!\n{_LISBON}.", occurred_at=_WHEN + timedelta(days=1)
    )
    assert await current(memory) == [_LISBON]
    assert [fact.episodes for fact in await every_fact(memory)] == [(second.turn_id,)]


async def test_forgetting_a_changed_text_takes_along_what_its_old_words_said(
    memory: Memory,
) -> None:
    told = await memory.remember(f"{_LISBON}. We met near Zanzibar Quay.", occurred_at=_WHEN)
    assert {*await names(memory)} >= {"Ana", "Lisbon"}
    await memory.records.update(told.turn_id, content=f"{_PORTO}.")
    forgotten = await memory.forget([told.turn_id], dry_run=False)
    assert len(forgotten.facts) == 2
    assert await every_fact(memory) == []
    assert await names(memory) == ["Ana"], "the entity's own node stays"


async def test_a_text_that_stays_the_same_is_not_read_again(
    thinking: Memory, server: ModelServer
) -> None:
    told = await thinking.remember(f"{_LISBON}.", occurred_at=_WHEN, nodes=[NodeDraft("Ana")])
    before, asked = await every_fact(thinking), len(server.asked)
    assert (await thinking.records.update(told.turn_id, tags=["home"])).version == 2
    await thinking.jobs.retry([told.job_id])
    assert await thinking.settled(30)
    assert len(server.asked) == asked
    assert await every_fact(thinking) == before
    await thinking.records.update(told.turn_id, content=f"{_PORTO}.")
    assert len(server.asked) > asked


async def test_until_the_model_has_read_new_words_added_ones_keep_the_old_facts_and_others_take_them_back(
    thinking: Memory, server: ModelServer
) -> None:
    added, replaced = [
        (await thinking.remember(f"{text}.", occurred_at=_WHEN)).turn_id for text in (_BEN, _LISBON)
    ]
    asked, server.mode = len(server.asked), "held"
    await thinking.records.append(added, "Ana knows Zoe.", wait="journal")
    await thinking.records.update(replaced, content=f"{_PORTO}.", wait="journal")
    for _ in range(3_000):
        if len(server.asked) > asked and _PORTO in await episodes(thinking):
            break
        await asyncio.sleep(0.02)
    moment = datetime.now(UTC)
    assert [fact.text for fact in await every_fact(thinking) if holds(fact, moment)] == [_BEN]
    server.mode = "good"
    server.freed.set()
    assert await thinking.settled(60)
    assert await current(thinking) == ["Ana knows Zoe", _PORTO, _BEN]


async def episodes(memory: Memory) -> str:
    return " ".join(one.content for one in await memory.parts.client.scan_episodes("", 100))


_STEPS: list[tuple[type, str]] = [
    (IsolatedGraphitiClient, "apply"),
    (IsolatedGraphitiClient, "extract_episode"),
    (Pipeline, "save"),
    (Pipeline, "index"),
    (Pipeline, "read"),
    (Journal, "log_changes"),
]


@pytest.mark.parametrize(("kind", "name"), _STEPS, ids=[name for _, name in _STEPS])
async def test_a_failure_after_any_step_of_the_change_comes_to_the_same_end(
    thinking: Memory, monkeypatch: pytest.MonkeyPatch, kind: type, name: str
) -> None:
    told = await thinking.remember(f"{_LISBON}. {_BEN}.", occurred_at=_WHEN)
    inner, failed = getattr(kind, name), list[str]()

    async def fails_once(*args: Any, **kwargs: Any) -> Any:
        done = await inner(*args, **kwargs)
        if not failed:
            failed.append(name)
            raise StoreUnavailable("gone for a moment")
        return done

    monkeypatch.setattr(kind, name, fails_once)
    await thinking.records.update(told.turn_id, content=f"{_PORTO}. {_BEN}.", wait="journal")
    assert await thinking.settled(60)
    assert failed == [name]
    assert await current(thinking) == [_PORTO, _BEN]
    facts = {fact.text: fact for fact in await every_fact(thinking)}
    assert sorted(facts) == [_LISBON, _PORTO, _BEN]
    assert {fact.episodes for fact in facts.values()} == {(told.turn_id,)}
    assert await names(thinking) == ["Ana", "Ben", "Lisbon", "Porto"]
    assert (await thinking.ledger()).problems == ()
