"""What ``test_squad_delivery`` runs in processes of its own: twelve members share until the process is killed."""

from __future__ import annotations

import asyncio
from pathlib import Path

from pps.app import App
from pps.config import Settings
from tests.squads import Team


def share_until_killed(found: Settings, acknowledged: Path, number: int, shares: int) -> None:
    """Share so many records, twelve at a time; the copy of each that is acknowledged is a line of a file."""
    asyncio.run(shared(found, acknowledged, number, shares))


async def shared(found: Settings, acknowledged: Path, number: int, shares: int) -> None:
    """Do the same in this process."""
    async with App.open(found) as app:
        team = Team(app, app.registry.squads.get("team"))
        members = list(team.squad.members)
        with acknowledged.open("a", encoding="utf-8", buffering=1) as lines:

            async def work(at: int, member: str) -> None:
                for one in range(at, shares, len(members)):
                    insight = {
                        "type": "Insight",
                        "fields": {"category": "technical"},
                        "confidence": 0.8,
                    }
                    kept = await team.store(member, f"Insight {number}/{one}.", **insight)
                    lines.write(f"{member} {kept['copy']['id']}\n")

            await asyncio.gather(*(work(at, member) for at, member in enumerate(members)))
