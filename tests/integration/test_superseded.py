"""What is superseded is never given alone: packs, recall, timeline, turns and items say what took its place."""

from __future__ import annotations

import tomllib
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from pps.app import App
from pps.config import EmbedderSettings, Settings
from pps.core.errors import IsolationError, StoreUnavailable
from pps.core.recalled import Recall, Successor
from pps.core.values import FactDraft, Turn
from pps.journal.closing_rows import Closings, ClosingsAround
from pps.memory import Memory
from pps.operations.item_views import FactView, ItemView, TurnView
from pps.operations.memory_tools import items_text, read_items, timeline_text, timeline_view

MARCH = datetime(2026, 3, 1, 9, 0, tzinfo=UTC)
OLD = "The wedding is on 14 June in Vienna."
NEW = "Change of plans: the wedding is on 21 June now."
LEDGER = "We'll use Postgres for the ledger."
AMENDED = "For the ledger database let's go with CockroachDB instead."


@pytest.fixture
async def clever(settings: Settings) -> AsyncIterator[Memory]:
    """A memory on each store, with the real embedding model."""
    real = settings.model_copy(update={"embedder": EmbedderSettings(name="minilm")})
    async with App.open(real) as app:
        await app.create("ana")
        async with app.memory("ana") as opened:
            yield opened


async def say(memory: Memory, *texts: str, first_day: int = 0, **options: Any) -> list[str]:
    """Remember texts in sessions of their own, ten days apart; return their ids."""
    ids = [
        (
            await memory.remember(
                text,
                session=f"s{first_day + 10 * number}",
                occurred_at=MARCH + timedelta(days=first_day + 10 * number),
                **options,
            )
        ).turn_id
        for number, text in enumerate(texts)
    ]
    assert await memory.settled()
    return ids


def lines(text: str) -> list[str]:
    return [line for line in text.splitlines() if line.startswith("- ")]


def turns_of(recalled: Recall) -> dict[str, Successor | None]:
    """Return the words of the turns that were found, best first, with their successors."""
    return {
        hit.item.content: hit.superseded_by
        for hit in recalled["episodes"]
        if isinstance(hit.item, Turn)
    }


def successor_in(view: ItemView) -> str | None:
    """Return the id of what took the place of an item, as its view has it."""
    assert isinstance(view, (FactView, TurnView))
    return view.superseded_by.id if view.superseded_by else None


async def test_a_prompt_gets_the_current_line_again_when_the_start_has_shown_it(
    clever: Memory,
) -> None:
    """The start shows 21 June; the prompt would get only the line of March, since what was shown is left out."""
    await say(clever, OLD, *(f"Call the plumber, try {n}." for n in range(12)), NEW)
    start = await clever.sessions.pack("", "x", mode="startup")
    pack = await clever.sessions.pack("When is the wedding?", "x")

    assert "21 June" in start.text
    assert "14 June" not in start.text
    [current, old, *_] = lines(pack.text)
    assert "21 June now" in current
    assert "14 June" not in current
    assert "14 June" in old
    assert "(superseded 2026-07-09: Change of plans: the wedding is on 21 June now.)" in old


async def test_a_start_marks_what_is_superseded_among_the_latest_turns(clever: Memory) -> None:
    await say(clever, OLD, NEW)
    start = await clever.sessions.pack("", "x", mode="startup")

    [old] = [line for line in lines(start.text) if "14 June" in line]
    assert "superseded 2026-03-11" in old


async def test_what_the_session_itself_has_changed_is_not_given_at_all(clever: Memory) -> None:
    await say(clever, OLD)
    await clever.remember(NEW, session="x", occurred_at=MARCH + timedelta(days=30))
    assert await clever.settled()
    pack = await clever.sessions.pack("When is the wedding?", "x")

    assert "14 June" not in pack.text
    assert "21 June" not in pack.text, "the reader has its session's own words before it"
    other = await clever.sessions.pack("When is the wedding?", "y")
    assert "21 June" in lines(other.text)[0]


@pytest.mark.parametrize("order", ["as said", "backwards"])
async def test_a_decision_that_was_amended_in_other_words_stands_below_the_later_one(
    clever: Memory, order: str
) -> None:
    said = [(LEDGER, 0), ("The ledger tests need fixtures.", 20), (AMENDED, 60)]
    for text, day in said if order == "as said" else reversed(said):
        await say(clever, text, first_day=day)
    recalled = await clever.recall("Which database does the ledger use?")
    found = turns_of(recalled)

    assert list(found)[:2] == [AMENDED, LEDGER]
    assert found[AMENDED] is None
    successor = found[LEDGER]
    assert successor is not None
    assert (successor.text, successor.sure) == (AMENDED, True)
    assert successor.at == MARCH + timedelta(days=60)
    assert found["The ledger tests need fixtures."] is None


async def test_six_decisions_of_coding_chats_stand_below_what_amends_them(clever: Memory) -> None:
    """Each in two sessions, in other words, with the replies of an agent around them."""
    decisions: list[dict[str, str]] = tomllib.loads(
        (Path(__file__).parents[1] / "fixtures" / "amended_decisions.toml").read_text("utf-8")
    )["decision"]
    for number, decision in enumerate(decisions):
        for key, value, day in (("first", "old", number), ("then", "new", 40 + number)):
            at = MARCH + timedelta(days=day)
            told = (
                ("user", "Can you look at the failing test in the CI first?"),
                ("user", decision[key]),
                ("assistant", f"Done. {decision[value]} is in place, the tests pass."),
            )
            for minutes, (role, text) in enumerate(told):
                await clever.remember(
                    text,
                    role=role,
                    session=f"{key} {number}",
                    occurred_at=at + timedelta(minutes=minutes),
                )
    assert await clever.settled()
    for decision in decisions:
        found = turns_of(await clever.recall(decision["ask"]))
        order = list(found)

        assert order.index(decision["then"]) < order.index(decision["first"])
        successor = found[decision["first"]]
        assert successor is not None
        assert successor.text == decision["then"]


async def test_a_question_about_the_past_keeps_its_order_and_the_mark(clever: Memory) -> None:
    await say(clever, OLD, NEW)
    found = turns_of(await clever.recall("When was the wedding originally?"))

    assert found[OLD] is not None
    before = await clever.recall("When is the wedding?", as_of=MARCH + timedelta(days=5))
    assert turns_of(before).get(OLD) is None, "nobody had changed it by then"


async def test_a_fact_that_a_later_turn_amends_is_marked_and_a_pack_gives_the_turn(
    clever: Memory,
) -> None:
    """The fact is made from the first text; nothing reads the second, which says otherwise."""
    fact = FactDraft("ledger", "USES", "Postgres", LEDGER)
    await say(clever, LEDGER, facts=[fact])
    await say(clever, AMENDED, first_day=30, extraction="none")
    recalled = await clever.recall("Which database does the ledger use?")
    [found] = [hit for hit in recalled["facts"] if "Postgres" in hit.text]

    assert found.superseded_by is not None
    assert found.superseded_by.text == AMENDED
    pack = await clever.ambient_recall("Which database does the ledger use?", session="x")
    stated = [line for line in lines(pack.text) if "for the ledger" in line.lower()]
    assert "CockroachDB" in stated[0]
    assert all("superseded" in line for line in stated if "Postgres" in line)
    assert "## Facts" not in pack.text


async def test_closed_facts_name_their_successors_on_every_surface(memory: Memory) -> None:
    """On each store, without meaning: what a caller replaced explicitly."""
    rome = FactDraft("Mira", "LIVES_IN", "Rome", "Mira lives in Rome.", valid_at=MARCH)
    [old] = await say(memory, "Mira lives in Rome.", facts=[rome])
    milan = FactDraft(
        "Mira",
        "LIVES_IN",
        "Milan",
        "Mira lives in Milan.",
        valid_at=MARCH + timedelta(days=30),
        invalidates=("Mira lives in Rome.",),
    )
    [new] = await say(memory, "Mira lives in Milan.", first_day=30, facts=[milan])
    page = await memory.timeline(id="Mira")
    [closed, current] = sorted(page.facts, key=lambda fact: fact.text, reverse=True)
    assert page.successors[closed.uuid].id == current.uuid
    assert page.successors[closed.uuid].text == "Mira lives in Milan."
    assert current.uuid not in page.successors
    text = timeline_text(timeline_view(page))
    assert "(superseded 2026-03-31: Mira lives in Milan.)" in text
    said = await memory.graph.said()
    assert said.successors[old].id == new
    assert new not in said.successors
    views = {view.id: view for view in await read_items(memory, [old, closed.uuid, new])}
    assert successor_in(views[old]) == new
    assert successor_in(views[closed.uuid]) == current.uuid
    assert successor_in(views[new]) is None
    found = turns_of(await memory.recall("Where does Mira live?"))
    assert next(iter(found)) == "Mira lives in Milan."
    assert found["Mira lives in Rome."] is not None


async def test_what_rules_close_is_marked_for_turns_and_facts(memory: Memory) -> None:
    """On each store, by closings alone: the texts share no word, and no model says what they mean."""
    [old] = await say(memory, "I live in Rome.")
    [new] = await say(memory, "We've moved to Milan.", first_day=32)
    said = await memory.graph.said()
    page = await memory.timeline()
    closed = [fact for fact in page.facts if "Rome" in fact.text]

    assert said.successors[old].id == new
    assert new not in said.successors
    assert [page.successors[fact.uuid].text for fact in closed] == ["We've moved to Milan."]
    await memory.forget([new], dry_run=False)
    assert await memory.settled()
    assert (await memory.graph.said()).successors == {}
    assert (await memory.timeline()).successors == {}


@pytest.mark.parametrize(
    ("first", "second", "stale", "question"),
    [
        (
            "I'm vegetarian and I live in Leeds with my sister Hannah.",
            "Actually, I moved to York last week; Hannah stays in Leeds.",
            "I live in Leeds",
            "Where do I live now?",
        ),
        (
            "I live in Hamburg and work as a nurse at St. Georg.",
            "I moved to Kiel in March.",
            "I live in Hamburg",
            "What is my job?",
        ),
    ],
)
async def test_a_sentence_of_which_a_part_ended_is_marked_for_the_facts_that_still_hold(
    memory: Memory, first: str, second: str, stale: str, question: str
) -> None:
    """The fact of the other part is open, and its sentence says what no longer holds."""
    told, later = await say(memory, first, second, extraction="rules")
    open_facts = [
        fact
        for fact in await memory.parts.client.facts_of_episodes([told])
        if fact.invalid_at is None
    ]
    assert open_facts
    hits = (await memory.recall(first, channels=["facts"], limit=20))["facts"]
    marks = {hit.id: hit.superseded_by for hit in hits}
    for fact in open_facts:
        mark = marks[fact.uuid]
        assert (mark is not None) == (stale in fact.text), fact.text
        assert mark is None or not mark.sure
    assert any(stale in fact.text for fact in open_facts)
    pack = await memory.sessions.pack(question, "q")
    stale_lines = [line for line in lines(pack.text) if stale in line]
    assert [
        line for line in stale_lines if "outdated" not in line and "superseded" not in line
    ] == []
    await memory.forget([later], dry_run=False)
    assert await memory.settled()
    hits = (await memory.recall(first, channels=["facts"], limit=20))["facts"]
    assert [hit.superseded_by for hit in hits] == [None] * len(hits)


async def test_forgetting_the_later_statement_takes_the_mark_away(clever: Memory) -> None:
    await say(clever, LEDGER)
    [new] = await say(clever, AMENDED, first_day=30)
    await clever.forget([new], dry_run=False)
    assert await clever.settled()

    assert turns_of(await clever.recall("Which database does the ledger use?")) == {LEDGER: None}


async def test_turns_and_items_are_marked_by_what_later_turns_say(clever: Memory) -> None:
    old, new = await say(clever, LEDGER, AMENDED)
    said = await clever.graph.said("s0")

    assert said.successors[old].id == new, "the other session's turn is not on the page"
    [view] = await read_items(clever, [old])
    assert isinstance(view, TurnView)
    assert view.superseded_by is not None
    assert f"(superseded 2026-03-11: {AMENDED})" in items_text([view])


async def test_why_tells_what_is_superseded_and_what_was_moved(clever: Memory) -> None:
    old, new = await say(clever, LEDGER, AMENDED)
    why = await clever.why("Do we use Postgres for the ledger?", old)
    [told] = [one for one in why.channels["episodes"].candidates if one.id == old]

    assert f"superseded 2026-03-11: {AMENDED} [{new}]" in told.verdict
    [first] = [one for one in why.channels["episodes"].candidates if one.place == 1]
    assert first.id == new


async def test_recall_answers_unmarked_with_a_note_when_closings_cannot_be_read(
    clever: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    await say(clever, LEDGER, AMENDED)

    async def broken(*_: object) -> ClosingsAround:
        raise StoreUnavailable("the disk is away")

    monkeypatch.setattr(Closings, "around", broken)
    recalled = await clever.recall("Which database does the ledger use?")

    assert LEDGER in turns_of(recalled)
    assert any("superseded" in note for note in recalled.notes)


async def test_a_foreign_row_among_closings_ends_the_recall(
    clever: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    await say(clever, LEDGER, AMENDED)

    async def foreign(*_: object) -> ClosingsAround:
        raise IsolationError("a row of another group")

    monkeypatch.setattr(Closings, "around", foreign)
    with pytest.raises(IsolationError):
        await clever.recall("Which database does the ledger use?")
