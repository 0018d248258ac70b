"""A squad of three for tests: small, so that it is made fast."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

from pps.app import App
from pps.entities.memberships import Squad
from pps.operations.calls import Caller, Calls
from pps.squad import founding

TRIO = """
name = "trio"
[pool]
reviewers = ["kublai"]
[members.kublai]
aliases = ["main"]
role = "orchestrator"
[members.mongke]
role = "researcher"
[members.jochi]
role = "analyst"
[broadcast]
interval = "PT5M"
rules = [{ kinds = ["Synthesis"] }, { kinds = ["WorkflowImprovement"], states = ["approved"] }]
[[subscriptions]]
to = "kublai"
interval = "PT5M"
tier = "orchestrator"
[[subscriptions]]
to = "mongke"
from = "jochi"
kinds = ["Insight", "Analysis"]
min_confidence = 0.6
[[subscriptions]]
to = "jochi"
kinds = ["Research", "Task"]
domains = ["technical"]
"""


def write_squad(home: Path, name: str, text: str = TRIO) -> str:
    """Put a squad's file into a data folder; return its name."""
    folder = home / "squads"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{name}.toml").write_text(
        text.replace('name = "trio"', f'name = "{name}"'), encoding="utf-8"
    )
    return name


class Team:
    """Three members of a squad, asked by the names of operations as their clients would."""

    def __init__(self, app: App, squad: Squad) -> None:
        self.app = app
        self.squad = squad
        self.calls = Calls(app)

    async def ask(self, member: str, name: str, **arguments: Any) -> dict[str, Any]:
        return cast(
            "dict[str, Any]", (await self.calls.answer(self.caller(member), name, arguments)).data
        )

    def caller(self, member: str) -> Caller:
        return Caller.of_entity(self.squad.members[member].entity)

    async def store(self, member: str, content: str, **more: Any) -> dict[str, Any]:
        return await self.ask(member, "memory_store", content=content, **more)

    async def pool_text(self) -> str:
        """Return all that the pool holds and would export, as text."""
        async with self.app.memory(self.squad.pool, pool=True) as pool:
            graph = await pool.records.graph()
            hits = await pool.recall("memory", limit=50)
            rows = pool.records.pool
            return repr((graph, hits, await rows.shared(), await pool.stats()))


async def team_of_three(app: App) -> Team:
    write_squad(app.settings.home, "trio")
    return Team(app, (await founding.found(app, "team", "trio", {})).squad)
