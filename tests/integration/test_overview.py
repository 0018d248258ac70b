"""The overview of a memory: what matters now, what changed, what was given today, what waits; every list bounded."""

from __future__ import annotations

import dataclasses
import json
from datetime import UTC, datetime, timedelta

from pps.app import App
from pps.context import overview as overview_module
from pps.core.values import FactDraft, NodeDraft
from pps.memory import Memory
from pps.operations.calls import Caller, Calls
from pps.operations.pages import PAGE_CHARACTERS

START = datetime(2026, 3, 7, 8, 30, tzinfo=UTC)


def lives(place: str, invalidates: tuple[str, ...] = ()) -> FactDraft:
    return FactDraft(
        "Wren", "LIVES_AT", place, text=f"Wren lives at {place}.", invalidates=invalidates
    )


async def test_it_names_people_places_and_what_replaced_what(memory: Memory) -> None:
    nodes = [NodeDraft("Wren", "Person"), NodeDraft("Haven", "Place"), NodeDraft("Boat", "Project")]
    builds = FactDraft("Wren", "BUILDS", "Boat", text="Wren builds the Boat.")
    await memory.remember(
        "Wren lives at Haven and builds the Boat.",
        nodes=nodes,
        facts=[lives("Haven"), builds],
        occurred_at=START,
        session="first",
    )
    await memory.remember(
        "Wren has moved to the loft.",
        nodes=[NodeDraft("loft", "Place")],
        facts=[lives("loft", ("Wren LIVES_AT",))],
        occurred_at=START + timedelta(days=9),
        session="second",
    )
    assert await memory.settled()

    shown = await memory.overview()

    groups = {node.name: node.group for node in shown.nodes}
    assert groups == {"Wren": "people", "loft": "places", "Boat": "projects"}
    wren = next(node for node in shown.nodes if node.name == "Wren")
    assert (wren.line, wren.facts) == ("Wren lives at loft.", 2)
    assert [(one.change, one.text, one.before_text) for one in shown.changes] == [
        ("replaced", "Wren lives at loft.", "Wren lives at Haven."),
        ("new", "Wren builds the Boat.", None),
    ]
    assert [one.session for one in shown.conversations] == ["second", "first"]
    assert shown.own_node == memory.graph.own
    assert (shown.holds.turns, shown.holds.facts, shown.health.ok) == (2, 3, True)


async def test_each_fact_that_one_statement_replaces_is_no_change_of_its_own(
    memory: Memory,
) -> None:
    works = FactDraft("Wren", "WORKS_AT", "Mill", text="Wren works at the Mill.")
    await memory.remember(
        "Wren lives at Haven and works at the Mill.",
        facts=[lives("Haven"), works],
        occurred_at=START,
    )
    await memory.remember(
        "Wren has moved to the loft and left the Mill.",
        facts=[lives("loft", ("Wren lives at Haven.", "Wren works at the Mill."))],
        occurred_at=START + timedelta(days=9),
    )
    assert await memory.settled()

    changes = (await memory.overview()).changes

    assert [(change.change, change.text) for change in changes] == [
        ("replaced", "Wren lives at loft.")
    ]


async def test_what_was_spoken_of_lately_comes_before_what_was_long_ago(memory: Memory) -> None:
    for number in range(12):
        node = NodeDraft(f"Old {number}", "Person")
        fact = FactDraft(node.name, "KNOWS", "Ana", text=f"{node.name} knows Ana.")
        await memory.remember(fact.text, nodes=[node], facts=[fact], occurred_at=START)
    fact = FactDraft("Priya", "VISITED", "Ana", text="Priya visited Ana.")
    await memory.remember(
        fact.text,
        nodes=[NodeDraft("Priya", "Person")],
        facts=[fact],
        occurred_at=START + timedelta(days=400),
    )
    assert await memory.settled()

    people = [node.name for node in (await memory.overview()).nodes if node.group == "people"]

    assert people[0] == "Priya"
    assert len(people) == overview_module.MAX_NODES_OF_GROUP


async def test_what_was_forgotten_or_never_true_is_in_no_line(memory: Memory) -> None:
    receipt = await memory.remember("Wren lives at Haven.", facts=[lives("Haven")])
    assert await memory.settled()
    await memory.forget([receipt.turn_id], dry_run=False)

    shown = await memory.overview()

    assert "Haven" not in repr(shown)
    assert (shown.nodes, shown.changes, shown.conversations) == ((), (), ())


async def test_merges_and_what_agents_were_given_are_shown(memory: Memory) -> None:
    facts = [
        FactDraft("Dr. Priya Nair", "KNOWS", "Wren", text="Dr. Priya Nair knows Wren."),
        FactDraft("Priya Nair", "LIKES", "clay", text="Priya Nair likes clay."),
    ]
    nodes = [NodeDraft("Dr. Priya Nair", "Person"), NodeDraft("Priya Nair", "Person")]
    await memory.remember("Priya likes clay and knows Wren.", nodes=nodes, facts=facts)
    assert await memory.settled()
    pack = await memory.ambient_recall("What does Priya Nair like?", session="morning")

    while not (shown := await memory.overview()).given.sessions:
        pass  # what was given is noted right after the answer

    assert shown.waiting.merges == 1
    assert {shown.waiting.proposed[0].keep_name, shown.waiting.proposed[0].drop_name} == {
        "Dr. Priya Nair",
        "Priya Nair",
    }
    assert (shown.given.sessions, shown.given.prompts) == (1, 1)
    assert shown.given.tokens == pack.tokens
    assert "Priya Nair likes clay." in [line.text for line in shown.given.lines]


async def test_every_list_and_text_is_bounded_and_a_model_gets_a_page(app: App) -> None:
    await app.create("ana")
    async with app.memory("ana") as memory:
        kinds = ("Person", "Place", "Project", "Boat")
        for kind in kinds:
            nodes = [NodeDraft(f"{kind} {n} {'x' * 210}", kind) for n in range(9)]
            facts = [
                FactDraft(node.name, "IS", "there", text=f"{node.name} {'y' * 300}")
                for node in nodes
            ]
            await memory.remember(f"All of {kind}.", nodes=nodes, facts=facts, session="s" * 190)
        assert await memory.settled()
        folder = memory.parts.journal.path.parents[1]
        (folder / "identity.md").write_text("I am. " * 4_000, encoding="utf-8")

        shown = await memory.overview()

        assert len(shown.nodes) == overview_module.MAX_NODES_OF_GROUP * len(kinds)
        assert len(shown.changes) == overview_module.MAX_CHANGES
        assert len(shown.identity) == overview_module.MAX_IDENTITY
        assert all(len(node.name) <= overview_module.MAX_NAME for node in shown.nodes)
        assert all(len(node.line) <= overview_module.MAX_LINE for node in shown.nodes)
        assert len(json.dumps(dataclasses.asdict(shown), default=str)) < 60_000
    answer = await Calls(app).answer(Caller.of_entity("ana"), "overview", {}, for_model=True)
    assert len(json.dumps(answer.data, ensure_ascii=False)) <= PAGE_CHARACTERS
