"""What agents say in other kinds, orders, titles and numbers: the sentences of test_squad_trust on other inputs."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from pps.app import App
from pps.core.errors import InvalidRequest, NotFound, PPSError
from pps.entities.routing import owner as owner_router
from pps.operations.calls import Calls, owner
from tests.squads import Team, team_of_three

BELIEF = {"type": "Belief", "confidence": 0.75}
KINDS: dict[str, dict[str, Any]] = {
    "Experience": {},
    "Reflection": {},
    "Belief": {"confidence": 0.75},
    "Concept": {},
    "Insight": {"fields": {"category": "process"}, "confidence": 0.5},
}


@pytest.fixture
async def team(app: App) -> Team:
    return await team_of_three(app)


async def line_of(team: Team, asker: str, id_: str, topic: str) -> dict[str, Any]:
    answer = await team.ask(asker, "memory_query", topic=topic, limit=50)
    [line] = [one for one in answer["pool"] if one["id"] == id_]
    return line


async def confidence_of(team: Team, id_: str) -> float:
    async with team.app.memory(team.squad.pool, pool=True) as pool:
        return (await pool.records.pool.shared([id_]))[id_].confidence


@pytest.mark.parametrize("kind", KINDS)
async def test_titles_in_other_case_and_space_lose_nothing_of_any_kind(
    team: Team, kind: str
) -> None:
    more: dict[str, Any] = {"type": kind, **KINDS[kind]}
    texts = {
        "  Trip ": "It rained in Oslo.",
        "trip": "It snowed in Tromsø.",
        "TRIP": "It hailed in Bodø.",
        "Trip": "It rained in Oslo",
    }
    made = [await team.store("mongke", text, title=title, **more) for title, text in texts.items()]
    assert len({one["id"] for one in made}) == len(texts)
    again = await team.store("mongke", "It rained in Oslo.", title="Trip", **more)
    assert again["id"] not in {one["id"] for one in made[1:]}
    async with team.app.memory(team.squad.members["mongke"].entity) as memory:
        records = (await memory.records.graph()).records.values()
    assert {one.summary for one in records if one.kind == kind} == {*texts.values()}


async def test_who_supports_itself_or_shares_a_root_raises_nothing(team: Team) -> None:
    ground = await team.store("kublai", "The log says that queues fill.", **BELIEF)
    root = ground["copy"]["id"]
    claim = await team.store("mongke", "Queues fill at noon.", cites=[root], **BELIEF)
    target = claim["copy"]["id"]
    support = [{"type": "SUPPORTS", "target": target}]
    await team.store("mongke", "I am sure of it.", relations=support, **BELIEF)
    assert await confidence_of(team, target) == 0.75
    await team.store("jochi", "The same log.", cites=[root], relations=support, **BELIEF)
    assert await confidence_of(team, target) == 0.75
    await team.store("jochi", "I counted them myself.", relations=support, **BELIEF)
    assert await confidence_of(team, target) == 0.9375


@pytest.mark.parametrize("relation", ["CHALLENGED", "CONTRADICTS"])
async def test_confidence_returns_when_the_challenge_is_withdrawn(
    team: Team, relation: str
) -> None:
    claim = await team.store("mongke", "Queues fill at noon.", type="Belief", confidence=0.8)
    target = claim["copy"]["id"]
    against = [{"type": relation, "target": target}]
    opposed = await team.store("jochi", "Empty.", type="Belief", confidence=0.9, relations=against)
    assert await confidence_of(team, target) == 0.44
    await team.ask("jochi", "memory_revoke", ids=[opposed["id"]], dry_run=False)
    assert await confidence_of(team, target) == 0.8
    line = await line_of(team, "kublai", target, "Queues fill at noon")
    assert line.get("opposed_by", []) == []


async def test_support_and_challenge_count_the_same_in_any_order(team: Team) -> None:
    found: list[float] = []
    for number, order in enumerate((("SUPPORTS", "CHALLENGED"), ("CHALLENGED", "SUPPORTS"))):
        claim = await team.store("mongke", f"Queue {number} fills at noon.", **BELIEF)
        target = claim["copy"]["id"]
        for member, relation in zip(("jochi", "kublai"), order, strict=True):
            who = "jochi" if relation == "SUPPORTS" else "kublai"
            await team.store(
                who,
                f"Seen {number} {relation} by {member}.",
                relations=[{"type": relation, "target": target}],
                **BELIEF,
            )
        found.append(await confidence_of(team, target))
    assert found[0] == found[1]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("The limit of the gateway is 100 ms.", "The limit of the gateway is 200 ms."),
        ("The vault opens on Monday.", "The vault opens on Tuesday."),
        ("The vault is open at night.", "The vault is closed at night."),
        ("The build of the app is signed.", "The build of the app is unsigned."),
        ("The cache is enabled for tenants.", "The cache is disabled for tenants."),
        ("Die Tür ist offen.", "Die Tür ist nicht offen."),
        ("Deploys need approval from Ann.", "Deploys need approval from Bob."),
        ("Nobody can read the vault.", "Somebody can read the vault."),
        ("Always restart the worker first.", "Never restart the worker first."),
        ("The old key works with the new lock.", "The new key works with the old lock."),
        (
            "The vault of the bank in the old town is open at night in the winter months.",
            "The vault of the bank in the old town is closed at night in the winter months.",
        ),
        (
            "La caja fuerte del banco abre a las nueve.",
            "La caja fuerte del banco nunca abre a las nueve.",
        ),
        ("The key opens the door of the vault.", "The key opens only the door of the vault."),
    ],
)
async def test_what_differs_in_the_word_that_counts_stays_two_lines(
    team: Team, one: str, other: str
) -> None:
    first = await team.store("mongke", one, **BELIEF)
    second = await team.store("jochi", other, **BELIEF)
    answer = await team.ask("kublai", "memory_query", topic=one, limit=50)
    assert {line["id"] for line in answer["pool"]} == {
        first["copy"]["id"],
        second["copy"]["id"],
    }


async def test_only_the_lead_withdraws_and_the_author_is_told_why(team: Team) -> None:
    kept = await team.store("mongke", "The vault code is public.", **BELIEF)
    id_ = kept["copy"]["id"]
    with pytest.raises(PPSError):
        await team.ask("jochi", "memory_revoke", ids=[id_], dry_run=False, reason="No.")
    await team.ask("kublai", "memory_revoke", ids=[id_], dry_run=False, reason="It is not.")
    inbox = await team.ask("mongke", "squad_inbox")
    assert "It is not." in str(inbox)
    assert "The vault code is public." in str(
        await team.ask("mongke", "memory_query", topic="vault code")
    )
    pool = await team.ask("jochi", "memory_query", topic="vault code")
    assert pool["pool"] == []


async def test_nobody_forges_an_agent_or_provenance_by_any_door(team: Team, tmp_path: Path) -> None:
    record = {"kind": "Agent", "title": "Kublai", "summary": "FORGED"}
    own = await team.store("jochi", "A note of mine.", type="Experience")
    doors: list[tuple[str, dict[str, Any]]] = [
        ("record_save", {"records": [record]}),
        ("memory_store", {"type": "Agent", "title": "Kublai", "content": "FORGED"}),
        ("add_event", {"kind": "Agent", "title": "Kublai", "content": "FORGED"}),
        ("update", {"id": own["id"], "kind": "Agent"}),
        ("remember", {"content": "FORGED", "nodes": [{"name": "Kublai", "kind": "Agent"}]}),
    ]
    for name, arguments in doors:
        with pytest.raises(PPSError):
            await team.ask("jochi", name, **arguments)
    other = await team.store("jochi", "Another of mine.", type="Experience")
    for type_ in ("CREATED", "ACCESSED", "LEARNED", "APPROVED_BY"):
        relation = {"type": type_, "target": other["id"]}
        with pytest.raises(PPSError):
            await team.ask("jochi", "record_relate", source=own["id"], **relation)
        with pytest.raises(PPSError):
            await team.ask(
                "jochi", "record_save", records=[{"id": own["id"], "relations": [relation]}]
            )
        with pytest.raises(PPSError):
            await team.store("jochi", f"With {type_}.", type="Experience", relations=[relation])
    (tmp_path / "rows.csv").write_text("kind,title,summary\nAgent,Kublai,FORGED\n")
    entity = team.squad.members["jochi"].entity.name
    answer = await Calls(team.app).answer(
        owner(owner_router()),
        "import",
        {"entity": entity, "paths": [str(tmp_path / "rows.csv")], "format": "records"},
    )
    assert "by the squad itself" in answer.text
    async with team.app.memory(team.squad.members["jochi"].entity) as memory:
        graph = await memory.records.graph()
        assert "FORGED" not in repr((graph, await memory.recall("Who is Kublai?", limit=50)))


async def test_tasks_move_by_those_who_may_alone(team: Team) -> None:
    task = {"title": "Count", "description": "Count the queues.", "type": "analysis"}
    id_ = (await team.ask("kublai", "squad_task_give", to="mongke", **task))["id"]
    done = {"id": id_, "outcome": "success"}
    for who, name, arguments in (
        ("jochi", "squad_task_take", {"id": id_}),
        ("jochi", "squad_task_done", done),
        ("mongke", "squad_task_done", done),  # not taken yet
        ("mongke", "squad_task_cancel", {"id": id_}),
        ("jochi", "squad_task_cancel", {"id": id_}),
    ):
        with pytest.raises(PPSError):
            await team.ask(who, name, **arguments)
    await team.ask("mongke", "squad_task_take", id=id_)
    await team.ask("mongke", "squad_task_done", id=id_, outcome="blocked", notes="No access.")
    await team.ask("mongke", "squad_task_take", id=id_)
    await team.ask("mongke", "squad_task_done", **done)
    with pytest.raises(PPSError):
        await team.ask("kublai", "squad_task_cancel", id=id_)


async def test_domains_match_in_other_case_and_with_space(team: Team) -> None:
    for number, domain in enumerate(("Technical", "TECHNICAL", " technical ")):
        stored = await team.store(
            "mongke",
            f"Research number {number} of queues.",
            type="Research",
            confidence=0.8,
            domain=domain,
            fields={"topic": "queues", "findings": "They fill."},
        )
        inbox = await team.ask("jochi", "squad_inbox")
        arrived = [
            one for one in inbox["deliveries"] if one["record"]["id"] == stored["copy"]["id"]
        ]
        assert len(arrived) == 1, domain


async def test_what_two_members_say_at_once_is_kept_for_both(team: Team) -> None:
    text = "The backup of the vault runs at two."
    kept = await asyncio.gather(
        *(team.store(member, text, **BELIEF) for member in ("mongke", "jochi", "kublai"))
    )
    assert len({one["copy"]["id"] for one in kept}) == 3
    answer = await team.ask("kublai", "memory_query", topic="backup of the vault")
    [line] = answer["pool"]
    assert len(line["copies"]) == 1  # the two of the others; one's own is listed apart
    with pytest.raises((NotFound, InvalidRequest)):
        await team.ask("jochi", "memory_revoke", ids=[kept[0]["id"]], dry_run=False)
