"""A process is killed after each step of sharing, revoking, forgetting and a proposal's moves.

Once it is taken up each is wholly done or not at all, and asked for again it is done: nothing that was revoked is in
the pool, its indexes, inboxes or packs.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from pps.app import App
from pps.config import Settings
from tests.acceptance import killed_sharing as killing
from tests.acceptance.killed_steps import killed
from tests.squads import Team, team_of_three


async def test_a_share_that_is_killed_is_there_with_its_deliveries_or_not_at_all(
    settings: Settings,
) -> None:
    async with App.open(settings) as app:
        team = await team_of_three(app)
        said = [await told(team, number) for number in range(len(killing.SHARE))]
    ids = [one["id"] for one in said]
    rounds = killed(killing.SHARE, killing.share_killed_at, settings, ids)
    async with again(settings) as team:
        for number in rounds:
            copies = await copies_of(team, ids[number])
            heard = [one for one in await inbox(team, "jochi") if one["record"]["id"] in copies]
            assert len(heard) == len(copies) <= 1
            kept = await team.ask("mongke", "memory_share", id=ids[number])
            assert [kept["id"]] == (copies or [kept["id"]])
            assert (
                len(
                    [one for one in await inbox(team, "jochi") if one["record"]["id"] == kept["id"]]
                )
                == 1
            )


async def test_what_is_revoked_or_forgotten_is_gone_whenever_the_kill_comes(
    settings: Settings,
) -> None:
    async with App.open(settings) as app:
        team = await team_of_three(app)
        revoked = [await told(team, number, share=True) for number in range(len(killing.REVOKE))]
        forgotten = [
            await told(team, 100 + number, share=True) for number in range(len(killing.FORGET))
        ]
        cites = [one["copy"]["id"] for one in revoked]
        mine = await team.store(
            "jochi", "It rests on theirs.", type="Belief", confidence=0.6, cites=cites
        )
    rounds = killed(
        killing.REVOKE, killing.revoke_killed_at, settings, [one["id"] for one in revoked]
    )
    others = killed(
        killing.FORGET, killing.forget_killed_at, settings, [one["id"] for one in forgotten]
    )
    async with again(settings) as team:
        for member in team.squad.members:
            seen = str(
                (await inbox(team, member), await team.ask(member, "memory_query", topic="kanarie"))
            )
            gone = [f"kanarie{number}x" for number in rounds] + [
                f"kanarie{100 + number}x" for number in others
            ]
            if member == "mongke":  # who revoked it has it still
                seen = str((await team.ask(member, "memory_query", topic="kanarie"))["pool"])
            assert [one for one in gone if one in seen] == []
        held = await team.pool_text()
        assert [one for one in gone if one in held] == []
        [line] = (
            await team.ask("jochi", "memory_query", topic="It rests on theirs.", kinds=["Belief"])
        )["own"]
        assert (line["id"], set(line["withdrawn"])) == (
            mine["id"],
            {cites[number] for number in rounds},
        )
        for number in others:
            await team.ask("mongke", "forget", ids=[forgotten[number]["id"]])
        left = [one for number, one in enumerate(revoked) if number not in rounds]
        assert {one["copy"]["id"] for one in left} <= await shared(team)


async def test_a_proposals_moves_are_done_or_not_and_each_has_who_when_and_why(
    settings: Settings,
) -> None:
    async with App.open(settings) as app:
        team = await team_of_three(app)
        ids = [
            (await team.store("mongke", f"Write {n}.", **killing.PROPOSAL))["id"]
            for n in range(len(killing.PROPOSE))
        ]
    killed(killing.PROPOSE, killing.propose_killed_at, settings, ids)
    async with again(settings) as team:
        for id_ in ids:
            if (await states(team, id_))[-1:] != ["pending_approval"]:
                await team.ask("mongke", "proposal_submit", id=id_)
            assert await states(team, id_) == ["pending_approval"]
        copies = [one for id_ in ids for one in await copies_of(team, id_)]
        waits = {
            one["record"]["id"] for one in (await team.ask("kublai", "proposal_pending"))["pending"]
        }
        assert waits == set(copies)
    reviewed = killed(killing.PROPOSE, killing.review_killed_at, settings, copies)
    async with again(settings) as team:
        for number in reviewed:
            if (await states(team, ids[number]))[-1] == "pending_approval":
                await team.ask("kublai", "proposal_review", id=copies[number], decision="approved")
            assert await states(team, ids[number]) == ["pending_approval", "approved"]
            told = [
                one["why"]
                for one in await inbox(team, "mongke")
                if one["record"]["id"] == copies[number]
            ]
            assert "approved" in told


async def told(team: Team, number: int, *, share: bool = False) -> dict[str, Any]:
    return await team.store(
        "mongke",
        f"Of kanarie{number}x.",
        confidence=0.8 if share else 0.5,
        domain="technical",
        **killing.RESEARCH,
    )


async def inbox(team: Team, member: str) -> list[dict[str, Any]]:
    return (await team.ask(member, "squad_inbox", limit=200))["deliveries"]


async def copies_of(team: Team, id_: str) -> list[str]:
    async with team.app.memory(team.squad.pool, pool=True) as pool:
        return [*(await pool.records.pool.copies("mongke", [id_])).values()]


async def shared(team: Team) -> set[str]:
    async with team.app.memory(team.squad.pool, pool=True) as pool:
        return {
            id_ for id_, one in (await pool.records.pool.shared()).items() if one.state == "shared"
        }


async def states(team: Team, id_: str) -> list[str]:
    copies = await copies_of(team, id_)
    async with team.app.memory(team.squad.pool, pool=True) as pool:
        return [one.after for one in await pool.records.transitions(copies[0])] if copies else []


@asynccontextmanager
async def again(settings: Settings) -> AsyncIterator[Team]:
    """Open what the last kill left; pool and members must agree with themselves."""
    async with App.open(settings) as app:
        team = Team(app, app.registry.squads.get("team"))
        yield team
        names = [team.squad.pool, *(one.entity for one in team.squad.members.values())]
        for name in names:
            async with app.memory(name, pool=True) as memory:
                assert await memory.settled(60)
                assert (await memory.ledger()).problems == ()
                assert (await memory.health()).ok
