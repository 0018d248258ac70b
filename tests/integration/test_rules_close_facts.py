"""What people type opens facts, changes them and ends them: by rules, from remember to the graph."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from pps.app import App
from pps.config import Settings
from pps.core.values import Fact
from pps.memory import Memory
from tests.changed_things import Order, measure

START = datetime(2026, 3, 2, 9, tzinfo=UTC)

CASES: list[tuple[str, Sequence[str], set[str], set[str]]] = [
    # name, what is said day by day, facts that hold, facts that hold no longer
    (
        "a tool is no place",
        ["I live in Berlin.", "We moved to Kubernetes last month."],
        {"User LIVES_IN Berlin", "User USES Kubernetes"},
        set(),
    ),
    (
        "a team is no place",
        ["I live in Berlin.", "I moved to the platform team.", "I moved to Marketing in May."],
        {"User LIVES_IN Berlin"},
        set(),
    ),
    (
        "a dog's right name",
        ["My dog is called Rex.", "My dog is called Bruno, not Rex."],
        {"User HAS Bruno"},
        {"User HAS Rex"},
    ),
    (
        "a favourite",
        ["My favourite editor is Vim.", "My favourite editor is Helix now."],
        {"User FAVOURITE_EDITOR Helix"},
        {"User FAVOURITE_EDITOR Vim"},
    ),
    (
        "two favourites of two kinds",
        ["My favourite editor is Vim.", "My favourite colour is teal."],
        {"User FAVOURITE_EDITOR Vim", "User FAVOURITE_COLOUR teal"},
        set(),
    ),
    (
        "a correction of what was just said",
        ["I live in Milan.", "Actually no, it's Turin."],
        {"User LIVES_IN Turin"},
        {"User LIVES_IN Milan"},
    ),
    (
        "a correction of a favourite",
        ["My favourite colour is green.", "Actually no, it's blue."],
        {"User FAVOURITE_COLOUR blue"},
        {"User FAVOURITE_COLOUR green"},
    ),
    (
        "a correction of somebody else's employer",
        ["Ines works at Nokia.", "Wait, no: she works at Ericsson."],
        {"Ines WORKS_AT Ericsson"},
        {"Ines WORKS_AT Nokia"},
    ),
    (
        "a correction of whom somebody has",
        ["My girlfriend is Sofia.", "No, it's Sonia."],
        {"Sonia GIRLFRIEND_OF User"},
        {"Sofia GIRLFRIEND_OF User"},
    ),
    (
        "two spellings of one favourite",
        ["My favorite color is red.", "My favourite colour is blue now."],
        {"User FAVOURITE_COLOUR blue"},
        {"User FAVOURITE_COLOR red"},
    ),
    (
        "a promotion",
        ["I'm a junior developer.", "I got promoted to senior developer today."],
        {"User WORKS_AS senior developer"},
        {"User WORKS_AS junior developer"},
    ),
    (
        "a number that changed",
        ["My phone number is 555 0142 11.", "My phone number changed to 555 0177 11."],
        {"User HAS_PHONE_NUMBER 555 0177 11"},
        {"User HAS_PHONE_NUMBER 555 0142 11"},
    ),
    (
        "a flatmate who moved out",
        ["My flatmate is Tim.", "My flatmate Tim moved out."],
        set(),
        {"Tim ROOMMATE_OF User"},
    ),
    (
        "a boss who left",
        ["My boss is Karin.", "Karin left the company last week."],
        set(),
        {"Karin BOSS_OF User"},
    ),
    (
        "a plain denial",
        [
            "I like jazz.",
            "I'm allergic to nuts.",
            "I don't like jazz.",
            "I'm not allergic to nuts.",
        ],
        set(),
        {"User LIKES jazz", "User ALLERGIC_TO nuts"},
    ),
    (
        "a preference the other way round",
        ["I prefer tea.", "I prefer coffee to tea now."],
        {"User PREFERS coffee"},
        {"User PREFERS tea"},
    ),
    (
        "an animal that was put down",
        ["I have a dog called Rex.", "We had to put Rex down on Monday."],
        set(),
        {"User HAS Rex"},
    ),
    (
        "an hour without minutes",
        ["The standup is at 9:30.", "The standup is now at 10."],
        {"standup STARTS_AT 10"},
        {"standup STARTS_AT 9:30"},
    ),
    (
        "a key that somebody keeps",
        ["The spare key is in the shed.", "The spare key is now with Mrs. Adler."],
        {"spare key KEPT_AT with Mrs. Adler"},
        {"spare key KEPT_AT in the shed"},
    ),
    (
        "a correction of a day",
        ["The exam is on Monday.", "I meant Tuesday, not Monday"],
        {"exam HAPPENS_ON Tuesday"},
        {"exam HAPPENS_ON Monday"},
    ),
    (
        "a correction of an amount",
        ["The deposit is 2,000 euros.", "No, sorry, 2,500 euros."],
        {"deposit HAS_VALUE 2,500 euros"},
        {"deposit HAS_VALUE 2,000 euros"},
    ),
    (
        "a correction of a favourite",
        ["My favourite editor is Vim.", "Sorry, I meant Neovim."],
        {"User FAVOURITE_EDITOR Neovim"},
        {"User FAVOURITE_EDITOR Vim"},
    ),
    (
        "a plan of another day",
        ["I'm flying to Tokyo on June 3.", "I'm flying to Tokyo on June 9 instead."],
        {"User PLANS fly to Tokyo"},
        {"User PLANS fly to Tokyo"},
    ),
    (
        "a part of a system",
        ["The billing service uses PostgreSQL.", "We migrated the billing service to MySQL."],
        {"billing service USES MySQL"},
        {"billing service USES PostgreSQL"},
    ),
    (
        "a remark that corrects nothing",
        ["I live in Milan.", "Actually it's fine.", "Oh no, Jon!"],
        {"User LIVES_IN Milan"},
        set(),
    ),
    (
        "a death",
        ["My cat is called Biscuit.", "Biscuit is a grey cat.", "Biscuit died on Sunday."],
        set(),
        {"User HAS Biscuit", "Biscuit IS_A grey cat"},
    ),
    (
        "a job that is quit",
        ["I'm a data analyst at Tesco.", "I quit my job."],
        set(),
        {"User WORKS_AT Tesco", "User WORKS_AS data analyst"},
    ),
    (
        "a job that is left for another",
        ["I work at Siemens.", "I quit my job and started at Bosch this week."],
        {"User WORKS_AT Bosch"},
        {"User WORKS_AT Siemens"},
    ),
    (
        "no longer somewhere",
        ["I live in Rome.", "I work at Acme.", "I don't live in Rome any more."],
        {"User WORKS_AT Acme"},
        {"User LIVES_IN Rome"},
    ),
    (
        "a couple that breaks up",
        ["My girlfriend is Tessa.", "We broke up."],
        set(),
        {"Tessa GIRLFRIEND_OF User"},
    ),
    (
        "a landlord that changes",
        ["Our landlord is Mr. Novak.", "Our new landlord is Ms. Petrov."],
        {"Ms. Petrov LANDLORD_OF User"},
        {"Mr. Novak LANDLORD_OF User"},
    ),
    (
        "a car by its short name",
        ["I have a red Fiat Panda.", "I sold the Panda."],
        set(),
        {"User HAS red Fiat Panda"},
    ),
    (
        "a thing by its other name",
        ["The budget for the kitchen is 12,000 euros.", "The kitchen budget is 15,000 euros now."],
        {"budget for the kitchen HAS_VALUE 15,000 euros"},
        {"budget for the kitchen HAS_VALUE 12,000 euros"},
    ),
    (
        "an event that moves",
        ["The launch is on 12 May.", "We moved the launch to 19 May."],
        {"launch HAPPENS_ON 19 May"},
        {"launch HAPPENS_ON 12 May"},
    ),
    (
        "an event that is cancelled",
        ["The party is on 12 May.", "The party is cancelled."],
        set(),
        {"party HAPPENS_ON 12 May"},
    ),
    (
        "a database that is replaced",
        ["We use PostgreSQL.", "We use Redis.", "We switched to MySQL."],
        {"User USES Redis", "User USES MySQL"},
        {"User USES PostgreSQL"},
    ),
    (
        "a taste that is gone",
        ["I like olives.", "I like tea.", "I don't like olives any more."],
        {"User LIKES tea"},
        {"User LIKES olives"},
    ),
    (
        "a decision that is taken back",
        ["We decided to hire a tester.", "We decided not to hire a tester."],
        set(),
        {"User DECIDED hire a tester"},
    ),
    (
        "an order and its opposite",
        ["Always use tabs.", "Never use tabs."],
        {"User NEVER use tabs"},
        {"User ALWAYS use tabs"},
    ),
]


async def facts_of(memory: Memory, turns: set[str], actor: str) -> tuple[set[str], set[str]]:
    """Return the facts of some turns that hold and those that ended, the speaker named ``User``."""
    facts = [fact for fact in await _all_facts(memory) if turns & set(fact.episodes)]
    ends = list({end for fact in facts for end in (fact.subject, fact.object)})
    names = {node.uuid: node.name for node in await memory.parts.client.nodes(ends)}
    held: set[str] = set()
    ended: set[str] = set()
    for fact in facts:
        words = f"{names[fact.subject]} {fact.relation} {names[fact.object]}"
        (held if fact.invalid_at is None else ended).add(words.replace(actor, "User"))
    return held, ended


async def _all_facts(memory: Memory) -> list[Fact]:
    facts: list[Fact] = []
    cursor = ""
    while True:
        page = await memory.timeline(limit=100, cursor=cursor)
        facts += page.facts
        cursor = page.next_cursor
        if not cursor:
            return facts


async def test_what_is_said_later_holds(tmp_path: Path) -> None:
    async with App.open(Settings(home=tmp_path)) as app:
        await app.create("home")
        async with app.memory("home") as memory:
            turns: dict[str, set[str]] = {}
            for number, (_, texts, _, _) in enumerate(CASES):
                actor = f"Speaker{number}"
                for day, text in enumerate(texts):
                    receipt = await memory.remember(
                        text,
                        actor=actor,
                        session=actor,
                        occurred_at=START + timedelta(days=day),
                    )
                    turns.setdefault(actor, set()).add(receipt.turn_id)
            assert await memory.settled(120)
            for number, (name, _, held, ended) in enumerate(CASES):
                actor = f"Speaker{number}"
                found = await facts_of(memory, turns[actor], actor)
                assert found == (held, ended), name


@pytest.mark.parametrize("name", ["build", "held_back"])
@pytest.mark.parametrize("order", ["in order", "changes first"])
async def test_what_changed_is_given_as_it_is_now(tmp_path: Path, name: str, order: Order) -> None:
    counts, verdicts = await measure(tmp_path, name, order)
    by_question = {question: verdict for question, (verdict, _) in verdicts.items()}
    assert counts["current first"] >= 22, by_question
    assert counts["old first"] == 0, by_question
