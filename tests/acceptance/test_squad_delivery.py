"""Members share while the process is killed again and again: each share reaches each subscriber, and on time.

What was acknowledged never comes again, and a delivery is not itself delivered. The long form shares 10,000 times
in a squad of twelve.
"""

from __future__ import annotations

import asyncio
import random
import time as clock
from datetime import timedelta
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

import pytest

from pps.app import App
from pps.config import EmbedderSettings, Settings
from pps.core import time
from pps.features.squad import squad_members
from tests.acceptance.killed_steps import process
from tests.acceptance.sharing_until_killed import share_until_killed, shared
from tests.sampling import SEED, sized
from tests.squads import Team, write_squad

SHARES, KILLS = sized(12, 10_000), sized(1, 50)
MEMBERS = [f"m{number}" for number in range(sized(5, 12))]  # the rules name the first five
SQUAD = "\n".join(
    (
        'name = "twelve"',
        *(f'[members.{one}]\nrole = "member"' for one in MEMBERS),
        '[broadcast]\ninterval = "PT5M"\nrules = [{ kinds = ["Insight"], from = "m3" }]',
        '[[subscriptions]]\nto = "m0"',
        '[[subscriptions]]\nto = "m1"\ninterval = "PT10M"\ntier = "pool"',
        '[[subscriptions]]\nto = "m2"\nfrom = "m4"\nkinds = ["Insight"]',
    )
)


def subscribers(author: str) -> set[str]:
    """Return who must hear of an Insight of a member."""
    told = (
        {"m0", "m1"}
        | ({"m2"} if author == "m4" else set[str]())
        | (set(MEMBERS) if author == "m3" else set[str]())
    )
    return told - {author}


@pytest.mark.timeout(36_000)
async def test_each_share_reaches_each_subscriber_in_spite_of_kills(tmp_path: Path) -> None:
    settings = Settings(home=tmp_path / "home", embedder=EmbedderSettings(name="hash"))
    acknowledged = tmp_path / "acknowledged"
    acknowledged.touch()
    async with App.open(settings) as app:
        write_squad(app.settings.home, "twelve", SQUAD)
        await squad_members.found(app, "team", "twelve", {})
    chance, heard, acked = random.Random(SEED), set[tuple[str, str]](), set[tuple[str, int]]()  # noqa: S311 - a test's order
    for number in range(KILLS + 1):
        before = len(_lines(acknowledged))
        if number == KILLS:
            await shared(settings, acknowledged, number, max(len(MEMBERS), SHARES - before))
        else:
            child = process(share_until_killed, settings, acknowledged, number, SHARES)
            most = chance.randint(1, 2 * SHARES // (KILLS + 1))
            await asyncio.to_thread(_wait, child, acknowledged, before + most)
            child.kill()
            child.join()
        async with App.open(settings) as app:
            await _looked_at(
                Team(app, app.registry.squads.get("team")),
                heard,
                acked,
                chance,
                all_=number == KILLS,
            )
    wanted = {(to, copy) for author, copy in _lines(acknowledged) for to in subscribers(author)}
    assert len(_lines(acknowledged)) >= SHARES
    assert wanted - heard == set()


def _wait(child: BaseProcess, acknowledged: Path, lines: int) -> None:
    while child.is_alive() and len(_lines(acknowledged)) < lines:
        clock.sleep(0.05)


def _lines(path: Path) -> list[tuple[str, str]]:
    whole = [
        line
        for line in path.read_text(encoding="utf-8").splitlines(keepends=True)
        if line.endswith("\n")
    ]
    return [(author, copy) for author, copy in (line.split() for line in whole)]


async def _looked_at(
    team: Team,
    heard: set[tuple[str, str]],
    acked: set[tuple[str, int]],
    chance: random.Random,
    *,
    all_: bool,
) -> None:
    """Let every member look now and after each interval, and acknowledge some; the clock is moved."""
    async with team.app.memory(team.squad.pool, pool=True) as pool:
        count = len((await pool.records.graph()).records)
    for minutes in (0, 6, 11):
        at = time.now() + timedelta(minutes=minutes)
        team.app.clock = lambda at=at: at
        for member in MEMBERS:
            while found := (await team.ask(member, "squad_inbox", limit=200))["deliveries"]:
                assert all(time.parse(one["due_at"]) <= at for one in found)
                assert not {(member, one["seq"]) for one in found} & acked
                heard |= {(member, one["record"]["id"]) for one in found}
                seen = [one["seq"] for one in found if all_ or chance.random() < 0.7]
                if seen:
                    done: dict[str, Any] = await team.ask(member, "squad_ack", seqs=seen)
                    assert done["acknowledged"] == len(seen)
                    acked |= {(member, seq) for seq in seen}
                if len(found) < 200:
                    break
    async with team.app.memory(team.squad.pool, pool=True) as pool:
        assert len((await pool.records.graph()).records) == count, (
            "a delivery is no record, and makes none"
        )
