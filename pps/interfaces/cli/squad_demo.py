"""``pps demo squad``: the worked flow of a squad of six, step by step, on a terminal or as JSON."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from pps.app import App
from pps.config import Settings
from pps.core.errors import InvalidRequest
from pps.core.values import JSON
from pps.features.squad import squad_members
from pps.features.squad.desk import rules_of
from pps.features.squad.flow import Played, flow, play
from pps.interfaces.cli.demo import this_pps
from pps.interfaces.cli.output import say
from pps.operations.calls import Caller, Calls

SQUAD = "demo"
_NEXT = """
Ask more of it:
  {pps} squad show demo
  {pps} records list demo_kublai"""


async def demonstrate_squad(settings: Settings, *, quiet: bool) -> dict[str, JSON]:
    """Make the squad ``demo``, play the first flow, and return each step with what was seen.

    Raises:
        InvalidRequest: There is a squad of that name.
    """
    started = time.perf_counter()
    steps: list[JSON] = []
    async with App.open(settings) as app:
        if any(existing.name == SQUAD for existing in app.registry.squads.list()):
            raise InvalidRequest(
                "squad", f"{SQUAD!r} is there already: `pps squad delete {SQUAD}`, or set PPS_HOME"
            )
        squad = (await squad_members.found(app, SQUAD, "openclaw", {})).squad
        titles = {member: rules.title for member, rules in rules_of(squad).members.items()}
        calls = Calls(app)

        async def ask(who: str, tool: str, arguments: Mapping[str, Any]) -> Mapping[str, Any]:
            return (
                await calls.answer(
                    Caller.of_entity(squad.members[who].entity), tool, dict(arguments)
                )
            ).data

        known: dict[str, Mapping[str, Any]] = {}
        async for played in play(flow("first"), ask, known):
            steps.append(_row(played))
            if not quiet:
                say(f"{titles[played.step.who]:<9}{played.step.does}  ({played.step.tool})")
                for line in _lines(played):
                    say(f"           {line}")
        pool = await ask("kublai", "memory_query", {"topic": "async patterns", "limit": 20})
    shared = len(pool["pool"])
    took_s = round(time.perf_counter() - started, 1)
    if not quiet:
        say(
            f"\n{len(steps)} steps of six agents, {took_s} s; the pool has {shared} records for "
            f"all of them.{_NEXT.format(pps=this_pps())}"
        )
    return {"squad": SQUAD, "steps": steps, "shared": shared, "took_s": took_s}


def _row(played: Played) -> JSON:
    step = played.step
    missing = [*played.missing]
    return {
        "who": step.who,
        "does": step.does,
        "tool": step.tool,
        "missing": missing,
        "saw": _lines(played),
    }


def _lines(played: Played) -> list[JSON]:
    """Return the lines of a step's answer: titles of delivered records, or a record's new state."""
    answer = played.answer
    if copy := answer.get("copy"):
        text = f"; told at once or in batches: {', '.join(copy['told'])}" if copy["told"] else ""
        return [
            (
                f"{answer['title']}: shared, confidence {copy['confidence']:.2f}, {copy['roots']} "
                f"root(s){text}"
            )
        ]
    if "state" in answer and "title" in answer:
        return [f"{answer['title']}: {answer['state']}"]
    records = [row["record"] for row in answer.get("deliveries", ())] + [*answer.get("pool", ())]
    lines: list[JSON] = [f"{row['title']} (of {row['shared_by']})" for row in records]
    return lines + [
        f"{row['what']}: {row['text']}"
        for row in answer.get("items", ())
        if row["what"] == "synthesis"
    ]
