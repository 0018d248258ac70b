"""A title stands for what the entity itself has: one of another's reads as nobody's, by every tool that takes titles."""

from __future__ import annotations

from typing import Any

import pytest

from pps.app import App
from pps.core.errors import InvalidRequest, NotFound
from pps.operations.calls import Caller
from pps.operations.catalog import operations_for
from pps.records.saving import RecordGiven
from tests.isolation.house import House, One, everything, outcome
from tests.squads import team_of_three

NOBODYS = "kanarie0123456789ab"
"""A title as long as a mark, which nothing has."""
SHARED = ("Ana", "Drink less coffee")
"""A node and a record that every entity of the house has."""

TITLED: dict[str, list[dict[str, Any]]] = {
    "recall": [{"query": "coffee", "profile": "hybrid", "center": "{title}"}],
    "why": [{"query": "coffee", "expect": "{title}"}],
    "timeline": [{"id": "{title}"}],
    "turns_list": [{"about": "{title}"}],
    "get": [{"ids": ["{title}"]}, {"ids": ["Ana", "{title}"]}],
    "forget": [{"ids": ["{title}"]}, {"ids": ["{title}"], "soft": True, "dry_run": False}],
    "forget_concept": [{"id": "{title}"}],
    "update": [{"id": "{title}", "content": "Mine."}],
    "append": [{"id": "{title}", "content": "Mine."}],
    "history": [{"id": "{title}"}],
    "merge_nodes": [{"keep": "Coffee", "drop": "{title}"}, {"keep": "{title}", "drop": "Coffee"}],
    "merge_concepts": [
        {"source_ids": ["Coffee", "{title}"], "target_name": "Coffee", "rationale": "Mine."}
    ],
    "record_save": [
        {"records": [{"id": "{title}", "summary": "Mine."}]},
        {"records": [{"kind": "Task", "title": "Own", "summary": "Own.", "cites": ["{title}"]}]},
        {
            "records": [
                {
                    "kind": "Task",
                    "title": "Own",
                    "summary": "Own.",
                    "relations": [{"type": "SERVES", "target": "{title}"}],
                }
            ]
        },
    ],
    "record_get": [{"ids": ["{title}"]}],
    "record_move": [{"id": "{title}", "to": "in_progress"}],
    "record_relate": [
        {"source": "{title}", "type": "SERVES", "target": "Drink less coffee"},
        {"source": "Buy tea", "type": "SERVES", "target": "{title}"},
    ],
    "record_search": [{"query": "coffee", "anchor_node_id": "{title}"}],
    "record_ask": [
        {"query": "why", "parameters": {"id": "{title}"}},
        {"query": "bridge", "parameters": {"id": "Buy tea", "target": "{title}"}},
    ],
    "graph_rank": [{"algorithm": "shortest_path", "source": "Buy tea", "target": "{title}"}],
    "graph_around": [{"id": "{title}"}],
    "changes": [{"since": "2000-01-01", "until": "2100-01-01", "id": "{title}"}],
    "add_event": [{"content": "Mine.", "parent_node_id": "{title}"}],
    "record_delete": [{"ids": ["{title}"]}, {"ids": ["{title}"], "dry_run": False}],
}


def filled(value: Any, title: str) -> Any:
    if isinstance(value, dict):
        return {key: filled(item, title) for key, item in value.items()}
    if isinstance(value, list):
        return [filled(item, title) for item in value]
    return value.format(title=title) if isinstance(value, str) else value


def test_every_tool_that_says_it_takes_titles_is_attacked_here() -> None:
    def takes_titles(schema: Any) -> bool:
        if isinstance(schema, list):
            return any(map(takes_titles, schema))
        if not isinstance(schema, dict):
            return False
        text = str(schema.get("description", "")).casefold()
        said_here = "id" in text.split() and ("title" in text or "name of a node" in text)
        return said_here or any(map(takes_titles, schema.values()))

    said = {
        name for name, verb in operations_for("entity").items() if takes_titles(verb.input_schema())
    }
    assert said - set(TITLED) == set()


async def test_a_title_of_another_is_nobodys_and_shows_and_changes_nothing(house: House) -> None:
    one, other, _ = house.all
    before = await everything(other)
    for verb, attacks in TITLED.items():
        for arguments in attacks:
            theirs = await asked(house, one, verb, filled(arguments, other.mark))
            assert house.seen(one, theirs.replace(other.mark, ""), other.node, other.record) == []
            nobodys = await asked(house, one, verb, filled(arguments, NOBODYS))
            if verb not in ("why", "add_event"):  # those answer with what they were given or made
                assert theirs.replace(other.mark, NOBODYS) == nobodys, (verb, arguments)
                assert "NotFound" in theirs or "InvalidRequest" in theirs, (verb, theirs)
        assert await everything(other) == before, verb


async def asked(house: House, one: One, verb: str, arguments: dict[str, Any]) -> str:
    return str(
        await outcome(house.calls.answer(Caller.of_entity(one.memory.entity), verb, arguments))
    )


async def test_a_title_that_all_have_stands_for_ones_own_alone(house: House) -> None:
    one, *others = house.all
    before = [await everything(other) for other in others]
    for verb, attacks in TITLED.items():
        for arguments in attacks:
            for title in SHARED:
                answer = await asked(house, one, verb, filled(arguments, title))
                assert house.seen(one, answer) == [], (verb, arguments)
    assert [await everything(other) for other in others] == before


async def test_a_title_of_several_lists_ones_own_alone(house: House) -> None:
    for one in house.all:
        again = RecordGiven("Task", "Buy tea", "Green tea.", another=True)
        saved = await one.memory.records.save([again])
        house.watch.own(one.memory.entity.name, saved.records[0].record.id)
    one = house.all[0]
    own = {
        record.id
        for record in (await one.memory.records.graph()).records.values()
        if record.title == "Buy tea"
    }
    for verb in ("get", "forget", "record_get", "record_move", "graph_around", "append"):
        answer = await asked(house, one, verb, filled(TITLED[verb][0], "buy  TEA"))
        assert "2 records are called so" in answer, (verb, answer)
        assert all(f"Task [{id_[:8]}]" in answer for id_ in own), (verb, answer)
        assert house.seen(one, answer) == [], verb


@pytest.mark.beside_the_graph
async def test_of_a_pool_a_title_stands_for_what_the_member_may_read_alone(app: App) -> None:
    team = await team_of_three(app)
    shared = await team.store(
        "mongke", "Async needs memory.", title="Async memory", type="Research",
        confidence=0.9, fields={"topic": "async", "findings": "It needs memory."},
    )  # fmt: skip
    await team.store("mongke", "My own thought.", title="Own thought", private=True)
    await team.store(
        "mongke", "Read on the web.", title="Waiting claim", type="Belief", confidence=0.9,
        tags=["web"],
    )  # fmt: skip
    task = await team.ask(
        "kublai", "squad_task_give", to="mongke", title="Dig", description="Dig.", type="research"
    )
    for verb, arguments in (
        ("squad_get", {"ids": ["{title}"]}),
        ("memory_share", {"id": "{title}"}),
        ("memory_revoke", {"ids": ["{title}"]}),
        ("proposal_submit", {"id": "{title}"}),
        ("squad_task_take", {"id": "{title}"}),
        ("squad_task_cancel", {"id": "{title}"}),
        ("memory_store", {"content": "x", "type": "Belief", "cites": ["{title}"]}),
        ("memory_store", {"content": "x", "type": "Belief", "supersedes": "{title}"}),
    ):
        answers = {
            str(await outcome(team.ask("jochi", verb, **filled(arguments, title)))).replace(
                title, "?"
            )
            for title in ("Own thought", "Waiting claim", "Nonesuch")
        }
        assert len(answers) == 1, (verb, answers)
        assert "NotFound" in answers.pop(), verb
    with pytest.raises(NotFound):
        await team.ask("jochi", "squad_task_take", id="Dig")
    [seen] = (await team.ask("jochi", "squad_get", ids=["async memory"]))["records"]
    assert seen["record"]["id"] == shared["copy"]["id"]
    [waits] = (await team.ask("kublai", "squad_get", ids=["Waiting claim"]))["records"]
    assert waits["record"]["title"] == "Waiting claim"
    taken = await team.ask("mongke", "squad_task_take", id="dig")
    assert (taken["id"], taken["state"]) == (task["id"], "in_progress")
    await team.ask("mongke", "squad_task_done", id="Dig", outcome="success")
    for number in range(2):
        await team.store("jochi", f"Text {number}.", title="Twice")
    with pytest.raises(InvalidRequest, match="2 records are called so"):
        await team.ask("jochi", "memory_share", id="Twice")
