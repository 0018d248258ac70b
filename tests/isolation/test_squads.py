"""Nothing reaches a pool but its squad's operations, and nothing of a member reaches another.

The commands (squad create, show, list, add, remove, delete) are asked with all others in ``attacks.owners``.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, cast

import pytest

from pps.app import App
from pps.core.errors import InvalidRequest
from pps.entities.routing import owner as owner_router
from pps.features.squad import squad_members
from pps.operations.calls import OPERATOR, Caller, Calls, owner
from pps.operations.catalog import operations_for
from pps.proof.arena import Watch
from tests.isolation.attacks import owners
from tests.isolation.house import One, everything, outcome, told
from tests.isolation.test_verbs import ARGUMENTS
from tests.squads import write_squad

POOL = "team_pool"
WRITES_OR_GIVES_AWAY = {
    "token_issue", "route_add", "watch_add", "import", "anchors_import", "entity_delete", "entity_archive",
}  # fmt: skip


@pytest.fixture
async def squad(app: App) -> App:
    write_squad(app.settings.home, "trio")
    await squad_members.found(app, "team", "trio", {})
    return app


async def test_a_pool_takes_no_token_route_hook_watch_or_import(squad: App, tmp_path: Path) -> None:
    calls = Calls(squad)
    everyone = owner(owner_router())
    for name in WRITES_OR_GIVES_AWAY:
        for arguments in owners(tmp_path, POOL)[name]:
            with pytest.raises(InvalidRequest, match="is the pool of the squad 'team'"):
                await calls.answer(everyone, name, arguments)
    assert squad.registry.squads.pool_of(POOL) == "team"


async def test_no_operation_of_an_entity_reaches_a_pool_whoever_asks(squad: App) -> None:
    calls = Calls(squad)
    pool = squad.registry.get(POOL).entity
    for caller in (Caller.of_entity(pool), Caller.of_entity(POOL), owner(owner_router(), POOL)):
        for name in operations_for("entity"):
            with pytest.raises(InvalidRequest):
                await calls.answer(caller, name, ARGUMENTS[name][0])
    with pytest.raises(InvalidRequest, match="is the pool of the squad 'team'"):
        await calls.answer(Caller.of_entity(pool), "stats", {})


MEMBERS: dict[str, list[dict[str, Any]]] = {
    "memory_store": [
        {"content": "Mine.", "type": "Belief", "confidence": 0.9, "cites": ["{record}"]},
        {"content": "Mine.", "type": "Belief", "confidence": 0.9, "cites": ["{turn}", "{fact}"]},
        {"content": "Mine.", "type": "Belief", "confidence": 0.9, "supersedes": "{record}"},
        {
            "content": "Mine.",
            "type": "Application",
            "fields": {"success": True, "concept_applied": "{record}"},
        },
        {
            "content": "Mine.",
            "type": "Belief",
            "confidence": 0.9,
            "relations": [{"type": "SUPPORTS", "target": "{record}"}],
        },
    ],
    "memory_query": [{"topic": "{mark}"}, {"topic": "Ana drinks coffee", "kinds": ["Belief"]}],
    "squad_get": [{"ids": ["{record}"]}, {"ids": ["{turn}", "{fact}"]}],
    "memory_reflect": [{}],
    "memory_share": [{"id": "{record}"}, {"id": "{turn}"}],
    "memory_revoke": [
        {"ids": ["{record}"], "dry_run": False},
        {"ids": ["{record}"]},
        {"ids": ["{record}"], "dry_run": False, "reason": "Wrong."},
        {"ids": ["{record}"], "dry_run": False, "reason": "Wrong.", "undo": True},
    ],
    "squad_inbox": [{}],
    "squad_pool": [{"limit": 200}, {"kinds": ["Belief"], "offset": 1}],
    "squad_ack": [{"seqs": [1, 2, 3, 999]}],
    "squad_task_give": [
        {"to": "jochi", "title": "Tell me", "description": "All of it.", "type": "ops"}
    ],
    "squad_task_take": [{"id": "{record}"}],
    "squad_task_done": [{"id": "{record}", "outcome": "success"}],
    "squad_task_cancel": [{"id": "{record}"}],
    "proposal_submit": [{"id": "{record}"}, {"id": "{record}", "to": "complete"}],
    "proposal_pending": [{}],
    "squad_rank": [{"algorithm": "pagerank"}, {"algorithm": "communities", "kinds": ["Belief"]}],
    "proposal_review": [{"id": "{record}", "decision": "approved"}],
    "heartbeat": [{}],
    "squad_ask": [
        *({"query": one} for one in ("unseen", "syntheses", "health")),
        {"query": "unseen", "parameters": {"agent": "{record}"}},
        {},
    ],
}


async def test_every_operation_of_members_is_attacked_here() -> None:
    assert set(MEMBERS) == set(operations_for("member"))


async def test_a_member_sees_and_changes_nothing_of_anothers_own_memory(squad: App) -> None:
    calls, watch = Calls(squad), Watch()
    found = squad.registry.squads.get("team")
    one, other = found.members["mongke"].entity, found.members["jochi"].entity
    async with squad.memory(other) as memory:
        theirs = await told(memory, watch)
        secret = {
            "content": f"A secret belief of {theirs.mark}.",
            "type": "Belief",
            "confidence": 0.9,
            "private": True,
        }
        kept = await calls.answer(Caller.of_entity(other), "memory_store", secret)
        record = str(kept.data["id"])
        watch.own(other.name, record)
        before = (await everything(theirs), await memory.records.graph())
        for name, attacks in MEMBERS.items():
            for arguments in attacks:
                given = json.loads(
                    json.dumps(arguments).replace("{record}", record).replace("{mark}", theirs.mark)
                )
                given = filled_in(given, theirs)
                answer = await outcome(calls.answer(Caller.of_entity(one), name, given))
                said = str(answer).replace(theirs.mark, "") if "topic" in given else answer
                assert (
                    watch.leaks(one.name, said, frozenset((record, theirs.turn, theirs.fact))) == []
                ), (name, given)
        assert (await everything(theirs), await memory.records.graph()) == before
    async with squad.memory(POOL, pool=True) as pool:
        held = repr(
            (
                await pool.records.graph(),
                await pool.recall("coffee", limit=50),
                await pool.records.pool.shared(),
            )
        )
        assert theirs.mark not in held
        assert record not in held


async def test_no_operation_of_members_is_there_for_anybody_else(squad: App) -> None:
    await squad.create("stranger")
    calls = Calls(squad)
    for caller in (Caller.of_entity("stranger"), Caller.of_entity(POOL)):
        offered = await calls.operations(caller)
        assert not set(offered) & set(MEMBERS)
        for name in MEMBERS:
            with pytest.raises(InvalidRequest, match="there is none of that name"):
                await calls.answer(caller, name, {})


def filled_in(given: Any, other: One) -> Any:
    return json.loads(json.dumps(given).replace("{turn}", other.turn).replace("{fact}", other.fact))


async def test_a_members_new_token_opens_that_members_memory_alone(squad: App) -> None:
    """`squad token` gives out a token of one member; nobody but an operator may ask for it."""
    calls = Calls(squad)
    answer = await calls.answer(OPERATOR, "squad_token", {"name": "team", "member": "mongke"})
    members = cast("list[dict[str, Any]]", answer.data["members"])
    [token] = [member["token"] for member in members if member.get("token")]
    holder = squad.registry.entity_of_token(token)
    assert holder == squad.registry.squads.get("team").members["mongke"].entity
    for name in ("team_jochi", "team_mongke"):
        with pytest.raises(InvalidRequest, match="there is none of that name"):
            await calls.answer(
                Caller.of_entity(name), "squad_token", {"name": "team", "member": "mongke"}
            )
    with pytest.raises(InvalidRequest, match="is no member"):
        await calls.answer(OPERATOR, "squad_token", {"name": "team", "member": "pool"})


async def test_lines_of_a_pool_reach_the_packs_of_its_members_alone(squad: App) -> None:
    """What ``App.provide_shared_lines`` brings: not for an outsider, nor for a member that has left."""
    calls = Calls(squad)
    await squad.create("ana")
    members = squad.registry.squads.get("team").members
    stored = {"content": "The vault refuses unsigned builds.", "type": "Belief", "confidence": 0.9}
    await calls.answer(Caller.of_entity(members["mongke"].entity), "memory_store", stored)
    asked = {"context": "Does the vault take unsigned builds?"}

    async def pack(name: str) -> str:
        return (await calls.answer(Caller.of_entity(name), "ambient_recall", asked)).text

    assert "The vault refuses" in await pack("team_jochi")
    assert "The vault refuses" not in await pack("ana")
    squad.registry.squads.remove("team", "jochi")
    assert "The vault refuses" not in await pack("team_jochi")


async def test_what_mentions_something_in_a_pool_is_only_what_a_member_may_read(
    squad: App,
) -> None:
    calls = Calls(squad)

    async def ask(member: str, name: str, **arguments: Any) -> dict[str, Any]:
        return (await calls.answer(Caller.of_entity(f"team_{member}"), name, arguments)).data

    await ask("mongke", "remember", content="Wren has kanarie1.")
    private = {"content": "Wren: kanarie2.", "type": "Belief", "confidence": 0.9, "private": True}
    await ask("mongke", "memory_store", **private)
    await ask("mongke", "anchor_save", title="Wren", text="kanarie3")
    waiting = await ask(
        "mongke",
        "memory_store",
        type="WorkflowImprovement",
        title="Wren kanarie4",
        content="Wren kanarie4.",
        fields={"target_process": "x", "current_state": "a", "proposed_state": "b"},
    )
    await ask("mongke", "proposal_submit", id=waiting["id"])
    fact = {"subject": "Wren", "relation": "LIKES", "object": "Rye", "text": "Wren likes rye."}
    await ask("jochi", "remember", content="Seen.", facts=[fact])
    for along in ([], ["copies"]):
        shown = await ask("jochi", "forget", ids=["Wren"], along=along)
        assert "kanarie" not in str(shown)
        assert not shown["copies"]
    gone = await ask("jochi", "forget", ids=shown["asked"], dry_run=False, along=["copies"])
    assert "kanarie" not in str(gone)
    assert "kanarie4" in str(await ask("kublai", "proposal_pending"))
