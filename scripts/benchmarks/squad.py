"""A squad's memory beside the same texts in files: steps, tokens and whether what is needed was found (S3-17)."""

from __future__ import annotations

import asyncio
import re
import tomllib
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks import pages
from benchmarks.machine import machine
from benchmarks.measuring import throw_away
from benchmarks.pages import Report
from benchmarks.quality import Progress
from pps import __version__
from pps.app import App
from pps.features.squad import squad_members
from pps.features.squad.flow import flow, play
from pps.models.token_counts import count_tokens, counter_name
from pps.operations.calls import Caller, Calls

_TASKS = Path(__file__).with_name("squad.toml")
_SHOWN = 5
_WORD = re.compile(r"\w{4,}")
WAYS = {
    "PPS": "`memory_query`, five of one's own and five of the pool",
    "own files": "MEMORY.md and the day's file, read whole",
    "all files": "the same of all six agents, if they may read each other's, read whole",
    "grep": "one search of all files for the question's words of four letters and more: lines that have two",
}


async def squad(
    env: Mapping[str, str],
    out: Path | None,
    progress: Progress,
    flows: Sequence[str] = ("first", "second"),
) -> dict[str, Any]:
    """Play the flows, keep their texts in files too, do the tasks each way, and return the report as plain JSON."""
    tasks: list[dict[str, str]] = tomllib.loads(_TASKS.read_text("utf-8"))["tasks"]
    rows: list[dict[str, Any]] = []
    async with throw_away(env, None) as settings, App.open(settings) as app:
        made = (await squad_members.found(app, "bench", "openclaw", {})).squad
        calls = Calls(app)

        async def ask(who: str, tool: str, given: Mapping[str, Any]) -> Mapping[str, Any]:
            return (
                await calls.answer(Caller.of_entity(made.members[who].entity), tool, dict(given))
            ).data

        known: dict[str, Mapping[str, Any]] = {}
        files: defaultdict[str, list[str]] = defaultdict(list)
        for name in flows:
            async for one in play(flow(name), ask, known):
                if one.step.tool == "memory_store":
                    files[one.step.who].append(_line(one.step.given))
        for number, task in enumerate(tasks):
            progress("tasks", number, len(tasks))
            given = {"topic": task["asks"], "limit": _SHOWN}
            caller = Caller.of_entity(made.members[task["who"]].entity)
            text = (await calls.answer(caller, "memory_query", given)).text
            rows.append({**task, "ways": _ways(text, files, list(made.members), task)})
    report: dict[str, Any] = {
        "benchmark": "squad",
        "title": "A squad's memory beside files",
        "command": "scripts/bench squad --out docs/benchmarks",
        "version": __version__,
        "machine": machine(),
        "store": settings.store,
        "embedder": settings.embedder.name,
        "counter": counter_name(),
        "tasks": rows,
    }
    if out:
        await asyncio.to_thread(pages.save, report, out, "squad", page, _draw)
    return report


def _line(given: Mapping[str, Any]) -> str:
    """Return what was stored as a bullet, with all its fields."""
    fields: Mapping[str, object] = given.get("fields", {})
    said: dict[str, object] = {
        name: one for name, one in fields.items() if isinstance(one, (str, list))
    }
    return f"- {given.get('title', '')}: {given['content']} " + "; ".join(
        f"{name}: {one}" for name, one in said.items()
    )


def _ways(
    text: str, files: Mapping[str, list[str]], members: Sequence[str], task: dict[str, str]
) -> dict[str, Any]:
    lines = {who: files.get(who, []) for who in members}
    every = [line for those in lines.values() for line in those]
    words = {one.casefold() for one in _WORD.findall(task["asks"])}
    hits = [
        line for line in every if len(words & {one.casefold() for one in _WORD.findall(line)}) > 1
    ]
    read = {
        "PPS": (1, text),
        "own files": (2, "\n".join(lines[task["who"]])),
        "all files": (2 * len(lines), "\n".join(every)),
        "grep": (1, "\n".join(hits)),
    }
    return {
        way: {"steps": steps, "tokens": count_tokens(said), "found": task["needs"] in said}
        for way, (steps, said) in read.items()
    }


def _sums(report: Report) -> dict[str, dict[str, int]]:
    return {
        way: {
            name: sum(one["ways"][way][name] for one in report["tasks"])
            for name in ("steps", "tokens", "found")
        }
        for way in WAYS
    }


def page(report: Report, name: str) -> str:
    """Return the report as Markdown."""
    sums = _sums(report)
    header = ["task", *(f"{way}: {what}" for way in WAYS for what in ("tokens", "found"))]
    rows = [
        [
            f"{one['who']}: {one['asks']}",
            *(cell for way in WAYS for cell in _cells(one["ways"][way])),
        ]
        for one in report["tasks"]
    ]
    of = len(report["tasks"])
    total = [
        [way, f"{one['found']} of {of}", str(one["steps"]), f"{one['tokens']:,}"]
        for way, one in sums.items()
    ]
    ways = "\n".join(f"- **{way}**: {what}." for way, what in WAYS.items())
    parts = [
        *pages.head(report, name),
        "Ten tasks over the two worked flows. The same texts lie in the squad's memory and, with all their fields, in "
        "a file an agent. Tokens are those of what is read, by one counter on all sides "
        f"({report['counter']}); a step is a call or a file; found is whether the words that answer are in what was "
        "read. Writing is left out on all sides. The tasks were written by who wrote the flows.",
        ways,
        pages.table(["", "found", "steps", "tokens read"], total),
        pages.table(header, rows),
        "The worked data are small, some twenty records: one search of all files does about as well here, and files "
        "that are read whole grow with every day, while a query answers with ten records. Files do not say who shared "
        "something, how sure it is, what it rests on, or that it was withdrawn, and no agent's file is its own any "
        "more when all are read. `memory_query` shows what a record says in brief, not its further fields: what "
        "stands in `findings` alone is found in files and not here.",
    ]
    return "\n\n".join(parts) + "\n"


def text(report: Report) -> str:
    """Return the sums for a terminal."""
    return "\n".join(f"{way}: {one}" for way, one in _sums(report).items())


def _cells(way: Mapping[str, Any]) -> list[str]:
    return [str(way["tokens"]), "yes" if way["found"] else "no"]


def _draw(report: Report, file: Path) -> None:
    sums = _sums(report)
    with pages.panels(file, 2) as (left, right):
        for axis, what in ((left, "tokens"), (right, "found")):
            colours = [pages.OURS_COLOUR, *([pages.THEIRS_COLOUR] * (len(sums) - 1))]
            axis.bar(list(sums), [one[what] for one in sums.values()], color=colours)
            axis.set_title(
                "tokens read in ten tasks" if what == "tokens" else "tasks whose answer was found",
                fontsize=9,
            )
