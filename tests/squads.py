"""A squad of three for tests: small, so that it is made fast."""

from __future__ import annotations

import contextlib
import shutil
import sqlite3
import tempfile
from pathlib import Path
from typing import Any, cast

from pps.app import App
from pps.entities.memberships import Squad
from pps.features.squad import squad_members
from pps.operations.calls import Caller, Calls

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


_founded: dict[str, Path] = {}
"""Data folders in which the trio is, by the settings that it was founded with: founding costs more than most tests."""


async def team_of_three(app: App) -> Team:
    """Return the trio as it is when it has just been founded, in a data folder that has nothing yet.

    A folder that is copied has the rows of a server's database in common with the first one, so there the trio is
    founded anew.
    """
    write_squad(app.settings.home, "trio")
    if app.settings.store != "embedded" or app.registry.list(include_archived=True):
        return Team(app, (await squad_members.found(app, "team", "trio", {})).squad)
    settings = app.settings.model_dump_json(exclude={"home"})
    if settings not in _founded:
        home = Path(tempfile.mkdtemp()) / "home"
        write_squad(home, "trio")
        async with App.open(app.settings.model_copy(update={"home": home})) as first:
            await squad_members.found(first, "team", "trio", {})
        _founded[settings] = home
    _copy(_founded[settings], app.settings.home)
    return Team(app, app.registry.squads.get("team"))


def _copy(home: Path, to: Path) -> None:
    """Copy the entities and the registry of a data folder into another one, which may be open."""
    shutil.copytree(home / "entities", to / "entities", dirs_exist_ok=True)
    with (
        contextlib.closing(sqlite3.connect(home / "registry.db")) as founded,
        contextlib.closing(sqlite3.connect(to / "registry.db")) as registry,
    ):
        founded.backup(registry)
